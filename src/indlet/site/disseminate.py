"""The formats that only the records of sites have: http_header and oai_didl."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from email.utils import formatdate
from functools import lru_cache
from typing import Final

import orjson

from indlet.formats.metadata import oai_dc
from indlet.model import JsonMapping, Stored
from indlet.provider.open_below import open_below
from indlet.settings import Settings, Site
from indlet.site import http_header, oai_didl
from indlet.site.ask import HeadAnswer
from indlet.site.judge import lasting, media_type
from indlet.site.source import local_path, site_name


class SiteFormats:
    """Writes the metadata part of a site's record; `prefixes` maps prefixes to schema and namespace."""

    def __init__(self, settings: Settings, schemas: str, clock: Callable[[], float]) -> None:
        self._sites = {site_name(site): site for site in settings.site}
        self._schema = f"{schemas}/{http_header.SCHEMA_FILE}"
        self._clock = clock
        self.prefixes: Final = {
            http_header.PREFIX: (self._schema, http_header.NAMESPACE),
            oai_didl.PREFIX: (oai_didl.SCHEMA, oai_didl.NAMESPACE),
        } if self._sites else {}  # fmt: skip

    def write(self, prefix: str, stored: Stored, headers: Mapping[str, HeadAnswer]) -> list[bytes]:
        """The pieces of the element. `headers` are what the server told this requester of records that are
        not for everybody."""
        about = _loaded(stored.properties)
        fields, kind = about["headers"], str(about["media_type"])
        if stored.identifier in headers:
            fields = lasting(headers[stored.identifier].headers)
            kind = media_type(headers[stored.identifier]) or kind
        # The one field that differs from answer to answer and that every answer has.
        dated = (("Date", _http_date(int(self._clock()))), *fields)
        header = http_header.write(dated, str(about.get("sha256", "")), self._schema)
        if prefix == http_header.PREFIX:
            return [header]
        content = self._content(about, stored.identifier)
        return oai_didl.pieces(stored.identifier, kind, header, content)

    def _content(self, about: JsonMapping, url: str) -> bytes | None:
        """The file's bytes if they are few, and still those that the record speaks of."""
        site = self._sites.get(str(about.get("site")))
        if site is None or about.get("rendered") or int(about["size"]) > site.by_value_bytes:
            return None
        return read_unchanged(site, url, int(about["size"]), int(about["modified_ns"]))


def with_media_type(stored: Stored, answer: HeadAnswer) -> Stored:
    """A guarded record with the media type that the server states to the requester; the crawl guessed it."""
    kind, metadata = media_type(answer), stored.record.metadata
    guessed, *others = metadata.get("format") or [""]
    if not kind or kind == guessed or not guessed:
        return stored
    changed = {**metadata, "format": [kind, *others]}
    return stored._replace(metadata=orjson.dumps(changed), raw=oai_dc.write(changed))


def _loaded(properties: bytes) -> JsonMapping:
    try:
        found: JsonMapping = orjson.loads(properties)
    except ValueError:  # names that are not UTF-8
        found = json.loads(properties)
    return found


@lru_cache(8)
def _http_date(moment: int) -> str:
    return formatdate(moment, usegmt=True)


def read_unchanged(site: Site, url: str, size: int, modified: int) -> bytes | None:
    """A file's bytes; None if it lies outside the site's folder by now, or is another."""
    opened = open_below(site.root, local_path(site, url))
    if opened is None:
        return None
    file, found = opened.descriptor, opened.status
    try:
        if (found.st_size, found.st_mtime_ns) != (size, modified):
            return None
        data = os.read(file, size + 1)
        return data if len(data) == size and os.fstat(file).st_mtime_ns == modified else None
    except OSError:
        return None
    finally:
        os.close(file)
