"""oai_marc: MARC as the first OAI repositories wrote it, by the crosswalk of MARC 21."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lxml import etree

from indlet.formats.files import xml_around, xml_records
from indlet.formats.iso2709 import Marc
from indlet.formats.metadata import marc21
from indlet.formats.record import Broken, Field, Fields, MetadataFormat
from indlet.oai.names import XSI_NAMESPACE
from indlet.oai.xml import attribute, text

NAMESPACE: Final = "http://www.openarchives.org/OAI/1.1/oai_marc"
SCHEMA: Final = "http://www.openarchives.org/OAI/1.1/oai_marc.xsd"


# Attributes of the root, with the positions of the leader that they hold.
_LEADER: Final = {
    "status": 5, "type": 6, "level": 7, "ctlType": 8, "encLvl": 17, "catForm": 18, "lrRqrd": 19,
}  # fmt: skip
_NEEDED: Final = ("type", "level")
_BLANK: Final = "00000    a2200000   4500"
_TAG = re.compile(r"[0-9]{3}")


def fields(root: etree._Element) -> Fields:
    """Leader positions stand in attributes, tags and indicators as numbers and letters without blanks."""
    leader = list(_BLANK)
    for name, position in _LEADER.items():
        leader[position] = _one(root, name)
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
                (sub.get("label") or "", marc21.on_one_line("".join(map(str, sub.itertext()))))
                for sub in node
                if isinstance(sub.tag, str)
            )
            found.append(Field(tag, "", _one(node, "i1") + _one(node, "i2"), codes))
    if not found:
        raise ValueError("oai_marc record without fields")
    return marc21.marc_fields(Marc("".join(leader), tuple(found)))


def _one(node: etree._Element, name: str) -> str:
    return (node.get(name) or " ")[:1]


def xml(fields: Fields) -> bytes:
    """The `oai_marc` element of these fields. A tag that is no number has no place in it."""
    record = marc21.valid(marc21.marc(fields))
    said = {name: record.leader[position] for name, position in _LEADER.items()}
    attributes = "".join(
        f' {name}="{attribute(value)}"' for name, value in said.items() if value != " " or name in _NEEDED
    )
    parts = [
        f'<oai_marc xmlns="{NAMESPACE}" xmlns:xsi="{XSI_NAMESPACE}" '
        f'xsi:schemaLocation="{NAMESPACE} {SCHEMA}"{attributes}>'
    ]
    for field in sorted(record.fields, key=lambda field: bool(field.subfields)):
        if not _TAG.fullmatch(field.tag):
            continue
        if not field.subfields:
            parts.append(f'<fixfield id="{field.tag}">"{text(field.value)}"</fixfield>')
            continue
        one, two = field.indicators[0], field.indicators[1]
        parts.append(f'<varfield id="{field.tag}" i1="{one}" i2="{two}">')
        parts += [
            f'<subfield label="{attribute(code)}">{text(value)}</subfield>' for code, value in field.subfields
        ]
        parts.append("</varfield>")
    parts.append("</oai_marc>")
    return "".join(parts).encode()


def load(data: bytes) -> Iterator[Fields | Broken]:
    return xml_records(data, ("oai_marc",), fields)


FORMAT: Final = MetadataFormat(
    prefix="oai_marc",
    title="oai_marc",
    namespace=NAMESPACE,
    schema=SCHEMA,
    roots=frozenset({f"{{{NAMESPACE}}}oai_marc", f"{{{NAMESPACE}/}}oai_marc"}),
    fields=fields,
    xml=xml,
    crosswalk=marc21.crosswalk,
    load=load,
    pack=lambda fields: xml(fields) + b"\n",
    around=xml_around("records"),
)
