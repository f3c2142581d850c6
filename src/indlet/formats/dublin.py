"""Dublin Core values as they should be: cleaned, bounded, dates and languages in their ISO forms.

Whoever reads a foreign format collects (element, value) pairs and hands them to `build_metadata`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from indlet import _core
from indlet._core import doi, element_of, fold_value, language_code, pdf_text
from indlet.model import DUBLIN_CORE

VALUE_LENGTH: Final = 10_000
VALUES: Final = 5_000

_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(value: str) -> str:
    """The value as `fold_spaces` gives it, no longer than `VALUE_LENGTH`."""
    value = fold_spaces(value[: 2 * VALUE_LENGTH])
    return value if len(value) <= VALUE_LENGTH else value[: VALUE_LENGTH - 1] + "…"


def fold_spaces(value: str) -> str:
    """The value without characters that XML forbids, and with white space folded."""
    return fold_value(value if value.isascii() else _SURROGATES.sub(" ", value))


def build_metadata(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
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


def iso_date(value: str) -> str:
    """The date as YYYY, YYYY-MM or YYYY-MM-DD where its form is known; otherwise the value as it stands."""
    return _core.iso_date(value) or value.strip()[:200]


__all__ = ["build_metadata", "clean", "doi", "element_of", "fold_spaces", "iso_date", "pdf_text", "year"]
