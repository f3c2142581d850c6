"""Every store gives the same answers (law 10): with one history, SQLite and PostgreSQL tell the same."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.contract.given import Clock
from tests.stores import KIND, on_postgresql, store_url

from indlet.model import Failure, Record, Stored, TermVector
from indlet.store import FileState, Store, View, open_store
from indlet.store.contract import PARTS

pytestmark = pytest.mark.skipif(not on_postgresql(), reason=f"needs PostgreSQL: {KIND}=postgresql")

NAMES = st.sampled_from(["a", "a;1", "a;2", "B", "é", "b"])
SETS = st.lists(st.sampled_from(["x", "x:y", "x:y:z", "w", "Ä"]), max_size=3).map(tuple)
ORIGINS = st.integers(0, 2)
RECORDS = st.builds(
    Record,
    NAMES,
    st.fixed_dictionaries({"title": st.lists(st.text(max_size=3), max_size=2)}),
    st.none() | st.dictionaries(st.sampled_from(["wing", "air"]), st.integers(1, 2)).map(TermVector.of),
    SETS,
    st.booleans(),
    st.sampled_from([b"", b"<dc/>"]),
    st.sampled_from(["", "r1", "r2"]),
    st.sampled_from([{}, {"url": "http://x/1"}, {"url": "é", "policy": "p1"}, {"url": "é", "policy": "p2"}]),
)
FAILURES = st.builds(
    Failure, NAMES, st.sampled_from(["get", "harvest"]), st.text(max_size=3), st.binary(max_size=2)
)
EVENTS = st.one_of(
    st.tuples(st.just("put"), ORIGINS, st.lists(RECORDS, max_size=5)),
    st.tuples(st.just("dated"), ORIGINS, st.lists(st.tuples(st.integers(0, 40), RECORDS), max_size=4)),
    st.tuples(st.just("delete"), ORIGINS, st.lists(NAMES, max_size=3)),
    st.tuples(st.just("forget"), ORIGINS, st.none()),
    st.tuples(st.just("name"), ORIGINS, st.tuples(st.sampled_from(["x", "x:y"]), st.text("ab", max_size=2))),
    st.tuples(st.just("fail"), ORIGINS, st.tuples(FAILURES, st.none() | st.integers(0, 9), st.booleans())),
    st.tuples(st.just("forgive"), ORIGINS, st.lists(NAMES, max_size=2)),
    st.tuples(st.just("files"), ORIGINS, st.lists(NAMES, max_size=3)),
    st.tuples(st.just("run"), ORIGINS, st.sampled_from(["running", "complete"])),
    st.tuples(st.just("sweep"), ORIGINS, st.none()),
)


def apply(store: Store, event: tuple[str, int, Any]) -> Any:
    what, number, given_ = event
    with store.write() as tx:
        origin = tx.origin("source" if number else "hierarchy", f"o{number}", {"n": number})
        match what:
            case "put":
                return tx.put(origin, given_)
            case "dated":
                return tx.put_dated([(origin, stamp, record) for stamp, record in given_])
            case "delete":
                return tx.delete(origin, given_)
            case "forget":
                return tx.forget(origin)
            case "name":
                tx.name_set(origin, *given_)
            case "fail":
                failure, due, new = given_
                tx.fail(origin, failure, due=due, new_attempt=new)
            case "forgive":
                tx.forgive(origin, given_)
            case "files":
                tx.put_files(origin, [FileState(p, p, 1, 2, "", "", "", "other", "") for p in given_])
                tx.drop_files(origin, given_[:1])
            case "run":
                tx.note_run(tx.start_run(origin, "crawl"), {"x": 1}, given_)
            case "sweep":
                tx.sweep()
    return None


def told(view: View) -> dict[str, Any]:
    """Everything that a snapshot tells. Numbers of records are each store's own."""
    everything = list(view.changes())
    ids = {s.id: s.identifier + str(s.origin) for s in everything}

    def plain(found: list[Stored]) -> list[Stored]:
        return [s._replace(id=0) for s in found]

    lists = {}
    for spec in (None, "x", "x:y", "Ä", "none"):
        for origins in (None, [], [1], [1, 3]):
            for since, until in ((None, None), (5, 20), (25, None)):
                for only in (False, True):
                    where: Any = {"set_spec": spec, "origins": origins, "since": since, "until": until}
                    where["metadata_only"] = only
                    lists[str(where)] = (
                        plain(view.page(3, **where)),
                        view.headers(9, **where),
                        list(view.originals(9, **where)),
                        view.count(**where),
                    )
    parts = [("raw",), ("vector", "positions"), ("properties",), ()]
    return {
        "changes": plain(everything),
        "lists": lists,
        "parts": [plain(list(view.changes(parts=chosen))) for chosen in parts],
        "newest": [plain(view.newest(3, set_spec=spec)) for spec in (None, "x")],
        "latest_ids": [
            (ids[i], seq) for o in (None, [1], []) for i, seq in view.latest_ids(4, before=9, origins=o)
        ],
        "by_id": [
            sorted(plain(list(view.by_id([*ids, 10**12], parts=chosen).values())), key=lambda s: s.seq)
            for chosen in (PARTS, ("metadata",))
        ],
        "get": [(got := view.get(n, o)) and got._replace(id=0) for n in "aBé" for o in (None, [1], [])],
        "same": [plain(view.same_resource(s)) for s in everything],
        "shared": view.shared_identifiers(),
        "documents": [sorted(view.documents(o, "a")) for o in (1, 2, 3)],
        "identifiers": [sorted(view.identifiers(o, live=live)) for o in (1, 2) for live in (True, False)],
        "withdrawn": [view.withdrawn(o, 3) for o in (1, 2, 3)],
        "sums": (view.totals(), view.datestamps(), view.latest(), view.latest([2]), view.last_seq()),
        "sets": (view.sets(), view.sets([2]), view.set_names(), view.addresses(9)),
        "origins": (view.origins(), view.origin("source", "o1"), view.state(1), view.failure_counts()),
        "failures": (list(view.failures()), list(view.failures(2)), list(view.open_failures(2))),
        "runs": ([r._replace(id=0) for r in view.runs()], [r._replace(id=0) for r in view.runs(1, 1)]),
        "files": ([list(view.files(o)) for o in (1, 2, 3)], view.file(1, "a")),
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(EVENTS, st.integers(0, 3)), max_size=12))
def test_two_stores_with_one_history_tell_the_same(events: list[tuple[tuple[str, int, Any], int]]) -> None:
    clock = Clock(20.0)
    with tempfile.TemporaryDirectory() as folder:
        urls = [store_url(Path(folder) / "data", postgresql) for postgresql in (False, True)]
        with open_store(urls[0], clock=clock) as one, open_store(urls[1], clock=clock) as other:
            for store in (one, other):
                store.note_answer(10)
            for event, pause in events:
                assert apply(one, event) == apply(other, event), event
                clock.now += pause
            with one.read() as view, other.read() as twin:
                assert told(view) == told(twin)
