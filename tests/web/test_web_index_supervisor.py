"""The index is kept in step beside the requests: a few changes here, many in another process."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from indlet.errors import IndexBusy, StoreError
from indlet.model import Record, TermVector
from indlet.service.index import Engine, follow
from indlet.settings import Settings
from indlet.store import Store
from indlet.text import Analyzer, policy_of
from indlet.web.index_supervisor import Keeper, index_apart


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "data")


def put(store: Store, count: int) -> None:
    with store.write() as tx:
        records = [Record(f"oai:x:{n}", {}, TermVector.of({"zebra": 1, f"t{n}": 1})) for n in range(count)]
        tx.put(tx.origin("source", "s"), records)


def keeper(store: Store, few: int) -> Keeper:
    # The settings name another data folder: the store's own counts.
    settings = Settings()
    return Keeper(store, settings, Analyzer(policy_of(settings.analysis)), few=few)


def found(store: Store) -> int:
    with Engine.open(follow.folder(store)) as engine:
        return engine.searcher().df("zebra")


@pytest.mark.parametrize("few", [100, 0])
def test_the_index_is_brought_up_to_the_store(store: Store, few: int) -> None:
    put(store, 5)
    keeper(store, few).look()
    assert found(store) == 5
    assert follow.lag(store) == (5, 5)
    keeper(store, few).look()  # and there is nothing left to do


@pytest.mark.parametrize("few", [100, 0])
def test_another_that_writes_the_index_is_let(store: Store, few: int) -> None:
    put(store, 5)
    with Engine.open(follow.folder(store), writable=True), pytest.raises(IndexBusy):
        keeper(store, few).look()
    keeper(store, few).look()
    assert found(store) == 5


def test_what_the_child_has_against_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    with pytest.raises(StoreError, match="data"):
        index_apart(Settings(data=tmp_path / "data"))


def test_an_index_is_made_anew_apart(store: Store) -> None:
    put(store, 5)
    follow.catch_up(store)
    progress = index_apart(Settings(data=store.folder), anew=True)
    assert progress is not None and (progress.applied, progress.position) == (5, 5)
    assert found(store) == 5


def test_a_halt_ends_the_child(store: Store) -> None:
    put(store, 5)
    halt = threading.Event()
    halt.set()
    done = index_apart(Settings(data=store.folder), halt)
    assert done is None or done.applied == 5  # it may have been faster


def test_the_thread_works_when_woken_and_ends_when_told(store: Store) -> None:
    at_work = keeper(store, 100)
    at_work.start()
    put(store, 5)
    while follow.lag(store)[1] < 5:
        at_work.wake()
    at_work.stop()
    assert found(store) == 5
