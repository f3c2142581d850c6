"""The formats that only the records of sites have: http_header and oai_didl."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Final

from indlet.formats.metadata import http_header, oai_didl
from indlet.model import JsonMapping, JsonObject, Stored
from indlet.provider.site.ask import HeadAnswer
from indlet.provider.site.source import site_name
from indlet.provider.site.tree import lasting
from indlet.provider.site.visibility import local_path
from indlet.settings import Settings, Site

Writer = Callable[[Stored], bytes]


class SiteFormats:
    """Writes the metadata part of a site's record; `PREFIXES` maps prefixes to schema and namespace."""

    def __init__(self, settings: Settings, schemas: str, clock: Callable[[], float]) -> None:
        self._sites = {site_name(site): site for site in settings.site}
        self._schema = f"{schemas}/{http_header.SCHEMA_FILE}"
        self._clock = clock
        self.prefixes: Final = {
            http_header.PREFIX: (self._schema, http_header.NAMESPACE),
            oai_didl.PREFIX: (oai_didl.SCHEMA, oai_didl.NAMESPACE),
        } if self._sites else {}  # fmt: skip

    def write(self, prefix: str, stored: Stored, headers: Mapping[str, HeadAnswer]) -> bytes:
        """`headers` are what the server told this requester of records that are not for everybody."""
        about: JsonObject = json.loads(stored.properties)
        fields = [(str(name), str(value)) for name, value in about["headers"]]
        if stored.identifier in headers:
            fields = list(lasting(headers[stored.identifier].headers))
        # The one field that differs from answer to answer and that every answer has.
        fields.insert(0, ("Date", formatdate(self._clock(), usegmt=True)))
        header = http_header.write(fields, str(about.get("sha256", "")), self._schema)
        if prefix == http_header.PREFIX:
            return header
        content = self._content(about, stored.identifier)
        return oai_didl.write(stored.identifier, str(about["media_type"]), header, content)

    def _content(self, about: JsonMapping, url: str) -> bytes | None:
        """The file's bytes if they are few, and still those that the record speaks of."""
        site = self._sites.get(str(about.get("site")))
        if site is None or about.get("rendered") or int(about["size"]) > site.by_value_bytes:
            return None
        return read_unchanged(site, url, int(about["size"]), int(about["modified_ns"]))


def read_unchanged(site: Site, url: str, size: int, modified: int) -> bytes | None:
    root = Path(os.path.realpath(site.root))
    try:
        place = (root / local_path(site, url)).resolve(strict=True)
        if not place.is_relative_to(root):
            return None
        with place.open("rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or (found.st_size, found.st_mtime_ns) != (size, modified):
                return None
            data = file.read(size + 1)
            after = os.fstat(file.fileno())
    except (OSError, ValueError):
        return None
    return data if len(data) == size and after.st_mtime_ns == modified else None
