"""Several segments become one, without their deleted documents, in memory bounded by the vocabulary.

Documents keep their order, so lists are joined, not sorted. Postings pass through in chunks of terms.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np

from indlet.service.index import tokens
from indlet.service.index.batch import narrow, write_documents, write_names
from indlet.service.index.codec import PADDING, decode, encode, room
from indlet.service.index.compiled import kernel
from indlet.service.index.positions import copy_places
from indlet.service.index.segment import Array, ArrayFile, File, Segment

CHUNK: Final = 1 << 22  # postings at a time


@kernel
def _unpack(stream: Any, starts: Any, bounds: Any, docs: Any, freqs: Any) -> None:
    for t in range(starts.size):
        decode(stream, np.int64(starts[t]), docs, freqs, bounds[t])


@kernel
def _move(
    docs: Any, freqs: Any, bounds: Any, numbers: Any, targets: Any, to_docs: Any, to_freqs: Any
) -> None:
    """Copies the live postings of list t to targets[t] on, under their new numbers (-1: deleted)."""
    for t in range(targets.size):
        to = targets[t]
        for i in range(bounds[t], bounds[t + 1]):
            number = numbers[docs[i]]
            if number >= 0:
                to_docs[to] = number
                to_freqs[to] = freqs[i]
                to += 1


@kernel
def _gather(source: Any, begins: Any, sizes: Any, targets: Any, out: Any) -> None:
    for t in range(begins.size):
        for k in range(sizes[t]):
            out[targets[t] + k] = source[begins[t] + k]


class Halted(Exception):
    """A merge was told to stop; it has left nothing behind."""


def renumbered(segments: Sequence[Segment]) -> list[Array]:
    """The number that each document of each segment gets in their merge; -1 for the deleted."""
    numbers, base = [], 0
    for segment in segments:
        live = np.flatnonzero(~_gone(segment))
        number = np.full(segment.size, -1, np.int64)
        number[live] = np.arange(base, base + live.size)
        numbers.append(number)
        base += live.size
    return numbers


def merge(segments: Sequence[Segment], path: Path, halt: threading.Event | None = None) -> File:
    """Writes one segment with the live documents of all; `halt` ends it early, with Halted."""
    lives = [np.flatnonzero(~_gone(segment)) for segment in segments]
    numbers = renumbered(segments)
    out = ArrayFile(path)
    try:
        lengths = _joined(segments, lives, "length")
        postings = _merge_postings(segments, numbers, lengths, out, path.parent, halt)
        write_documents(
            out,
            ids=_joined(segments, lives, "id"),
            lengths=lengths,
            norms=_joined(segments, lives, "norm"),
            ties=_joined(segments, lives, "tie"),
            resources=_joined(segments, lives, "resource"),
            dates=_joined(segments, lives, "date"),
        )
        facets = {name: _merge_facet(segments, lives, name, out) for name in segments[0].facets}
        return out.close({"facets": facets, "postings": postings})
    except BaseException:
        out.discard()
        raise


def _gone(segment: Segment) -> Array:
    return np.zeros(segment.size, np.bool_) if segment.gone is None else segment.gone


def _joined(segments: Sequence[Segment], lives: Sequence[Array], name: str) -> Array:
    return np.concatenate([segment.arrays[name][live] for segment, live in zip(segments, lives, strict=True)])


class Vocabulary:
    """The union of the terms that still have documents: each of the `entries` is a term of one segment."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        live = [np.flatnonzero(segment.frequencies()[0]) for segment in segments]
        text = np.concatenate([segment.arrays["names"] for segment in segments])
        shifts = np.cumsum([0] + [segment.arrays["names"].size for segment in segments])
        bounds = [segment.arrays["bounds"].astype(np.int64) for segment in segments]
        names = np.concatenate([b[k] + s for b, k, s in zip(bounds, live, shifts, strict=False)])
        sizes = np.concatenate([(b[k + 1] - b[k]) for b, k in zip(bounds, live, strict=True)])
        owner = np.repeat(np.arange(len(segments)), [k.size for k in live])
        term = np.concatenate(live)
        df = np.concatenate([segment.frequencies()[0][k] for segment, k in zip(segments, live, strict=True)])
        order = tokens.ordered(text, names, sizes)
        self.owner, self.term, self.df = owner[order], term[order], df[order]
        # Equal names have become neighbours, in the order of their segments.
        same = np.zeros(order.size, np.bool_)
        _equal(text, names[order], sizes[order], same)
        first = np.flatnonzero(~same)
        self.group = np.cumsum(~same) - 1
        self.count = first.size
        self.blob = np.empty(int(sizes[order[first]].sum()), np.uint8)
        self.ends = np.empty(first.size, np.int64)
        tokens.copied(text, names, sizes, order[first], self.blob, self.ends)


@kernel
def _equal(text: Any, names: Any, sizes: Any, same: Any) -> None:
    """Flags each name that equals the one before it."""
    for i in range(1, names.size):
        if sizes[i] == sizes[i - 1]:
            equal = True
            for k in range(sizes[i]):
                if text[names[i] + k] != text[names[i - 1] + k]:
                    equal = False
                    break
            same[i] = equal


class _Places:
    """Collects positions in a file without a name until the stream, which is being written, is complete."""

    def __init__(self, folder: Path, terms: int) -> None:
        self._spool = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed by `write`
        self._starts = np.zeros(terms + 1, np.int64)

    def add(
        self, low: int, high: int, group: Array, owner: Array, copies: Sequence[tuple[Array, Array]]
    ) -> None:
        """Takes what the segments hold for terms low to high; `group` and `owner` tell what each entry is."""
        sizes = np.zeros(owner.size, np.int64)
        for number, (_, ends) in enumerate(copies):
            if ends.size:
                sizes[owner == number] = np.diff(ends, prepend=0)
        to = np.concatenate(([0], np.cumsum(sizes)))
        joined = np.empty(int(to[-1]), np.uint8)
        for number, (places, ends) in enumerate(copies):
            if ends.size:
                mine = owner == number
                _gather(places, ends - sizes[mine], sizes[mine], to[:-1][mine], joined)
        self._spool.write(joined.data)
        each = np.bincount(group - low, sizes, high - low).astype(np.int64)
        self._starts[low + 1 : high + 1] = self._starts[low] + np.cumsum(each)

    def write(self, out: ArrayFile, placed: Array) -> None:
        out.begin("places", np.uint8)
        self._spool.seek(0)
        while piece := self._spool.read(CHUNK):
            out.append("places", np.frombuffer(piece, np.uint8))
        self.close()
        out.add("place_starts", self._starts)
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
    words = Vocabulary(segments)
    positional = any(segment.positional for segment in segments)
    with closing(_Places(folder, words.count)) as places:
        out.begin("stream", np.uint8)
        starts = np.zeros(words.count + 1, np.int64)
        counts = np.bincount(words.group, words.df, words.count).astype(np.int64)
        total = np.concatenate(([0], np.cumsum(counts)))
        at = low = 0
        while low < words.count:
            if halt is not None and halt.is_set():
                raise Halted
            high = max(int(np.searchsorted(total, total[low] + CHUNK, "right")) - 1, low + 1)
            entries = slice(*np.searchsorted(words.group, [low, high]))
            owner, term = words.owner[entries], words.term[entries]
            docs = np.empty(int(total[high] - total[low]), np.uint32)
            freqs = np.empty(docs.size, np.uint32)
            targets = np.concatenate(([0], np.cumsum(words.df[entries])))[:-1]
            copies = []
            for number, segment in enumerate(segments):
                mine = owner == number
                copies.append(_take(segment, term[mine], numbers[number], targets[mine], docs, freqs))
            if positional:
                places.add(low, high, words.group[entries], owner, copies)
            bounds = total[low : high + 1] - total[low]
            piece = np.empty(int(room(bounds)), np.uint8)
            ends = np.empty(high - low, np.int64)
            used = int(encode(docs, freqs, bounds, lengths, piece, ends))
            out.append("stream", piece[:used])
            starts[low + 1 : high + 1] = at + ends
            at += used
            low = high
        out.append("stream", np.zeros(PADDING, np.uint8))
        out.add("starts", starts[:-1].astype(np.uint32))
        write_names(out, words.blob, words.ends)
        if positional:
            placed = [
                segment.arrays.get("placed", np.zeros(segment.size, np.uint8))[number >= 0]
                for segment, number in zip(segments, numbers, strict=True)
            ]
            places.write(out, np.concatenate(placed))
    return int(total[-1])


def _take(
    segment: Segment, terms: Array, numbers: Array, targets: Array, docs: Array, freqs: Array
) -> tuple[Array, Array]:
    """Copies a segment's live postings of some terms into place; gives their positions and where each term's
    end.
    """
    arrays = segment.arrays
    full = segment.listed()[terms]
    bounds = np.concatenate(([0], np.cumsum(full)))
    all_docs, all_freqs = np.empty(int(bounds[-1]), np.uint32), np.empty(int(bounds[-1]), np.uint32)
    _unpack(arrays["stream"], arrays["starts"][terms], bounds, all_docs, all_freqs)
    _move(all_docs, all_freqs, bounds, numbers, targets, docs, freqs)
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


def _merge_facet(segments: Sequence[Segment], lives: Sequence[Array], name: str, out: ArrayFile) -> list[str]:
    facets = [segment.facets[name] for segment in segments]
    numbers: dict[str, int] = {"": 0}
    codes, counts = [], []
    for facet, live in zip(facets, lives, strict=True):
        known = np.array([numbers.setdefault(value, len(numbers)) for value in facet.values], np.int64)
        if facet.starts is None:
            codes.append(known[facet.codes[live]])
            counts.append(np.ones(live.size, np.int64))
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
