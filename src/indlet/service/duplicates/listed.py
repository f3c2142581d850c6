"""Pairs with what people compare, for the desk and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from indlet.model import JsonObject
from indlet.service.duplicates import decisions
from indlet.service.duplicates.pairs import LEAST, Pair, stored_pairs
from indlet.store import Store

_BATCH: Final = 200


def listed(
    store: Store, least: float = LEAST, within: bool = False, everything: bool = False
) -> Iterator[JsonObject]:
    """Each pair with what people compare, best first."""
    found = stored_pairs(store, least=least, within=within)
    made = decisions.decisions(store)
    if not everything:
        found = [p for p in found if not decisions.current(made, p.first.identifier, p.second.identifier)]
    for start in range(0, len(found), _BATCH):
        batch = found[start : start + _BATCH]
        shown = _described(store, batch)
        for pair in batch:
            decided = decisions.current(made, pair.first.identifier, pair.second.identifier)
            yield {
                "score": pair.score,
                "why": pair.reasons,
                "decision": decided and decided.decision,
                "by": decided and decided.by,
                "at": decided and decided.at,
                "records": [shown[one.id] for one in (pair.first, pair.second) if one.id in shown],
            }


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
