"""Sitemaps (sitemaps.org, protocol 0.9): addresses for search engines, with the time of their last change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from indlet.oai.dates import written
from indlet.oai.xml import text

_NAMESPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_START: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


def sitemap_index(parts: Iterable[str]) -> bytes:
    """Names the addresses of sitemaps."""
    told = "".join(f"<sitemap><loc>{text(part)}</loc></sitemap>\n" for part in parts)
    return f'{_START}<sitemapindex xmlns="{_NAMESPACE}">\n{told}</sitemapindex>\n'.encode()


def sitemap(pages: Iterable[tuple[str, int | None]]) -> bytes:
    """Names pages, each with its datestamp in seconds where it has one."""
    told = "".join(
        f"<url><loc>{text(page)}</loc>"
        + ("" if when is None else f"<lastmod>{written(when)}</lastmod>")
        + "</url>\n"
        for page, when in pages
    )
    return f'{_START}<urlset xmlns="{_NAMESPACE}">\n{told}</urlset>\n'.encode()
