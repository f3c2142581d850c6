"""What becomes of a character in keys, by a table; `service.index.embedded.record_keys` fills it."""

from __future__ import annotations

import numpy as np

from indlet.kernels.arrays import Bytes, Hashes, Int
from indlet.kernels.jit import part

# What becomes of the characters below this, each a number: from bit 0 on up to three bytes and from bit 24 on
# how many, as titles and names are filed (none: it separates words); from bit 32 on the same in the key of a
# title. Zero is unknown.
FOLDED = 0x2060
# Beside that: is known; may stand in a name; is left to the plain way.
KNOWN, LETTER, LEFT = 1 << 60, 1 << 61, 1 << 62


@part
def folding(text: Bytes, at: Int, folds: Hashes) -> tuple[np.uint64, np.int64]:
    """What becomes of a character, and its size in bytes."""
    c, size = np.int64(text[at]), np.int64(1)
    if c >= 0xF0:
        return np.uint64(LEFT), size
    if c >= 0xE0:
        c = (c & 15) << 12 | (np.int64(text[at + 1]) & 63) << 6 | (np.int64(text[at + 2]) & 63)
        size = np.int64(3)
    elif c >= 0x80:
        c, size = (c & 31) << 6 | (np.int64(text[at + 1]) & 63), np.int64(2)
    return folds[c] if c < FOLDED else np.uint64(LEFT), size


@part
def put_folded(made: np.uint64, out: Bytes, to: Int) -> Int:
    """Writes what became of a character, as it is filed; gives the new end."""
    for k in range(np.int64(made >> np.uint64(24)) & 3):
        out[to + k] = np.uint8((made >> np.uint64(8 * k)) & np.uint64(0xFF))
    return to + (np.int64(made >> np.uint64(24)) & 3)
