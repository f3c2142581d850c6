"""A page of Dublin Core records in the usual form, read by a kernel at a fraction of the usual cost.

Its records stay in the page's bytes (`Scanned`) until they are normalised, all together. What is not of the
usual form, down to a term out of order, makes `scan` give None, and `oai.read` reads the page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from indlet.errors import BadResponse
from indlet.formats.dublin import language_code
from indlet.formats.metadata import oai_dc
from indlet.kernels import scan as k
from indlet.kernels.vector_check import totals
from indlet.memo import remembered
from indlet.model import DUBLIN_CORE, TermVector
from indlet.oai.read import Item, Page, read
from indlet.oai.xml import element

_ENCODING = re.compile(rb"""\s*<\?xml[^<>]*\bencoding\s*=\s*["'](?!(?i:utf-8)["'])""")
_ROOT = re.compile(rb"<oai_dc:dc[^<>]*>")
_TOKEN = re.compile(
    rb"<resumptionToken[^<>]*>([^<]+)</resumptionToken>\s*</ListRecords>\s*</OAI-PMH>\s*\Z", re.ASCII
)
_SIZE = re.compile(rb"""<resumptionToken\b[^<>]*\bcompleteListSize\s*=\s*["'](\d{1,12})["']""")
_TAIL: Final = 4096
_PADDING: Final = bytes(64)
_RECORD: Final = "<record><header><identifier>x</identifier><datestamp></datestamp></header></record>"

# Which pairs of letters are codes of languages that stand for themselves.
_CODES: Final = np.array(
    [language_code(a + b) == a + b for a in map(chr, range(97, 123)) for b in map(chr, range(97, 123))],
    np.uint8,
)


@dataclass(frozen=True, slots=True, eq=False)
class Scanned:
    """The records of one page. `text` is `body` for kernels, with room after it."""

    body: bytes
    text: NDArray[np.uint8]
    heads: NDArray[np.int64]
    elements: NDArray[np.int64]
    packed: bytes

    def raw(self, place: int) -> bytes:
        head = self.heads[place]
        return self.body[head[k.RAW] : head[k.RAW + 1]]

    def pairs(self, place: int) -> list[tuple[str, str]]:
        low, high = self.heads[place - 1, k.ELEMENTS] if place else 0, self.heads[place, k.ELEMENTS]
        return [
            (DUBLIN_CORE[name], unescaped(self.body[begin:end].decode()))
            for name, begin, end, _ in self.elements[low:high].tolist()
        ]

    def vector(self, place: int) -> TermVector | None:
        head = self.heads[place].tolist()
        if head[k.LENGTH] < 0:
            return None
        low = int(self.heads[place - 1, k.PACKED]) if place else 0
        language = self.body[head[k.LANGUAGE] : head[k.LANGUAGE + 1]].decode()
        return TermVector(self.packed[low : head[k.PACKED]], head[k.LENGTH], None, language)


def last_token(body: bytes) -> str:
    """The resumption token at the end of a page, before the page is read; empty if there is none."""
    found = _TOKEN.search(body, max(len(body) - _TAIL, 0))
    return "" if found is None else unescaped(found[1].decode("ascii", "replace")).strip()


def announced(body: bytes) -> int:
    """How many records a list has, as the end of a page tells before the page is read; 0 if it does not."""
    found = _SIZE.search(body, max(len(body) - _TAIL, 0))
    return 0 if found is None else int(found[1])


def scan(body: bytes) -> Page | None:
    """The page, or None for one that the tolerant reader must look at."""
    begin = body.find(b"<record>")
    if begin < 0 or not _encoded(body):
        return None
    found = _scanned(body, begin)
    if found is None:
        return None
    sheet, sets, end = found
    # What is around the records is soon read in the usual way.
    try:
        page = read(body[:begin] + body[end:])
    except BadResponse:
        return None
    if page.verb != "ListRecords" or page.items or page.problems or page.errors or page.repairs:
        return None
    page.root = None
    low = 0
    for place, row in enumerate(sheet.heads[:, : k.FLAGS + 1].tolist()):
        begin, end, stamp, stamp_end, high, flags = row
        identifier = body[begin:end].decode()
        page.items.append(
            Item(
                unescaped(identifier).strip(),
                body[stamp:stamp_end].decode(),
                _sets(body[sets[low][0] : sets[high - 1][1]]) if high > low else (),
                flags & k.DELETED != 0,
                sheet=sheet,
                place=place,
            )
        )
        low = high
    return page


def _scanned(body: bytes, at: int) -> tuple[Scanned, list[list[int]], int] | None:
    """The records from a place on, their sets, and where they end."""
    text = np.frombuffer(body + _PADDING, np.uint8)
    # No record, set or element is shorter than these.
    heads = np.empty((len(body) // len(_RECORD) + 1, k.COLUMNS), np.int64)
    sets = np.empty((len(body) // len("<setSpec>x</setSpec>") + 1, 2), np.int64)
    elements = np.empty((len(body) // len("<dc:date>x</dc:date>") + 1, 4), np.int64)
    packed = np.empty(text.size if b"<index>" in body else 0, np.uint8)
    used = np.zeros(5, np.int64)
    root = np.empty(0, np.uint8)
    while True:
        at, ended = k.scan(text, at, root, _CODES, heads, sets, elements, packed, used)
        if ended == k.DONE:
            break
        begins = _ROOT.match(body, used[4]) if ended == k.ROOT else None
        if begins is None or not _whole(begins[0], b" xsi:" in body):
            return None
        root = np.frombuffer(begins[0], np.uint8)
    heads = heads[: used[0]]
    vectors = heads[:, k.LENGTH] >= 0
    sums = totals(packed, heads[:, k.PACKED])
    if np.any(vectors & ((sums < 0) | (sums > heads[:, k.LENGTH]))):
        return None
    sheet = Scanned(body, text, heads, elements[: used[2]], packed[: used[3]].tobytes())
    return sheet, sets[: used[1]].tolist(), at


@lru_cache(maxsize=64)
def _whole(tag: bytes, instances: bool) -> bool:
    """Whether metadata that begin with this tag can stand alone: whether all names are declared in it."""
    try:
        root = element(tag + b"</oai_dc:dc>")
    except BadResponse:
        return False
    return (
        root.tag == f"{{{oai_dc.NAMESPACE}}}dc"
        and root.nsmap.get("dc") == oai_dc.DC_NAMESPACE
        and (not instances or root.nsmap.get("xsi") == "http://www.w3.org/2001/XMLSchema-instance")
    )


def _encoded(body: bytes) -> bool:
    """Whether this is UTF-8, and says nothing else, without what XML does not have."""
    if _ENCODING.match(body):
        return False
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return b"\xef\xbf" not in body


@remembered(4096)
def _sets(region: bytes) -> tuple[str, ...]:
    """The setSpecs between the first one's start and the last one's end."""
    return tuple(dict.fromkeys(re.split(r"</setSpec>\s*<setSpec>", region.decode())))


def unescaped(value: str) -> str:
    """A text without the five references of XML."""
    if "&" not in value:
        return value
    for reference, meant in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")):
        value = value.replace(reference, meant)
    return value
