"""Whether packed vectors are canonical, all vectors of a page at once, by a compiled kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indlet.kernels.jit import kernel, part
from indlet.kernels.term_hash import SEED, spelling

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
        padded = np.concatenate((data[: ends[-1]], np.zeros(16, np.uint8)))
        _check(padded, ends, out, hashes, owners, SEED)
    return out


@part
def _swapped(eight: np.uint64) -> np.uint64:
    """Eight bytes in the other order: as a number, they then compare as bytes do."""
    odd, pairs = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
    eight = (eight >> np.uint64(8)) & odd | (eight & odd) << np.uint64(8)
    eight = (eight >> np.uint64(16)) & pairs | (eight & pairs) << np.uint64(16)
    return eight >> np.uint64(32) | eight << np.uint64(32)


@kernel
def _check(
    data: NDArray[np.uint8], ends: NDArray[np.int64], totals: NDArray[np.int64], hashes: NDArray[np.uint64],
    owners: NDArray[np.int64], seed: np.int64,
) -> None:  # fmt: skip
    """Long because the parts of a line are read in one go. Sixteen bytes follow the last vector."""
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
            key_before = np.uint64(0)
            good = True
            while good and at < end and data[at] == _SPACE:
                at += 1
                start = at
                while at < end and data[at] != _SPACE and data[at] != _LINE:
                    at += 1
                good = at > start
                first, _, hashed = spelling(data, start, at - start, seed)
                key = _swapped(first)
                if good and before >= 0 and key_before >= key:
                    i, j = before, start
                    while i < before_end and j < at and data[i] == data[j]:
                        i += 1
                        j += 1
                    good = j < at and (i == before_end or data[i] < data[j])
                before, before_end, key_before = start, at, key
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
