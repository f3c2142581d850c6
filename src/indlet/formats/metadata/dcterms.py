"""dcterms: Dublin Core with its refinements and schemes; the common record in full, and our profile of it.

DCMI has no container for its terms, so the element around them is ours, and so is the attribute `scheme`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from lxml import etree

from indlet._core import REFINEMENTS
from indlet.formats.crosswalk import Crosswalk, parse
from indlet.formats.files import xml_around, xml_records
from indlet.formats.metadata.oai_dc import DC_NAMESPACE
from indlet.formats.record import Broken, Field, Fields, MetadataFormat
from indlet.model import DUBLIN_CORE
from indlet.oai.xml import NAME, attribute, text

NAMESPACE: Final = "urn:indlet:dcterms:1.0"
TERMS_NAMESPACE: Final = "http://purl.org/dc/terms/"
_OPEN = f'<q:dcterms xmlns:q="{NAMESPACE}" xmlns:dcterms="{TERMS_NAMESPACE}">'
_SCHEME: Final = f"{{{NAMESPACE}}}scheme"


def fields(root: etree._Element) -> Fields:
    """Every DCMI term, wherever it stands; elements of the older namespace as well."""
    found = []
    for node in root.iter(f"{{{TERMS_NAMESPACE}}}*", f"{{{DC_NAMESPACE}}}*"):
        value = " ".join("".join(map(str, node.itertext())).split())
        scheme = node.get(_SCHEME)
        if value:
            told = (("@scheme", scheme),) if scheme else ()
            found.append(Field(str(node.tag).rpartition("}")[2], value, "", told))
    return found


def xml(fields: Fields) -> bytes:
    parts = [_OPEN]
    for field in fields:
        if not NAME.fullmatch(field.tag):
            continue
        scheme = "".join(f' q:scheme="{attribute(value)}"' for _, value in field.subfields)
        parts.append(f"<dcterms:{field.tag}{scheme}>{text(field.value)}</dcterms:{field.tag}>")
    parts.append("</q:dcterms>")
    return "".join(parts).encode()


@cache
def crosswalk() -> Crosswalk:
    """The elements of Dublin Core and their refinements, each with any scheme, in both directions."""
    terms = [(name, name) for name in DUBLIN_CORE] + [
        (name, f"{element}.{name}") for name, element in REFINEMENTS
    ]
    return parse("".join(f"{term}\t\t\t{element}[*]\t\tboth\t\n" for term, element in terms), "dcterms")


def load(data: bytes) -> Iterator[Fields | Broken]:
    return xml_records(data, ("dcterms", "qualifieddc"), fields)


FORMAT: Final = MetadataFormat(
    prefix="dcterms",
    title="Qualified Dublin Core",
    namespace=NAMESPACE,
    schema="dcterms.xsd",
    roots=frozenset({f"{{{NAMESPACE}}}dcterms"}),
    fields=fields,
    xml=xml,
    crosswalk=lambda _: crosswalk(),
    load=load,
    pack=lambda fields: xml(fields) + b"\n",
    around=xml_around("records"),
)
