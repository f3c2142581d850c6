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


# A row for each term, one line of the processor's cache: its first sixteen bytes, its size, where it stands in the
# text, its last posting, its document frequency, its hash.
_LOW, _HIGH, _SIZE, _NAME, _LATEST, _DF, _HASH = range(7)


@kernel
def _scan(text: Any, at: Any, end: Any, lows: Any, sizes: Any, hashes: Any, heads: Any, freqs: Any) -> Any:
    """Cuts one packed vector into its terms.

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
            lows[n] = low
            sizes[n] = size
            hashes[n] = value
            heads[2 * n] = first
            heads[2 * n + 1] = second
            freqs[n] = frequency
            n += 1
        if n > before:
            weight = 1.0 + math.log(float(frequency))
            squares += (n - before) * (weight * weight)
        while at < end and text[at] != 10:
            at += 1
        at += 1
    return n, squares


@kernel
def tokenise(text: Any, ends: Any, postings: Any, most: Any) -> Any:
    """Numbers the terms of a batch.

    Document d is text[ends[2d-1]:ends[2d]] (its own vector) and text[ends[2d]:ends[2d+1]] (its fields); `postings`
    is a bound for all of them, `most` for a document; 16 bytes follow the last. Comes out: the term and the
    frequency of each posting, where each document's postings begin, the documents' lnc norms, and for each term
    where its name stands in `text`, its size and its document frequency.
    A term that a malformed vector names twice counts once, with both frequencies.
    """
    size = ends.size // 2
    of = np.empty(postings, np.uint32)
    freqs = np.empty(postings, np.uint32)
    begins = np.empty(size + 1, np.int64)
    norms = np.empty(size, np.float64)
    slots = np.zeros(1 << 16, np.uint64)
    rows = np.empty((1 << 14, 8), np.int64)
    # One document's terms: cutting and counting are apart, so that the misses of the table overlap.
    lows = np.empty(most, np.int64)
    sizes = np.empty(most, np.int64)
    hashes = np.empty(most, np.uint64)
    heads = np.empty(2 * most, np.uint64)
    given = np.empty(most, np.int64)
    upper = np.uint64(0xFFFFFFFF00000000)
    terms = 0
    n = 0
    at = np.int64(0)
    for d in range(size):
        begins[d] = n
        for part in range(2):
            found, squares = _scan(text, at, ends[2 * d + part], lows, sizes, hashes, heads, given)
            at = ends[2 * d + part]
            if part == 0:
                norms[d] = math.sqrt(squares)
            for k in range(found):
                value = hashes[k]
                slot = np.int64(value & np.uint64(slots.size - 1))
                tag = value & upper
                term = np.int64(-1)
                while slots[slot] != np.uint64(0):
                    if slots[slot] & upper == tag:
                        seen = np.int64(slots[slot] & np.uint64(0xFFFFFFFF)) - 1
                        row = rows[seen]
                        if (
                            row[_LOW] == np.int64(heads[2 * k])
                            and row[_HIGH] == np.int64(heads[2 * k + 1])
                            and row[_SIZE] == sizes[k]
                        ):
                            same = True
                            for i in range(16, sizes[k]):
                                if text[lows[k] + i] != text[row[_NAME] + i]:
                                    same = False
                                    break
                            if same:
                                term = seen
                                break
                    slot = (slot + 1) & (slots.size - 1)
                if term < 0:
                    if terms == rows.shape[0]:
                        more = np.empty((2 * terms, 8), np.int64)
                        more[:terms] = rows
                        rows = more
                        slots = np.zeros(8 * terms, np.uint64)
                        for i in range(terms):
                            other = np.uint64(rows[i, _HASH])
                            slot = np.int64(other & np.uint64(slots.size - 1))
                            while slots[slot] != np.uint64(0):
                                slot = (slot + 1) & (slots.size - 1)
                            slots[slot] = other & upper | np.uint64(i + 1)
                        slot = np.int64(value & np.uint64(slots.size - 1))
                        while slots[slot] != np.uint64(0):
                            slot = (slot + 1) & (slots.size - 1)
                    term = np.int64(terms)
                    slots[slot] = tag | np.uint64(term + 1)
                    row = rows[term]
                    row[_LOW] = np.int64(heads[2 * k])
                    row[_HIGH] = np.int64(heads[2 * k + 1])
                    row[_SIZE] = sizes[k]
                    row[_NAME] = lows[k]
                    row[_LATEST] = -1
                    row[_DF] = 0
                    row[_HASH] = np.int64(value)
                    terms += 1
                row = rows[term]
                if row[_LATEST] >= begins[d]:
                    freqs[row[_LATEST]] += np.uint32(given[k])
                    continue
                row[_LATEST] = n
                row[_DF] += 1
                of[n] = term
                freqs[n] = given[k]
                n += 1
    begins[size] = n
    rows = rows[:terms]
    names = rows[:, _NAME].copy()
    return of[:n], freqs[:n], begins, norms, names, rows[:, _SIZE].copy(), rows[:, _DF].copy()


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
def find(wanted: Any, ends: Any, text: Any, bounds: Any, out: Any) -> None:
    """The number of each wanted name among the sorted names of `text`, or -1."""
    start = np.int64(0)
    for w in range(ends.size):
        size = ends[w] - start
        low, high = np.int64(0), np.int64(bounds.size - 1)
        out[w] = -1
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
                break
            if i == length or (i < size and text[begin + i] < wanted[start + i]):
                low = middle + 1
            else:
                high = middle
        start = ends[w]
