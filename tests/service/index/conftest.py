"""Records as the store would feed them, and an index made of dictionaries to compare with."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from indlet.model import Stored, TermVector, pack
from indlet.service.search.rank import Collection, DocumentStatistics, Model, QueryTerm, canonical, score


def feed(
    id: int,
    seq: int,
    frequencies: Mapping[str, int] | None,
    *,
    fields: Mapping[str, int] | None = None,
    places: Mapping[str, Sequence[int]] | None = None,
    metadata: Mapping[str, Sequence[str]] | None = None,
    sets: str = "",
    origin: int = 1,
    resource: int = 0,
    language: str = "",
    length: int | None = None,
) -> Stored:
    """A record of the change feed; a deleted one if it has no frequencies and no places."""
    vector = None
    if places is not None:
        vector = TermVector.of_positions(places, length)
    elif frequencies is not None:
        vector = TermVector.of(frequencies, length)
    return Stored(
        id, seq, origin, f"oai:example.org:{id}", 0, int(vector is None), sets, language,
        vector.length if vector else 0, resource, json.dumps(metadata or {}).encode(), b"", b"",
        vector.packed if vector else None, vector.positions if vector else None, pack(fields or {}),
    )  # fmt: skip


@dataclass
class Naive:
    """The same questions answered from a dictionary of dictionaries."""

    documents: dict[int, dict[str, int]] = field(default_factory=dict)

    @property
    def collection(self) -> Collection:
        return Collection(len(self.documents), sum(sum(d.values()) for d in self.documents.values()))

    def statistics(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for document in self.documents.values():
            for term, frequency in document.items():
                df, cf = found.get(term, (0, 0))
                found[term] = df + 1, cf + frequency
        return found

    def scores(self, query: Mapping[str, float], model: Model) -> dict[int, float]:
        known = self.statistics()
        terms = canonical([QueryTerm(t.encode(), w, *known.get(t, (0, 0))) for t, w in query.items()])
        found = {}
        for id, document in self.documents.items():
            frequencies = [document.get(term.term.decode(), 0) for term in terms]
            if any(frequencies):
                about = DocumentStatistics(sum(document.values()), norm(document))
                found[id] = score(model, terms, frequencies, about, self.collection)
        return found


def norm(document: Mapping[str, int]) -> float:
    """sqrt(Σ (1 + ln tf)²), summed by ascending frequency."""
    squares = 0.0
    for frequency in sorted(set(document.values())):
        weight = 1.0 + math.log(frequency)
        squares += sum(f == frequency for f in document.values()) * (weight * weight)
    return math.sqrt(squares)


@pytest.fixture(scope="session")
def record() -> Callable[..., Stored]:
    return feed


@pytest.fixture(scope="session")
def naive() -> Callable[..., Any]:
    return Naive
