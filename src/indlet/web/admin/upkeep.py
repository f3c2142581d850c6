"""The check of store and index, and the rebuilding of the index, as jobs that the desk starts."""

from __future__ import annotations

import threading
from collections.abc import Callable

from indlet.errors import IndletError, SettingsError
from indlet.node.indexing import index_in_child
from indlet.node.schedule import Schedule
from indlet.service.search.library import Library


class DeskUpkeep:
    def __init__(self, library: Library, schedule: Schedule) -> None:
        self._library, self._schedule = library, schedule
        self._work = {"check": self._check, "rebuild": self._rebuild}
        self._said: dict[str, str] = {}  # what was done last, and what came of it

    def said(self) -> dict[str, str]:
        return dict(self._said)

    def busy(self) -> bool:
        return any(job.started is not None for job in self._schedule.jobs() if job.name in self._work)

    def begin(self, what: str) -> None:
        if self.busy():
            raise SettingsError("the store is being looked after already; wait for that to end")
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
        """The store's own check, then whether the index holds exactly the store's live records."""
        store = self._library.store
        if problems := store.check():
            return "store: " + "; ".join(problems)
        with store.read() as view:
            live = sum(count for count, _ in view.totals().values())
            newest = view.last_seq()
        searcher = self._library.whole()
        if searcher.position < newest:
            return f"store: ok; index: {newest - searcher.position} changes behind, check again later"
        if searcher.collection.documents != live:
            return f"store: ok; index: {searcher.collection.documents} records for {live}: rebuild it"
        return f"store: ok; index: ok, {live} records in both"

    def _rebuild(self, stop: threading.Event) -> str:
        progress = index_in_child(self._library.store, self._library.settings, stop, rebuild=True)
        if progress is None:
            return "stopped; the index is as it was"
        return f"{progress.applied} changes applied; the index stands at {progress.position}"
