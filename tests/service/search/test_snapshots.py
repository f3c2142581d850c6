"""One thread makes a new snapshot ready; who asks meanwhile is answered from the one before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from indlet.errors import IndexDamaged
from indlet.model import Record, TermVector
from indlet.service.index import Searcher, engines, follow
from indlet.service.index.embedded import manifest as manifests
from indlet.service.index.engines import index_of
from indlet.service.index.expression import Term
from indlet.service.search.snapshots import Snapshots
from indlet.store import Store

LONG = 30.0  # seconds: far more than anything here takes


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path)


def add(store: Store, name: str) -> None:
    with store.write() as tx:
        tx.put(tx.origin("source", "s"), [Record(f"oai:{name}", {}, TermVector.of({"all": 1, name: 1}))])
    follow.catch_up(store)


class Slow:
    """Prepares snapshots, and from the second on only when it is let."""

    def __init__(self) -> None:
        self.let, self.begun = threading.Event(), threading.Event()
        self.prepared: list[Searcher] = []

    def __call__(self, searcher: Searcher) -> None:
        if self.prepared:
            self.begun.set()
            assert self.let.wait(LONG)
        self.prepared.append(searcher)


def test_while_a_snapshot_is_made_ready_the_one_before_answers(store: Store) -> None:
    slow = Slow()
    add(store, "one")
    snapshots = Snapshots(index_of(store), slow, patience=0.01)
    before = snapshots.newest()
    assert snapshots.newest() is before
    add(store, "two")
    assert snapshots.newest() is before  # waits for a moment only
    assert slow.begun.wait(LONG)
    with ThreadPoolExecutor(8) as pool:
        assert all(one is before for one in pool.map(lambda _: snapshots.newest(), range(32)))
    slow.let.set()
    while (after := snapshots.newest()) is before:
        pass
    assert (_df(before), _df(after)) == (1, 2)
    assert slow.prepared == [before, after]  # each once, however many asked
    snapshots.close()


def test_a_small_index_is_ready_at_once(store: Store) -> None:
    add(store, "one")
    snapshots = Snapshots(index_of(store), lambda searcher: None, patience=LONG)
    for number, name in enumerate(("two", "three", "four"), 2):
        add(store, name)
        assert _df(snapshots.newest()) == number
    snapshots.close()


def test_without_patience_the_last_commit_is_seen_and_prepared_once(store: Store) -> None:
    prepared: list[Searcher] = []
    snapshots = Snapshots(index_of(store), prepared.append)
    assert _df(snapshots.newest()) == 0
    add(store, "one")
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: snapshots.newest(), range(32)))
    assert len(found) == 1 and _df(found.pop()) == 1
    assert len(prepared) == 2
    snapshots.close()


@pytest.mark.parametrize("patience", [None, LONG, 0.0])
def test_damage_is_told_and_a_repaired_index_is_served(store: Store, patience: float | None) -> None:
    add(store, "one")
    snapshots = Snapshots(index_of(store), lambda searcher: None, patience)
    before = snapshots.newest()
    (engines.folder(store) / manifests.NAME).write_text("{")
    with pytest.raises(IndexDamaged):
        _until(snapshots, lambda found: found is not before)
    follow.rebuild(store)
    assert _df(_until(snapshots, lambda found: found is not before)) == 1
    snapshots.close()


def test_a_time_out_within_the_preparation_is_told_and_the_next_question_tries_again(store: Store) -> None:
    trouble: list[Exception] = []

    def prepare(searcher: Searcher) -> None:
        if trouble:
            raise trouble.pop()

    add(store, "one")
    snapshots = Snapshots(index_of(store), prepare, patience=LONG)
    snapshots.newest()
    add(store, "two")
    trouble.append(TimeoutError("the disk does not answer"))
    with pytest.raises(TimeoutError, match="the disk"):
        snapshots.newest()
    assert _df(snapshots.newest()) == 2
    snapshots.close()


def test_where_no_thread_can_be_started_the_next_question_tries_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    add(store, "one")
    snapshots = Snapshots(index_of(store), lambda searcher: None, patience=LONG)
    snapshots.newest()
    add(store, "two")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_room)
        with pytest.raises(RuntimeError, match="new thread"):
            snapshots.newest()
    assert _df(snapshots.newest()) == 2
    snapshots.close()


def _until(snapshots: Snapshots, wanted: Callable[[Searcher], bool]) -> Searcher:
    while not wanted(found := snapshots.newest()):
        pass
    return found


def _df(searcher: Searcher) -> int:
    return sum(term.df for term in searcher.query_terms(Term("all")))
