"""Several segments become one, without their deleted documents, in bounded memory.

Documents keep their order, so lists are joined, not sorted. Terms and lists pass through in pieces; what
stays in memory is a few bytes for each document.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import DTypeLike

from indlet.kernels import merge as k
from indlet.kernels.codec import PADDING, encode, room
from indlet.kernels.positions import copy_places
from indlet.service.index.embedded.array_file import Array, ArrayFile
from indlet.service.index.embedded.batch import narrow
from indlet.service.index.embedded.manifest import SegmentFile
from indlet.service.index.embedded.segment import Segment
from indlet.service.index.embedded.vocabulary import SortedWords, union

CHUNK: Final = 1 << 16  # postings at a time


class Halted(Exception):
    """A merge was told to stop; it has left nothing behind."""


def renumbered(segments: Sequence[Segment]) -> list[Array]:
    """The number that each document of each segment gets in their merge; -1 for the deleted."""
    numbers, base = [], 0
    for segment in segments:
        live = _live(segment)
        count = int(np.count_nonzero(live))
        number = np.full(segment.size, -1, np.int32)
        number[live] = np.arange(base, base + count, dtype=np.int32)
        numbers.append(number)
        base += count
    return numbers


def merge(segments: Sequence[Segment], path: Path, halt: threading.Event | None = None) -> SegmentFile:
    """Writes one segment with the live documents of all; `halt` ends it early, with Halted."""
    out = ArrayFile(path)
    try:
        lengths = joined(segments, "length")
        postings = _merge_postings(segments, renumbered(segments), lengths, out, path.parent, halt)
        ids = joined(segments, "id")
        out.add("id", narrow(ids) if ids.max(initial=0) < 1 << 32 else ids)
        del ids
        out.add("length", lengths)
        for name in ("norm", "tie", "resource", "date"):
            out.add(name, joined(segments, name))
        facets = {name: _merge_facet(segments, name, out) for name in segments[0].facet_names}
        return out.close({"facets": facets, "postings": postings})
    except BaseException:
        out.discard()
        raise


def _live(segment: Segment) -> Array:
    return np.ones(segment.size, np.bool_) if segment.gone is None else ~segment.gone


def joined(segments: Sequence[Segment], name: str) -> Array:
    return np.concatenate([segment.arrays.passing(name)[_live(segment)] for segment in segments])


class _Spool:
    """An array that is collected in a file without a name, until the array before it is complete."""

    def __init__(self, name: str, dtype: DTypeLike, folder: Path) -> None:
        self._name, self._dtype = name, np.dtype(dtype)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed by `close`

    def append(self, piece: Array) -> None:
        self._file.write(piece.astype(self._dtype).data)

    def write(self, out: ArrayFile) -> None:
        out.begin(self._name, self._dtype)
        self._file.seek(0)
        while piece := self._file.read(CHUNK):
            out.append(self._name, np.frombuffer(piece, self._dtype))

    def close(self) -> None:
        self._file.close()


class _Places:
    """The positions of all terms."""

    def __init__(self, folder: Path) -> None:
        self._spool = _Spool("places", np.uint8, folder)
        self._sizes: list[Array] = []

    def add(self, count: int, group: Array, owner: Array, copies: Sequence[tuple[Array, Array]]) -> None:
        """Takes what the segments hold for the next terms; `group` and `owner` tell what each entry is."""
        sizes = np.zeros(owner.size, np.int64)
        for number, (_, ends) in enumerate(copies):
            if ends.size:
                sizes[owner == number] = np.diff(ends, prepend=0)
        to = np.concatenate(([0], np.cumsum(sizes)))
        joined = np.empty(int(to[-1]), np.uint8)
        for number, (places, ends) in enumerate(copies):
            if ends.size:
                mine = owner == number
                k.gather(places, ends - sizes[mine], sizes[mine], to[:-1][mine], joined)
        self._spool.append(joined)
        self._sizes.append(np.bincount(group, sizes, count).astype(np.int64))

    def write(self, out: ArrayFile, placed: Array) -> None:
        self._spool.write(out)
        out.add("place_starts", np.cumsum(np.concatenate([np.zeros(1, np.int64), *self._sizes])))
        out.add("placed", placed)

    def close(self) -> None:
        self._spool.close()


def _merge_postings(
    segments: Sequence[Segment],
    numbers: Sequence[Array],
    lengths: Array,
    out: ArrayFile,
    folder: Path,
    halt: threading.Event | None,
) -> int:
    positional = any(segment.positional for segment in segments)
    at = named = postings = 0
    with ExitStack() as stack:
        places = stack.enter_context(closing(_Places(folder)))
        starts, names, bounds = (
            stack.enter_context(closing(_Spool(name, dtype, folder)))
            for name, dtype in (("starts", np.uint32), ("names", np.uint8), ("bounds", np.uint32))
        )
        bounds.append(np.zeros(1))
        out.begin("stream", np.uint8)
        for piece in union(segments):
            for low, high, docs, freqs, ends, copies in chunks(segments, numbers, piece):
                if halt is not None and halt.is_set():
                    raise Halted
                if positional:
                    entries = slice(*np.searchsorted(piece.group, [low, high]))
                    places.add(high - low, piece.group[entries] - low, piece.owner[entries], copies)
                room_for = np.empty(int(room(ends)), np.uint8)
                stops = np.empty(high - low, np.int64)
                used = int(encode(docs, freqs, ends, lengths, room_for, stops))
                out.append("stream", room_for[:used])
                starts.append(at + np.concatenate(([0], stops[:-1])))
                at += used
                postings += docs.size
            names.append(piece.blob)
            bounds.append(named + piece.ends)
            named += piece.blob.size
        out.append("stream", np.zeros(PADDING, np.uint8))
        for spool in (starts, names, bounds):
            spool.write(out)
        if positional:
            placed = [
                (each.arrays["placed"] if each.positional else np.zeros(each.size, np.uint8))[number >= 0]
                for each, number in zip(segments, numbers, strict=True)
            ]
            places.write(out, np.concatenate(placed))
    return postings


def chunks(
    segments: Sequence[Segment], numbers: Sequence[Array], piece: SortedWords
) -> Iterator[tuple[int, int, Array, Array, Array, list[tuple[Array, Array]]]]:
    """The joined lists of a piece's terms, so many at a time that memory is bounded: from which term to
    which, documents and frequencies, where each list ends, and the positions in each segment.
    """
    counts = np.bincount(piece.group, piece.df, piece.count).astype(np.int64)
    total = np.concatenate(([0], np.cumsum(counts)))
    low = 0
    while low < piece.count:
        high = max(int(np.searchsorted(total, total[low] + CHUNK, "right")) - 1, low + 1)
        entries = slice(*np.searchsorted(piece.group, [low, high]))
        owner, term, listed = piece.owner[entries], piece.term[entries], piece.listed[entries]
        docs = np.empty(int(total[high] - total[low]), np.uint32)
        freqs = np.empty(docs.size, np.uint32)
        targets = np.concatenate(([0], np.cumsum(piece.df[entries])))[:-1]
        copies = []
        for number, segment in enumerate(segments):
            mine = owner == number
            copies.append(
                _take(segment, term[mine], listed[mine], numbers[number], targets[mine], docs, freqs)
            )
        yield low, high, docs, freqs, total[low : high + 1] - total[low], copies
        low = high


def _take(
    segment: Segment, terms: Array, listed: Array, numbers: Array, targets: Array, docs: Array, freqs: Array
) -> tuple[Array, Array]:
    """Copies a segment's live postings of some terms into place; gives their positions and where each term's
    end.
    """
    arrays = segment.arrays
    bounds = np.concatenate(([0], np.cumsum(listed)))
    all_docs, all_freqs = np.empty(int(bounds[-1]), np.uint32), np.empty(int(bounds[-1]), np.uint32)
    k.unpack(arrays["stream"], arrays["starts"][terms], bounds, all_docs, all_freqs)
    k.move(all_docs, all_freqs, bounds, numbers, targets, docs, freqs)
    if not segment.positional:
        return np.empty(0, np.uint8), np.empty(0, np.int64)
    starts = arrays["place_starts"]
    begins, stops = starts[terms], starts[terms + 1]
    places = np.empty(int((stops - begins).sum()), np.uint8)
    ends = np.empty(terms.size, np.int64)
    copy_places(
        arrays["places"],
        begins,
        stops,
        all_docs,
        all_freqs,
        bounds,
        arrays["placed"],
        numbers < 0,
        places,
        ends,
    )
    return places, ends


def _merge_facet(segments: Sequence[Segment], name: str, out: ArrayFile) -> list[str]:
    numbers: dict[str, int] = {"": 0}
    codes, counts = [], []
    for segment in segments:
        facet, live = segment.facet(name), _live(segment)
        known = np.array([numbers.setdefault(value, len(numbers)) for value in facet.values], np.int64)
        if facet.starts is None:
            codes.append(known[facet.codes[live]])
            counts.append(np.ones(codes[-1].size, np.int64))
            continue
        begins = facet.starts.astype(np.int64)
        count = (begins[1:] - begins[:-1])[live]
        first = np.repeat(begins[:-1][live] - np.concatenate(([0], np.cumsum(count)))[:-1], count)
        codes.append(known[facet.codes[first + np.arange(first.size)]])
        counts.append(count)
    joined = np.concatenate(codes)
    used = np.unique(joined[joined > 0])
    fresh = np.zeros(len(numbers), np.int64)
    fresh[used] = np.arange(1, used.size + 1)
    out.add(f"facet:{name}", narrow(fresh[joined]))
    count = np.concatenate(counts)
    if joined.size > count.size:
        out.add(f"facets:{name}", np.concatenate(([0], np.cumsum(count))).astype(np.uint32))
    values = list(numbers)
    return [values[code] for code in used]
