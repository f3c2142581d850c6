"""One order of changes with many writers, pages, byte order, permits that end with their process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from tests.store.contract.given import Clock, Make, listed, record

from indlet.errors import StoreError
from indlet.model import Failure, Record
from indlet.store import FileState, Store, open_store
from indlet.store.kept_tables import COUNTERS, KEPT_TABLES, LEFT_OUT, Counter, LeftOut

WRITERS, BATCHES = 4, 12


def test_a_follower_misses_nothing_while_many_write(make: Make) -> None:
    stores = [make() for _ in range(WRITERS)]
    with stores[0].write() as tx:
        origin = tx.origin("source", "s")
    followed: dict[int, str] = {}
    ended = threading.Event()

    def write(number: int) -> None:
        for batch in range(BATCHES):
            names = [f"{number}-{batch}-{i}" for i in range(5)]
            with stores[number].write() as tx:
                tx.put(origin, [record(name) for name in names])
                tx.delete(origin, [f"oai:x.org:{number}-{batch - 1}-0"])

    def follow() -> None:
        with_store, position = make(), 0
        while True:
            last = ended.is_set()
            with with_store.read() as view:
                for stored in view.changes(position):
                    assert stored.seq not in followed
                    followed[stored.seq] = stored.identifier
                    position = stored.seq
            if last:
                return

    writers = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
    follower = threading.Thread(target=follow)
    for thread in (follower, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    ended.set()
    follower.join()
    with stores[0].read() as view:
        everything = list(view.changes())
    assert len(everything) == WRITERS * BATCHES * 5
    assert {s.seq: s.identifier for s in everything}.items() <= followed.items()
    stamps = [s.datestamp for s in everything]
    assert stamps == sorted(stamps)
    for bound in set(stamps):
        assert listed(stores[0], since=bound) == [s for s in everything if s.datestamp >= bound]


@pytest.mark.parametrize("set_spec", [None, "a", "a:b", "none"])
def test_pages_of_any_size_make_one_list(store: Store, clock: Clock, set_spec: str | None) -> None:
    with store.write() as tx:
        origin, other = tx.origin("source", "s"), tx.origin("source", "t")
        tx.put(origin, [record(f"{n:02}", sets=("a:b",) if n % 2 else ("a", "c")) for n in range(23)])
    clock.now += 3
    with store.write() as tx:
        tx.put(other, [record("other")])
        tx.delete(origin, [f"oai:x.org:{n:02}" for n in range(0, 23, 5)])
    wheres: list[dict[str, Any]] = [
        {}, {"origins": [origin]}, {"since": 1_000_001}, {"until": 1_000_000}, {"origins": []},
    ]  # fmt: skip
    for where in wheres:
        whole = listed(store, set_spec=set_spec, **where)
        with store.read() as view:
            assert view.count(set_spec=set_spec, **where) == len(whole)
            for size in (1, 7, 100):
                after, pages, heads = 0, [], []
                while page := view.page(size, after=after, set_spec=set_spec, **where):
                    heads += view.headers(size, after=after, set_spec=set_spec, **where)
                    pages += page
                    after = page[-1].seq
                assert pages == whole
                assert heads == [(s.seq, s.identifier, s.datestamp, s.deleted, s.sets) for s in whole]
            assert list(view.originals(100, set_spec=set_spec, **where)) == [
                (s.seq, s.identifier, s.datestamp, s.sets, None if s.deleted else s.raw) for s in whole
            ]


def test_text_is_in_the_order_of_its_bytes(store: Store) -> None:
    names = ["a", "B", "Ä", "z", "_", "a-b", "ab", "ａ", "\U0001f40d", "a;1", "a;2", "a<", "a;"]
    specs = ["a", "B", "Ä", "z", "_", "a-b", "ab"]
    with store.write() as tx:
        origin = tx.origin("hierarchy", "h")
        tx.put(origin, [Record(name, sets=tuple(specs)) for name in names])
        tx.put_files(origin, [FileState(name, "", 1, 1, "", "", "", "other", "") for name in names])
        for name in names:
            tx.fail(origin, Failure(name, "extract", "broken"))
    by_bytes = sorted(names, key=str.encode)
    with store.read() as view:
        assert [file.path for file in view.files(origin)] == by_bytes
        assert [failure.where for failure in view.failures()] == by_bytes
        assert [spec for spec, _ in view.sets()] == sorted(specs, key=str.encode)
        assert sorted(view.documents(origin, "a")) == ["a", "a;1", "a;2"]


def test_a_transaction_may_put_and_delete_many_times(store: Store) -> None:
    with store.write() as tx:
        origin = tx.origin("source", "s")
        assert tx.put(origin, []) == 0
        assert tx.put(origin, [record("one"), record("two")]) == 2
        assert tx.put(origin, [record("two"), record("three")]) == 1
        assert tx.delete(origin, ["oai:x.org:one", "oai:x.org:one"]) == 1
        assert tx.put(origin, [record("one", "again")]) == 1
    assert [s.identifier[-3:] for s in listed(store)] == ["two", "ree", "one"]
    assert len({s.id for s in listed(store)}) == 3


def test_the_last_runs_of_many_origins_are_asked_for_together(store: Store) -> None:
    with store.write() as tx:
        origins = [tx.origin("source", f"s{number}") for number in range(120)]
        for origin in origins[1:]:
            for records in range(3):
                tx.note_run(tx.start_run(origin, "harvest"), {"records": records}, "complete")
    with store.read() as view:
        found = view.recent_runs(origins, 2)
        assert found.keys() == set(origins[1:])
        assert all([run.detail["records"] for run in runs] == [2, 1] for runs in found.values())
        assert found[origins[-1]] == view.runs(origins[-1], 2) and view.recent_runs([], 2) == {}


def test_an_origin_can_get_another_name_unless_that_is_taken(store: Store) -> None:
    with store.write() as tx:
        origin, _ = tx.origin("source", "old"), tx.origin("source", "taken")
        tx.origin("hierarchy", "new")
        tx.put(origin, [record("one")])
    with store.write() as tx:
        assert not tx.rename_origin("source", "old", "taken")
        assert tx.rename_origin("source", "old", "new")
    with store.read() as view:
        assert [o.name for o in view.origins("source")] == ["new", "taken"]
        found = view.origin("source", "new")
        assert found is not None and found.id == origin and view.totals()[origin] == (1, 0)


def test_a_backup_is_written_or_the_tool_for_it_is_named(store: Store, tmp_path: Path) -> None:
    with store.write() as tx:
        tx.put(tx.origin("source", "s"), [record("one")])
    place = tmp_path / "b" / "store.sqlite"
    place.parent.mkdir()
    if store.location.startswith("postgresql"):
        with pytest.raises(StoreError, match="pg_dump --format=custom") as told:
            store.back_up(place)
        assert "pg_restore" in str(told.value) and not place.exists()
        return
    store.back_up(place)
    with open_store(place.parent, create=False) as copy, copy.read() as view:
        assert [s.identifier for s in view.changes()] == ["oai:x.org:one"]


def test_odd_text_is_no_crash(store: Store) -> None:
    with store.write() as tx:
        origin = tx.origin("source", "s")
        tx.put(origin, [Record("oai:x\0y", {"title": ["a\0b"]}, properties={"url": "http://x/\0"})])
        tx.fail(origin, Failure("a\0b", "harvest", "it says \0 here", b"\0raw"))
        tx.state(origin, {"note": "\0 and \ud7ff"})
    with store.read() as view:
        assert view.count() == 1
        assert view.get("oai:no\0such") is None
        assert [failure.raw for failure in view.failures()] == [b"\0raw"]
        assert view.state(origin) == {"note": "\0 and \ud7ff"}
        assert [url for *_, url in view.addresses(10)] == ["http://x/\0"]
        (stored,) = view.changes()
        assert stored.record.metadata == {"title": ["a\0b"]}


def test_rows_of_small_tables_are_replaced_and_removed_one_by_one(store: Store) -> None:
    with store.write() as tx:
        tx.upsert(LEFT_OUT, [LeftOut(origin, n, f"p{n}", "") for origin in (1, 2) for n in (1, 0)])
        tx.upsert(LEFT_OUT, [LeftOut(1, 0, "other", "why")])
        tx.remove(LEFT_OUT, origin=2, number=1)
        tx.count_up("set_names")
        tx.count_up("set_names")
        assert tx.select(LEFT_OUT, origin=2) == [LeftOut(2, 0, "p0", "")]
    with store.read() as view:
        assert view.select(LEFT_OUT, origin=1) == [LeftOut(1, 0, "other", "why"), LeftOut(1, 1, "p1", "")]
        assert view.select(COUNTERS, name="set_names") == [Counter("set_names", 2)]
    with store.write() as tx:
        tx.remove(LEFT_OUT)
        assert tx.select(LEFT_OUT) == []


def test_every_small_table_keeps_a_row_of_its_type(store: Store) -> None:
    samples: dict[type, object] = {int: 2**40, float: 0.5, str: "é", bytes: b"\0"}
    for table in KEPT_TABLES:
        row = table.row(*(samples[kind] for kind in get_type_hints(table.row).values()))
        with store.write() as tx:
            tx.upsert(table, [row])
        with store.read() as view:
            assert row in view.select(table)


def test_single_values_keep_their_type(store: Store) -> None:
    with store.write() as tx:
        for key, value in (("number", 7), ("text", "sieben"), ("bytes", b"\0\xff"), ("half", 0.5)):
            tx.meta(key, value)
            assert tx.meta_value(key, None) == value
        tx.meta("number", tx.meta_value("number", 0) + 1)
        assert tx.meta_value("missing", "default") == "default"
    with store.read() as view:
        assert [view.meta(key) for key in ("number", "text", "bytes", "half", "missing")] == [
            8, "sieben", b"\0\xff", 0.5, None,
        ]  # fmt: skip


def test_what_records_have_left_is_swept_and_nothing_else(store: Store) -> None:
    with store.write() as tx:
        origin = tx.origin("source", "s")
        tx.put(origin, [record("one"), record("two")])
    with store.write() as tx:
        tx.put(origin, [record("one", "moved", sets=("c",))])
    before = {spec: listed(store, set_spec=spec) for spec in ("a", "a:b", "c")}
    with store.write() as tx:
        tx.sweep()
    assert {spec: listed(store, set_spec=spec) for spec in before} == before
    live = [[one for one in found if not one.deleted] for found in before.values()]
    assert [len(found) for found in live] == [1, 1, 1]


def test_what_is_forgotten_is_deleted_for_those_who_follow(store: Store) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "h")
        tx.put(origin, [record(str(n)) for n in range(900)])
        tx.put_files(origin, [FileState("p", "", 1, 1, "", "", "", "other", "")])
        tx.fail(origin, Failure("p", "extract", "broken"))
    with store.write() as tx:
        assert tx.forget(origin) == 900
    with store.read() as view:
        assert view.totals() == {origin: (0, 900)}
        assert view.failure_counts() == {}
        assert list(view.files(origin)) == []
        assert view.count(set_spec="a:b") == 900
        assert len(view.withdrawn(origin, 1000)) == 900


_CHILD = """
import sys, time
from indlet.model import Record
from indlet.store import open_store
with open_store(sys.argv[1]) as store, store.job("crawl"), store.write() as tx:
    tx.put(tx.origin("source", "killed"), [Record("oai:killed:1")])
    print("ready", flush=True)
    time.sleep(600)
"""


@contextmanager
def child(url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds a permit and is in the middle of a transaction."""
    with subprocess.Popen([sys.executable, "-c", _CHILD, url], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def test_a_killed_process_leaves_neither_a_permit_nor_half_a_transaction(
    make: Make, place_of: Callable[[str], str]
) -> None:
    store = make()
    with child(place_of("data")) as process:
        assert store.busy("crawl")
        with pytest.raises(StoreError, match="busy with 'crawl'"), store.job("crawl"):
            pass
        process.kill()
        process.wait()
    until = time.monotonic() + 20
    while store.busy("crawl"):
        assert time.monotonic() < until
        time.sleep(0.05)
    with store.job("crawl"), store.write() as tx:
        assert tx.put(tx.origin("source", "s"), [record("one")]) == 1
    with store.read() as view:
        assert [origin.name for origin in view.origins()] == ["s"]
        assert [s.identifier for s in view.changes()] == ["oai:x.org:one"]


def test_a_store_that_is_not_there_is_not_made_by_who_only_looks(new_place: Callable[[], str]) -> None:
    with pytest.raises(StoreError, match="no indlet store here"):
        open_store(new_place(), create=False)


def test_the_only_writer_is_waited_for(make: Make) -> None:
    """Transactions follow one another: what one has read stays true until it commits."""
    stores = [make() for _ in range(WRITERS)]

    def count(store: Store) -> None:
        for _ in range(10):
            with store.write() as tx:
                tx.meta("count", tx.meta_value("count", 0) + 1)

    threads = [threading.Thread(target=count, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with stores[0].read() as view:
        assert view.meta("count") == WRITERS * 10
