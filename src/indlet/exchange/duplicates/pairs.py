"""From stored records to pairs that may be one work, most likely first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from indlet.exchange.duplicates.blocking import candidates
from indlet.exchange.duplicates.features import Features, features
from indlet.exchange.duplicates.score import SAME_TEXT, Score, may_match, score, text_similarity
from indlet.model import Stored
from indlet.store import Readable

LEAST: Final = 0.8
MOST: Final = 100_000  # pairs that are given; of more, the best
_BATCH: Final = 400

# Packed term vectors by the numbers of records; those without one may be left out.
Vectors = Callable[[Sequence[int]], Mapping[int, bytes | None]]


class Pair(NamedTuple):
    """Two records that may be of one work, the first by (identifier, origin) first."""

    first: Features
    second: Features
    score: float
    reasons: tuple[str, ...]


def pairs(
    records: Iterable[Stored], vectors: Vectors | None = None, *, least: float = LEAST, within: bool = False
) -> list[Pair]:
    """The pairs of live records that score `least` or more, best first.

    Of each record only what is compared stays in memory. Pairs are of two origins, unless `within`. Copies of
    one OAI identifier are one record already, and no pair.
    """
    compared = sorted((features(one) for one in records if not one.deleted), key=lambda one: one.order)
    likely = _likely(compared, within, _without_text(least))
    found: list[Pair] = []
    while batch := list(islice(likely, _BATCH)):
        found += _scored(batch, vectors, least)
        if len(found) > 2 * MOST:
            found = sorted(found, key=_best_first)[:MOST]
    return sorted(found, key=_best_first)[:MOST]


def _best_first(pair: Pair) -> tuple[float, tuple[str, int], tuple[str, int]]:
    return -pair.score, pair.first.order, pair.second.order


def _without_text(least: float) -> float:
    """The score from which equal texts would lift a pair to the least one: below, no vector need be read."""
    odds = least / max(1 - least, 1e-6) / 2**SAME_TEXT
    return odds / (1 + odds)


def _likely(
    records: Sequence[Features], within: bool, least: float
) -> Iterator[tuple[Features, Features, Score]]:
    for first, second in candidates(records, within=within).tolist():
        one, other = records[first], records[second]
        if one.identifier != other.identifier and may_match(one, other):
            found = score(one, other)
            if found.score >= least:
                yield one, other, found


def _scored(
    likely: Sequence[tuple[Features, Features, Score]], vectors: Vectors | None, least: float
) -> Iterator[Pair]:
    numbers = sorted({one.id for pair in likely for one in pair[:2]})
    known = vectors(numbers) if vectors else {}
    for one, other, found in likely:
        alike = text_similarity(known.get(one.id), known.get(other.id))
        if alike is not None:
            found = score(one, other, alike)
        if found.score >= least:
            yield Pair(one, other, found.score, found.reasons)


def stored_pairs(store: Readable, *, least: float = LEAST, within: bool = False) -> list[Pair]:
    """The pairs of a store's records, as of now."""
    with store.read() as view:

        def vectors(numbers: Sequence[int]) -> dict[int, bytes | None]:
            return {number: stored.vector for number, stored in view.by_id(numbers).items()}

        return pairs(view.changes(parts=("metadata",)), vectors, least=least, within=within)
