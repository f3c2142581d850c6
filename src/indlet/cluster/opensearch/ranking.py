"""From a query to a page of hits in the exact order of double precision.

The cluster scores in 32-bit floats. Documents come best first and are scored again by the model itself; when
the last one that is wanted is provably above all that were not fetched, the page is complete.
"""

from __future__ import annotations

from collections.abc import Collection as Collected
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from indlet.cluster.opensearch.cluster import PAGE, Json, hits, total
from indlet.cluster.opensearch.scripts import Scoring
from indlet.cluster.opensearch.snapshot import Snapshot, column
from indlet.model import SORT_MARKS
from indlet.service.search.rank import DocumentStatistics

COLUMNS: Final = ("id", "tie", "length", "norm", "date", "group", "ambiguous")
_MORE: Final = 10  # hits beyond those that are wanted


class Ranking(NamedTuple):
    """The best documents; and of all that match, how many there are and how many are of a group."""

    best: list[RankedDocument]
    total: int
    grouped: int


class RankedDocument(NamedTuple):
    """`place` is what documents are ordered by; `group` is 0 where the record is the only one of its
    resource."""

    place: tuple[float, int, int]
    id: int
    score: float
    comparable: float
    date: int
    group: int
    doubtful: bool


def query_of(match: Json, scoring: Scoring, plain: bool) -> Json:
    """What matches, and beside it the clauses that score. `plain`: whatever holds a term matches."""
    clauses = scoring.clauses()
    if not clauses:
        return {"bool": {"filter": [match]}}
    if plain and not scoring.by_length:
        return {"bool": {"should": clauses, "minimum_should_match": 1}}
    return {"bool": {"filter": [match], "should": clauses, "minimum_should_match": 0}}


def order_of(sort: str, scoring: Scoring) -> list[Json]:
    last: list[Json] = [{"tie": "asc"}, {"id": "asc"}]
    if sort == "score":
        return last if scoring.is_constant else [{"_score": "desc"}, *last]
    if sort in SORT_MARKS:
        names = ("author", "title") if sort == "author" else ("title",)
        return [*({f"order_{name}": {"order": "asc", "missing": "_last"}} for name in names), *last]
    return [{"date": {"order": "desc" if sort == "newest" else "asc", "missing": "_last"}}, *last]


def rank_documents(
    snapshot: Snapshot,
    match: Json,
    scoring: Scoring,
    wanted: int,
    sort: str = "score",
    *,
    plain: bool = False,
    collapse: bool = True,
    without: Collected[int] = (),
    cleared: Collected[int] = (),
    kept: Mapping[int, int] | None = None,
) -> Ranking:
    """The best `wanted` documents, one of each group. Groups in `without` are left out; those in `cleared`
    count though they are marked as doubtful. `kept` says which record stands for each group, if not the first
    that comes."""
    exact = sort != "score" or scoring.is_constant
    body: Json = {
        "sort": order_of(sort, scoring),
        "track_scores": True,
        "_source": False,
        "docvalue_fields": list(COLUMNS),
        "size": min(PAGE, wanted + _MORE) if wanted > 0 else 0,
        "aggs": {"grouped": {"filter": {"exists": {"field": "group"}}}},
    }
    query = query_of(match, scoring, plain)
    found: list[RankedDocument] = []
    answer = snapshot.search(body, query, include_named_queries_score="true")
    matched, grouped = total(answer), answer["aggregations"].get("grouped", {}).get("doc_count", 0)
    body |= {"track_total_hits": False, "aggs": {}}
    while True:
        page = hits(answer)
        found += [_document(hit, scoring, sort, len(found) + at) for at, hit in enumerate(page)]
        best = _one_each(sorted(found), without, cleared, kept or {}) if collapse else sorted(found)
        if len(page) < body["size"] or wanted <= 0:
            return Ranking(best[: max(wanted, 0)], matched, grouped)
        last = float(page[-1]["_score"] or 0.0)
        if len(best) >= wanted and (
            exact or scoring.above(best[wanted - 1].comparable, last) or scoring.all_equal_from(last)
        ):
            return Ranking(best[:wanted], matched, grouped)
        body |= {"search_after": page[-1]["sort"], "size": min(PAGE, 2 * body["size"])}
        answer = snapshot.search(body, query, include_named_queries_score="true")


def frequencies_of(hit: Json, terms: int) -> list[int]:
    told = hit.get("matched_queries") or {}
    return [int(told.get(str(number), 0)) for number in range(terms)]


def _document(hit: Json, scoring: Scoring, sort: str, at: int) -> RankedDocument:
    fields = {name: column(hit, name) for name in COLUMNS}
    document = DocumentStatistics(_int(fields["length"]), float(str(fields["norm"] or 0.0)))
    score, comparable = scoring.score(frequencies_of(hit, len(scoring.terms)), document)
    id, tie = _int(fields["id"]), _int(fields["tie"])
    # By date the cluster's own order is exact.
    place = (-score, tie, id) if sort == "score" else (float(at), tie, id)
    return RankedDocument(
        place, id, score, comparable, _int(fields["date"]), _int(fields["group"]), bool(fields["ambiguous"])
    )


def _int(value: object) -> int:
    return int(str(value)) if value is not None else 0


def _one_each(
    found: Sequence[RankedDocument],
    without: Collected[int],
    cleared: Collected[int],
    kept: Mapping[int, int],
) -> list[RankedDocument]:
    seen: set[int] = set()
    out = []
    for doc in found:
        if doc.group and (not doc.doubtful or doc.group in cleared):
            if doc.group in seen or doc.group in without or kept.get(doc.group, doc.id) != doc.id:
                continue
            seen.add(doc.group)
        out.append(doc)
    return out
