"""The words of the pages. Each language is one TOML file in strings/; nothing is worded anywhere else but
what the service says of queries, in English (service/notes.py).

A key with two forms, `…_one` and `…_other`, is asked for by its stem and the number `n`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Final

from indlet.model import JsonMapping
from indlet.service.search.notes import TEXTS, Note

LANGUAGES: Final = ("en", "de")


@dataclass(frozen=True, slots=True)
class Strings:
    """One language: call it with a key and the values to put in."""

    code: str
    table: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        text = self.table.get(key)
        if text is None and "n" in values:
            text = self.table[f"{key}_{'one' if values['n'] == 1 else 'other'}"]
        if text is None:
            raise KeyError(f"{self.code}.toml has no string {key!r}")
        if not values:
            return text
        shown = {
            name: self.number(value) if isinstance(value, int) else value for name, value in values.items()
        }
        return text.format(**shown)

    def told(self, note: str) -> str:
        """What the service says about a query, in this language."""
        return self(f"note.{note.code}", **note.values) if isinstance(note, Note) else note

    def known(self, key: str, otherwise: str) -> str:
        """The string of a key that comes from data, such as a facet's name; `otherwise` if there is none."""
        return self.table.get(key, otherwise)

    def number(self, value: int) -> str:
        return f"{value:,}".replace(",", self.table["format.thousands"])

    def decimal(self, value: float, places: int = 1) -> str:
        whole = f"{value:,.{places}f}"
        marks = {",": self.table["format.thousands"], ".": self.table["format.point"], "-": "−"}
        return "".join(marks.get(c, c) for c in whole)

    def day(self, seconds: float) -> str:
        at = datetime.fromtimestamp(seconds, UTC)
        month = self.table["format.months"].split()[at.month - 1]
        return self.table["format.day"].format(day=at.day, month=month, year=at.year)

    def moment(self, seconds: float) -> str:
        at = datetime.fromtimestamp(seconds, UTC)
        return f"{self.day(seconds)}, {at:%H:%M} UTC"

    def date(self, iso: str) -> str:
        """A date as precise as it is: "2001", "2001-05" or "2001-05-31"."""
        year, *rest = iso.split("-")
        if not rest or not year.isdecimal():
            return iso
        month = self.table["format.months"].split()[int(rest[0]) - 1]
        if len(rest) == 1:
            return f"{month} {int(year)}"
        return self.table["format.day"].format(day=int(rest[1]), month=month, year=int(year))

    def stamp(self, seconds: float) -> str:
        """The same for tables: short, in one form for all languages."""
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"

    def ago(self, seconds: float) -> str:
        """A span as people say it: the largest unit that fits, no more."""
        for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
            if seconds >= size:
                return self(f"format.{unit}s", n=int(seconds // size))
        return self("format.seconds", n=max(0, int(seconds)))

    def relative(self, seconds: float, now: float) -> str:
        """When something was or will be, seen from now: "3 days ago", "in 2 hours"."""
        kind, span = ("ago", now - seconds) if seconds <= now else ("in", seconds - now)
        for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
            if span >= size:
                return self(f"format.{kind}_{unit}s", n=int(span // size))
        return self(f"format.{kind}_now")

    def size(self, count: float) -> str:
        for unit in ("B", "kB", "MB", "GB"):
            if count < 1000 or unit == "GB":
                return f"{self.decimal(count, 0 if unit == 'B' or count >= 100 else 1)} {unit}"
            count /= 1000
        raise AssertionError


def value_key(value: str) -> str:
    """A value of the metadata as a key: its letters and digits, in lower case."""
    return "".join(letter for letter in value.lower() if letter.isalnum())


@cache
def strings(code: str) -> Strings:
    text = files("indlet.web").joinpath(f"strings/{code}.toml").read_text(encoding="utf-8")
    table = dict(_flat(tomllib.loads(text)))
    if code == LANGUAGES[0]:  # the service's own language
        table |= {f"note.{name}": words for name, words in TEXTS.items()}
    return Strings(code, table)


def _flat(table: JsonMapping, before: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        found += _flat(value, f"{before}{key}.") if isinstance(value, Mapping) else [(before + key, value)]
    return found


def chosen(asked: str | None, remembered: str | None, accept: str) -> str:
    """The language of a page: what the address asks for, else the cookie, else the browser's wish."""
    for code in (asked, remembered):
        if code in LANGUAGES:
            return code
    wishes: list[tuple[float, str]] = []
    for part in accept[:500].split(","):
        tag, _, parameters = part.strip().partition(";")
        quality = parameters.strip().removeprefix("q=")
        try:
            weight = float(quality) if quality else 1.0
        except ValueError:
            weight = 0.0
        wishes.append((-weight, tag.lower().partition("-")[0]))
    for weight, code in sorted(wishes, key=lambda wish: wish[0]):
        if weight < 0 and code in LANGUAGES:
            return code
    return LANGUAGES[0]
