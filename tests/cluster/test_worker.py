"""Workers of one store: each job once, none lost with its worker, one at a time for a host."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.stores import command_options, store_in

from indlet.cluster.worker import Worker, WorkerJob
from indlet.errors import StoreUnavailable, Unreachable
from indlet.node.job_entries import EndedJob, ask, last_runs, note_end, pause, permit
from indlet.node.schedule import SOON, Step, Work, rest_after
from indlet.settings import Crawl, Hierarchy, IndexEngine, Node, Settings, Source, Write
from indlet.store import Store


class Given(Worker):
    """A worker of given jobs."""

    def __init__(self, store: Store, *given: WorkerJob, at_once: int = 2, look: float = 0.05) -> None:
        super().__init__(store, Settings(), at_once, look)
        self._given = given

    def jobs(self) -> Iterator[WorkerJob]:
        yield from self._given

    def rest(self) -> None:
        for thread in self.running().values():
            thread.join()


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """The same store, as two processes have it."""
    with ExitStack() as stack:
        yield (
            stack.enter_context(store_in(tmp_path / "store")),
            stack.enter_context(store_in(tmp_path / "store")),
        )


def noting(done: list[str], name: str, seconds: float = 0.0) -> Work:
    def work(stop: threading.Event) -> None:
        done.append(name)
        stop.wait(seconds)

    return work


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_job_is_done_once_however_many_look(stores: tuple[Store, Store]) -> None:
    done: list[str] = []
    workers = [Given(store, WorkerJob("j", 1, "1h", noting(done, "j", 0.2))) for store in stores]
    for worker in workers * 3:
        worker.look()
    for worker in workers:
        worker.rest()
        worker.look()
        worker.rest()
    assert done == ["j"]
    assert last_runs(stores[0])["j"].error == ""


def test_a_worker_goes_on_at_once_with_what_no_other_is_at(stores: tuple[Store, Store]) -> None:
    """Whether a job has ended or another worker has it: the next one does not wait for the next look."""
    done: list[str] = []
    jobs = [WorkerJob(f"j{n}", n, "1h", noting(done, f"j{n}"), host=f"{n % 3}.example.org") for n in range(6)]
    worker = Given(stores[0], *jobs, at_once=1, look=3600.0)
    with stores[1].job(permit("job", "j0")), stores[1].job(permit("host", "2.example.org")):
        thread = threading.Thread(target=worker.run)
        thread.start()
        wait_for(lambda: len(last_runs(stores[1])) == 3)
    worker.drain()
    thread.join()
    assert done == ["j1", "j3", "j4"]


def test_jobs_run_again_when_they_are_due_and_in_their_order(stores: tuple[Store, Store]) -> None:
    done: list[str] = []
    jobs = [
        WorkerJob("write", 3, "1h", noting(done, "write")),
        WorkerJob("again", 2, "1s", noting(done, "again")),
        WorkerJob("once", 2, "", noting(done, "once")),
        WorkerJob("index", 0, "1h", noting(done, "index")),
    ]
    worker = Given(stores[0], *jobs, at_once=1)
    for _ in range(6):
        worker.look()
        worker.rest()
    assert done[0] == "index"
    assert sorted(done[1:3]) == ["again", "once"]
    assert done[3] == "write" or done[3:] == ["again", "write"]
    time.sleep(1.1)
    assert worker.look() == ["again"]
    worker.rest()


def test_no_host_is_asked_by_two_at_once(stores: tuple[Store, Store]) -> None:
    asking, most, guard = [0], [0], threading.Lock()

    def ask(stop: threading.Event) -> None:
        with guard:
            asking[0] += 1
            most[0] = max(most[0], asking[0])
        time.sleep(0.1)
        with guard:
            asking[0] -= 1

    jobs = [WorkerJob(f"harvest {n}", 2, "1h", ask, "one.example.org") for n in range(4)]
    workers = [Given(store, *jobs) for store in stores]
    until = time.monotonic() + 30
    while len(last_runs(stores[0])) < 4 and time.monotonic() < until:
        for worker in workers:
            worker.look()
        time.sleep(0.02)
    for worker in workers:
        worker.rest()
    assert (len(last_runs(stores[0])), most[0]) == (4, 1)


def test_a_failed_job_is_noted_and_waits_for_its_time(stores: tuple[Store, Store]) -> None:
    def fail(stop: threading.Event) -> None:
        raise Unreachable("the source is down; try later")

    worker = Given(stores[0], WorkerJob("j", 1, "1h", fail))
    worker.look()
    worker.rest()
    assert last_runs(stores[1])["j"].error == "the source is down; try later"
    assert worker.look() == []


def test_a_job_that_lost_the_store_is_due_as_before(stores: tuple[Store, Store]) -> None:
    done: list[str] = []

    def lose(stop: threading.Event) -> None:
        done.append("j")
        if len(done) == 1:
            raise StoreUnavailable("the server was restarted; run again")

    worker = Given(stores[0], WorkerJob("j", 1, "1d", lose))
    for _ in range(3):
        worker.look()
        worker.rest()
    assert done == ["j", "j"]
    assert last_runs(stores[1])["j"].error == ""


def test_a_job_that_loses_the_store_each_time_rests(
    stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def lose(stop: threading.Event) -> None:
        done.append("j")
        raise StoreUnavailable("it takes no changes now, being a standby")

    def look(times: int) -> None:
        for _ in range(times):
            worker.look()
            worker.rest()

    worker = Given(stores[0], WorkerJob("j", 1, "1d", lose))
    monkeypatch.setattr("indlet.cluster.worker.rest_after", lambda losses: 0.0 if losses == 1 else 1000.0)
    look(6)
    assert done == ["j"] * 3
    assert [rest_after(losses) for losses in (1, 2, 3, 1000)] == [SOON, 2 * SOON, 4 * SOON, 64 * SOON]


def test_a_source_that_another_process_still_reads_stays_due(stores: tuple[Store, Store]) -> None:
    with stores[1].write() as tx:
        origin = tx.origin("source", "s", {"url": "http://127.0.0.1:9/oai"})
    settings = Settings(
        node=Node(jobs=False), source=(Source("http://127.0.0.1:9/oai", name="s", every="1d"),)
    )
    worker = Worker(stores[0], settings)
    with stores[1].job(f"harvest-{origin}"):
        worker.look()
        for thread in worker.running().values():
            thread.join()
    assert "harvest s" not in last_runs(stores[0])
    assert "harvest s" in worker.look()
    worker.stop()
    for thread in worker.running().values():
        thread.join()


def test_what_a_desk_asked_of_the_index_says_why_it_failed(stores: tuple[Store, Store]) -> None:
    def refuse(stop: threading.Event) -> None:
        raise StoreUnavailable("the cluster does not answer")

    worker = Given(stores[0], WorkerJob("rebuild", 1, "1d", refuse))
    worker.look()
    worker.rest()
    assert last_runs(stores[1])["rebuild"].error == "the cluster does not answer"


def test_paused_workers_begin_nothing(stores: tuple[Store, Store]) -> None:
    done: list[str] = []
    worker = Given(stores[0], WorkerJob("j", 1, "1h", noting(done, "j")))
    pause(stores[1], True)
    assert worker.look() == []
    pause(stores[1], False)
    assert worker.look() == ["j"]
    worker.rest()


def test_a_worker_drains_and_what_is_cut_short_is_still_due(stores: tuple[Store, Store]) -> None:
    done: list[str] = []
    first = Given(stores[0], WorkerJob("long", 1, "1h", noting(done, "long", 30)))
    thread = threading.Thread(target=first.run)
    thread.start()
    wait_for(lambda: done == ["long"])
    first.drain()
    time.sleep(0.2)
    assert thread.is_alive()
    first.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert last_runs(stores[0]) == {}
    second = Given(stores[1], WorkerJob("long", 1, "1h", noting(done, "taken up")))
    second.look()
    second.rest()
    assert done == ["long", "taken up"]


KILLED = """
import sys, time
from pathlib import Path
from tests.cluster.test_worker import Given
from indlet.cluster.worker import WorkerJob
from tests.stores import store_in

def work(stop):
    Path(sys.argv[2]).touch()
    time.sleep(60)

with store_in(Path(sys.argv[1])) as store:
    Given(store, WorkerJob("j", 1, "1h", work, "h.example.org")).run()
"""


def test_a_killed_workers_job_is_taken_up_by_another(stores: tuple[Store, Store], tmp_path: Path) -> None:
    begun, done = tmp_path / "begun", list[str]()
    command = [sys.executable, "-c", KILLED, str(tmp_path / "store"), str(begun)]
    child = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    try:
        wait_for(begun.exists)
        other = Given(stores[0], WorkerJob("j", 1, "1h", noting(done, "j"), "h.example.org"))
        other.look()
        other.rest()
        assert done == []
    finally:
        child.kill()
        child.wait()

    def taken_up() -> bool:
        other.look()
        other.rest()
        return done == ["j"]

    wait_for(taken_up)


def test_what_a_worker_does_follows_from_the_settings(stores: tuple[Store, Store], tmp_path: Path) -> None:
    settings = Settings(
        hierarchy=(Hierarchy(name="papers", root=str(tmp_path)),),
        crawl=Crawl(every="1h"),
        source=(
            Source(url="http://one.example.org/oai", name="one"),
            Source(url="http://x/oai", paused=True),
        ),
        index=IndexEngine("opensearch", ("http://127.0.0.1:9",)),
    )
    with stores[0].write() as tx:
        tx.origin("source", "dropped", {"url": "http://two.example.org/oai"})  # once in the settings
    found = {job.name: (job.priority, job.host) for job in Worker(stores[0], settings).jobs()}
    assert found == {
        "index": (0, ""),
        "crawl papers": (1, ""),
        "harvest one": (2, "one.example.org"),
        "alerts": (4, ""),
        "documents": (5, ""),
    }


def test_a_crawl_is_due_as_before_while_another_process_crawls(
    stores: tuple[Store, Store], tmp_path: Path
) -> None:
    settings = Settings(hierarchy=(Hierarchy(name="papers", root=str(tmp_path)),), crawl=Crawl(every="1h"))
    worker = Worker(stores[0], settings)
    with stores[1].job("crawl"):
        assert "crawl papers" in worker.look()
        for thread in worker.running().values():
            thread.join()
    assert "crawl papers" not in last_runs(stores[0])


def test_the_command_crawls_and_drains(tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "a.txt").write_text("heated wings of aeroplanes")
    options = command_options(tmp_path / "store")
    config = Path(options[options.index("--config") + 1]) if "--config" in options else tmp_path / "i.toml"
    with config.open("a") as file:
        file.write(f'[crawl]\nevery = "1h"\n[[hierarchy]]\nname = "papers"\nroot = "{papers}"\n')
    command = [
        sys.executable,
        "-m",
        "indlet",
        "worker",
        "--data",
        str(tmp_path / "store"),
        "-c",
        str(config),
    ]
    child = subprocess.Popen(command)
    try:
        with store_in(tmp_path / "store") as store:
            wait_for(lambda: "crawl papers" in last_runs(store), 60)
            child.send_signal(signal.SIGTERM)
            assert child.wait(30) == 0
            with store.read() as view:
                assert view.last_seq() == 1
    finally:
        child.kill()
        child.wait()


def test_the_steps_of_a_round_keep_their_order(stores: tuple[Store, Store]) -> None:
    done: list[str] = []
    jobs = (
        WorkerJob("write x", 3, "1h", noting(done, "write"), step=Step.WRITE, after_changes=True),
        WorkerJob("harvest lanl", 2, "1d", noting(done, "harvest"), step=Step.HARVEST),
        WorkerJob("crawl larc", 1, "1h", noting(done, "read"), step=Step.READ),
    )
    worker = Given(stores[0], *jobs, at_once=5)
    begun = []
    for _ in range(4):
        begun.append(worker.look())
        worker.rest()
    assert begun == [["crawl larc"], ["harvest lanl"], ["write x"], []]
    ended = last_runs(stores[0])["write x"]
    note_end(stores[0], "harvest lanl", EndedJob(ended.ended + 0.001, "", "other"))
    wait_for(lambda: worker.look() == ["write x"])  # what a harvest brought is written at its end
    worker.rest()


def test_the_desk_asks_for_any_job(stores: tuple[Store, Store], tmp_path: Path) -> None:
    settings = Settings(write=(Write(str(tmp_path)),), node=Node(jobs=False))
    ask(stores[0], f"write {tmp_path}")
    jobs = {job.name: job for job in Worker(stores[0], settings).jobs()}
    assert jobs[f"write {tmp_path}"].request is not None
