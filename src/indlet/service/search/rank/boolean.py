from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from indlet.service.search.rank.model import Collection, DocumentStatistics, Model, QueryTerm


@dataclass(frozen=True, slots=True)
class Boolean(Model):
    """Boolean retrieval: every document that matches scores 1."""

    name: ClassVar = "boolean"
    order: ClassVar = 90
    formula: ClassVar = ""
    adjustment: ClassVar = "a match scores 1"
    finishing: ClassVar = "constant"
    compiled: ClassVar = "boolean"

    def constants(self, term: QueryTerm, collection: Collection) -> tuple[float, float]:
        return 0.0, 0.0

    def contribution(
        self,
        constants: tuple[float, float],
        frequency: int,
        document: DocumentStatistics,
        collection: Collection,
    ) -> float:
        return 0.0

    def finish(self, total: float, query: tuple[float, float], document: DocumentStatistics) -> float:
        return 1.0
