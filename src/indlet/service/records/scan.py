"""A page of records read by a kernel, at a fraction of the usual cost.

Every byte is accounted for: a page that is not well-formed XML is repaired first, as `oai.read` would repair
it; where that is not enough, `scan` gives None, and `oai.read` reads the page. What a record says then is the
same either way, down to its bytes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import repeat
from typing import Final

import numpy as np
from numpy.typing import DTypeLike

from indlet.errors import BadResponse
from indlet.formats.dublin import PDF_MARKS, folded
from indlet.kernels import describe, identify
from indlet.kernels import scan as k
from indlet.kernels.utf8 import is_utf8
from indlet.kernels.vector_check import totals
from indlet.limits import EXPANSION, Budget
from indlet.memo import SHORT, remembered
from indlet.model import DUBLIN_CORE, TermVector
from indlet.oai import markup
from indlet.oai.read import Item, MetadataPart, Page, local_name, parsed, read, text_of
from indlet.oai.read_repair import decoded, repaired
from indlet.service.records.normalise import FORMS, is_media_type
from indlet.service.records.tags import TagTable

_DOCTYPE = re.compile(rb"<!doctype", re.IGNORECASE)
_RECORD = re.compile(rb"<((?:[\w.-]+:)?record)[\s>]", re.IGNORECASE)
_PADDING: Final = b"<" + bytes(k.PADDING - 1)
# Tags of one page that are new to the table: with more of them, the tolerant reader is no slower.
_NEW: Final = 2000
# Bytes of an array that is kept for the next page, and setSpecs that are.
_KEPT: Final = 1 << 26
_SPECS: Final = 4096
# How titles of PDF files begin that are copied as they stand (`dublin.pdf_text`): seldom enough for the other
# reader.
_ENCODED_TWICE: Final = np.frombuffer("".join(f"{mark}\n" for mark in PDF_MARKS).encode(), np.uint8)
# Elements whose values have forms, and those of these values that are their own; how elements begin in JSON.
_OWN_FORMS: Final = {"date": describe.DATES, "format": describe.NO_NUMBERS}
_KINDS: Final = np.array(
    [_OWN_FORMS.get(e, describe.ASKED if e in FORMS else describe.NOT_ASKED) for e in DUBLIN_CORE], np.uint8
)
_OPENINGS: Final = [f'"{element}":['.encode() for element in DUBLIN_CORE]
_NAMES: Final = (
    np.frombuffer(b"".join(_OPENINGS) + bytes(8), np.uint8),
    np.cumsum([len(name) for name in _OPENINGS]),
)
# What is wanted of a record beside its header (`kernels.scan.HEAD`).
_COLUMNS: Final = (
    "begin", "end", "deleted", "raw", "raw_end", "sets", "abouts", "packed", "length", "language",
    "language_end",
)  # fmt: skip
_FORMAT: Final = DUBLIN_CORE.index("format")
_FORMAT_AND_IDENTIFIER: Final = _FORMAT, DUBLIN_CORE.index("identifier")


class _Known(threading.local):
    """What a thread keeps from page to page: the tags that it has met, setSpecs, and memory."""

    def __init__(self) -> None:
        self.table = TagTable()
        self.specs: dict[bytes, tuple[str, ...]] = {}
        self._arrays: dict[str, k.Rows] = {}

    def array(self, name: str, size: int, kind: DTypeLike) -> k.Rows:
        """Room for so many, of which nothing is known. To get memory from the system for each page, and to
        give it back, takes longer than what is done with most of it."""
        found = self._arrays.get(name)
        if found is None or found.size < size:
            found = np.empty(size + size // 4, kind)
            if found.nbytes <= _KEPT:
                self._arrays[name] = found
        return found[:size]


_known = _Known()


def scan(body: bytes, charset: str = "") -> Page | None:
    """The page, or None for one that the tolerant reader must look at.

    Records that are not well-formed are repaired as that reader would: then most pages need nothing else of
    it. What is around them must be sound.
    """
    budget = Budget(len(body))
    body, repairs = decoded(body, charset, _is_utf8)
    begin, end = _region(body)
    if not end:
        return None
    try:
        page = _scanned(body, begin, end, budget)
    except MemoryError:  # the room for all that may be in a very large page; the other reader needs less
        return None
    if page is None and _DOCTYPE.search(body) is None and _is_sound(body[:begin] + body[end:]):
        if body.count(b"<") > markup.TAGS or parsed(body) is not None:
            return None
        try:
            body, more = repaired(body, foreign_entities=True)
        except BadResponse:
            return None
        page, repairs = _scanned(body, *_region(body), budget), repairs + more
    if page is not None:
        page.repairs = repairs
    return page


def _is_utf8(body: bytes) -> bool:
    return is_utf8(np.frombuffer(body, np.uint8))


def _is_sound(around: bytes) -> bool:
    """Whether what is around the records needs no repair."""
    try:
        return parsed(around) is not None and not read(around).repairs
    except BadResponse:
        return False


def _region(body: bytes) -> tuple[int, int]:
    """Where the first record begins, and where the last one ends: 0 if that cannot be told."""
    first = _RECORD.search(body)
    last = body.rfind(b"</" + first[1]) if first else -1
    if first is None or last < first.start():
        return 0, 0
    return first.start(), body.find(b">", last) + 1


def _scanned(body: bytes, begin: int, end: int, budget: Budget) -> Page | None:
    # What is around the records is soon read in the usual way.
    try:
        page = read(body[:begin] + body[end:])
    except BadResponse:
        return None
    root, page.root, page.budget = page.root, None, budget
    if page.verb != "ListRecords" or page.items or page.problems or page.errors or page.repairs:
        return None
    if root is None or root.get("version") == "1":
        return None
    (listed,) = (node for node in root if local_name(node).lower() == "listrecords")
    region = b"".join((memoryview(body)[begin:end], _PADDING))
    pages = _walked(region, listed.nsmap)
    if pages is None or not _sound(pages):
        return None
    told = _told(pages)
    if told is None:
        return None
    state = pages.state[0]
    if not budget.try_charge(int(state["raw"] + state["packed"])):
        return None
    page.items = _items(region, pages, told, budget)
    return None if any(not item.identifier for item in page.items) else page


def _walked(region: bytes, declared: dict[str | None, str]) -> k.PageArrays | None:
    """What the kernel makes of records (and a padding), while Python tells it what new tags mean."""
    table = _known.table
    table.begin(declared)
    size = len(region) - k.PADDING
    # No record, set, about part or element with a value is shorter than these. What is not used of the room
    # costs nothing.
    room = _known.array
    pages = k.PageArrays(
        np.frombuffer(region, np.uint8), _classes(), np.zeros(1, k.STATE), room("stack", k.DEPTH + 1, k.OPEN),
        room("heads", size // len("<record><header><identifier/>") + 1, k.HEAD),
        room("sets", size // len("<setSpec/>") + 1, k.SPAN), room("abouts", size // len("<a/>") + 1, k.SPAN),
        room("values", size // len("<a>b</a>") + 1, k.VALUE), room("raw", 5 * size + k.PADDING, np.uint8),
        room("folded", 2 * size + k.PADDING, np.uint8), room("packed", size, np.uint8),
    )  # fmt: skip
    pages.state["seed"] = table.seed
    new = 0
    while (why := k.walk(table.tags, pages)) != k.DONE:
        if why == k.FULL and pages.raw.size < EXPANSION * size:
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


def _told(pages: k.PageArrays) -> Iterator[tuple[bytes, bytes, int]] | None:
    """What each record's metadata say, its properties (empty where Python must look for them), and the number
    of its resource.
    """
    state, room = pages.state[0], _known.array
    heads, values = pages.heads[: state["records"]], pages.values[: state["values"]]
    begin, text = int(state["folded"]), pages.folded
    lows, highs, lines = (room(name, values.size, np.int64) for name in ("lows", "highs", "lines"))
    asked = room("asked", begin + values.size + 8, np.uint8)
    size = describe.gathered(values, text, _KINDS, lows, highs, lines, asked)
    new = asked[:size].tobytes().decode().split("\n")[:-1]
    formed = [_form(value) for value in new]
    forms = "".join([f"{form}\n" for form in formed]).encode()
    end = begin + len(forms)
    if text.size < end + k.PADDING:
        text = np.concatenate((text[:begin], np.empty(len(forms) + k.PADDING, np.uint8)))
    text[begin:end] = np.frombuffer(forms, np.uint8)
    ends, resources = (room(name, heads.size, np.int64) for name in ("ends", "resources"))
    described = _written(
        "out", pages.text.size, ends,
        lambda out: describe.described(
            heads, values, text, begin, lows, highs, lines, _ENCODED_TWICE, *_NAMES, out, ends
        ),
    )  # fmt: skip
    if described is None:
        return None
    media = [
        ord(value[0]) - ord("A") == _FORMAT and is_media_type(form)
        for value, form in zip(new, formed, strict=True)
    ]
    properties = _written(
        "properties", pages.text.size, ends,
        lambda out: identify.identified(
            pages.text, heads, values, text, lows, highs, lines, np.array([*media, False], np.uint8),
            _FORMAT_AND_IDENTIFIER, out, ends, resources,
        ),
    )  # fmt: skip
    if properties is None:
        return None
    return zip(described, properties, resources.tolist(), strict=True)


def _written(name: str, size: int, ends: k.Numbers, write: Callable[[k.Bytes], int]) -> list[bytes] | None:
    """What a kernel writes for each record of a page of so many bytes, into an array that is made larger
    while it is too small; None where the kernel refuses, or would write too much.
    """
    room, most = size, EXPANSION * size
    while (why := write(out := _known.array(name, room, np.uint8))) == k.FULL and room < most:
        room *= 2
    return _cut(out, ends) if why == k.DONE else None


def _cut(text: k.Bytes, ends: k.Numbers) -> list[bytes]:
    """What stands up to each end, from the one before it."""
    last = ends.tolist()
    whole, low = text[: last[-1] if last else 0].tobytes(), 0
    return [whole[low : (low := high)] for high in last]


@remembered(1 << 15)
def _form(value: str) -> str:
    """What becomes of a value after the letter of its element (`describe.gathered`)."""
    return FORMS[DUBLIN_CORE[ord(value[0]) - ord("A")]](value[1:])


def _items(
    region: bytes, pages: k.PageArrays, told: Iterator[tuple[bytes, bytes, int]], budget: Budget
) -> list[Item]:
    """The records of a page, each with what its metadata say: column by column, and tuples made of these,
    which takes a fraction of what a call for each record takes.
    """
    state, made = pages.state[0], tuple.__new__
    heads = pages.heads[: state["records"]]
    raw = pages.raw[: state["raw"]].tobytes()
    column = {name: heads[name].tolist() for name in _COLUMNS}
    parts = [
        made(MetadataPart, (part, *about)) if part else None
        for part, about in zip(_slices(raw, column["raw"], column["raw_end"]), told, strict=True)
    ]
    abouts: Iterable[tuple[bytes, ...]] = repeat(())
    if state["abouts"]:
        spans = pages.abouts[: state["abouts"]]
        each, low = _slices(raw, spans["begin"].tolist(), spans["end"].tolist()), 0
        abouts = [tuple(each[low : (low := high)]) for high in column["abouts"]]
    vectors: Iterable[TermVector | None] = repeat(None)
    if max(column["length"], default=-1) >= 0:
        vectors = _vectors(region, pages.packed[: state["packed"]].tobytes(), column)
    rows = zip(
        _headers(region, heads, "identifier"), _headers(region, heads, "datestamp"),
        _sets(region, pages.sets[: state["sets"]], column["sets"]), map(bool, column["deleted"]),
        repeat(None), repeat(None), abouts, repeat(None), parts, vectors,
        zip(repeat(region), column["begin"], column["end"]), repeat(budget), repeat(""),
    )  # fmt: skip
    return [made(Item, row) for row in rows]


def _slices(text: bytes, begins: list[int], ends: list[int]) -> list[bytes]:
    return [text[a:b] for a, b in zip(begins, ends, strict=True)]


def _vectors(region: bytes, packed: bytes, column: dict[str, list[int]]) -> Iterator[TermVector | None]:
    low = 0
    for high, length, language, language_end in zip(
        *(column[name] for name in ("packed", "length", "language", "language_end")), strict=True
    ):
        yield (
            TermVector(packed[low:high], length, None, region[language:language_end].decode())
            if length >= 0
            else None
        )
        low = high


def _sets(region: bytes, spans: k.Rows, last: list[int]) -> list[tuple[str, ...]]:
    """The sets of each record, those of the first `last[0]` spans for the first.

    Looked up by all that stands from the first to the end of the last: it has no other meaning elsewhere.
    """
    begins, ends, known = spans["begin"].tolist(), spans["end"].tolist(), _known.specs
    out, low = list[tuple[str, ...]](), 0
    for high in last:
        if high == low:
            out.append(())
            continue
        content = region[begins[low] : ends[high - 1]]
        found = known.get(content)
        if found is None:
            each = [_spec(part) for part in _slices(region, begins[low:high], ends[low:high])]
            found = tuple(dict.fromkeys(filter(None, each)))
            if len(known) >= _SPECS:
                known.clear()
            if len(content) <= SHORT:
                known[content] = found
        out.append(found)
        low = high
    return out


def _headers(region: bytes, heads: k.Rows, name: str) -> list[str]:
    """What one element of each header says; empty where there is none."""
    begins, ends = heads[name].tolist(), heads[f"{name}_end"].tolist()
    contents = [region[a:b] if a else b"" for a, b in zip(begins, ends, strict=True)]
    whole = b"\n".join(contents)
    if b"&" in whole or b"<" in whole or b"\r" in whole or whole.count(b"\n") >= len(contents):
        return [_said(content) for content in contents]
    return [value.strip() for value in whole.decode().split("\n")]


def _said(content: bytes) -> str:
    """What an element says that has no other element in it."""
    if b"&" in content or b"<" in content or b"\r" in content:
        return text_of(parsed(b"<x>%b</x>" % content))
    return content.decode().strip()


def _spec(content: bytes) -> str:
    return "".join(_said(content).split())


@cache
def _classes() -> k.Bytes:
    """What `folded` makes of each character: 0 keeps it, 1 takes it for white space, 2 leaves it out."""
    out = np.zeros(1 << 16, np.uint8)
    out[:0xD800] = out[0xE000:] = 1  # what is a character
    everything = np.flatnonzero(out).astype("<u4").tobytes().decode("utf-32-le")
    out[np.frombuffer(folded(everything).encode("utf-32-le"), "<u4")] = 0
    out[32] = 1
    for point in np.flatnonzero(out).tolist():
        out[point] = 2 if folded(f"a{chr(point)}b") == "ab" else 1
    return out
