"""Names and postings in order: names are hashed, sorted, copied and found; postings sorted by their terms."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from indlet.kernels.codec import word
from indlet.kernels.jit import kernel, light_kernel, part

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Slots = NDArray[np.uint64]
Documents = NDArray[np.int32] | NDArray[np.int64] | NDArray[np.uint32]
Int = int | np.int64
# Part of the hash of a name, for this process alone: nobody outside can choose names that meet in a table.
SEED = np.int64(secrets.randbits(63))


@kernel
def digest(text: Bytes, low: Int, high: Int) -> np.uint64:
    """A 64-bit hash of text[low:high] (FNV-1a, finished by a multiplicative mix); never 0."""
    value = np.uint64(0xCBF29CE484222325)
    for i in range(low, high):
        value = (value ^ np.uint64(text[i])) * np.uint64(0x100000001B3)
    value ^= value >> np.uint64(32)
    value *= np.uint64(0xD6E8FEB86659FD93)
    value ^= value >> np.uint64(32)
    return value | np.uint64(value == np.uint64(0))


@kernel
def digests(text: Bytes, ends: Numbers, out: Slots) -> None:
    """The hash of each string in `text`, 0 for the empty one."""
    low = np.int64(0)
    for i in range(ends.size):
        out[i] = digest(text, low, ends[i]) if ends[i] > low else np.uint64(0)
        low = ends[i]


@part
def spelling(text: Bytes, low: Int, size: Int, seed: Int) -> tuple[np.uint64, np.uint64, np.uint64]:
    """The first sixteen bytes of a name as two numbers, and its hash; sixteen bytes follow the last name."""
    first = word(text, low)
    second = np.uint64(0)
    if size < 8:
        first &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
    else:
        second = word(text, low + 8)
        if size < 16:
            second &= (np.uint64(1) << np.uint64(8 * size - 64)) - np.uint64(1)
    value = (first ^ np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(32)) ^ second) * np.uint64(0xD6E8FEB86659FD93)
    for i in range(low + 16, low + size):
        value = (value ^ np.uint64(text[i])) * np.uint64(0x100000001B3)
    value = (value ^ (value >> np.uint64(29)) ^ np.uint64(size)) * np.uint64(0xBF58476D1CE4E5B9)
    return first, second, value ^ (value >> np.uint64(32))


@kernel
def scatter(
    of: Documents, freqs: Documents, begins: Numbers, low: Int, high: Int, cursors: Numbers, docs: Documents,
    counts: Documents,
) -> None:  # fmt: skip
    """Writes the postings of documents, from `low` to before `high`, in the order of their terms; term t's
    begin at cursors[t].
    """
    for d in range(low, high):
        for i in range(begins[d], begins[d + 1]):
            to = cursors[of[i]]
            cursors[of[i]] = to + 1
            docs[to] = d
            counts[to] = freqs[i]


@kernel
def copied(text: Bytes, names: Numbers, sizes: Numbers, order: Numbers, out: Bytes, ends: Numbers) -> None:
    """Writes the names into `out` one after another, in the given order."""
    to = np.int64(0)
    for i in range(order.size):
        low = names[order[i]]
        for k in range(sizes[order[i]]):
            out[to + k] = text[low + k]
        to += sizes[order[i]]
        ends[i] = to


@kernel
def _keys(text: Bytes, names: Numbers, sizes: Numbers, which: Numbers, depth: int, out: Slots) -> None:
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


@light_kernel
def find(
    wanted: Bytes,
    ends: Numbers,
    text: Bytes,
    bounds: NDArray[np.uint32],
    starts: NDArray[np.uint32],
    df: Documents,
    cf: Documents,
    out: Numbers,
    where: Numbers,
    sums: Numbers,
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
