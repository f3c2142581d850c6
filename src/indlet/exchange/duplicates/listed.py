"""Pairs with what people compare, for the desk and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

import orjson

from indlet.exchange.duplicates import decisions
from indlet.exchange.duplicates.pairs import LEAST, Pair, stored_pairs
from indlet.model import JsonObject
from indlet.store import Store

_BATCH: Final = 200


def listed(
    store: Store, least: float = LEAST, within: bool = False, everything: bool = False
) -> Iterator[JsonObject]:
    """Each pair with what people compare and what was decided of it, best first."""
    found = stored_pairs(store, least=least, within=within)
    with store.read() as view:
        own, others = decisions.decisions_in(view), decisions.elsewhere_in(view)

    def decided(pair: Pair) -> decisions.PairDecision | None:
        return decisions.counting(own, others, pair.first.identifier, pair.second.identifier)

    if not everything:
        found = [pair for pair in found if not decided(pair)]
    for start in range(0, len(found), _BATCH):
        batch = found[start : start + _BATCH]
        shown = _described(store, batch)
        for pair in batch:
            made = decided(pair)
            key = decisions.pair_of(pair.first.identifier, pair.second.identifier)
            yield {
                "score": pair.score,
                "why": pair.reasons,
                "decision": made and made.decision,
                "by": made and made.by,
                "at": made and made.at,
                "node": made and made.node,
                "elsewhere": elsewhere(others, key),
                "records": [shown[one.id] for one in (pair.first, pair.second) if one.id in shown],
            }


def elsewhere(others: decisions.History, pair: decisions.Pair) -> list[JsonObject]:
    """What other nodes say of a pair; a decision that was taken back says nothing."""
    return [asdict(one) for one in others.get(pair, ()) if one.decision != "open"]


def _described(store: Store, batch: list[Pair]) -> dict[int, JsonObject]:
    with store.read() as view:
        names = {origin.id: origin.name for origin in view.origins()}
        stored = view.by_id(sorted({one.id for pair in batch for one in pair[:2]}))
    shown = {}
    for number, record in stored.items():
        metadata = orjson.loads(record.metadata or b"{}")
        shown[number] = {
            "id": record.identifier,
            "source": names.get(record.origin, ""),
            "title": next(iter(metadata.get("title", ())), ""),
            "authors": metadata.get("creator") or metadata.get("contributor") or [],
            "year": next(iter(metadata.get("date", ())), "")[:10],
            "identifiers": metadata.get("identifier", []),
        }
    return shown
