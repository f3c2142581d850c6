"""Retrieval models: a frozen value with its parameters, and its formula as plain Python.

Every model scores a document as ``finish(sum of contribution over the query terms it holds)``. The terms are
taken in one order, the *canonical* one: rarest first, then by their bytes. A kernel repeats these operations
in double precision in the same order, so that engine and formula agree bit for bit, whatever the index looks
like inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol


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
class Document:
    """What a model may know of a document: its length and its lnc norm, sqrt(Σ (1 + ln tf)²)."""

    length: int
    norm: float


def canonical(terms: Sequence[QueryTerm]) -> list[QueryTerm]:
    """The terms that some document holds, rarest first, then by their bytes."""
    return sorted((term for term in terms if term.df > 0), key=lambda term: (term.df, term.term))


class Model(Protocol):
    """`constants` are two numbers for a term, `outlook` two for the query; both come from statistics."""

    name: ClassVar[str]

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]: ...
    def outlook(self, terms: Sequence[QueryTerm], collection: Collection) -> tuple[float, float]: ...
    def contribution(
        self, constants: tuple[float, float], frequency: int, document: Document, collection: Collection
    ) -> float: ...
    def finish(self, total: float, outlook: tuple[float, float], document: Document) -> float: ...


def score(
    model: Model,
    terms: Sequence[QueryTerm],
    frequencies: Sequence[int],
    document: Document,
    collection: Collection,
) -> float:
    """A document's score: the reference that kernels are compared with. `terms` are in canonical order."""
    total = 0.0
    for term, frequency in zip(terms, frequencies, strict=True):
        if frequency:
            total += model.contribution(model.constants(term, collection), frequency, document, collection)
    return model.finish(total, model.outlook(terms, collection), document)


@dataclass(frozen=True, slots=True)
class Bm25:
    """Okapi BM25 (Robertson, Walker, Jones, Hancock-Beaulieu, Gatford 1994: Okapi at TREC-3).

    ln(1 + (N - df + ½)/(df + ½)) · tf (k1 + 1) / (tf + k1 (1 - b + b dl/avgdl)); this idf is never negative.
    """

    name: ClassVar[str] = "bm25"
    k1: float = 1.2
    b: float = 0.75

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        idf = math.log(1.0 + (collection.documents - term.df + 0.5) / (term.df + 0.5))
        return term.weight * idf * (self.k1 + 1.0), idf

    def outlook(self, terms: Sequence[QueryTerm], collection: Collection) -> tuple[float, float]:
        return 0.0, 0.0

    def damping(self, length: int, collection: Collection) -> float:
        return self.k1 * (1.0 - self.b + self.b * length / collection.average)

    def contribution(
        self, constants: tuple[float, float], frequency: int, document: Document, collection: Collection
    ) -> float:
        return constants[0] * frequency / (frequency + self.damping(document.length, collection))

    def finish(self, total: float, outlook: tuple[float, float], document: Document) -> float:
        return total


@dataclass(frozen=True, slots=True)
class Vsm:
    """Vector space model, cosine of lnc documents and ltc queries (Salton & Buckley 1988; SMART notation).

    Documents weigh 1 + ln tf, queries (1 + ln qtf) · ln(N/df); both are normalised by their length.
    """

    name: ClassVar[str] = "vsm"

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        idf = math.log(collection.documents / term.df)
        asked = 1.0 + math.log(term.weight) if term.weight >= 1.0 else term.weight
        return asked * idf, idf

    def outlook(self, terms: Sequence[QueryTerm], collection: Collection) -> tuple[float, float]:
        squares = 0.0
        for term in terms:
            weight = self.constants(term, collection)[0]
            squares += weight * weight
        return math.sqrt(squares), 0.0

    def contribution(
        self, constants: tuple[float, float], frequency: int, document: Document, collection: Collection
    ) -> float:
        return constants[0] * (1.0 + math.log(frequency))

    def finish(self, total: float, outlook: tuple[float, float], document: Document) -> float:
        # No norm: a record without a term vector that was found by its fields.
        return total / ((document.norm or 1.0) * (outlook[0] or 1.0))


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """Query likelihood, Dirichlet smoothing (Zhai & Lafferty 2001): ln P(q|d), over all query terms.

    Σ qtf ln((tf + μ p)/(dl + μ)) with p = cf/|C|. Terms that the document lacks count as well: the sum is
    taken as Σ_found qtf ln(1 + tf/(μ p)) + |q| ln(μ/(dl + μ)) + Σ_all qtf ln p, the same number.
    """

    name: ClassVar[str] = "lm-dirichlet"
    mu: float = 1000.0

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        return term.weight, self.mu * (term.cf / max(collection.length, 1))

    def outlook(self, terms: Sequence[QueryTerm], collection: Collection) -> tuple[float, float]:
        size = constant = 0.0
        for term in terms:
            size += term.weight
            constant += term.weight * math.log(term.cf / max(collection.length, 1))
        return size, constant

    def discount(self, length: int) -> float:
        return math.log(self.mu / (length + self.mu))

    def contribution(
        self, constants: tuple[float, float], frequency: int, document: Document, collection: Collection
    ) -> float:
        return constants[0] * math.log(1.0 + frequency / constants[1])

    def finish(self, total: float, outlook: tuple[float, float], document: Document) -> float:
        return total + outlook[0] * self.discount(document.length) + outlook[1]


@dataclass(frozen=True, slots=True)
class JelinekMercer:
    """Query likelihood, Jelinek-Mercer smoothing (Zhai & Lafferty 2001): ln P(q|d), over all query terms.

    Σ qtf ln((1 - λ) tf/dl + λ p) with p = cf/|C|: λ weighs the collection. Taken as
    Σ_found qtf ln(1 + (tf/dl) (1 - λ)/(λ p)) + Σ_all qtf ln(λ p), the same number.
    """

    name: ClassVar[str] = "lm-jm"
    lambda_: float = 0.7

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        return term.weight, (1.0 - self.lambda_) / (self.lambda_ * (term.cf / max(collection.length, 1)))

    def outlook(self, terms: Sequence[QueryTerm], collection: Collection) -> tuple[float, float]:
        constant = 0.0
        for term in terms:
            constant += term.weight * math.log(self.lambda_ * (term.cf / max(collection.length, 1)))
        return 0.0, constant

    def contribution(
        self, constants: tuple[float, float], frequency: int, document: Document, collection: Collection
    ) -> float:
        return constants[0] * math.log(1.0 + frequency * constants[1] / (document.length or 1))

    def finish(self, total: float, outlook: tuple[float, float], document: Document) -> float:
        return total + outlook[1]


@dataclass(frozen=True, slots=True)
class Boolean:
    """Boolean retrieval: every document that matches scores 1."""

    name: ClassVar[str] = "boolean"

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        return 0.0, 0.0

    def outlook(self, terms: Sequence[QueryTerm], collection: Collection) -> tuple[float, float]:
        return 0.0, 0.0

    def contribution(
        self, constants: tuple[float, float], frequency: int, document: Document, collection: Collection
    ) -> float:
        return 0.0

    def finish(self, total: float, outlook: tuple[float, float], document: Document) -> float:
        return 1.0
