"""MARC files: a document for each record; a record that cannot be read is a failure of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from indlet.errors import ExtractionError
from indlet.formats.files import xml_records
from indlet.formats.iso2709 import Marc, iso2709_records
from indlet.formats.metadata import marc21
from indlet.formats.record import Broken
from indlet.model import Document, Failure
from indlet.provider.extract.file import File, Part

RAW_BYTES = 65_536


def extract(file: File) -> Iterator[Part]:
    return _parts(file, iso2709_records(file.data))


def extract_xml(file: File) -> Iterator[Part]:
    found = False
    for part in _parts(file, xml_records(file.data, ("record",), marc21.read_xml)):
        if isinstance(part, Failure) and not found and part.where == file.name:
            raise ExtractionError(f"not readable as MARCXML: {part.reason}")
        found = True
        yield part


def _parts(file: File, records: Iterable[Marc | Broken]) -> Iterator[Part]:
    for number, record in enumerate(records, 1):
        if isinstance(record, Broken):
            # What is wrong with the whole file has no record of its own.
            where = f"{file.name}#{record.number}" if record.raw else file.name
            yield Failure(where, "extract", record.reason, record.raw[:RAW_BYTES])
        else:
            yield _document(record, number, file.media_type)


def _document(record: Marc, number: int, media_type: str) -> Document:
    metadata = marc21.dublin_core(record)
    languages = metadata.get("language", ())
    key = record.control("001").strip() or str(number)
    return Document(
        marc21.searchable(record),
        metadata,
        media_type,
        key,
        languages[0] if len(languages) == 1 else "",
        raw=marc21.write_xml(record.leader, record.fields),
    )
