"""Token positions beside the postings: laid out, found, copied (`index.embedded.positions`)."""

from __future__ import annotations

import numpy as np

from indlet.kernels.arrays import Bytes, Flags, Int, Numbers, Small
from indlet.kernels.jit import kernel

# The last position that a document can have: what is malformed tells of no other document.
LAST = (1 << 33) - 1


@kernel
def measure(
    given: Bytes, ends: Numbers, freqs: Small, begins: Numbers, sizes: Numbers, placed: Flags
) -> None:
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
def place(given: Bytes, ends: Numbers, begins: Numbers, sizes: Numbers, targets: Numbers, out: Bytes) -> None:
    low = np.int64(0)
    for d in range(ends.size):
        at = low
        low = ends[d]
        for i in range(begins[d], begins[d + 1]):
            for k in range(sizes[i]):
                out[targets[i] + k] = given[at]
                at += 1


@kernel
def target(of: Small, begins: Numbers, cursors: Numbers, targets: Numbers) -> None:
    for d in range(begins.size - 1):
        for i in range(begins[d], begins[d + 1]):
            targets[i] = cursors[of[i]]
            cursors[of[i]] += 1


@kernel
def locate(
    places: Bytes,
    at: Int,
    end: Int,
    docs: Small,
    freqs: Small,
    placed: Bytes,
    wanted: Flags,
    shift: Int,
    out: Numbers,
) -> Int:
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
                if bits < 35:  # more digits than a position has
                    value |= (byte & 0x7F) << bits
                if byte < 0x80:
                    break
                bits += 7
            position = min(position + value, np.int64(LAST))
            if wanted[doc]:
                out[n] = (doc << 33) + position - shift
                n += 1
    return n


@kernel
def copy_places(
    places: Bytes,
    starts: Numbers,
    stops: Numbers,
    docs: Small,
    freqs: Small,
    bounds: Numbers,
    placed: Bytes,
    gone: Flags,
    out: Bytes,
    ends: Numbers,
) -> Int:
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
