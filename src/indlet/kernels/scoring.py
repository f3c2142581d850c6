"""Kernels that score: the formulas of `service.rank`, operation by operation, over posting lists.

Terms are taken in canonical order, so each document's sum is formed by the same additions wherever it lies.
"""

from __future__ import annotations

import math
import struct
from typing import Final, NamedTuple

import numpy as np

from indlet.kernels.arrays import Bytes, Flags, Floats, Int, Numbers, Small
from indlet.kernels.codec import BLOCK, after_freqs, decode_block, decode_docs, read_varint, word
from indlet.kernels.interpreted import Unsigned
from indlet.kernels.jit import Intrinsic, Llvm, allocating_kernel, part

BM25: Final = 0
VSM: Final = 1
DIRICHLET: Final = 2
JELINEK_MERCER: Final = 3
BOOLEAN: Final = 4
BM25_PLUS: Final = 5
PL2: Final = 6

_LN_2: Final = math.log(2.0)
_LOG2_E: Final = math.log2(math.e)
_LOG2_2PI: Final = math.log2(2.0 * math.pi)


def _binary(typing_context: Llvm, value: float) -> Llvm:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    def generate(context: Llvm, builder: Llvm, signature: Llvm, arguments: Llvm) -> Llvm:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(types.float64), generate


# binary(value): the 64 bits of a number in IEEE 754.
binary: Llvm = Intrinsic(_binary, lambda value: Unsigned(struct.unpack("<Q", struct.pack("<d", value))[0]))


class Formula(NamedTuple):
    """A model and a query: two constants for each term, two numbers for all (`query_constants`), four parameters, and
    a table: by document length what depends on nothing else (a longer document's is worked out when it is
    met); for the vector space model, by frequency.
    """

    kind: int
    first: Floats
    second: Floats
    query_constants: Floats
    parameters: Floats
    table: Floats


# The parts below take numbers, not arrays: numba would count references to these, in the innermost loops.
# `tabled` is what the table has for the document's length, or the frequency.


@part
def beyond(kind: Int, p0: float, p1: float, p2: float, length: Int) -> float:
    """What the table would have past its end."""
    if kind == VSM:
        return 1.0 + math.log(length)
    if kind in (BM25, BM25_PLUS):
        return p0 * (1.0 - p1 + p1 * length / p2)
    if kind == DIRICHLET:
        return math.log(p0 / (length + p0))
    if kind == PL2:
        return math.log1p(p0 * p1 / max(length, 1))
    return 0.0


@part
def share(
    kind: Int, a: float, b: float, p0: float, p3: float, frequency: float, length: Int, tabled: float
) -> float:
    """What a document gets for a term with constants a and b, before `finish`."""
    if kind == BM25:
        return a * frequency / (frequency + tabled)
    if kind == BM25_PLUS:
        return a * (frequency * (p0 + 1.0) / (frequency + tabled) + p3)
    if kind == VSM:
        return a * tabled
    if kind == DIRICHLET:
        return a * math.log(1.0 + frequency / b)
    if kind == JELINEK_MERCER:
        return a * math.log(1.0 + frequency * b / max(length, 1))
    if kind == PL2:
        tfn = frequency * tabled / _LN_2
        chance = (
            tfn * math.log2(tfn / b)
            + (b + 1.0 / (12.0 * tfn) - tfn) * _LOG2_E
            + 0.5 * math.log2(2.0 * math.pi * tfn)
        )
        return a * chance / (tfn + 1.0)
    return 0.0


@part
def log2_above(value: float) -> float:
    """The binary logarithm of a normal number above 0, or at most 0.0003 more: by its exponent, and by a
    polynomial of its mantissa that is above the logarithm throughout.
    """
    bits = binary(value)
    exponent = np.int64(bits >> np.uint64(52)) - 1023
    x = float(np.int64(bits & np.uint64((1 << 52) - 1))) * 2.0**-52
    low = 0.00024 + x * (1.4368749 + x * (-0.6708827 + x * (0.3122695 - x * 0.0784407)))
    return float(exponent) + low


@part
def share_above(
    kind: Int, a: float, b: float, log2_b: float, frequency: float, length: Int, tabled: float
) -> float:
    """The same as `share`, or little more, without the time that logarithms take; for JELINEK_MERCER and PL2
    alone. Both grow with the logarithms.
    """
    if kind == JELINEK_MERCER:
        return a * log2_above(1.0 + frequency * b / max(length, 1)) * _LN_2
    tfn = frequency * tabled / _LN_2
    log2_tfn = log2_above(tfn)
    chance = (
        tfn * (log2_tfn - log2_b) + (b + 1.0 / (12.0 * tfn) - tfn) * _LOG2_E + 0.5 * (_LOG2_2PI + log2_tfn)
    )
    return a * chance / (tfn + 1.0)


@part
def finish(kind: Int, size: float, constant: float, total: float, tabled: float, norm: float) -> float:
    """A document's score, from the sum of its shares; size and constant are the query's query_constants."""
    if kind == VSM:
        return total / ((norm or 1.0) * size)
    if kind == DIRICHLET:
        return total + size * tabled + constant
    if kind == JELINEK_MERCER:
        return total + constant
    if kind == BOOLEAN:
        return 1.0
    return total


@part
def highest(
    kind: Int, a: float, b: float, log2_b: float, p0: float, p3: float, frequency: float, shortest: Int,
    by_shortest: float, longest: Int, by_longest: float,
) -> float:  # fmt: skip
    """An upper bound of the share of documents of a length from shortest to longest, in which the term stands
    at most so often; not below 0.

    All formulas grow with the frequency and fall with the length, except for PL2: of that, N(x) / (x + 1)
    with x = tfn, the derivative has the sign of N'(x) (x + 1) - N(x), which grows with x, for its own
    derivative is (x + 1) N''(x) = (x + 1) (x² - x/2 + 1/6) / (x³ ln 2) > 0. So it falls, then rises, and is
    highest at the least or the largest tfn.
    """
    if kind in (JELINEK_MERCER, PL2):
        most = share_above(kind, a, b, log2_b, frequency, shortest, by_shortest)
    else:
        most = share(kind, a, b, p0, p3, frequency, shortest, by_shortest)
    if kind == PL2:
        most = max(most, share_above(kind, a, b, log2_b, 1.0, longest, by_longest))
    return max(most, 0.0)


@allocating_kernel
def scored(
    formula: Formula, stream: Bytes, starts: Numbers, lengths: Small, norms: Floats, wanted: Numbers,
    out: Floats,
) -> None:  # fmt: skip
    """The scores of the wanted documents, in ascending order; one without a query term has the sum 0."""
    kind, first_of, second_of, query_constants, p, table = formula
    p0, p1, p2, p3 = p[0], p[1], p[2], p[3]
    docs, freqs = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
    for i in range(out.size):
        out[i] = 0.0
    for t in range(starts.size):
        if starts[t] < 0:
            continue
        df, at = read_varint(stream, starts[t])
        more, at = read_varint(stream, at)
        directory, i = at + 8, 0
        if df > BLOCK:
            at += 8 + 8 * ((df + BLOCK - 1) // BLOCK)
        first, before = at, np.int64(-1)
        for done in range(0, df, BLOCK):
            if i == wanted.size:
                break
            count = min(BLOCK, df - done)
            if df > BLOCK:
                entry = word(stream, directory)
                directory += 8
                if np.int64(entry & np.uint64(0xFFFFFFFF)) < wanted[i]:
                    before = np.int64(entry & np.uint64(0xFFFFFFFF))
                    at = first + np.int64(entry >> np.uint64(32))
                    continue
            if df == 1:
                docs[0], at = read_varint(stream, at)
                freqs[0] = more + 1
            else:
                at = decode_block(stream, at, count, before, docs, freqs, np.int64(0))
            before = np.int64(docs[count - 1])
            k = np.int64(0)
            while i < wanted.size and k < count:
                doc = np.int64(docs[k])
                if doc == wanted[i]:
                    length = np.int64(lengths[doc])
                    key = np.int64(freqs[k]) if kind == VSM else length
                    known = table[key] if key < table.size else beyond(kind, p0, p1, p2, key)
                    out[i] += share(kind, first_of[t], second_of[t], p0, p3, float(freqs[k]), length, known)
                k += doc <= wanted[i]
                i += doc >= wanted[i]
    for i in range(wanted.size):
        doc = wanted[i]
        key = np.int64(lengths[doc]) if kind != VSM else np.int64(1)
        known = table[key] if key < table.size else beyond(kind, p0, p1, p2, key)
        out[i] = finish(kind, query_constants[0], query_constants[1], out[i], known, norms[doc])


@allocating_kernel
def mark(stream: Bytes, starts: Numbers, mask: Flags) -> None:
    """Flags the documents that hold any of the terms."""
    docs = np.empty(BLOCK, np.uint32)
    for t in range(starts.size):
        if starts[t] < 0:
            continue
        df, at = read_varint(stream, starts[t])
        _, at = read_varint(stream, at)
        if df == 1:
            doc, at = read_varint(stream, at)
            mask[doc] = True
            continue
        if df > BLOCK:
            at += 8 + 8 * ((df + BLOCK - 1) // BLOCK)
        before = np.int64(-1)
        for done in range(0, df, BLOCK):
            count = min(BLOCK, df - done)
            how = np.int64(stream[at + 1])
            at = after_freqs(stream, decode_docs(stream, at, count, before, docs, np.int64(0)), count, how)
            before = np.int64(docs[count - 1])
            for i in range(count):
                mask[docs[i]] = True
