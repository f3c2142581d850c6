"""tf_positions: frequencies and token positions, for phrases and proximity."""

from __future__ import annotations

from collections import defaultdict

from lxml import etree

from indlet.errors import BadResponse
from indlet.formats.index import terms
from indlet.limits import Budget
from indlet.model import TermVector
from indlet.oai.xml import attribute

PREFIX = "tf_positions"


def write(vector: TermVector) -> bytes:
    """`<terms length="52" lang="en"><term name="opera" freq="2" at="3 17"/>…</terms>`; positions from 0."""
    parts = [terms.opening(vector)]
    for name, places in vector.places().items():
        at = " ".join(map(str, places))
        parts.append(f'<term name="{attribute(name)}" freq="{len(places)}" at="{at}"/>'.encode())
    parts.append(terms.CLOSE)
    return b"".join(parts)


def read(root: etree._Element) -> TermVector:
    length, language = terms.header(root)
    places: defaultdict[str, list[int]] = defaultdict(list)
    found = list(root.iter(terms.TERM))
    # Each word of a name has all of its positions.
    budget = Budget(sum(len(t.get("name") or "") + len(t.get("at") or "") for t in found))
    for t in found:
        name, at = t.get("name") or "", [terms.number(p, "at", 0) for p in (t.get("at") or "").split()]
        if at != sorted(at):
            raise BadResponse(f"positions of {name[:80]!r} do not rise")
        if not at or terms.number(t.get("freq"), "freq") != len(at):
            raise BadResponse(f"freq of {name[:80]!r} is not the number of its positions")
        for term in name.split():
            budget.charge(len(at))
            places[term] += at
    for several in places.values():
        several.sort()
    total = sum(map(len, places.values()))
    return TermVector.of_positions(places, max(length or 0, total), language)


FORMAT = terms.IndexFormat(PREFIX, write, read, positions=True)
