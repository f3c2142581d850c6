"""oai_dc: unqualified Dublin Core, the format that every repository speaks."""

from __future__ import annotations

from typing import Final

from lxml import etree

from indlet.model import DUBLIN_CORE, Metadata
from indlet.oai.xml import element, text

PREFIX: Final = "oai_dc"
NAMESPACE: Final = "http://www.openarchives.org/OAI/2.0/oai_dc/"
SCHEMA: Final = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
DC_NAMESPACE: Final = "http://purl.org/dc/elements/1.1/"

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


def read(source: bytes | etree._Element) -> dict[str, list[str]]:
    """The values of every Dublin Core element, wherever it stands below the root; empty ones are left out."""
    found: dict[str, list[str]] = {}
    for node in element(source).iter(*_NAMES):
        value = "".join(map(str, node.itertext())).strip()
        if value:
            found.setdefault(_NAMES[str(node.tag)], []).append(value)
    return {name: found[name] for name in DUBLIN_CORE if name in found}
