"""Static pruning by term: postings that weigh far less than the best of their term leave the index.

Carmel, Cohen, Fagin, Farchi, Herscovici, Maarek & Soffer (SIGIR 2001, "Static index pruning for information
retrieval systems"): of each term, z is the weight of its k-th best posting, and postings that weigh less than
ε z go. Here a weight is BM25's part for one document; a term's idf is the same for all of its postings and
cancels out. Lengths and norms of documents stay the true ones; df and cf count what is kept.

Thresholds are learned when an index is made anew, and hold for what comes later: what an index keeps follows
from its records and these, whatever the order in which they came. Terms of fields, keys and values stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from indlet.kernels import merge as k
from indlet.kernels import term_hash
from indlet.kernels.codec import PADDING, encode, room
from indlet.model import FIELD_MARK
from indlet.service.index.embedded.array_file import Array, ArrayFile, read_arrays
from indlet.service.index.embedded.manifest import SegmentFile
from indlet.service.index.embedded.merge import CHUNK, chunks, joined, renumbered
from indlet.service.index.embedded.segment import Segment
from indlet.service.index.embedded.vocabulary import union

K1, B = 1.2, 0.75
_MARK: Final = FIELD_MARK.encode()
# What depends on which postings there are; everything else of a segment stays as it is.
_LISTS: Final = ("stream", "starts", "names", "bounds", "places", "place_starts")


class Pruning(NamedTuple):
    """Postings that weigh less than `share` of the `best`-th of their term are left out."""

    share: float
    best: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the postings of a term have to weigh, where the average document has that length."""

    least: Mapping[bytes, float]
    average: float

    def write(self, path: Path) -> SegmentFile:
        names = sorted(self.least)
        out = ArrayFile(path)
        out.add("names", np.frombuffer(b"".join(names), np.uint8))
        out.add("ends", np.cumsum(np.fromiter(map(len, names), np.int64, len(names))))
        out.add("least", np.array([self.least[name] for name in names], np.float64))
        return out.close({"average": self.average})

    @classmethod
    def read(cls, folder: Path, file: SegmentFile) -> Thresholds:
        arrays, facts = read_arrays(folder, file)
        text, ends = arrays["names"].tobytes(), arrays["ends"].tolist()
        names = [text[low:high] for low, high in zip([0, *ends], ends, strict=False)]
        return cls(dict(zip(names, arrays["least"].tolist(), strict=True)), float(facts["average"]))


def weights(freqs: Array, lengths: Array, average: float) -> Array:
    """BM25's part of each posting for its document."""
    return freqs / (freqs + K1 * (1.0 - B + B * lengths / average))


def learn(segments: Sequence[Segment], pruning: Pruning) -> Thresholds:
    """The thresholds of all terms of the text that more than `best` documents have."""
    lengths = joined(segments, "length").astype(np.float64) if segments else np.empty(0)
    average = float(lengths.mean()) if lengths.any() else 1.0
    least: dict[bytes, float] = {}
    for piece in union(segments):
        starts = np.concatenate(([0], piece.ends))
        for low, _, docs, freqs, ends, _ in chunks(segments, renumbered(segments), piece):
            each = weights(freqs, lengths[docs], average)
            for number in np.flatnonzero(np.diff(ends) > pruning.best).tolist():
                name = piece.blob[starts[low + number] : starts[low + number + 1]].tobytes()
                if not name.startswith(_MARK):
                    best = np.partition(each[ends[number] : ends[number + 1]], -pruning.best)[-pruning.best]
                    least[name] = pruning.share * float(best)
    return Thresholds(least, average)


def pruned(segment: Segment, path: Path, thresholds: Thresholds) -> SegmentFile:
    """Writes a segment, of which nothing is deleted, without what weighs too little."""
    out = ArrayFile(path)
    try:
        sizes, place_sizes, kept = [], [np.zeros(1, np.int64)], 0
        spans: list[Array] = []
        places: list[Array] = []
        out.begin("stream", np.uint8)
        for terms, left, docs, freqs, each in _pruned_lists(segment, thresholds):
            ends = np.concatenate(([0], np.cumsum(left)))
            stream, stops = np.empty(int(room(ends)), np.uint8), np.empty(left.size, np.int64)
            used = int(encode(docs, freqs, ends, segment.arrays["length"], stream, stops))
            out.append("stream", stream[:used])
            sizes.append(np.diff(stops, prepend=0))
            spans.append(terms)
            kept += docs.size
            if each is not None:
                places.append(each[0])
                place_sizes.append(each[1])
        out.append("stream", np.zeros(PADDING, np.uint8))
        starts = np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))
        out.add("starts", starts[:-1].astype(np.uint32))
        _write_names(out, segment, np.concatenate([np.empty(0, np.int64), *spans]))
        if segment.positional:
            out.add("places", np.concatenate([np.empty(0, np.uint8), *places]))
            out.add("place_starts", np.cumsum(np.concatenate(place_sizes)))
        for name in segment.arrays.names():
            if name not in _LISTS:
                out.add(name, segment.arrays.passing(name))
        return out.close({**segment.facts, "postings": kept})
    except BaseException:
        out.discard()
        raise


def _write_names(out: ArrayFile, segment: Segment, terms: Array) -> None:
    bounds = segment.arrays["bounds"].astype(np.int64)
    widths = np.diff(bounds)
    blob, ends = np.empty(int(widths[terms].sum()), np.uint8), np.empty(terms.size, np.int64)
    term_hash.copied(segment.arrays["names"], bounds[:-1], widths, terms, blob, ends)
    out.add("names", blob)
    out.add("bounds", np.concatenate(([0], ends)).astype(np.uint32))


def _pruned_lists(
    segment: Segment, thresholds: Thresholds
) -> Iterator[tuple[Array, Array, Array, Array, tuple[Array, Array] | None]]:
    """Terms that still have postings, piece by piece: their numbers, how many postings each has left, these,
    and their positions with the bytes that each term's take."""
    listed = segment.listed()
    total = np.concatenate(([0], np.cumsum(listed)))
    low, count = 0, listed.size
    while low < count:
        high = max(int(np.searchsorted(total, total[low] + CHUNK, "right")) - 1, low + 1)
        bounds = total[low : high + 1] - total[low]
        docs, freqs = np.empty(int(bounds[-1]), np.uint32), np.empty(int(bounds[-1]), np.uint32)
        k.unpack(segment.arrays["stream"], segment.arrays["starts"][low:high], bounds, docs, freqs)
        least = np.array([thresholds.least.get(segment.term(term), 0.0) for term in range(low, high)])
        term = np.repeat(np.arange(high - low), np.diff(bounds))
        length = segment.arrays["length"][docs].astype(np.float64)
        keep = (least[term] == 0.0) | (weights(freqs, length, thresholds.average) >= least[term])
        left = np.bincount(term[keep], minlength=high - low)
        present = np.flatnonzero(left)
        positions = _positions(segment, low, high, term, docs, freqs, keep)
        if positions is not None:
            positions = positions[0], positions[1][present]
        yield low + present, left[present], docs[keep], freqs[keep], positions
        low = high


def _positions(
    segment: Segment, low: int, high: int, term: Array, docs: Array, freqs: Array, keep: Array
) -> tuple[Array, Array] | None:
    """The positions of the postings that stay, and how many bytes those of each term take."""
    if not segment.positional:
        return None
    starts = segment.arrays["place_starts"][low : high + 1]
    places = segment.arrays["places"][int(starts[0]) : int(starts[-1])]
    has = (segment.arrays["placed"][docs] != 0) & (np.diff(starts) > 0)[term]
    # A number ends with its first byte below 128; a posting has as many numbers as its frequency.
    ends = np.concatenate(([0], np.flatnonzero(places < 0x80) + 1))
    until = ends[np.cumsum(np.where(has, freqs, 0))]
    sizes = np.diff(until, prepend=0)
    taken = places[np.repeat(keep, sizes)]
    return taken, np.bincount(term[keep], sizes[keep], high - low).astype(np.int64)
