"""Kernels that score: the formulas of `rank.models`, operation by operation, over posting lists.

Scores gather in one array over the documents of a segment, -1 where no query term was met; terms are taken in
canonical order, so each document's sum is formed by the same additions wherever it lies.

Long because each model has a kernel of its own, and all share the parts that skip.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from indlet.kernels.codec import BLOCK, STEEP, decode_docs, decode_freqs, read_varint, word
from indlet.kernels.jit import kernel, part

BM25: Final = 0
VSM: Final = 1
DIRICHLET: Final = 2
JELINEK_MERCER: Final = 3
BOOLEAN: Final = 4

WINDOW: Final = 8192  # documents at a time: their sums stay in a near cache
SMALL: Final = 32  # frequencies below have their logarithm taken once per query, not once per posting


# A cursor over a list: the next byte, postings not yet decoded, place and count in the current block, the
# last
# document decoded; where the block's frequencies are, how wide, and whether they have been decoded.
_AT, _LEFT, _PLACE, _COUNT, _BEFORE, _FREQS, _WIDE, _READ = range(8)


@kernel
def _open(
    kind: Any, stream: Any, starts: Any, first: Any, second: Any, outlook: Any, state: Any, docs: Any,
    freqs: Any, rest: Any,
) -> None:  # fmt: skip
    """Puts a cursor before each list. rest[t] bounds the score of a document without the terms before t."""
    for t in range(starts.size):
        state[t, :] = 0
        rest[t] = 0.0
        if starts[t] < 0:
            continue
        df, at = read_varint(stream, starts[t])
        more, at = read_varint(stream, at)
        rest[t] = np.inf  # short lists are not worth a bound
        if df == 1:
            doc, at = read_varint(stream, at)
            docs[t * BLOCK] = doc
            freqs[t * BLOCK] = more + 1
            state[t, _COUNT] = 1
            state[t, _READ] = 1
            continue
        if df > BLOCK:
            peaks = word(stream, at)
            most = float(peaks & np.uint64(0xFFFFFFFF))
            steep = float(peaks >> np.uint64(32))
            if kind == BM25:
                rest[t] = first[t]
            elif kind == VSM:
                rest[t] = first[t] / outlook[0]
            elif kind == DIRICHLET:
                rest[t] = first[t] * math.log(1.0 + most / second[t])
            elif kind == JELINEK_MERCER and steep < 4294967295.0:
                rest[t] = first[t] * math.log(1.0 + second[t] * (steep / STEEP))
            at += 8 + 8 * ((df + BLOCK - 1) // BLOCK)
        state[t, _AT] = at
        state[t, _LEFT] = df
        state[t, _BEFORE] = -1
    for t in range(starts.size - 2, -1, -1):
        rest[t] += rest[t + 1]


@part
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
        # Without a branch: whether a document was met before cannot be foretold. One that was counted only
        # (see `_skim`) was met.
        touched[met] = place
        met += so_far == -1.0
        sums[place] = max(so_far, 0.0) + parts[i - low]
    return met


@part
def _skim(
    stream: Any, base: Any, freqs_at: Any, wide: Any, docs: Any, begin: Any, low: Any, high: Any, mark: Any,
    sums: Any, touched: Any, met: Any, picked: Any, picked_freqs: Any,
) -> Any:  # fmt: skip
    """Counts documents low to high of a block; picks those that have a sum already, with their frequencies.

    A document that is counted only has the sum `mark`.
    """
    found = 0
    for i in range(low, high):
        place = np.int64(docs[begin + i]) - base
        so_far = sums[place]
        touched[met] = place
        met += so_far == -1.0
        picked[found] = i
        found += so_far >= 0.0
        sums[place] = so_far if so_far >= 0.0 else mark
    mask = (np.uint64(1) << np.uint64(wide)) - np.uint64(1)
    for k in range(found):
        bit = freqs_at * 8 + picked[k] * wide
        picked_freqs[k] = np.int64((word(stream, bit >> 3) >> np.uint64(bit & 7)) & mask) + 1
        picked[k] = docs[begin + picked[k]]
    return met, found


@kernel
def _window(
    kind: Any, stream: Any, first: Any, second: Any, small: Any, state: Any, docs: Any, freqs: Any,
    lengths: Any, table: Any, parameters: Any, base: Any, limit: Any, essential: Any, parts: Any, picked: Any,
    picked_freqs: Any, sums: Any, touched: Any,
) -> Any:  # fmt: skip
    """Moves every cursor to document `limit`, adding up what it passes; gives the number of documents met.

    Terms from `essential` on cannot lift a document into the result alone: where it holds none of the terms
    before, it is counted, not scored. Boolean retrieval needs no more than the count of any.
    """
    met, none = np.int64(0), np.int64(0)  # plain 0 would be compiled apart
    mark = 0.0 if kind == BOOLEAN else -0.5
    for t in range(state.shape[0]):
        place, count = state[t, _PLACE], state[t, _COUNT]
        begin = t * BLOCK
        while True:
            if place == count:
                if state[t, _LEFT] == 0:
                    break
                count = min(state[t, _LEFT], np.int64(BLOCK))
                wide = np.int64(stream[state[t, _AT] + 1])
                at = decode_docs(stream, state[t, _AT], count, state[t, _BEFORE], docs, begin)
                state[t, _FREQS], state[t, _WIDE], state[t, _READ] = at, wide, 0
                state[t, _AT] = at + (count * wide + 7) // 8
                state[t, _BEFORE] = docs[begin + count - 1]
                state[t, _LEFT] -= count
                place = 0
            if docs[begin + count - 1] < limit:
                end = count
            else:
                end = place
                while docs[begin + end] < limit:
                    end += 1
            if t < essential or state[t, _READ] == 1:
                if state[t, _READ] == 0:
                    decode_freqs(stream, state[t, _FREQS], count, state[t, _WIDE], freqs, begin)
                    state[t, _READ] = 1
                met = _add(
                    kind, t, first, second, small, docs, freqs, begin + place, begin + end, lengths, table,
                    parameters, base, parts, sums, touched, met,
                )  # fmt: skip
            else:
                met, found = _skim(
                    stream, base, state[t, _FREQS], state[t, _WIDE], docs, begin, place, end, mark, sums,
                    touched, met, picked, picked_freqs,
                )  # fmt: skip
                if found > 0 and kind != BOOLEAN:
                    met = _add(
                        kind, t, first, second, small, picked, picked_freqs, none, found, lengths, table,
                        parameters, base, parts, sums, touched, met,
                    )  # fmt: skip
            place = end
            if place < count:
                break
        state[t, _PLACE], state[t, _COUNT] = place, count
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
    """The scores of the wanted documents, in ascending order; one without a query term has the sum 0."""
    state, rest = np.empty((starts.size, 8), np.int64), np.empty(starts.size)
    docs, freqs = np.empty(starts.size * BLOCK, np.uint32), np.empty(starts.size * BLOCK, np.uint32)
    picked, picked_freqs = np.empty(BLOCK + 1, np.uint32), np.empty(BLOCK + 1, np.uint32)
    small, parts = _logarithms(kind, first, second), np.empty(BLOCK)
    sums, touched = np.full(WINDOW, -1.0), np.empty(WINDOW + 1, np.int64)
    _open(kind, stream, starts, first, second, outlook, state, docs, freqs, rest)
    i = 0
    for base in range(0, lengths.size, WINDOW):
        met = _window(
            kind, stream, first, second, small, state, docs, freqs, lengths, table, parameters, base,
            base + WINDOW, starts.size, parts, picked, picked_freqs, sums, touched,
        )  # fmt: skip
        while i < wanted.size and wanted[i] < base + WINDOW:
            out[i] = max(sums[wanted[i] - base], 0.0)
            i += 1
        for k in range(met):
            sums[touched[k]] = -1.0
    _finish(kind, wanted, lengths, norms, table, parameters, outlook, out)


@part
def _worse(score: Any, tie: Any, id: Any, other: Any, other_tie: Any, other_id: Any) -> Any:
    """Whether one ranks below another: by score, then by tie, then by id, lowest first."""
    if score != other:
        return score < other
    return tie > other_tie or (tie == other_tie and id > other_id)


@kernel
def _sift(i: Any, scores: Any, ties: Any, ids: Any, where: Any, groups: Any, size: Any) -> None:
    """Restores the heap (worst on top) after what stood at i was replaced by something better."""
    while True:
        child = 2 * i + 1
        if child >= size:
            return
        other = child + 1
        if other < size and _worse(
            scores[other], ties[other], ids[other], scores[child], ties[child], ids[child]
        ):
            child = other
        if not _worse(scores[child], ties[child], ids[child], scores[i], ties[i], ids[i]):
            return
        scores[i], scores[child] = scores[child], scores[i]
        ties[i], ties[child] = ties[child], ties[i]
        ids[i], ids[child] = ids[child], ids[i]
        where[i], where[child] = where[child], where[i]
        groups[i], groups[child] = groups[child], groups[i]
        i = child


@kernel
def best(
    kind: Any, stream: Any, starts: Any, first: Any, second: Any, lengths: Any, norms: Any, table: Any,
    parameters: Any, outlook: Any, skipping: Any, hidden: Any, ties: Any, ids: Any, of: Any, seen: Any,
    number: Any, scores: Any, heap_ties: Any, heap_ids: Any, where: Any, groups: Any, size: Any,
) -> Any:  # fmt: skip
    """Offers the documents that are not hidden and hold any of the terms to a heap of the best, worst on top.

    Equal scores rank by tie, then by id, lowest first. Gives the number of those documents, and the heap's
    size. Once the heap is full, terms that together cannot reach its worst score are not `essential` any
    more.

    Of documents of one group (`of` tells it, 0 if a document is alone; empty if all are) the heap holds the
    best, and one is counted: `seen` flags the groups that were.
    """
    state, rest = np.empty((starts.size, 8), np.int64), np.empty(starts.size)
    docs, freqs = np.empty(starts.size * BLOCK, np.uint32), np.empty(starts.size * BLOCK, np.uint32)
    picked, picked_freqs = np.empty(BLOCK + 1, np.uint32), np.empty(BLOCK + 1, np.uint32)
    small, parts, finals = _logarithms(kind, first, second), np.empty(BLOCK), np.empty(WINDOW)
    sums, touched = np.full(WINDOW, -1.0), np.empty(WINDOW + 1, np.int64)
    _open(kind, stream, starts, first, second, outlook, state, docs, freqs, rest)
    essential = 0 if kind == BOOLEAN else starts.size
    live = 0
    for base in range(0, lengths.size, WINDOW):
        if skipping and size == scores.size and size > 0:
            while essential > 0:
                bound = rest[essential - 1] + outlook[1]
                if bound + 1e-9 * (abs(bound) + 1.0) >= scores[0]:  # room for rounding
                    break
                essential -= 1
        met = _window(
            kind, stream, first, second, small, state, docs, freqs, lengths, table, parameters, base,
            base + WINDOW, essential, parts, picked, picked_freqs, sums, touched,
        )  # fmt: skip
        found = 0
        for i in range(met):
            place = touched[i]
            total = sums[place]
            sums[place] = -1.0
            if hidden.size and hidden[base + place]:
                continue
            live += 1
            if of.size and of[base + place] > 0:
                live -= seen[of[base + place]]
                seen[of[base + place]] = 1
            touched[found] = base + place
            finals[found] = total
            found += total >= 0.0
        _finish(kind, touched[:found], lengths, norms, table, parameters, outlook, finals)
        for i in range(found):
            doc, score = touched[i], finals[i]
            if size == scores.size and (size == 0 or score < scores[0]):
                continue
            tie, id, group = ties[doc], np.int64(ids[doc]), np.int64(0)
            if size == scores.size and _worse(score, tie, id, scores[0], heap_ties[0], heap_ids[0]):
                continue
            at = size
            if of.size:
                group = of[doc]
                if group > 0:
                    at = 0
                    while at < size and groups[at] != group:
                        at += 1
            if at < size:  # one of its group is there
                if _worse(scores[at], heap_ties[at], heap_ids[at], score, tie, id):
                    scores[at], heap_ties[at], heap_ids[at] = score, tie, id
                    where[at] = (number << 32) + doc
                    _sift(at, scores, heap_ties, heap_ids, where, groups, size)
                continue
            if size == scores.size:
                at = 0
            else:
                size += 1
                while at > 0:
                    up = (at - 1) >> 1
                    if not _worse(score, tie, id, scores[up], heap_ties[up], heap_ids[up]):
                        break
                    scores[at], heap_ties[at], heap_ids[at] = scores[up], heap_ties[up], heap_ids[up]
                    where[at], groups[at] = where[up], groups[up]
                    at = up
            scores[at], heap_ties[at], heap_ids[at] = score, tie, id
            where[at], groups[at] = (number << 32) + doc, group
            if at == 0:
                _sift(at, scores, heap_ties, heap_ids, where, groups, size)
    return live, size


@kernel
def mark(stream: Any, starts: Any, mask: Any) -> None:
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
            wide = np.int64(stream[at + 1])
            at = decode_docs(stream, at, count, before, docs, np.int64(0)) + (count * wide + 7) // 8
            before = np.int64(docs[count - 1])
            for i in range(count):
                mask[docs[i]] = True
