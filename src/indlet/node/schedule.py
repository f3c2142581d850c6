"""The scheduler: a table of jobs, when each is due, and what came of its last run.

Each run has a thread of its own, so that a long crawl does not hold up a harvest; one job never runs twice at
the same time. A job is a function, so a new kind of work is a new row and nothing else.

Jobs that are steps of a library's round keep its order: local read, remote harvest, local write. One that is
due waits for those of earlier steps that were due or running before it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Self

from indlet import logs
from indlet.errors import IndletError, MissingExtra, SettingsError, StoreUnavailable
from indlet.extension import Step as Step
from indlet.model import JsonObject
from indlet.settings import seconds

log = logging.getLogger("indlet.schedule")

# What a job does: it is given an event that says when to stop, and raises where it fails.
Work = Callable[[threading.Event], object]

# However short an interval is set, a job rests this long.
SHORTEST: Final = 1.0
# A run that lost the store goes on after this: a database that is restarted is there again by then.
SOON: Final = 10.0
# A crawl may be waiting for a file that takes its time. It can be cut off: what it did is committed.
PATIENCE: Final = 10.0
# A step waits for earlier ones no longer than this: a harvest may take days.
STEP_PATIENCE: Final = 3600.0
_LONGEST_WAIT: Final = 5.0  # a clock that is set forward is noticed by then


def rest_after(losses: int) -> float:
    """Seconds until a job goes on that lost the store so often in a row: each time twice as long."""
    return float(SOON * 2 ** min(losses - 1, 6))


def next_run(every: str, after: float) -> float:
    """When a job is due next: an interval counts from `after`, a cron line is read in UTC."""
    interval = seconds(every)
    if interval is not None:
        if not 0 < interval < 1e9:
            raise SettingsError(
                f"the interval {every!r} is out of bounds; write one such as '15m', '2h' or '1d'"
            )
        return after + max(interval, SHORTEST)
    if len(every.split()) < 5:
        raise SettingsError(
            f"{every!r} is no interval; write '15m', '2h', '1d' or a cron line such as '0 3 * * *'"
        )
    try:
        from cronsim import CronSim, CronSimError
    except ImportError as e:
        raise MissingExtra(f"the cron line {every!r}", "service") from e
    try:
        due = next(CronSim(every, datetime.fromtimestamp(after, UTC)))
    except (CronSimError, StopIteration) as e:
        raise SettingsError(f"{every!r} is not a cron line that ever comes due: {e}") from e
    assert isinstance(due, datetime)
    return due.timestamp()


class NotDone(IndletError):
    """A run that failed and has said so itself."""


class NotYet(IndletError):
    """A run that has to wait for another one: it is due as before."""


@dataclass(slots=True)
class Job:
    """A row of the table: what is done how often, and how it stands. Times are seconds since 1970."""

    name: str
    kind: str  # "crawl", "harvest", "index" …
    every: str
    work: Work = field(repr=False)
    step: Step = Step.NONE
    paused: bool = False
    due: float | None = None
    started: float | None = None  # of the run that is on; None: none is
    since: float = 0.0  # when that run was due
    ended: float | None = None
    succeeded: float | None = None
    error: str = ""  # of the last run; empty if it succeeded
    runs: int = 0  # since the node started
    losses: int = 0  # of the store, in a row
    stop: threading.Event = field(default_factory=threading.Event, repr=False)
    thread: threading.Thread | None = field(default=None, repr=False)

    def to_json(self) -> JsonObject:
        return {
            "name": self.name,
            "kind": self.kind,
            "every": self.every,
            "state": self.state,
            "running_since": _moment(self.started),
            "last_run": _moment(self.ended),
            "last_success": _moment(self.succeeded),
            "next_run": _moment(self.due),
            "error": self.error,
            "runs": self.runs,
        }

    @property
    def state(self) -> str:
        if self.started is not None:
            return "running"
        if self.paused:
            return "paused"
        return "failed" if self.error else "waiting" if self.due is not None else "idle"


class Schedule:
    """A context manager: jobs run while it is open; leaving it stops them and waits for them."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._jobs: dict[str, Job] = {}
        self._closed = False
        self._thread: threading.Thread | None = None

    def add(
        self,
        name: str,
        every: str,
        work: Work,
        *,
        at_once: bool = False,
        kind: str = "",
        step: Step = Step.NONE,
        paused: bool = False,
        last: float | None = None,
        succeeded: float | None = None,
    ) -> None:
        """Do some work every so often, counted from its `last` run (None: from now); `at_once`: now, too.

        Without `every` it is done once if `at_once`, and when asked. A job of the same name is replaced.
        """
        now = self._clock()
        first = next_run(every, now if last is None else last) if every else None
        kind = kind or name.partition(" ")[0]
        job = Job(name, kind, every, work, step, paused, now if at_once else first)
        job.ended, job.succeeded = last, succeeded
        with self._changed:
            self._jobs[name] = job
            self._changed.notify_all()

    def remove(self, name: str, patience: float = 30.0) -> None:
        """Take a job out of the table; a run that is on is stopped and waited for, unless it asks."""
        with self._changed:
            job = self._jobs.pop(name, None)
        if job is not None:
            job.stop.set()
            if job.thread not in (None, threading.current_thread()):
                job.thread.join(patience)

    def pause(self, name: str, *, paused: bool) -> None:
        """Leave a job alone until it is resumed; a run that is on is stopped."""
        with self._changed:
            job = self._jobs.get(name)
            if job is None:
                return
            job.paused = paused
            if paused:
                job.stop.set()
            elif job.every and job.due is None:
                job.due = next_run(job.every, self._clock() if job.ended is None else job.ended)
            self._changed.notify_all()

    def run_now(self, name: str, work: Work | None = None) -> bool:
        """Start a job, paused or not, with other `work` this once; false if it is running."""
        with self._changed:
            job = self._jobs[name]
            if self._closed or job.started is not None:
                return False
            self._start(job, work or job.work)
            return True

    def wake(self, name: str) -> bool:
        """The job is due now, or, if it is running, as soon as it has ended; false if there is none."""
        with self._changed:
            if name not in self._jobs:
                return False
            self._jobs[name].due = self._clock()
            self._changed.notify_all()
            return True

    def jobs(self) -> list[Job]:
        """The table, in the order in which jobs were added."""
        with self._changed:
            return list(self._jobs.values())

    def due(self) -> list[str]:
        """The names of the jobs whose time has come."""
        now = self._clock()
        return [j.name for j in self.jobs() if _is_due(j, now)]

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="scheduler", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ask all jobs to stop, and wait; one that does not hear is left behind, for the process ends."""
        with self._changed:
            self._closed = True
            for job in self._jobs.values():
                job.stop.set()
            threads = [job.thread for job in self._jobs.values() if job.thread is not None]
            self._changed.notify_all()
        until = time.monotonic() + PATIENCE
        for thread in (*threads, *([self._thread] if self._thread else [])):
            thread.join(max(0.0, until - time.monotonic()))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep(self) -> None:
        with self._changed:
            while not self._closed:
                now = self._clock()
                for job in self._jobs.values():
                    _after_a_clock_set_back(job, now)
                    if _is_due(job, now) and not self._waits(job, now):
                        try:
                            self._start(job, job.work)
                        except RuntimeError as e:  # there is no room for a thread: the other jobs go on
                            job.due = now + SOON
                            log.warning("%s: %s; it is tried again soon", job.name, e)
                soon = [j.due - now for j in self._jobs.values() if j.due is not None and j.due > now]
                self._changed.wait(min([_LONGEST_WAIT, *soon]))

    def _waits(self, job: Job, now: float) -> bool:
        """Whether a job that is due waits for an earlier step of its round."""
        due = job.due or now
        return now < due + STEP_PATIENCE and any(
            job.step.follows(other.step)
            and not (other.paused and other.started is None)
            and (since := other.due if other.started is None else other.since) is not None
            and since <= due
            for other in self._jobs.values()
        )

    def _start(self, job: Job, work: Work) -> None:
        """With the lock held."""
        due, job.started, job.due = job.due, self._clock(), None
        job.since = min(job.started, due or job.started)
        job.stop = threading.Event()
        job.thread = threading.Thread(target=self._run, args=(job, work), name=f"job {job.name}", daemon=True)
        try:
            job.thread.start()
        except RuntimeError:
            job.thread, job.started, job.due = None, None, due
            raise

    def _run(self, job: Job, work: Work) -> None:
        error, store_lost = "", False
        try:
            work(job.stop)
        except IndletError as e:
            # Mostly: another process is at the same job, or a source does not answer. The next time comes.
            error, store_lost = str(e), isinstance(e, StoreUnavailable)
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
            log.exception("%s: failed; it runs again when it is due", job.name)
        with self._changed:
            job.ended = now = self._clock()
            _tell(job, error, now)
            job.error, job.runs = error, job.runs + 1
            if not error and not job.stop.is_set():
                job.succeeded = now
            job.losses = job.losses + 1 if store_lost else 0
            if job.every and job.due is None:
                job.due = next_run(job.every, now)
                if store_lost:
                    job.due = min(job.due, now + rest_after(job.losses))
            job.started = None
            self._changed.notify_all()


def _tell(job: Job, error: str, now: float) -> None:
    outcome = "failed" if error else "stopped" if job.stop.is_set() else "done"
    # The index job looks every few seconds whether there is something to do.
    level = logging.WARNING if error else logging.DEBUG if job.kind == "index" else logging.INFO
    logs.event(
        "job", level, job=job.name, outcome=outcome, seconds=round(now - (job.started or now), 3),
        **({"error": error} if error else {}),
    )  # fmt: skip


def _is_due(job: Job, now: float) -> bool:
    return job.due is not None and job.due <= now and job.started is None and not job.paused


def _after_a_clock_set_back(job: Job, now: float) -> None:
    interval = seconds(job.every)
    if job.due is not None and interval is not None:
        job.due = min(job.due, now + max(interval, SHORTEST))


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
