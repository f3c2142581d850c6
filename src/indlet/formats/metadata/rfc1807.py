"""rfc1807: the bibliographic records of technical reports (RFC 1807), as text and in the XML of the OAI."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from lxml import etree

from indlet.formats.crosswalk import standard
from indlet.formats.record import Field, Fields
from indlet.formats.tagged import text_format
from indlet.oai.names import XSI_NAMESPACE
from indlet.oai.xml import text

NAMESPACE: Final = "http://info.internet.isi.edu:80/in-notes/rfc/files/rfc1807.txt"
SCHEMA: Final = "http://www.openarchives.org/OAI/1.1/rfc1807.xsd"
_OPEN = f'<rfc1807 xmlns="{NAMESPACE}" xmlns:xsi="{XSI_NAMESPACE}" xsi:schemaLocation="{NAMESPACE} {SCHEMA}">'
# Without these a record is not valid, and with others than all of these neither.
_NEEDED: Final = ("bib-version", "id", "entry")
_TAGS: Final = frozenset(
    (
        *_NEEDED, "organization", "title", "type", "revision", "withdraw", "author", "corp-author", "contact",
        "date", "pages", "copyright", "handle", "other_access", "retrieval", "keyword", "cr-category",
        "period", "series", "monitoring", "funding", "contract", "grant", "language", "notes", "abstract",
    )
)  # fmt: skip


def fields(root: etree._Element) -> Fields:
    found = []
    for node in root:
        value = " ".join("".join(map(str, node.itertext())).split())
        if value and isinstance(node.tag, str):
            found.append(Field(node.tag.rpartition("}")[2].lower(), value))
    return found


def xml(fields: Fields) -> bytes:
    """The elements in the order of the schema, which is that of the table's rows."""
    told = {field.tag for field in fields}
    needed = [Field(tag) for tag in _NEEDED if tag not in told]
    ordered = sorted((*needed, *fields), key=lambda f: _NEEDED.index(f.tag) if f.tag in _NEEDED else 9)
    inside = "".join(
        f"<{field.tag}>{text(field.value)}</{field.tag}>" for field in ordered if field.tag in _TAGS
    )
    return f"{_OPEN}{inside}</rfc1807>".encode()


FORMAT: Final = replace(
    text_format(standard("rfc1807"), "rfc1807", "RFC 1807", SCHEMA),
    namespace=NAMESPACE,
    roots=frozenset({f"{{{NAMESPACE}}}rfc1807"}),
    fields=fields,
    xml=xml,
)
