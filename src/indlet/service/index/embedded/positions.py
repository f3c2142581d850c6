"""Token positions: where they were harvested, they lie beside the postings in the same order.

`places` holds, for each posting of a document flagged in `placed`, as many LEB128 numbers as its frequency:
each is the difference to the position before. `place_starts` says where each term begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from indlet.kernels.jit import kernel
from indlet.service.index.embedded.segment import Array, ArrayFile, Segment


@kernel
def _measure(given: Any, ends: Any, freqs: Any, begins: Any, sizes: Any, placed: Any) -> None:
    """The bytes of each posting's positions; a document whose positions do not fit its terms has none."""
    low = np.int64(0)
    for d in range(ends.size):
        at = low
        end = ends[d]
        low = end
        fits = end > at
        for i in range(begins[d], begins[d + 1]):
            sizes[i] = 0
        for i in range(begins[d], begins[d + 1]):
            if at >= end:
                break  # fields follow the document's own terms, and have no positions
            begin = at
            left = np.int64(freqs[i])
            while left > 0 and at < end:
                if given[at] < 0x80:
                    left -= 1
                at += 1
            if left > 0:
                fits = False
            sizes[i] = at - begin
        if at < end:
            fits = False
        placed[d] = fits
        if not fits:
            for i in range(begins[d], begins[d + 1]):
                sizes[i] = 0


@kernel
def _place(given: Any, ends: Any, begins: Any, sizes: Any, targets: Any, out: Any) -> None:
    low = np.int64(0)
    for d in range(ends.size):
        at = low
        low = ends[d]
        for i in range(begins[d], begins[d + 1]):
            for k in range(sizes[i]):
                out[targets[i] + k] = given[at]
                at += 1


@kernel
def _target(of: Any, begins: Any, cursors: Any, targets: Any) -> None:
    for d in range(begins.size - 1):
        for i in range(begins[d], begins[d + 1]):
            targets[i] = cursors[of[i]]
            cursors[of[i]] += 1


def lay_out(
    out: ArrayFile,
    given: Sequence[bytes | None],
    of: Array,
    freqs: Array,
    begins: Array,
    cursors: Array,
    starts: Array,
) -> None:
    """Writes the positions of a batch in the order of its posting lists."""
    joined = np.frombuffer(bytearray().join(part or b"" for part in given), np.uint8)
    ends = np.cumsum([len(part or b"") for part in given], dtype=np.int64)
    sizes = np.empty(of.size, np.int64)
    placed = np.zeros(ends.size, np.bool_)
    _measure(joined, ends, freqs, begins, sizes, placed)
    targets = np.empty(of.size, np.int64)
    _target(of, begins, cursors, targets)
    in_order = np.zeros(of.size + 1, np.int64)
    in_order[targets + 1] = sizes
    np.cumsum(in_order, out=in_order)
    places = np.empty(int(in_order[-1]), np.uint8)
    _place(joined, ends, begins, sizes, in_order[targets], places)
    out.add("places", places)
    out.add("place_starts", in_order[starts])
    out.add("placed", placed.view(np.uint8))


@kernel
def _locate(
    places: Any, at: Any, end: Any, docs: Any, freqs: Any, placed: Any, wanted: Any, shift: Any, out: Any
) -> Any:
    """Document and (position - shift) of each occurrence in a wanted document, as one number; how many."""
    n = 0
    for i in range(docs.size):
        doc = np.int64(docs[i])
        if not placed[doc] or at >= end:
            continue
        position = np.int64(0)
        for _ in range(freqs[i]):
            value = np.int64(0)
            bits = 0
            while at < end:
                byte = np.int64(places[at])
                at += 1
                value |= (byte & 0x7F) << bits
                if byte < 0x80:
                    break
                bits += 7
            position += value
            if wanted[doc]:
                out[n] = (doc << 33) + position - shift
                n += 1
    return n


def occurrences(segment: Segment, term: int, docs: Array, freqs: Array, wanted: Array, shift: int) -> Array:
    """Sorted numbers that are equal for two terms exactly where they stand `shift` apart in one document."""
    arrays = segment.arrays
    placed = arrays["placed"]
    room = int(freqs[(placed[docs] != 0) & wanted[docs]].sum(dtype=np.int64))
    out = np.empty(room, np.int64)
    at, end = (int(place) for place in arrays["place_starts"][term : term + 2])
    found = int(_locate(arrays["places"], at, end, docs, freqs, placed, wanted, shift, out))
    return out[:found]


@kernel
def copy_places(
    places: Any,
    starts: Any,
    stops: Any,
    docs: Any,
    freqs: Any,
    bounds: Any,
    placed: Any,
    gone: Any,
    out: Any,
    ends: Any,
) -> Any:
    """Copies the positions of live documents for lists docs[bounds[t]:bounds[t+1]]; `ends[t]` ends each."""
    to = np.int64(0)
    for t in range(starts.size):
        at = starts[t]
        for i in range(bounds[t], bounds[t + 1]):
            if not placed[docs[i]]:
                continue
            live = not gone[docs[i]]
            left = np.int64(freqs[i])
            while left > 0 and at < stops[t]:
                if live:
                    out[to] = places[at]
                    to += 1
                if places[at] < 0x80:
                    left -= 1
                at += 1
        ends[t] = to
    return to
