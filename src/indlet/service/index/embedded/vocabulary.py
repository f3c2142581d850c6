"""The union of several segments' terms, piece by piece in the order of bytes: a large vocabulary costs no
more memory than a small one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from indlet.kernels import merge as k
from indlet.kernels import term_hash
from indlet.kernels.codec import headers
from indlet.service.index.embedded.array_file import Array
from indlet.service.index.embedded.segment import Segment

PIECE: Final = 1 << 14  # terms at a time, those of all segments counted


class SortedWords:
    """Terms that still have documents, in order.

    `count` is their number; `blob` and `ends` are their names. Each of the entries is such a term as one
    segment has it: `owner` is the segment, `term` its number there, `group` its number here, `df` counts its
    documents that live, `listed` all that its list holds.
    """

    def __init__(self, segments: Sequence[Segment], lows: Sequence[int], highs: Sequence[int]) -> None:
        texts, begins, sizes, owners, terms, dfs, lists = [], [], [], [], [], [], []
        shift = 0
        for number, (segment, low, high) in enumerate(zip(segments, lows, highs, strict=True)):
            df, listed = _counted(segment, low, high)
            live = np.flatnonzero(df)
            bounds = segment.arrays["bounds"][low : high + 1].astype(np.int64)
            text = segment.arrays["names"][int(bounds[0]) : int(bounds[-1])]
            texts.append(text)
            begins.append(bounds[live] - bounds[0] + shift)
            sizes.append(bounds[live + 1] - bounds[live])
            owners.append(np.full(live.size, number, np.int64))
            terms.append(live + low)
            dfs.append(df[live])
            lists.append(listed[live])
            shift += text.size
        names, text, size = np.concatenate(begins), np.concatenate(texts), np.concatenate(sizes)
        order = term_hash.ordered(text, names, size)
        self.owner, self.term = np.concatenate(owners)[order], np.concatenate(terms)[order]
        self.df, self.listed = np.concatenate(dfs)[order], np.concatenate(lists)[order]
        # Equal names have become neighbours, in the order of their segments.
        same = np.zeros(order.size, np.bool_)
        k.equal(text, names[order], size[order], same)
        first = order[~same]
        self.group = np.cumsum(~same) - 1
        self.count = first.size
        self.blob = np.empty(int(size[first].sum()), np.uint8)
        self.ends = np.empty(first.size, np.int64)
        term_hash.copied(text, names, size, first, self.blob, self.ends)


def union(segments: Sequence[Segment], most: int = PIECE) -> Iterator[SortedWords]:
    """All terms that still have documents, in pieces of `most` entries or little more."""
    if segments:
        sizes = [segment.arrays["starts"].size for segment in segments]
        for lows, highs in _ranges(segments, [0] * len(segments), sizes, most):
            yield SortedWords(segments, lows, highs)


def _ranges(
    segments: Sequence[Segment], lows: Sequence[int], highs: Sequence[int], most: int
) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Ranges of term numbers, one of each segment, that lie between the same two names."""
    sizes = [high - low for low, high in zip(lows, highs, strict=True)]
    if sum(sizes) <= most or max(sizes) < 2:
        yield lows, highs
        return
    widest = sizes.index(max(sizes))
    name = segments[widest].term((lows[widest] + highs[widest]) // 2)
    cuts = [
        bisect_left(range(high), name, low, key=segment.term)
        for segment, low, high in zip(segments, lows, highs, strict=True)
    ]
    yield from _ranges(segments, lows, cuts, most)
    yield from _ranges(segments, cuts, highs, most)


def _counted(segment: Segment, low: int, high: int) -> tuple[Array, Array]:
    """The documents of each term that live, and all that are listed."""
    listed, cf = np.empty(high - low, np.int64), np.empty(high - low, np.int64)
    headers(segment.arrays["stream"], segment.arrays["starts"][low:high], listed, cf)
    if segment.deletions is None:
        return listed, listed
    df = listed.copy()
    first, last = np.searchsorted(segment.deletions.terms, [low, high])
    df[segment.deletions.terms[first:last] - low] -= segment.deletions.df[first:last]
    return df, listed
