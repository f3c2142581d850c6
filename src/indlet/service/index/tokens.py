"""From packed vectors to posting lists, for a whole batch of records at once.

The packed form has no mark-up, so a kernel can read the joined bytes of a batch, number the terms by hashing,
and sort the postings by term: no Python object exists for a term or a posting.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


@kernel
def _grown(array: Any, size: Any) -> Any:
    out = np.empty(size, array.dtype)
    out[: array.size] = array
    return out


@kernel
def tokenise(text: Any, ends: Any, postings: Any) -> Any:
    """Numbers the terms of a batch.

    Document d is text[ends[2d-1]:ends[2d]] (its own vector) and text[ends[2d]:ends[2d+1]] (its fields). Comes
    out: the term and the frequency of each posting, where each document's postings begin, the documents' lnc
    norms, and for each term where its name stands in `text`, its document frequency and its collection
    frequency. A term that a malformed vector names twice counts once, with both frequencies.
    """
    size = ends.size // 2
    of = np.empty(postings, np.uint32)
    freqs = np.empty(postings, np.uint32)
    begins = np.empty(size + 1, np.int64)
    norms = np.empty(size, np.float64)
    slots = np.zeros(1 << 16, np.int32)
    hashes = np.empty(1 << 15, np.uint64)
    names = np.empty(1 << 15, np.int64)
    sizes = np.empty(1 << 15, np.int32)
    df = np.zeros(1 << 15, np.int64)
    cf = np.zeros(1 << 15, np.int64)
    latest = np.empty(1 << 15, np.int64)
    terms = 0
    n = 0
    at = np.int64(0)
    for d in range(size):
        begins[d] = n
        squares = 0.0
        for part in range(2):
            end = ends[2 * d + part]
            while at < end:
                frequency = np.int64(0)
                while at < end and text[at] != 32 and text[at] != 10:
                    frequency = min(frequency * 10 + np.int64(text[at]) - 48, np.int64(0x7FFFFFFF))
                    at += 1
                in_line = 0
                while at < end and text[at] == 32:
                    at += 1
                    low = at
                    value = np.uint64(0xCBF29CE484222325)
                    while at < end and text[at] != 32 and text[at] != 10:
                        value = (value ^ np.uint64(text[at])) * np.uint64(0x100000001B3)
                        at += 1
                    if at == low or frequency < 1:
                        continue
                    in_line += 1
                    value ^= value >> np.uint64(32)
                    slot = np.int64(value & np.uint64(slots.size - 1))
                    term = -1
                    while slots[slot] != 0:
                        seen = slots[slot] - 1
                        if hashes[seen] == value and sizes[seen] == at - low:
                            same = True
                            other = names[seen]
                            for i in range(at - low):
                                if text[low + i] != text[other + i]:
                                    same = False
                                    break
                            if same:
                                term = seen
                                break
                        slot = (slot + 1) & (slots.size - 1)
                    if term < 0:
                        if terms == hashes.size:
                            hashes = _grown(hashes, 2 * terms)
                            names = _grown(names, 2 * terms)
                            sizes = _grown(sizes, 2 * terms)
                            df = _grown(df, 2 * terms)
                            cf = _grown(cf, 2 * terms)
                            latest = _grown(latest, 2 * terms)
                            slots = np.zeros(4 * terms, np.int32)
                            for i in range(terms):
                                slot = np.int64(hashes[i] & np.uint64(slots.size - 1))
                                while slots[slot] != 0:
                                    slot = (slot + 1) & (slots.size - 1)
                                slots[slot] = i + 1
                            slot = np.int64(value & np.uint64(slots.size - 1))
                            while slots[slot] != 0:
                                slot = (slot + 1) & (slots.size - 1)
                        term = terms
                        slots[slot] = term + 1
                        hashes[term] = value
                        names[term] = low
                        sizes[term] = at - low
                        df[term] = 0
                        cf[term] = 0
                        latest[term] = -1
                        terms += 1
                    cf[term] += frequency
                    if latest[term] >= begins[d]:
                        freqs[latest[term]] += np.uint32(frequency)
                        continue
                    latest[term] = n
                    df[term] += 1
                    of[n] = term
                    freqs[n] = frequency
                    n += 1
                while at < end and text[at] != 10:
                    at += 1
                at += 1
                if part == 0 and in_line > 0:
                    weight = 1.0 + math.log(float(frequency))
                    squares += in_line * (weight * weight)
            at = end
        norms[d] = math.sqrt(squares)
    begins[size] = n
    return of[:n], freqs[:n], begins, norms, names[:terms], sizes[:terms], df[:terms], cf[:terms]


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


def ordered(text: Bytes, names: NDArray[np.int64], sizes: NDArray[np.int32]) -> NDArray[np.int64]:
    """The order that sorts the names by their bytes; equal names stay in their order.

    Eight bytes a round, then only what is still tied. No name holds a zero byte (a term has no control
    character but the field mark), so a zero-filled end sorts where a shorter name belongs.
    """
    order = np.arange(names.size, dtype=np.int64)
    places = order
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
