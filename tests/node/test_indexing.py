"""The index is kept in step beside the requests: a few changes here, many in another process."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from indlet import process
from indlet.errors import IndexBusy, StoreError
from indlet.model import Record, TermVector
from indlet.node import children
from indlet.node.indexing import HERE, IndexJob, index_in_child
from indlet.node.schedule import Schedule
from indlet.service.index import engines, follow
from indlet.service.index.embedded.engine import Engine
from indlet.settings import Settings
from indlet.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "data")


def put(store: Store, count: int) -> None:
    with store.write() as tx:
        records = [Record(f"oai:x:{n}", {}, TermVector.of({"zebra": 1, f"t{n}": 1})) for n in range(count)]
        tx.put(tx.origin("source", "s"), records)


def job(store: Store, few: int) -> IndexJob:
    # The settings name another data folder: the store's own counts.
    return IndexJob(store, Settings(), few=few, idle=0.0)


NEVER = threading.Event()


def found(store: Store) -> int:
    with Engine.open(engines.folder(store)) as engine:
        return engine.searcher().df("zebra")


@pytest.mark.parametrize("few", [100, 0])
def test_the_index_is_brought_up_to_the_store(store: Store, few: int) -> None:
    put(store, 5)
    job(store, few)(NEVER)
    assert found(store) == 5
    assert follow.lag(store) == (5, 5)
    job(store, few)(NEVER)  # and there is nothing left to do


@pytest.mark.parametrize("few", [100, 0])
def test_another_that_writes_the_index_is_let(store: Store, few: int) -> None:
    put(store, 5)
    with Engine.open(engines.folder(store), writable=True):
        job(store, few)(NEVER)
        assert follow.lag(store) == (5, 0)
        with pytest.raises(IndexBusy):
            index_in_child(store, Settings())
    job(store, few)(NEVER)
    assert found(store) == 5


def test_what_the_child_has_against_it_is_told(store: Store) -> None:
    put(store, 5)
    (store.local_folder / "index").write_text("no folder")
    with pytest.raises(StoreError, match="index"):
        index_in_child(store, Settings())


def test_an_index_is_made_anew_in_a_child(store: Store) -> None:
    put(store, 5)
    follow.catch_up(store)
    progress = index_in_child(store, Settings(), rebuild=True)
    assert progress is not None and (progress.applied, progress.position) == (5, 5)
    assert found(store) == 5


def test_a_stop_ends_the_child(store: Store) -> None:
    put(store, 5)
    stop = threading.Event()
    stop.set()
    done = index_in_child(store, Settings(), stop, idle=600.0)
    assert done is None or done.applied == 5  # it may have been faster


def test_a_child_that_has_died_is_told_nothing() -> None:
    with process.start("this", stdin=subprocess.PIPE) as child:
        child.wait()
        process.send_task(child, "stays in the buffer")
    assert child.returncode is not None


def test_the_child_stays_while_changes_come(store: Store) -> None:
    """One process indexes during a harvest, not one for each few seconds of it."""
    put(store, 5)
    ended = threading.Event()
    told: list[follow.CaughtUp | None] = []

    def run() -> None:
        told.append(index_in_child(store, Settings(), idle=6.0))
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    for count in range(6, 9):
        while follow.lag(store)[1] < count - 1:
            assert not ended.wait(0.02)
        put(store, count)
    assert ended.wait(60)
    assert told[0] is not None and told[0].position == follow.lag(store)[0]
    assert found(store) == 8


def test_an_index_that_is_made_anew_does_not_wait_for_a_quiet_moment(store: Store) -> None:
    put(store, 5)
    follow.catch_up(store)
    (engines.folder(store) / "manifest.json").write_text("damaged")
    IndexJob(store, Settings(), idle=600.0)(NEVER)
    assert found(store) == 5


def test_merges_are_left_to_the_child(store: Store) -> None:
    here = job(store, 100)
    for count in range(1, HERE + 1):
        put(store, count)
        here(NEVER)
    with Engine.open(engines.folder(store)) as engine:
        assert len(engine.searcher().segments) == HERE  # as many as had better be one
    put(store, HERE + 1)
    here(NEVER)
    with Engine.open(engines.folder(store)) as engine:
        assert len(engine.searcher().segments) < HERE
    assert found(store) == HERE + 1


def test_a_child_has_a_lower_priority_before_it_does_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "says_priority.py").write_text(
        "import os, sys\n"
        "sys.stdin.buffer.read(1)\n"
        "print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said: list[bytes] = []
    assert children.run("says_priority", "a task", said.append) == 0
    priority = min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)
    assert said == [b"%d %d\n" % (priority, os.SCHED_BATCH)]


def test_the_job_works_when_woken_and_ends_when_told(store: Store) -> None:
    with Schedule() as schedule:
        schedule.add("index", "1h", job(store, 100))
        put(store, 5)
        while follow.lag(store)[1] < 5:
            schedule.wake("index")
    assert found(store) == 5
