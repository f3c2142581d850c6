"""Whether bytes are UTF-8 (RFC 3629), eight of ASCII at a time; Python's decoder is the plain twin."""

from __future__ import annotations

import numpy as np

from indlet.kernels.arrays import Bytes, Int
from indlet.kernels.codec import word
from indlet.kernels.jit import kernel, part


@part
def _size(text: Bytes, at: Int) -> np.int64:
    """The bytes of a character that is no ASCII, by its first two; 0 if none begins so."""
    first, second = text[at], text[at + 1]
    if second < 0x80 or second > 0xBF or first < 0xC2 or first > 0xF4:
        return np.int64(0)
    if first < 0xE0:
        return np.int64(2)
    if first < 0xF0:
        # Neither what two bytes could say, nor half of a pair.
        good = not (first == 0xE0 and second < 0xA0) and not (first == 0xED and second > 0x9F)
        return np.int64(3 * good)
    # Nor what three bytes could say, nor what is beyond the last character.
    return np.int64(4 * (not (first == 0xF0 and second < 0x90) and not (first == 0xF4 and second > 0x8F)))


@kernel
def is_utf8(text: Bytes) -> bool:
    at, end = np.int64(0), np.int64(text.size)
    while at < end:
        if at + 8 <= end and not word(text, at) & np.uint64(0x8080808080808080):
            at += 8
            continue
        if text[at] < 0x80:
            at += 1
            continue
        size = _size(text, at) if at + 1 < end else np.int64(0)
        if size == 0 or at + size > end:
            return False
        for i in range(at + 2, at + size):
            if text[i] & 0xC0 != 0x80:
                return False
        at += size
    return True
