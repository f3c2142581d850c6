"""Text into XML, and XML into elements without the dangers of XML."""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from indlet.errors import BadResponse

# What XML 1.0 cannot carry, not even as a reference (section 2.2).
FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

# What we write as the name of an element or attribute: none of a known format has other characters.
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def text(value: str) -> str:
    """The value as the content of an element; what XML cannot carry is left out."""
    value = FORBIDDEN.sub("", value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return value.replace("\r", "&#13;")


def attribute(value: str) -> str:
    """The value as the content of an attribute in double quotes, safe from attribute normalisation."""
    value = text(value).replace('"', "&quot;")
    return value.replace("\t", "&#9;").replace("\n", "&#10;")


def element(source: bytes | etree._Element) -> etree._Element:
    """The root of a document that is read without entities, DTDs or network."""
    if not isinstance(source, bytes):
        return source
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )
    try:
        return etree.fromstring(source, parser)
    except etree.XMLSyntaxError as e:
        raise BadResponse(f"not well-formed XML: {e}; the sender has to correct it") from e
