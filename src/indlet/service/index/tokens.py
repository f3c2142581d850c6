"""From packed vectors to posting lists, for a whole batch of records at once.

The packed form has no mark-up, so a kernel can read the joined bytes of a batch, number the terms by hashing,
and sort the postings by term: no Python object exists for a term or a posting.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indlet.service.index.codec import word
from indlet.service.index.compiled import kernel

Bytes = NDArray[np.uint8]


@kernel
def digest(text: Any, low: Any, high: Any) -> Any:
    """A 64-bit hash of text[low:high] (FNV-1a, finished by a multiplicative mix); never 0."""
    value = np.uint64(0xCBF29CE484222325)
    for i in range(low, high):
        value = (value ^ np.uint64(text[i])) * np.uint64(0x100000001B3)
    value ^= value >> np.uint64(32)
    value *= np.uint64(0xD6E8FEB86659FD93)
    value ^= value >> np.uint64(32)
    return value | np.uint64(value == np.uint64(0))


@kernel
def digests(text: Any, ends: Any, out: Any) -> None:
    """The hash of each string in `text`, 0 for the empty one."""
    low = np.int64(0)
    for i in range(ends.size):
        out[i] = digest(text, low, ends[i]) if ends[i] > low else np.uint64(0)
        low = ends[i]


# A row for each term, one line of the processor's cache: its first sixteen bytes, its size, where it stands
# in the
# text, its last posting, its document frequency, its hash.
_LOW, _HIGH, _SIZE, _NAME, _LATEST, _DF, _HASH = range(7)


@kernel
def _scan(text: Any, at: Any, end: Any, cut: Any, hashes: Any) -> Any:
    """Cuts one packed vector into its terms: place, size, first sixteen bytes, frequency; and hash.

    Gives their number and the sum of (1 + ln f)² over the terms, lines in their order.
    """
    n = 0
    squares = 0.0
    while at < end:
        frequency = np.int64(0)
        while at < end and text[at] != 32 and text[at] != 10:
            frequency = min(frequency * 10 + np.int64(text[at]) - 48, np.int64(0x7FFFFFFF))
            at += 1
        before = n
        while at < end and text[at] == 32:
            at += 1
            low = at
            while at < end and text[at] != 32 and text[at] != 10:
                at += 1
            size = at - low
            if size == 0 or frequency < 1:
                continue
            first = word(text, low)
            second = np.uint64(0)
            if size < 8:
                first &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
            else:
                second = word(text, low + 8)
                if size < 16:
                    second &= (np.uint64(1) << np.uint64(8 * size - 64)) - np.uint64(1)
            value = first * np.uint64(0x9E3779B97F4A7C15)
            value = (value ^ (value >> np.uint64(32)) ^ second) * np.uint64(0xD6E8FEB86659FD93)
            for i in range(low + 16, at):
                value = (value ^ np.uint64(text[i])) * np.uint64(0x100000001B3)
            value = (value ^ (value >> np.uint64(29)) ^ np.uint64(size)) * np.uint64(0xBF58476D1CE4E5B9)
            value ^= value >> np.uint64(32)
            hashes[n] = value
            cut[5 * n] = low
            cut[5 * n + 1] = size
            cut[5 * n + 2] = np.int64(first)
            cut[5 * n + 3] = np.int64(second)
            cut[5 * n + 4] = frequency
            n += 1
        if n > before:
            weight = 1.0 + math.log(float(frequency))
            squares += (n - before) * (weight * weight)
        while at < end and text[at] != 10:
            at += 1
        at += 1
    return n, squares


@kernel
def _grown(rows: Any, terms: Any, least: Any) -> Any:
    """The rows with room for `least` terms, and a table of slots at most a quarter full."""
    room = rows.size // 8
    while room < least:
        room *= 2
    more = np.empty(8 * room, np.int64)
    more[: 8 * terms] = rows[: 8 * terms]
    slots = np.zeros(4 * room, np.uint64)
    for term in range(terms):
        value = np.uint64(more[8 * term + _HASH])
        slot = value & np.uint64(slots.size - 1)
        while slots[slot] != np.uint64(0):
            slot = (slot + np.uint64(1)) & np.uint64(slots.size - 1)
        slots[slot] = value & np.uint64(0xFFFFFFFF00000000) | np.uint64(term + 1)
    return more, slots


@kernel
def _count(
    text: Any,
    cut: Any,
    hashes: Any,
    rows: Any,
    slots: Any,
    terms: Any,
    begin: Any,
    n: Any,
    of: Any,
    freqs: Any,
) -> Any:
    """Counts a document's terms, `cut` by _scan, as postings from n on; gives the new numbers of terms and
    postings.

    A slot holds the upper half of a hash and the number of a term plus one.
    """
    upper, last, one = np.uint64(0xFFFFFFFF00000000), np.uint64(slots.size - 1), np.uint64(1)
    for k in range(hashes.size):
        value = hashes[k]
        low, size, first, second = cut[5 * k], cut[5 * k + 1], cut[5 * k + 2], cut[5 * k + 3]
        slot = value & last
        at = np.uint64(0)
        held = slots[slot]
        while held != np.uint64(0):
            if held & upper == value & upper:
                at = ((held & ~upper) - one) * np.uint64(8)
                if (
                    rows[at + np.uint64(_LOW)] == first
                    and rows[at + np.uint64(_HIGH)] == second
                    and rows[at + np.uint64(_SIZE)] == size
                ):
                    same = True
                    for i in range(16, size):
                        if text[low + i] != text[rows[at + np.uint64(_NAME)] + i]:
                            same = False
                            break
                    if same:
                        break
            slot = (slot + one) & last
            held = slots[slot]
        if held == np.uint64(0):
            slots[slot] = value & upper | np.uint64(terms + 1)
            at = np.uint64(8 * terms)
            rows[at + np.uint64(_LOW)] = first
            rows[at + np.uint64(_HIGH)] = second
            rows[at + np.uint64(_SIZE)] = size
            rows[at + np.uint64(_NAME)] = low
            rows[at + np.uint64(_LATEST)] = -1
            rows[at + np.uint64(_DF)] = 0
            rows[at + np.uint64(_HASH)] = np.int64(value)
            terms += 1
        latest = rows[at + np.uint64(_LATEST)]
        if latest >= begin:
            freqs[latest] += np.uint32(cut[5 * k + 4])
            continue
        rows[at + np.uint64(_LATEST)] = n
        rows[at + np.uint64(_DF)] += 1
        of[n] = at >> np.uint64(3)
        freqs[n] = cut[5 * k + 4]
        n += 1
    return terms, n


@kernel
def tokenise(text: Any, ends: Any, postings: Any, most: Any) -> Any:
    """Numbers the terms of a batch.

    Document d is text[ends[2d-1]:ends[2d]] (its own vector) and text[ends[2d]:ends[2d+1]] (its fields);
    `postings` is a bound for all of them, `most` for a document; 16 bytes follow the last. Comes out: the
    term and the frequency of each posting, where each document's postings begin, the documents' lnc norms,
    and for each term where its name stands in `text`, its size and its document frequency. A term that a
    malformed vector names twice counts once, with both frequencies.
    """
    size = ends.size // 2
    of = np.empty(postings, np.uint32)
    freqs = np.empty(postings, np.uint32)
    begins = np.empty(size + 1, np.int64)
    norms = np.empty(size, np.float64)
    # Cutting and counting are apart, so that the misses of the table overlap.
    cut = np.empty(5 * most, np.int64)
    hashes = np.empty(most, np.uint64)
    rows, slots = _grown(np.empty(8 << 12, np.int64), np.int64(0), np.int64(1 << 12))
    terms, n, at = np.int64(0), np.int64(0), np.int64(0)  # plain 0 would be compiled apart
    for d in range(size):
        begins[d] = n
        for part in range(2):
            end = ends[2 * d + part]
            found, squares = _scan(text, at, end, cut, hashes)
            at = end
            if part == 0:
                norms[d] = math.sqrt(squares)
            if 8 * (terms + found) > rows.size:
                rows, slots = _grown(rows, terms, terms + found)
            terms, n = _count(text, cut, hashes[:found], rows, slots, terms, begins[d], n, of, freqs)
    begins[size] = n
    table = rows[: 8 * terms].reshape(terms, 8)
    return (
        of[:n],
        freqs[:n],
        begins,
        norms,
        table[:, _NAME].copy(),
        table[:, _SIZE].copy(),
        table[:, _DF].copy(),
    )


@kernel
def scatter(of: Any, freqs: Any, begins: Any, cursors: Any, docs: Any, counts: Any) -> None:
    """Writes the postings of a batch in the order of their terms; term t's list begins at cursors[t]."""
    for d in range(begins.size - 1):
        for i in range(begins[d], begins[d + 1]):
            to = cursors[of[i]]
            cursors[of[i]] = to + 1
            docs[to] = d
            counts[to] = freqs[i]


@kernel
def copied(text: Any, names: Any, sizes: Any, order: Any, out: Any, ends: Any) -> None:
    """Writes the names into `out` one after another, in the given order."""
    to = np.int64(0)
    for i in range(order.size):
        low = names[order[i]]
        for k in range(sizes[order[i]]):
            out[to + k] = text[low + k]
        to += sizes[order[i]]
        ends[i] = to


@kernel
def _keys(text: Any, names: Any, sizes: Any, which: Any, depth: Any, out: Any) -> None:
    """Eight bytes of each name from `depth` on, as a big-endian number: zero-filled past the end."""
    for i in range(which.size):
        low = names[which[i]] + depth
        left = min(max(sizes[which[i]] - depth, 0), 8)
        value = np.uint64(0)
        for k in range(left):
            value |= np.uint64(text[low + k]) << np.uint64(56 - 8 * k)
        out[i] = value


def ordered(text: Bytes, names: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order that sorts the names by their bytes; equal names stay in their order.

    Eight bytes a round, then only what is still tied. No name holds a zero byte (a term has no control
    character but the field mark), so a zero-filled end sorts where a shorter name belongs.
    """
    order = np.arange(names.size, dtype=np.int64)
    places = order.copy()
    depth = 0
    group = np.zeros(names.size, np.int64)
    while places.size:
        which = order[places]
        keys = np.empty(which.size, np.uint64)
        _keys(text, names, sizes, which, depth, keys)
        by = np.lexsort((keys, group))
        which, keys, group = which[by], keys[by], group[by]
        order[places] = which
        first = np.ones(which.size, bool)
        first[1:] = (keys[1:] != keys[:-1]) | (group[1:] != group[:-1])
        group = np.cumsum(first)
        # A name is settled when it is alone in its group, or when all of its group have ended.
        tied = (np.bincount(group)[group] > 1) & (np.bincount(group, sizes[which] > depth + 8)[group] > 0)
        depth += 8
        places, group = places[tied], group[tied]
    return order


@kernel
def find(
    wanted: Any,
    ends: Any,
    text: Any,
    bounds: Any,
    starts: Any,
    df: Any,
    cf: Any,
    out: Any,
    where: Any,
    sums: Any,
) -> None:
    """The number of each wanted name among the sorted names of `text`, or -1; and where its list begins.

    Its frequencies are added to `sums`.
    """
    start = np.int64(0)
    for w in range(ends.size):
        size = ends[w] - start
        low, high = np.int64(0), np.int64(bounds.size - 1)
        out[w] = where[w] = -1
        while low < high:
            middle = (low + high) >> 1
            begin = np.int64(bounds[middle])
            length = np.int64(bounds[middle + 1]) - begin
            shared = min(size, length)
            i = 0
            while i < shared and wanted[start + i] == text[begin + i]:
                i += 1
            if i == size and i == length:
                out[w] = middle
                where[w] = starts[middle]
                sums[w, 0] += df[middle]
                sums[w, 1] += cf[middle]
                break
            if i == length or (i < size and text[begin + i] < wanted[start + i]):
                low = middle + 1
            else:
                high = middle
        start = ends[w]
