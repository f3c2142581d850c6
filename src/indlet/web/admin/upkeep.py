"""The check of store and index, and the rebuilding of the index, as jobs that the desk starts.

An index that this node has for itself is looked after here; one that all share, by the workers where this
node leaves its jobs to them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from indlet.errors import IndletError, SettingsError
from indlet.node import job_entries, upkeep
from indlet.node.schedule import Schedule
from indlet.service.search.library import Library


class DeskUpkeep:
    def __init__(self, library: Library, schedule: Schedule) -> None:
        self._library, self._schedule = library, schedule
        self._by_workers = not library.settings.node.jobs and not library.settings.index.is_embedded
        self._work = {"check": self._check, "rebuild": self._rebuild}
        self._said: dict[str, str] = {}  # what was done last, and what came of it

    def said(self) -> dict[str, str]:
        if not self._by_workers:
            return dict(self._said)
        ended, asked = job_entries.last_runs(self._library.store), job_entries.requests(self._library.store)
        done = {what: run.error or run.said for what, run in ended.items() if what in self._work}
        return done | {what: "…" for what in self._work if what in asked}

    def busy(self) -> bool:
        if self._by_workers:
            return any(what in self._work for what in job_entries.requests(self._library.store))
        return any(job.started is not None for job in self._schedule.jobs() if job.name in self._work)

    def begin(self, what: str) -> None:
        if self.busy():
            raise SettingsError("the store is being looked after already; wait for that to end")
        if self._by_workers:
            job_entries.ask(self._library.store, what)
            return
        self._said[what] = "…"
        self._schedule.add(what, "", self._told(what, self._work[what]))
        self._schedule.run_now(what)

    def _told(self, what: str, work: Callable[[threading.Event], str]) -> Callable[[threading.Event], None]:
        def run(stop: threading.Event) -> None:
            try:
                self._said[what] = work(stop)
            except IndletError as e:
                self._said[what] = str(e)
                raise

        return run

    def _check(self, stop: threading.Event) -> str:
        return upkeep.check(self._library.store, self._library.whole())

    def _rebuild(self, stop: threading.Event) -> str:
        return upkeep.rebuild(self._library.store, self._library.settings, stop)
