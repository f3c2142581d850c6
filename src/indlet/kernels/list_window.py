"""Posting lists, a window of documents at a time: which blocks touch it, and its documents as bits."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from indlet.kernels.arrays import Bits, Bytes, Int, Numbers, Small
from indlet.kernels.codec import (
    BLOCK,
    SPARSE,
    WIDTH,
    decode_docs,
    frequency_of,
    lowest_bit,
    ones,
    read_varint,
    word,
)
from indlet.kernels.jit import kernel, part

WINDOW: Final = 16384  # documents at a time: their sums stay in a near cache
WORDS: Final = WINDOW // 64
SLOTS: Final = WINDOW // BLOCK + 2  # blocks that a window may touch
WIDTHS: Final = 33  # that a block's frequencies may have, in bits

# The state of a list. Its df; where its directory and its first block are; its blocks; the first block that
# touches the window, and the one after the last; the block in the first slot, and how many are held; of what
# is held, the window's part; its largest frequency; how wide the widest frequencies in the window are; its
# last document, if it has one block.
DF, _DIRECTORY, _FIRST, _BLOCKS, FROM, TO, _HELD, _COUNT, LOW, HIGH, MOST, WIDE, _END = range(13)
STATE: Final = 13

# Lists are held one after another in plain arrays, and functions take these one by one. `state` has STATE
# numbers for a list, `docs` its documents block by block, `freqs_at` and `ways` where frequencies of blocks
# are and how they are written, `bits` the documents in the window.


class PostingLists(NamedTuple):
    """Posting lists: a segment's stream, and where in it those of the query's terms begin (-1: nowhere)."""

    stream: Bytes
    starts: Numbers


@part
def _last(stream: Bytes, directory: Int, block: Int) -> Int:
    """The last document of a block, if there is a directory."""
    return np.int64(word(stream, directory + 8 * block) & np.uint64(0xFFFFFFFF))


@part
def _begin(stream: Bytes, directory: Int, first: Int, block: Int) -> Int:
    """The first byte of a block. Before the directory stand two numbers that mean nothing here."""
    ends = np.int64(word(stream, directory + 8 * (block - 1)) >> np.uint64(32))
    return first + ends * np.int64(block > 0)


@part
def _decode(
    stream: Bytes,
    state: Numbers,
    docs: Small,
    freqs_at: Numbers,
    ways: Numbers,
    t: Int,
    block: Int,
    slot: Int,
) -> None:
    """Puts a block's documents into a slot."""
    s, slot = t * STATE, t * SLOTS + slot
    at: Int = state[s + _FIRST]
    before: Int = np.int64(-1)
    if block > 0:
        at = _begin(stream, state[s + _DIRECTORY], at, block)
        before = _last(stream, state[s + _DIRECTORY], block - 1)
    count = min(np.int64(BLOCK), state[s + DF] - block * BLOCK)
    ways[slot] = stream[at + 1]
    freqs_at[slot] = decode_docs(stream, at, count, before, docs, slot * BLOCK)


@kernel
def open_lists(
    stream: Bytes, starts: Numbers, state: Numbers, docs: Small, freqs_at: Numbers, ways: Numbers
) -> None:
    """Finds out about each list; those of one block are decoded once and for all."""
    for t in range(starts.size):
        s, slot = t * STATE, t * SLOTS
        for i in range(STATE):
            state[s + i] = 0
        if starts[t] < 0:
            continue
        df, at = read_varint(stream, starts[t])
        more, at = read_varint(stream, at)
        state[s + DF], state[s + _BLOCKS] = df, (df + BLOCK - 1) // BLOCK
        if df == 1:
            doc, at = read_varint(stream, at)
            docs[slot * BLOCK] = doc
            state[s + MOST] = freqs_at[slot] = more + 1  # no place, but the frequency itself
            ways[slot] = -1
        elif df <= BLOCK:
            state[s + _FIRST] = at
            _decode(stream, state, docs, freqs_at, ways, t, np.int64(0), np.int64(0))
            state[s + MOST] = np.int64(1) << (ways[slot] & WIDTH)
        else:
            state[s + MOST] = np.int64(word(stream, at) & np.uint64(0xFFFFFFFF))
            state[s + _DIRECTORY] = at + 8
            state[s + _FIRST] = at + 8 + 8 * state[s + _BLOCKS]
            continue
        state[s + _COUNT], state[s + _END] = 1, docs[slot * BLOCK + df - 1]


@part
def look_ahead(stream: Bytes, state: Numbers, s: Int, base: Int, limit: Int) -> None:
    """Finds the blocks that touch the window, and how large frequencies are there; the state begins at s."""
    block, blocks, wide = state[s + FROM], state[s + _BLOCKS], np.int64(-1)
    directory, first = state[s + _DIRECTORY], state[s + _FIRST]
    if blocks == 1:
        if state[s + _END] >= base:
            block, wide = np.int64(0), np.int64(WIDTHS - 1)
        else:
            block = np.int64(1)
        state[s + FROM] = block
        block = np.int64(1)
    else:
        while block < blocks and _last(stream, directory, block) < base:
            block += 1
        state[s + FROM] = block
        last: Int = np.int64(-1)
        while block < blocks and last < limit - 1:
            wide = max(wide, np.int64(stream[_begin(stream, directory, first, block) + 1]) & WIDTH)
            last = _last(stream, directory, block)
            block += 1
    state[s + TO], state[s + WIDE] = block, wide


@part
def _seek(docs: Small, low: Int, high: Int, doc: Int) -> Int:
    """The first place from low on, before high, whose document is not before `doc`."""
    while low < high:
        middle = (low + high) >> 1
        if np.int64(docs[middle]) < doc:
            low = middle + 1
        else:
            high = middle
    return low


@part
def _set(bits: Bits, offset: np.uint64, place: np.uint64) -> None:
    bits[offset + (place >> np.uint64(6))] |= np.uint64(1) << (place & np.uint64(63))


@part
def fill(
    stream: Bytes, state: Numbers, docs: Small, freqs_at: Numbers, ways: Numbers, bits: Bits, t: Int,
    base: Int, limit: Int,
) -> None:  # fmt: skip
    """Decodes the blocks that touch the window, and sets the bits of its documents."""
    s, own = t * STATE, t * SLOTS * BLOCK
    offset = np.uint64(t * WORDS)
    for i in range(np.uint64((limit - base + 63) >> 6)):
        bits[offset + i] = np.uint64(0)
    first, count = state[s + FROM], state[s + TO] - state[s + FROM]
    state[s + LOW] = state[s + HIGH] = own
    if count == 0:
        return
    if first != state[s + _HELD] or count > state[s + _COUNT]:
        for slot in range(count):
            _decode(stream, state, docs, freqs_at, ways, t, first + slot, slot)
        state[s + _HELD], state[s + _COUNT] = first, count
    end = own + min(state[s + DF] - first * BLOCK, count * BLOCK)
    low = _seek(docs, own, min(end, own + BLOCK), base)
    high = _seek(docs, max(own + (count - 1) * BLOCK, low), end, limit)
    state[s + LOW], state[s + HIGH] = low, high
    # In four parts at once: neighbours are often of one word, and would wait for each other.
    quarter = np.uint64((high - low) >> 2)
    for i in range(np.uint64(low), np.uint64(low) + quarter):
        _set(bits, offset, np.uint64(docs[i]) - np.uint64(base))
        _set(bits, offset, np.uint64(docs[i + quarter]) - np.uint64(base))
        _set(bits, offset, np.uint64(docs[i + (quarter << np.uint64(1))]) - np.uint64(base))
        _set(bits, offset, np.uint64(docs[i + np.uint64(3) * quarter]) - np.uint64(base))
    for i in range(np.uint64(low) + (quarter << np.uint64(2)), np.uint64(high)):
        _set(bits, offset, np.uint64(docs[i]) - np.uint64(base))


@part
def frequency_at(stream: Bytes, freqs_at: Numbers, ways: Numbers, place: Int) -> Int:
    """The frequency of what is held at a place; not for a list of one document."""
    slot = np.uint64(place >> 7)
    frequency: Int = frequency_of(stream, freqs_at[slot], ways[slot], place & 127)
    return frequency


@kernel
def look_up_frequency(
    stream: Bytes, state: Numbers, docs: Small, freqs_at: Numbers, ways: Numbers, t: Int, doc: Int
) -> Int:
    """The frequency of a term in a document, looked up in a list that is not decoded; 0 if it has none."""
    s = t * STATE
    block, to = state[s + FROM], state[s + TO]
    if state[s + _BLOCKS] > 1:
        while block < to and _last(stream, state[s + _DIRECTORY], block) < doc:
            block += 1
        state[s + FROM] = block
    if block >= to:
        return np.int64(0)
    slot = block - state[s + _HELD]
    if slot < 0 or slot >= state[s + _COUNT]:
        slot = np.int64(0)
        _decode(stream, state, docs, freqs_at, ways, t, block, slot)
        state[s + _HELD], state[s + _COUNT] = block, 1
    low = (t * SLOTS + slot) * BLOCK
    end = low + min(np.int64(BLOCK), state[s + DF] - block * BLOCK)
    place = _seek(docs, low, end, doc)
    if place == end or np.int64(docs[place]) != doc:
        return np.int64(0)
    frequency: Int = state[s + MOST]  # if it has one document
    return frequency_at(stream, freqs_at, ways, place) if state[s + DF] > 1 else frequency


@kernel
def mark_repeated(
    stream: Bytes, state: Numbers, docs: Small, freqs_at: Numbers, ways: Numbers, t: Int, base: Int, out: Bits
) -> None:
    """Sets the bits of the documents of the window in which a term stands more than once."""
    low, high = state[t * STATE + LOW], state[t * STATE + HIGH]
    while low < high:
        slot = low >> 7
        begin, end = slot * BLOCK, min(high, (slot + 1) * BLOCK)
        at, way = freqs_at[slot], ways[slot]
        if way == 1 or (way > 0 and way & SPARSE):  # a bit for each
            for half in range(1 + np.int64(end - begin > 64)):  # beyond may be the end of the stream
                skip = np.uint64(max(low - begin - 64 * half, 0))
                left = np.uint64(0)
                if skip < np.uint64(64):
                    left = (word(stream, at + 8 * half) >> skip) << skip
                while left:
                    i = begin + 64 * half + np.int64(lowest_bit(left))
                    left &= left - np.uint64(1)
                    if i >= end:
                        break
                    _set(out, np.uint64(0), np.uint64(docs[i]) - np.uint64(base))
        elif way != 0:
            for i in range(low, end):
                frequency = at if way < 0 else frequency_of(stream, at, way, i - begin)
                if frequency > 1:
                    _set(out, np.uint64(0), np.uint64(docs[i]) - np.uint64(base))
        low = end


@part
def number_places(bits: Bits, state: Numbers, terms: Int, words: Int, places: Numbers) -> None:
    """For each word of a list's bits, the place of the first document that it tells of."""
    for t in range(terms):
        place = state[t * STATE + LOW]
        for i in range(np.uint64(t * WORDS), np.uint64(t * WORDS + words)):
            places[i] = place
            place += np.int64(ones(bits[i]))
