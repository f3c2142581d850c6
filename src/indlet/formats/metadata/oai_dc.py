"""oai_dc: unqualified Dublin Core, the format that every repository speaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml import etree

from indlet.formats.crosswalk import standard
from indlet.formats.files import xml_around, xml_records
from indlet.formats.record import Broken, Field, Fields, MetadataFormat
from indlet.model import DUBLIN_CORE, Metadata
from indlet.oai.xml import text

PREFIX: Final = "oai_dc"
NAMESPACE: Final = "http://www.openarchives.org/OAI/2.0/oai_dc/"
SCHEMA: Final = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
DC_NAMESPACE: Final = "http://purl.org/dc/elements/1.1/"
# How a record in the usual form begins: by it our own records, and nearly everybody's, are known.
START: Final = b"<oai_dc:dc "

_OPEN = (
    f'<oai_dc:dc xmlns:oai_dc="{NAMESPACE}" xmlns:dc="{DC_NAMESPACE}" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    f'xsi:schemaLocation="{NAMESPACE} {SCHEMA}">'
)
_NAMES = {f"{{{DC_NAMESPACE}}}{name}": name for name in DUBLIN_CORE}


def write(metadata: Metadata) -> bytes:
    """The oai_dc element, with its own declarations, in Dublin Core order; UTF-8 without XML declaration."""
    parts = [_OPEN]
    for name in DUBLIN_CORE:
        parts += [f"<dc:{name}>{text(value)}</dc:{name}>" for value in metadata.get(name, ())]
    parts.append("</oai_dc:dc>")
    return "".join(parts).encode()


def fields(root: etree._Element) -> list[Field]:
    """Every Dublin Core element, wherever it stands below the root; empty ones are left out."""
    found = []
    for node in root.iter(*_NAMES):
        value = "".join(map(str, node.itertext())).strip()
        if value:
            found.append(Field(_NAMES[str(node.tag)], value))
    return found


def _xml(fields: Fields) -> bytes:
    metadata: dict[str, list[str]] = {}
    for field in fields:
        metadata.setdefault(field.tag, []).append(field.value)
    return write(metadata)


def load(data: bytes) -> Iterator[Fields | Broken]:
    yield from xml_records(data, ("dc",), fields)


FORMAT: Final = MetadataFormat(
    prefix=PREFIX,
    title="Dublin Core",
    namespace=NAMESPACE,
    schema=SCHEMA,
    roots=frozenset({f"{{{NAMESPACE}}}dc"}),
    fields=fields,
    xml=_xml,
    crosswalk=lambda _: standard(PREFIX),
    load=load,
    pack=lambda fields: _xml(fields) + b"\n",
    around=xml_around("records"),
)
