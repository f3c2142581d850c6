"""mods: the Metadata Object Description Schema, version 3, of the Library of Congress."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml import etree

from indlet.formats.crosswalk import standard
from indlet.formats.files import xml_around, xml_records
from indlet.formats.record import Broken, Fields, FieldsOfXml, MetadataFormat
from indlet.formats.xml_fields import build_xml, flatten
from indlet.oai.names import XSI_NAMESPACE
from indlet.oai.read import canonical

NAMESPACE: Final = "http://www.loc.gov/mods/v3"
SCHEMA: Final = "http://www.loc.gov/standards/mods/v3/mods-3-4.xsd"
# Elements that are better not repeated.
_JOINED: Final = ("originInfo", "physicalDescription", "recordInfo")


def fields(root: etree._Element) -> Fields:
    found = flatten(root)
    if not found:
        raise ValueError("MODS record without elements")
    return found


def _root() -> etree._Element:
    names = {None: NAMESPACE, "xsi": XSI_NAMESPACE}
    root = etree.Element(f"{{{NAMESPACE}}}mods", nsmap=names)  # type: ignore[arg-type]
    root.set(f"{{{XSI_NAMESPACE}}}schemaLocation", f"{NAMESPACE} {SCHEMA}")
    return root


def xml(fields: Fields) -> bytes:
    return build_xml(_root(), NAMESPACE, fields, _JOINED)


def _original(root: etree._Element) -> FieldsOfXml:
    """A record of a file, in the namespace that it is known by: some systems leave that out."""
    found, space = fields(root), etree.QName(root).namespace
    etree.strip_elements(root, etree.Entity, with_tail=False)  # whose declarations stay behind
    if space == NAMESPACE:
        return FieldsOfXml(found, canonical(root))
    known = _root()
    known.extend(list(root))
    for node in known.iter(etree.Element):
        name = etree.QName(node)
        if name.namespace == space:
            node.tag = f"{{{NAMESPACE}}}{name.localname}"
    return FieldsOfXml(found, canonical(known))


def load(data: bytes) -> Iterator[Fields | Broken]:
    return xml_records(data, ("mods",), _original)


FORMAT: Final = MetadataFormat(
    prefix="mods",
    title="MODS",
    namespace=NAMESPACE,
    schema=SCHEMA,
    roots=frozenset({f"{{{NAMESPACE}}}mods"}),
    fields=fields,
    xml=xml,
    crosswalk=lambda _: standard("mods"),
    load=load,
    pack=lambda fields: xml(fields) + b"\n",
    around=xml_around("modsCollection", NAMESPACE),
    media_type="application/mods+xml",
)
