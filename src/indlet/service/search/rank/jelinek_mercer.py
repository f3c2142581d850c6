from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from indlet.service.search.rank.model import Collection, DocumentStatistics, Model, QueryTerm, Range


@dataclass(frozen=True, slots=True)
class JelinekMercer(Model):
    """Query likelihood, Jelinek-Mercer smoothing (Zhai & Lafferty 2001): ln P(q|d), over all query terms.

    Σ qtf ln((1 - λ) tf/dl + λ p) with p = cf/|C|: λ weighs the collection. Taken as
    Σ_found qtf ln(1 + (tf/dl) (1 - λ)/(λ p)) + Σ_all qtf ln(λ p), the same number.
    """

    name: ClassVar = "lm-jm"
    order: ClassVar = 40
    ranges: ClassVar = {"lambda": Range(1e-9, 1.0 - 1e-9, "between 0 and 1")}
    formula: ClassVar = "w · ln(1 + (tf / dl) · (1 − λ) / (λ · cf / |C|))"
    remainder: ClassVar = "Σ w · ln(λ · cf / |C|)"
    signs: ClassVar = {"λ": "lambda"}
    adjustment: ClassVar = "to the sum comes the query's likelihood in the collection, weighed by lambda"
    finishing: ClassVar = "shifted"
    compiled: ClassVar = "jelinek_mercer"

    lambda_: float = 0.7

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        return term.weight, (1.0 - self.lambda_) / (self.lambda_ * (term.cf / max(collection.length, 1)))

    def query_constants(self, terms: Sequence[QueryTerm], collection: Collection) -> tuple[float, float]:
        constant = 0.0
        for term in terms:
            constant += term.weight * math.log(self.lambda_ * (term.cf / max(collection.length, 1)))
        return 0.0, constant

    def contribution(
        self,
        constants: tuple[float, float],
        frequency: int,
        document: DocumentStatistics,
        collection: Collection,
    ) -> float:
        return constants[0] * math.log(1.0 + frequency * constants[1] / (document.length or 1))

    def finish(self, total: float, query: tuple[float, float], document: DocumentStatistics) -> float:
        return total + query[1]
