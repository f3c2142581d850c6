"""Files of Unix `compress` (.Z), as old TREC collections come: LZW with codes of 9 to 16 bits."""

from __future__ import annotations

import io
from typing import Any, BinaryIO, Final, cast

MAGIC: Final = b"\x1f\x9d"
_CLEAR: Final = 256


def decompressed(data: BinaryIO) -> BinaryIO:
    """What was compressed, read as it is asked for: a bomb costs no more than what is read of it."""
    return cast(BinaryIO, io.BufferedReader(cast(Any, _Stream(data.read()))))


class _Stream(io.RawIOBase):
    def __init__(self, data: bytes) -> None:
        if not data.startswith(MAGIC) or len(data) < 3:
            raise ValueError("no header of compress")
        self._data, self._at = data, 3 * 8  # in bits
        self._most = data[2] & 0x1F
        self._blocks = bool(data[2] & 0x80)  # with a code that clears the table
        if not 9 <= self._most <= 16:
            raise ValueError(f"codes of {self._most} bits")
        self._begin()
        self._left = b""

    def _begin(self) -> None:
        self._table = [bytes((byte,)) for byte in range(256)] + [b""] * self._blocks
        self._width, self._group, self._last = 9, self._at, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        while not self._left and (piece := self._next()):
            self._left = piece
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def _next(self) -> bytes:
        """What some codes stand for; empty at the end."""
        out, size = [], 0
        while size < io.DEFAULT_BUFFER_SIZE:
            code = self._code()
            if code is None:
                break
            if code == _CLEAR and self._blocks:
                self._align()
                self._begin()
                continue
            if code < len(self._table):
                entry = self._table[code]
            elif code == len(self._table) and self._last:
                entry = self._last + self._last[:1]
            else:
                raise ValueError("a code that was never defined")
            out.append(entry)
            size += len(entry)
            if self._last and len(self._table) < 1 << self._most:
                self._table.append(self._last + entry[:1])
                if len(self._table) == 1 << self._width and self._width < self._most:
                    self._align()
                    self._width += 1
                    self._group = self._at
            self._last = entry
        return b"".join(out)

    def _code(self) -> int | None:
        if self._at + self._width > 8 * len(self._data):
            return None
        first = self._at >> 3
        bits = int.from_bytes(self._data[first : first + 4], "little") >> (self._at & 7)
        self._at += self._width
        return bits & ((1 << self._width) - 1)

    def _align(self) -> None:
        """Codes are written eight at a time: when their width changes, the rest of the eight is skipped."""
        whole = 8 * self._width
        self._at = self._group + -(-(self._at - self._group) // whole) * whole
