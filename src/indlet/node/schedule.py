"""Jobs that come again: each in a thread of its own, so that a long crawl does not hold up a harvest."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Self

from indlet.errors import MissingExtra, SettingsError, StoreError
from indlet.settings import seconds

log = logging.getLogger("indlet.schedule")

# A job is given an event that says when to stop.
Job = Callable[[threading.Event], object]

# However short an interval is set, a job rests this long.
SHORTEST = 1.0
# A crawl may be waiting for a file that takes its time. It can be cut off: what it did is committed.
PATIENCE = 10.0


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


class Schedule:
    """A context manager: jobs run while it is open; leaving it stops them and waits for them."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def add(self, name: str, every: str, job: Job, *, at_once: bool = False) -> None:
        """Run a job every so often; with `at_once` a first time now. Without `every`, that is all."""
        if every:
            next_run(every, self._clock())  # a mistake in the settings is told now, not tonight
        elif not at_once:
            return
        thread = threading.Thread(
            target=self._keep, args=(name, every, job, at_once), name=f"indlet-{name}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _keep(self, name: str, every: str, job: Job, at_once: bool) -> None:
        if at_once:
            self._do(name, job)
        while every and not self._stop.is_set():
            now = self._clock()
            if self._stop.wait(max(0.0, next_run(every, now) - now)):
                return
            self._do(name, job)

    def _do(self, name: str, job: Job) -> None:
        try:
            job(self._stop)
        except StoreError as e:
            # Mostly: another process is at the same job. The next time comes.
            log.warning("%s: %s", name, e)
        except Exception:
            log.exception("%s: failed; it runs again when it is due", name)

    @property
    def stopping(self) -> threading.Event:
        return self._stop

    def close(self) -> None:
        """Ask all jobs to stop, and wait; one that does not hear is left behind, for the process ends."""
        self._stop.set()
        until = time.monotonic() + PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
