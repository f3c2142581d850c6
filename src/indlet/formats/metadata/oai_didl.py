"""oai_didl: a resource as an MPEG-21 digital item (ISO/IEC 21000-2), by reference and, if small, by value.

Two descriptors give the identifier (DII) and the http_header; the component's resources are equal bit by bit:
the form of mod_oai (Nelson, Van de Sompel, Liu et al. 2004).
"""

from __future__ import annotations

import base64
from typing import Final

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
