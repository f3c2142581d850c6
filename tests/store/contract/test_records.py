"""Equal records do not move, deletions persist, datestamps never run backwards, snapshots hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.contract.given import Clock, Make, listed, record

from indlet.errors import StoreError
from indlet.model import Failure, TermVector
from indlet.store import FileState, Store, open_store


def test_a_record_comes_back_whole(store: Store) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "papers")
        assert tx.put(origin, [record("one")]) == 1
    with store.read() as view:
        stored = view.get("oai:x.org:one")
        assert stored is not None
        (light,) = view.by_id([stored.id], parts=("metadata",)).values()
    assert light == stored._replace(properties=b"", raw=b"", vector=None, positions=None)
    assert stored.record.metadata == {"title": ["one"]}
    assert stored.record.vector == TermVector.of({"wing": 1, "air": 1})
    assert stored.record.sets == ("a:b",)
    assert stored.datestamp == 1_000_000


def test_an_equal_record_does_not_move(store: Store, clock: Clock) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "papers")
        tx.put(origin, [record("one"), record("two")])
    before = listed(store)
    clock.now += 100
    with store.write() as tx:
        assert tx.put(origin, [record("one"), record("two", "other text")]) == 1
    after = {s.identifier: s for s in listed(store)}
    assert after["oai:x.org:one"] == before[0]
    assert after["oai:x.org:two"].datestamp == 1_000_100
    assert after["oai:x.org:two"].id == before[1].id


def test_deletions_persist_with_their_sets_and_can_be_undone(store: Store, clock: Clock) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "papers")
        tx.put(origin, [record("one"), record("two")])
    clock.now += 5
    with store.write() as tx:
        assert tx.delete(origin, ["oai:x.org:one", "oai:x.org:unknown"]) == 1
    (gone,) = listed(store, since=1_000_001)
    assert (gone.deleted, gone.sets, gone.vector, gone.datestamp) == (1, "a:b", None, 1_000_005)
    assert [s.identifier for s in listed(store, set_spec="a")] == ["oai:x.org:two", "oai:x.org:one"]
    with store.write() as tx:
        assert tx.delete(origin, ["oai:x.org:one"]) == 0
        assert tx.put(origin, [record("one")]) == 1
    assert [s.deleted for s in listed(store)] == [0, 0]


def test_datestamps_never_run_backwards(store: Store, clock: Clock) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "papers")
        tx.put(origin, [record("one")])
    clock.now -= 3600
    with store.write() as tx:
        tx.put(origin, [record("two")])
    assert [s.datestamp for s in listed(store)] == [1_000_000, 1_000_000]


def test_a_batch_is_stamped_when_it_becomes_visible(make: Make) -> None:
    ticks = iter([100.0, 100.9, 101.5, 101.6, 101.7])  # put, stamp, late? stamp, late?
    store = make(clock=lambda: next(ticks))
    with store.write() as tx:
        origin = tx.origin("hierarchy", "papers")
        tx.put(origin, [record("one")])  # stamped at 100.9, but the commit ends at 101.5
    assert [s.datestamp for s in listed(store)] == [101]
    assert [s.identifier for s in listed(store, since=101)] == ["oai:x.org:one"]
    assert listed(store, until=100) == []


def test_a_batch_that_is_stamped_again_leaves_the_counter_to_others(make: Make) -> None:
    """Between a commit that ran into the next second and its second stamp, another process may commit."""
    other = make(clock=lambda: 101.0)

    def ticks() -> Iterator[float]:
        yield from (100.0, 100.9)  # put, stamp
        with other.write() as tx:
            tx.put(tx.origin("hierarchy", "papers"), [record("two"), record("three")])
        while True:
            yield 101.5

    clock = ticks()
    store = make(clock=lambda: next(clock))
    with store.write() as tx:
        origin = tx.origin("hierarchy", "papers")
        tx.put(origin, [record("one")])
    assert [(s.identifier[-3:], s.seq, s.datestamp) for s in listed(store)] == [
        ("one", 1, 101), ("two", 2, 101), ("ree", 3, 101),
    ]  # fmt: skip
    with store.write() as tx:
        assert tx.put(origin, [record("four")]) == 1
    assert [s.seq for s in listed(store)] == [1, 2, 3, 4]


def test_of_two_records_with_one_identifier_the_last_stands(store: Store) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "papers")
        assert tx.put(origin, [record("one", "first"), record("two"), record("one", "last")]) == 2
    assert [(s.identifier, s.vector) for s in listed(store)] == [
        ("oai:x.org:two", b"1 air wing"), ("oai:x.org:one", b"1 last"),
    ]  # fmt: skip


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.write() as tx:
        origin = tx.origin("hierarchy", "papers")
        tx.put(origin, [record("one")])
        tx.fail(origin, Failure("x", "extract", "broken"))
        _ = 1 / 0
    with store.read() as view:
        assert view.origins() == []
        assert list(view.changes()) == []
        assert list(view.failures()) == []


def test_a_snapshot_holds_while_others_write(store: Store) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "papers")
        tx.put(origin, [record("one")])
    with store.read() as view:
        with store.write() as tx:
            tx.put(origin, [record("two")])
        assert view.count() == 1
    assert len(listed(store)) == 2


def test_sets_are_hierarchical_and_restricted_by_origin(store: Store) -> None:
    with store.write() as tx:
        open_, closed = tx.origin("hierarchy", "open"), tx.origin("hierarchy", "closed")
        tx.put(open_, [record("one", sets=("x:y:z",)), record("two", sets=("x",))])
        tx.put(closed, [record("three", sets=("x:secret",))])
        tx.name_set(open_, "x:y", "The Y folder")
    with store.read() as view:
        assert view.sets([open_]) == [("x", ""), ("x:y", "The Y folder"), ("x:y:z", "")]
        assert view.count(set_spec="x") == 3
        assert view.count(set_spec="x", origins=[open_]) == 2
        assert view.count(set_spec="x:y", origins=[open_]) == 1
        assert view.get("oai:x.org:three", [open_]) is None
        assert view.get("oai:x.org:three", [open_, closed]) is not None


def test_files_runs_failures_and_state(store: Store) -> None:
    seen = FileState("a/b.pdf", "a/b", 10, 5, "", "d1", "application/pdf", "primary", "p")
    with store.write() as tx:
        origin = tx.origin("hierarchy", "papers", {"root": "/x"})
        tx.put_files(origin, [seen, seen._replace(path="a/c.pdf")])
        tx.drop_files(origin, ["a/c.pdf"])
        tx.state(origin, {"position": 3})
        tx.fail(origin, Failure("a/b.pdf", "extract", "encrypted", b"raw"))
        run = tx.start_run(origin, "crawl")
        tx.note_run(run, {"added": 1}, "complete")
    with store.read() as view:
        assert list(view.files(origin)) == [seen]
        assert view.state(origin) == {"position": 3}
        assert view.origins("hierarchy")[0].settings == {"root": "/x"}
        assert [(f.where, f.reason, f.raw) for f in view.failures()] == [("a/b.pdf", "encrypted", b"raw")]
        assert view.runs()[0].outcome == "complete"
    with store.write() as tx:
        tx.forgive(origin, ["a/b.pdf"])
    with store.read() as view:
        assert view.failure_counts() == {}


def test_a_list_that_nobody_read_to_its_end_ends_with_its_snapshot(store: Store) -> None:
    with store.write() as tx:
        tx.put(tx.origin("source", "s"), [record(str(n)) for n in range(3)])
    with store.read() as view:
        unread = view.changes()
        assert next(unread).identifier == "oai:x.org:0"
    with store.write() as tx:
        tx.put(tx.origin("source", "s"), [record("new")])
    with store.read() as view:
        assert view.last_seq() == 4, "the next reader has a snapshot of its own"
    del unread


def test_a_second_job_is_told_so(store: Store) -> None:
    with store.job("crawl"), pytest.raises(StoreError, match="busy with 'crawl'"), store.job("crawl"):
        pass


def test_who_looks_sees_whether_a_job_is_done(store: Store) -> None:
    assert not store.busy("crawl")
    with store.job("crawl"):
        assert store.busy("crawl")
    assert not store.busy("crawl")


def test_a_store_tells_its_size_and_its_health(store: Store) -> None:
    assert store.size() > 0
    assert store.check() == []


def test_secrets_are_made_once(store: Store, make: Make) -> None:
    assert store.secret("token") == make().secret("token")


events = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete"]), st.integers(0, 5), st.text("ab ", max_size=4), st.integers(0, 2)
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(events, st.integers(1, 4))
def test_a_follower_of_the_feed_converges(
    new_place: Callable[[], str], happenings: list[tuple[str, int, str, int]], batch: int
) -> None:
    """Whoever reads the feed in any batches, between any changes, ends with what the store holds."""
    clock = Clock()
    with open_store(new_place(), clock=clock) as store:
        followed: dict[str, tuple[int, bytes | None]] = {}
        position = 0
        with store.write() as tx:
            origin = tx.origin("hierarchy", "h")
        for action, number, text, pause in happenings:
            clock.now += pause
            with store.write() as tx:
                if action == "put":
                    tx.put(origin, [record(str(number), text)])
                else:
                    tx.delete(origin, [f"oai:x.org:{number}"])
            with store.read() as view:
                for stored in view.changes(position, batch):
                    followed[stored.identifier] = (stored.deleted, stored.vector)
                    position = stored.seq
        with store.read() as view:
            for stored in view.changes(position):
                followed[stored.identifier] = (stored.deleted, stored.vector)
            everything = list(view.changes())
        assert followed == {s.identifier: (s.deleted, s.vector) for s in everything}
        assert [s.datestamp for s in everything] == sorted(s.datestamp for s in everything)
        for bound in {s.datestamp for s in everything}:
            assert listed(store, since=bound) == [s for s in everything if s.datestamp >= bound]
            assert listed(store, until=bound) == [s for s in everything if s.datestamp <= bound]


def test_own_datestamps_are_kept_in_order_while_nothing_later_was_given_out(
    store: Store, clock: Clock
) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "site")
        dated = [(origin, 700, record("new")), (origin, 500, record("old")), (origin, 500, record("same"))]
        assert tx.put_dated([*dated, (origin, 2_000_000, record("future"))]) == 4
    assert [(s.identifier[-4:], s.datestamp) for s in listed(store)] == [
        (":old", 500), ("same", 500), (":new", 700), ("ture", 1_000_000),
    ]  # fmt: skip
    assert [s.datestamp for s in listed(store, since=501, until=999)] == [700]
    assert [s.datestamp for s in listed(store, until=500)] == [500, 500]


def test_own_datestamps_that_a_harvester_would_miss_become_the_time_of_the_commit(
    store: Store, clock: Clock
) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "site")
        tx.put_dated([(origin, 700, record("one"))])
    store.note_answer(750)
    with store.write() as tx:
        tx.put_dated([(origin, 699, record("two")), (origin, 800, record("three"))])
    clock.now += 10
    with store.write() as tx:
        tx.put_dated([(origin, 999_999, record("four"))])  # earlier than what is there
        tx.delete(origin, ["oai:x.org:one"])
    stamps = {s.identifier.rpartition(":")[2]: s.datestamp for s in listed(store)}
    assert stamps == {"three": 800, "two": 1_000_000, "four": 1_000_010, "one": 1_000_010}


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), max_size=5), st.integers(0, 9),
                  st.booleans()),
        max_size=8,
    )
)  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_a_harvester_misses_no_record_with_a_datestamp_of_its_own(
    new_place: Callable[[], str], batches: list[tuple[list[tuple[int, int]], int, bool]]
) -> None:
    clock, harvested, since = Clock(20.0), dict[str, bytes](), 0
    with open_store(new_place(), clock=clock) as store:
        for number, (files, pause, harvests) in enumerate([*batches, ([], 1, True)]):
            with store.write() as tx:
                origin = tx.origin("hierarchy", "site")
                unique = {name: stamp for stamp, name in files}
                tx.put_dated(
                    [(origin, stamp, record(str(name), f"v{number}")) for name, stamp in unique.items()]
                )
            if harvests:
                answered = int(clock.now)
                store.note_answer(answered)
                harvested |= {s.identifier: s.vector or b"" for s in listed(store, since=since)}
                since = answered
            stamps = [s.datestamp for s in listed(store)]
            assert stamps == sorted(stamps)
            clock.now += pause
        assert harvested == {s.identifier: s.vector for s in listed(store)}


@given(
    st.lists(st.tuples(st.sampled_from(["put", "delete", "harvest"]), st.integers(0, 4), st.integers(-30, 9)))
)
@settings(deadline=None, max_examples=60)
def test_a_harvester_misses_nothing_whatever_the_clock_does(
    new_place: Callable[[], str], steps: list[tuple[str, int, int]]
) -> None:
    clock, harvested, since = Clock(1000.0), dict[str, tuple[int, bytes | None]](), 0
    with open_store(new_place(), clock=clock) as store:
        for number, (action, name, pause) in enumerate([*steps, ("harvest", 0, 0)]):
            with store.write() as tx:
                origin = tx.origin("hierarchy", "h")
                if action == "put":
                    tx.put(origin, [record(str(name), f"v{number}")])
                elif action == "delete":
                    tx.delete(origin, [f"oai:x.org:{name}"])
            if action == "harvest":
                answered = int(clock.now)
                store.note_answer(answered)
                harvested |= {s.identifier: (s.deleted, s.vector) for s in listed(store, since=since)}
                since = answered
            clock.now += pause
        assert harvested == {s.identifier: (s.deleted, s.vector) for s in listed(store)}


def test_an_answer_during_a_commit_dates_what_it_did_not_show(store: Store, clock: Clock) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "site")
    clock.now += 100
    with store.write() as tx:
        tx.put_dated([(origin, int(clock.now) - 50, record("file"))])
        tx.put(origin, [record("other")])
        store.note_answer(int(clock.now) + 7)  # by a clock that runs ahead, before the commit
        assert listed(store) == []
    assert {s.datestamp for s in listed(store)} == {int(clock.now) + 7}


def test_a_failure_that_occurs_again_keeps_its_beginning(make: Make) -> None:
    clock = Clock()
    with make(clock=clock) as store:
        with store.write() as tx:
            origin = tx.origin("source", "s")
            tx.fail(origin, Failure("x", "harvest", "broken", b"<x"), due=5)
        began = int(clock.now)
        clock.now += 100
        with store.write() as tx:
            tx.fail(origin, Failure("x", "fetch", "404"), due=7)
            tx.fail(origin, Failure("x", "fetch", "404 again"), due=8, new_attempt=False)
        with store.read() as view:
            (failure,) = view.failures()
    assert (failure.stage, failure.reason, failure.raw) == ("fetch", "404 again", b"<x")
    assert (failure.first, failure.at, failure.attempts, failure.due) == (began, began + 100, 2, 8)
