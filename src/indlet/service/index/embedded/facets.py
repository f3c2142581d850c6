"""How many of the matching documents have which value: counted as the filter of that value would find them.

A filter minds no case, and one for a set means those below it, too. So values that differ in case alone count
as one, under the spelling that most have, and a set counts what is in any set below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import eq

import numpy as np

from indlet.service.index.embedded.array_file import Array
from indlet.service.index.embedded.groups import GroupedValues, Groups, MatchedDocuments, grouped_values
from indlet.service.index.embedded.segment import FacetColumn, Segment, ranges


@dataclass(frozen=True, slots=True)
class _Shown:
    """A facet of a segment as it is shown: `keys` are what is counted, and a value counts for those numbered
    in counted[first[code]:first[code + 1]]; `each` has the same as tuples.

    `column` has the keys of documents where those of several values may be the same, else it is None. `spelt`
    tells how each key is written, if `uniform`; else documents write some in several ways.
    """

    keys: tuple[str, ...]
    spelt: tuple[str, ...]
    uniform: bool
    first: Array
    counted: Array
    each: tuple[tuple[int, ...], ...]
    column: FacetColumn | None


def prepare(segment: Segment) -> None:
    """Works out what every count needs to know of a segment."""
    for name in segment.facet_names:
        _shown(segment, name)


def _shown(segment: Segment, name: str) -> _Shown:
    known = f"shown:{name}"
    if known not in segment.shared:
        if name not in segment.facet_names:
            raise ValueError(f"there is no facet {name!r}: choose from {', '.join(segment.facet_names)}")
        segment.shared[known] = _made(segment.facet(name), name == "set")
    found: _Shown = segment.shared[known]
    return found


def _made(facet: FacetColumn, hierarchical: bool) -> _Shown:
    numbers: dict[str, int] = {}
    spelt: list[str] = []
    counted: list[int] = []
    first = [0, 0]  # no value is none's
    uniform = True
    for value in facet.values[1:]:
        parts = value.split(":") if hierarchical else [value]
        for depth in range(len(parts), 0, -1):
            spelling = ":".join(parts[:depth])
            number = numbers.setdefault(spelling.casefold(), len(numbers))
            if number == len(spelt):
                spelt.append(spelling)
            uniform = uniform and spelt[number] == spelling
            counted.append(number)
        first.append(len(counted))
    starts, keys = np.array(first, np.int64), np.array(counted, np.int64)
    column = None
    if facet.starts is not None and not len(counted) == len(numbers) == len(facet.values) - 1:
        codes = facet.codes.astype(np.int64)
        bounds: Array = facet.starts.astype(np.int64)
        docs = np.repeat(np.arange(facet.starts.size - 1), bounds[1:] - bounds[:-1])
        docs = np.repeat(docs, starts[codes + 1] - starts[codes])
        width = max(len(numbers), 1)
        pairs = np.unique(docs * width + keys[ranges(starts[codes], starts[codes + 1])])
        sizes = np.bincount(pairs // width, minlength=facet.starts.size - 1)
        column = FacetColumn(
            tuple(spelt),
            (pairs % width).astype(np.uint32),
            np.concatenate(([0], np.cumsum(sizes))),
        )
    each = tuple(tuple(counted[low:high]) for low, high in pairwise(first))
    return _Shown(tuple(numbers), tuple(spelt), uniform, starts, keys, each, column)


@dataclass(frozen=True, slots=True)
class GroupedKeys:
    """What grouped documents have of a facet: the keys, numbered over all segments, and whose they are."""

    keys: tuple[str, ...]
    values: GroupedValues


def grouped_keys(segments: Sequence[Segment], groups: Groups, name: str) -> GroupedKeys:
    numbers: dict[str, int] = {}
    having = []
    for segment, (docs, _) in zip(segments, groups.members, strict=True):
        shown = _shown(segment, name)
        keys, whose = _keys(segment.facet(name), shown, docs, np.arange(docs.size))
        known = np.array([numbers.setdefault(key, len(numbers)) for key in shown.keys], np.int64)
        having.append((np.bincount(whose, minlength=docs.size), known[keys]))
    return GroupedKeys(tuple(numbers), grouped_values(groups, having))


def count(
    segments: Sequence[Segment], matched: MatchedDocuments, name: str, grouped: GroupedKeys | None
) -> tuple[tuple[str, int], ...]:
    """The values of a facet over the matching documents, most frequent first; a resource counts once for a
    value. `grouped` is of these segments, where there are groups.
    """
    totals: Counter[str] = Counter()  # by keys
    told: list[_Shown] = []
    for segment, docs in zip(segments, matched.alone, strict=True):
        shown = _shown(segment, name)
        told.append(shown)
        for number, times in _counts(segment.facet(name), shown, docs):
            totals[shown.keys[number]] += times
    if grouped is not None:
        counts = np.zeros(len(grouped.keys), np.int64)
        grouped.values.add(matched.places, counts)
        for number in np.flatnonzero(counts).tolist():
            totals[grouped.keys[number]] += int(counts[number])
    written = {key: spelling for shown in told for key, spelling in zip(shown.keys, shown.spelt, strict=True)}
    if not all(s.uniform and all(map(eq, map(written.__getitem__, s.keys), s.spelt)) for s in told):
        written = _spelt(told, [segment.facet(name) for segment in segments], matched.docs)
    shares = ((written[key], times) for key, times in totals.items())
    return tuple(sorted(shares, key=lambda entry: (-entry[1], entry[0])))


def _counts(facet: FacetColumn, shown: _Shown, docs: Array) -> list[tuple[int, int]]:
    """The keys of documents, and how many have each."""
    if shown.column is not None:
        counts = np.bincount(_codes(shown.column, docs), minlength=len(shown.keys))
        return [(number, times) for number, times in enumerate(counts.tolist()) if times]
    counts = np.bincount(_codes(facet, docs), minlength=len(facet.values))
    return [
        (number, times)
        for numbers, times in zip(shown.each, counts.tolist(), strict=True)
        if times
        for number in numbers
    ]


def _keys(facet: FacetColumn, shown: _Shown, docs: Array, owners: Array) -> tuple[Array, Array]:
    """All keys of documents, and whose each is."""
    if shown.column is not None:
        assert shown.column.starts is not None
        return _codes(shown.column, docs), np.repeat(owners, np.diff(shown.column.starts)[docs])
    if facet.starts is not None:
        owners = np.repeat(owners, np.diff(facet.starts)[docs])
    codes = _codes(facet, docs).astype(np.int64)
    low, high = shown.first[codes], shown.first[codes + 1]
    return shown.counted[ranges(low, high)], np.repeat(owners, high - low)


def _spelt(told: Sequence[_Shown], facets: Sequence[FacetColumn], matched: Sequence[Array]) -> dict[str, str]:
    """How most of the documents write each key that they have."""
    spellings: Counter[str] = Counter()
    for shown, facet, docs in zip(told, facets, matched, strict=True):
        counts = np.bincount(_codes(facet, docs), minlength=len(facet.values))
        for code in np.flatnonzero(counts).tolist():
            value = facet.values[code]
            parts = value.split(":")
            for number in shown.each[code]:
                key = shown.keys[number]
                own = key == value.casefold()
                spellings[value if own else ":".join(parts[: key.count(":") + 1])] += int(counts[code])
    # The most frequent comes last, and of those the first by name.
    order = sorted(sorted(spellings, reverse=True), key=spellings.__getitem__)
    return {spelling.casefold(): spelling for spelling in order}


def _codes(column: FacetColumn, docs: Array) -> Array:
    at = docs
    if column.starts is not None:
        at = ranges(column.starts[docs], column.starts[docs + 1])
    out: Array = column.codes[at]
    return out
