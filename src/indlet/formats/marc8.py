"""MARC-8, the character sets that MARC 21 had before Unicode: text read from it and written in it.

Specification: Library of Congress, MARC 21 Specifications for Record Structure, Character Sets, and Exchange
Media, part 2. The tables are pymarc's. A character that MARC-8 lacks is written as a numeric character
reference (`&#x4E00;`), as the Library of Congress prescribes for a conversion that loses nothing.
"""

from __future__ import annotations

import contextlib
import io
import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple

_ASCII, _ANSEL, _EACC = 0x42, 0x45, 0x31
# Escape sequences that make a set the current one. Two extended sets stand in the upper half, as ANSEL does.
_LOWER: Final = {
    _ASCII: b"\x1b(B", 0x4E: b"\x1b(N", 0x53: b"\x1b(S", 0x32: b"\x1b(2", 0x33: b"\x1b(3", _EACC: b"\x1b$1",
    0x62: b"\x1bb", 0x70: b"\x1bp", 0x67: b"\x1bg",
}  # fmt: skip
_UPPER: Final = {_ANSEL: b"\x1b)!E", 0x51: b"\x1b)Q", 0x34: b"\x1b)4"}
# Sub- and superscripts and Greek symbols are left for ASCII by a sequence of their own.
_SYMBOLS, _LEFT = (0x62, 0x70, 0x67), b"\x1bs"
_WITH_BLANK: Final = (0x4E, 0x53, 0x32, 0x33)  # where a blank is a blank
# The first that has a character is taken.
_ORDER: Final = (_ASCII, _ANSEL, 0x4E, 0x51, 0x53, 0x32, 0x33, 0x34, _EACC, 0x62, 0x70, 0x67)
# A mark over two letters has two halves here, one for each.
_HALVES: Final = {"\u0361": ("\ufe20", "\ufe21"), "\u0360": ("\ufe22", "\ufe23")}
_OVER_TWO = re.compile("([\u0360\u0361])(.)", re.DOTALL)
_ALTERNATE = re.compile(rb"\x1b(\([NS23]|\)[Q4]|\$1)")
# Marks stand before it, as before a letter.
_REFERENCE = re.compile("&([\u0300-\u036f]*)#x([0-9A-Fa-f]{4,6});")


class _Code(NamedTuple):
    charset: int
    written: bytes
    combining: bool


def from_marc8(raw: bytes) -> str:
    """The text of a field or subfield, in composed form; Latin-1 where it is no MARC-8."""
    if raw.isascii() and b"\x1b" not in raw:
        text = raw.decode("ascii")
    else:
        from pymarc.marc8 import marc8_to_unicode

        try:
            with contextlib.redirect_stderr(io.StringIO()):  # it writes there of each truncated character
                # pymarc takes one byte for the name of ANSEL, which has two, and what follows ESC s for text.
                plain = raw.replace(_UPPER[_ANSEL], b"\x1b)E").replace(_LEFT, _LOWER[_ASCII])
                text = str(marc8_to_unicode(plain, hide_utf8_warnings=True))
        except (UnicodeError, ValueError, IndexError, KeyError, TypeError):
            text = raw.decode("latin-1")
    return _REFERENCE.sub(_resolve_reference, text) if "#x" in text else text


def _resolve_reference(match: re.Match[str]) -> str:
    number = int(match[2], 16)
    if number < 0x80 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
        return match[0]  # ASCII has a form of its own: this is text that looks like a reference
    return unicodedata.normalize("NFC", chr(number) + match[1])


def to_marc8(text: str) -> bytes:
    """The text of a field or subfield, which begin in ASCII and ANSEL; at the end ASCII is current again."""
    if text.isascii():
        return text.encode()
    text = _OVER_TWO.sub(
        lambda m: _HALVES[m[1]][0] + m[2] + _HALVES[m[1]][1], unicodedata.normalize("NFC", text)
    )
    out, lower, upper = bytearray(), _ASCII, _ANSEL
    for code in _codes(text):
        if code.charset in _UPPER:
            if lower == _EACC:  # three bytes a character, which programs take to be of either half
                out += _LOWER[_ASCII]
                lower = _ASCII
            if code.charset != upper:
                out += _UPPER[code.charset]
                upper = code.charset
        elif code.charset != lower and not (code.written == b" " and lower in _WITH_BLANK):
            left = _LEFT if lower in _SYMBOLS else b""
            out += left if left and code.charset == _ASCII else left + _LOWER[code.charset]
            lower = code.charset
        out += code.written
    if lower != _ASCII:
        out += _LEFT if lower in _SYMBOLS else _LOWER[_ASCII]
    return bytes(out)


def alternate_sets(text: str) -> list[str]:
    """The sets beside ASCII and ANSEL that a text needs, as field 066 names them: `(N`, `$1`."""
    return [name.decode() for name in _ALTERNATE.findall(to_marc8(text))]


def _codes(text: str) -> Iterator[_Code]:
    """The codes of a text: marks before the letter, or the reference, that they belong to."""
    marks, letter = list[_Code](), list[_Code]()
    for codes in map(_of, text):
        own = [code for code in codes if code.combining]
        if letter and len(own) == len(codes):
            marks += own
            continue
        yield from (*marks, *letter)
        marks, letter = own, [code for code in codes if not code.combining]
    yield from (*marks, *letter)


@lru_cache(maxsize=8192)
def _of(character: str) -> tuple[_Code, ...]:
    """The codes of a character: its own, those of its parts, or of a reference to it."""
    return _own_codes(character) or tuple(_table()[c] for c in f"&#x{ord(character):04X};")


def _own_codes(character: str) -> tuple[_Code, ...]:
    if character in _table():
        return (_table()[character],)
    parts = unicodedata.decomposition(character)
    if not parts or "<" in parts:
        return ()
    found = [_own_codes(chr(int(part, 16))) for part in parts.split()]
    return tuple(code for codes in found for code in codes) if all(found) else ()


@cache
def _table() -> dict[str, _Code]:
    from pymarc.marc8_mapping import CODESETS

    table = {chr(number): _Code(_ASCII, bytes([number]), False) for number in range(0x80)}
    for charset in _ORDER:
        for number, (character, combining) in sorted(CODESETS[charset].items()):
            written = number.to_bytes(3 if charset == _EACC else 1, "big")
            table.setdefault(chr(character), _Code(charset, written, bool(combining)))
    return table
