"""Metadata and index part bound in one element: what `oai_dc_tf…` carries over the plain protocol.

A record without an index part is a bundle without `terms`.
"""

from __future__ import annotations

from lxml import etree

from indlet.errors import BadResponse
from indlet.formats.index import tf_basic, tf_boolean, tf_compact, tf_positions
from indlet.formats.index.terms import TERMS, IndexFormat
from indlet.formats.metadata import oai_dc
from indlet.model import TermVector
from indlet.oai.names import BUNDLE_NAMESPACE, XSI_NAMESPACE
from indlet.oai.xml import attribute, element

ROOT = f"{{{BUNDLE_NAMESPACE}}}bundle"
CLOSE = b"</ft:bundle>"
# metadataPrefix -> the index format inside.
INSIDE: dict[str, IndexFormat] = {
    "oai_dc_tf": tf_compact.FORMAT,
    "oai_dc_tf_basic": tf_basic.FORMAT,
    "oai_dc_tf_boolean": tf_boolean.FORMAT,
    "oai_dc_tf_positions": tf_positions.FORMAT,
}


def opening(schema: str) -> bytes:
    """The start of every bundle that names this URL as its schema."""
    where = attribute(f"{BUNDLE_NAMESPACE} {schema}")
    return (
        f'<ft:bundle xmlns:ft="{BUNDLE_NAMESPACE}" xmlns:xsi="{XSI_NAMESPACE}" xsi:schemaLocation="{where}">'
    ).encode()


def write(prefix: str, raw: bytes, vector: TermVector | None, schema: str) -> bytes:
    return opening(schema) + raw + (INSIDE[prefix].write(vector) if vector else b"") + CLOSE


def read(
    prefix: str, source: bytes | etree._Element
) -> tuple[dict[str, list[str]], TermVector | None, etree._Element]:
    """The metadata, the vector, and the oai_dc element as it stands."""
    root = element(source)
    if root.tag != ROOT:
        raise BadResponse(f"expected an element bundle of {BUNDLE_NAMESPACE}, found {root.tag}")
    described = root.find(f"{{{oai_dc.NAMESPACE}}}dc")
    if described is None:
        raise BadResponse("a bundle without its oai_dc part")
    terms = root.find(TERMS)
    vector = None if terms is None else INSIDE[prefix].read(terms)
    return oai_dc.read(described), vector, described
