"""What a desk asks of the workers: done once, before what is due, by a worker and never by the web node."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.test_worker import Given
from tests.stores import store_in
from tests.web.nodes import settings_for

from indlet.cluster.worker import Worker, WorkerJob, table
from indlet.errors import SettingsError
from indlet.model import Failure, Record
from indlet.node.job_entries import ask, last_runs, requests, withdraw
from indlet.node.jobs import Jobs
from indlet.node.schedule import NotYet
from indlet.settings import IndexEngine, Node, Settings, Source
from indlet.store import Store

DEAD = Source(url="http://127.0.0.1:9/oai", name="dead", every="1h")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with store_in(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def web(store: Store, tmp_path: Path) -> Iterator[Jobs]:
    """A web node that leaves its jobs to workers."""
    jobs = Jobs(store, settings_of(store, tmp_path))
    jobs.begin()
    yield jobs
    jobs.schedule.close()


def settings_of(store: Store, folder: Path, **changes: Any) -> Settings:
    base = settings_for(folder / "store", source=(DEAD,), node=Node(jobs=False))
    return replace(base, store=replace(base.store, url=store.url if store.shared else ""), **changes)


def done_by_one(worker: Worker) -> list[str]:
    begun = worker.look()
    for thread in worker.running().values():
        thread.join()
    return [name for name in begun if name != "documents"]  # has nothing to do without full text


def test_a_request_is_done_once_and_before_what_is_due(store: Store) -> None:
    done: list[str] = []
    due = WorkerJob("index", 0, "1h", lambda stop: done.append("index"))

    def check(stop: threading.Event) -> str:
        done.append("check")
        return "well"

    class Asked(Given):
        def jobs(self) -> Iterator[WorkerJob]:
            yield due
            for name, request in requests(store).items():
                yield WorkerJob(name, -1, "", check, request=request)

    ask(store, "check")
    with pytest.raises(SettingsError, match="asked for already"):
        ask(store, "check")
    worker = Asked(store, at_once=1)
    for _ in range(3):
        done_by_one(worker)
    assert done == ["check", "index"]
    assert (requests(store), last_runs(store)["check"].said) == ({}, "well")


def test_a_request_outlives_a_run_that_was_cut_short_and_one_that_must_wait(store: Store) -> None:
    ask(store, "rebuild")
    wished = requests(store)["rebuild"]
    cut, begun = threading.Event(), threading.Event()

    def work(stop: threading.Event) -> None:
        begun.set()
        assert stop.wait(30)
        cut.set()

    worker = Given(store, WorkerJob("rebuild", -1, "", work, request=wished))
    worker.look()
    assert begun.wait(30)
    worker.stop()
    worker.rest()
    assert cut.is_set() and requests(store) == {"rebuild": wished}

    def later(stop: threading.Event) -> None:
        raise NotYet("another run is on")

    done_by_one(Given(store, WorkerJob("rebuild", -1, "", later, request=wished)))
    assert requests(store) == {"rebuild": wished} and last_runs(store) == {}


def test_a_run_whose_source_is_paused_at_a_desk_is_cut_short(store: Store) -> None:
    begun = threading.Event()

    def work(stop: threading.Event) -> None:
        begun.set()
        assert stop.wait(30)

    worker = Given(store, WorkerJob("harvest s", 2, "1h", work))
    worker.look()
    assert begun.wait(30)
    worker._given = ()
    worker.look()
    worker.rest()
    assert last_runs(store) == {}


def test_harvest_now_at_a_web_node_is_done_by_a_worker(web: Jobs, store: Store, tmp_path: Path) -> None:
    settings = settings_of(store, tmp_path, notify=replace(Settings().notify, every="1h"))
    worker = Worker(store, settings)
    done_by_one(worker)
    assert last_runs(store).keys() >= {"harvest dead", "alerts"}
    before = last_runs(store)["harvest dead"]
    web.harvests.start("dead", full=True)
    assert requests(store)["harvest dead"].full
    assert web.harvests.running()["dead"].phase == "waiting"
    with pytest.raises(SettingsError, match="asked for already"):
        web.harvests.start("dead")
    assert [job.name for job in web.schedule.jobs() if job.name != "index"] == []
    assert done_by_one(worker) == ["harvest dead"]
    after = last_runs(store)["harvest dead"]
    assert after.ended > before.ended and after.error and requests(store) == {}
    assert web.harvests.running() == {}
    assert web.harvests.next_runs()["dead"] == after.ended + 3600
    rows = {row.name: row for row in table(store, settings)}
    assert rows["harvest dead"].state == "failed" and rows["harvest dead"].due == after.ended + 3600


def test_pausing_takes_back_what_was_asked_for(web: Jobs, store: Store) -> None:
    web.harvests.start("dead")
    web.harvests.pause("dead", paused=True)
    assert requests(store) == {}
    web.harvests.start("dead")  # by hand, paused or not
    withdraw(store, "harvest dead")


def test_what_is_added_at_a_web_node_is_not_harvested_by_it(web: Jobs, store: Store) -> None:
    web.harvests.add(replace(DEAD, name="more"))
    assert [job.name for job in web.schedule.jobs() if job.name != "index"] == []
    names = [job.name for job in Worker(store, Settings()).jobs()]
    assert "harvest more" in names


def test_a_removal_with_records_is_left_to_a_worker(web: Jobs, store: Store, tmp_path: Path) -> None:
    name = web.harvests.add(replace(DEAD, name="more"))
    with store.write() as tx:
        tx.put(tx.origin("source", name), [Record(f"oai:m:{n}", {"title": ["T"]}) for n in range(3)])
    assert web.harvests.remove(name, records=True) == 3
    assert "more" not in web.harvests.sources() and "remove more" in requests(store)
    with store.read() as view:
        origin = view.origin("source", name)
    assert origin is not None
    worker = Worker(store, settings_of(store, tmp_path, source=()))
    with store_in(tmp_path / "store") as elsewhere, elsewhere.job(f"harvest-{origin.id}"):
        done_by_one(worker)  # still being harvested somewhere: it waits
        assert "remove more" in requests(store)
    done_by_one(worker)
    assert requests(store) == {} and last_runs(store)["remove more"].said == "3 records deleted"
    with store.read() as view:
        assert view.totals()[origin.id] == (0, 3)


def test_retries_are_collected(web: Jobs, store: Store) -> None:
    with store.write() as tx:
        origin = tx.origin("source", "dead")
        for number in (1, 2):
            tx.fail(origin, Failure(f"oai:d:{number}", "read", "broken"))
    for number in (1, 2, 1):
        web.harvests.retry("dead", [f"oai:d:{number}"])
    assert requests(store)["retry dead"].only == ("oai:d:1", "oai:d:2")
    assert "retry dead" in [job.name for job in Worker(store, Settings(source=(DEAD,))).jobs()]


def test_a_shared_index_is_no_affair_of_a_web_node(store: Store, tmp_path: Path) -> None:
    engine = IndexEngine("opensearch", ("http://127.0.0.1:9",))
    jobs = Jobs(store, replace(settings_of(store, tmp_path), index=engine))
    jobs.begin()
    jobs.schedule.close()
    assert jobs.schedule.jobs() == []
