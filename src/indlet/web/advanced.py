"""Advanced search: a form whose fields become one query of the ordinary language, shown to the reader."""

from __future__ import annotations

import re
from typing import Final

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from indlet.web.portal import Portal, set_label
from indlet.web.search_url import FILTERS, ORDERS, SIZES, State, label

WORDS: Final = ("all", "phrase", "any", "none")
FIELDS: Final = ("title", "creator", "subject", "description", "publisher", "contributor")
CHOICES: Final = ("source", "type", "language", "format", "set")
_OFFERED: Final = 100  # values of each choice
_LONGEST: Final = 400  # characters of a field
_WORD: Final = re.compile(r"\w[\w'’.-]*\w|\w")


def composed(given: QueryParams) -> str:
    """The query that the fields of the form mean."""

    def words(name: str) -> list[str]:
        return _WORD.findall(given.get(name, "")[:_LONGEST])

    def phrase(name: str) -> str:
        return " ".join(re.sub(r"[\"“”„«»\\]", " ", given.get(name, "")[:_LONGEST]).split())

    parts = [f"+{word}" for word in words("all")]
    if text := phrase("phrase"):
        parts.append(f'+"{text}"')
    if several := words("any"):
        parts.append(f"+({' OR '.join(several)})" if len(several) > 1 else f"+{several[0]}")
    for field in FIELDS:
        if field in ("creator", "contributor", "publisher"):
            parts += [f'+{field}:"{text}"'] if (text := phrase(f"in_{field}")) else []
        else:
            parts += [f"+{field}:{word}" for word in words(f"in_{field}")]
    excluded = [f"-{word}" for word in words("none")]
    return " ".join([*(parts or (["*"] if excluded else [])), *excluded])


class Advanced:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def page(self, request: Request) -> Response:
        given = request.query_params
        if "search" in given:
            state = self.portal.state(request)
            target = State(
                q=composed(given), sort=state.sort, filters=state.filters, since=state.since,
                until=state.until, size=state.size, model=state.model, usual=state.usual,
            )  # fmt: skip
            return RedirectResponse(target.link() if not target.idle else "/?q=*", 303)
        t, names = self.portal.pages.strings(request), self.portal.set_names()
        counted = self.portal.library.search("*", limit=0, facets=CHOICES, facet_values=_OFFERED).facets
        choices = {
            kind: [
                (value, set_label(value, names) if kind == "set" else label(t, kind, value), count)
                for value, count in counted[kind].values
            ]
            for kind in CHOICES
            if counted[kind].values and kind in FILTERS
        }
        return self.portal.pages.render(
            request, "advanced.html", here="advanced", state=State(), words=WORDS, fields=FIELDS,
            choices=choices, orders=ORDERS, sizes=SIZES,
        )  # fmt: skip
