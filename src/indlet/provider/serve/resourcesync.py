"""ResourceSync 1.1 (ANSI/NISO Z39.99) for the public files of sites: description, capability list, resource
list and change list, from the same store as everything else.

The store keeps each record's last change only, so a change list names a URL once; whether it was created or
updated since some time it cannot tell, and says updated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from indlet.model import JsonObject, Stored
from indlet.oai.dates import written
from indlet.oai.tokens import sealed_number, unsealed_number
from indlet.oai.xml import attribute, text
from indlet.provider.answered import Answered
from indlet.provider.serve.access import Permit
from indlet.provider.site.source import site_name
from indlet.settings import Settings
from indlet.store import Store, View

PATH: Final = "/resourcesync"
WELL_KNOWN: Final = "/.well-known/resourcesync"
URLS: Final = 50_000  # as many as one document may hold
_FETCHED: Final = 500
_OPEN: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:rs="http://www.openarchives.org/rs/terms/">\n'
)


class ResourceSync:
    def __init__(
        self, store: Store, settings: Settings, clock: Callable[[], float], limit: int = URLS
    ) -> None:
        self._store, self._clock, self._limit = store, clock, limit
        self._root, self._key = settings.base_url(), store.secret("tokens")
        self._sites = {site_name(site) for site in settings.site}
        self._answered = Answered(store, clock)

    def description(self, permit: Permit) -> bytes:
        body = self._entry(f"{PATH}/capabilitylist.xml", "capabilitylist")
        return _document("urlset", "description", body)

    def capabilities(self, permit: Permit) -> bytes:
        body = "".join(self._entry(f"{PATH}/{name}.xml", name) for name in ("resourcelist", "changelist"))
        return _document("urlset", "capabilitylist", body, self._root + WELL_KNOWN)

    def resources(self, permit: Permit) -> bytes:
        """The resource list, or the index of its parts."""
        return self._listed("resourcelist")

    def changes(self, permit: Permit) -> bytes:
        return self._listed("changelist")

    def part(self, capability: str) -> Callable[[Permit, str], bytes | None]:
        """Parts of a list, by the names that its index gives them; None for a name that it does not give."""

        def build(permit: Permit, name: str) -> bytes | None:
            after = unsealed_number(capability, name, self._key)
            return None if after is None else self._listed(capability, after)

        return build

    def _listed(self, capability: str, after: int | None = None) -> bytes:
        self._answered.note()
        now = int(self._clock())
        with self._store.read() as view:
            origins = [o.id for o in view.origins("hierarchy") if o.name in self._sites]
            first = view.headers(1, origins=origins, metadata_only=True)
            if capability == "resourcelist":
                when = f'at="{written(now)}"'
            else:
                when = f'from="{written(first[0][2] if first else now)}"'
            up = f"{self._root}{PATH}/capabilitylist.xml"
            if after is None:
                starts = list(self._starts(view, origins))
                if len(starts) > 1:
                    parts = "".join(
                        f"<sitemap><loc>{text(self._root)}{PATH}/{capability}/"
                        f"{sealed_number(capability, start, self._key)}.xml</loc></sitemap>\n"
                        for start in starts
                    )
                    return _document("sitemapindex", capability, parts, up, when)
            rows = self._rows(view, origins, after or 0)
            entry = _resource if capability == "resourcelist" else _change
            body = "".join(entry(stored) for stored in rows)
        return _document("urlset", capability, body, up, when)

    def _starts(self, view: View, origins: list[int]) -> Iterator[int]:
        """After which place in the feed each part begins."""
        after = 0
        while True:
            yield after
            rows = view.headers(self._limit, after=after, origins=origins, metadata_only=True)
            if len(rows) < self._limit:
                return
            if not view.headers(1, after=rows[-1][0], origins=origins, metadata_only=True):
                return
            after = rows[-1][0]

    def _rows(self, view: View, origins: list[int], after: int) -> Iterator[Stored]:
        # A new index part makes no new resource.
        left, parts = self._limit, ("properties",)
        while left > 0 and (
            rows := view.page(
                min(_FETCHED, left), after=after, origins=origins, parts=parts, metadata_only=True
            )
        ):
            yield from rows
            left, after = left - len(rows), rows[-1].seq

    def _entry(self, path: str, capability: str) -> str:
        return f'<url><loc>{text(self._root + path)}</loc><rs:md capability="{capability}"/></url>\n'


def _resource(stored: Stored) -> str:
    if stored.deleted:
        return ""
    about: JsonObject = json.loads(stored.properties)
    return (
        f"<url><loc>{text(stored.identifier)}</loc><lastmod>{text(about['modified'])}</lastmod>"
        f"<rs:md{_described(about)}/></url>\n"
    )


def _change(stored: Stored) -> str:
    about: JsonObject = {} if stored.deleted else json.loads(stored.properties)
    kind, when = "deleted" if stored.deleted else "updated", written(stored.datestamp)
    return (
        f"<url><loc>{text(stored.identifier)}</loc><lastmod>{when}</lastmod>"
        f'<rs:md change="{kind}" datetime="{when}"{_described(about)}/></url>\n'
    )


def _described(about: JsonObject) -> str:
    """Hash, length and type as attributes, as far as they are known."""
    known = {
        "hash": f"sha-256:{about['sha256']}" if about.get("sha256") else "",
        "length": "" if about.get("rendered") else str(about.get("size", "")),
        "type": str(about.get("media_type", "")),
    }
    return "".join(f' {name}="{attribute(value)}"' for name, value in known.items() if value)


def _document(root: str, capability: str, body: str, up: str = "", when: str = "") -> bytes:
    link = f'<rs:ln rel="up" href="{attribute(up)}"/>\n' if up else ""
    md = f'<rs:md capability="{capability}"{when and f" {when}"}/>\n'
    return f"{_OPEN.format(root=root)}{link}{md}{body}</{root}>\n".encode()
