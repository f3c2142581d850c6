"""Metadata and index part bound in one element: what `oai_dc_tf…` carries over the plain protocol.

A record without an index part is a bundle without `terms`.
"""

from __future__ import annotations

from functools import lru_cache

from lxml import etree

from indlet.formats.index import tf_basic, tf_boolean, tf_compact, tf_positions
from indlet.formats.index.terms import IndexFormat
from indlet.oai.names import BUNDLE_NAMESPACE, XSI_NAMESPACE
from indlet.oai.xml import attribute

ROOT = f"{{{BUNDLE_NAMESPACE}}}bundle"
CLOSE = b"</ft:bundle>"
# metadataPrefix -> the index format inside.
INSIDE: dict[str, IndexFormat] = {
    "oai_dc_tf": tf_compact.FORMAT,
    "oai_dc_tf_basic": tf_basic.FORMAT,
    "oai_dc_tf_boolean": tf_boolean.FORMAT,
    "oai_dc_tf_positions": tf_positions.FORMAT,
}


@lru_cache(maxsize=64)
def opening(schema: str, policy: str) -> bytes:
    """The start of every bundle with this schema, whose terms were made by the policy of this digest."""
    where = attribute(f"{BUNDLE_NAMESPACE} {schema}")
    return (
        f'<ft:bundle policy="{attribute(policy)}" xmlns:ft="{BUNDLE_NAMESPACE}" '
        f'xmlns:xsi="{XSI_NAMESPACE}" xsi:schemaLocation="{where}">'
    ).encode()


def write(opened: bytes, described: bytes, terms: bytes) -> bytes:
    """A bundle of an oai_dc element and a `terms` element, which may be empty; `opened` is its `opening`."""
    return b"%b%b%b%b" % (opened, described, terms, CLOSE)


def read(root: etree._Element) -> tuple[etree._Element | None, etree._Element | None]:
    """The metadata part and the `terms` element of a bundle, as they stand."""
    described = terms = None
    for child in root:
        if isinstance(child.tag, str):
            if child.tag.endswith("}terms"):
                terms = child
            else:
                described = child
    return described, terms
