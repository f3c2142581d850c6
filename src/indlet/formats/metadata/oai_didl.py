"""oai_didl: a resource as an MPEG-21 digital item (ISO/IEC 21000-2), by reference and, if small, by value.

Two descriptors give the identifier (DII) and the http_header; the component's resources are equal bit by bit:
the form of mod_oai (Nelson, Van de Sompel, Liu et al. 2004).
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final

from lxml import etree

from indlet.oai.names import XSI_NAMESPACE
from indlet.oai.xml import attribute, text

PREFIX: Final = "oai_didl"
NAMESPACE: Final = "urn:mpeg:mpeg21:2002:02-DIDL-NS"
DII_NAMESPACE: Final = "urn:mpeg:mpeg21:2002:01-DII-NS"
_SCHEMAS: Final = "http://standards.iso.org/ittf/PubliclyAvailableStandards/MPEG-21_schema_files"
SCHEMA: Final = f"{_SCHEMAS}/did/didl.xsd"

_OPEN = (
    f'<didl:DIDL xmlns:didl="{NAMESPACE}" xmlns:xsi="{XSI_NAMESPACE}" '
    f'xsi:schemaLocation="{NAMESPACE} {SCHEMA} {DII_NAMESPACE} {_SCHEMAS}/dii/dii.xsd"><didl:Item>'
)
_STATEMENT = '<didl:Descriptor><didl:Statement mimeType="application/xml; charset=utf-8">'
_END = "</didl:Statement></didl:Descriptor>"


def write(url: str, media_type: str, header: bytes, content: bytes | None) -> bytes:
    """The DIDL element; `content` is the resource itself, where it is to stand inside."""
    kind = attribute(media_type)
    parts = [
        f'{_OPEN}{_STATEMENT}<dii:Identifier xmlns:dii="{DII_NAMESPACE}">{text(url)}</dii:Identifier>{_END}'
        f"{_STATEMENT}".encode(),
        header,
        f'{_END}<didl:Component><didl:Resource mimeType="{kind}" ref="{attribute(url)}"/>'.encode(),
    ]
    if content is not None:
        parts += [
            f'<didl:Resource mimeType="{kind}" encoding="base64">'.encode(),
            base64.b64encode(content),
            b"</didl:Resource>",
        ]
    parts.append(b"</didl:Component></didl:Item></didl:DIDL>")
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Component:
    """One file of a digital item: where it is, or what it is, or both."""

    ref: str = ""
    media_type: str = ""
    content: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()  # of http_header, where the item has one for this file alone
    sha256: str = ""


def read(root: etree._Element) -> list[Component]:
    """The files of an item, whoever wrote it: known by local names, in items within items too.

    mod_oai writes one component with equal resources, DSpace a component for each bitstream, by reference or
    in base64, EPrints an item for each document, by reference.
    """
    found = [component for node in root.iter("{*}Component") if (component := _component(node)) is not None]
    headers = list(root.iter("{*}headers"))
    if len(found) == 1 and len(headers) == 1:
        fields = tuple(
            (node.get("name", ""), node.text or "") for node in headers[0] if _local(node) == "header"
        )
        digest = next((node.text or "" for node in headers[0] if _local(node) == "digest"), "")
        one = found[0]
        return [Component(one.ref, one.media_type, one.content, fields, digest.strip().lower())]
    return found


def _component(node: etree._Element) -> Component | None:
    ref = media_type = ""
    content: bytes | None = None
    for resource in node:
        if _local(resource) != "Resource":
            continue
        media_type = media_type or resource.get("mimeType", "")
        if resource.get("ref"):
            ref = ref or resource.get("ref", "").strip()
        elif "base64" in resource.get("encoding", "").split():
            content = _decoded(resource.text or "")
    return Component(ref, media_type, content) if ref or content is not None else None


def _decoded(text: str) -> bytes | None:
    """What stands in base64; None if it is not. Line breaks are taken out only where there are any."""
    for form in (str, lambda value: "".join(value.split())):
        try:
            return binascii.a2b_base64(form(text), strict_mode=True)
        except ValueError:  # binascii.Error, and text that is not ASCII
            continue
    return None


def _local(node: etree._Element) -> str:
    return str(node.tag).rpartition("}")[2] if isinstance(node.tag, str) else ""
