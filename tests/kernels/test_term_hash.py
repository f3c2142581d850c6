"""Names that somebody has made to meet in a table do not meet in ours."""

from __future__ import annotations

import random

import numpy as np

from indlet.kernels.postings import scan

_MASK = (1 << 64) - 1


def hashes(names: list[bytes], seed: int) -> list[int]:
    text = np.frombuffer(b"1 " + b" ".join(names) + bytes(16), np.uint8)
    ends = np.array([text.size - 16], np.int64)
    numbers = [np.empty(len(names), np.int64) for _ in range(4)]
    places, firsts, seconds, frequencies = numbers
    found, until, squares = np.empty(len(names), np.uint64), np.empty(1, np.int64), np.empty(1, np.float64)
    scan(ends, text, places, firsts, seconds, found, frequencies, until, squares, np.int64(seed))
    assert until[0] == len(names)
    return found.tolist()


def meeting(seed: int, many: int) -> list[bytes]:
    """Different names of sixteen bytes with one hash, by who knows the seed."""
    chance, found = random.Random(1), list[bytes]()
    while len(found) < many:
        first = chance.randbytes(8)
        value = (int.from_bytes(first, "little") ^ seed) * 0x9E3779B97F4A7C15 & _MASK
        name = first + (value ^ value >> 32 ^ 0x1234567).to_bytes(8, "little")
        if not set(name) & {10, 32}:
            found.append(name)
    return found


def test_names_meet_for_one_seed_only() -> None:
    names = meeting(7, 200)
    assert len(set(hashes(names, 7))) == 1
    assert len(set(hashes(names, 8))) == 200
