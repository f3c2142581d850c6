from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from indlet.service.search.rank.model import Collection, DocumentStatistics, Model, QueryTerm


@dataclass(frozen=True, slots=True)
class Vsm(Model):
    """Vector space model, cosine of lnc documents and ltc queries (Salton & Buckley 1988; SMART notation).

    Documents weigh 1 + ln tf, queries (1 + ln qtf) · ln(N/df); both are normalised by their length.
    """

    name: ClassVar = "vsm"
    order: ClassVar = 20
    formula: ClassVar = "qw · ln(N / df) · (1 + ln tf) / (‖d‖ · ‖q‖)"
    derived: ClassVar = {"qw": "1 + ln w"}
    adjustment: ClassVar = "the sum is divided by the norms of document and query"
    finishing: ClassVar = "scaled"
    compiled: ClassVar = "vsm"

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        idf = math.log(collection.documents / term.df)
        return _asked(term.weight) * idf, idf

    def query_constants(self, terms: Sequence[QueryTerm], collection: Collection) -> tuple[float, float]:
        squares = 0.0
        for term in terms:
            weight = self.constants(term, collection)[0]
            squares += weight * weight
        return math.sqrt(squares), 0.0

    def contribution(
        self,
        constants: tuple[float, float],
        frequency: int,
        document: DocumentStatistics,
        collection: Collection,
    ) -> float:
        return constants[0] * (1.0 + math.log(frequency))

    def finish(self, total: float, query: tuple[float, float], document: DocumentStatistics) -> float:
        # No norm: a record without a term vector that was found by its fields.
        return total / ((document.norm or 1.0) * (query[0] or 1.0))

    def derive(
        self, term: QueryTerm, frequency: int, document: DocumentStatistics, collection: Collection
    ) -> Mapping[str, float]:
        return {"qw": _asked(term.weight)}


def _asked(weight: float) -> float:
    return 1.0 + math.log(weight) if weight >= 1.0 else weight
