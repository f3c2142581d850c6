"""Dublin Core values as they should be: cleaned, bounded, dates and languages in their ISO forms.

Whoever reads a foreign format collects (element, value) pairs and hands them to `described`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from indlet._core import language_code
from indlet.model import DUBLIN_CORE

VALUE_LENGTH: Final = 10_000
VALUES: Final = 5_000

# What XML 1.0 cannot carry, what only steers a terminal, and what shows nothing.
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]")
_INVISIBLE = re.compile(r"[\u00ad\u200b\u2060\ufeff]")


_ELEMENTS: Final = frozenset(DUBLIN_CORE)
# Qualified Dublin Core, refinements to what they refine.
_REFINED: Final = {
    "alternative": "title", "abstract": "description", "tableOfContents": "description", "issued": "date",
    "created": "date", "available": "date", "modified": "date", "dateAccepted": "date", "extent": "format",
    "medium": "format", "spatial": "coverage", "temporal": "coverage", "bibliographicCitation": "identifier",
    "isPartOf": "relation", "accessRights": "rights", "license": "rights",
}  # fmt: skip


def element_of(name: str) -> str:
    """The Dublin Core element that a local name stands for, whatever its namespace; empty if none."""
    element = name if name in _ELEMENTS else _REFINED.get(name) or name.lower()
    return element if element in _ELEMENTS else ""


def clean(value: str) -> str:
    """The value as `folded` gives it, no longer than `VALUE_LENGTH`."""
    value = folded(value[: 2 * VALUE_LENGTH])
    return value if len(value) <= VALUE_LENGTH else value[: VALUE_LENGTH - 1] + "…"


# How UTF-16 of a PDF begins where it was copied as it stands in the file, or byte by byte.
PDF_MARKS: Final = ("\\376\\377", "\xfe\xff")
_PDF_BYTE: Final = re.compile(r"\\([0-7]{3})|\\(.)|(.)", re.DOTALL)


def pdf_text(value: str) -> str:
    """A string of a PDF that was copied as it stands in the file: `\\376\\377\\000M` is UTF-16 for "M".

    Anything else is given back unchanged.
    """
    if not value.startswith(PDF_MARKS):
        return value
    if value.startswith("\\"):
        parts = (
            int(octal, 8) if octal else ord(escaped or plain)
            for octal, escaped, plain in _PDF_BYTE.findall(value[: 8 * VALUE_LENGTH])
        )
        data = bytes(byte & 0xFF for byte in parts)
        return data[2:].decode("utf-16-be", "replace").strip("\0")
    return value[2:].replace("\0", "")  # whoever read it took each byte for a letter


def folded(value: str) -> str:
    """The value without characters that XML forbids, and with white space folded."""
    if not value.isascii():
        value = _INVISIBLE.sub("", value)
    return " ".join(_UNFIT.sub(" ", value).split())


def described(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Metadata of the pairs: each value cleaned and once, elements in Dublin Core order."""
    found: dict[str, dict[str, None]] = {}
    for element, value in pairs:
        values = found.setdefault(element, {})
        if len(values) >= VALUES:
            continue
        text = clean(pdf_text(value) if element in ("title", "creator", "subject") else value)
        if element == "date":
            text = iso_date(text)
        elif element == "language":
            text = language_code(text) or text
        if text:
            values[text] = None
    return {element: list(found[element]) for element in DUBLIN_CORE if found.get(element)}


_YEAR = re.compile(r"(?<!\d)(1\d{3}|20\d\d)(?!\d)")


def year(value: str) -> int | None:
    """The first year from 1000 to 2099 that the words of a cataloguer name: "c1984, printed 1986"."""
    found = _YEAR.search(value[:1000])
    return int(found[1]) if found else None


_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        ("jan|januar|january", "feb|februar|february", "mar|march|märz|mär", "apr|april", "may|mai",
         "jun|june|juni", "jul|july|juli", "aug|august", "sep|sept|september", "oct|october|okt|oktober",
         "nov|november", "dec|december|dez|dezember"), 1,
    )
    for name in names.split("|")
}  # fmt: skip

_ISO = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?:[T ].*)?$")
_COMPACT = re.compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?(?:\d{2,6})?(?:Z.*|[+-].*)?$")
_DAY_MONTH = re.compile(r"(?:\w+,? )?(\d{1,2})(?:st|nd|rd|th|\.)?[- ](\w{3,9})\.?,?[- ](\d{4})\b")
_MONTH_DAY = re.compile(r"(?:\w+,? )?(\w{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})\b")
_MONTH_YEAR = re.compile(r"(\w{3,9})\.?,? (\d{4})$")
_ASCTIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) [\d:]{5,8} (?:[\w:+-]{1,9} )?(\d{4})$")
_MAIL = re.compile(r"(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{2,4} \d")


def iso_date(value: str) -> str:
    """The date as YYYY, YYYY-MM or YYYY-MM-DD where its form is known; otherwise the value as it stands."""
    value = value.strip()[:200]
    if match := _ISO.match(value) or _COMPACT.match(value):
        year, month, day = match.groups()
        return _joined(int(year), int(month or 0), int(day or 0)) or value
    if match := _DAY_MONTH.match(value):
        day, name, year = match.groups()
        return _joined(int(year), _MONTHS.get(name.lower(), 0), int(day)) or value
    if match := _ASCTIME.match(value) or _MONTH_DAY.match(value):
        name, day, year = match.groups()
        return _joined(int(year), _MONTHS.get(name.lower(), 0), int(day)) or value
    if (match := _MONTH_YEAR.match(value)) and match[1].lower() in _MONTHS:
        return _joined(int(match[2]), _MONTHS[match[1].lower()], 0) or value
    if _MAIL.match(value):
        from email.utils import parsedate_to_datetime  # seldom needed, and slow to load

        try:
            return parsedate_to_datetime(value).date().isoformat()
        except (ValueError, OverflowError):
            return value
    return value


def _joined(year: int, month: int, day: int) -> str:
    if not 1 <= year <= 9999 or month > 12 or day > 31:
        return ""
    if not month:
        return f"{year:04d}" if not day else ""
    return f"{year:04d}-{month:02d}" + (f"-{day:02d}" if day else "")
