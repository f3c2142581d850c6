"""A worker: does the jobs of a store beside any number of other workers, on this machine and on others.

What is due is an entry of the store, which says when each job ended last. Who begins a job takes the store's
permit for it, which ends with the process, however that ends: so a job is done by one worker at a time, and
one whose worker was killed is due as before and taken up by the next that looks. A harvest also takes the
permit for its host, so that no host is asked by two workers at once.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from os import getpid
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from indlet import logs
from indlet.errors import IndletError, StoreError
from indlet.model import JsonObject
from indlet.node.crawl_child import crawl_in_child
from indlet.node.harvests import Harvests
from indlet.node.indexing import EVERY, IndexJob
from indlet.node.jobs import write_job
from indlet.node.schedule import NotDone, Schedule, Work, next_run
from indlet.provider.pipeline import crawl_groups
from indlet.settings import Settings
from indlet.store import Store, configured_for

LOOK: Final = 2.0  # seconds between looks at what is due
_KEY: Final = "worker jobs"
_PAUSED: Final = "workers paused"
log = logging.getLogger("indlet.worker")


class WorkerJob(NamedTuple):
    """Lower priorities come first; of one, what is overdue the longest. `host` is who will be asked."""

    name: str
    priority: int
    every: str
    work: Work
    host: str = ""


@dataclass(frozen=True, slots=True)
class EndedJob:
    """What the store keeps of a job. Times are the store's, seconds since 1970."""

    ended: float
    error: str
    worker: str


class Worker:
    """Runs jobs in threads, up to `at_once`, until it is told to drain or to stop."""

    def __init__(self, store: Store, settings: Settings, at_once: int = 2, look: float = LOOK) -> None:
        self.name = f"{socket.gethostname()}-{getpid()}"
        self._store, self._settings = store, settings
        self._at_once, self._look = at_once, look
        self._harvests = Harvests(store, settings, Schedule(), lambda: None)
        self._index = IndexJob(store, settings)
        self._draining, self._stop = threading.Event(), threading.Event()
        self._guard = threading.Lock()
        self._running: dict[str, threading.Thread] = {}

    def drain(self) -> None:
        """Begin nothing more, and end when what is on has ended."""
        self._draining.set()

    @property
    def draining(self) -> bool:
        return self._draining.is_set()

    def stop(self) -> None:
        """Also cut short what is on: it is taken up again from its last commit."""
        self._draining.set()
        self._stop.set()

    def run(self) -> None:
        while not self._draining.is_set():
            try:
                self.look()
            except StoreError as e:  # the database restarts, say
                log.warning("%s; looking again", e)
            self._draining.wait(self._look)
        for thread in self.running().values():
            thread.join()

    def running(self) -> dict[str, threading.Thread]:
        with self._guard:
            return dict(self._running)

    def look(self) -> list[str]:
        """Begins what is due and what there is room for; the names of the jobs."""
        if paused(self._store):
            return []
        begun = []
        for job in self._due():
            with self._guard:
                if len(self._running) >= self._at_once:
                    break
                if job.name in self._running:
                    continue
                thread = threading.Thread(target=self._do, args=(job,), name=f"job {job.name}", daemon=True)
                self._running[job.name] = thread
            thread.start()
            begun.append(job.name)
        return begun

    def jobs(self) -> Iterator[WorkerJob]:
        """Everything that this worker could do, by the settings and by what the desk has decided."""
        if self._store.index_engine.engine != "embedded":  # that is an affair of each web node
            yield WorkerJob("index", 0, EVERY, self._index)
        for group in crawl_groups(self._settings):
            yield WorkerJob(f"crawl {', '.join(group.names)}", 1, group.every, self._crawl(group.names))
        for name, source in self._harvests.sources().items():
            every = source.every or self._settings.harvest.every
            if not source.paused:
                host = urlsplit(source.url).hostname or ""
                yield WorkerJob(f"harvest {name}", 2, every, self._harvests.work(name, source), host)
        for write in self._settings.write:
            yield WorkerJob(f"write {write.folder}", 3, write.every, write_job(self._store, write))

    def _due(self) -> list[WorkerJob]:
        ended, now = last_runs(self._store), self._store.now()
        due = [(job.priority, when, job) for job in self.jobs() if (when := _due_at(job, ended)) <= now]
        return [job for _, _, job in sorted(due, key=lambda entry: entry[:2])]

    def _do(self, job: WorkerJob) -> None:
        try:
            with contextlib.ExitStack() as permits:
                try:
                    permits.enter_context(self._store.job(_permit("job", job.name)))
                    if job.host:
                        permits.enter_context(self._store.job(_permit("host", job.host)))
                except StoreError:
                    return  # another worker is at it, or asks that host
                if _due_at(job, last_runs(self._store)) <= self._store.now():
                    self._carry_out(job)
        except Exception:
            log.exception("%s: its end could not be noted; it runs again", job.name)
        finally:
            with self._guard:
                del self._running[job.name]

    def _carry_out(self, job: WorkerJob) -> None:
        began, error = self._store.now(), ""
        try:
            job.work(self._stop)
        except IndletError as e:
            error = str(e)
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
            log.exception("%s: failed; it runs again when it is due", job.name)
        if self._stop.is_set():
            return  # cut short: still due
        ended = self._store.now()
        if job.name != "index" or error:
            outcome = {"error": error} if error else {}
            level = logging.WARNING if error else logging.INFO
            logs.event(
                "job", level, job=job.name, worker=self.name, seconds=round(ended - began, 3), **outcome
            )
        _note(self._store, job.name, EndedJob(ended, error[:500], self.name))

    def _crawl(self, names: tuple[str, ...]) -> Work:
        def work(stop: threading.Event) -> None:
            settings = configured_for(self._store, self._settings)
            done = crawl_in_child(settings, lambda summary: None, stop, names)
            if reasons := [f"{each.hierarchy}: {each.reason}" for each in done if each.reason]:
                raise NotDone("; ".join(reasons))

        return work


def pause(store: Store, on: bool) -> None:
    """No worker of the store begins a job until this is taken back; what is on goes on."""
    with store.write() as tx:
        tx.meta(_PAUSED, int(on))


def paused(store: Store) -> bool:
    with store.read() as view:
        return bool(view.meta(_PAUSED))


def last_runs(store: Store) -> dict[str, EndedJob]:
    with store.read() as view:
        return _read(view.meta(_KEY))


def _read(raw: bytes | None) -> dict[str, EndedJob]:
    kept: JsonObject = orjson.loads(raw) if raw else {}
    return {name: EndedJob(*told) for name, told in kept.items()}


def _note(store: Store, name: str, run: EndedJob) -> None:
    with store.write() as tx:
        kept = _read(tx.meta_value(_KEY, None)) | {name: run}
        told = {known: (last.ended, last.error, last.worker) for known, last in kept.items()}
        tx.meta(_KEY, orjson.dumps(told))


def _permit(kind: str, name: str) -> str:
    return f"{kind}-{blake2b(name.encode(), digest_size=8).hexdigest()}"


def _due_at(job: WorkerJob, ended: dict[str, EndedJob]) -> float:
    """When a job is due: at once if it never ran; never again if it has no interval."""
    last = ended.get(job.name)
    if last is None:
        return 0.0
    return next_run(job.every, last.ended) if job.every else float("inf")
