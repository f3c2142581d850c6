"""Posting lists and names of several segments, brought together (`index.embedded.merge`, `vocabulary`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indlet.kernels.arrays import Bytes, Flags, Numbers, Places, Small
from indlet.kernels.codec import decode
from indlet.kernels.jit import kernel


@kernel
def unpack(stream: Bytes, starts: Places, bounds: Numbers, docs: Small, freqs: Small) -> None:
    for t in range(starts.size):
        decode(stream, np.int64(starts[t]), docs, freqs, bounds[t])


@kernel
def move(
    docs: Small,
    freqs: Small,
    bounds: Numbers,
    numbers: NDArray[np.int32],
    targets: Numbers,
    to_docs: Small,
    to_freqs: Small,
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
def gather(source: Bytes, begins: Numbers, sizes: Numbers, targets: Numbers, out: Bytes) -> None:
    for t in range(begins.size):
        for k in range(sizes[t]):
            out[targets[t] + k] = source[begins[t] + k]


@kernel
def equal(text: Bytes, names: Numbers, sizes: Numbers, same: Flags) -> None:
    """Flags each name that equals the one before it."""
    for i in range(1, names.size):
        if sizes[i] == sizes[i - 1]:
            equal = True
            for k in range(sizes[i]):
                if text[names[i] + k] != text[names[i - 1] + k]:
                    equal = False
                    break
            same[i] = equal
