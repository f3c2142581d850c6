from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from indlet.service.search.rank.model import Collection, DocumentStatistics, Model, QueryTerm, Range

_LN_2: Final = math.log(2.0)


@dataclass(frozen=True, slots=True)
class Pl2(Model):
    """PL2, divergence from randomness (Amati & van Rijsbergen 2002: Probabilistic models of information
    retrieval based on measuring the divergence from randomness).

    P: how improbable so many occurrences are by chance, -log2 of a Poisson probability of mean λ = cf/N, by
    Stirling's formula: tfn log2(tfn/λ) + (λ + 1/(12 tfn) - tfn) log2 e + ½ log2(2π tfn). L: times
    1/(tfn + 1), the risk of accepting the term. 2: tfn = tf log2(1 + c avgdl/dl), as if all documents were of
    average length.
    """

    name: ClassVar = "pl2"
    order: ClassVar = 60
    ranges: ClassVar = {"c": Range(1e-9, 1e6, "above 0")}
    formula: ClassVar = (
        "w · (tfn · ln(tfn / λ) + λ + 1 / (12 · tfn) − tfn + ½ · ln(2 · π · tfn)) / (ln 2 · (tfn + 1))"
    )
    signs: ClassVar = {"c": "c"}
    derived: ClassVar = {"tfn": "tf · ln(1 + c · avgdl / dl) / ln 2", "λ": "cf / N"}

    compiled: ClassVar = "pl2"

    c: float = 1.0

    def parameters(self, collection: Collection) -> tuple[float, ...]:
        return self.c, collection.average

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        return term.weight, term.cf / max(collection.documents, 1)

    def by_length(self, length: int, collection: Collection) -> float:
        return math.log1p(self.c * collection.average / (length or 1))

    def normalised(self, frequency: int, length: int, collection: Collection) -> float:
        return frequency * self.by_length(length, collection) / _LN_2

    def contribution(
        self,
        constants: tuple[float, float],
        frequency: int,
        document: DocumentStatistics,
        collection: Collection,
    ) -> float:
        weight, mean = constants
        tfn = self.normalised(frequency, document.length, collection)
        chance = (
            tfn * math.log2(tfn / mean)
            + (mean + 1.0 / (12.0 * tfn) - tfn) * math.log2(math.e)
            + 0.5 * math.log2(2.0 * math.pi * tfn)
        )
        return weight * chance / (tfn + 1.0)

    def derive(
        self, term: QueryTerm, frequency: int, document: DocumentStatistics, collection: Collection
    ) -> Mapping[str, float]:
        mean = self.constants(term, collection)[1]
        return {"tfn": self.normalised(frequency, document.length, collection), "λ": mean}
