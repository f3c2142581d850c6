"""The one file that says what the index is: replaced whole, so that a commit happens or does not."""

from __future__ import annotations

import fcntl
import json
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from indlet.durable import open_private, write_whole
from indlet.errors import IndexDamaged

REMEDY: Final = "the index is derived from the store: rebuild it with  indlet reindex"
NAME: Final = "manifest.json"
VERSION: Final = 4
WRITING: Final = "lock"  # held by the one writer for as long as it is open
TURN: Final = "turn"  # held by whoever replaces the manifest, the writer or a merge, for just that long
MERGING: Final = "merging"  # held while a merge runs: its file belongs to no manifest yet
LOCKS: Final = (WRITING, TURN, MERGING)
_READ: Final = 1 << 22  # bytes of a file at a time
MERGED: Final = "merge"  # how the names of files that merges write begin


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A written file, as the manifest knows it."""

    name: str
    size: int
    checksum: int

    def verify(self, path: Path) -> None:
        """Read the file from disk as if it had never been read; IndexDamaged if it is not as written."""
        checksum = 0
        with path.open("rb") as handle:
            while piece := handle.read(_READ):
                checksum = zlib.crc32(piece, checksum)
        if checksum != self.checksum:
            raise IndexDamaged(f"{path} fails its checksum; {REMEDY}")


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    segment: SegmentFile
    deletions: SegmentFile | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """`position` is the last change of the store that the index holds; `extra` is its owner's (policy digest
    …).
    """

    generation: int = 0
    position: int = 0
    entries: tuple[SegmentEntry, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    thresholds: SegmentFile | None = None  # by which postings are pruned

    def contents(self) -> dict[str, SegmentFile]:
        """All files of the index, by name."""
        files = [file for entry in self.entries for file in (entry.segment, entry.deletions)]
        return {file.name: file for file in (*files, self.thresholds) if file is not None}

    def files(self) -> set[str]:
        return set(self.contents())

    def write(self, folder: Path) -> None:
        body = json.dumps(
            {
                "version": VERSION,
                "generation": self.generation,
                "position": self.position,
                "segments": [asdict(entry) for entry in self.entries],
                "extra": self.extra,
                **({"thresholds": asdict(self.thresholds)} if self.thresholds else {}),
            }
        )
        write_whole(folder / NAME, f"{zlib.crc32(body.encode()):08x} {body}\n".encode())


def name(kind: str, generation: int) -> str:
    """A file name never used before: readers may still hold the files of the past."""
    return f"{kind}-{generation:08d}-{secrets.token_hex(4)}.idx"


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """One's turn to read the manifest and to replace it, without another doing so in between."""
    with open_private(folder / TURN, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def merging(folder: Path) -> Iterator[bool]:
    """The permit to merge; False if another has it."""
    with open_private(folder / MERGING, "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def sweep(folder: Path, wanted: set[str]) -> None:
    """Removes all other files, in the writer's turn: mapped ones live on for their readers."""
    with merging(folder) as idle:
        for file in folder.iterdir():
            running = file.name.startswith(f"{MERGED}-") and not idle
            if file.name not in wanted and file.name not in (NAME, *LOCKS) and not running:
                file.unlink(missing_ok=True)


def read(folder: Path) -> Manifest:
    """The manifest; an empty one where there is none yet."""
    path = folder / NAME
    try:
        text = path.read_text()
    except FileNotFoundError:
        return Manifest()
    except UnicodeDecodeError as error:
        raise IndexDamaged(f"{path} cannot be read; {REMEDY}") from error
    checksum, _, body = text.rstrip("\n").partition(" ")
    if f"{zlib.crc32(body.encode()):08x}" != checksum:
        raise IndexDamaged(f"{path} fails its checksum; {REMEDY}")
    data = json.loads(body)
    if data["version"] != VERSION:
        raise IndexDamaged(f"{path} is of version {data['version']}, this program reads {VERSION}; {REMEDY}")
    entries = tuple(
        SegmentEntry(
            SegmentFile(**entry["segment"]), SegmentFile(**entry["deletions"]) if entry["deletions"] else None
        )
        for entry in data["segments"]
    )
    thresholds = SegmentFile(**data["thresholds"]) if "thresholds" in data else None
    return Manifest(data["generation"], data["position"], entries, data["extra"], thresholds)


def stamp(folder: Path) -> tuple[int, ...]:
    """What changes with every commit; empty where there has been none."""
    try:
        found = (folder / NAME).stat()
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size
