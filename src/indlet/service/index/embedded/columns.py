"""What the documents of a segment have as values, and their order by name, read back from the posting lists.

The terms of `service/index/values.py` stand in the dictionary in the order of their keys. A column turns
their lists round, once for a segment: for each document the numbers of its keys. Counting a facet over a
result and sorting it are then operations on arrays; names are looked at for what is shown alone.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final

import numpy as np

from indlet.kernels import merge as k
from indlet.kernels import term_hash
from indlet.kernels.counting import count_values, turn_round
from indlet.service.index.embedded.array_file import Array
from indlet.service.index.embedded.groups import GroupedValues, Groups, MatchedDocuments, grouped_values
from indlet.service.index.embedded.matching import first_from, prefixed
from indlet.service.index.embedded.segment import Segment, ranges
from indlet.service.index.protocol import Value
from indlet.service.index.values import SEPARATOR, beginning, plain

_SEPARATOR: Final = SEPARATOR.encode()
_REMEMBERED: Final = 20_000  # names of a facet's values, for a snapshot
_HEAD: Final = 8  # bytes of a key that are compared as one number


@dataclass(frozen=True, slots=True)
class Keys:
    """A facet in a segment. Key n has the terms low + first[n] up to low + first[n + 1], one for each
    spelling; documents have codes[starts[doc]:starts[doc + 1]]. `heads` and `digests` stand for keys across
    segments.
    """

    low: int
    first: Array
    heads: Array
    digests: Array
    order: Array  # of the digests
    starts: Array
    codes: Array


def keys_of(segment: Segment, facet: str) -> Keys:
    known = f"keys:{facet}"
    if known not in segment.shared:
        segment.shared[known] = _read(segment, facet)
    found: Keys = segment.shared[known]
    return found


def _read(segment: Segment, facet: str) -> Keys:
    terms = prefixed(segment, beginning(facet, "").encode())
    low, count = terms.start, len(terms)
    bounds = segment.arrays["bounds"][low : low + count + 1].astype(np.int64)
    names = segment.arrays["names"]
    begins = bounds[:-1]
    # A term has one separator: what stands before it is its key. In a malformed one it may be missing.
    stops = int(bounds[0]) + np.flatnonzero(names[int(bounds[0]) : int(bounds[-1])] == _SEPARATOR[0])
    following = np.append(stops, bounds[-1])[np.searchsorted(stops, begins)]
    sizes = np.minimum(following, bounds[1:]) - begins
    same = np.zeros(count, np.bool_)
    k.equal(names, begins, sizes, same)
    first = np.flatnonzero(~same)
    number = np.cumsum(~same) - 1
    text, ends = np.empty(int(sizes[first].sum()), np.uint8), np.empty(first.size, np.int64)
    term_hash.copied(names, begins, sizes, first, text, ends)
    digests = np.empty(first.size, np.uint64)
    term_hash.digests(text, ends, digests)
    docs, listed = postings_of(segment, terms)
    starts, codes = np.zeros(segment.size + 1, np.int64), np.empty(docs.size, np.uint32)
    lists = np.concatenate(([0], np.cumsum(listed)))
    turn_round(docs, lists, number, starts, np.full(segment.size, -1), codes)
    return Keys(
        low,
        np.append(first, count),
        _heads(names, begins[first] + 2, sizes[first] - 2),
        digests,
        np.argsort(digests),
        starts,
        codes[: starts[-1]].copy(),
    )


def postings_of(segment: Segment, terms: range) -> tuple[Array, Array]:
    """The documents of terms, list after list, and how many each has."""
    part = slice(terms.start, terms.stop)
    listed = segment.listed()[part]
    bounds = np.concatenate(([0], np.cumsum(listed)))
    docs, freqs = np.empty(int(bounds[-1]), np.uint32), np.empty(int(bounds[-1]), np.uint32)
    k.unpack(segment.arrays["stream"], segment.arrays["starts"][part], bounds, docs, freqs)
    return docs, listed


def _heads(names: Array, begins: Array, sizes: Array) -> Array:
    """The first bytes of keys as numbers that have their order."""
    places = np.arange(_HEAD)
    at = np.minimum(begins[:, None] + places, max(names.size - 1, 0))
    letters = np.where(places < sizes[:, None], names[at] if names.size else 0, 0).astype(np.uint8)
    out: Array = np.ascontiguousarray(letters).view(">u8").ravel().astype(np.uint64)
    return out


def count(
    segments: Sequence[Segment], matched: MatchedDocuments, facet: str, most: int, values: NumberedValues
) -> tuple[tuple[str, int], ...]:
    """The most frequent values of a facet over the matching documents; a resource counts once for a value.

    `values` are those of the facet in these segments.
    """
    if most <= 0:
        return ()
    counts = np.zeros(values.digests.size, np.int64)
    for segment, known, docs in zip(segments, values.numbers, matched.alone, strict=True):
        keys = keys_of(segment, facet)
        count_values(keys.starts, keys.codes, known, docs, counts)
    if matched.places.size:
        values.grouped.add(matched.places, counts)
    chosen = _most_frequent(counts, most)
    numbers: list[int] = chosen.tolist()
    names = values.names
    called = {number: value for number in numbers if (value := names.get(number))}
    if unknown := [number for number in numbers if number not in called]:
        called |= zip(unknown, _named(segments, facet, values.digests[unknown]), strict=True)
        if len(names) > _REMEMBERED:
            names.clear()
        names.update((number, called[number]) for number in unknown)
    shown = zip(map(called.__getitem__, numbers), counts[chosen].tolist(), strict=True)
    ordered = sorted(shown, key=lambda entry: (-entry[1], entry[0].key))
    return tuple((value.label, times) for value, times in ordered)


def _most_frequent(counts: Array, most: int) -> Array:
    """The numbers of the `most` greatest counts above 0; of equal ones those of lower numbers."""
    having = np.cumsum(np.bincount(counts)[:0:-1])  # how many have the greatest count, that or the next ...
    if not having.size or having[-1] <= most:
        return np.flatnonzero(counts)
    least = having.size - int(np.searchsorted(having, most, "right"))
    above = np.flatnonzero(counts > least)
    return np.concatenate((above, np.flatnonzero(counts == least)[: most - above.size]))


@dataclass(frozen=True, slots=True)
class NumberedValues:
    """All values of a facet in some segments by their digests, in the order in which equally frequent ones
    are chosen; for each segment the numbers of its keys among them; which ones grouped documents have; and
    what values are called, by number.

    It belongs to one snapshot: deletions may change names, and while the next one is made ready, questions
    to this one go on.
    """

    digests: Array
    numbers: tuple[Array, ...]
    grouped: GroupedValues
    names: dict[int, Value]


def numbered_values(segments: Sequence[Segment], groups: Groups, facet: str) -> NumberedValues:
    if not segments:
        return NumberedValues(np.empty(0, np.uint64), (), grouped_values(groups, ()), {})
    keys = [keys_of(segment, facet) for segment in segments]
    digests, first, which = np.unique(
        np.concatenate([each.digests for each in keys]), return_index=True, return_inverse=True
    )
    order = np.lexsort((digests, np.concatenate([each.heads for each in keys])[first]))
    number = np.empty(order.size, np.uint32)
    number[order] = np.arange(order.size, dtype=np.uint32)
    bounds = np.cumsum([each.digests.size for each in keys])[:-1]
    numbers = np.split(number[which], bounds)
    having = [
        (np.diff(each.starts)[docs], known[each.codes[ranges(each.starts[docs], each.starts[docs + 1])]])
        for each, known, (docs, _) in zip(keys, numbers, groups.members, strict=bool(groups))
    ]
    return NumberedValues(digests[order], tuple(numbers), grouped_values(groups, having), {})


def _named(segments: Sequence[Segment], facet: str, digests: Array) -> list[Value]:
    """The values of digests, in the spelling that most of all live documents have."""
    spelt: list[Counter[bytes]] = [Counter() for _ in range(digests.size)]
    for segment in segments:
        keys = keys_of(segment, facet)
        if not keys.digests.size:
            continue
        at = np.searchsorted(keys.digests, digests, sorter=keys.order)
        codes = keys.order[np.minimum(at, keys.order.size - 1)]
        present = np.flatnonzero(keys.digests[codes] == digests)
        codes, df = codes[present], segment.frequencies()[0]
        lows, highs = keys.low + keys.first[codes], keys.low + keys.first[codes + 1]
        for place, low, high in zip(present.tolist(), lows.tolist(), highs.tolist(), strict=True):
            for number in range(low, high):
                spelt[place][segment.term(number)] += int(df[number])
    return [_value(counts) for counts in spelt]


def _value(spelt: Counter[bytes]) -> Value:
    best = min(spelt, key=lambda term: (-spelt[term], term))
    key, _, label = best[2:].decode("utf-8", "replace").partition(SEPARATOR)
    return Value(plain(key), plain(label))


def listed(
    segments: Sequence[Segment], facet: str, start: str, limit: int, backwards: bool = False
) -> list[Value]:
    """The values of a facet in the order of their keys: from a key on, or, backwards, those before it."""
    streams = [_from(segment, facet, start, backwards) for segment in segments]
    merged = heapq.merge(*streams, key=lambda entry: entry[0], reverse=backwards)
    groups = (list(group) for _, group in groupby(merged, lambda entry: entry[0]))
    found = []
    for group in islice(groups, max(limit, 0)):
        spelt: Counter[bytes] = Counter()
        for _, term, df in group:
            spelt[term] += df
        found.append(_value(spelt))
    return found[::-1] if backwards else found


def _from(segment: Segment, facet: str, start: str, backwards: bool) -> Iterator[tuple[bytes, bytes, int]]:
    """(key, term, df) of the live terms of a facet from a key on, or before it."""
    every = prefixed(segment, beginning(facet, "").encode())
    df = segment.frequencies()[0]
    at = first_from(segment, every, beginning(facet, start).encode("utf-8", "replace"))
    for number in range(at - 1, every.start - 1, -1) if backwards else range(at, every.stop):
        if df[number]:
            term = segment.term(number)
            yield term.partition(_SEPARATOR)[0], term, int(df[number])
