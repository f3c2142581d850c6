"""The jobs of a node that harvests and searches: one schedule, and the rows that these two need.

A new kind of job is a row more: `schedule.add(name, every, work)`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from indlet.errors import StoreError
from indlet.exchange.duplicates.job import duplicates_job
from indlet.exchange.notify import tell, watch
from indlet.exchange.write_out import WriteTask
from indlet.extension import extensions
from indlet.formats.registry import known_roots
from indlet.node.harvests import Harvests
from indlet.node.indexing import EVERY, IndexJob
from indlet.node.schedule import Schedule, Step, Work
from indlet.service.harvest.progress import Progress
from indlet.settings import Settings, Write
from indlet.store import Store, configured_for

INDEX: Final = "index"


class Jobs:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        schedule: Schedule | None = None,
        report: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self._store, self._settings = store, settings
        self.schedule = schedule or Schedule()
        self.index = IndexJob(store, settings)
        self._report = report
        self._after_harvests: list[str] = []  # jobs that have to do with what harvests bring
        self.harvests = Harvests(store, settings, self.schedule, self._changed, self._harvested)

    def begin(self, *, harvest_at_once: bool = False) -> None:
        """Puts the jobs on the schedule and starts it; `harvest_at_once`: the settings' sources now.

        A node that leaves its jobs to workers looks after an index of its own alone.
        """
        if self._own_index:
            self.schedule.add(INDEX, EVERY, self.index, at_once=True)
        if self._settings.node.jobs:
            self.harvests.plan(at_once=harvest_at_once)
            for task in self._settings.write:
                write = write_job(self._store, self._settings, task)
                self.schedule.add(_write(task), task.every, write, at_once=True, step=Step.WRITE)
            notify = self._settings.notify
            if (
                self._settings.source
                or self._settings.write
                or notify.webhook
                or notify.email
                or notify.failed_runs
            ):
                work = alerts_job(self._store, self._settings)
                self.schedule.add("alerts", self._settings.notify.every, work, at_once=True)
            if self._settings.duplicates.every:
                work = partial(duplicates_job, configured_for(self._store, self._settings))
                self.schedule.add("duplicates", self._settings.duplicates.every, work, at_once=True)
            for extension in extensions():
                for job in extension.jobs(self._store, self._settings):
                    self.schedule.add(job.name, job.every, job.work, at_once=True)
                    self._after_harvests.append(job.name)
        self.schedule.start()

    @property
    def _own_index(self) -> bool:
        return self._settings.node.jobs or self._settings.index.is_embedded

    def _harvested(self, done: Progress) -> None:
        """A harvest has ended: what it brought is written, which completes the round."""
        self._report(done)
        if done.outcome == "failed" and self._settings.notify.failed_runs:
            self.schedule.wake("alerts")
        if done.changed or done.deleted:
            for name in (*map(_write, self._settings.write), *self._after_harvests):
                self.schedule.wake(name)

    def _changed(self) -> None:
        """A harvest has ended, or records were removed: the index should know soon."""
        if self._own_index and not self.schedule.wake(INDEX):
            self.index(threading.Event())


def _write(task: Write) -> str:
    return f"write {task.folder}"


def alerts_job(store: Store, settings: Settings) -> Work:
    """Silent sources raise an alert, and alerts go out, as a job."""

    def run(stop: threading.Event) -> None:
        watch(store, settings)
        tell(store, settings)

    return run


def write_job(store: Store, settings: Settings, write: Write) -> Work:
    """A task of local write as a job: one that stopped before its end has failed."""
    task = WriteTask(store, write, known_roots(settings))

    def run(stop: threading.Event) -> None:
        if reason := task.run(stop).reason:
            raise StoreError(reason)

    return run
