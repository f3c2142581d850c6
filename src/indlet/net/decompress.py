"""What came over the wire becomes the bytes that were meant: decompressed, whole, and bounded."""

from __future__ import annotations

import contextlib
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Final

import brotli  # type: ignore[import-untyped,unused-ignore]
import zstandard

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
# What may stand before the first sign of a document: byte order marks, white space, halves of UTF-16.
_MARKS: Final = b"\xef\xbb\xbf\xfe\xff\0 \t\r\n"
# Compressed this often over and above what is declared; and what may be declared.
LAYERS: Final = 2
CODINGS: Final = 4
# Bytes that go in and come out at a time.
INPUT: Final = 1 << 16
OUTPUT: Final = 1 << 20
# Parts of one body, each compressed by itself.
MEMBERS: Final = 10_000
# Four bytes of zstd may become 128 KiB.
ZSTD_INPUT: Final = 64
# The history that a zstd stream of unknown length may refer to (RFC 9659).
ZSTD_WINDOW: Final = 1 << 23


class Damaged(Exception):
    """A compressed body that is cut off or not what it says."""


class TooLarge(Exception):
    """More bytes than we are ready to take."""


def plain(raw: bytes, coding: str, limit: int) -> tuple[bytes, Counter[str]]:
    """The body without its compression, declared or not.

    `limit` holds for all that is in memory at a time: what came, what it was unpacked from, what it becomes.
    """
    repairs: Counter[str] = Counter()
    came = len(raw)
    codings = [c.strip().lower() for c in coding.split(",") if c.strip()]
    if len(codings) > CODINGS:
        raise Damaged(f"compressed {len(codings)} times over, as it says")
    for name in reversed(codings):
        room = limit - came - (len(raw) if len(raw) != came else 0)
        try:
            raw = _decoded(raw, name, room, repairs)
        except Damaged:
            if _readable(raw):
                repairs["compression declared but absent"] += 1
            elif (other := _sniffed(raw, room, repairs)) is not None:
                raw = other
                repairs["compressed otherwise than declared"] += 1
            else:
                raise
    for _ in range(LAYERS):
        room = limit - came - (len(raw) if len(raw) != came else 0)
        if (other := _sniffed(raw, room, repairs)) is None:
            break
        raw = other
        repairs["undeclared compression"] += 1
    return raw, repairs


def _readable(raw: bytes) -> bool:
    """Whether this may be a document as it stands: it begins like markup, in whatever encoding."""
    return raw[:64].lstrip(_MARKS)[:1] == b"<"


def _sniffed(raw: bytes, limit: int, repairs: Counter[str]) -> bytes | None:
    """What is in a body that says nothing of being compressed, but is; None if it is not.

    Formats with a signature must be sound. Those without are believed if a document comes out of them.
    """
    if raw[:2] == GZIP:
        return _decoded(raw, "gzip", limit, repairs)
    if raw[:4] == ZSTD:
        return _decoded(raw, "zstd", limit, repairs)
    if raw[:64].isascii() or _readable(raw):
        return None
    for name in ("deflate", "br"):
        try:
            found = _decoded(raw, name, limit, repairs)
        except Damaged:
            continue
        if _readable(found):
            return found
    return None


def _decoded(raw: bytes, coding: str, limit: int, repairs: Counter[str]) -> bytes:
    if coding in ("identity", "") or not raw:
        return raw
    if coding in ("gzip", "x-gzip"):
        return _gunzipped(raw, limit, repairs)
    if coding == "deflate":
        try:
            return _inflated(raw, limit, zlib.MAX_WBITS)
        except Damaged:  # some send it without the zlib frame
            return _inflated(raw, limit, -zlib.MAX_WBITS)
    if coding == "zstd":
        return _unzstd(raw, limit)
    if coding == "br":
        return _unbrotli(raw, limit)
    raise Damaged(f"compressed by {coding!r}, which nobody asked for")


def _gathered(parts: Iterator[bytes], limit: int) -> bytes:
    """All parts as one, no longer than the limit. What is too large is dropped before that is said."""
    found, size = list[bytes](), 0
    for part in parts:
        size += len(part)
        if size > limit:
            found.clear()
            raise TooLarge
        found.append(part)
    return found[0] if len(found) == 1 else b"".join(found)


def _gunzipped(raw: bytes, limit: int, repairs: Counter[str]) -> bytes:
    if raw[:2] != GZIP:
        raise Damaged("not gzip, as it says")
    return _gathered(_members(raw, repairs), limit)


def _members(raw: bytes, repairs: Counter[str]) -> Iterator[bytes]:
    """The parts of a gzip file, in pieces; what follows them is counted as garbage."""
    at = 0
    for _ in range(MEMBERS):
        machine = zlib.decompressobj(zlib.MAX_WBITS | 16)
        at = yield from _inflating(machine, raw, at, "gzip")
        if raw[at : at + 2] != GZIP:
            break
    else:
        raise Damaged(f"gzip in more than {MEMBERS} parts")
    if raw[at:].strip(b"\0"):
        repairs["garbage after the compressed document"] += 1


def _inflating(machine: zlib._Decompress, raw: bytes, at: int, name: str) -> Generator[bytes, None, int]:
    """What a stream holds, in pieces; returns where it ends."""
    view = memoryview(raw)
    try:
        while at < len(raw) and not machine.eof:
            data: bytes | memoryview = view[at : at + INPUT]
            at += len(data)
            full = True
            while full and not machine.eof:
                part = machine.decompress(data, OUTPUT)
                full = len(part) == OUTPUT
                data = machine.unconsumed_tail
                yield part
    except zlib.error as e:
        raise Damaged(f"damaged {name}: {e}") from None
    if not machine.eof:
        raise Damaged(f"a {name} stream that stops before its end")
    return at - len(machine.unused_data)


def _inflated(raw: bytes, limit: int, bits: int) -> bytes:
    return _gathered(_inflating(zlib.decompressobj(bits), raw, 0, "deflate"), limit)


def _unzstd(raw: bytes, limit: int) -> bytes:
    try:
        told = zstandard.frame_content_size(raw)
        if told > limit:
            raise TooLarge
        if told > 0:
            # Straight into a buffer of that size; more than it says does not fit, and is an error.
            with contextlib.suppress(zstandard.ZstdError):  # frames may follow one another
                return zstandard.ZstdDecompressor().decompress(raw, allow_extra_data=False)
        return _gathered(_unzstd_parts(raw), limit)
    except zstandard.ZstdError as e:
        raise Damaged(f"damaged zstd: {e}") from None


def _unzstd_parts(raw: bytes) -> Iterator[bytes]:
    """The frames of a zstd file, in pieces."""
    at = 0
    for _ in range(MEMBERS):
        frame = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()
        while at < len(raw) and not frame.eof:
            data = raw[at : at + ZSTD_INPUT]
            at += len(data)
            yield frame.decompress(data)
        if not frame.eof:
            raise Damaged("a zstd stream that stops before its end")
        at -= len(frame.unused_data)
        if at == len(raw):
            return
    raise Damaged(f"zstd in more than {MEMBERS} frames")


def _unbrotli(raw: bytes, limit: int) -> bytes:
    try:
        return _gathered(_unbrotli_parts(raw), limit)
    except brotli.error as e:
        raise Damaged(f"damaged brotli: {e}") from None


def _unbrotli_parts(raw: bytes) -> Iterator[bytes]:
    machine = brotli.Decompressor()
    part = machine.process(raw, output_buffer_limit=OUTPUT)
    while part:
        yield part
        part = b"" if machine.can_accept_more_data() else machine.process(b"", output_buffer_limit=OUTPUT)
    if not machine.is_finished():
        raise Damaged("a brotli stream that stops before its end")
