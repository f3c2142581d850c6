"""An immutable part of the index: one file of plain arrays (`array_file`), as read.

Deleting documents leaves the file untouched: a small file beside it (`Deletions`) says which documents have
gone and what that takes from each term.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indlet.kernels.codec import decode, headers, subtract
from indlet.model import JsonObject
from indlet.service.index.embedded.array_file import Array, ArrayFile, Arrays, read_arrays
from indlet.service.index.embedded.manifest import SegmentFile


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
    arrays: Arrays
    facts: JsonObject
    deletions: Deletions | None
    gone: NDArray[np.bool_] | None
    documents: int
    length: int
    # Worked out when first asked for; `shared` holds what deletions do not change.
    cache: JsonObject = field(default_factory=dict)
    shared: JsonObject = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Documents in the file, deleted ones too."""
        return self.arrays.size("id")

    @property
    def ended(self) -> int:
        return self.size - self.documents

    @property
    def positional(self) -> bool:
        return "places" in self.arrays

    @property
    def facet_names(self) -> tuple[str, ...]:
        return tuple(self.facts["facets"])

    def facet(self, name: str) -> FacetColumn:
        """A facet's column; read when it is first asked for."""
        found: FacetColumn | None = self.shared.get(f"column:{name}")
        if found is None:
            found = self.shared[f"column:{name}"] = FacetColumn(
                ("", *self.facts["facets"][name]),
                self.arrays[f"facet:{name}"],
                self.arrays.optional(f"facets:{name}"),
            )
        return found

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

    def may_hold(self, ids: Array) -> bool:
        """Whether some of these record ids (ascending) lie between the least and the largest here."""
        if "ids" not in self.shared:
            own = self.arrays.passing("id")
            self.shared["ids"] = int(own.min()), int(own.max())
        least, most = self.shared["ids"]
        return bool(ids[0] <= most and least <= ids[-1])

    def by_id(self) -> tuple[Array, Array]:
        """The record ids in ascending order, and their documents."""
        if "by_id" not in self.shared:
            ids = self.arrays.passing("id").astype(np.int64)
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
        facet = self.facet("origin")
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
                self.file, self.deletions_file, self.arrays, self.facts, self._deleting(docs), self.shared
            )
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
    arrays: Arrays,
    facts: JsonObject,
    folder: Path,
    shared: JsonObject,
) -> Segment:
    deletions = None
    if removed is not None:
        found, _ = read_arrays(folder, removed)
        deletions = Deletions(found["docs"], found["terms"], found["df"], found["cf"])
    return _made(file, removed, arrays, facts, deletions, shared)


def _made(
    file: SegmentFile,
    removed: SegmentFile | None,
    arrays: Arrays,
    facts: JsonObject,
    deletions: Deletions | None,
    shared: JsonObject,
) -> Segment:
    lengths, gone = arrays.passing("length"), None
    documents, length = lengths.size, int(lengths.sum(dtype=np.int64))
    if deletions is not None:
        gone = np.zeros(lengths.size, np.bool_)
        gone[deletions.docs] = True
        documents -= deletions.docs.size
        length -= int(lengths[deletions.docs].sum(dtype=np.int64))
    return Segment(file, removed, arrays, facts, deletions, gone, documents, length, {}, shared)


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
