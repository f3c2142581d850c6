"""What there is, without a query: lists of authors, subjects, years, sources, sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from indlet.service.search.browse import LETTERS
from indlet.web.i18n import Strings
from indlet.web.portal import Portal, set_label
from indlet.web.profile import KINDS as PROFILES
from indlet.web.profile import profile_path
from indlet.web.search_url import State, label
from indlet.web.svg import histogram

KINDS: Final = ("creator", "subject", "year", "source", "set", "type", "format", "language")
SHOWN: Final = 60  # values of a page
_YEARS: Final = 3000  # more than there are: years stand on one page
_FEW: Final = 8  # most frequent values of each kind in the overview

Entries = list[tuple[str, int, str]]  # what is shown, how many records, their address


class Browsing:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def overview(self, request: Request) -> Response:
        """Each kind with its most frequent values."""
        t, names = self.portal.pages.strings(request), self.portal.set_names()
        found = self.portal.library.search("*", limit=0, facets=KINDS, facet_values=_FEW)
        counted = found.facets
        lists = {
            kind: _entries(t, kind, ((value, value, count) for value, count in counted[kind].values), names)
            for kind in KINDS
        }
        return self.portal.pages.render(
            request,
            "browse.html",
            here="browse",
            lists=[(kind, entries) for kind, entries in lists.items() if entries],
            total=found.total,
            picture=histogram(dict(found.histogram), 960.0, 110.0),
            state=State(),
        )

    def page(self, request: Request) -> Response:
        """A part of one list, with the letters at which it can be entered."""
        kind, start = request.path_params["kind"], request.query_params.get("from", "")[:200]
        if kind not in KINDS:
            raise HTTPException(404)
        library, yearly = self.portal.library, kind == "year"
        t, names = self.portal.pages.strings(request), self.portal.set_names()
        found = library.browse(kind, "" if yearly else start, _YEARS if yearly else SHOWN)
        values = found.values[::-1] if yearly else found.values
        known = () if yearly else library.letters(kind)
        return self.portal.pages.render(
            request,
            "browse_list.html",
            here="browse",
            kind=kind,
            start=start,
            kinds=KINDS,
            entries=_entries(t, kind, ((one.value, one.label, one.records) for one in values), names),
            letters=[(letter, letter in known) for letter in LETTERS] if len(known) > 1 else [],
            previous=_part(kind, found.previous),
            next=_part(kind, found.next),
        )


def _entries(
    t: Strings, kind: str, values: Iterable[tuple[str, str, int]], names: Mapping[str, str]
) -> Entries:
    return [
        (set_label(value, names) if kind == "set" else label(t, kind, text), count, _link(kind, value))
        for value, text, count in values
    ]


def _link(kind: str, value: str) -> str:
    """The page of a value, or the records that have it."""
    if kind == "year":
        return State(since=int(value), until=int(value)).link()
    for name, facet in PROFILES.items():
        if facet == kind:
            return profile_path(name, value)
    return State(filters=((kind, value),)).link()


def _part(kind: str, start: str) -> str:
    return f"/browse/{kind}?from={quote(start, safe='')}" if start else ""
