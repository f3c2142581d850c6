"""What a retrieval model is: a frozen value with its parameters, and its formula as plain Python.

Every model scores a document as ``finish(sum of contribution over the query terms it holds)``. The terms are
taken in one order, the *canonical* one: rarest first, then by their bytes. Whoever scores repeats these
operations in double precision in the same order, so that every engine and the formula agree bit for bit,
whatever the index looks like inside.

A new model is one file in this folder with a subclass of `Model`, and its line in docs/query.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar, Literal, NamedTuple


@dataclass(frozen=True, slots=True)
class Collection:
    """The live documents: how many, and how many tokens they have together."""

    documents: int
    length: int

    @property
    def average(self) -> float:
        return self.length / self.documents if self.documents and self.length else 1.0


class QueryTerm(NamedTuple):
    """A term of a query: `weight` is how often it was asked for, df and cf are its exact statistics."""

    term: bytes
    weight: float
    df: int
    cf: int


@dataclass(frozen=True, slots=True)
class DocumentStatistics:
    """What a model may know of a document: its length and its lnc norm, sqrt(Σ (1 + ln tf)²)."""

    length: int
    norm: float


class Range(NamedTuple):
    """What a parameter may be, both ends included: outside, a formula would divide by zero or turn its sense
    round.
    """

    low: float
    high: float
    words: str


class Model:
    """A model's `constants` are two numbers for a term, its `query_constants` two for the query; both
    come from statistics. Of a document `contribution` may use the length alone.
    """

    __slots__ = ()

    name: ClassVar[str]
    order: ClassVar[int]  # the place in lists of models
    ranges: ClassVar[Mapping[str, Range]] = {}  # of the parameters, by their names
    # For people: what a term adds, and what is added whatever terms a document holds. The signs that may be
    # used are tf, df, cf, w, N, dl, avgdl, |C|, |q|, ‖d‖, ‖q‖, those in `signs`, which stand for parameters,
    # and those in `derived`, which are defined there.
    formula: ClassVar[str]
    remainder: ClassVar[str] = ""
    signs: ClassVar[Mapping[str, str]] = {}
    derived: ClassVar[Mapping[str, str]] = {}
    adjustment: ClassVar[str] = "the sum is the score"
    # What `finish` does to the sum: nothing, multiplies it, adds to it, or ignores it.
    finishing: ClassVar[Literal["same", "scaled", "shifted", "constant"]] = "same"
    # The name of the file in `core/src/rank` that scores faster than the formula, to the same bits; without
    # one the formula itself runs.
    compiled: ClassVar[str] = ""

    def parameters(self, collection: Collection) -> tuple[float, ...]:
        """The numbers that compiled code needs of the model and the collection."""
        return ()

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        raise NotImplementedError

    def query_constants(self, terms: Sequence[QueryTerm], collection: Collection) -> tuple[float, float]:
        return 0.0, 0.0

    def contribution(
        self,
        constants: tuple[float, float],
        frequency: int,
        document: DocumentStatistics,
        collection: Collection,
    ) -> float:
        raise NotImplementedError

    def finish(self, total: float, query: tuple[float, float], document: DocumentStatistics) -> float:
        return total

    def derive(
        self, term: QueryTerm, frequency: int, document: DocumentStatistics, collection: Collection
    ) -> Mapping[str, float]:
        """The values of the derived signs, for an explanation."""
        return {}


def canonical(terms: Sequence[QueryTerm]) -> list[QueryTerm]:
    """The terms that some document holds, rarest first, then by their bytes."""
    return sorted([term for term in terms if term.df > 0], key=attrgetter("df", "term"))


def score(
    model: Model,
    terms: Sequence[QueryTerm],
    frequencies: Sequence[int],
    document: DocumentStatistics,
    collection: Collection,
) -> float:
    """A document's score: the reference that kernels are compared with. `terms` are in canonical order."""
    total = 0.0
    for term, frequency in zip(terms, frequencies, strict=True):
        if frequency:
            total += model.contribution(model.constants(term, collection), frequency, document, collection)
    return model.finish(total, model.query_constants(terms, collection), document)
