"""Files of plain arrays, memory-mapped: what segments, deletions and thresholds are stored in.

The file is the arrays one after another, each at a multiple of 64 bytes, then a JSON directory (name -> type,
place, count; and `facts`), then the directory's size and a magic word. An array of whole numbers may be
stored in a narrower type: as what is above the least number, or as steps from one number to the next. The
directory then also has that type (none if all is zero), which of the two, and the number to begin with.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from indlet.durable import open_private
from indlet.errors import IndexDamaged
from indlet.limits import require_room
from indlet.model import JsonMapping, JsonObject
from indlet.service.index.embedded.manifest import REMEDY, SegmentFile

MAGIC: Final = b"indlet-2"
# Before that, arrays were stored as they are, and frequencies were all of one width in a block.
_READ: Final = (b"indlet-1", MAGIC)
ALIGN: Final = 64
Array = NDArray[Any]
_Directory = dict[str, list[Any]]

# Files that this process has read through and found whole: they never change. A node that runs for months
# meets millions: when there are too many, those that are still there are read once more.
_verified: set[tuple[int, ...]] = set()
MOST_VERIFIED: Final = 10_000


class ArrayFile:
    """Writes arrays into one file; an array may be appended in pieces. `close` makes it durable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = open_private(path, "wb")
        self._at = 0
        self._checksum = 0
        self._directory: _Directory = {}

    def begin(self, name: str, dtype: DTypeLike) -> None:
        require_room(self._path.parent, 0)
        self._write(b"\0" * (-self._at % ALIGN))
        self._directory[name] = [np.dtype(dtype).str, self._at, 0]

    def append(self, name: str, piece: Array) -> None:
        entry = self._directory[name]
        self._write(np.ascontiguousarray(piece, dtype=entry[0]).view(np.uint8).data)
        entry[2] += piece.size

    def add(self, name: str, array: Array) -> None:
        stored, how = _narrowed(array)
        self.begin(name, stored.dtype)
        if stored.size:
            self.append(name, stored)
        if how is not None:
            self._directory[name] = [array.dtype.str, self._directory[name][1], array.size, *how]

    def close(self, facts: JsonMapping) -> SegmentFile:
        directory = json.dumps({"arrays": self._directory, "facts": facts}).encode()
        self._write(directory + len(directory).to_bytes(8, "little") + MAGIC)
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._handle.close()
        return SegmentFile(self._path.name, self._at, self._checksum)

    def discard(self) -> None:
        with suppress(OSError):  # what waits to be written finds no room either
            self._handle.close()
        self._path.unlink(missing_ok=True)

    def _write(self, data: bytes | memoryview) -> None:
        self._handle.write(data)
        self._checksum = zlib.crc32(data, self._checksum)
        self._at += len(data)


class Arrays(dict[str, Array]):
    """The arrays of a file: those that are stored as they are, and others once they are asked for. What `get`
    and `items` know is only what is there already.
    """

    def __init__(self, data: mmap.mmap, directory: _Directory) -> None:
        super().__init__(
            {
                name: np.frombuffer(data, dtype=np.dtype(dtype), count=count, offset=place)
                for name, (dtype, place, count, *how) in directory.items()
                if not how
            }
        )
        self._data, self._directory = data, directory

    def __missing__(self, name: str) -> Array:
        made = self[name] = self.passing(name)
        return made

    def passing(self, name: str) -> Array:
        """The same, but not kept for the next who asks."""
        if (held := self.get(name)) is not None:
            return held
        dtype, place, count, *how = self._directory[name]
        return _widened(self._data, np.dtype(dtype), place, count, *how)

    def __contains__(self, name: object) -> bool:
        return name in self._directory

    def optional(self, name: str) -> Array | None:
        return self[name] if name in self._directory else None

    def names(self) -> Iterable[str]:
        return self._directory

    def size(self, name: str) -> int:
        return int(self._directory[name][2])


def read_arrays(folder: Path, file: SegmentFile) -> tuple[Arrays, JsonObject]:
    """The arrays and facts of a file, checked by its checksum; raises FileNotFoundError if it has gone."""
    path = folder / file.name
    with path.open("rb") as handle:
        about = os.fstat(handle.fileno())
        known = about.st_dev, about.st_ino, about.st_mtime_ns, about.st_ctime_ns, file.checksum
        if about.st_size != file.size:
            raise IndexDamaged(f"{path} has not the {file.size} bytes that were written; {REMEDY}")
        # Copy-on-write, though nothing writes: kernels would be compiled twice, for read-only arrays and
        # for others.
        data = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_COPY)
    if known not in _verified:
        if zlib.crc32(data) != file.checksum:
            raise IndexDamaged(f"{path} fails its checksum; {REMEDY}")
        if len(_verified) >= MOST_VERIFIED:
            _verified.clear()
        _verified.add(known)
    if data[-8:] not in _READ:
        raise IndexDamaged(f"{path} is of another version; {REMEDY}")
    size = int.from_bytes(data[-16:-8], "little")
    directory = json.loads(data[-16 - size : -16])
    return Arrays(data, directory["arrays"]), directory["facts"]


def _narrowed(array: Array) -> tuple[Array, tuple[str, bool, int] | None]:
    """What to store for an array; and, if that is not the array, its type, whether it is steps from one
    number to the next, and the number to begin with.
    """
    if array.dtype.kind not in "iu" or not array.size or (array.itemsize == 1 and array[0] != array[-1]):
        return array, None
    plain = array.view(np.dtype(f"u{array.itemsize}"))  # differences of any two fit into that
    best, how = array, None
    for steps, first in ((False, int(array.argmin())), (True, 0)):
        rest = np.diff(plain, prepend=plain[0]) if steps else plain - plain[first]
        most = int(rest.max())
        size = next(size for size in (0, 1, 2, 4, 8) if most < 1 << 8 * size)
        if size < best.itemsize and best.size:
            kind = np.dtype(f"u{size or 1}")
            best = rest.astype(kind) if size else rest[:0].astype(kind)
            how = (kind.str if size else "", steps, int(array[first]))
    return best, how


def _widened(
    data: mmap.mmap, dtype: np.dtype[Any], place: int, count: int, stored: str, steps: bool, begin: int
) -> Array:
    out: Array = np.zeros(count, np.dtype(f"u{dtype.itemsize}"))
    if stored:
        rest = np.frombuffer(data, np.dtype(stored), count, place)
        out[:] = np.cumsum(rest, dtype=out.dtype) if steps else rest
    out = out.view(dtype)
    out += dtype.type(begin)
    return out


def check(folder: Path, file: SegmentFile) -> None:
    """Reads a file from disk as if it had never been read; raises IndexDamaged if it is not as written."""
    with (folder / file.name).open("rb") as handle:
        checksum = 0
        while piece := handle.read(1 << 22):
            checksum = zlib.crc32(piece, checksum)
    if checksum != file.checksum:
        raise IndexDamaged(f"{folder / file.name} fails its checksum; {REMEDY}")
