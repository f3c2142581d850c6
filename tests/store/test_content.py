"""Metadata and original of a record as one compressed value."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from indlet.errors import StoreError
from indlet.model import Record, TermVector
from indlet.store import open_store
from indlet.store.content import decode_content, encode_content, is_encoded
from indlet.store.packed import packed
from indlet.store.sqlite.migrations import STEPS, compressed_content
from indlet.store.sqlite.store import FILE_NAME
from indlet.store.tables import COLUMNS

METADATA = orjson.dumps({"title": ["Boundary layers on flat plates"], "creator": ["Blasius, H."]})
ORIGINAL = (
    b'<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"><dc:title xmlns:dc="'
    b'http://purl.org/dc/elements/1.1/">Boundary layers on flat plates</dc:title></oai_dc:dc>'
)


@given(st.dictionaries(st.text(), st.lists(st.text())).map(orjson.dumps), st.binary())
def test_content_comes_back_as_it_was(metadata: bytes, original: bytes) -> None:
    value = encode_content(metadata, original)
    assert decode_content(value) == (metadata, original)
    assert encode_content(metadata, original) == value


def test_the_original_takes_little_beside_the_metadata() -> None:
    alone, both = encode_content(METADATA, b""), encode_content(METADATA, ORIGINAL)
    assert len(both) < len(alone) + 40 < len(METADATA) + 40


def test_content_that_compresses_too_well_is_kept_as_it_is() -> None:
    original = b" " * 1_000_000
    value = encode_content(METADATA, original)
    assert len(value) > len(original)
    assert decode_content(value) == (METADATA, original)


def test_a_damaged_value_is_an_error_or_other_content_and_never_larger_than_its_bound() -> None:
    value = encode_content(METADATA, ORIGINAL)
    source = random.Random(1)
    for place in range(len(value)):
        for changed in (value[:place], value[:place] + bytes([source.randrange(256)]) + value[place + 1 :]):
            try:
                metadata, original = decode_content(changed)
            except StoreError as e:
                assert "restore the store from a backup" in str(e)
            else:
                assert len(metadata) + len(original) <= 200 * len(changed)


@pytest.mark.parametrize("size", [1 << 20, 1 << 30, 1 << 60])
def test_a_frame_that_claims_to_be_large_is_not_unpacked(size: int) -> None:
    compressor = zstandard.ZstdCompressor(level=1)
    if size > 1 << 20:
        # A frame header with a content size of eight bytes: magic number, descriptor, window, size.
        frame = b"\x28\xb5\x2f\xfd\xe0" + size.to_bytes(8, "little") + b"\x01\x00\x00"
    else:
        frame = compressor.compress(bytes(size))
    with pytest.raises(StoreError, match="damaged"):
        decode_content(b"\x01\x00\x00\x00\x00" + frame)


def test_a_value_of_a_later_version_is_an_error() -> None:
    value = b"\x07" + encode_content(METADATA, ORIGINAL)[1:]
    assert not is_encoded(value)


@pytest.mark.parametrize("original", [ORIGINAL, b"", b"{", b"\x00\x00", b"\x01" + ORIGINAL, b"\x02"])
@pytest.mark.parametrize("kind", ["source", "hierarchy"])
def test_every_way_to_read_a_record_gives_its_content(kind: str, original: bytes, tmp_path: Path) -> None:
    record = Record("oai:x:1", orjson.loads(METADATA), raw=original)
    with open_store(tmp_path) as store:
        with store.write() as tx:
            origin = tx.origin(kind, "o")
            tx.put(origin, [record, Record("oai:x:2", deleted=True)])
        with store.read() as view:
            first, second = view.changes()
            assert (first.record, second.record.deleted) == (record, True)
            assert view.page(9)[0].record == record
            assert [row[4] for row in view.originals(9)] == [original, None]
            assert view.by_id([first.id])[first.id] == first == view.get("oai:x:1")
            (alone, _) = view.changes(parts=("metadata",))
            assert (alone.metadata, alone.raw) == (METADATA, b"")
            (alone, _) = view.changes(parts=("raw",))
            assert (alone.metadata, alone.raw) == (b"" if original else METADATA, original)
            (alone, _) = view.changes(parts=("vector",))
            assert (alone.metadata, alone.raw) == (METADATA, b"")
            (alone, _) = view.changes(parts=())
            assert (alone.metadata, alone.raw) == (b"", b"")
        with store.write() as tx:
            assert tx.put(origin, [record]) == 0


def _fill_before_compression(folder: Path, records: Sequence[Record]) -> None:
    """A store as the version before made it."""
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as connection:
        for step in STEPS[: STEPS.index(compressed_content)]:
            step(connection)
        connection.execute("INSERT INTO origins (kind, name) VALUES ('source', 's')")
        names = ", ".join(COLUMNS)
        for n, record in enumerate(map(packed, records), 1):
            row = (n, n, 1, record.identifier, 1000, 1000, *record[1:])
            connection.execute(f"INSERT INTO records ({names}) VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("INSERT INTO meta VALUES ('seq', ?)", (len(records),))
        connection.execute("INSERT INTO ticks VALUES (1000, 1)")
        connection.execute(f"PRAGMA user_version = {STEPS.index(compressed_content)}")


def test_metadata_keep_their_datestamp_when_a_vector_changes_after_an_upgrade(tmp_path: Path) -> None:
    """Records that were kept before there was compression compare equal to those that come now."""
    records = [Record(f"oai:x:{n}", orjson.loads(METADATA), raw=ORIGINAL) for n in range(3)]
    _fill_before_compression(tmp_path, records)
    with open_store(tmp_path) as store:
        with store.read() as view:
            assert [stored.record for stored in view.changes()] == records
        changed = replace(records[0], vector=TermVector.of({"wing": 1}))
        with store.write() as tx:
            assert tx.put(1, [changed, *records[1:]]) == 1
        with store.read() as view:
            last = view.page(9, metadata_only=False)[-1]
            assert (last.identifier, last.seq) == ("oai:x:0", 4)
            assert [stored.seq for stored in view.page(9, metadata_only=True)] == [1, 2, 3]


def test_an_upgrade_gives_room_back_to_the_disk(tmp_path: Path) -> None:
    words = Path(__file__).parents[1].joinpath("text", "paragraphs.txt").read_text("utf-8").split()
    source = random.Random(2)
    records = [
        Record(f"oai:x:{n}", {"description": [text]}, raw=ORIGINAL.replace(b"Boundary", text.encode()))
        for n, text in enumerate(" ".join(source.choices(words, k=80)) for _ in range(2000))
    ]
    _fill_before_compression(tmp_path, records)
    before = (tmp_path / FILE_NAME).stat().st_size
    with open_store(tmp_path) as store, store.read() as view:
        assert [stored.record for stored in view.changes()] == records
    assert (tmp_path / FILE_NAME).stat().st_size < 0.6 * before
