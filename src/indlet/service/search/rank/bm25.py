from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from indlet.service.search.rank.model import Collection, DocumentStatistics, Model, QueryTerm, Range


@dataclass(frozen=True, slots=True)
class Bm25(Model):
    """Okapi BM25 (Robertson, Walker, Jones, Hancock-Beaulieu, Gatford 1994: Okapi at TREC-3).

    ln(1 + (N - df + ½)/(df + ½)) · tf (k1 + 1) / (tf + k1 (1 - b + b dl/avgdl)); this idf is never negative.
    """

    name: ClassVar = "bm25"
    order: ClassVar = 10
    ranges: ClassVar = {"k1": Range(0.0, 1e6, "at least 0"), "b": Range(0.0, 1.0, "from 0 to 1")}
    formula: ClassVar = (
        "w · ln(1 + (N − df + ½) / (df + ½)) · tf · (k₁ + 1) / (tf + k₁ · (1 − b + b · dl / avgdl))"
    )
    signs: ClassVar = {"k₁": "k1", "b": "b"}
    compiled: ClassVar = "bm25"

    k1: float = 1.2
    b: float = 0.75

    def parameters(self, collection: Collection) -> tuple[float, ...]:
        return self.k1, self.b, collection.average

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        idf = math.log(1.0 + (collection.documents - term.df + 0.5) / (term.df + 0.5))
        return term.weight * idf * (self.k1 + 1.0), idf

    def by_length(self, length: int, collection: Collection) -> float:
        return self.k1 * (1.0 - self.b + self.b * length / collection.average)

    def contribution(
        self,
        constants: tuple[float, float],
        frequency: int,
        document: DocumentStatistics,
        collection: Collection,
    ) -> float:
        return constants[0] * frequency / (frequency + self.by_length(document.length, collection))
