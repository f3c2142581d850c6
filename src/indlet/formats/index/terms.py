"""What the index formats share: the `terms` element around a vector, and the checks on one that came in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from lxml import etree

from indlet.errors import BadResponse
from indlet.model import TermVector, groups, pack
from indlet.oai.names import TF_NAMESPACE
from indlet.oai.xml import FORBIDDEN, attribute

TERMS: Final = f"{{{TF_NAMESPACE}}}terms"
TERM: Final = f"{{{TF_NAMESPACE}}}term"
GROUP: Final = f"{{{TF_NAMESPACE}}}t"
CLOSE: Final = b"</terms>"

# Larger numbers are no document's: the index keeps 32 bits.
LARGEST: Final = 2**31 - 1
_NAMESPACE = TF_NAMESPACE.encode()
# Control characters, but for the line feed between lines, and what XML writes by other means.
_SPECIAL = bytes(b for b in range(32) if b != 10) + b'&<>"'


@dataclass(frozen=True, slots=True)
class IndexFormat:
    """A way to write a term vector as XML and to read it back."""

    prefix: str
    write: Callable[[TermVector], bytes]
    read: Callable[[etree._Element], TermVector]
    positions: bool = False  # whether it needs a vector that keeps them
    frequencies: bool = True  # whether it tells them


def opening(vector: TermVector) -> bytes:
    return b'<terms xmlns="%b" length="%d"%b>' % (_NAMESPACE, vector.length, _language(vector.language))


@lru_cache(maxsize=512)
def _language(code: str) -> bytes:
    return f' lang="{attribute(code)}"'.encode() if code else b""


def lines(packed: bytes) -> list[bytes]:
    """The lines of a packed vector, escaped as character data."""
    if not packed:
        return []
    if not _plain(packed):
        packed = (
            _without_forbidden(packed).replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")
        )
    return packed.split(b"\n") if packed else []


def quote_lines(packed: bytes) -> list[bytes]:
    """The lines of a packed vector, escaped as attribute values."""
    found = lines(packed)
    return found if _plain(packed) else [line.replace(b'"', b"&quot;") for line in found]


def _plain(packed: bytes) -> bool:
    """Whether the bytes may stand in XML as they are, as those of nearly all documents may."""
    # One pass that deletes what is special is the fastest look at every byte: 0.7 µs a kilobyte.
    special = len(packed.translate(None, _SPECIAL)) != len(packed)
    return not special and (packed.isascii() or b"\xef\xbf" not in packed)


def _without_forbidden(packed: bytes) -> bytes:
    """The vector without the characters that XML cannot carry: other terms may come of it, and fewer."""
    if not FORBIDDEN.search(packed.decode().replace("\n", "")):
        return packed
    return pack(
        _add_frequencies((FORBIDDEN.sub("", term), f) for f, terms in groups(packed) for term in terms)
    )


def header(root: etree._Element) -> tuple[int | None, str]:
    """The length (None where not told) and the language that a `terms` element states."""
    if root.tag != TERMS:
        raise BadResponse(f"expected an element terms of {TF_NAMESPACE}, found {root.tag}")
    if (root.text or "").strip():
        raise BadResponse(f"text where elements should be: {(root.text or '').strip()[:40]!r}")
    told = root.get("length")
    return None if told is None else number(told, "length", lowest=0), (root.get("lang") or "")[:35]


def number(value: str | None, what: str, lowest: int = 1) -> int:
    digits = (value or "").strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10 and lowest <= int(digits) <= LARGEST):
        raise BadResponse(f"{what} {value!r} is not a number from {lowest} to {LARGEST}")
    return int(digits)


def vector(frequencies: Iterable[tuple[str, int]], length: int | None, language: str) -> TermVector:
    """The vector of terms as they came: repeated ones add up, one that holds white space is several."""
    counted = _add_frequencies(frequencies)
    total = sum(counted.values())
    return TermVector(pack(counted), max(length or 0, total), None, language)


def _add_frequencies(frequencies: Iterable[tuple[str, int]]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for name, frequency in frequencies:
        for term in name.split():
            counted[term] = min(counted.get(term, 0) + frequency, LARGEST)
    return counted
