"""Merging in the background: which segments become one, and when, while the writer goes on committing.

A merge reads a snapshot and writes one file. Only when that is complete does it take its turn at the
manifest, for as long as the swap takes; what was deleted meanwhile is then deleted in the new segment too, so
that statistics are exact before, at and after the swap. It needs no permit to write, only the one to merge.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Final

from indlet import _core
from indlet.durable import sync
from indlet.errors import IndexDamaged
from indlet.limits import require_room
from indlet.service.index.embedded import manifest as manifests
from indlet.service.index.embedded.manifest import REMEDY, Manifest, SegmentEntry, SegmentFile
from indlet.service.index.embedded.segment import Segment, open_segment

TIER: Final = 8  # this many segments of like size become one
FLOOR: Final = 1 << 20  # bytes below which segments count as of one size
WASTE: Final = 0.3  # a segment with a larger part deleted is rewritten
LARGEST: Final = 3 << 30  # bytes of a merged segment


def due(segments: Sequence[Segment], largest: int = LARGEST) -> list[Segment]:
    """A set of segments that had better be one, and can, if there is one."""
    tiers: dict[int, list[Segment]] = {}
    for segment in segments:
        if segment.deleted > WASTE * segment.core.size:
            return [segment]
        live = segment.file.size * segment.documents // max(segment.core.size, 1)
        tiers.setdefault((max(live, FLOOR) // FLOOR).bit_length() // 3, []).append(segment)
    for tier in sorted(tiers):
        if len(tiers[tier]) >= TIER:
            fitting = _fitting(sorted(tiers[tier], key=lambda segment: segment.file.size), largest)
            if len(fitting) > 1:
                return fitting
    return []


def _fitting(segments: Sequence[Segment], largest: int) -> list[Segment]:
    """As many of them, from the first on, as one segment can hold."""
    sizes = accumulate(segment.file.size for segment in segments)
    return [segment for segment, size in zip(segments, sizes, strict=True) if size < largest]


def _worth_while(segments: Sequence[Segment]) -> list[Segment]:
    fitting = _fitting(segments, LARGEST)
    return fitting if len(fitting) > 1 or any(segment.deleted for segment in fitting) else []


def merge_once(folder: Path, everything: bool = False, halt: threading.Event | None = None) -> bool:
    """Do one merge that is due, or one of all segments; whether it was done.

    It is not where nothing is due, where another merge is running, where it was told to halt, or where the
    index was rebuilt meanwhile. OSError (a full disk, say) leaves the index as it was.
    """
    with manifests.merging(folder) as mine:
        if not mine:
            return False
        segments = _snapshot(folder)
        chosen = _worth_while(segments) if everything else due(segments)
        if not chosen:
            return False
        name = manifests.name(manifests.MERGED, 0)
        require_room(folder, sum(segment.file.size for segment in chosen))
        cores = [segment.core for segment in chosen]
        written = _core.merge_segments(cores, folder / name, None if halt is None else halt.is_set)
        if written is None:
            return False
        joined = open_segment(folder, SegmentFile(name, *written))
        with manifests.turn(folder):
            done = _swap(folder, chosen, joined)
            # What a writer drops while it is merged, it leaves to the merge.
            for name in {segment.file.name for segment in (*chosen, joined)} - manifests.read(folder).files():
                (folder / name).unlink(missing_ok=True)
        return done


def _snapshot(folder: Path) -> list[Segment]:
    """The segments as they are; not in one's turn, for checking a large file takes a while."""
    while True:
        manifest = manifests.read(folder)
        try:
            return [open_segment(folder, entry.segment, entry.deletions) for entry in manifest.entries]
        except FileNotFoundError as error:
            if manifests.read(folder) == manifest:
                raise IndexDamaged(f"{error.filename} is missing; {REMEDY}") from error


def _swap(folder: Path, chosen: Sequence[Segment], joined: Segment) -> bool:
    """Put the merged segment in the place of those that it was made of, as they are now."""
    manifest = manifests.read(folder)
    now = {entry.segment: entry for entry in manifest.entries}
    entries = [now.pop(segment.file, None) for segment in chosen]
    if not any(entries):
        return False
    # A segment without documents is dropped: its entry has gone.
    current = [
        None if entry is None else segment.with_deletions(entry.deletions, folder).core
        for segment, entry in zip(chosen, entries, strict=True)
    ]
    docs = _core.deleted_since_merge([segment.core for segment in chosen], current)
    generation = manifest.generation + 1
    if docs:
        joined = joined.without(docs, folder, manifests.name("gone", generation))
    kept = list(now.values())
    if joined.documents:
        kept.append(SegmentEntry(joined.file, joined.deletions))
    fresh = Manifest(generation, manifest.position, tuple(kept), manifest.extra, manifest.thresholds)
    sync(folder)
    fresh.write(folder)
    # What the writer has written and not committed is none of our business.
    for name in manifest.files() - fresh.files():
        (folder / name).unlink(missing_ok=True)
    return True


def settle(folder: Path, halt: threading.Event | None = None) -> None:
    """Do all merges that are due. One that finds no room on the disk is left for another day."""
    with suppress(OSError, IndexDamaged):
        while not (halt and halt.is_set()) and merge_once(folder, halt=halt):
            pass


class Merger:
    """A thread that merges while its owner commits; `close` stops a merge and removes its file."""

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self._wake = threading.Event()
        self._halt = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Something may be due."""
        self._wake.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="index-merger", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._halt.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._halt.is_set():
            self._wake.wait()
            self._wake.clear()
            settle(self._folder, self._halt)
