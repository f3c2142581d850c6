"""What names a document of a record, and the reasons why there may be none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

URL_LENGTH: Final = 2000


class AccessRight(StrEnum):
    """What metadata says about who may read a file."""

    UNKNOWN = ""
    OPEN = "open"
    EMBARGOED = "embargoed"
    RESTRICTED = "restricted"


class Reason(StrEnum):
    """Why a record has no full text. The value is what the store keeps and the desk counts."""

    NO_LINK = "no-link"  # the record names no address
    LANDING_PAGE = "landing-page"  # a page, and no document on it
    LOGIN = "login"
    REQUEST = "request-a-copy"
    EMBARGO = "embargo"
    CAPTCHA = "captcha"
    RESTRICTED = "restricted"  # the metadata says so
    LICENCE = "licence"  # not among the licences that the settings accept
    DISGUISED = "html-for-document"  # a document was promised, a page came
    ROBOTS = "robots"
    TOO_LARGE = "too-large"
    UNREADABLE = "unreadable"
    NO_TEXT = "no-text"  # scanned pages, an image, a film
    GONE = "gone"
    UNREACHABLE = "unreachable"  # will be retried soon


class FileLink(NamedTuple):
    """A file that is said to belong to a record."""

    url: str
    media_type: str = ""  # as stated; empty if not
    name: str = ""
    size: int = -1
    access: AccessRight = AccessRight.UNKNOWN
    until: str = ""  # the end of an embargo, as a date
    is_copy: bool = False  # extracted text of another file of the record
    is_full_text: bool = False  # the metadata calls it the full text


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """What one description of a record says: its files, its pages, its text, and who may read them."""

    files: tuple[FileLink, ...] = ()
    pages: tuple[str, ...] = ()
    text: bytes = b""  # XML that is itself the full text (JATS)
    access: AccessRight = AccessRight.UNKNOWN
    until: str = ""
    licences: tuple[str, ...] = ()


PDF: Final = "application/pdf"
HTML: Final = ("text/html", "application/xhtml+xml")
# Media types that hold a document, best first: what the primary file is chosen by.
DOCUMENT_TYPES: Final = (
    PDF, "application/epub+zip",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/msword",
    "application/vnd.oasis.opendocument.text", "application/rtf", "text/rtf", "application/xml", "text/xml",
    *HTML, "text/plain", "text/markdown", "application/x-tex", "text/x-tex",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.ms-powerpoint", "application/vnd.oasis.opendocument.presentation",
)  # fmt: skip
ENDINGS: Final = {
    "pdf": PDF, "epub": "application/epub+zip",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "doc": "application/msword", "odt": "application/vnd.oasis.opendocument.text", "rtf": "application/rtf",
    "xml": "application/xml", "html": "text/html", "htm": "text/html", "xhtml": "application/xhtml+xml",
    "txt": "text/plain", "md": "text/markdown", "tex": "text/x-tex",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "ppt": "application/vnd.ms-powerpoint", "odp": "application/vnd.oasis.opendocument.presentation",
}  # fmt: skip
# Endings that web addresses of pages have too: no sign of a document.
PAGE_ENDINGS: Final = frozenset(("html", "htm", "xhtml", "xml", "txt", "md"))
_UNKNOWN_TYPES: Final = frozenset(
    ("", "application/octet-stream", "application/x-download", "binary/octet-stream")
)
# Names of files that accompany a document.
_ACCOMPANYING = re.compile(
    r"licen[cs]e|copyright|agreement|permission|readme|cover[ _-]?(page|sheet|image)|suppl|appendix|annex|"
    r"abstract|summary|toc|contents|poster|slides|presentation|figure|table|dataset|codebook|erratum|thumb",
    re.IGNORECASE,
)
_ADMINISTRATIVE = re.compile(
    r"licen[cs]e(_text|_rdf|_url)?\.|deposit[ _-]?agreement|copyright[ _-]?(transfer|form)|thumb",
    re.IGNORECASE,
)


def is_document_type(media_type: str) -> bool:
    return media_type in DOCUMENT_TYPES


def guess_type(link: FileLink) -> str:
    """The media type that is stated or that the name's ending tells; empty if neither does."""
    stated = link.media_type.partition(";")[0].strip().lower()
    if stated not in _UNKNOWN_TYPES:
        return stated
    return ENDINGS.get(ending(link.name or link.url), "")


def ending(address: str) -> str:
    """The ending of a file name or of the path of a URL, in lower case and without the dot."""
    name = file_name(address) if "/" in address or "?" in address else address
    stem, dot, found = name.rpartition(".")
    return found.lower() if dot and stem and len(found) <= 5 and found.isalnum() else ""


def file_name(url: str) -> str:
    """The last segment of a URL's path, decoded. `/download` and `/content` are names of no file."""
    try:
        parts = [unquote(part) for part in urlsplit(url).path.split("/") if part]
    except ValueError:
        return ""
    while parts and parts[-1].lower() in ("download", "content", "view"):
        parts.pop()
    return parts[-1] if parts else ""


def choose_files(links: Iterable[FileLink], most: int) -> list[FileLink]:
    """The files to read, the primary one first: by type, by name, by size, then as listed.

    Of files that differ only in their ending, which are manifestations of one text, the best type is kept.
    A text that was extracted from another file is used only if there is nothing else.
    """
    found = [link for link in dict.fromkeys(links) if _may_be_document(link)]
    originals = [link for link in found if not link.is_copy]
    ranked = sorted(enumerate(originals or found), key=lambda one: (*_rank(one[1]), one[0]))
    kept: dict[str, FileLink] = {}
    for _, link in ranked:
        kept.setdefault(_stem(link), link)
    return list(kept.values())[:most]


def _may_be_document(link: FileLink) -> bool:
    media_type = guess_type(link)
    known = is_document_type(media_type) or not media_type
    return known and not _ADMINISTRATIVE.search(link.name or file_name(link.url))


def _rank(link: FileLink) -> tuple[bool, int, bool, int]:
    media_type = guess_type(link)
    place = DOCUMENT_TYPES.index(media_type) if media_type in DOCUMENT_TYPES else len(DOCUMENT_TYPES)
    accompanying = _ACCOMPANYING.search(link.name or file_name(link.url)) is not None
    return not link.is_full_text, place, accompanying, -link.size


def _stem(link: FileLink) -> str:
    """What manifestations of one text share: the name without its ending; the URL if that is no name."""
    name = link.name or file_name(link.url)
    stem = name.removesuffix(".txt").rpartition(".")[0] if "." in name else ""
    return stem.casefold() or link.url


def is_web_address(value: str) -> bool:
    return value.startswith(("http://", "https://")) and len(value) <= URL_LENGTH


def unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def strictest(found: Sequence[AccessRight]) -> AccessRight:
    """What several statements about one record come to."""
    for access in (AccessRight.RESTRICTED, AccessRight.EMBARGOED, AccessRight.OPEN):
        if access in found:
            return access
    return AccessRight.UNKNOWN
