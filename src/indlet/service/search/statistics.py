"""Store and index in numbers, for `indlet stats`, the API and the desk."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from indlet.model import JsonObject
from indlet.service.index import Searcher
from indlet.service.search.results import iso
from indlet.store import Store, View

# What an origin's settings and state may show to everybody: no tokens, no storage options.
_SHOWN_SETTINGS: Final = ("url", "title", "set", "from_", "until", "every", "metadata", "index", "base_url")

# What is for those who run a node: where and how things are stored, and how many changes there were.
_OPERATIONAL: Final = {"path", "bytes", "bytes_per_posting", "segments", "removed", "position", "lag"}


def of_index(searcher: Searcher, everything: bool) -> JsonObject:
    """Not `everything`: of a large index on a cluster neither the number of terms nor the fingerprint."""
    counted = searcher.stats(everything)
    return {
        "records": counted.documents,
        "terms": counted.terms,
        "postings": counted.postings,
        "length": counted.length,
        "average_length": counted.length / counted.documents if counted.documents else 0.0,
        "bytes": counted.bytes,
        "bytes_per_posting": counted.bytes / counted.postings if counted.postings else 0.0,
        "segments": counted.segments,
        "removed": counted.deleted,
        "position": counted.position,
        "fingerprint": searcher.fingerprint() if counted.terms is not None else "",
        "loss": searcher.loss,
    }


def _nothing(view: View) -> Collection[int]:
    return ()


def of_store(
    store: Store, index: JsonObject, hidden_in: Callable[[View], Collection[int]] = _nothing
) -> JsonObject:
    """The store in numbers, and beside them those of the index with its distance from the store."""
    with store.read() as view:
        hidden = hidden_in(view)
        newest = view.last_seq()
        origins = [origin for origin in view.origins() if origin.id not in hidden]
        shown = {origin.id for origin in origins}
        totals = {number: total for number, total in view.totals().items() if number in shown}
        failures = {number: count for number, count in view.failure_counts().items() if number in shown}
        # One formula whether something is hidden or not: which one it was would tell.
        first, last = view.headers(1, origins=shown), view.latest(shown)
        stamps = (first[0][2], last) if first and last is not None else None
    return {
        "store": {
            "path": store.location,
            "records": sum(live for live, _ in totals.values()),
            "deleted": sum(gone for _, gone in totals.values()),
            "failures": sum(failures.values()),
            "bytes": store.size(),
            "position": newest,
            "earliest": iso(stamps[0]) if stamps else None,
            "latest": iso(stamps[1]) if stamps else None,
            "sources": [
                {
                    "name": origin.name,
                    "kind": origin.kind,
                    "records": totals.get(origin.id, (0, 0))[0],
                    "deleted": totals.get(origin.id, (0, 0))[1],
                    "failures": failures.get(origin.id, 0),
                }
                for origin in origins
            ],
        },
        "index": index | {"lag": max(newest - index["position"], 0)},
    }


def for_everybody(counted: JsonObject) -> JsonObject:
    """Those numbers that tell of the records; not those of files and changes, in which hidden ones count."""
    return {
        part: {key: value for key, value in numbers.items() if key not in _OPERATIONAL}
        for part, numbers in counted.items()
    }


def sources(store: Store, hidden_in: Callable[[View], Collection[int]] = _nothing) -> list[JsonObject]:
    with store.read() as view:
        hidden = hidden_in(view)
        origins = [origin for origin in view.origins() if origin.id not in hidden]
        totals, failures = view.totals(), view.failure_counts()
        latest = {origin.id: view.runs(origin.id, 1) for origin in origins}
    listed = []
    for origin in origins:
        live, gone = totals.get(origin.id, (0, 0))
        run = next(iter(latest[origin.id]), None)
        listed.append(
            {
                "name": origin.name,
                "kind": origin.kind,
                **{
                    key.rstrip("_"): origin.settings[key]
                    for key in _SHOWN_SETTINGS
                    if origin.settings.get(key)
                },
                "records": live,
                "deleted": gone,
                "failures": failures.get(origin.id, 0),
                "last_run": None
                if run is None
                else {
                    "kind": run.kind,
                    "started": iso(int(run.started)),
                    "finished": iso(int(run.finished)) if run.finished else None,
                    "outcome": run.outcome,
                },
            }
        )
    return listed
