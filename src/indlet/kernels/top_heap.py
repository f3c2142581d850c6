"""The best so far: a heap, worst on top."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indlet.kernels.arrays import Floats, Hashes, Int, Numbers
from indlet.kernels.jit import kernel, part


class Heap(NamedTuple):
    """The best so far, worst on top: score, tie, id, date, group."""

    scores: Floats
    ties: Hashes
    ids: Numbers
    dates: Numbers
    groups: Numbers


@part
def _worse(score: float, tie: Int, id: Int, other: float, other_tie: Int, other_id: Int) -> bool:
    """Whether one ranks below another: by score, then by tie, then by id, lowest first."""
    if score != other:
        return score < other
    return bool(tie > other_tie or (tie == other_tie and id > other_id))


@kernel
def _sift(
    i: Int, scores: Floats, ties: Hashes, ids: Numbers, dates: Numbers, groups: Numbers, size: Int
) -> None:
    """Restores the heap after what stood at i was replaced by something better."""
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
        dates[i], dates[child] = dates[child], dates[i]
        groups[i], groups[child] = groups[child], groups[i]
        i = child


@kernel
def put_in_order(heap: Heap, size: Int) -> None:
    """Puts the best first; a heap no more."""
    scores, ties, ids, dates, groups = heap
    for last in range(size - 1, 0, -1):
        scores[0], scores[last] = scores[last], scores[0]
        ties[0], ties[last] = ties[last], ties[0]
        ids[0], ids[last] = ids[last], ids[0]
        dates[0], dates[last] = dates[last], dates[0]
        groups[0], groups[last] = groups[last], groups[0]
        _sift(np.int64(0), scores, ties, ids, dates, groups, np.int64(last))


@kernel
def offer(
    scores: Floats, ties: Hashes, ids: Numbers, dates: Numbers, groups: Numbers, size: Int, score: float,
    tie: Int, id: Int, date: Int, group: Int,
) -> Int:  # fmt: skip
    """Takes a document into the heap if it is better than the worst, or than the one of its group that is
    there; gives the heap's size.
    """
    full = size == scores.size
    if full and (size == 0 or _worse(score, tie, id, scores[0], ties[0], ids[0])):
        return size
    at = size
    if group > 0:
        at = np.int64(0)
        while at < size and groups[at] != group:
            at += 1
    if at < size:  # one of its group is there
        if _worse(scores[at], ties[at], ids[at], score, tie, id):
            scores[at], ties[at], ids[at], dates[at] = score, tie, id, date
            _sift(at, scores, ties, ids, dates, groups, size)
        return size
    if full:
        at = np.int64(0)
    else:
        size += 1
        while at > 0:
            up = (at - 1) >> 1
            if not _worse(score, tie, id, scores[up], ties[up], ids[up]):
                break
            scores[at], ties[at], ids[at] = scores[up], ties[up], ids[up]
            dates[at], groups[at] = dates[up], groups[up]
            at = up
    scores[at], ties[at], ids[at], dates[at], groups[at] = score, tie, id, date, group
    if at == 0:
        _sift(at, scores, ties, ids, dates, groups, size)
    return size
