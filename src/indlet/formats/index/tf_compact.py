"""tf_compact: the terms of one frequency as words in one element. Every model, few bytes, little parsing.

The body is the packed vector that the store keeps, line by line: writing it is a few operations on bytes.
"""

from __future__ import annotations

from lxml import etree

from indlet.formats.index import terms
from indlet.model import TermVector

PREFIX = "tf_compact"


def write(vector: TermVector) -> bytes:
    """`<terms length="52" lang="en"><t f="1">acid air</t><t f="2">wing</t></terms>`."""
    parts = [terms.opening(vector)]
    for line in terms.lines(vector.packed):
        frequency, _, words = line.partition(b" ")
        parts.append(b'<t f="%b">%b</t>' % (frequency, words))
    parts.append(terms.CLOSE)
    return b"".join(parts)


def read(root: etree._Element) -> TermVector:
    """The vector. What we wrote ourselves comes back without a look at single terms but one: their order."""
    length, language = terms.header(root)
    found = [(terms.number(t.get("f"), "f"), (t.text or "").split()) for t in root.iter(terms.GROUP)]
    if _canonical(found):
        packed = "\n".join(f"{f} {' '.join(words)}" for f, words in found).encode()
        total = sum(f * len(words) for f, words in found)
        return TermVector(packed, max(length or 0, total), None, language)
    pairs = [(word, f) for f, words in found for word in words]
    return terms.vector(pairs, length, language)


def _canonical(found: list[tuple[int, list[str]]]) -> bool:
    # Code points sort as their UTF-8 bytes do.
    last, seen, count = 0, set[str](), 0
    for f, words in found:
        if f <= last or not words or words != sorted(words):
            return False
        last, count = f, count + len(words)
        seen.update(words)
    return len(seen) == count


FORMAT = terms.IndexFormat(PREFIX, write, read)
