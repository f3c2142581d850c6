"""The index as a whole: it follows the store's change feed, commits, merges, and hands out snapshots.

One writer at a time, held by a lock on a file; any number of readers in any number of processes. A commit
makes new files durable and then replaces the manifest: whatever is killed, what was committed is there and
nothing else is. Merges go on aside (`merge_scheduler`), and may put one segment in the place of several
between two commits.
"""

from __future__ import annotations

import fcntl
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple, Self

from indlet import _core
from indlet.durable import open_private, sync
from indlet.errors import IndexBusy, IndexDamaged, StoreError
from indlet.limits import require_room
from indlet.model import JsonObject, Stored
from indlet.service.index.embedded import manifest as manifests
from indlet.service.index.embedded.manifest import REMEDY, Manifest, SegmentEntry, SegmentFile
from indlet.service.index.embedded.merge_scheduler import merge_once
from indlet.service.index.embedded.searcher import SegmentSearcher
from indlet.service.index.embedded.segment import Segment, open_segment
from indlet.service.index.protocol import Statistics
from indlet.text.analyse import Analyzer, stored_row

FLUSH: Final = 128 << 20  # bytes of memory that documents take before they become a segment
_READ: Final = 1 << 22  # bytes of a file at a time


class Pruning(NamedTuple):
    """Postings that weigh less than `share` of the `best`-th of their term are left out."""

    share: float
    best: int


class Engine:
    """Open with `Engine.open`. Methods that write belong to one thread at a time."""

    def __init__(
        self, folder: Path, lock: IO[bytes] | None, anew: bool = False, pruning: Pruning | None = None
    ) -> None:
        self._folder = folder
        self._pruning = pruning
        self._lock = lock
        self._rebuilding = anew
        self._guard = threading.RLock()
        self._opened: dict[str, Segment] = {}
        self._manifest = Manifest()
        self._stamp: tuple[int, ...] = ()
        self._searcher: SegmentSearcher | None = None
        self._batch = _core.SegmentBuilder()
        self._working: list[Segment] = []
        self._replaced: dict[str, set[int]] = {}
        self._position = 0
        self._stale: set[int] = set()
        self._outdated: list[list[int]] = []

    @classmethod
    def open(
        cls, path: Path | str, writable: bool = False, anew: bool = False, pruning: Pruning | None = None
    ) -> Self:
        """The index in a folder. Raises IndexDamaged if it cannot be served, IndexBusy if another writes.

        With `anew` the writer begins with an empty index, whatever is there: readers keep that until the
        first commit puts the new one in its place, which is pruned if `pruning` says so.
        """
        folder = Path(path)
        engine = cls(folder, _locked(folder) if writable else None, anew, pruning)
        try:
            if not writable:
                engine._load()
            else:
                with manifests.turn(folder):
                    engine._back()
                    engine._sweep()
        except BaseException:
            engine.close()
            raise
        return engine

    @classmethod
    def erase(cls, path: Path | str) -> None:
        """Empties an index, damaged or not: the change feed then rebuilds it from the beginning."""
        folder = Path(path)
        with _locked(folder), manifests.turn(folder):
            (folder / manifests.NAME).unlink(missing_ok=True)
            sync(folder)
            for file in folder.iterdir():
                if file.name not in manifests.LOCKS:
                    file.unlink()

    def close(self) -> None:
        """Lets another write. What was applied and not committed is forgotten; searchers go on working."""
        if self._lock is not None:
            if len(self._working) > len(self._manifest.entries):
                with suppress(OSError), manifests.turn(self._folder):
                    self._sweep()
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def position(self) -> int:
        """The last change that is committed."""
        return self._manifest.position

    @property
    def applied(self) -> int:
        """The last change that was applied, committed or not."""
        return self._position

    @property
    def anew(self) -> bool:
        """Whether the next commit puts a new index in the place of the one that is there."""
        return self._rebuilding

    @property
    def extra(self) -> JsonObject:
        """What the owner stored with the last commit."""
        return dict(self._manifest.extra)

    def searcher(self) -> SegmentSearcher:
        """The newest committed state; the same object until it changes."""
        if self._lock is None:
            self._refresh()
        with self._guard:
            if self._searcher is None:
                held = [self._opened[entry.segment.name] for entry in self._manifest.entries]
                extra = self._manifest.extra | {"pruned": self._manifest.thresholds is not None}
                self._searcher = SegmentSearcher(held, self._manifest.position, extra)
            return self._searcher

    def stats(self) -> Statistics:
        return self.searcher().stats()

    def verify(self) -> None:
        """Reads every file of the index once more; raises IndexDamaged for one that is not as written."""
        while True:
            stamp = manifests.stamp(self._folder)
            try:
                manifest = manifests.read(self._folder)
                for name, file in manifest.contents().items():
                    _verify(self._folder / name, file)
                return
            except FileNotFoundError as error:
                if manifests.stamp(self._folder) == stamp:
                    raise IndexDamaged(f"{error.filename} is missing; {REMEDY}") from error

    def apply(self, changes: Iterable[Stored], analyzer: Analyzer | None = None) -> int:
        """Take changes in the order of the feed; they are seen after `commit`. Gives their number.

        `analyzer` makes the terms of metadata; without one, records have those that come with them.
        """
        self._writer()
        changes = list(changes)
        if changes:
            self._position = max(self._position, max(stored.seq for stored in changes))
            self._stale.update(stored.id for stored in changes)
            self._batch.remove([stored.id for stored in changes if stored.deleted])
            # A record may come twice: what was added before its deletion is gone, what comes after it stays.
            last = {stored.id: stored for stored in changes}
            rows = [_row(stored) for stored in last.values() if not stored.deleted]
            self._batch.add(None if analyzer is None else analyzer.core, rows)
            if self._batch.memory > FLUSH:
                self._flush()
        return len(changes)

    def commit(self, position: int | None = None, extra: JsonObject | None = None) -> None:
        """Makes everything applied so far durable and visible."""
        self._writer()
        self._flush()
        if position is not None:
            self._position = max(self._position, position)
        kept = self._manifest.extra if extra is None else extra
        if not self._pending() and (self._position, kept) == (self._manifest.position, self._manifest.extra):
            return
        with self._or_nothing(), manifests.turn(self._folder):
            generation = self._rebase() + 1
            fresh = []
            for segment in self._working:
                replaced = self._replaced.pop(segment.file.name, None)
                if replaced:
                    name = manifests.name("gone", generation)
                    segment = segment.without(sorted(replaced), self._folder, name)
                if segment.documents:
                    fresh.append(segment)
            thresholds = self._manifest.thresholds
            if self._rebuilding:
                fresh, thresholds = self._prune_rebuilt(fresh, generation)
            self._publish(fresh, generation, kept, thresholds)

    def rollback(self) -> None:
        """Forgets what was applied since the last commit."""
        self._writer()
        with manifests.turn(self._folder):
            self._back()
            self._sweep()

    def merge(self, everything: bool = False) -> bool:
        """Joins one set of segments that is due (or all) at once; tells whether it did. Nothing may be
        pending.
        """
        self._writer()
        if self._pending():
            raise StoreError(f"{self._folder} has changes that are not committed: commit before merging")
        done = merge_once(self._folder, everything)
        if done:
            self._load()
        return done

    @contextmanager
    def _or_nothing(self) -> Iterator[None]:
        """After a failure (a full disk, say) the engine stands at the last commit again, and can go on."""
        try:
            yield
        except BaseException:
            self._back()
            raise

    def _back(self) -> None:
        """To the last commit; or, before the first one of an index made anew, to its empty beginning."""
        if self._rebuilding:
            self._reset()
        else:
            self._load()

    def _writer(self) -> None:
        if self._lock is None:
            raise StoreError(f"{self._folder} was opened for reading: open it with writable=True")

    def _pending(self) -> bool:
        changed = self._stale or self._replaced or len(self._working) != len(self._manifest.entries)
        return bool(changed or self._rebuilding)

    def _flush(self) -> None:
        """Turn the waiting documents into a segment, and note which older ones they replace."""
        stale = sorted(self._stale)
        if stale:
            self._mark_replaced(self._working, stale)
            if not self._rebuilding:
                self._outdated.append(stale)
        self._stale = set()
        if len(self._batch):
            with self._or_nothing():
                generation = self._manifest.generation + 1
                name = manifests.name("seg", generation)
                require_room(self._folder, self._batch.memory)
                file = SegmentFile(name, *self._batch.write(self._folder / name))
                segment = open_segment(self._folder, file)
                if self._manifest.thresholds is not None and not self._rebuilding:
                    segment = self._pruned(segment, self._manifest.thresholds, generation)
                self._working.append(segment)
        self._batch = _core.SegmentBuilder()

    def _prune_rebuilt(
        self, segments: Sequence[Segment], generation: int
    ) -> tuple[list[Segment], SegmentFile | None]:
        """The segments of a rebuilt index, pruned by thresholds that are learned from them."""
        if self._pruning is None:
            return list(segments), None
        name = manifests.name("least", generation)
        cores = [segment.core for segment in segments]
        file = SegmentFile(name, *_core.learn_thresholds(cores, *self._pruning, self._folder / name))
        return [self._pruned(segment, file, generation) for segment in segments], file

    def _pruned(self, segment: Segment, thresholds: SegmentFile, generation: int) -> Segment:
        name = manifests.name("seg", generation)
        least = self._folder / thresholds.name, (thresholds.size, thresholds.checksum)
        written = _core.merge_segments([segment.core], self._folder / name, None, least)
        assert written is not None  # nobody can halt it
        for old in (segment.file, segment.deletions):
            if old is not None:
                (self._folder / old.name).unlink()
        return open_segment(self._folder, SegmentFile(name, *written))

    def _mark_replaced(self, segments: Iterable[Segment], stale: list[int]) -> None:
        """Note which documents of these segments are of records that have changed."""
        for segment in segments:
            if found := segment.core.find(stale):
                self._replaced.setdefault(segment.file.name, set()).update(found)

    def _rebase(self) -> int:
        """Goes on from the manifest as it is now, in one's turn; gives its generation.

        If a merge has been faster, what has become stale since the last commit is looked up in its segment.
        """
        if self._rebuilding:
            try:
                return manifests.read(self._folder).generation
            except IndexDamaged:
                return 0
        manifest, known = manifests.read(self._folder), self._manifest
        if (manifest.position, manifest.extra) != (known.position, known.extra):
            # No merge does that: somebody has emptied the folder, or put another index there.
            raise IndexDamaged(f"{self._folder} was modified by another process; {REMEDY}")
        if manifest.generation != known.generation:
            opened = self._open(manifest)
            before = {id(segment) for segment in self._opened.values()}
            merged = [segment for segment in opened.values() if id(segment) not in before]
            self._working = [*opened.values(), *self._working[len(known.entries) :]]
            for stale in self._outdated:
                self._mark_replaced(merged, stale)
        return manifest.generation

    def _publish(
        self, segments: list[Segment], generation: int, extra: JsonObject, thresholds: SegmentFile | None
    ) -> None:
        entries = tuple(SegmentEntry(segment.file, segment.deletions) for segment in segments)
        fresh = Manifest(generation, self._position, entries, dict(extra), thresholds)
        sync(self._folder)
        fresh.write(self._folder)
        with self._guard:
            self._rebuilding = False
            self._manifest = fresh
            self._opened = {segment.file.name: segment for segment in segments}
            self._searcher = None
        self._reset()
        self._sweep()

    def _reset(self) -> None:
        self._batch = _core.SegmentBuilder()
        self._stale, self._replaced, self._outdated = set(), {}, []
        self._working = [self._opened[entry.segment.name] for entry in self._manifest.entries]
        self._position = self._manifest.position

    def _sweep(self) -> None:
        """Removes what a killed writer or merge has left. An index that cannot be read is of no use."""
        try:
            kept = manifests.read(self._folder).files()
        except IndexDamaged:
            kept = set()
        manifests.sweep(self._folder, kept)

    def _load(self) -> None:
        """Opens what the manifest names; begins anew if a commit moved it meanwhile."""
        while True:
            stamp = manifests.stamp(self._folder)
            manifest = manifests.read(self._folder)
            try:
                opened = self._open(manifest)
            except FileNotFoundError as error:
                if manifests.stamp(self._folder) != stamp:
                    continue
                raise IndexDamaged(f"{error.filename} is missing; {REMEDY}") from error
            with self._guard:
                self._opened, self._manifest, self._stamp = opened, manifest, stamp
                self._searcher = None
            self._reset()
            return

    def _open(self, manifest: Manifest) -> dict[str, Segment]:
        """The segments of a manifest, by name and in its order; what is known of open files stays known."""
        opened: dict[str, Segment] = {}
        for entry in manifest.entries:
            known = self._opened.get(entry.segment.name)
            if known is None or known.file != entry.segment:
                known = open_segment(self._folder, entry.segment, entry.deletions)
            opened[entry.segment.name] = known.with_deletions(entry.deletions, self._folder)
        return opened

    def _refresh(self) -> None:
        if manifests.stamp(self._folder) != self._stamp:
            with self._guard:
                if manifests.stamp(self._folder) != self._stamp:
                    self._load()


def _locked(folder: Path) -> IO[bytes]:
    """The lock of the one writer, taken."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = open_private(folder / manifests.WRITING, "ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise IndexBusy(f"{folder} is being written by another process: wait for it, or stop it") from error
    return lock


def _row(stored: Stored) -> _core.IndexRow:
    return stored.id, stored.origin, stored.sets, stored.resource, stored.fields, stored_row(stored)


def _verify(path: Path, file: SegmentFile) -> None:
    """Read a file from disk as if it had never been read."""
    checksum = 0
    with path.open("rb") as handle:
        while piece := handle.read(_READ):
            checksum = zlib.crc32(piece, checksum)
    if checksum != file.checksum:
        raise IndexDamaged(f"{path} fails its checksum; {REMEDY}")
