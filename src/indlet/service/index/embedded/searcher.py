"""A snapshot of the index, and the questions it answers: the core does the work, Python knows the models."""

from __future__ import annotations

from collections.abc import Collection as Collected
from collections.abc import Iterator, Sequence
from typing import Final

from indlet import _core
from indlet.model import VALUE_MARKS, JsonMapping
from indlet.service.index.embedded.segment import Segment, explain_damage
from indlet.service.index.expression import Everything, Expression
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
from indlet.service.index.values import beginning
from indlet.service.search.rank import Bm25, Collection, DocumentStatistics, Model, QueryTerm

_PIECE: Final = 10_000  # terms of the vocabulary at a time


class SegmentSearcher:
    """One committed state, which never changes."""

    def __init__(
        self,
        segments: Sequence[Segment],
        position: int,
        extra: JsonMapping,
        core: _core.Searcher | None = None,
    ) -> None:
        self.segments = tuple(segments)
        self.position = position
        self.extra = dict(extra)
        self._core = core = core or _core.Searcher([segment.core for segment in segments])
        self.collection = Collection(core.documents, core.length)

    def without(self, origins: Collected[int]) -> SegmentSearcher:
        shown = self._core.without(sorted(map(str, origins))) if origins else None
        return self if shown is None else SegmentSearcher(self.segments, self.position, self.extra, shown)

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
        """See `Searcher`. Totals are exact: counting costs less than what it would take to do without."""
        if sort not in SORTS:
            raise ValueError(f"sort is one of {', '.join(SORTS)}, not {sort!r}")
        model, collection = model or Bm25(), self.collection
        terms = [QueryTerm(*term) for term in self._core.query_terms(expression)]
        constants = [model.constants(term, collection) for term in terms]
        query = model.query_constants(terms, collection)
        formula = None
        if model.compiled not in _core.MODELS:

            def share(constants: tuple[float, float], tf: int, length: int) -> float:
                return model.contribution(constants, tf, DocumentStatistics(length, 1.0), collection)

            def finish(query: tuple[float, float], total: float, length: int, norm: float) -> float:
                return model.finish(total, query, DocumentStatistics(length, norm))

            formula = share, finish
        marks = [(name, VALUE_MARKS[name].encode() if name in VALUE_MARKS else None) for name in facets]
        with explain_damage():
            total, hits, counts, loose, ahead = self._core.search(
                expression, [term.term for term in terms], constants, query, model.compiled,
                model.parameters(collection), formula, limit=max(limit, 0), offset=max(offset, 0),
                filters=filters, sort=sort,
                facets=marks, collapse=collapse, first=first, values=values,
            )  # fmt: skip
        found = tuple(map(Found._make, hits))
        shown = {name: tuple(count) for name, count in zip(facets, counts, strict=True)}
        return Results(total, found, shown, loose, ahead)

    def matching(self, expression: Expression = Everything()) -> Iterator[int]:  # noqa: B008
        """The ids of all records that match, in no particular order."""
        yield from self._core.matching(expression)

    def explain(self, expression: Expression, id: int, model: Model | None = None) -> Explanation | None:
        model = model or Bm25()
        terms = self.query_terms(expression)
        found = self._core.document(id, [term.term for term in terms])
        if found is None:
            return None
        frequencies, length, norm = found
        document = DocumentStatistics(length, norm)
        parts, total = [], 0.0
        for term, frequency in zip(terms, frequencies, strict=True):
            if frequency:
                constants = model.constants(term, self.collection)
                share = model.contribution(constants, frequency, document, self.collection)
                total += share
                name = term.term.decode(errors="replace")
                derived = model.derive(term, frequency, document, self.collection)
                parts.append(Part(name, frequency, term.df, term.cf, term.weight, share, derived))
        score = model.finish(total, model.query_constants(terms, self.collection), document)
        return Explanation(id, score, document.length, document.norm, tuple(parts), total, model.adjustment)

    def query_terms(self, expression: Expression) -> list[QueryTerm]:
        return [QueryTerm(*term) for term in self._core.query_terms(expression)]

    def df(self, term: str) -> int:
        return self._core.frequencies(_encode(term))[0]

    def cf(self, term: str) -> int:
        return self._core.frequencies(_encode(term))[1]

    def terms(self, prefix: str = "", limit: int | None = None) -> list[tuple[str, int, int]]:
        found = self._core.terms(_encode(prefix), limit)
        return [(term.decode(errors="replace"), df, cf) for term, df, cf in found]

    def near(self, word: str, edits: int) -> list[NearTerm]:
        found = self._core.near(_encode(word), edits)
        return [NearTerm(term.decode(errors="replace"), distance, df) for term, distance, df in found]

    def accented(self, plain: str) -> list[str]:
        return self._core.accented(plain)

    def listed(self, facet: str, start: str, limit: int, backwards: bool = False) -> list[Value]:
        mark = VALUE_MARKS[facet]
        key = beginning(facet, start).removeprefix(mark).encode("utf-8", "replace")
        found = self._core.list_values(mark.encode(), key, max(limit, 0), backwards)
        return [Value(key, label) for key, label in found]

    def vocabulary(self) -> Iterator[tuple[bytes, int, int]]:
        after = None
        while piece := self._core.vocabulary(after, _PIECE):
            yield from piece
            after = piece[-1][0]

    def fingerprint(self) -> str:
        return self._core.fingerprint()

    def stats(self, everything: bool = True) -> Statistics:
        terms, postings = self._core.sizes()
        return Statistics(
            self.collection.documents, terms, postings, self.collection.length,
            sum(segment.bytes for segment in self.segments), len(self.segments), self._core.deleted,
            self.position,
        )  # fmt: skip

    @property
    def loss(self) -> str:
        """How postings were pruned."""
        share, _, best = str(self.extra.get("prune", "")).partition(" ")
        if not share:
            return ""
        if not self.extra.get("pruned"):
            return "not pruned yet: indlet reindex does it"
        return (
            f"pruned by term: occurrences of a word that weigh less than {float(share):.0%} of its {best}. "
            "best are left out"
        )

    def make_ready(self, model: Model | None = None) -> None:
        self._core.make_ready()


def _encode(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")
