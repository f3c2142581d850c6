"""A catalogue's export: a document for each record of a file, by the format and tables of its library."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from indlet.errors import ExtractionError, SettingsError
from indlet.exchange.translate import format_named, on_top
from indlet.formats.record import Broken, Fields, FieldsOfXml, MetadataFormat
from indlet.model import DUBLIN_CORE, WARNING, Document, Failure, Metadata
from indlet.provider.extract.file import File, Part


class Reader(NamedTuple):
    """How the files of a library are read: a format by its prefix, and the library's own table."""

    format: str
    mapping: str = ""

    def parts(self, file: File) -> Iterator[Part]:
        """The records of a file; one that cannot be read or mapped is a failure of its own."""
        try:
            metadata = format_named(self.format)
            found = metadata.load(file.data)
            number = 0
            for fields in found:
                if isinstance(fields, Broken) and fields.is_warning:
                    yield Failure(file.name, WARNING, fields.reason)
                    continue
                number += 1
                if isinstance(fields, Broken):
                    yield Failure(f"{file.name}#{fields.number}", "extract", fields.reason, fields.raw)
                else:
                    yield _part(file, metadata, self.mapping, number, fields)
        except SettingsError as e:
            raise ExtractionError(str(e)) from e


def _part(file: File, metadata: MetadataFormat, mapping: str, number: int, fields: Fields) -> Part:
    record = on_top(mapping, metadata.crosswalk(fields), metadata).read(fields)
    described = record.simple()
    if not described:
        return Failure(f"{file.name}#{number}", "extract", "nothing of it could be mapped to Dublin Core")
    text = "\n".join(value for element in DUBLIN_CORE for value in described.get(element, ()))
    languages = described.get("language", ())
    return Document(
        text,
        described,
        "application/xml",
        record.identifier or _control_number(fields) or _fingerprint(described),
        languages[0] if len(languages) == 1 else "",
        raw=fields.xml if isinstance(fields, FieldsOfXml) else metadata.xml(fields),
        statements=record.parts() if mapping else (),
    )


def _control_number(fields: Fields) -> str:
    """What a MARC record calls itself."""
    return next((field.value.strip() for field in fields if field.tag == "001"), "")


def _fingerprint(described: Metadata) -> str:
    """The key of a record without an identifier, made of what seldom changes, wherever it stands."""
    told = [(name, described[name]) for name in ("title", "creator", "date") if name in described]
    return blake2b(repr(told or sorted(described.items())).encode(), digest_size=6).hexdigest()
