"""What a crawl needs of a storage: children, their facts, their bytes. A class for each way of asking."""

from __future__ import annotations

import contextlib
import ftplib
import html
import io
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote, unquote_to_bytes, urljoin

from indlet.errors import ExtractionError
from indlet.model import JsonMapping
from indlet.provider.hierarchy import FARTHEST

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from fsspec import AbstractFileSystem

CHUNK = 1024 * 1024
LISTING_BYTES = 64 * CHUNK
LISTING_SECONDS = 900.0
FRESH = {"skip_instance_cache": True, "use_listings_cache": False}


class ByteSink(Protocol):
    def write(self, data: bytes, /) -> int: ...


class Child(NamedTuple):
    name: str
    key: str
    kind: str  # "file", "directory", or what else the storage knows
    info: JsonMapping


class Storage:
    """A file system of fsspec. `single` is the file's name where the root is a file and not a folder."""

    tells = True  # listings tell sizes and times
    exact = True  # sizes are the number of bytes that will come
    parallel = False  # several files can be fetched at once

    def __init__(self, make: Callable[[], tuple[AbstractFileSystem, str]]) -> None:
        self._make = make
        self._fs, self.root = make()
        self.root = self.root.rstrip("/") if self.root.strip("/") else self.root
        try:
            self.single = self._single()
        except BaseException:
            self.close()
            raise

    def _single(self) -> str:
        return last_part(self.root) if self._fs.info(self.root).get("type") == "file" else ""

    def children(self, key: str) -> Iterator[Child]:
        base = key.rstrip("/")
        for info in self._fs.ls(key, detail=True):
            name = str(info["name"]).rstrip("/")
            # Object stores list a folder's own marker among its children.
            if name.strip("/") != base.strip("/"):
                yield Child(last_part(name), name, str(info.get("type")), info)

    def info(self, key: str) -> JsonMapping:
        found: JsonMapping = self._fs.info(key)
        return found

    def copy(self, key: str, sink: ByteSink) -> None:
        with self._fs.open(key, "rb") as source:
            while data := source.read(CHUNK):
                sink.write(data)

    def reconnect(self) -> None:
        self.close()
        self._fs, _ = self._make()

    def close(self) -> None:
        fs = self._fs
        with contextlib.suppress(Exception):
            if hasattr(fs, "ftp"):
                fs.ftp.close()
            for session in (getattr(fs, "_session", None), getattr(fs, "_s3", None)):
                if session is not None:
                    fs.close_session(fs.loop, session)
            if hasattr(fs, "client") and hasattr(fs.client, "close"):
                fs.client.close()  # paramiko
            elif hasattr(fs, "client") and hasattr(fs.client, "http"):
                fs.client.http.close()  # webdav4


class Ftp(Storage):
    """FTP. Names are bytes: latin-1 carries them through ftplib as they are."""

    def _single(self) -> str:
        if self.root == "/":
            return ""
        parent = self.root.rpartition("/")[0] or "/"
        for child in self.children(parent):
            if child.key == self.root:
                return child.name if child.kind == "file" else ""
        # Not every server lists what it lets one enter.
        self._fs.ftp.cwd(self.root)
        return ""

    def children(self, key: str) -> Iterator[Child]:
        # Not through fsspec's ls: it answers an empty list where the server refuses to list.
        try:
            lines = _Lines()
            self._fs.ftp.retrlines(f"MLSD {key}", lines.take)
        except ftplib.error_perm as e:
            if str(e)[:3] not in ("500", "502", "504"):
                raise PermissionError(13, str(e)) from e
            # A server without MLSD. fsspec's ls swallows a refusal; entering the folder and listing its names
            # does not.
            try:
                self._fs.ftp.cwd(key)
                self._fs.ftp.nlst()
            except ftplib.error_perm as refused:
                if "no files" not in str(refused).lower():
                    raise PermissionError(13, str(refused)) from refused
            yield from super().children(key)
            return
        for line in lines.found:
            # RFC 3659: "size=5;type=file;modify=20260101000000; name"
            facts_told, _, name = line.rstrip("\r").partition(" ")
            info = {k.lower(): v for k, _, v in (fact.partition("=") for fact in facts_told.split(";")) if k}
            kind = {"dir": "directory", "cdir": "", "pdir": ""}.get(
                info.get("type", ""), info.get("type", "file")
            )
            if kind:
                yield Child(os.fsdecode(name.encode("latin-1")), f"{key.rstrip('/')}/{name}", kind, info)

    def info(self, key: str) -> JsonMapping:
        for child in self.children(key.rpartition("/")[0] or "/"):
            if child.key == key:
                return child.info
        raise FileNotFoundError(key)

    def copy(self, key: str, sink: ByteSink) -> None:
        try:
            self._fs.ftp.retrbinary(f"RETR {key}", sink.write, blocksize=CHUNK)
        except ftplib.error_perm as e:
            if str(e).startswith("550"):
                raise PermissionError(13, str(e)) from e
            raise
        except ExtractionError:
            self.reconnect()  # the rest of the transfer is still on its way
            raise


class Webdav(Storage):
    """WebDAV. Files are asked for by the address that the server gave, not by one made up from their name."""

    parallel = True

    def children(self, key: str) -> Iterator[Child]:
        # The client takes what looks like an escape for one, and chokes on # and ?.
        for info in self._fs.ls(quote(key), detail=True):
            name = str(info["name"]).strip("/")
            if name != key.strip("/"):
                kind = str(info.get("type"))
                yield Child(last_part(name), str(info["href"]) if kind == "file" else name, kind, info)

    def info(self, key: str) -> JsonMapping:
        answer = self._fs.client.http.head(self._address(key), follow_redirects=True)
        answer.raise_for_status()
        headers = answer.headers
        return {"size": headers.get("content-length"), "Last-Modified": headers.get("last-modified")}

    def copy(self, key: str, sink: ByteSink) -> None:
        with self._fs.client.http.stream("GET", self._address(key), follow_redirects=True) as answer:
            if answer.status_code in (401, 403):
                raise PermissionError(13, f"the server answers {answer.status_code}")
            answer.raise_for_status()
            for data in answer.iter_bytes(CHUNK):
                sink.write(data)

    def _address(self, key: str) -> Any:
        base = self._fs.client.base_url
        address = base.join(key)
        if (address.scheme, address.host, address.port) != (base.scheme, base.host, base.port):
            raise PermissionError(13, "its address leads to another server")
        return address


class Http(Storage):
    """A web server's listings: links that lead one step below the page are its children."""

    tells = False
    exact = False
    parallel = True
    _LINK = re.compile(r"""<a\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))""", re.IGNORECASE)

    def _single(self) -> str:
        if self.root.endswith("/"):
            return ""
        info = self._fs.info(self.root)
        name = _decoded(self.root.rpartition("/")[2])
        listing = info.get("mimetype") in (None, "text/html") and not name.endswith(
            (".html", ".htm", ".xhtml")
        )
        return "" if listing else name

    def children(self, key: str) -> Iterator[Child]:
        page = key.rstrip("/") + "/"
        sink = _Page()
        self._fs.get_file(page, sink)
        seen = set()
        for groups in self._LINK.findall(sink.text()):
            link = html.unescape("".join(groups)).strip()
            url = quote(urljoin(page, link).partition("#")[0], safe="%/:?&=+,;@!$*'()[]~")
            rest = url[len(page) :]
            if not url.startswith(page) or not rest or "?" in rest or "/" in rest[:-1] or url in seen:
                continue
            seen.add(url)
            kind = "directory" if rest.endswith("/") else "file"
            yield Child(_decoded(rest.rstrip("/")), url, kind, {})

    def copy(self, key: str, sink: ByteSink) -> None:
        self._fs.get_file(key, sink)


class _Lines:
    """The lines of a listing, within bounds."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._size = 0
        self._until = time.monotonic() + LISTING_SECONDS

    def take(self, line: str) -> None:
        self._size += len(line)
        if self._size > LISTING_BYTES or time.monotonic() > self._until:
            raise OSError(f"a listing of more than {LISTING_BYTES:,} bytes, or without an end")
        self.found.append(line)


class _Page(io.BytesIO):
    """A listing, within bounds."""

    def write(self, data: ReadableBuffer, /) -> int:
        if self.tell() + memoryview(data).nbytes > LISTING_BYTES:
            raise OSError(f"a listing of more than {LISTING_BYTES:,} bytes")
        return super().write(data)

    def text(self) -> str:
        return self.getvalue().decode("utf-8", "replace")


def facts(info: JsonMapping) -> tuple[int, int, str]:
    """Size, time in nanoseconds and etag, by whatever names a storage gives them; else -1, -1 and ""."""
    size = info.get("size", info.get("Size"))
    etag = info.get("ETag") or info.get("etag") or info.get("Content-MD5") or ""
    if "CRC" in info:
        etag = f"crc:{info['CRC']:08x}"
    return (int(size) if size not in (None, "") else -1), _modified(info), str(etag)


def _modified(info: JsonMapping) -> int:
    for name in ("mtime", "LastModified", "modified", "modify", "Last-Modified", "date_time"):
        value = info.get(name)
        if value in (None, ""):
            continue
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return max(-FARTHEST, min(_nanoseconds(name, value), FARTHEST))
    return -1


def _nanoseconds(name: str, value: Any) -> int:
    if isinstance(value, int | float):
        return int(value) * 1_000_000_000
    if name == "date_time":  # a zip member's: local to who knows where, so taken as UTC on every machine
        year, month, day, hour, minute, second = value
        value = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    elif name == "modify":  # MLSD: UTC, perhaps with a fraction
        value = datetime.strptime(value[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    elif isinstance(value, str):
        value = parsedate_to_datetime(value) if "," in value else datetime.fromisoformat(value)
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return int(value.timestamp()) * 1_000_000_000


def last_part(key: str) -> str:
    return key.rstrip("/").rpartition("/")[2]


def _decoded(name: str) -> str:
    return os.fsdecode(unquote_to_bytes(name))
