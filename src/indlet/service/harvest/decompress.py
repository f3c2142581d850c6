"""What came over the wire becomes the bytes that were meant: decompressed, whole, and bounded."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Final

import brotli  # type: ignore[import-untyped,unused-ignore]
import zstandard

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
# What may stand before the first sign of a document: byte order marks, white space, halves of UTF-16.
_MARKS: Final = b"\xef\xbb\xbf\xfe\xff\0 \t\r\n"
# Compressed this often over and above what is declared.
LAYERS: Final = 2


class Damaged(Exception):
    """A compressed body that is cut off or not what it says."""


class TooLarge(Exception):
    """More bytes than we are ready to take."""


def plain(raw: bytes, coding: str, limit: int) -> tuple[bytes, Counter[str]]:
    """The body without its compression, declared or not."""
    repairs: Counter[str] = Counter()
    for name in reversed([c.strip().lower() for c in coding.split(",") if c.strip()]):
        try:
            raw = _decoded(raw, name, limit, repairs)
        except Damaged:
            if _readable(raw):
                repairs["compression declared but absent"] += 1
            elif (other := _sniffed(raw, limit, repairs)) is not None:
                raw = other
                repairs["compressed otherwise than declared"] += 1
            else:
                raise
    for _ in range(LAYERS):
        if (other := _sniffed(raw, limit, repairs)) is None:
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


def _gunzipped(raw: bytes, limit: int, repairs: Counter[str]) -> bytes:
    found = list[bytes]()
    while raw[:2] == GZIP:
        machine = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            part = machine.decompress(raw, limit + 1)
        except zlib.error as e:
            raise Damaged(f"damaged gzip: {e}") from e
        limit -= len(part)
        if limit < 0:
            raise TooLarge
        if not machine.eof:
            raise Damaged("a gzip stream that stops before its end")
        found.append(part)
        raw = machine.unused_data
    if not found:
        raise Damaged("not gzip, as it says")
    if raw.strip(b"\0"):
        repairs["garbage after the compressed document"] += 1
    return b"".join(found)


def _inflated(raw: bytes, limit: int, bits: int) -> bytes:
    machine = zlib.decompressobj(bits)
    try:
        found = machine.decompress(raw, limit + 1)
    except zlib.error as e:
        raise Damaged(f"damaged deflate: {e}") from e
    if len(found) > limit:
        raise TooLarge
    if not machine.eof:
        raise Damaged("a deflate stream that stops before its end")
    return found


def _unzstd(raw: bytes, limit: int) -> bytes:
    machine = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    try:
        told = zstandard.frame_content_size(raw)
        if told > limit:
            raise TooLarge
        if told >= 0:
            # Frames may follow one another; this is the usual case of one.
            one = machine.decompressobj()
            found = one.decompress(raw)
            if one.eof and not one.unused_data:
                return found
            if not one.eof:
                raise Damaged("a zstd stream that stops before its end")
        with machine.stream_reader(raw, read_across_frames=True) as reader:
            found = reader.read(limit + 1)
    except zstandard.ZstdError as e:
        raise Damaged(f"damaged zstd: {e}") from e
    if len(found) > limit:
        raise TooLarge
    return found


def _unbrotli(raw: bytes, limit: int) -> bytes:
    machine = brotli.Decompressor()
    found, size = list[bytes](), 0
    try:
        part = machine.process(raw, output_buffer_limit=1 << 20)
        while part:
            size += len(part)
            if size > limit:
                raise TooLarge
            found.append(part)
            part = (
                b"" if machine.can_accept_more_data() else machine.process(b"", output_buffer_limit=1 << 20)
            )
    except brotli.error as e:
        raise Damaged(f"damaged brotli: {e}") from e
    if not machine.is_finished():
        raise Damaged("a brotli stream that stops before its end")
    return b"".join(found)
