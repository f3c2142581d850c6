"""A list of records for other people's pages: an `iframe` without scripts, forms or cookies."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from indlet.errors import QueryError
from indlet.web.page import POLICY
from indlet.web.portal import Portal

# Any page may show it: it holds nothing that a click could be stolen for.
EMBEDDED: Final = POLICY.replace("frame-ancestors 'none'", "frame-ancestors *").replace(
    "form-action 'self'", "form-action 'none'"
)
MOST: Final = 20


class Embedding:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def page(self, request: Request) -> Response:
        """The first records of a query, or the newest ones; `size` says how many."""
        state = self.portal.state(request)
        asked = request.query_params.get("size", "")
        size = min(max(int(asked), 1), MOST) if asked.isdecimal() and len(asked) < 4 else 5
        try:
            found = self.portal.found(state, size, 0)
        except QueryError as e:
            return Response(f"{e}\n", 400, media_type="text/plain")
        return self.portal.pages.render(
            request, "embed.html", policy=EMBEDDED, state=state, total=found.total,
            items=self.portal.items(found),
        )  # fmt: skip
