"""An immutable part of the index: one file of plain arrays, memory-mapped.

The file is the arrays one after another, each at a multiple of 64 bytes, then a JSON directory (name -> type,
place, count; and `facts`), then the directory's size and a magic word. An array of whole numbers may be
stored in a narrower type: as what is above the least number, or as steps from one number to the next. The
directory then also has that type (none if all is zero), which of the two, and the number to begin with.

Deleting documents leaves the file untouched: a small file beside it (`Deletions`) says which documents have
gone and what that takes from each term.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from indlet.errors import IndexDamaged
from indlet.kernels.codec import decode, headers, subtract
from indlet.model import JsonMapping, JsonObject
from indlet.service.index.embedded.manifest import REMEDY as REMEDY
from indlet.service.index.embedded.manifest import SegmentFile as SegmentFile

MAGIC: Final = b"indlet-2"
# Before that, arrays were stored as they are, and frequencies were all of one width in a block.
_READ: Final = (b"indlet-1", MAGIC)
ALIGN: Final = 64
Array = NDArray[Any]

# Files that this process has read through and found whole: they never change. A node that runs for months
# meets millions: when there are too many, those that are still there are read once more.
_verified: set[tuple[int, ...]] = set()
MOST_VERIFIED: Final = 10_000


class ArrayFile:
    """Writes arrays into one file; an array may be appended in pieces. `close` makes it durable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = path.open("wb")
        self._at = 0
        self._checksum = 0
        self._directory: dict[str, list[Any]] = {}

    def begin(self, name: str, dtype: DTypeLike) -> None:
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


def read_arrays(folder: Path, file: SegmentFile) -> tuple[dict[str, Array], JsonObject]:
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
    arrays = {
        name: np.frombuffer(data, dtype=np.dtype(dtype), count=count, offset=place)
        if not how
        else _widened(data, np.dtype(dtype), place, count, *how)
        for name, (dtype, place, count, *how) in directory["arrays"].items()
    }
    return arrays, directory["facts"]


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


@dataclass(frozen=True, slots=True)
class Deletions:
    """The documents of a segment that have gone, and what they took from the terms (by term number)."""

    docs: Array
    terms: Array
    df: Array
    cf: Array


@dataclass(frozen=True, slots=True)
class FacetColumn:
    """A column of names: `codes` number `values`; code 0 stands for none.

    `starts`, where documents may have several, says where each document's codes begin.
    """

    values: tuple[str, ...]
    codes: Array
    starts: Array | None


@dataclass(frozen=True, eq=False)
class Segment:
    """One segment as read, with its deletions up to a commit."""

    file: SegmentFile
    deletions_file: SegmentFile | None
    arrays: dict[str, Array]
    facts: JsonObject
    deletions: Deletions | None
    gone: NDArray[np.bool_] | None
    documents: int
    length: int
    facets: dict[str, FacetColumn]
    # Worked out when first asked for; `shared` holds what deletions do not change.
    cache: JsonObject = field(default_factory=dict)
    shared: JsonObject = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Documents in the file, deleted ones too."""
        return int(self.arrays["id"].size)

    @property
    def ended(self) -> int:
        return self.size - self.documents

    @property
    def positional(self) -> bool:
        return "places" in self.arrays

    def term(self, number: int) -> bytes:
        bounds = self.arrays["bounds"]
        return self.arrays["names"][int(bounds[number]) : int(bounds[number + 1])].tobytes()

    def frequencies(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Exact document and collection frequency of every term, without the deleted documents."""
        if "frequencies" not in self.cache:
            df, cf = self._written()
            if self.deletions is not None:
                df, cf = df.copy(), cf.copy()
                df[self.deletions.terms] -= self.deletions.df
                cf[self.deletions.terms] -= self.deletions.cf
            self.cache["frequencies"] = df, cf
        found: tuple[NDArray[np.int64], NDArray[np.int64]] = self.cache["frequencies"]
        return found

    def listed(self) -> NDArray[np.int64]:
        """The postings of every term in the file, those of deleted documents too."""
        return self._written()[0]

    def _written(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The frequencies in the file, with the deleted documents."""
        if "written" not in self.shared:
            count = self.arrays["starts"].size
            df, cf = np.empty(count, np.int64), np.empty(count, np.int64)
            headers(self.arrays["stream"], self.arrays["starts"], df, cf)
            self.shared["written"] = df, cf
        found: tuple[NDArray[np.int64], NDArray[np.int64]] = self.shared["written"]
        return found

    def by_id(self) -> tuple[Array, Array]:
        """The record ids in ascending order, and their documents."""
        if "by_id" not in self.shared:
            ids = self.arrays["id"].astype(np.int64)
            order = np.argsort(ids, kind="stable")
            self.shared["by_id"] = ids[order], order
        found: tuple[Array, Array] = self.shared["by_id"]
        return found

    def resources(self) -> tuple[Array, Array, Array]:
        """The resources in ascending order, their documents, and which occur more than once; deleted ones
        too.
        """
        if "resources" not in self.shared:
            resource = self.arrays["resource"]
            docs = np.argsort(resource, kind="stable")
            docs = docs[resource[docs] != 0]
            ordered = resource[docs]
            self.shared["resources"] = ordered, docs, np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        found: tuple[Array, Array, Array] = self.shared["resources"]
        return found

    def without(self, docs: Array, folder: Path, name: str) -> Segment:
        """This segment with these documents deleted as well; writes the new deletions file."""
        gone = self._deleting(docs)
        out = ArrayFile(folder / name)
        out.add("docs", gone.docs)
        out.add("terms", gone.terms)
        out.add("df", gone.df)
        out.add("cf", gone.cf)
        return self.with_deletions(out.close({}), folder)

    def with_deletions(self, file: SegmentFile | None, folder: Path) -> Segment:
        """This segment with the deletions of that file instead of its own; itself if these are the same."""
        if file == self.deletions_file:
            return self
        return load(self.file, file, self.arrays, self.facts, folder, self.shared)

    def hiding(self, origins: frozenset[str]) -> Segment:
        """This segment as if it had no documents of these origins; itself if it has none.

        Nothing is written: the same subtraction as for deletions, done once and kept with the segment.
        """
        facet = self.facets["origin"]
        codes = [code for code, name in enumerate(facet.values) if name in origins]
        if not codes:
            return self
        key = f"hiding:{sorted(origins)}"
        found: Segment | None = self.cache.get(key)
        if found is None:
            docs = np.flatnonzero(np.isin(facet.codes, codes))
            if self.gone is not None:
                docs = docs[~self.gone[docs]]
            if not docs.size:
                return self  # not kept: what refers to itself stays mapped until the collector comes
            found = _made(
                self.file, self.deletions_file, self.arrays, self.facts, self._deleting(docs), self.facets,
                self.shared,
            )  # fmt: skip
            self.cache[key] = found  # not before it is made: another thread would take this segment as it is
        return found

    def _deleting(self, docs: Array) -> Deletions:
        """The deletions, with these documents added to them."""
        gone = np.zeros(self.size, np.bool_)
        gone[docs] = True
        before = self.deletions
        if before is not None:
            gone[before.docs] = False
        ahead = np.zeros(self.size + 1, np.int64)
        np.cumsum(gone, out=ahead[1:])
        starts = self.arrays["starts"]
        df, cf = np.zeros(starts.size, np.int64), np.zeros(starts.size, np.int64)
        subtract(self.arrays["stream"], starts, gone, ahead, df, cf)
        if before is not None:
            df[before.terms] += before.df
            cf[before.terms] += before.cf
            gone[before.docs] = True
        terms = np.flatnonzero(df)
        return Deletions(
            np.flatnonzero(gone).astype(np.uint32), terms.astype(np.uint32), df[terms], cf[terms]
        )


def postings_at(segment: Segment, start: int) -> tuple[Array, Array]:
    """All documents and frequencies of the list that begins there, deleted documents too."""
    df, cf = np.empty(1, np.int64), np.empty(1, np.int64)
    stream = segment.arrays["stream"]
    headers(stream, np.array([start], np.int64), df, cf)
    docs, freqs = np.empty(int(df[0]), np.uint32), np.empty(int(df[0]), np.uint32)
    decode(stream, start, docs, freqs, 0)
    return docs, freqs


def open_segment(folder: Path, file: SegmentFile, deletions: SegmentFile | None) -> Segment:
    arrays, facts = read_arrays(folder, file)
    return load(file, deletions, arrays, facts, folder, {})


def load(
    file: SegmentFile,
    removed: SegmentFile | None,
    arrays: dict[str, Array],
    facts: JsonObject,
    folder: Path,
    shared: JsonObject,
) -> Segment:
    deletions = None
    if removed is not None:
        found, _ = read_arrays(folder, removed)
        deletions = Deletions(found["docs"], found["terms"], found["df"], found["cf"])
    facets = {
        name: FacetColumn(("", *values), arrays[f"facet:{name}"], arrays.get(f"facets:{name}"))
        for name, values in facts["facets"].items()
    }
    return _made(file, removed, arrays, facts, deletions, facets, shared)


def _made(
    file: SegmentFile,
    removed: SegmentFile | None,
    arrays: dict[str, Array],
    facts: JsonObject,
    deletions: Deletions | None,
    facets: dict[str, FacetColumn],
    shared: JsonObject,
) -> Segment:
    lengths = arrays["length"]
    gone = None
    documents, length = lengths.size, int(lengths.sum(dtype=np.int64))
    if deletions is not None:
        gone = np.zeros(lengths.size, np.bool_)
        gone[deletions.docs] = True
        documents -= deletions.docs.size
        length -= int(lengths[deletions.docs].sum(dtype=np.int64))
    return Segment(file, removed, arrays, facts, deletions, gone, documents, length, facets, {}, shared)


def bits(flags: Array) -> Array:
    """Flags of documents as bits."""
    out = np.zeros(-(-flags.size // 64), np.uint64)
    packed = np.packbits(flags, bitorder="little")
    out.view(np.uint8)[: packed.size] = packed
    return out


def ranges(lows: Array, highs: Array) -> Array:
    """The numbers from each low up to its high, one range after the other."""
    sizes = (highs - lows).astype(np.int64)
    shifts = np.repeat(lows.astype(np.int64) - np.concatenate(([0], np.cumsum(sizes)))[:-1], sizes)
    out: Array = shifts + np.arange(shifts.size)
    return out
