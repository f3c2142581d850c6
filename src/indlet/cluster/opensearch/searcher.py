"""A snapshot of an index on a cluster, and the questions it answers, exactly as the embedded engine does."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection as Collected
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from indlet.cluster.opensearch import facets as counting
from indlet.cluster.opensearch.cluster import Json, hits, total
from indlet.cluster.opensearch.control import Control, PublishedState
from indlet.cluster.opensearch.matching import EVERYTHING, all_of, loosely, matching, none_of
from indlet.cluster.opensearch.ranking import RankedDocument, Ranking, frequencies_of, rank_documents
from indlet.cluster.opensearch.resources import ambiguous
from indlet.cluster.opensearch.scripts import Scoring
from indlet.cluster.opensearch.snapshot import Snapshot, column
from indlet.cluster.opensearch.values import FacetValues
from indlet.cluster.opensearch.vocabulary import ClusterVocabulary
from indlet.model import SORT_MARKS, VALUE_MARKS
from indlet.service.index.expression import Expression, Or, Phrase, Prefix, Term, positive
from indlet.service.index.protocol import (
    SORTS,
    Explanation,
    Found,
    NearTerm,
    Part,
    Results,
    Statistics,
    Value,
)
from indlet.service.search.rank import Bm25, Collection, DocumentStatistics, Model, QueryTerm, canonical

_GROUPED: Json = {"exists": {"field": "group"}}
_FEW = 20_000  # documents that can be read to answer a question


# Documents of groups, with their groups.
_Members = list[tuple[int, Json]]


class _Question(NamedTuple):
    match: Json
    scoring: Scoring
    sort: str
    plain: bool
    collapse: bool


class ClusterSearcher:
    def __init__(self, control: Control, state: PublishedState, hidden: frozenset[str] = frozenset()) -> None:
        self._snapshot = Snapshot(control, state, hidden)
        self._vocabulary = ClusterVocabulary(self._snapshot)
        self._values = FacetValues(self._snapshot, self._vocabulary)
        self.position = state.position

    @cached_property
    def collection(self) -> Collection:
        return Collection(self._sums[0], self._sums[1])

    def without(self, origins: Collected[int]) -> ClusterSearcher:
        names = frozenset(map(str, origins)) | self._snapshot.hidden
        held = {"terms": {"key_origin": sorted(names - self._snapshot.hidden)}}
        if not total(self._snapshot.search({"size": 0}, held)):
            return self
        return ClusterSearcher(self._snapshot.control, self._snapshot.state, names)

    # ---- searching

    def search(
        self,
        expression: Expression,
        model: Model | None = None,
        limit: int = 10,
        offset: int = 0,
        *,
        filters: Sequence[Expression] = (),
        sort: str = "score",
        facets: Sequence[str] = (),
        collapse: bool = True,
        first: Sequence[Expression] = (),
        values: int = 50,
        exact_total: bool = True,
    ) -> Results:
        """The matching documents, best first; records of one resource are one hit if `collapse` is on. The
        total is exact, asked for or not.
        """
        if sort not in SORTS:
            raise ValueError(f"sort is one of {', '.join(SORTS)}, not {sort!r}")
        counting.check(facets)
        scoring = self._scoring(expression, model or Bm25())
        plain = not filters and (
            isinstance(expression, Term)
            or (isinstance(expression, Or) and all(isinstance(part, Term) for part in expression.parts))
        )
        match = matching(expression)
        if filters:
            match = all_of([match, *map(matching, filters)])
        question = _Question(match, scoring, sort, plain, collapse)
        wanted, left_out = max(limit, 0), max(offset, 0)
        if sort == "score" and first:
            count, ahead, found, members = self._rank_by_tier(question, first, wanted, left_out, facets)
        else:
            first, ahead = (), 0
            kept = self._first_by_identifier(match) if sort in SORT_MARKS and collapse else None
            ranking = self._rank(question, left_out + wanted if wanted else 0, kept=kept)
            members = self._members(match, facets) if collapse and ranking.grouped else []
            count = ranking.total - len(members) + len({group for group, _ in members})
            found = ranking.best[left_out:]
        loose = any(map(self._any, (q for e in (expression, *filters, *first) for q in loosely(e))))
        counts = counting.count(self._snapshot, match, [f for f in facets if f not in VALUE_MARKS], members)
        for name in facets:
            if name in VALUE_MARKS:
                counts[name] = self._values.count(match, name, members, values)
        return Results(count, tuple(self._hits(found, collapse)), counts, loose, ahead)

    def explain(self, expression: Expression, id: int, model: Model | None = None) -> Explanation | None:
        model = model or Bm25()
        scoring = self._scoring(expression, model)
        terms, collection = scoring.terms, self.collection
        query = {"bool": {"filter": [{"term": {"id": id}}], "should": scoring.named_terms()}}
        body: Json = {"size": 1, "_source": False, "docvalue_fields": ["length", "norm"]}
        page = hits(self._snapshot.search(body, query, include_named_queries_score="true"))
        if not page:
            return None
        document = DocumentStatistics(
            int(str(column(page[0], "length", 0))), float(str(column(page[0], "norm", 0.0)))
        )
        parts, summed = [], 0.0
        for term, frequency in zip(terms, frequencies_of(page[0], len(terms)), strict=True):
            if frequency:
                share = model.contribution(model.constants(term, collection), frequency, document, collection)
                summed += share
                name = term.term.decode(errors="replace")
                derived = model.derive(term, frequency, document, collection)
                parts.append(Part(name, frequency, term.df, term.cf, term.weight, share, derived))
        score = model.finish(summed, model.query_constants(terms, collection), document)
        return Explanation(id, score, document.length, document.norm, tuple(parts), summed, model.adjustment)

    def query_terms(self, expression: Expression) -> list[QueryTerm]:
        weights: dict[str, float] = {}
        for leaf in positive(expression):
            weight = 1.0
            match leaf:
                case Term(term, weight):
                    words: Sequence[str] = [term]
                case Phrase(words, _, weight):
                    pass
                case Prefix(prefix, most):
                    words = [term for term, _, _ in self.terms(prefix, most)]
            if not weight > 0:
                raise ValueError(f"{leaf} has the weight {weight}: it must be above 0")
            for word in words:
                weights[word] = weights.get(word, 0.0) + weight
        counted = self._vocabulary.statistics(list(weights))
        return canonical(
            [
                QueryTerm(word.encode("utf-8", "surrogatepass"), weight, df, cf)
                for (word, weight), (df, cf) in zip(weights.items(), counted, strict=True)
            ]
        )

    # ---- statistics

    def terms(self, prefix: str = "", limit: int | None = None) -> list[tuple[str, int, int]]:
        return self._vocabulary.terms(prefix, limit)

    def listed(self, facet: str, start: str, limit: int, backwards: bool = False) -> list[Value]:
        return self._values.listed(facet, start, limit, backwards)

    def vocabulary(self) -> Iterator[tuple[bytes, int, int]]:
        return self._vocabulary.every()

    def near(self, word: str, edits: int) -> list[NearTerm]:
        return self._vocabulary.near(word, edits)

    def accented(self, plain: str) -> list[str]:
        return self._vocabulary.accented(plain)

    def fingerprint(self) -> str:
        """As of the embedded engine: every document is read."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(b"%d %d\n" % (self.collection.documents, self.collection.length))
        for name, df, cf in self.vocabulary():
            digest.update(b"%s %d %d\n" % (name, df, cf))
        rows = sorted(
            (int(str(column(hit, "tie"))) + (1 << 63), int(str(column(hit, "length"))),
             float(str(column(hit, "norm"))), int(str(column(hit, "date", 0))))
            for hit in self._snapshot.each(EVERYTHING, ("tie", "length", "norm", "date"))
        )  # fmt: skip
        for number, kind in enumerate("QIdI"):
            digest.update(struct.pack(f"<{len(rows)}{kind}", *(row[number] for row in rows)))
        return digest.hexdigest()

    @property
    def loss(self) -> str:
        """Nothing is pruned here."""
        return ""

    def stats(self, everything: bool = True) -> Statistics:
        state = self._snapshot.state
        size = segments = deleted = 0
        if state.data:
            told = self._snapshot.control.cluster.ask("GET", f"{state.data}/_stats/store,segments,docs")
            primaries = told["_all"]["primaries"]
            size = int(primaries["store"]["size_in_bytes"])
            segments, deleted = int(primaries["segments"]["count"]), int(primaries["docs"]["deleted"])
        documents, length = self.collection.documents, self.collection.length
        terms = self._vocabulary.size if everything or documents <= _FEW else None
        return Statistics(documents, terms, self._sums[3], length, size, segments, deleted, self.position)

    def make_ready(self, model: Model | None = None) -> None:
        """What every question needs came with the snapshot."""

    # ---- inside

    @cached_property
    def _sums(self) -> tuple[int, int, int, int]:
        """Of what is shown: documents, their length, the longest, postings."""
        told = {
            "length": {"sum": {"field": "length"}},
            "longest": {"max": {"field": "length"}},
            "postings": {"sum": {"field": "postings"}},
        }
        answer = self._snapshot.search({"size": 0, "aggs": told}, EVERYTHING)
        sums = answer["aggregations"]
        length, longest, postings = (int(sums.get(name, {}).get("value") or 0) for name in told)
        return total(answer), length, longest, postings

    @cached_property
    def _unambiguous_groups(self) -> frozenset[int]:
        """Groups that are doubtful only by records which are hidden."""
        if not self._snapshot.hidden:
            return frozenset()
        origins: dict[int, list[str]] = {}
        for hit in self._snapshot.each({"term": {"ambiguous": True}}, ("group", "key_origin")):
            origins.setdefault(int(str(column(hit, "group"))), []).append(str(column(hit, "key_origin")))
        return frozenset(group for group, those in origins.items() if not ambiguous(those))

    def _scoring(self, expression: Expression, model: Model) -> Scoring:
        return Scoring(model, self.query_terms(expression), self.collection, self._sums[2])

    def _any(self, query: Json) -> bool:
        return total(self._snapshot.search({"size": 0, "track_total_hits": 1}, query)) > 0

    def _members(self, match: Json, facets: Sequence[str]) -> _Members:
        """The matching documents of groups, with their groups."""
        columns = ("group", "ambiguous", *(f"key_{name}" for name in facets if name not in VALUE_MARKS))
        columns += ("words",) if any(name in VALUE_MARKS for name in facets) else ()
        found: _Members = []
        for hit in self._snapshot.each(all_of([match, _GROUPED]), columns):
            group = int(str(column(hit, "group")))
            if not column(hit, "ambiguous") or group in self._unambiguous_groups:
                found.append((group, hit))
        return found

    def _first_by_identifier(self, match: Json) -> dict[int, int]:
        """For each group the record that stands for it where the order is by name."""
        best: dict[int, tuple[int, int]] = {}
        for hit in self._snapshot.each(all_of([match, _GROUPED]), ("group", "tie", "id")):
            group, place, id = (int(str(column(hit, name))) for name in ("group", "tie", "id"))
            best[group] = min(best.get(group, (place, id)), (place, id))
        return {group: id for group, (_, id) in best.items()}

    def _rank(
        self,
        asked: _Question,
        wanted: int,
        without: Collected[int] = (),
        kept: Mapping[int, int] | None = None,
    ) -> Ranking:
        return rank_documents(
            self._snapshot, asked.match, asked.scoring, wanted, asked.sort, plain=asked.plain,
            collapse=asked.collapse, without=without, cleared=self._unambiguous_groups, kept=kept,
        )  # fmt: skip

    def _rank_by_tier(
        self, asked: _Question, first: Sequence[Expression], wanted: int, left_out: int, facets: Sequence[str]
    ) -> tuple[int, int, list[RankedDocument], _Members]:
        """Documents by the first expression that they match; a group stands where its best does. How many
        there are, how many are not of the last tier, the page, and the documents of groups."""
        each = [matching(part) for part in first]
        totals: list[int] = []
        taken: frozenset[int] = frozenset()
        found: list[RankedDocument] = []
        members: _Members = []
        for number in range(len(each) + 1):
            match = none_of(all_of([asked.match, *each[number : number + 1]]), each[:number])
            here = asked._replace(match=match, plain=False)
            ranking = self._rank(here, left_out + wanted - len(found) if len(found) < wanted else 0, taken)
            grouped = self._members(match, facets) if asked.collapse and ranking.grouped else []
            groups = frozenset(group for group, _ in grouped)
            totals.append(ranking.total - len(grouped) + len(groups - taken))
            found += ranking.best[left_out:]
            left_out = max(left_out - totals[-1], 0)
            taken |= groups
            members += grouped
        last = max((number for number, count in enumerate(totals) if count), default=0)
        return sum(totals), sum(totals[:last]), found, members

    def _hits(self, found: Sequence[RankedDocument], collapse: bool) -> Iterator[Found]:
        groups = {doc.group for doc in found if doc.group} if collapse else set()
        ids: dict[int, list[int]] = {}
        if groups:
            for hit in self._snapshot.each({"terms": {"group": sorted(groups)}}, ("id", "group")):
                ids.setdefault(int(str(column(hit, "group"))), []).append(int(str(column(hit, "id"))))
        for doc in found:
            one = collapse and doc.group and (not doc.doubtful or doc.group in self._unambiguous_groups)
            others = sorted(id for id in ids.get(doc.group, ()) if id != doc.id) if one else []
            yield Found(doc.id, doc.score, doc.date, (doc.id, *others))
