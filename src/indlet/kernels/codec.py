"""How a posting list becomes bytes and comes back.

A term's entry in the stream::

    varint df, varint cf - df
    df == 1:        varint document                           (its frequency is cf)
    df > BLOCK:     uint32 largest frequency, uint32 largest frequency/length in units of 2^-24, rounded up;
                    for each block: uint32 last document, uint32 end of its bytes counted from the first block
    each block:     byte w, byte v, then gaps of w bits, then frequencies, from the low bit up

Frequencies are numbers of v bits, less one. Where that is shorter (v has SPARSE set) they are 16 bytes, in
which a bit is set for each document with more than one, and then, for these alone, numbers less two: of as
many bits as the lowest six of v tell, or one bit less if LESS is set. Segments of the first version have none
of that kind. Either way the lowest six bits of v are the width of the largest frequency less one.

A gap is the difference to the document before, less one; the first counts from -1. The stream ends in eight
zero bytes, so that a value can be read as one unaligned word.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from indlet.kernels.arrays import Bytes, Flags, Int, Numbers, Places, Small
from indlet.kernels.interpreted import Array, Unsigned
from indlet.kernels.jit import Intrinsic, Llvm, allocating_kernel, kernel, part

BLOCK: Final = 128
PADDING: Final = 8
STEEP: Final = 1 << 24
SPARSE: Final = 0x80
LESS: Final = 0x40
WIDTH: Final = 0x3F


def _word(typing_context: Llvm, array: Llvm, at: Int) -> Llvm:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    def generate(context: Llvm, builder: Llvm, signature: Llvm, arguments: Llvm) -> Llvm:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.gep(data, [arguments[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(array, types.int64), generate


def _word_checked(array: Bytes, at: Int) -> np.uint64:
    if at < 0:
        raise IndexError("a place before an array")
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(array[at + i]) << np.uint64(8 * i)
    return value


# word(array, at): the eight bytes from `at` on as one little-endian integer, aligned or not.
word: Llvm = Intrinsic(_word, Array.word, _word_checked)


def _ones(typing_context: Llvm, value: Int) -> Llvm:
    from numba import types

    def generate(context: Llvm, builder: Llvm, signature: Llvm, arguments: Llvm) -> Llvm:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _lowest_bit(typing_context: Llvm, value: Int) -> Llvm:
    from llvmlite import ir
    from numba import types

    def generate(context: Llvm, builder: Llvm, signature: Llvm, arguments: Llvm) -> Llvm:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


# ones(value): how many bits of a 64-bit number are set. lowest_bit(value): the number of the lowest one.
ones: Llvm = Intrinsic(_ones, lambda value: Unsigned(value.bit_count()))
lowest_bit: Llvm = Intrinsic(_lowest_bit, lambda value: Unsigned((value & -value).bit_length() - 1))


@part
def read_varint(stream: Bytes, at: Int) -> tuple[Int, Int]:
    """A LEB128 number and the place after it."""
    value = np.int64(0)
    shift = 0
    while True:
        byte = np.int64(stream[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


@kernel
def _write_varint(out: Bytes, at: Int, value: Int) -> Int:
    while value > 0x7F:
        out[at] = value & 0x7F | 0x80
        at += 1
        value >>= 7
    out[at] = value
    return at + 1


@kernel
def _write32(out: Bytes, at: Int, value: Int) -> None:
    for i in range(4):
        out[at + i] = (value >> (8 * i)) & 0xFF


@kernel
def _bits(value: Int) -> Int:
    width = np.int64(0)
    while value > 0:
        value >>= 1
        width += 1
    return width


@kernel
def _pack(out: Bytes, at: Int, values: Small, first: Int, count: Int, width: Int) -> Int:
    """Writes `count` values of `width` bits at byte `at`; gives the byte after them."""
    held = np.uint64(0)
    filled: Int = np.int64(0)
    for i in range(first, first + count):
        held |= np.uint64(values[i]) << np.uint64(filled)
        filled += width
        while filled >= 8:
            out[at] = held & np.uint64(0xFF)
            at += 1
            held >>= np.uint64(8)
            filled -= 8
    if filled > 0:
        out[at] = held & np.uint64(0xFF)
        at += 1
    return at


@kernel
def _pack_sparse(out: Bytes, at: Int, values: Small, first: Int, count: Int, width: Int) -> Int:
    """Writes 16 bytes that tell which values are above 0, then these, less one; they are overwritten."""
    for i in range(16):
        out[at + i] = 0
    to = first
    for i in range(count):
        value = values[first + i]
        if value > 0:
            out[at + (i >> 3)] |= 1 << (i & 7)
            values[to] = value - 1
            to += 1
    return _pack(out, at + 16, values, first, to - first, width)


@part
def decode_docs(stream: Bytes, at: Int, count: Int, before: Int, docs: Small, to: Int) -> Int:
    """Fills `docs` from `to` on with a block that starts at byte `at`; gives the byte where its frequencies
    are.
    """
    width = np.int64(stream[at])
    bit, wide = (at + 2) * 8, np.uint64(width)
    mask = (np.uint64(1) << wide) - np.uint64(1)
    doc = np.uint64(before)
    # Unsigned numbers: an index that might be negative costs a comparison.
    fours = count & ~3 if width <= 14 else np.int64(0)
    for i in range(np.uint64(to), np.uint64(to + fours), np.uint64(4)):
        left = word(stream, bit >> 3) >> np.uint64(bit & 7)  # has four, wherever it begins
        bit += 4 * width
        for k in range(4):
            doc += (left & mask) + np.uint64(1)
            docs[i + np.uint64(k)] = doc
            left >>= wide
    for i in range(np.uint64(to + fours), np.uint64(to + count)):
        doc += ((word(stream, bit >> 3) >> np.uint64(bit & 7)) & mask) + np.uint64(1)
        docs[i] = doc
        bit += width
    return at + 2 + (count * width + 7) // 8


@part
def _value(stream: Bytes, bit: Int, mask: np.uint64) -> np.uint64:
    value: np.uint64 = (word(stream, bit >> 3) >> np.uint64(bit & 7)) & mask
    return value


@part
def decode_freqs(stream: Bytes, at: Int, count: Int, how: Int, freqs: Small, to: Int) -> None:
    """Fills `freqs` from `to` on with the frequencies at byte `at`, written as the block's `how` tells."""
    wide, bit = how, at * 8
    if how & SPARSE:
        wide, bit = (how & WIDTH) - ((how >> 6) & 1), bit + 128
    mask = (np.uint64(1) << np.uint64(wide)) - np.uint64(1)
    if not how & SPARSE:
        for i in range(np.uint64(to), np.uint64(to + count)):
            freqs[i] = _value(stream, bit, mask) + np.uint64(1)
            bit += wide
        return
    for i in range(np.uint64(to), np.uint64(to + count)):
        freqs[i] = 1
    for half in range(2):
        left = word(stream, at + 8 * half)
        while left:
            freqs[np.uint64(to + 64 * half) + lowest_bit(left)] = _value(stream, bit, mask) + np.uint64(2)
            left &= left - np.uint64(1)
            bit += wide


@part
def frequency_of(stream: Bytes, at: Int, how: Int, i: Int) -> Int:
    """The frequency of the i-th document of a block, whose frequencies are at byte `at`."""
    wide, bit, least = how, at * 8, np.int64(1)
    if how & SPARSE:
        half, below = i >> 6, (np.uint64(1) << np.uint64(i & 63)) - np.uint64(1)
        own = word(stream, at + 8 * half)
        if not own & (below + np.uint64(1)):
            return np.int64(1)
        i = np.int64(ones(own & below)) + np.int64(ones(word(stream, at))) * half
        wide, bit, least = (how & WIDTH) - ((how >> 6) & 1), bit + 128, np.int64(2)
    mask = (np.uint64(1) << np.uint64(wide)) - np.uint64(1)
    return np.int64(_value(stream, bit + i * wide, mask)) + least


@part
def after_freqs(stream: Bytes, at: Int, count: Int, how: Int) -> Int:
    """The byte after a block's frequencies."""
    if how & SPARSE:
        count = np.int64(ones(word(stream, at))) + np.int64(ones(word(stream, at + 8)))
        return at + 16 + (count * ((how & WIDTH) - ((how >> 6) & 1)) + 7) // 8
    return at + (count * how + 7) // 8


@kernel
def decode_block(stream: Bytes, at: Int, count: Int, before: Int, docs: Small, freqs: Small, to: Int) -> Int:
    """Fills `docs` and `freqs` from `to` on with a block at byte `at`; gives the byte after it."""
    how = np.int64(stream[at + 1])
    at = decode_docs(stream, at, count, before, docs, to)
    decode_freqs(stream, at, count, how, freqs, to)
    return after_freqs(stream, at, count, how)


@kernel
def decode(stream: Bytes, at: Int, docs: Small, freqs: Small, to: Int) -> Int:
    """Fills `docs` and `freqs` from `to` on, where they have room, with a whole list; gives its df."""
    df, at = read_varint(stream, at)
    more, at = read_varint(stream, at)
    if df == 1:
        docs[to], at = read_varint(stream, at)
        freqs[to] = more + 1
        return df
    if df > BLOCK:
        at += 8 + 8 * ((df + BLOCK - 1) // BLOCK)
    before = np.int64(-1)
    for done in range(0, df, BLOCK):
        count = min(BLOCK, df - done)
        at = decode_block(stream, at, count, before, docs, freqs, to + done)
        before = np.int64(docs[to + done + count - 1])
    return df


@kernel
def room(starts: Places) -> Int:
    """An upper bound for the bytes of the lists that `encode` would write for these posting counts."""
    total = 0
    for i in range(starts.size - 1):
        df = starts[i + 1] - starts[i]
        total += 32 + df * 8 + 10 * ((df + BLOCK - 1) // BLOCK)
    return total


@kernel
def encode(docs: Small, freqs: Small, starts: Places, lengths: Small, out: Bytes, ends: Numbers) -> Int:
    """Writes the lists docs[starts[t]:starts[t+1]] into `out`, one after another; list t ends at ends[t].

    Lists are in ascending order of documents and not empty. `docs` and `freqs` are overwritten.
    """
    at: Int = np.int64(0)
    for t in range(starts.size - 1):
        low, high = starts[t], starts[t + 1]
        df = high - low
        cf = np.int64(0)
        for i in range(low, high):
            cf += freqs[i]
        at = _write_varint(out, at, df)
        at = _write_varint(out, at, cf - df)
        if df == 1:
            at = _write_varint(out, at, np.int64(docs[low]))
            ends[t] = at
            continue
        directory = at
        if df > BLOCK:
            most, steep = np.int64(0), 0.0
            for i in range(low, high):
                most = max(most, np.int64(freqs[i]))
                steep = max(steep, float(freqs[i]) / max(np.int64(lengths[docs[i]]), np.int64(1)))
            _write32(out, at, most)
            _write32(out, at + 4, np.int64(min(math.ceil(steep * STEEP) + 1, 0xFFFFFFFF)))
            directory += 8
            at += 8 + 8 * ((df + BLOCK - 1) // BLOCK)
        first = at
        before = np.int64(-1)
        for begin in range(low, high, BLOCK):
            count = min(BLOCK, high - begin)
            gaps, most, several = np.int64(0), np.int64(0), np.int64(0)
            for i in range(begin, begin + count):
                doc = np.int64(docs[i])
                docs[i] = doc - before - 1
                gaps |= doc - before - 1
                before = doc
                freqs[i] -= 1
                most = max(most, np.int64(freqs[i]))
                several += freqs[i] > 0
            width, wide = _bits(gaps), _bits(most)
            inner = _bits(most - 1)
            out[at] = width
            out[at + 1] = wide
            head, at = at + 1, _pack(out, at + 2, docs, begin, count, width)
            if 16 + (several * inner + 7) // 8 < (count * wide + 7) // 8:
                out[head] = SPARSE | wide | (LESS if inner < wide else 0)
                at = _pack_sparse(out, at, freqs, begin, count, inner)
            else:
                at = _pack(out, at, freqs, begin, count, wide)
            if df > BLOCK:
                _write32(out, directory, before)
                _write32(out, directory + 4, at - first)
                directory += 8
        ends[t] = at
    return at


@kernel
def headers(stream: Bytes, starts: Places, df: Numbers, cf: Numbers) -> None:
    """Document and collection frequency of each term, as encoded."""
    for t in range(starts.size):
        count, at = read_varint(stream, np.int64(starts[t]))
        more, at = read_varint(stream, at)
        df[t] = count
        cf[t] = count + more


@allocating_kernel
def subtract(stream: Bytes, starts: Places, gone: Flags, ahead: Numbers, df: Numbers, cf: Numbers) -> None:
    """Adds to `df` and `cf` what the documents flagged in `gone` hold of each term.

    `ahead[d]` counts the flags before document d: a block without any is not decoded.
    """
    docs = np.empty(BLOCK, np.uint32)
    freqs = np.empty(BLOCK, np.uint32)
    for t in range(starts.size):
        count, at = read_varint(stream, np.int64(starts[t]))
        more, at = read_varint(stream, at)
        if count == 1:
            doc, at = read_varint(stream, at)
            if gone[doc]:
                df[t] += 1
                cf[t] += 1 + more
            continue
        blocks = (count + BLOCK - 1) // BLOCK
        directory = at + 8
        first = directory + 8 * blocks if count > BLOCK else at
        before = np.int64(-1)
        begin = first
        for b in range(blocks):
            size = min(BLOCK, count - b * BLOCK)
            if count > BLOCK:
                entry = word(stream, directory + 8 * b)
                last = np.int64(entry & np.uint64(0xFFFFFFFF))
                end = first + np.int64(entry >> np.uint64(32))
                if ahead[last + 1] == ahead[before + 1]:
                    before, begin = last, end
                    continue
            begin = decode_block(stream, begin, size, before, docs, freqs, np.int64(0))
            for i in range(size):
                if gone[docs[i]]:
                    df[t] += 1
                    cf[t] += np.int64(freqs[i])
            before = np.int64(docs[size - 1])
