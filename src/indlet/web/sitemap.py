"""For search engines: the pages of all records that everybody may see, in parts of bounded size."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from indlet.formats.feed_writer import rfc3339
from indlet.oai.xml import text
from indlet.service.index import expression as e
from indlet.web.citation import record_path
from indlet.web.portal import Portal

PART: Final = 2_000  # records of a part; 50,000 parts may be named
_NAMESPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_START: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_PAGES: Final = ("/", "/browse", "/help")


class PortalSitemap:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def index(self, request: Request) -> Response:
        """Names the parts; how many there are tells of shown records alone."""
        total = self.portal.library.searcher().search(e.Everything(), limit=0, collapse=False).total
        root = text(self.portal.root)
        parts = "".join(
            f"<sitemap><loc>{root}/portal-sitemap/{number}.xml</loc></sitemap>\n"
            for number in range(max(1, -(-total // PART)))
        )
        return _xml(f'<sitemapindex xmlns="{_NAMESPACE}">\n{parts}</sitemapindex>\n')

    def part(self, request: Request) -> Response:
        number = int(request.path_params["number"])
        library = self.portal.library
        found = library.searcher().search(
            e.Everything(), limit=PART, offset=number * PART, sort="oldest", collapse=False
        )
        if number and not found.hits:
            raise HTTPException(404)
        with library.store.read() as view:
            records = view.by_id([hit.id for hit in found.hits])
            names = {origin.id: origin.name for origin in view.origins()}
        urls = [(page, "") for page in _PAGES] if not number else []
        urls += [
            (record_path(stored.identifier, names.get(stored.origin, "")), rfc3339(stored.datestamp))
            for hit in found.hits
            if (stored := records.get(hit.id)) is not None and not stored.deleted
        ]
        lines = "".join(
            f"<url><loc>{text(self.portal.root + path)}</loc>"
            + (f"<lastmod>{when}</lastmod>" if when else "")
            + "</url>\n"
            for path, when in urls
        )
        return _xml(f'<urlset xmlns="{_NAMESPACE}">\n{lines}</urlset>\n')


def _xml(body: str) -> Response:
    return Response(_START + body, media_type="application/xml", headers={"Cache-Control": "max-age=3600"})
