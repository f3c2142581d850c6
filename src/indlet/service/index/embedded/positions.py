"""Token positions: where they were harvested, they lie beside the postings in the same order.

`places` holds, for each posting of a document flagged in `placed`, as many LEB128 numbers as its frequency:
each is the difference to the position before. `place_starts` says where each term begins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indlet.kernels import positions as k
from indlet.service.index.embedded.array_file import Array, ArrayFile
from indlet.service.index.embedded.segment import Segment


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
    k.measure(joined, ends, freqs, begins, sizes, placed)
    targets = np.empty(of.size, np.int64)
    k.target(of, begins, cursors, targets)
    in_order = np.zeros(of.size + 1, np.int64)
    in_order[targets + 1] = sizes
    np.cumsum(in_order, out=in_order)
    places = np.empty(int(in_order[-1]), np.uint8)
    k.place(joined, ends, begins, sizes, in_order[targets], places)
    out.add("places", places)
    out.add("place_starts", in_order[starts])
    out.add("placed", placed.view(np.uint8))


def occurrences(segment: Segment, term: int, docs: Array, freqs: Array, wanted: Array, shift: int) -> Array:
    """Sorted numbers that are equal for two terms exactly where they stand `shift` apart in one document."""
    arrays = segment.arrays
    placed = arrays["placed"]
    room = int(freqs[(placed[docs] != 0) & wanted[docs]].sum(dtype=np.int64))
    out = np.empty(room, np.int64)
    at, end = (int(place) for place in arrays["place_starts"][term : term + 2])
    found = int(k.locate(arrays["places"], at, end, docs, freqs, placed, wanted, shift, out))
    return out[:found]
