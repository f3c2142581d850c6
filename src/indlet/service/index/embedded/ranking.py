"""From matching documents to a page of hits: scores, order, duplicates, facets.

Long because the order of hits is decided here in all three ways: the best, sorted, in tiers.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from indlet.kernels import best as kernel
from indlet.kernels import scoring
from indlet.kernels.list_window import PostingLists
from indlet.kernels.machine_code import compiled_for
from indlet.kernels.top_heap import Heap
from indlet.service.index.embedded.array_file import Array
from indlet.service.index.embedded.groups import Groups
from indlet.service.index.embedded.segment import Segment, bits, postings_at
from indlet.service.index.protocol import Found
from indlet.service.rank import Collection, DocumentStatistics, Model, QueryTerm
from indlet.service.rank.vsm import Vsm

KERNELS: Final[dict[str, int]] = {
    "bm25": scoring.BM25,
    "bm25-plus": scoring.BM25_PLUS,
    "vsm": scoring.VSM,
    "dirichlet": scoring.DIRICHLET,
    "jelinek-mercer": scoring.JELINEK_MERCER,
    "pl2": scoring.PL2,
    "boolean": scoring.BOOLEAN,
}
LONGEST_TABLE: Final = 1 << 12  # longer documents are rare: theirs is worked out when met
# Scores are bounded for classes of documents by their length or norm: so large a part is below each class.
_BELOW: Final = (0.01, 0.03, 0.07, 0.15, 0.3, 0.5, 0.75)
assert len(_BELOW) == kernel.CLASSES - 1
# Norms are also told in bytes, so many for a factor of two, with room for rounding.
_FINE: Final = 32
_INVERSE_NORMS: Final = 2.0 ** (-np.arange(256) / _FINE) * (1.0 + 1e-9)
_KEPT_TERMS: Final = 8  # a third of a megabyte for each thread
_kept: Final = threading.local()
_NO_BITS: Final = np.zeros(0, np.uint64)
_NO_GROUP: Final = np.zeros(0, np.int64)
_NONE_SEEN: Final = np.zeros(1, np.uint8)
# As `Found._make`, which looks at the length.
_hit: Final[Callable[[tuple[int, float, int, tuple[int, ...]]], Found]] = partial(tuple.__new__, Found)
_KEPT_HEAPS: Final = 64  # best documents, of which a thread keeps the heap


class Tables(NamedTuple):
    """What a model needs for each document length, or each frequency, worked out once for a snapshot."""

    values: Array
    parameters: Array


class PreparedQuery(NamedTuple):
    """A query ready for the kernels; `formula` is None where the model has none."""

    model: Model
    collection: Collection
    constants: list[tuple[float, float]]
    outlook: tuple[float, float]
    where: list[Array]
    formula: scoring.Formula | None


class RankedPage(NamedTuple):
    """How many resources there are, those of a page, how many of all go first (`tiered_hits`), and
    whether the number is exact: otherwise there may be more.
    """

    total: int
    hits: tuple[Found, ...]
    ahead: int = 0
    exact: bool = True


def tables(model: Model, collection: Collection, segments: Sequence[Segment]) -> Tables:
    longest = max((int(segment.arrays["length"].max(initial=0)) for segment in segments), default=0)
    lengths = range(min(longest + 1, LONGEST_TABLE))
    parameters = np.zeros(4)
    given = model.parameters(collection)
    parameters[: len(given)] = given
    if isinstance(model, Vsm):
        values = [0.0, *(1.0 + math.log(frequency) for frequency in range(1, 64))]
    else:
        values = [model.tabled(length, collection) for length in lengths]
    return Tables(np.array(values), parameters)


def prepare(
    terms: list[QueryTerm], where: list[Array], model: Model, collection: Collection, tables: Tables
) -> PreparedQuery:
    """`where` says for each segment where the lists of the terms begin."""
    constants = [model.constants(term, collection) for term in terms]
    size, constant = outlook = model.outlook(terms, collection)
    kind = KERNELS.get(model.kernel)
    formula = None
    if kind is not None:
        first = np.array([first for first, _ in constants])
        second = np.array([second for _, second in constants])
        numbers = np.array([size or 1.0 if isinstance(model, Vsm) else size, constant])
        formula = scoring.Formula(kind, first, second, numbers, tables.parameters, tables.values)
    return PreparedQuery(model, collection, constants, outlook, where, formula)


def columns(segment: Segment) -> kernel.Columns:
    """What the kernel that ranks has to know of a segment's documents; worked out once."""
    found = segment.shared.get("columns")
    if not isinstance(found, kernel.Columns):
        arrays = segment.arrays
        lengths, norms = arrays["length"], np.where(arrays["norm"] > 0.0, arrays["norm"], 1.0)
        ids = arrays["id"] if arrays["id"].itemsize > 2 else arrays["id"].astype(np.uint32)  # as warmed up
        shorter, limits = _classes(lengths)
        smaller, norm_limits = _classes(norms)
        found = segment.shared["columns"] = kernel.Columns(
            lengths, arrays["norm"], arrays["tie"], ids, shorter, limits.astype(np.int64), smaller,
            norm_limits, np.clip(_FINE * np.log2(norms), 0, 255).astype(np.uint8), _INVERSE_NORMS,
            bits(arrays["tie"] >> np.uint64(58) == 0), arrays["date"],
        )  # fmt: skip
    return found


def _classes(values: Array) -> tuple[Array, Array]:
    """For each class the documents that are of it or of one before, as bits; the least value of each class,
    and the largest of all.
    """
    if not values.size:
        return np.concatenate([bits(values)] * kernel.CLASSES), np.zeros(kernel.CLASSES + 1)
    places = [int(part * (values.size - 1)) for part in _BELOW]
    ordered = np.partition(values, (0, *places, values.size - 1))
    limits = [ordered[0]]
    within = []
    for place in places:
        below = values <= ordered[place]
        within.append(bits(below))
        limits.append(values[~below].min(initial=ordered[-1]))
    within.append(bits(np.ones(values.size, np.bool_)))
    return np.concatenate(within), np.array([*limits, ordered[-1]], np.float64)


def _hidden(segment: Segment, flags: Array | None) -> Array:
    if flags is None:
        return _NO_BITS
    if "gone" not in segment.cache and segment.gone is not None:
        segment.cache["gone"] = bits(segment.gone)
    if flags is not segment.gone:
        return bits(flags)
    found: Array = segment.cache["gone"]
    return found


def _scratch(terms: int) -> kernel.Scratch:
    """Room for a kernel to work in; what has served a thread for a query of usual size serves it again."""
    if terms > _KEPT_TERMS:
        return kernel.scratch(terms)
    found: kernel.Scratch | None = getattr(_kept, "scratch", None)
    if found is None:
        found = _kept.scratch = kernel.scratch(_KEPT_TERMS)
    return found


def _heap(size: int) -> Heap:
    """Room for so many of the best; that for a page of usual size serves a thread again."""
    heaps: dict[int, Heap] = _kept.__dict__.setdefault("heaps", {})
    found = heaps.get(size)
    if found is None:
        found = Heap(np.empty(size), np.empty(size, np.uint64), *np.empty((3, size), np.int64))
        if size <= _KEPT_HEAPS:
            heaps[size] = found
    return found


def top(
    segments: Sequence[Segment],
    hidden: Sequence[Array | None],
    query: PreparedQuery,
    limit: int,
    offset: int,
    groups: Groups,
    exact: bool,
) -> RankedPage:
    """The best of the resources with a document that holds any of the terms and is not hidden. Their number
    may be a lower bound if it need not be exact.
    """
    assert query.formula is not None
    offset = max(offset, 0)
    size = max(limit, 0) + offset
    if size > _KEPT_HEAPS:
        size = min(size, sum(segment.documents for segment in segments))
    heap = _heap(size)
    any_groups = bool(groups)
    seen = np.zeros(groups.starts.size, np.uint8) if any_groups else _NONE_SEEN
    scratch = _scratch(len(query.constants))
    total, filled, every = 0, 0, True
    for number, (segment, without) in enumerate(zip(segments, hidden, strict=True)):
        shown = kernel.VisibleDocuments(
            _NO_BITS if without is None else _hidden(segment, without),
            groups.of[number] if any_groups else _NO_GROUP,
            groups.grouped[number] if any_groups else _NO_BITS, seen,
        )  # fmt: skip
        given = (
            query.formula, PostingLists(segment.arrays["stream"], query.where[number]),
            columns(segment), shown, heap, filled, number == len(segments) - 1, exact, scratch,
        )  # fmt: skip
        best = segment.shared.get("best")  # all that is given has the same types for each query
        if best is None:
            best = segment.shared["best"] = compiled_for(kernel.best, *given)
        live, taken, complete = (best or kernel.best)(*given)
        total, filled = total + int(live), int(taken)
        every = every and complete
    ids, scores = heap.ids[offset:filled].tolist(), heap.scores[offset:filled].tolist()
    alike: Iterable[tuple[int, ...]] = zip(ids, strict=True)
    if any_groups:
        alike = map(groups.with_others, ids, heap.groups[offset:filled].tolist())
    hits = tuple(map(_hit, zip(ids, scores, heap.dates[offset:filled].tolist(), alike, strict=True)))
    return RankedPage(total, hits, exact=every)


def tiered_top(
    segments: Sequence[Segment],
    hidden: Sequence[Array | None],
    masks: Sequence[Sequence[Array]],
    query: PreparedQuery,
    limit: int,
    offset: int,
    groups: Groups,
    exact: bool,
) -> RankedPage:
    """The same with those first that one of the masks holds, if there are any, as `tiered_hits` does it; each
    of these holds a term. They are few: the others, which are most, are left to the kernel.
    """
    if not masks or not masks[0]:
        return top(segments, hidden, query, limit, offset, groups, exact)
    taken = [np.logical_or.reduce(parts) for parts in masks]
    docs = [
        np.flatnonzero(some if without is None else some & ~without)
        for some, without in zip(taken, hidden, strict=True)
    ]
    numbers = [tiers(parts, held) for parts, held in zip(masks, docs, strict=True)]
    before = tiered_hits(segments, docs, numbers, query, limit, offset, groups)
    if groups and before.total:  # nor is another record of such a resource among the others
        resources = np.zeros(groups.starts.size, np.bool_)
        for of, held in zip(groups.of, docs, strict=True):
            resources[of[held]] = True
        resources[0] = False
        if resources.any():
            taken = [some | resources[of] for some, of in zip(taken, groups.of, strict=True)]
    if before.total:
        hidden = [
            some if without is None else some | without for some, without in zip(taken, hidden, strict=True)
        ]
    wanted = max(limit, 0) - len(before.hits)
    left_out = max(offset - before.total, 0) if wanted else 0
    others = top(segments, hidden, query, wanted, left_out, groups, exact)
    ahead = before.total if others.total or not others.exact else before.ahead
    return RankedPage(before.total + others.total, (*before.hits, *others.hits), ahead, others.exact)


def sorted_hits(
    segments: Sequence[Segment],
    matched: Sequence[Array],
    query: PreparedQuery,
    limit: int,
    offset: int,
    sort: str,
    groups: Groups,
) -> RankedPage:
    """The number of resources among the matching documents, and the page of the best of them."""
    scores = [
        scores_of(segment, where, docs, query)
        for segment, where, docs in zip(segments, query.where, matched, strict=True)
    ]
    score = np.concatenate(scores or [np.empty(0)])
    tie, date, id = (
        np.concatenate(
            [s.arrays[name][docs] for s, docs in zip(segments, matched, strict=True)] or [np.empty(0)]
        )
        for name in ("tie", "date", "id")
    )
    if sort == "score":
        key = score
    else:
        key = date.astype(np.float64) * (1.0 if sort == "newest" else -1.0)
        key[date == 0] = -np.inf
    which = np.arange(score.size)
    group = np.zeros(0, np.int64)
    if groups:
        group = np.concatenate([of[docs] for of, docs in zip(groups.of, matched, strict=True)])
        which = one_each(group, key, tie, id)
    total = which.size
    page = which[_best(key[which], tie[which], id[which], max(offset, 0) + max(limit, 0))[max(offset, 0) :]]
    hits = []
    for i in page.tolist():
        own = int(id[i])
        ids = groups.with_others(own, int(group[i]) if groups else 0)
        hits.append(Found(own, float(score[i]), int(date[i]), ids))
    return RankedPage(total, tuple(hits))


def tiers(masks: Sequence[Array], docs: Array) -> Array:
    """For each document the number of the first mask that holds it; that of the masks if none does."""
    out = np.full(docs.size, len(masks), np.int64)
    for number in range(len(masks) - 1, -1, -1):
        out[masks[number][docs]] = number
    return out


def tiered_hits(
    segments: Sequence[Segment],
    matched: Sequence[Array],
    tiers: Sequence[Array],
    query: PreparedQuery,
    limit: int,
    offset: int,
    groups: Groups,
) -> RankedPage:
    """As `sorted_hits` by score within each tier, lower tiers first; and how many are not of the last one.

    A resource stands where the best of its records does. Lower tiers that fill the page spare the work of
    scoring the others, which are most.
    """
    tier = np.concatenate(tiers or [_NO_GROUP])
    last = int(tier.max(initial=0))
    group = np.zeros(tier.size, np.int64)
    if groups:
        group = np.concatenate([of[docs] for of, docs in zip(groups.of, matched, strict=True)])
    best = np.full(groups.starts.size, last, np.int64)  # the tier of each group; 0 stands for none
    np.minimum.at(best, group, tier)
    kept = (group == 0) | (tier == best[group])
    totals = [
        int(np.count_nonzero(kept & (group == 0) & (tier == number)))
        + int(np.unique(group[kept & (group > 0) & (tier == number)]).size)
        for number in range(last + 1)
    ]
    hits: list[Found] = []
    wanted, left_out = max(limit, 0), max(offset, 0)
    bounds = np.cumsum([0, *(docs.size for docs in matched)])
    for number, total in enumerate(totals):
        if left_out < total and len(hits) < wanted:
            here = kept & (tier == number)
            chosen = [
                docs[here[low:high]] for docs, low, high in zip(matched, bounds, bounds[1:], strict=False)
            ]
            hits += sorted_hits(segments, chosen, query, wanted - len(hits), left_out, "score", groups).hits
        left_out = max(left_out - total, 0)
    return RankedPage(sum(totals), tuple(hits), sum(totals[:-1]) if last else 0)


def scores_of(segment: Segment, where: Array, docs: Array, query: PreparedQuery) -> Array:
    if query.formula is None:
        return _scores_by_formula(segment, where, docs, query)
    arrays = segment.arrays
    out = np.empty(docs.size)
    scoring.scored(query.formula, arrays["stream"], where, arrays["length"], arrays["norm"], docs, out)
    return out


def _scores_by_formula(segment: Segment, where: Array, docs: Array, query: PreparedQuery) -> Array:
    """The same for a model without a kernel: its own formula runs, once for each frequency and length."""
    model, collection = query.model, query.collection
    lengths, norms = segment.arrays["length"], segment.arrays["norm"]
    totals = np.zeros(docs.size)
    for start, constants in zip(where.tolist(), query.constants, strict=True):
        if start < 0 or not docs.size:
            continue
        held, freqs = postings_at(segment, start)
        at = np.minimum(np.searchsorted(docs, held), docs.size - 1)
        wanted = docs[at] == held
        at = at[wanted]
        keys = freqs[wanted].astype(np.uint64) << np.uint64(32) | lengths[held[wanted]]
        kinds, which = np.unique(keys, return_inverse=True)
        shares = [
            model.contribution(constants, key >> 32, DocumentStatistics(key & 0xFFFFFFFF, 1.0), collection)
            for key in kinds.tolist()
        ]
        totals[at] += np.array(shares)[which]
    if model.finishing == "same":
        return totals
    each = zip(totals.tolist(), lengths[docs].tolist(), norms[docs].tolist(), strict=True)
    return np.array(
        [model.finish(total, query.outlook, DocumentStatistics(*told)) for total, *told in each], np.float64
    )


def one_each(group: Array, key: Array, tie: Array, id: Array) -> Array:
    """Of the documents of each group the first in ranking order, and all that are alone."""
    alone = np.flatnonzero(group == 0)
    shared = np.flatnonzero(group)
    shared = shared[np.lexsort((id[shared], tie[shared], -key[shared], group[shared]))]
    first = np.ones(shared.size, np.bool_)
    first[1:] = group[shared][1:] != group[shared][:-1]
    return np.concatenate((alone, shared[first]))


def _best(key: Array, tie: Array, id: Array, count: int) -> Array:
    """The places of the `count` largest keys in order; equal keys go by tie, then by id, lowest first."""
    if count <= 0:
        return np.empty(0, np.int64)
    picked = np.arange(key.size)
    if key.size > 4 * count:
        threshold = np.partition(key, key.size - count)[key.size - count]
        above, level = np.flatnonzero(key > threshold), np.flatnonzero(key == threshold)
        missing = count - above.size
        if level.size > missing:
            highest = np.partition(tie[level], missing - 1)[missing - 1]
            level = level[tie[level] <= highest]
        picked = np.concatenate((above, level))
    return picked[np.lexsort((id[picked], tie[picked], -key[picked]))][:count]
