"""The index as a whole: it follows the store's change feed, commits, merges, and hands out snapshots.

One writer at a time, held by a lock on a file; any number of readers in any number of processes. A commit
makes new files durable and then replaces the manifest: whatever is killed, what was committed is there and
nothing else is.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, Self

import numpy as np

from indlet.errors import IndexBusy, IndexDamaged, StoreError
from indlet.model import Stored
from indlet.service.index import manifest as manifests
from indlet.service.index.batch import Batch
from indlet.service.index.manifest import Entry, Manifest
from indlet.service.index.merge import merge
from indlet.service.index.searcher import Searcher, Statistics
from indlet.service.index.segment import REMEDY, Segment, check, open_segment

FLUSH: Final = 128 << 20  # bytes of packed vectors that wait in memory before they become a segment
TIER: Final = 8  # so many segments of like size become one
FLOOR: Final = 1 << 20  # bytes below which segments count as of one size
WASTE: Final = 0.3  # a segment with a larger part deleted is rewritten
LARGEST: Final = 3 << 30  # bytes; places in a stream are 32-bit numbers


class Engine:
    """Open with `Engine.open`. Methods that write belong to one thread at a time."""

    def __init__(self, folder: Path, lock: IO[bytes] | None) -> None:
        self._folder = folder
        self._lock = lock
        self._guard = threading.RLock()
        self._opened: dict[str, Segment] = {}
        self._manifest = Manifest()
        self._stamp: tuple[int, ...] = ()
        self._searcher: Searcher | None = None
        self._batch = Batch()
        self._working: list[Segment] = []
        self._doomed: dict[str, set[int]] = {}
        self._position = 0
        self._stale: set[int] = set()
        self._serial = 0

    @classmethod
    def open(cls, path: Path | str, writable: bool = False) -> Self:
        """The index in a folder. Raises IndexDamaged if it cannot be served, StoreError if another writes."""
        folder = Path(path)
        lock = None
        if writable:
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / "lock").open("ab")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                lock.close()
                raise IndexBusy(
                    f"{folder} is being written by another process: wait for it, or stop it"
                ) from error
        engine = cls(folder, lock)
        try:
            engine._load()
        except BaseException:
            engine.close()
            raise
        if writable:
            engine._sweep()
        return engine

    @classmethod
    def erase(cls, path: Path | str) -> None:
        """Empties an index, damaged or not: the change feed then rebuilds it from the beginning."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise IndexBusy(
                    f"{folder} is being written by another process: wait for it, or stop it"
                ) from error
            (folder / manifests.NAME).unlink(missing_ok=True)
            manifests.sync(folder)
            for file in folder.iterdir():
                if file.name != "lock":
                    file.unlink()

    def close(self) -> None:
        """Lets another write. What was applied and not committed is forgotten; searchers go on working."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- reading

    @property
    def position(self) -> int:
        """The last change that is committed."""
        return self._manifest.position

    @property
    def extra(self) -> dict[str, Any]:
        """What the owner stored with the last commit."""
        return dict(self._manifest.extra)

    def searcher(self) -> Searcher:
        """The newest committed state; the same object until it changes."""
        if self._lock is None:
            self._refresh()
        with self._guard:
            if self._searcher is None:
                held = [self._opened[entry.segment.name] for entry in self._manifest.entries]
                self._searcher = Searcher(held, self._manifest.position, self._manifest.extra)
            return self._searcher

    def stats(self) -> Statistics:
        return self.searcher().stats()

    def verify(self) -> None:
        """Reads every file of the index once more; raises IndexDamaged for one that is not as written."""
        while True:
            stamp = _stamp(self._folder)
            try:
                for entry in manifests.read(self._folder).entries:
                    check(self._folder, entry.segment)
                    if entry.deletions is not None:
                        check(self._folder, entry.deletions)
                return
            except FileNotFoundError as error:
                if _stamp(self._folder) == stamp:
                    raise IndexDamaged(f"{error.filename} is missing; {REMEDY}") from error

    # ---- writing

    def apply(self, changes: Iterable[Stored]) -> int:
        """Takes changes in the order of the feed; they are seen after `commit`. Gives their number."""
        self._writer()
        count = 0
        batch = self._batch
        for change in changes:
            count += 1
            self._position = max(self._position, change.seq)
            self._stale.add(change.id)
            if change.deleted:
                batch.records.pop(change.id, None)
                continue
            batch.add(change)
            if batch.weight > FLUSH:
                self._flush()
                batch = self._batch
        return count

    def commit(
        self, position: int | None = None, extra: dict[str, Any] | None = None, merge: bool = True
    ) -> None:
        """Makes everything applied so far durable and visible; then merges what has become due."""
        self._writer()
        self._flush()
        if position is not None:
            self._position = max(self._position, position)
        kept = self._manifest.extra if extra is None else extra
        if not self._pending() and (self._position, kept) == (self._manifest.position, self._manifest.extra):
            return
        with self._or_nothing():
            fresh = []
            for segment in self._working:
                doomed = self._doomed.pop(segment.file.name, None)
                if doomed:
                    docs = np.array(sorted(doomed), np.int64)
                    segment = segment.without(docs, self._folder, self._name("gone"))
                if segment.documents:
                    fresh.append(segment)
            self._publish(fresh, self._position, kept)
        # What was applied is safe by now: a merge that finds no room on the disk is left for another day.
        with suppress(OSError):
            while merge and self.merge():
                pass

    def rollback(self) -> None:
        """Forgets what was applied since the last commit."""
        self._writer()
        self._reset()
        self._sweep()

    def merge(self, everything: bool = False) -> bool:
        """Joins one set of segments that is due (or all); tells whether there was one. Nothing may be
        pending.
        """
        self._writer()
        if self._pending():
            raise StoreError(f"{self._folder} has changes that are not committed: commit before merging")
        due = self._everything() if everything else self._due()
        if not due:
            return False
        with self._or_nothing():
            written = merge(due, self._folder / self._name("seg"))
            joined = open_segment(self._folder, written, None)
            names = {segment.file.name for segment in due}
            rest = [segment for segment in self._working if segment.file.name not in names]
            self._publish([*rest, joined], self._manifest.position, self._manifest.extra)
        return True

    # ---- inside

    @contextmanager
    def _or_nothing(self) -> Iterator[None]:
        """After a failure (a full disk, say) the engine stands at the last commit again, and can go on."""
        try:
            yield
        except BaseException:
            self._load()
            raise

    def _writer(self) -> None:
        if self._lock is None:
            raise StoreError(f"{self._folder} was opened for reading: open it with writable=True")

    def _pending(self) -> bool:
        return bool(self._stale or self._doomed or len(self._working) != len(self._manifest.entries))

    def _name(self, kind: str) -> str:
        """A file name never used before: readers may still hold the files of the past."""
        self._serial += 1
        return f"{kind}-{self._manifest.generation + 1:08d}-{self._serial:04d}.idx"

    def _flush(self) -> None:
        """Turns the waiting batch into a segment, and notes which older documents it replaces."""
        batch, self._batch = self._batch, Batch()
        stale = np.array(sorted(self._stale), np.int64)
        if stale.size:
            for segment in self._working:
                ids, docs = segment.by_id()
                at = np.searchsorted(ids, stale)
                at[at == ids.size] = 0
                found = docs[at[ids[at] == stale]]
                if segment.gone is not None:
                    found = found[~segment.gone[found]]
                if found.size:
                    self._doomed.setdefault(segment.file.name, set()).update(found.tolist())
        self._stale = set()
        if batch.records:
            with self._or_nothing():
                written = batch.write(self._folder / self._name("seg"))
                self._working.append(open_segment(self._folder, written, None))

    def _publish(self, segments: list[Segment], position: int, extra: dict[str, Any]) -> None:
        entries = tuple(Entry(segment.file, segment.deletions_file) for segment in segments)
        fresh = Manifest(self._manifest.generation + 1, position, entries, dict(extra))
        manifests.sync(self._folder)
        fresh.write(self._folder)
        with self._guard:
            self._manifest = fresh
            self._opened = {segment.file.name: segment for segment in segments}
            self._searcher = None
        self._reset()
        self._sweep()

    def _reset(self) -> None:
        self._batch, self._stale, self._doomed = Batch(), set(), {}
        self._working = [self._opened[entry.segment.name] for entry in self._manifest.entries]
        self._position = self._manifest.position

    def _sweep(self) -> None:
        """Removes files that no manifest names: mapped ones live on for their readers."""
        wanted = self._manifest.files() | {"lock", manifests.NAME}
        for file in self._folder.iterdir():
            if file.name not in wanted:
                file.unlink(missing_ok=True)

    def _load(self) -> None:
        """Opens what the manifest names; begins anew if a commit moved it meanwhile."""
        while True:
            stamp = _stamp(self._folder)
            manifest = manifests.read(self._folder)
            opened: dict[str, Segment] = {}
            try:
                for entry in manifest.entries:
                    known = self._opened.get(entry.segment.name)
                    if (
                        known is None
                        or known.file != entry.segment
                        or known.deletions_file != entry.deletions
                    ):
                        known = open_segment(self._folder, entry.segment, entry.deletions)
                    opened[entry.segment.name] = known
            except FileNotFoundError as error:
                if _stamp(self._folder) != stamp:
                    continue
                raise IndexDamaged(f"{error.filename} is missing; {REMEDY}") from error
            with self._guard:
                self._opened, self._manifest, self._stamp = opened, manifest, stamp
                self._searcher = None
            self._reset()
            return

    def _refresh(self) -> None:
        if _stamp(self._folder) != self._stamp:
            with self._guard:
                if _stamp(self._folder) != self._stamp:
                    self._load()

    def _everything(self) -> list[Segment]:
        whole = self._working
        return list(whole) if len(whole) > 1 or any(segment.ended for segment in whole) else []

    def _due(self) -> list[Segment]:
        tiers: dict[int, list[Segment]] = {}
        for segment in self._working:
            if segment.ended > WASTE * segment.size:
                return [segment]
            live = segment.file.size * segment.documents // max(segment.size, 1)
            tiers.setdefault((max(live, FLOOR) // FLOOR).bit_length() // 3, []).append(segment)
        for tier in sorted(tiers):
            due = tiers[tier]
            if len(due) >= TIER and sum(segment.file.size for segment in due) < LARGEST:
                return due
        return []


def _stamp(folder: Path) -> tuple[int, ...]:
    try:
        found = (folder / manifests.NAME).stat()
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size
