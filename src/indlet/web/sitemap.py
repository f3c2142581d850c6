"""For search engines: the pages of all records that everybody may see, in parts of bounded size."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from indlet.formats.sitemap import sitemap, sitemap_index
from indlet.service.index import expression as e
from indlet.web.citation import record_path
from indlet.web.portal import Portal

PART: Final = 2_000  # records of a part; 50,000 parts may be named
_DIGITS: Final = 5  # of the number of a part
_PAGES: Final = ("/", "/browse", "/help")


class PortalSitemap:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def index(self, request: Request) -> Response:
        """Names the parts; how many there are tells of shown records alone."""
        total = self.portal.library.searcher().search(e.Everything(), limit=0, collapse=False).total
        parts = range(max(1, -(-total // PART)))
        return _xml(sitemap_index(f"{self.portal.root}/portal-sitemap/{number}.xml" for number in parts))

    def part(self, request: Request) -> Response:
        named = request.path_params["number"]
        if not (named.isascii() and named.isdecimal() and len(named) <= _DIGITS):
            raise HTTPException(404)
        number, library = int(named), self.portal.library
        found = library.searcher().search(
            e.Everything(), limit=PART, offset=number * PART, sort="oldest", collapse=False
        )
        if number and not found.hits:
            raise HTTPException(404)
        with library.store.read() as view:
            records = view.by_id([hit.id for hit in found.hits])
            names = {origin.id: origin.name for origin in view.origins()}
        pages: list[tuple[str, int | None]] = [(page, None) for page in _PAGES] if not number else []
        pages += [
            (record_path(stored.identifier, names.get(stored.origin, "")), stored.datestamp)
            for hit in found.hits
            if (stored := records.get(hit.id)) is not None and not stored.deleted
        ]
        return _xml(sitemap((self.portal.root + path, when) for path, when in pages))


def _xml(body: bytes) -> Response:
    return Response(body, media_type="application/xml", headers={"Cache-Control": "max-age=3600"})
