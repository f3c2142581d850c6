"""What the records of a page say, as the JSON in which it is stored.

`kernels.scan` has found the values; Python has been asked for those that have a form of their own (dates,
languages). `service.records.normalise.arranged` is the plain twin.
"""

from __future__ import annotations

import numpy as np

from indlet.kernels.jit import kernel
from indlet.kernels.scan import Bytes, Numbers, Rows
from indlet.kernels.term_hash import digest

# Looks at a table of values, for each of them, after which a page is left to the tolerant reader.
_LOOKS = 64


@kernel
def gathered(values: Rows, folded: Bytes, mask: int, out: Bytes) -> int:
    """Copies the values of the elements of `mask`, a line for each; gives their bytes."""
    low, to = 0, 0
    for i in range(values.size):
        high = values[i].end
        if mask >> values[i].code & 1:
            for at in range(low, high):
                out[to] = folded[at]
                to += 1
        low = high
    return to


@kernel
def _places(values: Rows, text: Bytes, forms: int, mask: int, lows: Numbers, highs: Numbers) -> None:
    """Where each value stands in the text: those of `mask` from `forms` on."""
    low = 0
    for i in range(values.size):
        lows[i], highs[i] = low, values[i].end - 1
        low = values[i].end
        if mask >> values[i].code & 1:
            lows[i] = forms
            while text[forms] != 10:
                forms += 1
            highs[i] = forms
            forms += 1


@kernel
def _ordered(values: Rows, low: int, high: int, out: Numbers) -> None:
    """The values of a record in the order in which their elements begin; few of them stand otherwise."""
    for i in range(low, high):
        at = i
        while at > low and values[out[at - 1]].order > values[i].order:
            out[at] = out[at - 1]
            at -= 1
        out[at] = i


@kernel
def described(
    heads: Rows, values: Rows, text: Bytes, forms: int, mask: int, names: Bytes, name_ends: Numbers,
    out: Bytes, ends: Numbers,
) -> bool:  # fmt: skip
    """Writes the metadata of each record up to its end in `out`: elements in the order of `names`, each value
    once. False if it would take too long: many values within others, or with equal hashes.
    """
    lows, highs = np.empty(values.size, np.int64), np.empty(values.size, np.int64)
    _places(values, text, forms, mask, lows, highs)
    order, counts = np.empty(values.size, np.int64), np.empty(name_ends.size, np.int64)
    size = 4
    while size < 2 * values.size:
        size *= 2
    slots = np.zeros(size, np.int64)  # of values, plus one
    looks = _LOOKS * (values.size + 1)
    first = to = 0
    for record in range(heads.size):
        last = heads[record].values
        if heads[record].nested:
            looks -= (last - first) * (last - first)
        if looks < 0:
            return False
        _ordered(values, first, last, order)
        counts[:] = 0
        for i in range(first, last):
            counts[values[i].code] += 1
        out[to] = 123
        to += 1
        for code in range(counts.size):
            if counts[code] == 0:
                continue
            if out[to - 1] != 123:
                out[to] = 44
                to += 1
            for at in range(name_ends[code - 1] if code > 0 else 0, name_ends[code]):
                out[to] = names[at]
                to += 1
            for i in order[first:last]:
                if values[i].code != code:
                    continue
                if counts[code] > 1:
                    hashed = np.int64(digest(text, lows[i], highs[i]) >> np.uint64(1))
                    slot = (hashed ^ (record * 16 + code) * 0x9E3779B1) & (size - 1)
                    while slots[slot] > 0 and not _same(
                        text, values, first, code, i, slots[slot] - 1, lows, highs
                    ):
                        slot = (slot + 1) & (size - 1)
                        looks -= 1
                        if looks < 0:
                            return False
                    if slots[slot] > 0:
                        continue
                    slots[slot] = i + 1
                if out[to - 1] != 91:
                    out[to] = 44
                    to += 1
                out[to] = 34
                to += 1
                for at in range(lows[i], highs[i]):
                    if text[at] == 34 or text[at] == 92:
                        out[to] = 92
                        to += 1
                    out[to] = text[at]
                    to += 1
                out[to] = 34
                to += 1
            out[to] = 93
            to += 1
        out[to] = 125
        to += 1
        ends[record] = to
        first = last
    return True


@kernel
def _same(
    text: Bytes, values: Rows, first: int, code: int, one: int, other: int, lows: Numbers, highs: Numbers
) -> bool:
    """Whether the other value is one of this record and element, and equal."""
    size = highs[one] - lows[one]
    if other < first or values[other].code != code or highs[other] - lows[other] != size:
        return False
    for i in range(size):  # noqa: SIM110 - a kernel has no generators
        if text[lows[one] + i] != text[lows[other] + i]:
            return False
    return True
