"""The jobs of a node that harvests and searches, on one schedule.

A new kind of job is a `JobEntry` of its extension.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from indlet.extension import JobEntry, extensions
from indlet.node.harvests import Harvests
from indlet.node.indexing import EVERY, IndexJob
from indlet.node.schedule import Schedule
from indlet.service.harvest.progress import Progress, RunOutcome
from indlet.settings import Settings
from indlet.store import Store

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
        self._others: list[JobEntry] = []  # of extensions
        self.harvests = Harvests(store, settings, self.schedule, self._changed, self._harvested)

    def begin(self, *, harvest_at_once: bool = False) -> None:
        """Puts the jobs on the schedule and starts it; `harvest_at_once`: the settings' sources now.

        A node that leaves its jobs to workers looks after an index of its own alone.
        """
        if self._own_index:
            self.schedule.add(INDEX, EVERY, self.index, at_once=True)
        if self._settings.node.jobs:
            self.harvests.plan(at_once=harvest_at_once)
            self._others = extension_jobs(self._store, self._settings)
            for job in self._others:
                self.schedule.add(job.name, job.every, job.work, at_once=True, step=job.step)
        self.schedule.start()

    @property
    def _own_index(self) -> bool:
        return self._settings.node.jobs or self._settings.index.is_embedded

    def _harvested(self, done: Progress) -> None:
        """A harvest has ended: what follows from it is due, which completes the round."""
        self._report(done)
        changed, failed = bool(done.changed or done.deleted), done.outcome is RunOutcome.FAILED
        for job in self._others:
            if (job.after_changes and changed) or (job.after_failures and failed):
                self.schedule.wake(job.name)

    def _changed(self) -> None:
        """A harvest has ended, or records were removed: the index should know soon."""
        if self._own_index and not self.schedule.wake(INDEX):
            self.index(threading.Event())


def extension_jobs(store: Store, settings: Settings) -> list[JobEntry]:
    return [job for extension in extensions() for job in extension.jobs(store, settings)]
