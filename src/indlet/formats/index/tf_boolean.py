"""tf_boolean: term names and document length; enough for boolean retrieval, and tells no frequency."""

from __future__ import annotations

from lxml import etree

from indlet.formats.index import terms
from indlet.model import TermVector

PREFIX = "tf_boolean"


def write(vector: TermVector) -> bytes:
    """`<terms length="52" lang="en"><term name="opera"/>…</terms>`, in the order of names."""
    # Sorted: the packed order, by frequency, would tell what this format is chosen to keep.
    names = sorted(name for line in terms.quote_lines(vector.packed) for name in line.split(b" ")[1:])
    body = b'<term name="' + b'"/><term name="'.join(names) + b'"/>' if names else b""
    return terms.opening(vector) + body + terms.CLOSE


def read(root: etree._Element) -> TermVector:
    """Each term once. The length stays the one told: how often a term occurs is not known."""
    length, language = terms.header(root)
    names = {name: 1 for t in root.iter(terms.TERM) for name in (t.get("name") or "").split()}
    return terms.vector(names.items(), length, language)


FORMAT = terms.IndexFormat(PREFIX, write, read, frequencies=False)
