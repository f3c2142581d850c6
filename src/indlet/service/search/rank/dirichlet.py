from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from indlet.service.search.rank.model import Collection, DocumentStatistics, Model, QueryTerm, Range


@dataclass(frozen=True, slots=True)
class Dirichlet(Model):
    """Query likelihood, Dirichlet smoothing (Zhai & Lafferty 2001): ln P(q|d), over all query terms.

    Σ qtf ln((tf + μ p)/(dl + μ)) with p = cf/|C|. Terms that the document lacks count as well: the sum is
    taken as Σ_found qtf ln(1 + tf/(μ p)) + |q| ln(μ/(dl + μ)) + Σ_all qtf ln p, the same number.
    """

    name: ClassVar = "lm-dirichlet"
    order: ClassVar = 30
    ranges: ClassVar = {"mu": Range(1e-9, 1e12, "above 0")}
    formula: ClassVar = "w · ln(1 + tf / (μ · cf / |C|))"
    remainder: ClassVar = "|q| · ln(μ / (dl + μ)) + Σ w · ln(cf / |C|)"
    signs: ClassVar = {"μ": "mu"}
    adjustment: ClassVar = (
        "to the sum come |q| ln(mu/(length + mu)) and the query's likelihood in the collection"
    )
    finishing: ClassVar = "shifted"
    compiled: ClassVar = "dirichlet"

    mu: float = 1000.0

    def parameters(self, collection: Collection) -> tuple[float, ...]:
        return (self.mu,)

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        return term.weight, self.mu * (term.cf / max(collection.length, 1))

    def query_constants(self, terms: Sequence[QueryTerm], collection: Collection) -> tuple[float, float]:
        size = constant = 0.0
        for term in terms:
            size += term.weight
            constant += term.weight * math.log(term.cf / max(collection.length, 1))
        return size, constant

    def discount(self, length: int) -> float:
        return math.log(self.mu / (length + self.mu))

    def by_length(self, length: int, collection: Collection) -> float:
        return self.discount(length)

    def contribution(
        self,
        constants: tuple[float, float],
        frequency: int,
        document: DocumentStatistics,
        collection: Collection,
    ) -> float:
        return constants[0] * math.log(1.0 + frequency / constants[1])

    def finish(self, total: float, query: tuple[float, float], document: DocumentStatistics) -> float:
        return total + query[0] * self.discount(document.length) + query[1]
