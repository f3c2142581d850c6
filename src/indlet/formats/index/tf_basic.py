"""tf_basic: a `term` element with name and frequency for each term. Serves every model."""

from __future__ import annotations

from lxml import etree

from indlet.formats.index import terms
from indlet.model import TermVector

PREFIX = "tf_basic"


def write(vector: TermVector) -> bytes:
    """`<terms length="52" lang="en"><term name="opera" freq="26"/>…</terms>`, by rising frequency."""
    parts = [terms.opening(vector)]
    for line in terms.quote_lines(vector.packed):
        frequency, _, names = line.partition(b" ")
        # One replacement a line writes all of its terms: no work per term in Python.
        end = b'" freq="%b"/>' % frequency
        parts += (b'<term name="', names.replace(b" ", end + b'<term name="'), end)
    parts.append(terms.CLOSE)
    return b"".join(parts)


def read(root: etree._Element) -> TermVector:
    length, language = terms.header(root)
    found = [(t.get("name") or "", terms.number(t.get("freq"), "freq")) for t in root.iter(terms.TERM)]
    return terms.vector(found, length, language)


FORMAT = terms.IndexFormat(PREFIX, write, read)
