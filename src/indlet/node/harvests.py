"""The sources that a node harvests; each is a job of its schedule. Which there are: source_list.py.

A node with `jobs = false` harvests nothing: what its desk asks for is an entry for the workers.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Final

from indlet.errors import SettingsError, StoreError, StoreUnavailable
from indlet.node import job_entries
from indlet.node.harvest_child import harvest_in_child
from indlet.node.schedule import NotDone, NotYet, Schedule, Step, Work, next_run
from indlet.node.source_list import SourceList, references
from indlet.service.harvest.negotiate import source_name
from indlet.service.harvest.one_origin import (
    SILENT,
    TWICE,
    claim,
    keep_renamed,
    same_source,
)
from indlet.service.harvest.progress import Phase, Progress, RunOutcome
from indlet.service.harvest.run import RunOptions
from indlet.settings import Settings, Source
from indlet.store import Store, desk_sources

_JOURNAL: Final = 50  # runs that are searched for the last success
# By the desk, besides the name.
CHANGEABLE: Final = ("set", "every", "index", "token", "metadata", "republish", "fulltext")


class Harvests(SourceList):
    """The sources, and a job of the schedule for each that is harvested by itself."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        schedule: Schedule,
        changed: Callable[[], None],
        report: Callable[[Progress], None] = lambda progress: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.schedule = schedule
        super().__init__(store, settings)
        self._changed = changed
        self._report = report
        self._clock = clock
        self._by_workers = not settings.node.jobs
        self._guard = threading.Lock()
        self._live: dict[str, Progress] = {}
        # A process for each is worth its memory only as long as there are cores for them.
        most = min(settings.harvest.at_once, max(2, os.cpu_count() or 1))
        self._permits = threading.Semaphore(max(1, most))

    def running(self) -> dict[str, Progress]:
        """How far the harvests are that this node runs now; what waits for a worker has not begun."""
        if self._by_workers:
            return {
                job.removeprefix(_job("")): Progress(job.removeprefix(_job("")))
                for job in job_entries.requests(self._store)
                if job.startswith(_job("")) and not self._store.busy(job_entries.permit("job", job))
            }
        names = [job.name for job in self.schedule.jobs() if job.started is not None]
        found = {}
        with self._guard:
            for name in (n.removeprefix(_job("")) for n in names if n.startswith(_job(""))):
                progress = self._live.get(name)
                found[name] = Progress(name) if progress is None or progress.outcome else progress
        return found

    # What the desk may do

    def add(self, source: Source) -> str:
        name = source_name(source)
        if name in self.sources():
            raise SettingsError(f"there is a source called {name!r} already; give this one another name")
        with self._store.read() as view:
            twin = same_source(view, name, source)
        if twin is not None and twin.name in self.sources():
            raise SettingsError(
                f"{source.url}: is harvested already, as {twin.name!r}; rename that one, or name another set"
            )
        every = source.every or self._settings.harvest.every
        if every:
            next_run(every, self._clock())
        with self.keeping() as kept:
            kept["added"][name] = asdict(source)
            kept["paused"].pop(name, None)
        claim(self._store, name, source.url)
        with self._store.write() as tx:
            tx.origin("source", name, source.public())
        self.take_back(name)
        self._plan(name, source)
        return name

    def pause(self, name: str, *, paused: bool) -> None:
        """Stop harvesting a source, or take it up again; a run that is on is cut short, and resumes."""
        self.known(name)
        self.pause_all([name], paused=paused)

    def pause_all(self, names: Iterable[str], *, paused: bool) -> list[str]:
        """Pause sources, or resume them; which ones were not so before."""
        sources = self.sources()
        changed = [name for name in names if name in sources and sources[name].paused != paused]
        with self.keeping() as kept:
            kept["paused"].update(dict.fromkeys(changed, paused))
        for name in changed:
            self.schedule.pause(_job(name), paused=paused)
            if paused:
                job_entries.withdraw(self._store, _job(name))
        return changed

    def edit(self, name: str, changes: Mapping[str, str | bool]) -> list[str]:
        """Change fields of a source, its name too; which ones were different. A run of it must not be on."""
        source, written = self.known(name), name in self.in_file()
        changes = {field: value for field, value in changes.items() if field in (*CHANGEABLE, "name")}
        wanted = str(changes.pop("name", name)) or name
        if wanted != name:
            self.check_new_name(name, wanted)
        if changes.get("every"):
            next_run(str(changes["every"]), self._clock())
        different = {field: value for field, value in changes.items() if getattr(source, field) != value}
        if wanted == name and not different:
            return []
        self.check_idle(name)
        edited = desk_sources.source_from({**asdict(source), "name": wanted, **different})
        if wanted != name:
            self.rename_records(name, wanted)
        with self.keeping() as kept:
            if written:
                key = desk_sources.name_in_file(kept, name)
                change = kept["changed"].setdefault(key, {})
                change.update(different)
                if wanted != name:
                    change["name"] = wanted
                if change.get("name") == key:  # as in the file again
                    del change["name"]
            else:
                kept["added"].pop(name, None)
                kept["added"][wanted] = asdict(edited)
            if (paused := kept["paused"].pop(name, None)) is not None:
                kept["paused"][wanted] = paused
        self.schedule.remove(_job(name))
        self._plan(wanted, edited)
        return [*(["name"] if wanted != name else []), *different]

    def as_in_file(self, name: str) -> None:
        """Take back what the desk has changed of a source that the settings name, a removal too."""
        decided = self.decided()
        if name in self.removed_here():
            in_file, here = name, str(decided["changed"][name].get("name", name))
        elif name in self.in_file():
            in_file, here = desk_sources.name_in_file(decided, name), name
        else:
            raise SettingsError(f"{name!r} is not named in the settings file; change it here")
        self.check_idle(here)
        if in_file != here:
            self.rename_records(here, in_file)
        with self.keeping() as kept:
            kept["changed"].pop(in_file, None)
            kept["paused"].pop(here, None)
        self.take_back(in_file)
        self.schedule.remove(_job(here))
        self._plan(in_file, self.in_file()[in_file])

    def retry(self, name: str, identifiers: Sequence[str]) -> None:
        """Ask a source for records that failed, and for nothing else."""
        source = self.known(name)
        with self._store.read() as view:
            origin = view.origin("source", name)
            owed = {f.where for f in view.open_failures(origin.id)} if origin else set()
        if left := [identifier for identifier in identifiers if identifier not in owed]:
            raise SettingsError(f"{left[0]!r} is not among the failures of {name!r} any more")
        self.check_idle(name)
        job = f"retry {name}"
        if self._by_workers:
            job_entries.ask(self._store, job, only=tuple(identifiers))
            return
        if any(found.name == job and found.started is not None for found in self.schedule.jobs()):
            raise SettingsError(f"records of {name!r} are being asked for already; wait for that to end")
        work = self.work(name, replace(source, paused=False), RunOptions(only=tuple(identifiers)))
        self.schedule.add(job, "", work, kind="retry")
        self.schedule.run_now(job)

    def remove(self, name: str, *, records: bool) -> int:
        """Forget a source; with `records`, delete what it brought, too. How many records that were."""
        self.known(name)
        if places := references(self._settings, name):
            raise SettingsError(
                f"{name!r} is named in {' and '.join(places)} of the settings; remove it there"
            )
        self.schedule.remove(_job(name))
        written = name in self.in_file()
        with self.keeping() as kept:
            key = desk_sources.name_in_file(kept, name)
            kept["added"].pop(name, None)
            kept["paused"].pop(name, None)
            if written:  # its name stays, lest the records come back under another one
                change = {"name": name} if key != name else {}
                kept["changed"][key] = {**change, "removed": True}
        job_entries.withdraw(self._store, _job(name))
        count = 0
        with self._store.read() as view:
            origin = view.origin("source", name)
            live = view.totals().get(origin.id, (0, 0))[0] if origin is not None and records else 0
        if origin is not None:
            with self._store.write() as tx:
                if records and not self._by_workers:
                    count = tx.forget(origin.id)
                # A source that comes back is harvested from its beginning.
                left = {k: v for k, v in origin.state.items() if k not in ("marks", "run")}
                tx.state(origin.id, {**left, "removed": True})
                for kind in (SILENT, TWICE):  # which only its harvests would take back
                    tx.resolve_alerts(kind, name, [""])
            if records and self._by_workers:
                job_entries.ask(self._store, f"remove {name}")
                return live
        self._changed()
        return count

    def forget(self, name: str) -> int:
        """Delete the records of a source that was removed; how many there were. NotYet while it is read."""
        with self._store.read() as view:
            origin = view.origin("source", name)
        if origin is None or not origin.state.get("removed"):
            return 0
        try:
            with self._store.job(f"harvest-{origin.id}"), self._store.write() as tx:
                return tx.forget(origin.id)
        except StoreUnavailable:
            raise
        except StoreError as e:
            raise NotYet(str(e)) from e

    def start(self, name: str, *, full: bool = False) -> None:
        """Harvest a source now."""
        self._start(name, replace(self.known(name), paused=False), full=full)

    def _start(self, name: str, source: Source, *, full: bool) -> None:
        if self._by_workers:
            self.check_idle(name)
            job_entries.ask(self._store, _job(name), full=full)
            return
        if _job(name) not in {job.name for job in self.schedule.jobs()}:
            self._plan(name, source, every="")
        if not self.schedule.run_now(_job(name), self.work(name, source, RunOptions(full=full))):
            raise SettingsError(f"{name!r} is being harvested already; wait for it, or pause it")

    def start_all(self, names: Iterable[str]) -> list[str]:
        """Harvest sources now, a few at a time; which ones were not running already."""
        sources, started = self.sources(), list[str]()
        for name in names:
            if name in sources:
                with contextlib.suppress(SettingsError):  # it runs
                    self._start(name, replace(sources[name], paused=False), full=False)
                    started.append(name)
        return started

    def work(self, name: str, source: Source, options: RunOptions | None = None) -> Work:
        """A harvest of a source as a job."""

        def harvest(stop: threading.Event) -> None:
            if name not in self.sources():  # renamed or removed by a command, in another process
                self.refresh()
                return
            if self._by_workers and self.is_busy(name):
                # By hand, or by a worker that was cut off: the server ends its sessions one by one.
                raise NotYet(f"{name!r} is still being read by another process; wait for it or stop it")
            progress = Progress(name)
            with self._guard:
                self._live[name] = progress
            try:
                with self._permits:
                    if stop.is_set():
                        progress.outcome = RunOutcome.INTERRUPTED
                        return
                    progress.phase = Phase.STARTING
                    harvest_in_child(self._settings, source, progress, options, stop)
            finally:
                progress.outcome = progress.outcome or RunOutcome.FAILED
                self._changed()
                self._report(progress)
            if progress.store_lost:
                raise StoreUnavailable(progress.reason)
            if progress.outcome not in (RunOutcome.COMPLETE, RunOutcome.INTERRUPTED):
                raise NotDone(progress.reason or progress.outcome)

        return harvest

    # On schedule

    def plan(self, *, at_once: bool = False) -> None:
        """Puts the settings' sources (`at_once`: a first time now) and those added here on the schedule."""
        keep_renamed(self._store, self._settings)
        sources, written = self.sources(), self.in_file()
        for name in written:
            self._plan(name, sources[name], at_once=at_once)
        for name in self.decided()["added"].keys() - written.keys():
            self._plan(name, sources[name])

    def refresh(self) -> None:
        """Bring the schedule up to what another process decided of the sources."""
        sources, planned = self.sources(), {job.name for job in self.schedule.jobs() if job.kind == "harvest"}
        for name in planned - {_job(name) for name in sources}:
            self.schedule.remove(name)
        for name in self.on_schedule():
            if _job(name) not in planned:
                self._plan(name, sources[name])

    def _plan(self, name: str, source: Source, *, at_once: bool = False, every: str | None = None) -> None:
        if self._by_workers:
            return
        with self._store.read() as view:
            origin = view.origin("source", name)
            runs = view.runs(origin.id, _JOURNAL) if origin is not None else []
        last = next((run.finished or run.started for run in runs), None)
        succeeded = next((run.finished for run in runs if run.outcome == RunOutcome.COMPLETE), None)
        if every is None:
            every = source.every or self._settings.harvest.every
        self.schedule.add(
            _job(name),
            every,
            self.work(name, source),
            at_once=at_once or bool(every and last is None),
            kind="harvest",
            step=Step.HARVEST,
            paused=self.decided()["paused"].get(name, source.paused),
            last=last,
            succeeded=succeeded,
        )

    def due(self) -> list[str]:
        """The sources whose time has come."""
        return [name.removeprefix(_job("")) for name in self.schedule.due() if name.startswith(_job(""))]

    def next_runs(self) -> dict[str, float]:
        """When the sources on the schedule are harvested next."""
        if self._by_workers:
            ended, now = job_entries.last_runs(self._store), self._clock()
            return {
                name: next_run(every, ended[_job(name)].ended) if _job(name) in ended else now
                for name, source in self.sources().items()
                if (every := source.every or self._settings.harvest.every) and not source.paused
            }
        return {
            job.name.removeprefix(_job("")): job.due
            for job in self.schedule.jobs()
            if job.kind == "harvest" and job.due is not None and not job.paused
        }


def _job(name: str) -> str:
    return f"harvest {name}"
