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
from indlet.service.index.embedded.facets import Parted, ranges
from indlet.service.index.embedded.matching import first_from, prefixed
from indlet.service.index.embedded.segment import Array, Segment
from indlet.service.index.protocol import Value
from indlet.service.index.values import SEPARATOR, beginning, plain

_SEPARATOR: Final = SEPARATOR.encode()
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
    # A term has one separator: what stands before it is its key.
    stops = int(bounds[0]) + np.flatnonzero(names[int(bounds[0]) : int(bounds[-1])] == _SEPARATOR[0])
    sizes = stops - begins
    same = np.zeros(count, np.bool_)
    k.equal(names, begins, sizes, same)
    first = np.flatnonzero(~same)
    number = np.cumsum(~same) - 1
    text, ends = np.empty(int(sizes[first].sum()), np.uint8), np.empty(first.size, np.int64)
    term_hash.copied(names, begins, sizes, first, text, ends)
    digests = np.empty(first.size, np.uint64)
    term_hash.digests(text, ends, digests)
    docs, listed = postings_of(segment, terms)
    width = max(first.size, 1)
    pairs = np.unique(docs.astype(np.int64) * width + np.repeat(number, listed))
    held = np.bincount(pairs // width, minlength=segment.size)
    return Keys(
        low,
        np.append(first, count),
        _heads(names, begins[first] + 2, sizes[first] - 2),
        digests,
        np.argsort(digests),
        np.concatenate(([0], np.cumsum(held))),
        (pairs % width).astype(np.uint32),
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
    segments: Sequence[Segment], matched: Sequence[Parted], facet: str, most: int
) -> tuple[tuple[str, int], ...]:
    """The most frequent values of a facet over the matching documents; a resource counts once for a value."""
    if not segments or most <= 0:
        return ()
    found, head, numbers = _numbered(segments, facet)
    codes, owned = (
        [],
        list[tuple[Array, Array]](),
    )  # of documents that are alone; numbers and groups of others
    for segment, known, (docs, shared, owners) in zip(segments, numbers, matched, strict=True):
        keys = keys_of(segment, facet)
        codes.append(known[_codes(keys, docs)])
        if shared.size:
            owned.append((known[_codes(keys, shared)], np.repeat(owners, np.diff(keys.starts)[shared])))
    if owned:
        codes.append(_once_each(owned))
    chosen, totals = _counted(np.concatenate(codes), found.size)
    found, head = found[chosen], head[chosen]
    chosen = np.arange(totals.size)
    if chosen.size > most:
        least = np.partition(totals[chosen], chosen.size - most)[chosen.size - most]
        level = chosen[totals[chosen] == least]
        above = chosen[totals[chosen] > least]
        level = level[np.lexsort((found[level], head[level]))][: most - above.size]
        chosen = np.concatenate((above, level))
    shown = zip(_named(segments, facet, found[chosen]), totals[chosen].tolist(), strict=True)
    ordered = sorted(shown, key=lambda entry: (-entry[1], entry[0].key))
    return tuple((value.label, times) for value, times in ordered)


def _counted(codes: Array, size: int) -> tuple[Array, Array]:
    if codes.size < size >> 4:
        found, counts = np.unique(codes, return_counts=True)
        return found, counts
    counts = np.bincount(codes, minlength=size)
    numbers = np.flatnonzero(counts)
    return numbers, counts[numbers]


def _once_each(owned: Sequence[tuple[Array, Array]]) -> Array:
    """The numbers of values that groups have, each once for a group."""
    numbers, owners = (np.concatenate(part) for part in zip(*owned, strict=True))
    order = np.lexsort((numbers, owners))
    numbers, owners = numbers[order], owners[order]
    new = np.ones(numbers.size, np.bool_)
    new[1:] = (numbers[1:] != numbers[:-1]) | (owners[1:] != owners[:-1])
    out: Array = numbers[new]
    return out


def _numbered(segments: Sequence[Segment], facet: str) -> tuple[Array, Array, list[Array]]:
    """All values of a facet, as digests and heads, and for each segment the numbers of its keys among them.

    Made once for these segments: the first of them keeps it until it is among others.
    """
    place, names = f"numbered:{facet}", [segment.file.name for segment in segments]
    known = segments[0].shared.get(place)
    if known is None or known[0] != names:
        keys = [keys_of(segment, facet) for segment in segments]
        digests, first, which = np.unique(
            np.concatenate([each.digests for each in keys]), return_index=True, return_inverse=True
        )
        heads = np.concatenate([each.heads for each in keys])[first]
        bounds = np.cumsum([each.digests.size for each in keys])[:-1]
        known = segments[0].shared[place] = (names, (digests, heads, np.split(which, bounds)))
    found: tuple[Array, Array, list[Array]] = known[1]
    return found


def _codes(keys: Keys, docs: Array) -> Array:
    out: Array = keys.codes[ranges(keys.starts[docs], keys.starts[docs + 1])]
    return out


def _named(segments: Sequence[Segment], facet: str, digests: Array) -> list[Value]:
    """The values of digests, in the spelling that most of all live documents have."""
    spelt: list[Counter[bytes]] = [Counter() for _ in range(digests.size)]
    for segment in segments:
        keys = keys_of(segment, facet)
        ordered = keys.digests[keys.order]
        at = np.minimum(np.searchsorted(ordered, digests), max(ordered.size - 1, 0))
        df = segment.frequencies()[0]
        for place in np.flatnonzero(ordered[at] == digests).tolist() if ordered.size else ():
            code = int(keys.order[at[place]])
            for number in range(keys.low + int(keys.first[code]), keys.low + int(keys.first[code + 1])):
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
