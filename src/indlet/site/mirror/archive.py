"""A WARC file (ISO 28500) of what a mirror took, for web archives."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

from indlet import durable
from indlet.errors import MissingExtra

_HOP: Final = ("transfer-encoding", "content-encoding", "connection", "keep-alive")
# Field names of HTTP (RFC 9110, section 5.6.2); records may tell of any.
_FIELD_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")
_URL_CHARACTERS: Final = "!#$%&'()*+,/:;=?@[]~"


class WarcFile:
    """Appends a response record for each file, compressed record by record."""

    def __init__(self, path: Path) -> None:
        try:
            from warcio.warcwriter import WARCWriter
        except ModuleNotFoundError as e:
            raise MissingExtra("--warc", "warc") from e
        self._file = path.open("ab")
        durable.sync(path.parent)
        self._writer = WARCWriter(self._file, gzip=True)

    def add(self, url: str, headers: tuple[tuple[str, str], ...], place: Path) -> None:
        from warcio.statusandheaders import StatusAndHeaders

        url = quote(url, safe=_URL_CHARACTERS, errors="replace")  # a line break would begin another field
        fields = [
            (name, _CONTROL.sub(" ", value).strip())
            for name, value in headers
            if _FIELD_NAME.fullmatch(name) and name.lower() not in _HOP
        ]
        with place.open("rb") as payload:
            record = self._writer.create_warc_record(
                url,
                "response" if fields else "resource",
                payload=payload,
                http_headers=StatusAndHeaders("200 OK", fields, protocol="HTTP/1.1") if fields else None,
            )
            self._writer.write_record(record)
            record.raw_stream.close()  # a temporary file of warcio's own

    def sync(self) -> None:
        """What was added is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
