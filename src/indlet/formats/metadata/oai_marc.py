"""oai_marc: MARC as the first OAI repositories wrote it; read only, by the crosswalk of MARC 21."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml import etree

from indlet.formats.files import xml_records
from indlet.formats.iso2709 import Marc
from indlet.formats.metadata import marc21
from indlet.formats.record import Broken, Field, Fields, MetadataFormat

NAMESPACE: Final = "http://www.openarchives.org/OAI/1.1/oai_marc"
SCHEMA: Final = "http://www.openarchives.org/OAI/1.1/oai_marc.xsd"


def fields(root: etree._Element) -> Fields:
    """Leader positions stand in attributes, tags and indicators as numbers and letters without blanks."""
    leader = f"00000{_one(root, 'status')}{_one(root, 'type')}{_one(root, 'level')}"
    found = []
    for node in root:
        kind = str(node.tag).rpartition("}")[2]
        tag = (node.get("id") or "").strip().zfill(3)
        if len(tag) != 3:
            continue
        if kind == "fixfield":
            # The value stands in quotes, so that blanks at its ends are kept.
            found.append(Field(tag, (node.text or "").strip("\n\r").removeprefix('"').removesuffix('"')))
        elif kind == "varfield":
            codes = tuple(
                (sub.get("label") or "", " ".join("".join(map(str, sub.itertext())).split()))
                for sub in node
                if isinstance(sub.tag, str)
            )
            found.append(Field(tag, "", _one(node, "i1") + _one(node, "i2"), codes))
    if not found:
        raise ValueError("oai_marc record without fields")
    return marc21.marc_fields(Marc(leader.ljust(24), tuple(found)))


def _one(node: etree._Element, name: str) -> str:
    return (node.get(name) or " ")[:1]


def load(data: bytes) -> Iterator[Fields | Broken]:
    return xml_records(data, ("oai_marc",), fields)


FORMAT: Final = MetadataFormat(
    prefix="oai_marc",
    title="oai_marc",
    namespace=NAMESPACE,
    schema=SCHEMA,
    roots=frozenset({f"{{{NAMESPACE}}}oai_marc", f"{{{NAMESPACE}/}}oai_marc"}),
    fields=fields,
    xml=marc21.FORMAT.xml,
    crosswalk=marc21.crosswalk,
    load=load,
    pack=marc21.pack,
    served=False,
)
