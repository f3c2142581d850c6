"""Local write: records of other libraries, as files that a catalogue imports in its own format.

A task follows the store's change feed. Files have stable names, appear whole, and are left alone where their
bytes would be the same. What was written commits with how far the task is; killed in between, it writes the
same bytes again. A folder that cannot be written stops its task and no other: nothing is passed over.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final

import orjson

from indlet.errors import SettingsError, StoreError
from indlet.formats import CommonRecord, MetadataFormat, common_record
from indlet.formats.crosswalk import Crosswalk
from indlet.formats.dublin import year
from indlet.formats.translate import format_named, on_top
from indlet.model import Failure, Stored
from indlet.oai.dates import written
from indlet.oai.provenance import own_sets
from indlet.settings import Settings, Write
from indlet.store import FileState, Origin, Store

KIND: Final = "write"
ALERT: Final = "alert"
DELETIONS: Final = ("alert", "file", "remove")
_BATCH: Final = 200
_PLACES: Final = ("source", "year", "name", "set")
_UNSAFE = re.compile(r"[^\w.,=@+-]+")
_PART_BYTES: Final = 120


@dataclass(slots=True)
class Written:
    """What a task came to. `reason`: why it stopped before its end."""

    folder: str
    files: int = 0
    unchanged: int = 0
    deleted: int = 0
    failed: int = 0
    reason: str = ""
    alerts: list[str] = field(default_factory=list)


def write_out(store: Store, settings: Settings, stop: threading.Event | None = None) -> list[Written]:
    """Every task of the settings, one after the other."""
    return [WriteTask(store, task).run(stop or threading.Event()) for task in settings.write]


class WriteTask:
    """One folder that is kept up to what others have."""

    def __init__(self, store: Store, task: Write) -> None:
        if task.deletions not in DELETIONS:
            raise SettingsError(f"[[write]]: deletions is {task.deletions!r}; one of {', '.join(DELETIONS)}")
        try:
            task.path.format(**dict.fromkeys(_PLACES, "x"))
        except (KeyError, IndexError, ValueError) as e:
            known = ", ".join(f"{{{place}}}" for place in _PLACES)
            raise SettingsError(f"[[write]]: path {task.path!r}: {e}; it may hold {known}") from e
        self._store, self._task = store, task
        self._format: MetadataFormat = format_named(task.format)
        self._table: Crosswalk = on_top(task.mapping, self._format.crosswalk(()), self._format)
        self._folder = Path(task.folder)

    def run(self, stop: threading.Event) -> Written:
        """Bring the folder up to the store; interrupted, the next run goes on from there."""
        done = Written(str(self._folder))
        with self._store.job(f"write-{blake2b(str(self._folder).encode(), digest_size=6).hexdigest()}"):
            with self._store.write() as tx:
                origin = tx.origin(KIND, str(self._folder), {"format": self._task.format})
                run = tx.start_run(origin, KIND)
            try:
                self._follow(origin, stop, done)
            except OSError as e:
                done.reason = (
                    f"{e.filename or self._folder}: {e.strerror}; nothing is lost, the next run goes on"
                )
            with self._store.write() as tx:
                detail = {"files": done.files, "unchanged": done.unchanged, "deleted": done.deleted,
                          "failed": done.failed, "reason": done.reason}  # fmt: skip
                tx.note_run(run, detail, "failed" if done.reason else "complete")
                if done.reason:
                    tx.fail(origin, Failure(str(self._folder), ALERT, done.reason))
                else:
                    tx.forgive(origin, [str(self._folder)])
        return done

    def _follow(self, origin: int, stop: threading.Event, done: Written) -> None:
        if not self._folder.is_dir():
            raise FileNotFoundError(2, "no such folder; make it, or correct [[write]]", str(self._folder))
        with self._store.read() as view:
            known = {state.resource: state for state in view.files(origin)}
            position = int(view.state(origin).get("position", 0))
        while not stop.is_set():
            with self._store.read() as view:
                changes = list(view.changes(position, _BATCH, parts=("metadata", "properties", "raw")))
                sources = {o.id: o for o in view.origins() if o.kind != KIND}
            if not changes:
                return
            rows, gone, alerts = list[FileState](), list[str](), list[Failure]()
            for stored in changes:
                source = sources.get(stored.origin)
                if source is None or source.kind != "source":
                    continue
                before = known.get(stored.identifier)
                if stored.deleted or not self._wanted(stored, source):
                    if before is not None:
                        alerts += self._gone(stored, before, done)
                        gone.append(before.path)
                        known.pop(stored.identifier, None)
                    continue
                state, failure = self._put(stored, source, before, done)
                if failure is not None:
                    alerts.append(failure)
                if state is not None:
                    rows.append(state)
                    if before is not None and before.path != state.path:
                        gone.append(before.path)
                        (self._folder / before.path).unlink(missing_ok=True)
                    known[stored.identifier] = state
            position = changes[-1].seq
            with self._store.write() as tx:
                tx.drop_files(origin, gone)
                tx.put_files(origin, rows)
                tx.forgive(origin, [state.resource for state in rows])
                for failure in alerts:
                    tx.fail(origin, failure)
                tx.state(origin, {"position": position})

    def _wanted(self, stored: Stored, source: Origin) -> bool:
        specs = stored.sets.split()
        for chosen in self._task.from_:
            name, _, spec = chosen.partition(":")
            if name not in ("*", source.name):
                continue
            if not spec or any(s == spec or s.startswith(f"{spec}:") for s in specs):
                return True
        return False

    def _put(
        self, stored: Stored, source: Origin, before: FileState | None, done: Written
    ) -> tuple[FileState | None, Failure | None]:
        try:
            data = self._data(stored)
        except ValueError as e:
            done.failed += 1
            return None, Failure(stored.identifier, ALERT, f"cannot be written as {self._task.format}: {e}")
        path = self._path(stored, source)
        digest = blake2b(data, digest_size=16).hexdigest()
        place = self._folder / path
        if before is not None and before.path == path and before.digest == digest and place.exists():
            done.unchanged += 1
        elif _same(place, data):
            done.unchanged += 1  # written by a run that was killed before it could say so
        else:
            _replace(place, data)
            done.files += 1
        state = FileState(
            path, stored.identifier, len(data), int(time.time()), "", digest, self._task.format, KIND, ""
        )
        return state, None

    def _data(self, stored: Stored) -> bytes:
        record = CommonRecord.of(orjson.loads(stored.metadata), stored.identifier, written(stored.datestamp))
        head, tail = self._format.around
        return head + self._format.pack(self._table.write(common_record(stored.raw, record))) + tail

    def _path(self, stored: Stored, source: Origin) -> str:
        metadata = orjson.loads(stored.metadata)
        found = next(filter(None, map(year, metadata.get("date", ()))), None)
        local = stored.identifier.rpartition(":")[2] or stored.identifier
        # Two identifiers may look alike once they are made safe.
        short = blake2b(stored.identifier.encode(), digest_size=4).hexdigest()
        places = {
            "source": _safe(source.name), "year": str(found or "undated"),
            "set": _safe(next(iter(own_sets(stored.sets.split())), "none")),
            "name": f"{_safe(local)}-{short}",
        }  # fmt: skip
        parts = [_safe(part) for part in self._task.path.format(**places).split("/") if part.strip(". ")]
        return "/".join(parts) + self._format.suffix

    def _gone(self, stored: Stored, before: FileState, done: Written) -> list[Failure]:
        done.deleted += 1
        place = self._folder / before.path
        if self._task.deletions == "remove":
            place.unlink(missing_ok=True)
            return []
        said = f"deleted at its source; {before.path} was written from it: delete it in the catalogue"
        if self._task.deletions == "file":
            tombstone = {"identifier": stored.identifier, "deleted": written(stored.datestamp)}
            _replace(place.with_name(f"{place.name}.deleted"), orjson.dumps(tombstone) + b"\n")
        return [Failure(stored.identifier, ALERT, said)]


def _safe(text: str) -> str:
    """A name that is one part of a path, whatever it was before."""
    found = _UNSAFE.sub("_", text).strip("._") or "_"
    return found.encode()[:_PART_BYTES].decode("utf-8", "ignore")


def _same(place: Path, data: bytes) -> bool:
    try:
        return place.stat().st_size == len(data) and place.read_bytes() == data
    except OSError:
        return False


def _replace(place: Path, data: bytes) -> None:
    """The file with these bytes, all of them or none."""
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that people have to do."""

    task: str
    record: str
    at: str
    reason: str


def alerts(store: Store) -> Iterator[Alert]:
    """What waits for somebody, oldest first."""
    with store.read() as view:
        tasks = {origin.id: origin.name for origin in view.origins(KIND)}
        found = [f for f in view.failures() if f.stage == ALERT]
    for failure in sorted(found, key=lambda f: f.at):
        when = datetime.fromtimestamp(failure.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        yield Alert(tasks.get(failure.origin, ""), failure.where, when, failure.reason)


def acknowledge(store: Store, record: str) -> bool:
    """Somebody has seen to it: the alerts about a record are done with."""
    with store.read() as view:
        mine = {f.origin for f in view.failures() if f.stage == ALERT and f.where == record}
    if not mine:
        raise StoreError(f"no alert about {record!r}; see  indlet alerts")
    with store.write() as tx:
        for origin in mine:
            tx.forgive(origin, [record])
    return True
