"""Inputs made of other inputs, by chance and always the same for a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

_JUNK = (b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\r", b"0", b"9" * 30, b" " * 50)


def mutated(data: bytes, others: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> bytes:
    """One to four changes: bytes flipped, cut, doubled, exchanged with another input, words put in, often."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(data))
        end = min(len(data), at + chance.choice((1, 2, 5, 20, 100, 1000)))
        match chance.randrange(8):
            case 0 if data:
                at = min(at, len(data) - 1)
                data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[end:]
            case 2:
                data = data[:end] + data[at:end] * chance.choice((1, 1, 2, 50)) + data[end:]
            case 3:
                other = chance.choice(others)
                start = chance.randint(0, len(other))
                data = data[:at] + other[start : start + chance.choice((5, 50, 500))] + data[end:]
            case 4 if words:
                data = data[:at] + chance.choice(words) * chance.choice((1, 1, 1, 2, 30)) + data[at:]
            case 5 if words:
                data = data[:at] + chance.choice(words) + data[end:]
            case 6:
                data = data[:at]
            case _:
                data = data[:at] + chance.choice(_JUNK) + data[at:]
    return data[: 1 << 18]
