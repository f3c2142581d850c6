"""How a store keeps the metadata of a harvested record and its original: together in one value, compressed.

The original repeats the metadata between its tags, so one Zstandard frame over both takes little more than a
frame over either. The value stands in the column of the metadata, and the column of the original is empty.
Records of this node's own collections are kept as they are: they are served far more often than written, and
to decompress a record takes half as long as to serve it.

The dictionary holds the tags of Dublin Core and frequent words. It was trained on texts that come with the
repository (`bench/make_content_dictionary.py`) and holds nothing of any store. It is never changed: a better
one gets another number. Equal content gives equal bytes, by which an upsert tells whether metadata changed.

The first byte of a value says how it is kept. JSON begins with neither:

    0x00    size of the metadata (4 bytes), metadata, original
    0x01    size of the metadata (4 bytes), a Zstandard frame of metadata and original, dictionary 1
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

import zstandard

from indlet.errors import StoreError
from indlet.model import Packed

_PLAIN, _FRAME = b"\x00", b"\x01"
_KINDS: Final = (_PLAIN, _FRAME)
_RESERVED: Final = (*_KINDS, b"{")  # how encoded values and metadata begin
_HEAD: Final = 5  # bytes before the content
_LEVEL: Final = 1  # 3 saves 40 bytes of a record, and takes a sixth longer
# A value expands to at most this many times its size, so that a damaged store cannot exhaust memory. Content
# that compresses better than that is kept as it is.
_EXPANSION: Final = 200
_DICTIONARY: Final = zstandard.ZstdCompressionDict(Path(__file__).with_name("content-1.zdict").read_bytes())
_DICTIONARY.precompute_compress(level=_LEVEL)


class _Codec(threading.local):
    """A compressor and a decompressor for each thread: they release the GIL and serve one caller."""

    def __init__(self) -> None:
        compressor = zstandard.ZstdCompressor(level=_LEVEL, dict_data=_DICTIONARY, write_dict_id=False)
        self.compress = compressor.compress
        self.decompress = zstandard.ZstdDecompressor(dict_data=_DICTIONARY).decompress


_codec = _Codec()


def encode_content(metadata: bytes, original: bytes) -> bytes:
    """The value that keeps metadata (JSON) and the original that they were made from."""
    content = metadata + original
    frame = _codec.compress(content)
    head = len(metadata).to_bytes(_HEAD - 1, "little")
    if len(content) > _EXPANSION * len(frame):
        return _PLAIN + head + content
    return _FRAME + head + frame


def encode_record(record: Packed, *, is_harvested: bool) -> Packed:
    """The record as it will stand in the table of records.

    An original that begins like an encoded value or like metadata could not be told from these.
    """
    if record.deleted or not (is_harvested or record.raw.startswith(_RESERVED)):
        return record
    return record._replace(metadata=encode_content(record.metadata, record.raw), raw=b"")


def is_encoded(value: bytes) -> bool:
    return value.startswith(_KINDS)


def decode_content(value: bytes) -> tuple[bytes, bytes]:
    """The metadata and the original in an encoded value; StoreError if it is damaged."""
    content = value[_HEAD:]
    if value.startswith(_FRAME):
        try:
            size = zstandard.frame_content_size(content)
            if not 0 <= size <= _EXPANSION * len(content):
                raise _damaged()
            content = _codec.decompress(content)
        except zstandard.ZstdError as e:
            raise _damaged() from e
    end = int.from_bytes(value[1:_HEAD], "little")
    if end > len(content):
        raise _damaged()
    return content[:end], content[end:]


def original_of(value: bytes) -> bytes:
    """The original in a value of its column, or in the metadata where that column is empty."""
    if value.startswith(_KINDS):
        return decode_content(value)[1]
    return b"" if value.startswith(b"{") else value


def _damaged() -> StoreError:
    return StoreError("the content of a record in the store is damaged; restore the store from a backup")
