"""A file as it came, and what came of looking for a record's document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from indlet.model import JsonMapping, TermVector
from indlet.net.client import HttpAnswer
from indlet.sidecar.links import HTML, Reason

_HEAD: Final = 2048
_HTML_START = re.compile(rb"[\s\xef\xbb\xbf]{0,200}<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_XML_START = re.compile(
    rb"[\s\xef\xbb\xbf]{0,200}<\?xml[^>]{0,200}\?>(?:\s|<!--[^>]{0,500}-->){0,20}", re.IGNORECASE
)
_BINARY: Final = (b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"{\\rtf", b"%!PS")


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file as it came, and by what a change of it will be noticed."""

    url: str
    body: bytes
    media_type: str = ""
    etag: str = ""
    modified: str = ""
    is_cached: bool = False  # it comes from our cache

    @property
    def digest(self) -> str:
        return blake2b(self.body, digest_size=16).hexdigest()

    def to_json(self) -> JsonMapping:
        return {
            "url": self.url, "type": self.media_type, "size": len(self.body), "digest": self.digest,
            "etag": self.etag, "modified": self.modified,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Visit:
    """What came of looking for the document of a record."""

    reason: Reason | None = None  # None: it was read, or has not changed
    note: str = ""
    way: str = ""
    vector: TermVector | None = None
    files: tuple[JsonMapping, ...] = ()
    unchanged: bool = False
    until: str = ""  # the date at which an embargo ends
    requests: int = 0
    bytes: int = 0


def is_html(answer: HttpAnswer) -> bool:
    """Whether an answer is a web page, whatever type it states."""
    head = answer.body[:_HEAD]
    if head.lstrip()[:8].startswith(_BINARY):
        return False
    start = _XML_START.match(head)
    return _HTML_START.match(head, start.end() if start else 0) is not None or answer.content_type in HTML


def likeness(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """The share of term occurrences that two texts have in common, of the shorter one."""
    common = sum(min(count, other[term]) for term, count in one.items() if term in other)
    return common / max(min(sum(one.values()), sum(other.values())), 1)


def file_of(answer: HttpAnswer, url: str) -> FetchedFile:
    return FetchedFile(url, answer.body, answer.content_type, answer.etag, answer.modified)


def conditions_of(file: JsonMapping) -> dict[str, str]:
    """The headers of a request for a file unless it is as it was."""
    found = {"If-None-Match": file.get("etag"), "If-Modified-Since": file.get("modified")}
    return {name: str(value) for name, value in found.items() if value}
