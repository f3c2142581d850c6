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

WINDOW: Final = 8192  # documents at a time: their sums stay in a near cache
SMALL: Final = 32  # frequencies below have their logarithm taken once per query, not once per posting


_AT, _LEFT, _PLACE, _COUNT, _BEFORE = range(5)


@kernel
def _open(stream: Any, starts: Any, state: Any, docs: Any, freqs: Any) -> None:
    """Puts a cursor before each list: next byte, postings left, place and count in its block, last document."""
    for t in range(starts.size):
        cursor = state[t]
        cursor[:] = 0
        if starts[t] < 0:
            continue
        df, at = read_varint(stream, starts[t])
        more, at = read_varint(stream, at)
        if df == 1:
            doc, at = read_varint(stream, at)
            docs[t * BLOCK] = doc
            freqs[t * BLOCK] = more + 1
            cursor[_COUNT] = 1
            continue
        if df > BLOCK:
            at += 8 * ((df + BLOCK - 1) // BLOCK)
        cursor[_AT] = at
        cursor[_LEFT] = df
        cursor[_BEFORE] = -1


@kernel
def _add(
    kind: Any, t: Any, first: Any, second: Any, small: Any, docs: Any, freqs: Any, low: Any, high: Any,
    lengths: Any, table: Any, parameters: Any, base: Any, parts: Any, sums: Any, touched: Any, met: Any,
) -> Any:  # fmt: skip
    """Adds the contributions of postings low to high of a block to the window's sums."""
    a, b = first[t], second[t]
    if kind == BM25:
        for i in range(low, high):
            length = np.int64(lengths[docs[i]])
            if length < table.size:
                damping = table[length]
            else:
                damping = parameters[0] * (1.0 - parameters[1] + parameters[1] * length / parameters[2])
            tf = float(freqs[i])
            parts[i - low] = a * tf / (tf + damping)
    elif kind == VSM:
        for i in range(low, high):
            f = freqs[i]
            parts[i - low] = small[t, f] if f < SMALL else a * (1.0 + math.log(float(f)))
    elif kind == DIRICHLET:
        for i in range(low, high):
            f = freqs[i]
            parts[i - low] = small[t, f] if f < SMALL else a * math.log(1.0 + float(f) / b)
    elif kind == JELINEK_MERCER:
        for i in range(low, high):
            length = max(np.int64(lengths[docs[i]]), np.int64(1))
            parts[i - low] = a * math.log(1.0 + float(freqs[i]) * b / length)
    else:
        parts[:] = 0.0
    for i in range(low, high):
        place = np.int64(docs[i]) - base
        so_far = sums[place]
        # Without a branch: whether a document was met before cannot be foretold.
        touched[met] = place
        met += so_far < 0.0
        sums[place] = max(so_far, 0.0) + parts[i - low]
    return met


@kernel
def _window(
    kind: Any, stream: Any, first: Any, second: Any, small: Any, state: Any, docs: Any, freqs: Any, lengths: Any,
    table: Any, parameters: Any, base: Any, limit: Any, parts: Any, sums: Any, touched: Any,
) -> Any:  # fmt: skip
    """Moves every cursor to document `limit`, adding up what it passes; gives the number of documents
    touched.
    """
    met = 0
    for t in range(state.shape[0]):
        at, left, place, count = state[t, _AT], state[t, _LEFT], state[t, _PLACE], state[t, _COUNT]
        begin = t * BLOCK
        while True:
            if place == count:
                if left == 0:
                    break
                count = min(left, np.int64(BLOCK))
                at = decode_block(stream, at, count, state[t, _BEFORE], docs, freqs, begin)
                state[t, _BEFORE] = docs[begin + count - 1]
                left -= count
                place = 0
            if docs[begin + count - 1] < limit:
                end = count
            else:
                end = place
                while docs[begin + end] < limit:
                    end += 1
            met = _add(
                kind, t, first, second, small, docs, freqs, begin + place, begin + end, lengths, table, parameters,
                base, parts, sums, touched, met,
            )  # fmt: skip
            place = end
            if place < count:
                break
        state[t, _AT], state[t, _LEFT], state[t, _PLACE], state[t, _COUNT] = at, left, place, count
    return met


@kernel
def _logarithms(kind: Any, first: Any, second: Any) -> Any:
    """For each term its contribution by small frequencies, where that needs nothing but the frequency."""
    small = np.empty((first.size, SMALL), np.float64)
    for t in range(first.size):
        for f in range(1, SMALL):
            if kind == VSM:
                small[t, f] = first[t] * (1.0 + math.log(float(f)))
            elif kind == DIRICHLET:
                small[t, f] = first[t] * math.log(1.0 + float(f) / second[t])
    return small


@kernel
def _finish(
    kind: Any, docs: Any, lengths: Any, norms: Any, table: Any, parameters: Any, outlook: Any, scores: Any
) -> None:
    """Turns the documents' sums into scores, in place."""
    if kind == VSM:
        for i in range(docs.size):
            scores[i] = scores[i] / ((norms[docs[i]] or 1.0) * outlook[0])
    elif kind == DIRICHLET:
        for i in range(docs.size):
            length = np.int64(lengths[docs[i]])
            if length < table.size:
                discount = table[length]
            else:
                discount = math.log(parameters[0] / (length + parameters[0]))
            scores[i] = scores[i] + outlook[0] * discount + outlook[1]
    elif kind == JELINEK_MERCER:
        for i in range(docs.size):
            scores[i] = scores[i] + outlook[1]
    elif kind == BOOLEAN:
        for i in range(docs.size):
            scores[i] = 1.0


@kernel
def scored(
    kind: Any, stream: Any, starts: Any, first: Any, second: Any, lengths: Any, norms: Any, table: Any,
    parameters: Any, outlook: Any, wanted: Any, out: Any,
) -> None:  # fmt: skip
    """The scores of the wanted documents, which are in ascending order; one without a query term has the sum
    0.
    """
    state = np.empty((starts.size, 5), np.int64)
    docs, freqs = np.empty(starts.size * BLOCK, np.uint32), np.empty(starts.size * BLOCK, np.uint32)
    small, parts = _logarithms(kind, first, second), np.empty(BLOCK, np.float64)
    sums, touched = np.full(WINDOW, -1.0), np.empty(WINDOW + 1, np.int64)
    _open(stream, starts, state, docs, freqs)
    i = 0
    for base in range(0, lengths.size, WINDOW):
        met = _window(
            kind, stream, first, second, small, state, docs, freqs, lengths, table, parameters, base, base + WINDOW,
            parts, sums, touched,
        )  # fmt: skip
        while i < wanted.size and wanted[i] < base + WINDOW:
            out[i] = max(sums[wanted[i] - base], 0.0)
            i += 1
        for k in range(met):
            sums[touched[k]] = -1.0
    _finish(kind, wanted, lengths, norms, table, parameters, outlook, out)


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
    kind: Any, stream: Any, starts: Any, first: Any, second: Any, lengths: Any, norms: Any, table: Any,
    parameters: Any, outlook: Any, gone: Any, ties: Any, number: Any, scores: Any, heap_ties: Any, where: Any,
    size: Any,
) -> Any:  # fmt: skip
    """Offers the live documents that hold any of the terms to a heap of the best, worst on top.

    Equal scores rank by tie, lowest first. Gives the number of those documents, and the heap's size.
    """
    state = np.empty((starts.size, 5), np.int64)
    docs, freqs = np.empty(starts.size * BLOCK, np.uint32), np.empty(starts.size * BLOCK, np.uint32)
    small, parts = _logarithms(kind, first, second), np.empty(BLOCK, np.float64)
    sums, touched = np.full(WINDOW, -1.0), np.empty(WINDOW + 1, np.int64)
    finals = np.empty(WINDOW, np.float64)
    _open(stream, starts, state, docs, freqs)
    live = 0
    for base in range(0, lengths.size, WINDOW):
        met = _window(
            kind, stream, first, second, small, state, docs, freqs, lengths, table, parameters, base, base + WINDOW,
            parts, sums, touched,
        )  # fmt: skip
        for i in range(met):
            finals[i] = sums[touched[i]]
            sums[touched[i]] = -1.0
            touched[i] += base
        _finish(kind, touched[:met], lengths, norms, table, parameters, outlook, finals)
        for i in range(met):
            doc = touched[i]
            if gone.size and gone[doc]:
                continue
            live += 1
            score = finals[i]
            if size == scores.size:
                if size == 0 or score < scores[0] or _worse(score, ties[doc], scores[0], heap_ties[0]):
                    continue
                scores[0], heap_ties[0], where[0] = score, ties[doc], (number << 32) + doc
                _sift(scores, heap_ties, where, size)
            else:
                at = size
                size += 1
                tie = ties[doc]
                while at > 0 and _worse(score, tie, scores[(at - 1) >> 1], heap_ties[(at - 1) >> 1]):
                    up = (at - 1) >> 1
                    scores[at], heap_ties[at], where[at] = scores[up], heap_ties[up], where[up]
                    at = up
                scores[at], heap_ties[at], where[at] = score, tie, (number << 32) + doc
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
            at = decode_block(stream, at, count, before, docs, freqs, 0)
            before = np.int64(docs[count - 1])
            for i in range(count):
                mask[docs[i]] = True
