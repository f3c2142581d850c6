"""The loops of `postings`, compiled: vectors are cut into terms, terms and words counted by document."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from indlet.kernels.arrays import Bytes, Floats, Hashes, Int, Numbers, Small
from indlet.kernels.jit import kernel, part
from indlet.kernels.term_hash import spelling

# Columns of fields come before that of what a record is searched by.
BODY = 6
# Before a field's term stand so many bytes.
MARK = 2
# What stands for a token that is no term; at or below RUN, for one that is several.
LOST, RUN = -1, -3

# A row for each term, half a line of the processor's cache: its first sixteen bytes; where its name stands
# and, in the lowest bits, its size; its last posting.
ROW = 4
_LOW, _HIGH, NAME, _LATEST = range(ROW)
SIZE_BITS = 24
# The largest frequency: what is above counts as this.
MOST = 0x7FFFFFFF
# A term of more bytes is none.
LONGEST = (1 << SIZE_BITS) - 1
# What is in use: terms, postings, bytes of names. And what the next document needs: of the first two, of the
# third, and for its words. Then what is of no use to anybody, and the seed of hashes.
TERMS, POSTINGS, BYTES, _MORE, _MORE_BYTES, _WORDS, _AHEAD, _SEED = range(8)


@kernel
def scan(
    ends: Numbers, text: Bytes, places: Numbers, firsts: Numbers, seconds: Numbers, hashes: Hashes,
    frequencies: Numbers, until: Numbers, squares: Floats, seed: Int,
) -> None:  # fmt: skip
    """Cuts packed vectors into their terms, see `Cut`; lines in their order."""
    at = np.int64(0)
    n = np.int64(0)
    for v in range(ends.size):
        end = ends[v]
        total = 0.0
        while at < end:
            frequency = np.int64(0)
            while at < end and text[at] != 32 and text[at] != 10:
                frequency = min(frequency * 10 + np.int64(text[at]) - 48, np.int64(MOST))
                at += 1
            before = n
            while at < end and text[at] == 32:
                at += 1
                low = at
                while at < end and text[at] != 32 and text[at] != 10:
                    at += 1
                size = at - low
                if size == 0 or size > LONGEST or frequency < 1:
                    continue
                first, second, hashes[n] = spelling(text, low, size, seed)
                places[n] = low << SIZE_BITS | size
                firsts[n] = np.int64(first)
                seconds[n] = np.int64(second)
                frequencies[n] = frequency
                n += 1
            if n > before:
                weight = 1.0 + math.log(float(frequency))
                total += (n - before) * (weight * weight)
            while at < end and text[at] != 10:
                at += 1
            at += 1
        at = end
        until[v] = n
        squares[v] = total


@kernel
def rehash(rows: Numbers, terms: Int, names: Bytes, slots: Hashes, seed: Int) -> None:
    """Puts all terms into empty slots.

    A slot holds the upper half of a hash and the number of a term plus one.
    """
    last = np.uint64(slots.size - 1)
    for term in range(terms):
        place = rows[ROW * term + NAME]
        _, _, value = spelling(names, place >> SIZE_BITS, place & LONGEST, seed)
        slot = value & last
        while slots[slot] != np.uint64(0):
            slot = (slot + np.uint64(1)) & last
        slots[slot] = value & np.uint64(0xFFFFFFFF00000000) | np.uint64(term + 1)


@part
def _number(
    text: Bytes, low: Int, size: Int, first: Int, second: Int, value: np.uint64, rows: Numbers, slots:
    Hashes, names: Bytes, used: Numbers,
) -> np.uint64:  # fmt: skip
    """The number of the term that stands in `text`, which gets one if it has none."""
    upper, last, one = np.uint64(0xFFFFFFFF00000000), np.uint64(slots.size - 1), np.uint64(1)
    slot = value & last
    held = slots[slot]
    while held != np.uint64(0):
        if held & upper == value & upper:
            term: np.uint64 = (held & ~upper) - one
            row = term * np.uint64(ROW)
            place = rows[row + np.uint64(NAME)]
            if (
                rows[row + np.uint64(_LOW)] == first
                and rows[row + np.uint64(_HIGH)] == second
                and place & LONGEST == size
            ):
                i = 16
                while i < size and text[low + i] == names[(place >> SIZE_BITS) + i]:
                    i += 1
                if i >= size:
                    return term
        slot = (slot + one) & last
        held = slots[slot]
    term = np.uint64(used[TERMS])
    slots[slot] = value & upper | (term + one)
    row = term * np.uint64(ROW)
    rows[row + np.uint64(_LOW)] = first
    rows[row + np.uint64(_HIGH)] = second
    rows[row + np.uint64(NAME)] = used[BYTES] << SIZE_BITS | size
    rows[row + np.uint64(_LATEST)] = -1
    for i in range(size):
        names[used[BYTES] + i] = text[low + i]
    used[BYTES] += size
    used[TERMS] += 1
    return term


@kernel
def _count(
    low: Int, high: Int, text: Bytes, places: Numbers, firsts: Numbers, seconds: Numbers, hashes: Hashes,
    frequencies: Numbers, rows: Numbers, slots: Hashes, names: Bytes, used: Numbers, begin: Int, n: Int,
    of: Small, freqs: Small, keys: bool,
) -> Int:  # fmt: skip
    """Counts terms of a document as postings from n on; gives the new number of postings.

    A term that a malformed vector names twice counts once, with both frequencies; a key has none.
    """
    # A look ahead at all of them, so that the misses of the processor's cache overlap.
    last_slot, ahead = np.uint64(slots.size - 1), np.uint64(0)
    for k in range(low, high):
        held = slots[hashes[k] & last_slot] & np.uint64(0xFFFFFFFF)
        ahead ^= np.uint64(rows[(held - (held != np.uint64(0))) * np.uint64(ROW)])
    used[_AHEAD] = np.int64(ahead)
    for k in range(low, high):
        term = _number(
            text, places[k] >> SIZE_BITS, places[k] & LONGEST, firsts[k], seconds[k], hashes[k], rows,
            slots, names, used,
        )  # fmt: skip
        last = term * np.uint64(ROW) + np.uint64(_LATEST)
        latest = rows[last]
        if latest >= begin:
            if not keys:
                freqs[latest] = min(np.int64(freqs[latest]) + frequencies[k], np.int64(MOST))
            continue
        rows[last] = n
        of[n] = term
        freqs[n] = frequencies[k]
        n += 1
    return n


@kernel
def frequencies(of: Small, df: Numbers) -> None:
    for i in range(of.size):
        df[of[i]] += 1


@kernel
def _named(
    text: Bytes,
    low: Int,
    size: Int,
    marks: Bytes,
    column: Int,
    rows: Numbers,
    slots: Hashes,
    names: Bytes,
    used: Numbers,
) -> np.int64:
    """The number of a term of a field, or of the text, by its name."""
    # It is spelt out where new names go; one that is known is written over by the next.
    to = used[BYTES]
    if column < BODY:
        for i in range(MARK):
            names[to + i] = marks[MARK * column + i]
        to += MARK
    for i in range(size):
        names[to + i] = text[low + i]
    begin = used[BYTES]
    size = to + size - begin
    first, second, value = spelling(names, begin, size, used[_SEED])
    return np.int64(
        _number(names, begin, size, np.int64(first), np.int64(second), value, rows, slots, names, used)
    )


@kernel
def _counted(
    low: Int, high: Int, body: bool, terms: NDArray[np.int32], until: Numbers, codes: Numbers, runs:
    Numbers, searched: Int, spelt: Bytes, spelt_ends: Numbers, marks: Bytes, known: Numbers, rows:
    Numbers, slots: Hashes, names: Bytes, used: Numbers, begin: Int, n: Int, of: Small, freqs: Small,
) -> tuple[Int, Int]:  # fmt: skip
    """Counts the words of a document's parts as postings from n on: each in its column, or, for `body`, those
    of the searched columns as one text. Gives their number and the new number of postings.
    """
    length = np.int64(0)
    for p in range(low, high):
        column = codes[p] & 7
        if body:
            if not (searched >> column) & 1:
                continue
            column = np.int64(BODY)
        for i in range(until[p - 1] if p > 0 else np.int64(0), until[p]):
            word = np.int64(terms[i])
            k, more = np.int64(0), np.int64(1)
            if word <= RUN:
                k = RUN - word + 1
                more = runs[k - 1]
            elif word < 0:
                continue
            length += more
            for j in range(k, k + more):
                if k > 0:
                    word = runs[j]
                at = np.uint64(8 * word + column)
                held = known[at]
                if held < 0:
                    place = spelt_ends[word - 1] if word > 0 else np.int64(0)
                    term = _named(
                        spelt, place, spelt_ends[word] - place, marks, column, rows, slots, names, used
                    )
                    held = term << 32
                elif held & 0xFFFFFFFF >= begin:
                    freqs[np.uint64(held & 0xFFFFFFFF)] += np.uint32(1)
                    continue
                known[at] = (held >> 32) << 32 | n
                of[n] = held >> 32
                freqs[n] = 1
                n += 1
    return length, n


@part
def _squares(freqs: Small, begin: Int, end: Int, counts: Numbers) -> float:
    """The sum of (1 + ln f)² over postings, by ascending frequency, as `scan` has it."""
    highest = np.int64(0)
    for i in range(begin, end):
        counts[freqs[i]] += 1
        highest = max(highest, np.int64(freqs[i]))
    squares = 0.0
    for frequency in range(1, highest + 1):
        if counts[frequency]:
            weight = 1.0 + math.log(float(frequency))
            squares += counts[frequency] * (weight * weight)
            counts[frequency] = 0
    return squares


@kernel
def gather(
    text: Bytes, places: Numbers, cut_firsts: Numbers, seconds: Numbers, hashes: Hashes, frequencies:
    Numbers, cut_until: Numbers, squares: Floats, which: Numbers, terms: NDArray[np.int32], until:
    Numbers, codes: Numbers, firsts: Numbers, runs: Numbers, own: Bytes, searched: Int, spelt: Bytes,
    spelt_ends: Numbers, longest: Int, marks: Bytes, known: Numbers, rows: Numbers, slots: Hashes, names:
    Bytes, of: Small, freqs: Small, begins: Numbers, norms: Floats, lengths: Numbers, used: Numbers,
    counts: Numbers, w: Int, documents: Int,
) -> Int:  # fmt: skip
    """The postings of documents, from the w-th on. Gives the first that was not done, for want of room.

    Long because three sources of postings are merged in one loop.

    Document w has two vectors of a `Cut`, and what the words say of which[w]. Its postings begin at
    begins[documents + w].
    """
    while w < which.size:
        record = which[w]
        low, high = firsts[record], firsts[record + 1]
        more = np.int64(0)
        for p in range(low, high):
            for i in range(until[p - 1] if p > 0 else np.int64(0), until[p]):
                more += runs[RUN - terms[i]] if terms[i] <= RUN else 1
        start = cut_until[2 * w - 1] if w > 0 else np.int64(0)
        middle, stop = cut_until[2 * w], cut_until[2 * w + 1]
        size = np.int64(0)
        for k in range(start, stop):
            size += places[k] & LONGEST
        used[_WORDS] = more
        used[_MORE] = stop - start + 2 * more + 1
        used[_MORE_BYTES] = size + 2 * more * (longest + MARK) + 32
        if (
            ROW * (used[TERMS] + used[_MORE]) > rows.size
            or used[POSTINGS] + used[_MORE] > of.size
            or used[BYTES] + used[_MORE_BYTES] > names.size
            or more >= counts.size
        ):
            return w
        begin = n = used[POSTINGS]
        begins[documents + w] = begin
        # The document's own terms come first: positions follow their order.
        n = _count(
            start, middle, text, places, cut_firsts, seconds, hashes, frequencies, rows, slots, names, used,
            begin, n, of, freqs, False,
        )  # fmt: skip
        total = squares[2 * w]
        if own[record]:
            length, n = _counted(
                low, high, True, terms, until, codes, runs, searched, spelt, spelt_ends, marks, known, rows,
                slots, names, used, begin, n, of, freqs,
            )  # fmt: skip
            lengths[documents + w] = length
            total = _squares(freqs, begin, n, counts)
        norms[documents + w] = math.sqrt(total)
        _, n = _counted(
            low, high, False, terms, until, codes, runs, searched, spelt, spelt_ends, marks, known, rows,
            slots, names, used, begin, n, of, freqs,
        )  # fmt: skip
        n = _count(
            middle, stop, text, places, cut_firsts, seconds, hashes, frequencies, rows, slots, names, used,
            begin, n, of, freqs, True,
        )  # fmt: skip
        used[POSTINGS] = n
        w += 1
    return w
