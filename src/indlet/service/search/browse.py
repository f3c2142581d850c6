"""Lists of what records have (creators, subjects, years, sources …), from A to Z and with their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from indlet.formats.people import folded
from indlet.model import JsonObject
from indlet.service.index import Searcher
from indlet.service.index import expression as e
from indlet.service.index.values import VALUE_FACETS

LETTERS: Final = "0abcdefghijklmnopqrstuvwxyz"  # where a list can be entered; 0 stands for all digits
_DIGITS: Final = "0123456789"


@dataclass(frozen=True, slots=True)
class ListedValue:
    """A value: what a filter takes, how it is shown, by what it is ordered, how many records have it."""

    value: str
    label: str
    key: str
    records: int


@dataclass(frozen=True, slots=True)
class ValueList:
    """A part of a list. `previous` and `next` are where the parts before and after begin; empty for none."""

    facet: str
    values: tuple[ListedValue, ...]
    previous: str = ""
    next: str = ""

    def to_json(self) -> JsonObject:
        return {
            "facet": self.facet,
            "values": [
                {"value": one.value, "label": one.label, "records": one.records} for one in self.values
            ],
            "previous": self.previous,
            "next": self.next,
        }


def of_values(searcher: Searcher, facet: str, start: str, limit: int) -> ValueList:
    """A part of a list that may be of any size: only what is shown is looked at."""
    start = order_key(start)
    found = searcher.listed(facet, start, limit + 1)
    before = searcher.listed(facet, start, limit, backwards=True) if start else []
    values = tuple(
        ListedValue(one.label, one.label, one.key, searcher.search(e.Filter(facet, one.label), limit=0).total)
        for one in found[:limit]
    )
    following = found[limit].key if len(found) > limit else ""
    return ValueList(facet, values, before[0].key if before else "", following)


def of_counted(facet: str, counted: Sequence[ListedValue], start: str, limit: int) -> ValueList:
    """A part of a list that is there as a whole."""
    start = order_key(start)
    ordered = sorted(counted, key=lambda one: (one.key, one.value))
    at = next((n for n, one in enumerate(ordered) if one.key >= start), len(ordered))
    before = ordered[max(at - limit, 0)].key if at else ""
    following = ordered[at + limit].key if at + limit < len(ordered) else ""
    return ValueList(facet, tuple(ordered[at : at + limit]), before, following)


def letters(searcher: Searcher, facet: str, counted: Sequence[ListedValue]) -> tuple[str, ...]:
    """The letters that some value begins with."""
    if facet not in VALUE_FACETS:
        known = {one.key[:1] for one in counted}
        return tuple(c for c in LETTERS if c in known or (c == "0" and not known.isdisjoint(_DIGITS)))
    found = []
    for letter in LETTERS:
        first = searcher.listed(facet, letter, 1)
        if first and (first[0].key.startswith(letter) or (letter == "0" and first[0].key[:1] in _DIGITS)):
            found.append(letter)
    return tuple(found)


def order_key(text: str) -> str:
    """A text as keys are written: without case and accents."""
    return folded(" ".join(text[:200].split()))
