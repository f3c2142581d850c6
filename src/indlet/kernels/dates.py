"""The dates of records as numbers, where all are plain; `service.index.dates` is the plain twin."""

from __future__ import annotations

import numpy as np

from indlet.kernels.arrays import Bytes, Int, Numbers
from indlet.kernels.jit import kernel, part

ASK = -1


@part
def _digits(text: Bytes, at: Int, many: Int) -> np.int64:
    """The number of so many digits; -1 if they are none."""
    value = np.int64(0)
    for i in range(at, at + many):
        if text[i] < 48 or text[i] > 57:
            return np.int64(-1)
        value = 10 * value + np.int64(text[i]) - 48
    return value


@kernel
def numbers(text: Bytes, begins: Numbers, ends: Numbers, out: Numbers) -> None:
    """Of each record whose dates, as strings in JSON with commas between them, stand between a begin and an
    end: the first date of the earliest year; 0 if it has none; ASK if one is not written as a year from 1000
    on, a month, a day or a moment.
    """
    for record in range(out.size):
        at, best = begins[record], np.int64(0)
        while at < ends[record]:
            year = _digits(text, at + 1, 4)
            month = day = np.int64(0)
            at += 5
            if text[at] == 45:
                month = _digits(text, at + 1, 2)
                at += 3
                if text[at] == 45:
                    day = _digits(text, at + 1, 2)
                    at += 3
            moment = day > 0 and (text[at] == 84 or text[at] == 32)
            while moment and text[at] != 34 and text[at] != 92 and at < ends[record]:
                at += 1
            if year < 1000 or month < 0 or day < 0 or text[at] != 34:
                best = np.int64(ASK)
                break
            if best == 0 or year < best // 10000:
                best = 10000 * year + (100 * month + day if month <= 12 and day <= 31 else np.int64(0))
            at += 2
        out[record] = best
