from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from indlet.service.search.rank.model import Collection, DocumentStatistics, Model, QueryTerm, Range


@dataclass(frozen=True, slots=True)
class Bm25Plus(Model):
    """BM25+ (Lv & Zhai 2011: Lower-bounding term frequency normalization).

    ln((N + 1)/df) · (tf (k1 + 1) / (tf + k1 (1 - b + b dl/avgdl)) + δ): however long a document is, a term
    that it holds adds at least δ times the idf, so that it ranks above those that lack the term.
    """

    name: ClassVar = "bm25-plus"
    order: ClassVar = 50
    ranges: ClassVar = {
        "k1": Range(0.0, 1e6, "at least 0"),
        "b": Range(0.0, 1.0, "from 0 to 1"),
        "delta": Range(0.0, 1e6, "at least 0"),
    }
    formula: ClassVar = "w · ln((N + 1) / df) · (tf · (k₁ + 1) / (tf + k₁ · (1 − b + b · dl / avgdl)) + δ)"
    signs: ClassVar = {"k₁": "k1", "b": "b", "δ": "delta"}

    compiled: ClassVar = "bm25_plus"

    k1: float = 1.2
    b: float = 0.75
    delta: float = 1.0

    def parameters(self, collection: Collection) -> tuple[float, ...]:
        return self.k1, self.b, collection.average, self.delta

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        idf = math.log((collection.documents + 1.0) / term.df)
        return term.weight * idf, idf

    def by_length(self, length: int, collection: Collection) -> float:
        return self.k1 * (1.0 - self.b + self.b * length / collection.average)

    def contribution(
        self,
        constants: tuple[float, float],
        frequency: int,
        document: DocumentStatistics,
        collection: Collection,
    ) -> float:
        damping = self.by_length(document.length, collection)
        return constants[0] * (frequency * (self.k1 + 1.0) / (frequency + damping) + self.delta)
