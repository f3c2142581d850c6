"""Looks for records that may be of one work, in a process of its own: pairs for the desk, and alerts.

What was found is kept in the store with the change that it was found at, so nothing is compared twice while
nothing changes.
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from itertools import islice
from typing import Final
from zlib import crc32

import orjson

from indlet import process
from indlet.errors import StoreError, StoreUnavailable
from indlet.exchange.duplicates import decisions
from indlet.exchange.duplicates.listed import elsewhere, listed
from indlet.model import JsonObject
from indlet.node import children
from indlet.oai.dates import written
from indlet.settings import Settings
from indlet.store import Store, StoredAlert, open_configured

KIND: Final = "duplicates"
SHOWN: Final = 200  # pairs that are kept for the desk, and raise an alert; of more, the best
_FOUND: Final = "duplicates-found"
_REMEDY: Final = "compare the two and decide: /admin/duplicates, or  indlet duplicates"


def look(store: Store) -> int:
    """Find the pairs that nobody has decided on; how many are shown. Alerts follow them."""
    with store.read() as view:
        # What others decide changes no record.
        state = [view.last_seq(), crc32(view.meta(decisions.ELSEWHERE) or b"")]
        known = orjson.loads(view.meta(_FOUND) or b"{}")
        if known.get("state") == state:
            return len(known["pairs"])
    pairs = list(islice((pair for pair in listed(store) if len(pair["records"]) == 2), SHOWN))
    before, still = _raised(store), set(map(_name, pairs))
    with store.write() as tx:
        for alert in before:
            if alert.record not in still:
                tx.resolve_alerts(KIND, alert.source, [alert.record])
        for pair in pairs:
            first, second = pair["records"]
            said = f"{', '.join(pair['why'])}: {second['id']} of {second['source']}"
            tx.alert(KIND, str(first["source"]), _name(pair), said, _REMEDY)
        found = {"state": state, "at": written(int(store.now())), "pairs": pairs}
        tx.meta(_FOUND, orjson.dumps(found))
    return len(pairs)


def waiting(store: Store) -> tuple[str, list[JsonObject]]:
    """When pairs were looked for last, and those that nobody has decided on since."""
    with store.read() as view:
        found = orjson.loads(view.meta(_FOUND) or b"{}")
        own, others = decisions.decisions_in(view), decisions.elsewhere_in(view)
    pairs = [
        pair | {"elsewhere": elsewhere(others, decisions.pair_of(*_identifiers(pair)))}
        for pair in found.get("pairs", ())
        if not decisions.counting(own, others, *_identifiers(pair))
    ]
    return str(found.get("at", "")), pairs


def decided(store: Store) -> list[JsonObject]:
    """The decisions that count, the last one first, each with what other nodes say."""
    with store.read() as view:
        own, others = decisions.decisions_in(view), decisions.elsewhere_in(view)
    found = [
        (made, pair)
        for pair in own.keys() | others.keys()
        if (made := decisions.counting(own, others, *pair))
    ]
    found.sort(key=lambda one: (one[0].at, one[1]), reverse=True)
    return [
        {**asdict(made), "records": pair, "elsewhere": elsewhere(others, pair)}
        for made, pair in found[:SHOWN]
    ]


def pairs_at_desk(store: Store) -> JsonObject:
    """Pairs that wait, and pairs that were decided on."""
    return {"found": waiting(store), "decided": decided(store)}


def decide(store: Store, one: str, other: str, decision: str, by: str) -> None:
    """Keep what somebody decided; the alert about the two is over, or is raised again by the next look."""
    decisions.decide(store, one, other, decision, by=by)
    before = _raised(store)
    with store.write() as tx:
        for alert in before:
            if alert.record in (f"{one} {other}", f"{other} {one}"):
                tx.resolve_alerts(KIND, alert.source, [alert.record])
        if decision == "open":
            tx.meta(_FOUND, b"{}")


def duplicates_job(settings: Settings, stop: threading.Event) -> None:
    """The search as a job: it takes seconds of the processor, so it happens in a child process."""
    told: list[str] = []
    status = children.run(__name__, settings, lambda line: told.append(orjson.loads(line)), stop)
    if status and (told or not stop.is_set()):
        problem = told[-1] if told else f"ended with status {status}; see the log"
        lost = children.store_lost(status)
        raise (StoreUnavailable if lost else StoreError)(f"the search for duplicates: {problem}")


def _raised(store: Store) -> list[StoredAlert]:
    with store.read() as view:
        return [alert for alert in view.alerts(acknowledged=True) if alert.kind == KIND]


def _identifiers(pair: JsonObject) -> tuple[str, str]:
    first, second = pair["records"]
    return str(first["id"]), str(second["id"])


def _name(pair: JsonObject) -> str:
    return " ".join(_identifiers(pair))


def main() -> None:
    """The child."""
    settings = process.receive_task()
    with children.ending(), open_configured(settings) as store:
        look(store)


if __name__ == "__main__":
    main()
