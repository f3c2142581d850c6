"""A worker: does the jobs of a store beside any number of other workers, on this machine and on others.

What is due is an entry of the store, which says when each job ended last; what a desk asks for is another
one, and comes first (job_entries.py). Who begins a job takes the store's permit for it, which ends with the
process, however that ends: so a job is done by one worker at a time, and one whose worker was killed is due
as before and taken up by the next that looks. A job that asks a host also takes the permit for that, so that
no host gets requests from two workers at the same time.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from os import getpid
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from indlet import logs
from indlet.errors import IndletError, StoreError, StoreUnavailable
from indlet.node import upkeep
from indlet.node.crawl_child import crawl_in_child
from indlet.node.harvests import Harvests
from indlet.node.indexing import EVERY, IndexJob
from indlet.node.job_entries import EndedJob, JobRequest, last_runs, note_end, paused, permit, requests
from indlet.node.jobs import extension_jobs
from indlet.node.schedule import (
    STEP_PATIENCE,
    Job,
    NotDone,
    NotYet,
    Schedule,
    Step,
    Work,
    next_run,
    rest_after,
)
from indlet.provider.pipeline import CrawlGroup, crawl_groups
from indlet.service.harvest.run import RunOptions
from indlet.service.index.engines import index_of
from indlet.settings import Settings, Source
from indlet.store import Store, configured_for, withheld
from indlet.wording import amount

LOOK: Final = 2.0  # seconds between looks at what is due
ASKED: Final = -1  # the priority of what somebody waits for
# Jobs that also fail where the cluster of the index does not answer; they say so.
OF_INDEX: Final = ("index", "check", "rebuild")
log = logging.getLogger("indlet.worker")


class WorkerJob(NamedTuple):
    """Lower priorities come first; of one, what is overdue the longest.

    `host` is the remote host, `lane` a disk that one job at a time reads. A `step` of a round waits for
    the earlier ones (schedule.py).
    """

    name: str
    priority: int
    every: str
    work: Work
    host: str = ""
    lane: str = ""
    request: JobRequest | None = None
    step: Step = Step.NONE
    after_changes: bool = False


class _Running(NamedTuple):
    thread: threading.Thread
    stop: threading.Event


class Worker:
    """Runs jobs in threads, up to `at_once`, until it has to drain or stop."""

    def __init__(self, store: Store, settings: Settings, at_once: int = 2, look: float = LOOK) -> None:
        self.name = f"{socket.gethostname()}-{getpid()}"
        self._store, self._settings = store, settings
        self._at_once, self._look = at_once, look
        self._harvests = Harvests(store, settings, Schedule(), lambda: None)
        self._index = IndexJob(store, settings)
        self._draining = threading.Event()
        self._wake = threading.Event()  # there is room for another job
        self._guard = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._taken: dict[str, float] = {}  # permits that others have, and until when nobody asks for them
        self._losses: dict[str, tuple[int, float]] = {}  # of the store, in a row; and until when a job rests

    def drain(self) -> None:
        """Begin nothing more, and end when what is on has ended."""
        self._draining.set()
        self._wake.set()

    @property
    def draining(self) -> bool:
        return self._draining.is_set()

    def stop(self) -> None:
        """Also cut short what is on: it is taken up again from its last commit."""
        self.drain()
        with self._guard:
            for running in self._running.values():
                running.stop.set()

    def run(self) -> None:
        while not self._draining.is_set():
            try:
                self.look()
            except StoreError as e:  # the database restarts, say
                log.warning("%s; looking again", e)
            self._wake.wait(self._look)
            self._wake.clear()
        for thread in self.running().values():
            thread.join()

    def running(self) -> dict[str, threading.Thread]:
        with self._guard:
            return {name: running.thread for name, running in self._running.items()}

    def look(self) -> list[str]:
        """Begins what is due and what there is room for; the names of the jobs."""
        known = {job.name: job for job in self.jobs()}
        self._stop_all_but(known)
        if paused(self._store):
            return []
        begun = []
        for job in self._due(known):
            with self._guard:
                if len(self._running) >= self._at_once:
                    break
                if job.name in self._running or time.monotonic() < self._losses.get(job.name, (0, 0.0))[1]:
                    continue
                if any(time.monotonic() < self._taken.get(name, 0.0) for name in _permits(job)):
                    continue
                stop = threading.Event()
                thread = threading.Thread(
                    target=self._do, args=(job, stop), name=f"job {job.name}", daemon=True
                )
                self._running[job.name] = _Running(thread, stop)
            thread.start()
            begun.append(job.name)
        return begun

    def jobs(self) -> Iterator[WorkerJob]:
        """Everything that this worker could do, by the settings and by what the desk has decided.

        What the desk asks for stands after what is done by the clock, and takes the place of a job so called.
        """
        sources, planned = self._harvests.sources(), dict[str, WorkerJob]()
        for job in self._scheduled_jobs(sources):
            planned[job.name] = job
            yield job
        for name, request in requests(self._store).items():
            if (asked := self._requested_job(name, request, sources)) is not None:
                yield asked
            elif name in planned:
                yield planned[name]._replace(priority=ASKED, request=request)

    def _scheduled_jobs(self, sources: dict[str, Source]) -> Iterator[WorkerJob]:
        """What is done by the clock."""
        if not self._settings.index.is_embedded:  # that is an affair of each web node
            yield WorkerJob("index", 0, EVERY, self._index)
        for group in crawl_groups(self._settings):
            yield self._crawl(group)
        on_schedule = self._harvests.on_schedule()
        for name, source in sources.items():
            every = source.every or self._settings.harvest.every
            if name in on_schedule and not source.paused:
                work = self._harvests.work(name, source)
                host = _host(source.url)
                yield WorkerJob(f"harvest {name}", 2, every, work, host, step=Step.HARVEST)
        for job in extension_jobs(self._store, self._settings):
            yield WorkerJob(
                job.name, job.priority, job.every, job.work, step=job.step, after_changes=job.after_changes
            )

    def _requested_job(self, job: str, request: JobRequest, sources: dict[str, Source]) -> WorkerJob | None:
        kind, _, name = job.partition(" ")
        store, settings = self._store, self._settings
        if kind in ("harvest", "retry"):
            if (source := sources.get(name)) is None:
                return None  # removed since
            options = RunOptions(full=request.full, only=request.only)
            work = self._harvests.work(name, replace(source, paused=False), options)
            every = source.every or settings.harvest.every if kind == "harvest" else ""
            return WorkerJob(job, ASKED, every, work, _host(source.url), request=request)
        works: dict[str, Work] = {
            "check": lambda stop: upkeep.check(store, index_of(store, settings.index).searcher()),
            "rebuild": lambda stop: upkeep.rebuild(store, settings, stop),
            "remove": lambda stop: f"{amount(self._harvests.forget(name), 'record')} deleted",
            "release": lambda stop: f"{amount(withheld.release(store, name), 'record')} deleted",
        }
        return WorkerJob(job, ASKED, "", works[kind], request=request) if kind in works else None

    def _stop_all_but(self, known: dict[str, WorkerJob]) -> None:
        """A run whose source was paused or removed at a desk is cut short."""
        with self._guard:
            for name, running in self._running.items():
                if name not in known:
                    running.stop.set()

    def _due(self, known: dict[str, WorkerJob]) -> list[WorkerJob]:
        ended, now = last_runs(self._store), self._store.now()
        at = {job.name: _due_at(job, ended) for job in known.values()}
        due = [(job.priority, at[job.name], job) for job in known.values() if at[job.name] <= now]

        def waits(job: WorkerJob) -> bool:
            # One that is being done is due as before until it has ended.
            earlier = [other for _, _, other in due if job.step.follows(other.step)]
            since = at[job.name] or now
            return now < since + STEP_PATIENCE and any(at[other.name] <= at[job.name] for other in earlier)

        ready = [entry for entry in due if not waits(entry[2])]
        return [job for _, _, job in sorted(ready, key=lambda entry: entry[:2])]

    def _do(self, job: WorkerJob, stop: threading.Event) -> None:
        done = False
        try:
            with contextlib.ExitStack() as permits:
                for name in _permits(job):
                    try:
                        permits.enter_context(self._store.job(name))
                    except StoreError as e:  # another worker is at it, asks that host, or reads that disk
                        self._taken[name] = time.monotonic() + self._look
                        done = not isinstance(e, StoreUnavailable)
                        return
                done = not self._still_due(job) or self._carry_out(job, stop)
        except StoreError as e:
            log.warning("%s: its end could not be noted: %s; it runs again", job.name, e)
        except Exception:
            log.exception("%s: its end could not be noted; it runs again", job.name)
        finally:
            with self._guard:
                del self._running[job.name]
            if done:  # the next job need not wait
                self._wake.set()

    def _still_due(self, job: WorkerJob) -> bool:
        """Another worker may have ended it between the look and the permit."""
        if job.request is not None:
            return requests(self._store).get(job.name) == job.request
        return _due_at(job, last_runs(self._store)) <= self._store.now()

    def _carry_out(self, job: WorkerJob, stop: threading.Event) -> bool:
        """Whether it came to an end, which is noted."""
        began, error, said = self._store.now(), "", None
        try:
            said = job.work(stop)
        except NotYet:
            return False
        except IndletError as e:
            error = str(e)
            if isinstance(e, StoreUnavailable) and job.name.partition(" ")[0] not in OF_INDEX:
                log.warning("%s: %s; it goes on as soon as the store answers", job.name, e)
                self._lost_store(job.name)
                return False  # still due
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
            log.exception("%s: failed; it runs again when it is due", job.name)
        self._losses.pop(job.name, None)
        if stop.is_set():
            return False  # cut short: still due
        ended = self._store.now()
        if job.name != "index" or error:
            outcome = {"error": error} if error else {}
            level = logging.WARNING if error else logging.INFO
            logs.event(
                "job", level, job=job.name, worker=self.name, seconds=round(ended - began, 3), **outcome
            )
        words = said[:500] if isinstance(said, str) else ""
        note_end(self._store, job.name, EndedJob(ended, error[:500], self.name, words), job.request)
        return True

    def _lost_store(self, name: str) -> None:
        """It runs again at once, for the database may have been restarted; then less and less often."""
        losses = self._losses.get(name, (0, 0.0))[0] + 1
        self._losses[name] = losses, time.monotonic() + (rest_after(losses - 1) if losses > 1 else 0.0)

    def _crawl(self, group: CrawlGroup) -> WorkerJob:
        lane = group.lane or "crawl"

        def work(stop: threading.Event) -> None:
            if self._store.busy(lane):  # by hand, or by a worker that was cut off
                raise NotYet(f"{', '.join(group.names)}: another process crawls; wait for it or stop it")
            settings = configured_for(self._store, self._settings)
            done = crawl_in_child(settings, lambda summary: None, stop, group.names)
            if reasons := [f"{each.hierarchy}: {each.reason}" for each in done if each.reason]:
                raise NotDone("; ".join(reasons))

        roots = [h.root for h in self._settings.hierarchy if group.lane and h.name in group.names]
        host = _host(roots[0]) if roots else ""
        step = Step.READ if group.library else Step.NONE
        return WorkerJob(f"crawl {', '.join(group.names)}", 1, group.every, work, host, lane, step=step)


def table(store: Store, settings: Settings) -> list[Job]:
    """The jobs of all workers, as a desk shows them."""
    ended, rows = last_runs(store), []
    for job in {job.name: job for job in Worker(store, settings).jobs()}.values():
        row = Job(job.name, job.name.partition(" ")[0], job.every, job.work, job.step)
        if (last := ended.get(job.name)) is not None:
            row.ended, row.error = last.ended, last.error
            row.succeeded = None if last.error else last.ended
        due = _due_at(job, ended)
        row.due = due if due < float("inf") else None
        row.started = row.due if store.busy(permit("job", job.name)) else None
        rows.append(row)
    return rows


def _permits(job: WorkerJob) -> list[str]:
    """What a worker must have that does this job."""
    wanted = (("job", job.name), ("host", job.host), ("lane", job.lane))
    return [permit(kind, name) for kind, name in wanted if name]


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _due_at(job: WorkerJob, ended: dict[str, EndedJob]) -> float:
    """When a job is due: at once if it never ran; when asked for; never again if it has no interval."""
    if job.request is not None:
        return job.request.asked
    last = ended.get(job.name)
    if last is None:
        return 0.0
    due = next_run(job.every, last.ended) if job.every else float("inf")
    if job.after_changes:  # what a harvest brought is seen to when it has ended
        harvests = (end.ended for name, end in ended.items() if name.startswith("harvest "))
        due = min(due, next(filter(lambda at: at > last.ended, sorted(harvests)), due))
    return due
