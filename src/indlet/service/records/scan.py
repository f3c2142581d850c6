"""A page of records read by a kernel, at a fraction of the usual cost.

Every byte is accounted for: at the first one that is not well-formed XML, or asks for a repair, `scan` gives
None, and `oai.read` reads the page. What a record says then is the same either way, down to its bytes.
"""

from __future__ import annotations

import re
import threading
from functools import cache, lru_cache
from typing import Final, NamedTuple

import numpy as np

from indlet.errors import BadResponse
from indlet.formats.dublin import PDF_MARKS, folded
from indlet.kernels import describe
from indlet.kernels import scan as k
from indlet.kernels.vector_check import totals
from indlet.memo import SHORT, remembered
from indlet.model import DUBLIN_CORE, TermVector
from indlet.oai.read import Item, MetadataPart, Page, local_name, parsed, read, text_of
from indlet.oai.read_repair import decoded
from indlet.service.records.normalise import FORMS
from indlet.service.records.tags import TagTable

_RECORD = re.compile(rb"<((?:[\w.-]+:)?record)[\s>]", re.IGNORECASE)
_PADDING: Final = b"<" + bytes(k.PADDING - 1)
# Tags of one page that are new to the table: with more of them, the tolerant reader is no slower.
_NEW: Final = 2000
# Metadata in canonical form may take so many times the bytes of their page.
_LARGER: Final = 20
# Titles of PDF files that are copied as they stand (`dublin.pdf_text`): seldom enough for the other reader.
_ENCODED_TWICE: Final = tuple(mark.encode() for mark in PDF_MARKS)
# Elements whose values have forms, a bit for each; and how the elements begin in JSON.
_FORMED: Final = sum(1 << DUBLIN_CORE.index(element) for element in FORMS)
_OPENINGS: Final = [f'"{element}":['.encode() for element in DUBLIN_CORE]
_NAMES: Final = np.frombuffer(b"".join(_OPENINGS), np.uint8), np.cumsum([len(name) for name in _OPENINGS])


class _Head(NamedTuple):
    """A row of `kernels.scan.HEAD`."""

    begin: int
    end: int
    headed: int
    identifier: int
    identifier_end: int
    datestamp: int
    datestamp_end: int
    deleted: int
    raw: int
    raw_end: int
    sets: int
    abouts: int
    values: int
    packed: int
    length: int
    language: int
    language_end: int
    nested: int


class _Known(threading.local):
    """The tags that a thread has met, from page to page."""

    def __init__(self) -> None:
        self.table = TagTable()


_known = _Known()


def scan(body: bytes, charset: str = "") -> Page | None:
    """The page, or None for one that the tolerant reader must look at."""
    body, repairs = decoded(body, charset)
    first = _RECORD.search(body)
    last = body.rfind(b"</" + first[1]) if first else -1
    end = body.find(b">", last) + 1
    if first is None or last < first.start() or not end:
        return None
    # What is around the records is soon read in the usual way.
    try:
        page = read(body[: first.start()] + body[end:])
    except BadResponse:
        return None
    root, page.root = page.root, None
    if page.verb != "ListRecords" or page.items or page.problems or page.errors or page.repairs:
        return None
    if root is None or root.get("version") == "1":
        return None
    (listed,) = (node for node in root if local_name(node).lower() == "listrecords")
    region = body[first.start() : end]
    if any(mark in region for mark in _ENCODED_TWICE):
        return None
    pages = _walked(region, listed.nsmap)
    if pages is None or not _sound(pages):
        return None
    described = _described(pages)
    if described is None:
        return None
    page.items = _items(region, pages, described)
    page.repairs = repairs
    return page if all(item.identifier for item in page.items) else None


def _walked(region: bytes, declared: dict[str | None, str]) -> k.PageArrays | None:
    """What the kernel makes of records, while Python tells it what new tags mean."""
    table = _known.table
    table.begin(declared)
    size = len(region)
    # No record, set, about part or element with a value is shorter than these. What is not used of the room
    # costs nothing.
    pages = k.PageArrays(
        np.frombuffer(region + _PADDING, np.uint8), _classes(), np.zeros(1, k.STATE),
        np.empty(k.DEPTH + 1, k.OPEN), np.empty(size // len("<record><header><identifier/>") + 1, k.HEAD),
        np.empty(size // len("<setSpec/>") + 1, k.SPAN), np.empty(size // len("<a/>") + 1, k.SPAN),
        np.empty(size // len("<a>b</a>") + 1, k.VALUE), np.empty(5 * size, np.uint8),
        np.empty(2 * size, np.uint8), np.empty(size if b"urn:indlet:tf:" in region else 0, np.uint8),
    )  # fmt: skip
    new = 0
    while (why := k.walk(table.tags, pages)) != k.DONE:
        if why == k.FULL and pages.raw.size < _LARGER * size:
            pages = pages._replace(raw=np.concatenate((pages.raw, np.empty(pages.raw.size, np.uint8))))
        elif why == k.UNKNOWN and new < _NEW:
            new += 1
            context, begin, end, hashed = pages.state[0].item()[-4:]
            if not table.learn(region[begin:end], context, hashed):
                return None
        else:
            return None
    return pages


def _sound(pages: k.PageArrays) -> bool:
    """Whether all vectors are in canonical form."""
    heads = pages.heads[: pages.state[0]["records"]]
    lengths = heads["length"]
    if not np.any(lengths >= 0):
        return True
    sums = totals(pages.packed, np.ascontiguousarray(heads["packed"]))
    return not np.any((lengths >= 0) & ((sums < 0) | (sums > lengths)))


def _described(pages: k.PageArrays) -> list[bytes] | None:
    """What the metadata of each record say, as JSON."""
    state = pages.state[0]
    heads, values = pages.heads[: state["records"]], pages.values[: state["values"]]
    folded = pages.folded[: state["folded"]]
    room = np.empty(folded.size, np.uint8)
    formed = room[: describe.gathered(values, folded, _FORMED, room)].tobytes().decode().split("\n")
    codes = values["code"]
    # Long values do not come back (`memo`).
    known = _known_form if max(map(len, formed)) <= SHORT else _form
    forms = map(known, codes[(_FORMED >> codes & 1) > 0].tolist(), formed)
    text = np.frombuffer(folded.tobytes() + "".join([f"{form}\n" for form in forms]).encode(), np.uint8)
    out, ends = (
        np.empty(2 * text.size + 24 * values.size + 2 * heads.size, np.uint8),
        np.empty(heads.size, np.int64),
    )
    if not describe.described(heads, values, text, folded.size, _FORMED, *_NAMES, out, ends):
        return None
    told, low = out[: ends[-1] if ends.size else 0].tobytes(), 0
    return [told[low : (low := high)] for high in ends.tolist()]


def _form(code: int, value: str) -> str:
    return FORMS[DUBLIN_CORE[code]](value)


_known_form = lru_cache(maxsize=1 << 15)(_form)


def _items(region: bytes, pages: k.PageArrays, described: list[bytes]) -> list[Item]:
    """The records of a page, each with what its metadata say."""
    state = pages.state[0]
    raw = pages.raw[: state["raw"]].tobytes()
    packed = pages.packed[: state["packed"]].tobytes()
    sets = [_spec(region[a:b]) for a, b in pages.sets[: state["sets"]].tolist()]
    abouts = [raw[a:b] for a, b in pages.abouts[: state["abouts"]].tolist()]
    view = memoryview(region)
    out: list[Item] = []
    before = _Head._make([0] * len(_Head._fields))
    for head, told in zip(map(_Head._make, pages.heads[: state["records"]].tolist()), described, strict=True):
        part = vector = None
        if head.raw >= 0:
            part = MetadataPart(raw[head.raw : head.raw_end], told)
        if head.length >= 0:
            language = region[head.language : head.language_end].decode()
            vector = TermVector(packed[before.packed : head.packed], head.length, None, language)
        out.append(
            Item(
                _said(region[head.identifier : head.identifier_end]),
                _said(region[head.datestamp : head.datestamp_end]) if head.datestamp else "",
                tuple(dict.fromkeys(filter(None, sets[before.sets : head.sets]))),
                head.deleted != 0,
                about=tuple(abouts[before.abouts : head.abouts]),
                part=part,
                vector=vector,
                source=view[head.begin : head.end],
            )
        )
        before = head
    return out


def _said(content: bytes) -> str:
    """What an element says that has no other element in it."""
    if b"&" in content or b"<" in content or b"\r" in content:
        return text_of(parsed(b"<x>%b</x>" % content))
    return content.decode().strip()


@remembered(4096)
def _spec(content: bytes) -> str:
    return "".join(_said(content).split())


@cache
def _classes() -> k.Bytes:
    """What `folded` makes of each character: 0 keeps it, 1 takes it for white space, 2 leaves it out."""
    points = [point for point in range(1 << 16) if not 0xD800 <= point < 0xE000]
    kept = set(folded("".join(map(chr, points))))
    out = np.zeros(1 << 16, np.uint8)
    for point in points:
        if chr(point) not in kept or point == 32:
            out[point] = 2 if folded(f"a{chr(point)}b") == "ab" else 1
    return out
