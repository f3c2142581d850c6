"""Token positions beside the postings: laid out, found, copied (`index.embedded.positions`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from indlet.kernels.jit import kernel


@kernel
def measure(given: Any, ends: Any, freqs: Any, begins: Any, sizes: Any, placed: Any) -> None:
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
def place(given: Any, ends: Any, begins: Any, sizes: Any, targets: Any, out: Any) -> None:
    low = np.int64(0)
    for d in range(ends.size):
        at = low
        low = ends[d]
        for i in range(begins[d], begins[d + 1]):
            for k in range(sizes[i]):
                out[targets[i] + k] = given[at]
                at += 1


@kernel
def target(of: Any, begins: Any, cursors: Any, targets: Any) -> None:
    for d in range(begins.size - 1):
        for i in range(begins[d], begins[d + 1]):
            targets[i] = cursors[of[i]]
            cursors[of[i]] += 1


@kernel
def locate(
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
