"""Feeds of what is new and changed, for all, a set or a hierarchy: also where there is no portal.

A feed's own address shows the newest entries; what is older stands in archives (RFC 5005), each a fixed range
of the store's numbers of changes. An archive is given out once its range is full, so that nothing is added to
it later: who knows an archive knows all before it. Numbers are sealed, for they also count what a reader may
not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from indlet.formats.feed_writer import CONTENT, FEEDS, SPELLINGS, Enclosure, Feed, FeedEntry
from indlet.formats.file_formats import file_format
from indlet.model import Stored
from indlet.oai.names import OAI_PATH
from indlet.oai.tokens import sealed_number, unsealed_number
from indlet.provider.serve.access import Permit
from indlet.provider.serve.http import Validators, coded, tag
from indlet.provider.serve.listing import visible_to
from indlet.provider.serve.record_filter import NamedRecord, RecordFilter
from indlet.settings import Settings
from indlet.store import Store, View

ENTRIES: Final = 50  # of a document; also how many numbers an archive covers


@dataclass(frozen=True, slots=True)
class FeedDocument:
    """The records of one document of a feed, newest first, and the archives beside it."""

    stored: list[Stored]
    archive: int | None = None  # its number; None: the feed's own address
    archives: dict[str, int] = field(default_factory=dict)  # by relation


def document(
    view: View, origins: Sequence[int] | None, set_spec: str | None, archive: int | None = None
) -> FeedDocument | None:
    """The newest entries, or those of an archive; None if there is no such archive (yet)."""
    # Archives below this one are full. What a reader may not see fills none: its changes must not be noticed.
    full = next((stored.seq for stored in view.newest(1, origins=origins)), 0) // ENTRIES

    def newest(limit: int, before: int | None = None) -> list[Stored]:
        return view.newest(limit, before=before, set_spec=set_spec, origins=origins)

    if archive is None:
        # As many entries as an archive has numbers: none is missing between this document and the archives.
        stored, end = newest(ENTRIES), full
    else:
        if not 0 <= archive < full:
            return None
        stored = [one for one in newest(ENTRIES, (archive + 1) * ENTRIES + 1) if one.seq > archive * ENTRIES]
        end = archive
    found: dict[str, int] = {}
    if before := newest(1, end * ENTRIES + 1):
        found["prev-archive"] = (before[0].seq - 1) // ENTRIES
    if archive is not None:
        after = view.headers(
            1, after=(archive + 1) * ENTRIES, set_spec=set_spec, origins=origins, metadata_only=True
        )
        if after and (number := (after[0][0] - 1) // ENTRIES) < full:
            found["next-archive"] = number
    return FeedDocument(stored, archive, found)


def chosen_format(request: Request) -> str:
    """The format that an address names: by its ending, or by `format=`.

    A result page has an argument of that name too, for formats of files: `format=PDF`.
    """
    asked = [value for value in request.query_params.getlist("format") if value]
    named = [value for value in asked if value in SPELLINGS]
    unknown = [value for value in asked if value not in named and not (value.isupper() or file_format(value))]
    if unknown or request.path_params["kind"] not in FEEDS:
        raise HTTPException(404)
    return SPELLINGS[named[0] if named else request.path_params["kind"]]


def named_number(request: Request, argument: str, key: bytes) -> int | None:
    """The number in an argument that `with_number` wrote; None without one, 404 for one that we did not."""
    text = request.query_params.get(argument)
    if text is None:
        return None
    number = unsealed_number(argument, text, key)
    if number is None:
        raise HTTPException(404)
    return number


def with_number(
    address: str, arguments: Sequence[tuple[str, str]], argument: str, number: int | None, key: bytes
) -> str:
    """An address whose argument holds a number that nobody can read or make up; or is not there."""
    named = [] if number is None else [(argument, sealed_number(argument, number, key))]
    query = urlencode([*arguments, *named])
    return f"{address}?{query}" if query else address


def archive_links(
    found: FeedDocument, address: str, arguments: Sequence[tuple[str, str]], key: bytes
) -> dict[str, str]:
    """The relations of a document to its archives, with their addresses."""

    def at(number: int | None) -> str:
        return with_number(address, arguments, "archive", number, key)

    current = {} if found.archive is None else {"current": at(None)}
    return current | {relation: at(number) for relation, number in found.archives.items()}


def content_type(request: Request) -> str:
    """How descriptions are wanted in full: `content=` text, html or xhtml."""
    wanted = request.query_params.get("content", "")
    return wanted if wanted in CONTENT else ""


class ProviderFeeds:
    """The feeds of a node without a portal: `set=` and `source=` narrow them."""

    def __init__(self, store: Store, settings: Settings, filtering: RecordFilter | None = None) -> None:
        """`filtering`: where more than the settings decide who sees what."""
        self._store, self._settings, self._filter = store, settings, filtering
        self._root = settings.base_url()
        self._key = store.secret("tokens")

    def answer(self, request: Request, permit: Permit, headers: dict[str, str], vary: str) -> Response:
        kind = chosen_format(request)
        wanted = request.query_params
        with self._store.read() as view:
            known = view.origins()
            shown = permit.origins(view)
            names = {o.id: o.name for o in known if shown is None or o.id in shown}
            sources = wanted.getlist("source")
            origins = [number for number, name in names.items() if not sources or name in sources]
            found = document(view, origins, wanted.get("set"), named_number(request, "archive", self._key))
            latest = view.latest(origins) or 0
            if found is not None and self._filter is not None:
                listed = [NamedRecord(one.identifier, bool(one.deleted)) for one in found.stored]
                allowed = visible_to(self._filter, view, permit, permit.origins(view)).shows(listed)
                stored = [one for one, visible in zip(found.stored, allowed, strict=True) if visible]
                found = replace(found, stored=stored)
        if found is None:
            raise HTTPException(404)
        feed = replace(
            self._feed(request, found, latest),
            entries=[self._entry(one, names.get(one.origin, "")) for one in found.stored],
        )
        form = FEEDS[kind]
        body = form.write(feed)
        offered = self._settings.serve.compression
        return coded(request, body, form.media_type, offered, Validators(tag(body), latest, vary), headers)

    def _feed(self, request: Request, found: FeedDocument, latest: int) -> Feed:
        node, wanted = self._settings.node, request.query_params
        arguments = [(n, v) for n, v in wanted.multi_items() if n != "archive"]
        narrowed = [value for name, value in arguments if name in ("set", "source")]
        address = f"{self._root}{request.url.path}"
        return Feed(
            title=": ".join([node.name, *narrowed]),
            description=node.description or f"New and changed records of {node.name}",
            address=address + (f"?{urlencode(wanted.multi_items())}" if wanted else ""),
            page=f"{self._root}/",
            author=node.name,
            email=node.admin_email[0] if node.admin_email else "",
            rights=node.rights,
            language="en",
            updated=max((one.datestamp for one in found.stored), default=latest),
            entries=(),
            links=archive_links(found, address, arguments, self._key),
            archive=found.archive is not None,
            content=content_type(request),
        )

    def _entry(self, stored: Stored, source: str) -> FeedEntry:
        """The page of a record is its answer by the protocol, which browsers are given as HTML."""
        record = stored.record
        query = f"verb=GetRecord&metadataPrefix=oai_dc&identifier={quote(stored.identifier, safe='')}"
        restricted = bool(record.properties.get("restricted"))
        files = record.properties.get("manifestations") or [record.properties]
        return FeedEntry(
            identifier=stored.identifier,
            page=f"{self._root}{OAI_PATH}?{query}",
            title=next(iter(record.metadata.get("title", ())), ""),
            updated=stored.datestamp,
            deleted=bool(stored.deleted),
            metadata=record.metadata,
            url=str(record.properties.get("url") or ""),
            date=next(iter(record.metadata.get("date", ())), ""),
            source=source,
            restricted=restricted,
            enclosures=[
                Enclosure(
                    str(one["url"]),
                    str(one.get("media_type", "")),
                    max(0, int(one.get("size", 0))),
                    str(one.get("path", "")).rpartition("/")[2],
                )
                for one in files[:20]
                if one.get("url") and not restricted
            ],
        )
