"""ResourceSync 1.1 (ANSI/NISO Z39.99) for the public files of sites: description, capability list, resource
list and change list, from the same store as everything else.

The store keeps each record's last change only, so a change list names a URL once; whether it was created or
updated since some time it cannot tell, and says updated. A long change list comes in parts that state the
time they cover, so that a client fetches those since its last visit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from indlet.model import JsonObject, Stored
from indlet.oai.dates import written
from indlet.oai.tokens import sealed_number, unsealed_number
from indlet.oai.xml import attribute, text
from indlet.provider.answered import Answered
from indlet.provider.serve.access import Permit
from indlet.provider.serve.record_filter import NamedRecord, VisibleRecords
from indlet.settings import Settings
from indlet.site.source import site_name
from indlet.site.visibility import SiteFilter
from indlet.store import Store, View

PATH: Final = "/resourcesync"
WELL_KNOWN: Final = "/.well-known/resourcesync"
URLS: Final = 50_000  # as many as one document may hold
CHANGES: Final = 1000  # of a part of the change list
_FETCHED: Final = 500
_OPEN: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:rs="http://www.openarchives.org/rs/terms/">\n'
)


class _Part(NamedTuple):
    """A part of a list: what comes after a place, with the times of its first and last change."""

    after: int
    first: int
    last: int | None  # None for the last part, which goes on

    def period(self) -> str:
        until = "" if self.last is None else f' until="{written(self.last)}"'
        return f' from="{written(self.first)}"{until}'


class ResourceSync:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Callable[[], float],
        limit: int = URLS,
        visibility: SiteFilter | None = None,
    ) -> None:
        self._store, self._clock = store, clock
        self._limits = {"resourcelist": limit, "changelist": min(limit, CHANGES)}
        self._visibility = visibility or SiteFilter(settings, clock)
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
        return self._list(permit, "resourcelist")

    def changes(self, permit: Permit) -> bytes:
        return self._list(permit, "changelist")

    def part(self, capability: str) -> Callable[[Permit, str], bytes | None]:
        """Parts of a list, by the names that its index gives them; None for a name that it does not give."""

        def build(permit: Permit, name: str) -> bytes | None:
            after = unsealed_number(capability, name, self._key)
            return None if after is None else self._list(permit, capability, after)

        return build

    def _list(self, permit: Permit, capability: str, after: int | None = None) -> bytes:
        self._answered.note()
        now = int(self._clock())
        with self._store.read() as view:
            origins = [o.id for o in view.origins("hierarchy") if o.name in self._sites]
            up = f"{self._root}{PATH}/capabilitylist.xml"
            parts = list(self._parts(view, origins, self._limits[capability], after))
            dated = capability == "changelist"
            if after is None and len(parts) > 1:
                body = "".join(
                    f"<sitemap><loc>{text(self._root)}{PATH}/{capability}/"
                    f"{sealed_number(capability, one.after, self._key)}.xml</loc>"
                    f"{f'<rs:md{one.period()}/>' if dated else ''}</sitemap>\n"
                    for one in parts
                )
                when = parts[0]._replace(last=None).period() if dated else f' at="{written(now)}"'
                return _document("sitemapindex", capability, body, up, when)
            part = parts[0] if parts else _Part(after or 0, now, None)
            seen = self._visibility.visible(view, permit.requester, origins, permit.includes)
            entry = _change if dated else _resource
            rows = self._rows(view, seen, origins, part.after, self._limits[capability])
            body = "".join(entry(stored) for stored in rows)
        return _document("urlset", capability, body, up, part.period() if dated else f' at="{written(now)}"')

    def _parts(self, view: View, origins: list[int], limit: int, after: int | None) -> Iterator[_Part]:
        """The parts of a list, or the one that begins after a place in it."""
        place = after or 0
        while rows := view.headers(limit + 1, after=place, origins=origins, metadata_only=True):
            more = len(rows) > limit
            yield _Part(place, rows[0][2], rows[min(limit, len(rows)) - 1][2] if more else None)
            if not more or after is not None:
                return
            place = rows[limit - 1][0]

    def _rows(
        self, view: View, seen: VisibleRecords, origins: list[int], after: int, limit: int
    ) -> Iterator[Stored]:
        # A new index part makes no new resource.
        left, parts = limit, ("properties",)
        while left > 0 and (
            rows := view.page(
                min(_FETCHED, left), after=after, origins=origins, parts=parts, metadata_only=True
            )
        ):
            shown = seen.shows([NamedRecord(one.identifier, bool(one.deleted)) for one in rows])
            yield from (one for one, visible in zip(rows, shown, strict=True) if visible)
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
    modified = "" if stored.deleted else f"<lastmod>{text(about['modified'])}</lastmod>"
    return (
        f"<url><loc>{text(stored.identifier)}</loc>{modified}"
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
    md = f'<rs:md capability="{capability}"{when}/>\n'
    return f"{_OPEN.format(root=root)}{link}{md}{body}</{root}>\n".encode()
