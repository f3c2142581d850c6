"""Whether a web server gives out a file as it was found. Pure: an entry and an answer become a verdict."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from indlet.provider.hierarchy import Entry
from indlet.site.ask import HeadAnswer

REFUSED = (401, 403, 407)
BUSY = (429, 503)  # the server asks for patience, and says nothing about the file

# Header fields that differ from answer to answer while nothing has changed.
VOLATILE: Final = frozenset(
    ("date", "age", "expires", "connection", "keep-alive", "set-cookie", "x-request-id", "server-timing",
     "strict-transport-security", "alt-svc")
)  # fmt: skip
_TEXTS: Final = frozenset(
    ("application/pdf", "application/xml", "application/xhtml+xml", "application/rtf", "application/msword",
     "application/epub+zip", "application/marc", "application/mbox", "application/sgml", "message/rfc822")
)  # fmt: skip
_OFFICE: Final = ("application/vnd.openxmlformats", "application/vnd.oasis.opendocument")
_NO_TEXTS: Final = frozenset(("text/css", "text/javascript"))


class Finding(Enum):
    TAKEN = "the server gives a file of this length and time"
    GUARDED = "the server refuses it to strangers"
    OTHER = "the server gives other bytes: a handler made them"
    DOUBT = "length and time do not settle it"
    LEFT = "the server does not give it"
    HELD = "the server cannot tell now"


class Verdict(NamedTuple):
    kind: Finding
    reason: str = ""


def judge(entry: Entry, answer: HeadAnswer) -> Verdict:
    """What an answer to a HEAD request means for a file of that size and time."""
    status = answer.status
    if status in REFUSED:
        return Verdict(Finding.GUARDED, f"the server answers {status} to strangers; asked for each requester")
    if status >= 500 or status in (408, 429):
        return Verdict(Finding.HELD, f"the server answers {status}")
    if 300 <= status < 400:
        where = urlsplit(answer.get("location"))
        to = f" to {where.scheme}://{where.netloc}" if where.netloc else ""
        return Verdict(Finding.LEFT, f"the server answers {status}: it redirects{to}")
    if status != 200:
        return Verdict(Finding.LEFT, f"the server answers {status}")
    length = answer.get("content-length")
    plain = answer.get("content-encoding").lower() in ("", "identity")
    if plain and length.isdecimal() and int(length) != entry.size:
        return Verdict(Finding.OTHER, f"the server gives {int(length):,} bytes, the file has {entry.size:,}")
    if plain and length.isdecimal() and is_of_time(answer, entry.modified // 10**9):
        return Verdict(Finding.TAKEN)
    return Verdict(Finding.DOUBT)


def is_of_time(answer: HeadAnswer, seconds: int) -> bool:
    """Whether Last-Modified is a file's time. Of one in the future, Apache states that of the answer."""
    told = _seconds(answer.get("last-modified"))
    return told is not None and told == (min(seconds, _seconds(answer.get("date")) or seconds))


def is_stated(answer: HeadAnswer, seconds: int) -> bool:
    """Whether a Last-Modified field, if there is one, will be the same in a later answer."""
    date = _seconds(answer.get("date"))
    return date is None or seconds <= date or _seconds(answer.get("last-modified")) == seconds


def _seconds(date: str) -> int | None:
    """An HTTP date; None if it is missing or no date."""
    try:
        return int(parsedate_to_datetime(date).timestamp())
    except (ValueError, TypeError, OverflowError):
        return None


def lasting(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Header fields that stay the same while nothing has changed."""
    return tuple((name, value) for name, value in headers if name.lower() not in VOLATILE)


def media_type(answer: HeadAnswer) -> str:
    """The type that an answer states, without parameters; empty if it states none."""
    return answer.get("content-type").partition(";")[0].strip().lower()


def is_text(kind: str) -> bool:
    if kind in _NO_TEXTS:
        return False
    return kind.startswith(("text/", *_OFFICE)) or kind in _TEXTS
