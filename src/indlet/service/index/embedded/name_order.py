"""Results in the order of titles or authors.

The dictionary has the names in order (`service/index/values.py`), so the number of a term is a place in it.
Across segments only the names of what is on the page, and before it, are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from indlet.model import SORT_MARKS
from indlet.service.index.embedded import ranking
from indlet.service.index.embedded.array_file import Array
from indlet.service.index.embedded.columns import postings_of
from indlet.service.index.embedded.groups import Groups
from indlet.service.index.embedded.matching import prefixed
from indlet.service.index.embedded.segment import Segment
from indlet.service.index.protocol import Found


class Order(NamedTuple):
    """The places of documents in an order, and what they are sorted by: the first number of the terms."""

    ranks: Array
    lows: tuple[int, ...]


_LAST: Final = np.uint64(0xFFFFFFFF)  # of those that have no name to be sorted by


def order_of(segment: Segment, sort: str) -> Order:
    """The documents of a segment by title, or by author and title."""
    known = f"order:{sort}"
    if known not in segment.shared:
        own, low = _ranks(segment, sort)
        if sort == "title":
            segment.shared[known] = Order(own, (low,))
        else:
            title = order_of(segment, "title")
            segment.shared[known] = Order(own << np.uint64(32) | title.ranks, (low, *title.lows))
    found: Order = segment.shared[known]
    return found


def _ranks(segment: Segment, sort: str) -> tuple[Array, int]:
    terms = prefixed(segment, SORT_MARKS[sort].encode())
    docs, listed = postings_of(segment, terms)
    ranks = np.full(segment.size, _LAST, np.uint64)
    ranks[docs] = np.repeat(np.arange(len(terms), dtype=np.uint64), listed)
    return ranks, terms.start


def sorted_by(segment: Segment, sort: str, doc: int) -> tuple[tuple[bool, bytes], ...]:
    """What a document is sorted by, comparable across segments."""
    order = order_of(segment, sort)
    rank, shift = int(order.ranks[doc]), 32 * (len(order.lows) - 1)
    out = []
    for low in order.lows:
        number = rank >> shift & 0xFFFFFFFF
        out.append((True, b"") if number == 0xFFFFFFFF else (False, segment.term(low + number)))
        shift -= 32
    return tuple(out)


def first_by_name(segment: Segment, sort: str, docs: Array, count: int) -> Array:
    """Documents among which are the first `count` of these in the order; equal ones by tie, then by id."""
    ranks = order_of(segment, sort).ranks[docs]
    if docs.size <= count:
        return docs
    last = np.partition(ranks, count - 1)[count - 1]
    below, level = docs[ranks < last], docs[ranks == last]
    missing = count - below.size
    if level.size > missing:
        tie = segment.arrays["tie"][level]
        level = level[tie <= np.partition(tie, missing - 1)[missing - 1]]
    return np.concatenate((below, level))


def hits_by_name(
    segments: Sequence[Segment],
    matched: Sequence[Array],
    query: ranking.PreparedQuery,
    limit: int,
    offset: int,
    sort: str,
    groups: Groups,
) -> ranking.RankedPage:
    """The number of resources among the matching documents, and a page of them by title or author.

    A resource stands where the first of its records by identifier does.
    """
    bounds = np.cumsum([0, *(docs.size for docs in matched)])
    kept, group = np.arange(int(bounds[-1])), np.zeros(int(bounds[-1]), np.int64)
    if groups:
        group = np.concatenate([of[docs] for of, docs in zip(groups.of, matched, strict=True)])
        tie, id = (
            np.concatenate([s.arrays[name][docs] for s, docs in zip(segments, matched, strict=True)])
            for name in ("tie", "id")
        )
        kept = np.sort(ranking.one_each(group, np.zeros(group.size), tie, id))
    count, candidates = max(offset, 0) + max(limit, 0), []
    for number, (segment, docs) in enumerate(zip(segments, matched, strict=True)):
        own = docs[kept[slice(*np.searchsorted(kept, bounds[number : number + 2]))] - bounds[number]]
        for doc in first_by_name(segment, sort, own, count).tolist() if count else ():
            arrays = segment.arrays
            key = sorted_by(segment, sort, doc)
            candidates.append((key, int(arrays["tie"][doc]), int(arrays["id"][doc]), number, doc))
    hits = []
    for _, _, own_id, number, doc in sorted(candidates)[max(offset, 0) : count]:
        segment, one = segments[number], np.array([doc], matched[number].dtype)
        score = float(ranking.scores_of(segment, query.where[number], one, query)[0])
        of = int(groups.of[number][doc]) if groups else 0
        hits.append(Found(own_id, score, int(segment.arrays["date"][doc]), groups.with_others(own_id, of)))
    return ranking.RankedPage(kept.size, tuple(hits))
