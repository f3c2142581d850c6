"""What there is of one author, one subject or one source: works, years, and who or what goes with them."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote_plus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from indlet.errors import IndletError
from indlet.model import JsonObject
from indlet.oai.dates import period
from indlet.web.citation import safe_url
from indlet.web.i18n import Strings
from indlet.web.portal import Portal, facet_values
from indlet.web.search_url import State
from indlet.web.svg import histogram

KINDS: Final = {"author": "creator", "subject": "subject", "source": "source"}  # addresses, and facets
LATEST: Final = 10  # records that are listed
BESIDE: Final = 12  # values of each other facet
_FACETS: Final = ("creator", "subject", "type", "language", "source", "year")


class Profiles:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def page(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in KINDS:
            raise HTTPException(404)
        facet, t = KINDS[kind], self.portal.pages.strings(request)
        name = " ".join(request.query_params.get("name", "")[:500].split())
        if not name:
            return RedirectResponse(f"/browse/{facet}", 303)
        state = State(filters=((facet, name),))
        try:
            found = self.portal.library.search(
                "*", limit=LATEST, sort="newest", facets=_FACETS, facet_values=BESIDE + 1,
                filters=state.chosen(),
            )  # fmt: skip
        except IndletError:
            raise HTTPException(404) from None
        if not found.total:
            raise HTTPException(404)
        beside = []
        for other in _FACETS[:-1]:
            values = facet_values(t, found.facets[other], state, {})
            values = [v for v in values if not (other == facet and v.chosen)][:BESIDE]
            if values and not (other == "source" and facet == "source"):
                beside.append(("co-authors" if other == facet == "creator" else other, values))
        return self.portal.pages.render(
            request,
            "profile.html",
            here="browse",
            kind=kind,
            name_shown=name,
            total=found.total,
            items=self.portal.items(found),
            beside=[
                (other, [(v, _link(other, v.names[0], state)) for v in values]) for other, values in beside
            ],
            picture=histogram(dict(found.histogram), 640.0, 90.0),
            state=state,
            facts=self._source(name, t) if kind == "source" else [],
        )

    def _source(self, name: str, t: Strings) -> list[tuple[str, str, str]]:
        """What is known of a source: label, value, address."""
        told: JsonObject = next((one for one in self.portal.library.sources() if one["name"] == name), {})
        with self.portal.store.read() as view:
            origin = next((one for one in view.origins() if one.name == name), None)
        state = origin.state if origin is not None else {}
        found = [(t("profile.records"), t.number(told.get("records", 0)), "")]
        if url := safe_url(told.get("url")):
            found.append((t("profile.address"), url, url))
        last = told.get("last_run") or {}
        if (confirmed := period(str(state.get("confirmed", "")))) is not None:
            found.append((t("profile.complete_at"), t.moment(confirmed.last), ""))
        elif last:
            outcome = str(last.get("outcome") or "running")
            found.append((t("profile.complete"), t.known(f"state.{outcome}", outcome), ""))
        if (started := period(str(last.get("started", "")))) is not None:
            found.append((t("profile.fresh"), t.moment(started.last), ""))
        if told.get("failures"):
            found.append((t("profile.missing"), t.number(told["failures"]), ""))
        contact = self.portal.library.settings.node.admin_email
        if contact and not contact[0].endswith("localdomain"):
            found.append((t("profile.contact"), contact[0], f"mailto:{contact[0]}"))
        return found


def _link(facet: str, value: str, state: State) -> str:
    """The page of another value, where it has one; else the records that have both."""
    facet = "creator" if facet == "co-authors" else facet
    for kind, own in KINDS.items():
        if own == facet:
            return profile_path(kind, value)
    return state.toggled(facet, value)


def profile_path(kind: str, name: str) -> str:
    return f"/about/{kind}?name={quote_plus(name)}"
