"""MARC records in the exchange format ISO 2709, read and written.

Reading forgives what library systems really write: wrong lengths and positions, MARC-8 in records that claim
UTF-8 and the reverse. A record that is not all there (cut, or without a directory that fits its fields) is an
error, never a shorter record. Written records are valid: UTF-8, or MARC-8 on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from indlet.formats.marc8 import from_marc8, to_marc8
from indlet.formats.record import Broken, Field

_RECORD_END: Final = b"\x1d"
_FIELD_END: Final = b"\x1e"
_DELIMITER: Final = b"\x1f"
# A directory entry holds four digits of length and five of position.
FIELD_BYTES: Final = 9_999
RECORD_BYTES: Final = 99_999


@dataclass(frozen=True, slots=True)
class Marc:
    leader: str
    fields: tuple[Field, ...]

    def control(self, tag: str) -> str:
        return next((field.value for field in self.fields if field.tag == tag), "")

    def has(self, *tags: str) -> bool:
        return any(field.tag in tags for field in self.fields)


def split_iso2709(data: bytes) -> Iterator[bytes]:
    """Each record's bytes. The record terminator decides, because stated lengths are often wrong."""
    for chunk in data.split(_RECORD_END):
        record = chunk.lstrip(b"\r\n\t \x00\xef\xbb\xbf\x1a")
        if record.strip():
            yield record


def iso2709_records(data: bytes) -> Iterator[Marc | Broken]:
    """The records of a file, and those that are broken."""
    for number, raw in enumerate(split_iso2709(data), 1):
        try:
            yield read_iso2709(raw)
        except (ValueError, LookupError) as error:
            yield Broken(number, f"broken MARC record: {error}", raw)


def read_iso2709(record: bytes) -> Marc:
    """The record in these bytes. Raises ValueError with the reason where there is none."""
    if len(record) < 26:
        raise ValueError(f"truncated MARC record of {len(record)} bytes")
    leader = record[:24].decode("latin-1")
    directory, mark, body = record[24:].partition(_FIELD_END)
    if not mark:
        raise ValueError("MARC record without a directory end")
    entry = 3 + _digit(leader[20], 4) + _digit(leader[21], 5) + _digit(leader[22], 0)
    if len(directory) < entry:
        raise ValueError("MARC record with an empty directory")
    entries = [directory[at : at + entry] for at in range(0, len(directory), entry)]
    if not all(len(item) == entry and item[:3].isalnum() and item[3:].isdigit() for item in entries):
        raise ValueError("MARC record with a destroyed directory")
    *in_order, rest = body.split(_FIELD_END)
    if len(in_order) != len(entries) or rest.strip(b" \r\n\t\x00" + _RECORD_END):
        raise ValueError(
            f"truncated or damaged MARC record: its directory names {len(entries)} fields, "
            f"{len(in_order)} are there"
        )
    # Where the directory does not fit the fields, as after a conversion of the encoding, their order is the
    # directory's.
    pieces = _by_directory(entries, body, _digit(leader[20], 4)) or [
        (item[:3], raw) for item, raw in zip(entries, in_order, strict=True)
    ]
    decode = _decoder(leader, body)
    fields = tuple(_field(tag.decode("latin-1"), raw, decode) for tag, raw in pieces if raw)
    if not fields:
        raise ValueError("MARC record without fields")
    return Marc(leader, fields)


def _digit(character: str, default: int) -> int:
    return int(character) if character in "123456789" else default


def _by_directory(entries: list[bytes], body: bytes, width: int) -> list[tuple[bytes, bytes]] | None:
    found, left = [], len(body)
    for item in entries:
        length, start = item[3 : 3 + width], item[3 + width :]
        begin, end = int(start), int(start) + int(length) - 1
        if body[end : end + 1] != _FIELD_END or (begin and body[begin - 1 : begin] != _FIELD_END):
            return None
        raw = body[begin:end]
        left -= len(raw) + 1
        # Entries that share bytes would make gigabytes of a small record.
        if _FIELD_END in raw or left < 0:
            return None
        found.append((item[:3], raw))
    return found


def _decoder(leader: str, body: bytes) -> Callable[[bytes], str]:
    if body.isascii() and b"\x1b" not in body and (leader[9] == "a" or b"#x" not in body):
        return lambda raw: raw.decode("ascii")
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        if leader[9] == "a" and _mostly_utf8(body):
            return lambda raw: raw.decode("utf-8", "replace")
        return from_marc8
    if leader[9] != "a" and (b"\x1b" in body or body.isascii()):
        return from_marc8
    # Bytes that happen to be UTF-8 are UTF-8, whatever the leader claims: MARC-8 puts a combining mark before
    # an ASCII letter, which UTF-8 never does.
    return lambda raw: raw.decode("utf-8", "replace")


def _mostly_utf8(body: bytes) -> bool:
    text = body.decode("utf-8", "replace")
    high = sum(1 for character in text if character > "\x7f")
    return text.count("\ufffd") * 4 <= high


def _field(tag: str, raw: bytes, decode: Callable[[bytes], str]) -> Field:
    if _DELIMITER not in raw or tag < "010":
        return Field(tag, value=decode(raw))
    if decode is from_marc8:
        # One by one: each subfield starts again with the default character sets.
        indicators, *parts = map(decode, raw.split(_DELIMITER))
    else:
        indicators, *parts = decode(raw).split("\x1f")
    return Field(tag, "", indicators[:2].ljust(2), tuple((part[:1], part[1:]) for part in parts if part))


def write_iso2709(record: Marc, marc8: bool = False) -> bytes:
    """The record's bytes, in UTF-8 or MARC-8. ValueError if it is too long for the format."""
    encode = to_marc8 if marc8 else _utf8
    directory, body = bytearray(), bytearray()
    for field in record.fields:
        raw = _field_bytes(field, encode) + _FIELD_END
        if len(raw) > FIELD_BYTES:
            raise ValueError(f"field {field.tag} has {len(raw)} bytes; ISO 2709 takes {FIELD_BYTES}")
        directory += f"{field.tag:.3}{len(raw):04d}{len(body):05d}".encode()
        body += raw
    start = 24 + len(directory) + 1
    length = start + len(body) + 1
    if length > RECORD_BYTES:
        raise ValueError(f"a record of {length} bytes; ISO 2709 takes {RECORD_BYTES}")
    leader = record.leader.ljust(24)
    head = f"{length:05d}{leader[5:9]}{' ' if marc8 else 'a'}22{start:05d}{leader[17:20]}4500"
    return head.encode("ascii", "replace") + directory + _FIELD_END + body + _RECORD_END


def _field_bytes(field: Field, encode: Callable[[str], bytes]) -> bytes:
    """The field without the characters that delimit records, fields and subfields."""
    if not field.subfields:
        return encode(field.value.translate(_SEPARATORS))
    pieces = [
        _DELIMITER + encode((code[:1] + value).translate(_SEPARATORS)) for code, value in field.subfields
    ]
    return encode(field.indicators[:2].ljust(2).translate(_SEPARATORS)) + b"".join(pieces)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


_SEPARATORS: Final = dict.fromkeys((0x1B, 0x1D, 0x1E, 0x1F), " ")
