"""MARC files: a document for each record; a record that cannot be read is a failure of its own."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from lxml import etree

from indlet.errors import ExtractionError
from indlet.formats.metadata import marc21
from indlet.model import Document, Failure
from indlet.provider.extract.decode import declared_encoding, decode
from indlet.provider.extract.file import File, Part

RAW_BYTES = 65_536


def extract(file: File) -> Iterator[Part]:
    for number, raw in enumerate(marc21.split_iso2709(file.data), 1):
        try:
            yield _document(marc21.read_iso2709(raw), number, file.media_type)
        except (ValueError, LookupError) as error:
            yield Failure(f"{file.name}#{number}", "extract", f"broken MARC record: {error}", raw[:RAW_BYTES])


def extract_xml(file: File) -> Iterator[Part]:
    number = 0
    # An element at a time, so that a catalogue of a million records needs the memory of one.
    events = etree.iterparse(
        io.BytesIO(_one_root(file.data)),
        events=("end",),
        tag="{*}record",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for _, element in events:
            number += 1
            try:
                yield _document(marc21.read_xml(element), number, file.media_type)
            except (ValueError, LookupError) as error:
                raw = etree.tostring(element)[:RAW_BYTES]
                yield Failure(f"{file.name}#{number}", "extract", f"broken MARCXML record: {error}", raw)
            element.clear()
            while (before := element.getprevious()) is not None:
                parent = before.getparent()
                if parent is None:
                    break
                parent.remove(before)
    except etree.XMLSyntaxError as error:
        if not number:
            raise ExtractionError(f"not readable as MARCXML: {error}") from error
        yield Failure(file.name, "extract", f"MARCXML broken after record {number}: {error}")
    if not number:
        raise ExtractionError("MARCXML without a record")
    if problem := next((entry.message for entry in events.error_log if entry.level_name == "FATAL"), ""):
        yield Failure(file.name, "extract", f"MARCXML that is not well-formed: {problem}; more may be lost")


_PROLOGUE = re.compile(r"\ufeff?\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?=<(?:\w+:)?record[\s>])")


def _one_root(data: bytes) -> bytes:
    """The data as it stands, or within a collection where records follow each other without one."""
    text = decode(data[:1000], declared_encoding(data))
    if not _PROLOGUE.match(text) or len(re.findall(rb"<(?:\w+:)?record[\s>]", data)) < 2:
        return data
    text = _PROLOGUE.sub("", decode(data, declared_encoding(data)), count=1)
    return f"<collection>{text}</collection>".encode("utf-8", "replace")


def _document(record: marc21.Marc, number: int, media_type: str) -> Document:
    metadata = marc21.dublin_core(record)
    languages = metadata.get("language", ())
    text = marc21.searchable(record)
    key = record.control("001").strip() or str(number)
    return Document(text, metadata, media_type, key, languages[0] if len(languages) == 1 else "")
