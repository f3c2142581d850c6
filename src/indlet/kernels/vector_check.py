"""Whether packed vectors are canonical, all vectors of a page at once, by a compiled kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indlet.kernels.jit import kernel

_SPACE, _LINE, _ZERO, _NINE = 32, 10, 48, 57
# Looks at the table of words, for each byte of a vector, after which a page is left to the tolerant reader.
_LOOKS = 8


def totals(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of the vectors in `data`, up to its end: the sum of its frequencies, or -1 where it is not in
    canonical form."""
    out = np.zeros(ends.size, np.int64)
    if ends.size and ends[-1]:
        longest = int(np.diff(ends, prepend=0).max())
        size = 1 << max(4, longest.bit_length())  # a word takes two bytes at least: half empty or better
        hashes, owners = np.zeros(size, np.uint64), np.full(size, -1, np.int64)
        _check(data, ends, out, hashes, owners)
    return out


@kernel
def _check(
    data: NDArray[np.uint8], ends: NDArray[np.int64], totals: NDArray[np.int64], hashes: NDArray[np.uint64],
    owners: NDArray[np.int64],
) -> None:  # fmt: skip
    """Long because the parts of a line are read in one go, byte by byte."""
    mask = np.uint64(len(hashes) - 1)
    begin = 0
    for number in range(len(ends)):
        end = ends[number]
        totals[number] = 0
        at = begin
        looks = _LOOKS * (end - begin)
        last = 0
        while at < end:
            # The frequency, larger than the one of the line before.
            frequency = 0
            digits = at
            while at < end and data[at] >= _ZERO and data[at] <= _NINE:
                frequency = frequency * 10 + (data[at] - _ZERO)
                at += 1
                if at - digits > 9:
                    break
            if (
                at == digits
                or at - digits > 9
                or data[digits] == _ZERO
                or at >= end
                or data[at] != _SPACE
                or frequency <= last
            ):
                totals[number] = -1
                break
            last = frequency
            # Words, each after the one before, none met in an earlier line.
            before = before_end = -1
            good = True
            while good and at < end and data[at] == _SPACE:
                at += 1
                start = at
                hashed = np.uint64(14695981039346656037)
                while at < end and data[at] != _SPACE and data[at] != _LINE:
                    hashed = (hashed ^ np.uint64(data[at])) * np.uint64(1099511628211)
                    at += 1
                good = at > start
                if good and before >= 0:
                    i, j = before, start
                    while i < before_end and j < at and data[i] == data[j]:
                        i += 1
                        j += 1
                    good = j < at and (i == before_end or data[i] < data[j])
                before, before_end = start, at
                slot = hashed & mask
                while good and owners[slot] == number:
                    # Equal numbers mean equal words but for one chance in 10^14, which costs a slower look.
                    looks -= 1
                    good = hashes[slot] != hashed and looks >= 0
                    slot = (slot + np.uint64(1)) & mask
                owners[slot] = number
                hashes[slot] = hashed
                totals[number] += frequency
            if not good:
                totals[number] = -1
                break
            if at < end:
                at += 1
                if at == end:  # a line that is not there
                    totals[number] = -1
        begin = end
