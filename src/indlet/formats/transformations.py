"""What the tables of a crosswalk do to a value on its way in, and on its way out.

each        every subfield is a value of its own; otherwise a field's subfields are joined by a space
ordered=X   subfields in the order of the table, joined by X
heading     a main heading, then its subdivisions (v, x, y, z) after double dashes
chop        ISBD punctuation at the end goes, and brackets around the whole
words       only a value that holds a letter
year        the first year, else the value less its punctuation
language    codes of three letters, even several run together, to ISO 639-1; written as ISO 639-2/B
spelled     written as RFC 1807 spells a day: January 15, 1992; read as 1992-01-15
strip=X     X at the start goes; written before the value
prefix=X    only a value that begins with X, which goes; written before the value
say=X       this word instead of the value
group       written into the same field as other values of that field
qualified   not a value of unqualified Dublin Core

"␣" stands for a space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from indlet.formats.dublin import year
from indlet.formats.record import Field
from indlet.text.language import language_code, marc_language

_ISBD: Final = frozenset(",;:/=")
_ABBREVIATED = re.compile(r"(?:\b[^\W\d]|\b(?:etc|Inc|Ltd|Co|Jr|Sr|ed|vol))\.$")
_SUBDIVISIONS: Final = "vxyz"


@dataclass(frozen=True, slots=True)
class Transformation:
    """A step of a row. `gather` picks the values of a field, `read` and `write` change one."""

    name: str
    gather: Callable[[Field, Sequence[str]], list[str]] | None = None
    read: Callable[[str], list[str]] | None = None
    write: Callable[[str], str] | None = None


def chop(value: str) -> str:
    """The value less the ISBD punctuation that led to the next area; a full stop stays after an initial."""
    end = len(value)
    while end and (value[end - 1] in _ISBD or value[end - 1].isspace()):
        end -= 1
    value = value[:end]
    if value.endswith(".") and not value.endswith("..") and not _ABBREVIATED.search(value):
        value = value[:-1]
    if value.startswith("[") and value.endswith("]") and value.count("[") == 1:
        value = value[1:-1]
    return value


def _heading(field: Field, codes: Sequence[str]) -> list[str]:
    main = [value for code, value in field.subfields if code in codes and code not in _SUBDIVISIONS]
    parts = [chop(value) for code, value in field.subfields if code in _SUBDIVISIONS and value]
    heading = " ".join(filter(None, main))
    joined = "--".join([chop(heading), *parts] if heading else parts) if parts else heading
    return [joined] if joined else []


def _languages(value: str) -> list[str]:
    # Older records run several codes together: "engfre".
    if len(value) % 3 == 0 and value.isalpha() and value.isascii():
        return [language_code(value[at : at + 3]) for at in range(0, min(len(value), 60), 3)]
    return [language_code(value)]


def _year(value: str) -> list[str]:
    found = year(value)
    return [str(found) if found else chop(value)]


_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_SPELLED = re.compile(rf"({'|'.join(_MONTHS)}) (\d\d?), (\d{{4}})", re.IGNORECASE)
_DAY = re.compile(r"(\d{4})-(0[1-9]|1[0-2])-(\d\d)")


def _spell_date(value: str) -> str:
    day = _DAY.match(value)
    return f"{_MONTHS[int(day[2]) - 1]} {int(day[3])}, {day[1]}" if day else value


def _from_spelled(value: str) -> list[str]:
    day = _SPELLED.fullmatch(value)
    return [f"{day[3]}-{_MONTHS.index(day[1].title()) + 1:02}-{int(day[2]):02}" if day else value]


def _gather_in_order(separator: str) -> Callable[[Field, Sequence[str]], list[str]]:
    def gather(field: Field, codes: Sequence[str]) -> list[str]:
        values = [value for code in codes for value in field.select((code,))]
        return [separator.join(values)] if values else []

    return gather


def _strip(prefix: str) -> Callable[[str], list[str]]:
    return lambda value: [value[len(prefix) :] if value.lower().startswith(prefix.lower()) else value]


def _prefix(prefix: str) -> Callable[[str], list[str]]:
    return lambda value: [value[len(prefix) :]] if value.startswith(prefix) else []


_PLAIN: Final = {
    step.name: step
    for step in (
        Transformation("each", gather=lambda field, codes: field.select(codes)),
        Transformation("heading", gather=_heading),
        Transformation("chop", read=lambda value: [chop(value)]),
        Transformation("words", read=lambda value: [value] if any(map(str.isalpha, value)) else []),
        Transformation("year", read=_year),
        Transformation("language", read=_languages, write=marc_language),
        Transformation("spelled", read=_from_spelled, write=_spell_date),
        Transformation("group"),
        Transformation("qualified"),
    )
}


def steps(text: str) -> tuple[Transformation, ...]:
    """The transformations of a table's cell; ValueError if one is not known."""
    return tuple(_step(word) for word in text.split())


def _step(word: str) -> Transformation:
    if word in _PLAIN:
        return _PLAIN[word]
    name, equals, value = word.partition("=")
    value = value.replace("␣", " ")
    if equals and name == "ordered":
        return Transformation(name, gather=_gather_in_order(value))
    if equals and name == "strip":
        return Transformation(name, read=_strip(value), write=lambda text: value + text)
    if equals and name == "prefix":
        return Transformation(name, read=_prefix(value), write=lambda text: value + text)
    if equals and name == "say":
        return Transformation(name, read=lambda _: [value], write=lambda _: value)
    raise ValueError(f"transformation {word!r} is not known")
