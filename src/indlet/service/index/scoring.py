"""Kernels that score: the formulas of `rank.models`, operation by operation, over posting lists.

Scores gather in one array over the documents of a segment, -1 where no query term was met; terms are taken in
canonical order, so each document's sum is formed by the same additions wherever it lies.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from indlet.service.index.codec import BLOCK, decode_block, read_varint
from indlet.service.index.compiled import kernel

BM25: Final = 0
VSM: Final = 1
DIRICHLET: Final = 2
JELINEK_MERCER: Final = 3
BOOLEAN: Final = 4

SMALL: Final = 32  # frequencies below have their logarithm taken once per query, not once per posting


@kernel
def accumulate(
    kind: Any, stream: Any, starts: Any, first: Any, second: Any, lengths: Any, table: Any, parameters: Any,
    sums: Any, touched: Any,
) -> Any:  # fmt: skip
    """Adds each term's contributions to `sums`; `touched` lists the documents met. Gives their number.

    starts[t] is where term t's list begins, or -1; first[t] and second[t] are the model's constants for it.
    """
    met = 0
    docs = np.empty(BLOCK, np.uint32)
    freqs = np.empty(BLOCK, np.uint32)
    parts = np.empty(BLOCK, np.float64)
    small = np.empty(SMALL, np.float64)
    for t in range(starts.size):
        if starts[t] < 0:
            continue
        a, b = first[t], second[t]
        df, at = read_varint(stream, starts[t])
        more, at = read_varint(stream, at)
        if df > BLOCK:
            at += 8 * ((df + BLOCK - 1) // BLOCK)
        if kind == VSM:
            for f in range(1, SMALL):
                small[f] = a * (1.0 + math.log(float(f)))
        elif kind == DIRICHLET:
            for f in range(1, SMALL):
                small[f] = a * math.log(1.0 + float(f) / b)
        before = np.int64(-1)
        for done in range(0, df, BLOCK):
            count = min(BLOCK, df - done)
            if df == 1:
                doc, at = read_varint(stream, at)
                docs[0] = doc
                freqs[0] = more + 1
            else:
                at = decode_block(stream, at, count, before, docs, freqs)
                before = np.int64(docs[count - 1])
            if kind == BM25:
                for i in range(count):
                    length = np.int64(lengths[docs[i]])
                    if length < table.size:
                        damping = table[length]
                    else:
                        damping = parameters[0] * (
                            1.0 - parameters[1] + parameters[1] * length / parameters[2]
                        )
                    tf = float(freqs[i])
                    parts[i] = a * tf / (tf + damping)
            elif kind == VSM:
                for i in range(count):
                    f = freqs[i]
                    parts[i] = small[f] if f < SMALL else a * (1.0 + math.log(float(f)))
            elif kind == DIRICHLET:
                for i in range(count):
                    f = freqs[i]
                    parts[i] = small[f] if f < SMALL else a * math.log(1.0 + float(f) / b)
            elif kind == JELINEK_MERCER:
                for i in range(count):
                    length = max(np.int64(lengths[docs[i]]), np.int64(1))
                    parts[i] = a * math.log(1.0 + float(freqs[i]) * b / length)
            else:
                for i in range(count):
                    parts[i] = 0.0
            for i in range(count):
                doc = docs[i]
                so_far = sums[doc]
                if so_far < 0.0:
                    touched[met] = doc
                    met += 1
                    sums[doc] = parts[i]
                else:
                    sums[doc] = so_far + parts[i]
    return met


@kernel
def _finish(
    kind: Any, total: Any, doc: Any, lengths: Any, norms: Any, table: Any, parameters: Any, outlook: Any
) -> Any:
    if kind == BM25:
        return total
    if kind == VSM:
        return total / ((norms[doc] or 1.0) * outlook[0])
    if kind == DIRICHLET:
        length = np.int64(lengths[doc])
        if length < table.size:
            discount = table[length]
        else:
            discount = math.log(parameters[0] / (length + parameters[0]))
        return total + outlook[0] * discount + outlook[1]
    if kind == JELINEK_MERCER:
        return total + outlook[1]
    return 1.0


@kernel
def finished(
    kind: Any,
    docs: Any,
    lengths: Any,
    norms: Any,
    table: Any,
    parameters: Any,
    outlook: Any,
    sums: Any,
    out: Any,
) -> None:
    """The scores of some documents; one that holds no query term has the sum 0."""
    for i in range(docs.size):
        total = max(sums[docs[i]], 0.0)
        out[i] = _finish(kind, total, docs[i], lengths, norms, table, parameters, outlook)


@kernel
def _worse(score: Any, tie: Any, other: Any, other_tie: Any) -> Any:
    return score < other or (score == other and tie > other_tie)


@kernel
def _sift(scores: Any, ties: Any, where: Any, size: Any) -> None:
    """Restores the heap (worst on top) after its top was replaced."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            return
        if child + 1 < size and _worse(scores[child + 1], ties[child + 1], scores[child], ties[child]):
            child += 1
        if not _worse(scores[child], ties[child], scores[i], ties[i]):
            return
        scores[i], scores[child] = scores[child], scores[i]
        ties[i], ties[child] = ties[child], ties[i]
        where[i], where[child] = where[child], where[i]
        i = child


@kernel
def best(
    kind: Any, touched: Any, lengths: Any, norms: Any, table: Any, parameters: Any, outlook: Any, gone: Any,
    ties: Any, base: Any, sums: Any, scores: Any, heap_ties: Any, where: Any, size: Any,
) -> Any:  # fmt: skip
    """Offers the touched documents to a heap of the best, and clears their sums.

    Equal scores rank by tie, lowest first. Gives the live documents met, and the heap's size.
    """
    live = 0
    for i in range(touched.size):
        doc = touched[i]
        total = sums[doc]
        sums[doc] = -1.0
        if gone.size and gone[doc]:
            continue
        live += 1
        score = _finish(kind, total, doc, lengths, norms, table, parameters, outlook)
        if size == scores.size:
            if size == 0 or score < scores[0] or _worse(score, ties[doc], scores[0], heap_ties[0]):
                continue
            scores[0], heap_ties[0], where[0] = score, ties[doc], base + np.int64(doc)
            _sift(scores, heap_ties, where, size)
        else:
            at = size
            size += 1
            tie = ties[doc]
            while at > 0 and _worse(score, tie, scores[(at - 1) >> 1], heap_ties[(at - 1) >> 1]):
                up = (at - 1) >> 1
                scores[at], heap_ties[at], where[at] = scores[up], heap_ties[up], where[up]
                at = up
            scores[at], heap_ties[at], where[at] = score, tie, base + np.int64(doc)
    return live, size


@kernel
def mark(stream: Any, starts: Any, mask: Any) -> None:
    """Flags the documents that hold any of the terms."""
    docs = np.empty(BLOCK, np.uint32)
    freqs = np.empty(BLOCK, np.uint32)
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
            at += 8 * ((df + BLOCK - 1) // BLOCK)
        before = np.int64(-1)
        for done in range(0, df, BLOCK):
            count = min(BLOCK, df - done)
            at = decode_block(stream, at, count, before, docs, freqs)
            before = np.int64(docs[count - 1])
            for i in range(count):
                mask[docs[i]] = True
