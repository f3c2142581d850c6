"""The sources that a node harvests, by its settings or added at the desk; and harvests started here.

What the desk decides (sources added, paused, removed) is one entry of the store: it outlives a restart.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any, Final

import orjson

from indlet.errors import IndletError, SettingsError
from indlet.node.schedule import next_run
from indlet.service.harvest.negotiate import source_name
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import RunOptions
from indlet.settings import Settings, Source
from indlet.store import Store
from indlet.web.harvest_process import harvest_apart

_log = logging.getLogger("indlet.web")
_KEY: Final = "desk"
_LOOK: Final = 5.0  # seconds between looks at what is due
_RETRY: Final = 300.0  # seconds that a source rests after it could not even be tried


class Harvests:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        changed: Callable[[], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._settings = replace(settings, data=store.folder)
        self._changed = changed
        self._clock = clock
        self._guard = threading.Lock()
        self._live: dict[str, Progress] = {}
        self._rest: dict[str, float] = {}
        self._halts: dict[str, threading.Event] = {}
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    # What there is

    def sources(self) -> dict[str, Source]:
        """Every source by its name: the settings', those added here, those harvested by hand before."""
        with self._store.read() as view:
            kept = _read(view.meta(_KEY))
            origins = view.origins("source")
        found = {source_name(s): s for s in self._settings.source}
        for name, raw in kept["added"].items():
            found.setdefault(name, _source(raw))
        for origin in origins:
            if origin.settings.get("url") and not origin.state.get("removed"):
                found.setdefault(origin.name, _source({**origin.settings, "name": origin.name}))
        return {
            name: replace(source, paused=kept["paused"].get(name, source.paused))
            for name, source in found.items()
        }

    def added(self) -> set[str]:
        """The sources that were added here, and are harvested on schedule by us."""
        with self._store.read() as view:
            return set(_read(view.meta(_KEY))["added"])

    def removable(self) -> set[str]:
        """All but those that the settings name: they would come back with the next start."""
        return self.sources().keys() - {source_name(s) for s in self._settings.source}

    def running(self) -> dict[str, Progress]:
        """What runs in this process."""
        with self._guard:
            return {name: p for name, p in self._live.items() if not p.outcome}

    # What the desk may do

    def add(self, source: Source) -> str:
        name = source_name(source)
        if name in self.sources():
            raise SettingsError(f"there is a source called {name!r} already; give this one another name")
        every = source.every or self._settings.harvest.every
        if every:
            next_run(every, self._clock())
        with self._keeping() as kept:
            kept["added"][name] = asdict(source)
            kept["paused"].pop(name, None)
        with self._store.write() as tx:
            origin = tx.origin("source", name, {k: v for k, v in asdict(source).items() if k != "token"})
        with self._store.read() as view:
            state = view.state(origin)
        if state.pop("removed", False):
            with self._store.write() as tx:
                tx.state(origin, state)
        return name

    def pause(self, name: str, *, paused: bool) -> None:
        """Stop harvesting a source, or take it up again; a run that is on is cut short, and resumes."""
        self._known(name)
        with self._keeping() as kept:
            kept["paused"][name] = paused
        if paused:
            self.halt(name)

    def remove(self, name: str, *, records: bool) -> int:
        """Forget a source; with `records`, delete what it brought, too. How many records that were."""
        if name not in self.removable():
            raise SettingsError(f"{name!r} is named in the settings file; remove it there, or pause it here")
        self.halt(name)
        for thread in [t for t in self._threads if t.name == f"desk-{name}"]:
            thread.join(30)
        with self._keeping() as kept:
            kept["added"].pop(name, None)
            kept["paused"].pop(name, None)
        count = 0
        with self._store.read() as view:
            origin = view.origin("source", name)
        if origin is not None:
            with self._store.write() as tx:
                if records:
                    count = tx.forget(origin.id)
                # A source that comes back is harvested from its beginning.
                left = {k: v for k, v in origin.state.items() if k not in ("marks", "run")}
                tx.state(origin.id, {**left, "removed": True})
        self._changed()
        return count

    def start(self, name: str, *, full: bool = False) -> None:
        """Harvest a source now, in a process of its own."""
        source = replace(self._known(name), paused=False)
        with self._guard:
            held = self._live.get(name)
            if held is not None and not held.outcome:
                raise SettingsError(f"{name!r} is being harvested already; wait for it, or pause it")
            self._live[name] = Progress(name)
            halt = self._halts[name] = threading.Event()
            thread = threading.Thread(
                target=self._run, args=(name, source, full, halt), name=f"desk-{name}", daemon=True
            )
            self._threads = [t for t in self._threads if t.is_alive()] + [thread]
        thread.start()

    def halt(self, name: str) -> None:
        with self._guard:
            if name in self._halts:
                self._halts[name].set()

    def _run(self, name: str, source: Source, full: bool, halt: threading.Event) -> None:
        with self._guard:
            progress = self._live[name]
        try:
            progress.phase = "starting"
            harvest_apart(self._settings, source, progress, RunOptions(full=full), halt)
        except Exception as e:
            _log.exception("harvest of %s failed", name)
            progress.reason = f"{type(e).__name__}: {e}"
        finally:
            progress.outcome = progress.outcome or "failed"
            with self._guard:
                if progress.outcome != "complete":
                    self._rest[name] = self._clock() + _RETRY
            self._changed()

    # On schedule

    def begin(self) -> None:
        """Keep to the schedules of the sources that were added here, until closed."""
        thread = threading.Thread(target=self._keep, name="desk-schedule", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _keep(self) -> None:
        while not self._stop.wait(_LOOK):
            try:
                for name in self.due():
                    self.start(name)
            except IndletError as e:
                _log.warning("schedule: %s", e)

    def due(self) -> list[str]:
        """The sources added here whose time has come."""
        now, running = self._clock(), self.running()
        sources, added = self.sources(), self.added()
        with self._store.read() as view:
            origins = {o.name: o.id for o in view.origins("source")}
            last = {name: next(iter(view.runs(origins[name], 1)), None) for name in added if name in origins}
        found = []
        for name in sorted(added):
            source = sources[name]
            every = source.every or self._settings.harvest.every
            if source.paused or not every or name in running or self._rest.get(name, 0.0) > now:
                continue
            run = last.get(name)
            if run is None or next_run(every, run.finished or run.started) <= now:
                found.append(name)
        return found

    def close(self) -> None:
        """End everything that runs here; what was cut off resumes at the next start."""
        self._stop.set()
        with self._guard:
            for halt in self._halts.values():
                halt.set()
        for thread in self._threads:
            thread.join(10)

    # The desk's entry in the store

    def _known(self, name: str) -> Source:
        source = self.sources().get(name)
        if source is None:
            raise SettingsError(f"there is no source called {name!r}")
        return source

    def _keeping(self) -> _Keeping:
        return _Keeping(self._store)


def is_paused(store: Store, source: Source) -> bool:
    """Whether a source rests: as the desk decided, else as its settings say."""
    with store.read() as view:
        return bool(_read(view.meta(_KEY))["paused"].get(source_name(source), source.paused))


class _Keeping:
    """The desk's entry, open for changes; one transaction."""

    def __init__(self, store: Store) -> None:
        self._writing = store.write()

    def __enter__(self) -> dict[str, Any]:
        self._tx = self._writing.__enter__()
        self._kept = _read(self._tx.meta_value(_KEY, None))
        return self._kept

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self._tx.meta(_KEY, orjson.dumps(self._kept))
        self._writing.__exit__(*error)


def _read(raw: Any) -> dict[str, Any]:
    kept = orjson.loads(raw) if isinstance(raw, bytes | str) else {}
    return {"added": dict(kept.get("added", {})), "paused": dict(kept.get("paused", {}))}


def _source(raw: Mapping[str, Any]) -> Source:
    known = {f.name for f in fields(Source)}
    return Source(**{name: value for name, value in raw.items() if name in known})
