"""A snapshot of the index, and the questions it answers.

A searcher never changes: commits and merges that happen meanwhile are seen by the next one. Ranking does not
depend on how documents are spread over segments: scores are equal bit for bit, and equal scores are ordered
by a hash of the record's identifier.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection as Collected
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import is_
from typing import Any, Final

import numpy as np

from indlet.kernels.edit_distance import near
from indlet.model import SORT_MARKS, VALUE_MARKS
from indlet.service.index.embedded import accents, columns, name_order, ranking
from indlet.service.index.embedded import facets as counting
from indlet.service.index.embedded.array_file import Array
from indlet.service.index.embedded.groups import NO_GROUPS, Groups, MatchedDocuments, grouped, parted
from indlet.service.index.embedded.matching import Matcher, look_up, postings, prefixed
from indlet.service.index.embedded.ranking import PreparedQuery
from indlet.service.index.embedded.segment import Segment
from indlet.service.index.embedded.vocabulary import union
from indlet.service.index.expression import (
    Everything,
    Expression,
    Phrase,
    Prefix,
    Term,
    any_of,
    positive,
    within,
)
from indlet.service.index.protocol import SORTS, Explanation, NearTerm, Part, Results, Statistics, Value
from indlet.service.rank import Bm25, Collection, DocumentStatistics, Model, QueryTerm, canonical

_NEAR: Final = 4096  # terms that are usually more than enough
MOST_GROUPED: Final = 1000
# So many documents are scored one by one. Of more, the kernel skips those that cannot be among the best, if
# the terms are not too many for that.
MANY: Final = 2000
MOST_SKIPPING: Final = 32
MOST_TABLES: Final = 256  # models whose tables are kept for a snapshot, 32 kB each


class SegmentSearcher:
    def __init__(
        self, segments: Sequence[Segment], position: int, extra: dict[str, Any] | None = None
    ) -> None:
        self.segments = tuple(segments)
        self.position = position
        self.extra = dict(extra or {})
        self.collection = Collection(
            sum(segment.documents for segment in self.segments),
            sum(segment.length for segment in self.segments),
        )
        self._tables: dict[Model, ranking.Tables] = {}
        self._groups: Groups | None = None
        self._values: dict[str, columns.NumberedValues] = {}
        self._keys: dict[str, counting.GroupedKeys] = {}

    def without(self, origins: Collected[int]) -> SegmentSearcher:
        """This state as if the records of these origins did not exist; itself if there are none."""
        names = frozenset(map(str, origins))
        shown = [segment.hiding(names) for segment in self.segments]
        if all(map(is_, shown, self.segments)):
            return self
        return SegmentSearcher([s for s in shown if s.documents], self.position, self.extra)

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
        """The matching documents, best first; records of one resource are one hit if `collapse` is on.

        Where the order is by score, those that match the first expression of `first` come before those that
        match the second, and so on; the others come last. Of facets with any number of values (creator,
        subject, format) the most frequent `values` are counted. Without `exact_total` the total may be a
        lower bound, which the results then say: documents that cannot be on the page need not be counted.
        """
        if sort not in SORTS:
            raise ValueError(f"sort is one of {', '.join(SORTS)}, not {sort!r}")
        asked = any_of(expression)
        prepared = self._prepare(positive(expression) if asked is None else asked, model or Bm25())
        groups = self.groups() if collapse else NO_GROUPS
        plain = asked is not None
        words: set[str] = set()
        if first or not plain:
            words = {leaf.term for leaf in positive(expression) if isinstance(leaf, Term)}
        first = first if sort == "score" else ()
        # A group is looked for among all of the best, one by one: that must not be many.
        few = not groups or limit + offset <= MOST_GROUPED
        skipping = sort == "score" and few and prepared.formula is not None
        # What holds any of some terms is found by the kernel itself, which need not look at all of it.
        plain = skipping and plain and all(within(part, words) for part in first)
        matchers = [Matcher(segment) for segment in self.segments]
        hidden = [matcher.hidden(filters) if filters else matcher.segment.gone for matcher in matchers]
        matched = []
        if facets or not plain:
            matched = [m.matched(expression, without) for m, without in zip(matchers, hidden, strict=True)]
        if skipping and not plain:
            many = sum(docs.size for docs in matched) > MANY and len(prepared.constants) <= MOST_SKIPPING
            if skipping := many and within(expression, words):
                hidden = [_others(m.segment, docs) for m, docs in zip(matchers, matched, strict=True)]
        masks = [[matcher.mask(part) for part in first] for matcher in matchers]
        if skipping:
            page = ranking.tiered_top(
                self.segments, hidden, masks, prepared, limit, offset, groups, exact_total or bool(facets)
            )
        elif first:
            tiers = [ranking.tiers(parts, docs) for parts, docs in zip(masks, matched, strict=True)]
            page = ranking.tiered_hits(self.segments, matched, tiers, prepared, limit, offset, groups)
        else:
            in_order = name_order.hits_by_name if sort in SORT_MARKS else ranking.sorted_hits
            page = in_order(self.segments, matched, prepared, limit, offset, sort, groups)
        counts = self._counts(parted(matched, groups), facets, values) if facets else {}
        loose = any(matcher.loose for matcher in matchers)
        return Results(page.total, page.hits, counts, loose, page.ahead, page.exact)

    def _counts(
        self, matched: MatchedDocuments, facets: Sequence[str], values: int
    ) -> dict[str, tuple[tuple[str, int], ...]]:
        return {
            name: columns.count(self.segments, matched, name, values, self._values_of(name))
            if name in VALUE_MARKS
            else counting.count(
                self.segments, matched, name, self._keys_of(name) if matched.places.size else None
            )
            for name in facets
        }

    def matching(self, expression: Expression = Everything()) -> Iterator[int]:  # noqa: B008
        """The ids of all records that match, in no particular order."""
        for segment in self.segments:
            yield from segment.arrays["id"][Matcher(segment).live(expression)].tolist()

    def explain(self, expression: Expression, id: int, model: Model | None = None) -> Explanation | None:
        """How a record's score came about; None if the index does not hold the record."""
        model = model or Bm25()
        found = self._locate(id)
        if found is None:
            return None
        segment, doc = found
        terms = self.query_terms(expression)
        document = DocumentStatistics(int(segment.arrays["length"][doc]), float(segment.arrays["norm"][doc]))
        parts, total = [], 0.0
        for term, number in zip(
            terms, look_up((segment,), [term.term for term in terms]).numbers[0], strict=True
        ):
            frequency = _frequency(segment, int(number), doc)
            if frequency:
                constants = model.constants(term, self.collection)
                share = model.contribution(constants, frequency, document, self.collection)
                total += share
                name = term.term.decode(errors="replace")
                derived = model.derive(term, frequency, document, self.collection)
                parts.append(Part(name, frequency, term.df, term.cf, term.weight, share, derived))
        score = model.finish(total, model.outlook(terms, self.collection), document)
        return Explanation(id, score, document.length, document.norm, tuple(parts), total, model.adjustment)

    def query_terms(self, expression: Expression) -> list[QueryTerm]:
        """The terms that count for a score, with their statistics, in canonical order."""
        return self._terms_of(positive(expression))[0]

    # ---- statistics

    def df(self, term: str) -> int:
        return int(look_up(self.segments, [term.encode("utf-8", "surrogatepass")]).sums[0, 0])

    def cf(self, term: str) -> int:
        return int(look_up(self.segments, [term.encode("utf-8", "surrogatepass")]).sums[0, 1])

    def terms(self, prefix: str = "", limit: int | None = None) -> list[tuple[str, int, int]]:
        """Terms that begin so with their df and cf: the `limit` most frequent ones, most frequent first."""
        names: set[bytes] = set()
        spans = [prefixed(segment, prefix.encode("utf-8", "surrogatepass")) for segment in self.segments]
        counts = [
            segment.frequencies()[0][span.start : span.stop]
            for segment, span in zip(self.segments, spans, strict=True)
        ]
        # So many documents have at least `limit` terms: those of a segment that has as many.
        least = 1
        if limit:
            for df in counts:
                if df.size > limit:
                    least = max(least, int(np.partition(df, df.size - limit)[df.size - limit]))
        for segment, span, df in zip(self.segments, spans, counts, strict=True):
            # Whatever reaches that in all segments together has its part of it in one.
            enough = np.flatnonzero(df >= -(-least // len(self.segments)))
            names.update(map(segment.term, (enough + span.start).tolist()))
        words = list(names)
        totals = look_up(self.segments, words).sums.tolist()
        ranked = ((-df, name, cf) for name, (df, cf) in zip(words, totals, strict=True) if df)
        picked = sorted(ranked) if limit is None else heapq.nsmallest(limit, ranked)
        return [(name.decode(errors="replace"), -df, cf) for df, name, cf in picked]

    def near(self, word: str, edits: int) -> list[NearTerm]:
        """Terms at most so many edits of bytes away from a word, in no particular order."""
        wanted = np.frombuffer(bytearray(word.encode("utf-8", "surrogatepass")), np.uint8)
        best: dict[bytes, tuple[int, int]] = {}
        for segment in self.segments:
            df, _ = segment.frequencies()
            arrays, count, room = segment.arrays, _NEAR, 0
            while count > room:
                room = count
                found, distances = np.empty(room, np.int64), np.empty(room, np.int64)
                count = int(near(arrays["names"], arrays["bounds"], df, wanted, edits, found, distances))
            for number, distance in zip(found[:count].tolist(), distances[:count].tolist(), strict=True):
                name = segment.term(number)
                best[name] = distance, best.get(name, (0, 0))[1] + int(df[number])
        return [NearTerm(name.decode(errors="replace"), *told) for name, told in best.items()]

    def accented(self, plain: str) -> list[str]:
        """The terms that are this one but for their accents."""
        found = accents.accented(self.segments, plain)
        df = look_up(self.segments, [term.encode() for term in found]).sums[:, 0].tolist()
        return [term for term, count in zip(found, df, strict=True) if count]

    def listed(self, facet: str, start: str, limit: int, backwards: bool = False) -> list[Value]:
        """The values of a facet from A to Z, from a key on; backwards, those before it."""
        return columns.listed(self.segments, facet, start, limit, backwards)

    def vocabulary(self) -> Iterator[tuple[bytes, int, int]]:
        """Every term with its exact df and cf, in the order of bytes."""
        streams = map(_entries, self.segments)
        for name, group in groupby(heapq.merge(*streams), key=lambda entry: entry[0]):
            df_sum = cf_sum = 0
            for _, df_part, cf_part in group:
                df_sum += df_part
                cf_sum += cf_part
            if df_sum:
                yield name, df_sum, cf_sum

    def fingerprint(self) -> str:
        """A digest of all statistics: equal for equal content, however the index is laid out."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(b"%d %d\n" % (self.collection.documents, self.collection.length))
        for name, df, cf in self.vocabulary():
            digest.update(b"%s %d %d\n" % (name, df, cf))
        # Lengths, norms and dates go in the order of the identifiers' hashes, which no layout changes.
        columns = [
            np.concatenate([_live(segment, name) for segment in self.segments] or [np.empty(0)])
            for name in ("tie", "length", "norm", "date")
        ]
        order = np.lexsort(columns[::-1])  # several sources may have an identifier
        for column in columns:
            digest.update(column[order].tobytes())
        return digest.hexdigest()

    def stats(self, everything: bool = True) -> Statistics:
        """Everything is known here."""
        sizes = [
            segment.file.size + (segment.deletions_file.size if segment.deletions_file else 0)
            for segment in self.segments
        ]
        postings = sum(int(segment.frequencies()[0].sum()) for segment in self.segments)
        terms = sum(piece.count for piece in union(self.segments))
        return Statistics(
            self.collection.documents, terms, postings, self.collection.length, sum(sizes),
            len(self.segments), sum(segment.ended for segment in self.segments), self.position,
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
        """Works out what every question needs to know, so that the first one need not."""
        for segment in self.segments:
            counting.prepare(segment)
            accents.prepare(segment)
            segment.frequencies()
        self.groups()
        if model is not None:
            self._tables_of(model)

    def groups(self) -> Groups:
        """Which documents are records of one resource; found out once for a snapshot."""
        if self._groups is None:
            self._groups = grouped(self.segments)
        return self._groups

    # ---- inside

    def _terms_of(self, leaves: Iterable[Term | Phrase | Prefix]) -> tuple[list[QueryTerm], list[Array]]:
        """The query terms, and for each segment where their lists begin."""
        weights: dict[bytes, float] = {}
        for leaf in leaves:
            weight = 1.0 if isinstance(leaf, Prefix) else leaf.weight
            if isinstance(leaf, Term):
                words = [leaf.term.encode("utf-8", "surrogatepass")]
            elif isinstance(leaf, Phrase):
                words = [term.encode("utf-8", "surrogatepass") for term in leaf.terms]
            else:
                common = self.terms(leaf.prefix, leaf.limit)
                words = [term.encode("utf-8", "surrogatepass") for term, _, _ in common]
            if not weight > 0:
                raise ValueError(f"{leaf} has the weight {weight}: it must be above 0")
            for word in words:
                weights[word] = weights.get(word, 0.0) + weight
        words = list(weights)
        _, where, sums = look_up(self.segments, words)
        terms = canonical(
            [
                QueryTerm(word, weight, df, cf)
                for (word, weight), (df, cf) in zip(weights.items(), sums.tolist(), strict=True)
            ]
        )
        at = {word: number for number, word in enumerate(words)}
        order = [at[term.term] for term in terms]
        return terms, [own.take(order) for own in where]

    def _prepare(self, leaves: Iterable[Term | Phrase | Prefix], model: Model) -> PreparedQuery:
        terms, where = self._terms_of(leaves)
        return ranking.prepare(terms, where, model, self.collection, self._tables_of(model))

    def _tables_of(self, model: Model) -> ranking.Tables:
        tables = self._tables.get(model)
        if tables is None:
            if len(self._tables) >= MOST_TABLES:  # a model of other parameters is another model
                self._tables.clear()
            tables = self._tables[model] = ranking.tables(model, self.collection, self.segments)
        return tables

    def _values_of(self, facet: str) -> columns.NumberedValues:
        known = self._values.get(facet)
        if known is None:
            known = self._values[facet] = columns.numbered_values(self.segments, self.groups(), facet)
        return known

    def _keys_of(self, facet: str) -> counting.GroupedKeys:
        known = self._keys.get(facet)
        if known is None:
            known = self._keys[facet] = counting.grouped_keys(self.segments, self.groups(), facet)
        return known

    def _locate(self, id: int) -> tuple[Segment, int] | None:
        for segment in self.segments:
            ids, docs = segment.by_id()
            at = int(np.searchsorted(ids, id))
            if at < ids.size and ids[at] == id:
                doc = int(docs[at])
                if segment.gone is None or not segment.gone[doc]:
                    return segment, doc
        return None


def _others(segment: Segment, docs: Array) -> Array:
    """The documents that are none of these, as flags."""
    flags = np.ones(segment.size, np.bool_)
    flags[docs] = False
    return flags


def _entries(segment: Segment) -> Iterator[tuple[bytes, int, int]]:
    df, cf = segment.frequencies()
    names, bounds = segment.arrays["names"].tobytes(), segment.arrays["bounds"].tolist()
    for number, (low, high) in enumerate(pairwise(bounds)):
        yield names[low:high], int(df[number]), int(cf[number])


def _frequency(segment: Segment, number: int, doc: int) -> int:
    if number < 0:
        return 0
    docs, freqs = postings(segment, number)
    at = int(np.searchsorted(docs, doc))
    return int(freqs[at]) if at < docs.size and docs[at] == doc else 0


def _live(segment: Segment, name: str) -> Array:
    array = segment.arrays[name]
    return array if segment.gone is None else array[~segment.gone]
