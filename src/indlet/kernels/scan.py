"""The records of a well-formed page told apart, without an object in between.

Structure is the kernel's: it finds tags, text, references, comments and CDATA sections, and matches each end
tag with its start. What a start tag means is Python's: `service.records.tags` is asked once for each tag in
each context, and the answers stand in a table (`Tags`). Within a record's metadata the kernel writes them in
canonical form (`oai.read.canonical` is the plain twin), and what each Dublin Core element says with its white
space folded (`formats.dublin.folded` is the twin). tests/service/records/test_scan.py holds both equal.

Long because it is one grammar: records, text, references, tags and the vectors of our own formats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from indlet.kernels.codec import lowest_bit, word
from indlet.kernels.interpreted import Array
from indlet.kernels.jit import Intrinsic, Llvm, kernel, part

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Rows = Any  # a structured array, or a row of one: type checkers do not know its fields

# Why `walk` stops: after the last record; at what the tolerant reader has to see; at a tag that is not in the
# table; because there is no room for what it writes.
DONE, REFUSED, UNKNOWN, FULL = 0, 1, 2, 3
# What an element is.
IGNORED, REFUSE, LIST, RECORD, HEADER, GONE, IDENTIFIER, DATESTAMP, SET = range(9)
METADATA, PART, INSIDE, INDEX, ABOUT, ABOUT_PART, ABOUT_INSIDE = range(9, 16)
# Elements within elements.
DEPTH: Final = 100
PADDING: Final = 64

# A start tag within a context: its bytes (in `Tags.text`), its hash, the size of its name, what it is, the
# context of its children, its canonical form (in `Tags.text` too), its number in DUBLIN_CORE or -1, and the
# place of the tag that came after it last: mostly it comes again.
TAG: Final = np.dtype(
    [(name, np.int64) for name in (
        "context", "begin", "end", "hash", "name", "role", "inside", "canonical", "canonical_end", "code",
        "next",
    )]
)  # fmt: skip
# A record: where it stands, its header's fields (0: none), whether it is deleted, its canonical metadata,
# where its sets, its abouts, its values and its vector end, the length of its vector (-1: none) and its
# language, and whether an element with a value stands within another.
HEAD: Final = np.dtype(
    [(name, np.int64) for name in (
        "begin", "end", "headed", "identifier", "identifier_end", "datestamp", "datestamp_end", "deleted",
        "raw", "raw_end", "sets", "abouts", "values", "packed", "length", "language", "language_end",
        "nested",
    )]
)  # fmt: skip
# An element that is open: its tag, where its name stands, its place among the elements with a value (or -1),
# and where its content begins in the canonical form.
OPEN: Final = np.dtype([(name, np.int64) for name in ("tag", "name", "order", "content")])
# A value: the number of its element in DUBLIN_CORE, its place among the elements of the page, its end.
VALUE: Final = np.dtype([("code", np.int64), ("order", np.int64), ("end", np.int64)])
# A stretch of bytes.
SPAN: Final = np.dtype([("begin", np.int64), ("end", np.int64)])
# Where `walk` is, from call to call. `seed` is part of the hash of a tag: nobody outside knows it.
STATE: Final = np.dtype(
    [(name, np.int64) for name in (
        "at", "raw", "folded", "packed", "records", "sets", "abouts", "values", "elements", "depth",
        "copying", "seed", "context", "tag_begin", "tag_end", "tag_hash",
    )]
)  # fmt: skip
# Slots of the table of tags that are looked at for one tag. It is a quarter full at most: more of them means
# that tags were made to meet.
_PROBES: Final = 64


class Tags(NamedTuple):
    """Start tags with what they mean; `slots` finds them by their hash. Eight bytes follow `text`."""

    slots: Numbers
    rows: Rows
    text: Bytes


class PageArrays(NamedTuple):
    """The records of a page, and what is written of them. `text` ends in a less-than sign and zeros."""

    text: Bytes
    classes: Bytes
    state: Rows
    stack: Rows
    heads: Rows
    sets: Rows
    abouts: Rows
    values: Rows
    raw: Bytes
    folded: Bytes
    packed: Bytes


as_int: Callable[[Any], int] = cast("Any", np.int64)  # to type checkers, an int


def _bytes(text: str) -> Bytes:
    return np.frombuffer(text.encode(), np.uint8)


_COMMENT, _CDATA, _CDATA_END = _bytes("<!--"), _bytes("<![CDATA["), _bytes("]]>")
_AMP, _LT, _GT, _CR = _bytes("&amp;"), _bytes("&lt;"), _bytes("&gt;"), _bytes("&#xD;")
_QUOT, _APOS = _bytes("&quot;"), _bytes("&apos;")
_TERMS, _TERMS_END = _bytes('<terms xmlns="urn:indlet:tf:1.0" length="'), _bytes("</terms>")
_LANG = _bytes(' lang="')
_LINE, _LINE_END = _bytes('<t f="'), _bytes("</t>")
_TERM, _FREQ = _bytes('<term name="'), _bytes('" freq="')
# Eight bytes at a time: a byte in each place of a word.
_EACH = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
# Bytes of text that are not copied as they stand, or not at once.
_MARKS = np.array([(c < 32 and c not in (9, 10)) or c in b"<&>\xef" for c in range(256)], np.uint8)


def _put_word(typing_context: Llvm, array: Llvm, at: Llvm, value: Llvm) -> Llvm:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    def generate(context: Llvm, builder: Llvm, signature: Llvm, arguments: Llvm) -> Llvm:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        builder.store(arguments[2], pointer, align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), generate


def _put_word_checked(array: Bytes, at: int, value: np.uint64) -> None:
    if at < 0:
        raise IndexError("a place before an array")
    for i in range(8):
        array[at + i] = np.uint8(value >> np.uint64(8 * i) & np.uint64(255))


# put_word(array, at, value): writes eight bytes from `at` on; the inverse of `codec.word`.
put_word: Llvm = Intrinsic(_put_word, Array.put_word, _put_word_checked)


@part
def equal_to(value: np.uint64, byte: int) -> np.uint64:
    """Whether bytes of a word equal one: the lowest high bit that is set is that of the first which does."""
    other = value ^ _EACH * np.uint64(byte)
    return (other - _EACH) & ~other & _HIGH


@part
def _below(value: np.uint64, byte: int) -> np.uint64:
    """The same for bytes below one, which is at most 128."""
    return (value - _EACH * np.uint64(byte)) & ~value & _HIGH


@part
def copy_words(text: Bytes, low: int, high: int, out: Bytes, to: int) -> int:
    """Copies, and up to seven bytes more, which the next ones replace; gives where the copy ends."""
    end = to + high - low
    while to < end:
        put_word(out, to, word(text, low))
        low += 8
        to += 8
    return end


@part
def _same(text: Bytes, at: int, other: Bytes, low: int, size: int) -> bool:
    while size >= 8:
        if word(text, at) != word(other, low):
            return False
        at += 8
        low += 8
        size -= 8
    return size == 0 or (word(text, at) ^ word(other, low)) << np.uint64(64 - 8 * size) == np.uint64(0)


@kernel
def starts(text: Bytes, at: int, literal: Bytes) -> bool:
    for i in range(literal.size):  # noqa: SIM110 - a kernel has no generators
        if text[at + i] != literal[i]:
            return False
    return True


@kernel
def write(out: Bytes, to: int, literal: Bytes) -> int:
    for byte in literal:
        out[to] = byte
        to += 1
    return to


@kernel
def _reference(text: Bytes, at: int) -> tuple[int, int]:
    """The character that a reference stands for, and its size; 0 if it is none that XML knows by itself."""
    if text[at + 1] != 35:
        if starts(text, at, _AMP):
            return 38, 5
        if starts(text, at, _LT):
            return 60, 4
        if starts(text, at, _GT):
            return 62, 4
        if starts(text, at, _QUOT):
            return 34, 6
        if starts(text, at, _APOS):
            return 39, 6
        return 0, 0
    point, i = 0, at + 2
    base = 16 if text[i] == 120 else 10
    if base == 16:
        i += 1
    first = i
    while text[i] != 59:
        c = as_int(text[i])
        digit = c - 48 if c >= 48 and c <= 57 else (c | 32) - 87 if (c | 32) >= 97 and (c | 32) <= 102 else 99
        if digit >= base or i - first > 8:
            return 0, 0
        point = point * base + digit
        i += 1
    good = point in (9, 10, 13) or (point >= 32 and point < 0xD800) or (point >= 0xE000 and point < 0xFFFE)
    if i == first or not (good or (point >= 0x10000 and point < 0x110000)):
        return 0, 0
    return point, i + 1 - at


@kernel
def _put(out: Bytes, to: int, point: int) -> int:
    """Writes a character as the canonical form has it."""
    if point == 38:
        return write(out, to, _AMP)
    if point == 60:
        return write(out, to, _LT)
    if point == 62:
        return write(out, to, _GT)
    if point == 13:
        return write(out, to, _CR)
    if point < 0x80:
        out[to] = point
        return to + 1
    if point < 0x800:
        out[to] = 0xC0 | point >> 6
        out[to + 1] = 0x80 | point & 63
        return to + 2
    if point < 0x10000:
        out[to] = 0xE0 | point >> 12
        out[to + 1] = 0x80 | point >> 6 & 63
        out[to + 2] = 0x80 | point & 63
        return to + 3
    out[to] = 0xF0 | point >> 18
    out[to + 1] = 0x80 | point >> 12 & 63
    out[to + 2] = 0x80 | point >> 6 & 63
    out[to + 3] = 0x80 | point & 63
    return to + 4


@kernel
def _character(text: Bytes, at: int, copying: bool, out: Bytes, to: int) -> tuple[int, int]:
    """Copies one of the characters of `_MARKS` that stands for itself; -1 for one that XML does not have."""
    c = text[at]
    if c == 13:  # a line ends with a line feed alone
        c = np.uint8(10)
        if text[at + 1] == 10:
            at += 1
    elif c < 32 or (c == 0xEF and text[at + 1] == 0xBF and text[at + 2] >= 0xBE):
        return -1, to
    if copying:
        if c == 0xEF:
            out[to] = c
            to += 1
        else:
            to = _put(out, to, as_int(c))
    return at + 1, to


@part
def _unmarked(eight: np.uint64) -> int:
    """How many of eight bytes stand before the first one of `_MARKS`, tab or line feed."""
    found = equal_to(eight | _EACH * np.uint64(2), 62)  # < or >
    found |= equal_to(eight, 38) | equal_to(eight, 0xEF) | _below(eight, 32)
    return as_int(lowest_bit(found)) >> 3 if found else 8


@kernel
def _text(text: Bytes, at: int, copying: bool, out: Bytes, to: int) -> tuple[int, int]:
    """Copies text in canonical form up to the next tag, without comments; -1 for what is not well-formed."""
    low = at
    while True:
        eight = word(text, at)
        plain = _unmarked(eight)
        if copying:
            put_word(out, to, eight)
            to += plain
        at += plain
        if plain == 8:
            continue
        c = text[at]
        if _MARKS[c] == 0:
            if copying:
                out[to] = c
                to += 1
            at += 1
        elif c == 38:
            point, size = _reference(text, at)
            if size == 0:
                return -1, to
            if copying:
                to = _put(out, to, point)
            at += size
        elif c == 60:
            if text[at + 1] != 33:
                return at, to
            if starts(text, at, _COMMENT):
                at += 4
                while text[at] != 45 or text[at + 1] != 45:
                    at, _ = _character(text, at, False, out, to) if _MARKS[text[at]] != 0 else (at + 1, to)
                    if at < 0:
                        return -1, to
                if text[at + 2] != 62:
                    return -1, to
                at += 3
            elif starts(text, at, _CDATA):
                at += _CDATA.size
                while not starts(text, at, _CDATA_END):
                    if _MARKS[text[at]] != 0:
                        at, to = _character(text, at, copying, out, to)
                        if at < 0:
                            return -1, to
                    else:
                        if copying:
                            out[to] = text[at]
                            to += 1
                        at += 1
                at += _CDATA_END.size
            else:
                return -1, to
            low = at
        else:
            if c == 62 and at - low > 1 and text[at - 1] == 93 and text[at - 2] == 93:
                return -1, to
            at, to = _character(text, at, copying, out, to)
            if at < 0:
                return -1, to


@kernel
def _fold(raw: Bytes, low: int, high: int, classes: Bytes, out: Bytes, to: int) -> int:
    """Writes what an element says, from its canonical content: without mark-up and characters of class 2,
    with white space (class 1) folded. A line feed ends it.
    """
    begin = to
    while low < high:
        # What needs no look: letters and the like, and single spaces between them.
        eight = word(raw, low)
        spaces = eight ^ _EACH * np.uint64(32)
        spaces = ~(((spaces & ~_HIGH) + ~_HIGH) | spaces | ~_HIGH)
        before = np.uint64(128) if to == begin or out[to - 1] == 32 else np.uint64(0)
        found = spaces & (spaces << np.uint64(8) | before)
        found |= equal_to(eight, 60) | equal_to(eight, 38) | equal_to(eight, 127)
        found |= _below(eight, 32) | (eight & _HIGH)
        plain = min(as_int(lowest_bit(found)) >> 3 if found else 8, high - low)
        put_word(out, to, eight)
        to += plain
        low += plain
        while low < high:
            c = as_int(raw[low])
            if c > 32 and c < 127 and c != 60 and c != 38:
                break
            if c == 60:
                quoted = False
                while raw[low] != 62 or quoted:
                    quoted ^= raw[low] == 34
                    low += 1
                low += 1
                continue
            point, size = _point(raw, low)
            kind = classes[point] if point < classes.size else 0
            if kind == 1:
                if to > begin and out[to - 1] != 32:
                    out[to] = 32
                    to += 1
            elif kind == 0 and c == 38:
                out[to] = point
                to += 1
            elif kind == 0:
                for i in range(size):
                    out[to + i] = raw[low + i]
                to += size
            low += size
    if to > begin and out[to - 1] == 32:
        to -= 1
    out[to] = 10
    return to + 1


@kernel
def _point(raw: Bytes, low: int) -> tuple[int, int]:
    """The character at a place of the canonical form, and its size there."""
    c = as_int(raw[low])
    if c == 38:
        if raw[low + 1] == 97:
            return 38, 5
        if raw[low + 1] == 35:
            return 13, 5
        return 60 if raw[low + 1] == 108 else 62, 4
    if c < 0x80:
        return c, 1
    if c < 0xE0:
        return (c & 31) << 6 | (as_int(raw[low + 1]) & 63), 2
    if c < 0xF0:
        return (c & 15) << 12 | (as_int(raw[low + 1]) & 63) << 6 | (as_int(raw[low + 2]) & 63), 3
    return 0x10000, 4  # or beyond: like any letter


@kernel
def tag_hash(text: Bytes, low: int, high: int, context: int, seed: int) -> int:
    value = (np.uint64(14695981039346656037) ^ np.uint64(seed)) + np.uint64(context)
    while low < high:
        eight = word(text, low)
        if high - low < 8:
            eight &= (np.uint64(1) << np.uint64(8 * (high - low))) - np.uint64(1)
        value = (value ^ eight) * np.uint64(0xD6E8FEB86659FD93)
        value ^= value >> np.uint64(32)
        low += 8
    return as_int(value >> np.uint64(1))


@kernel
def _find(tags: Tags, text: Bytes, low: int, high: int, context: int, hashed: int) -> int:
    """The place of a tag in the table, -1 if it is not in there, -2 if that takes too many probes."""
    mask = tags.slots.size - 1
    slot = hashed & mask
    for _ in range(_PROBES):
        if tags.slots[slot] == 0:
            return -1
        place = as_int(tags.slots[slot] - 1)
        row = tags.rows[place]
        alike = row.hash == hashed and row.context == context and row.end - row.begin == high - low
        if alike and _same(text, low, tags.text, row.begin, high - low):
            return place
        slot = (slot + 1) & mask
    return -2


@kernel
def _guessed(tags: Tags, text: Bytes, low: int, context: int, previous: int) -> int:
    """The place of a tag that came after the one before it last time, or is that one again; -1 otherwise."""
    for place in (tags.rows[previous].next, previous):
        row = tags.rows[place]
        size = row.end - row.begin
        if size > 0 and row.context == context and _same(text, low, tags.text, row.begin, size):
            after = text[low + size]
            if after == 62 or (after == 47 and text[low + size + 1] == 62):
                return place
    return -1


@kernel
def _tag_end(text: Bytes, at: int) -> int:
    """Where a start tag ends; -1 if it does not."""
    while text[at] != 62:
        c = text[at]
        if c == 34 or c == 39:
            at += 1
            while text[at] != c:
                if text[at] == 0:
                    return -1
                at += 1
        elif c == 0 or c == 60:
            return -1
        at += 1
    return at


@kernel
def _opened(role: int, head: Rows, content: int, to: int) -> bool:
    """Notes what begins; False for what a record has once only and has again."""
    if role in (HEADER, GONE):
        if head.headed:
            return False
        head.headed = 1
        head.deleted = role == GONE
    elif role == IDENTIFIER:
        if head.identifier:
            return False
        head.identifier = content
    elif role == DATESTAMP:
        if head.datestamp:
            return False
        head.datestamp = content
    elif role == PART:
        if head.raw >= 0:
            return False
        head.raw = to
    return True


@kernel
def walk(tags: Tags, page: PageArrays) -> int:
    """Reads records on from where it stopped; says why it stops.

    Long because its state is these numbers, and parts of the loop would hand all of them around.
    There is room in `page.raw` for all that is left of the text, at five bytes for one (an ampersand in a
    CDATA section), and in the tables for all that can be in it.
    """
    text, raw, s, stack, heads = page.text, page.raw, page.state[0], page.stack, page.heads
    at, to = s.at, s.raw
    last = text.size - PADDING
    previous = 0  # the place of the start tag before
    while True:
        at, to = _text(text, at, s.copying > 0, raw, to)
        if at < 0:
            return REFUSED
        depth = s.depth
        if at >= last:
            s.at, s.raw = at, to
            return DONE if depth == 0 and at == last else REFUSED
        head = heads[s.records]
        if text[at + 1] != 47:
            context = tags.rows[stack[depth].tag].inside if depth > 0 else 0
            place = _guessed(tags, text, at + 1, context, previous)
            if place >= 0:
                tag = tags.rows[place]
                end = at + 1 + tag.end - tag.begin
                closed = text[end] == 47
                high = end + 1 if closed else end
            else:
                high = _tag_end(text, at + 1)
                if high < 0:
                    return REFUSED
                closed = text[high - 1] == 47
                end = high - 1 if closed else high
                hashed = tag_hash(text, at + 1, end, context, s.seed)
                place = _find(tags, text, at + 1, end, context, hashed)
                if place < -1:
                    return REFUSED
                if place < 0:
                    s.at, s.raw = at, to
                    s.context, s.tag_begin, s.tag_end, s.tag_hash = context, at + 1, end, hashed
                    return UNKNOWN
                tag = tags.rows[place]
            if depth == DEPTH:
                return REFUSED
            s.at, s.raw = at, to
            if raw.size - to - (tag.canonical_end - tag.canonical) - tag.name - 4 < 5 * (last - at):
                return FULL
            role = tag.role
            if role == REFUSE:
                return REFUSED
            tags.rows[previous].next = place
            previous = place
            if role == RECORD:
                head.begin = at
                head.headed = head.identifier = head.datestamp = head.deleted = head.nested = 0
                head.raw = head.raw_end = head.length = -1
            depth += 1
            s.depth = depth
            opened = stack[depth]
            opened.tag, opened.name, opened.order = place, at + 1, -1
            if role in (PART, ABOUT_PART):
                s.copying = depth
                if role == ABOUT_PART:
                    page.abouts[s.abouts].begin = to
            if not _opened(role, head, high + 1, to):
                return REFUSED
            if s.copying > 0:
                to = copy_words(tags.text, tag.canonical, tag.canonical_end, raw, to)
                if tag.code >= 0:
                    opened.order, opened.content = s.elements, to
                    s.elements += 1
            elif role == SET:
                page.sets[s.sets].begin = high + 1
            at = high + 1
            if role == INDEX:
                if closed or head.length >= 0 or not starts(text, at, _TERMS):
                    return REFUSED
                at, s.packed = _vector(text, at, page.packed, s.packed, head)
                if at < 0:
                    return REFUSED
            if not closed:
                continue
            finish = at
        else:
            finish = at
            if depth == 0:
                return REFUSED
            low, size = stack[depth].name, tags.rows[stack[depth].tag].name
            at += 2
            if not _same(text, at, text, low, size):
                return REFUSED
            at += size
            while text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9:
                at += 1
            if text[at] != 62:
                return REFUSED
            at += 1
        # The element that is open ends.
        opened = stack[depth]
        tag = tags.rows[opened.tag]
        role = tag.role
        if s.copying > 0:
            if opened.order >= 0:
                if page.folded.size - s.folded < to - opened.content + 9:
                    return REFUSED  # values within values within values
                before = s.folded
                s.folded = _fold(raw, opened.content, to, page.classes, page.folded, before)
                if s.folded > before + 1:
                    value = page.values[s.values]
                    value.code, value.order, value.end = tag.code, opened.order, s.folded
                    if opened.order != s.elements - 1:
                        head.nested = 1
                    s.values += 1
                else:
                    s.folded = before
            raw[to], raw[to + 1] = 60, 47
            to += 2
            to = copy_words(text, opened.name, opened.name + tag.name, raw, to)
            raw[to] = 62
            to += 1
            if s.copying == depth:
                s.copying = 0
                if role == PART:
                    head.raw_end = to
                else:
                    page.abouts[s.abouts].end = to
                    s.abouts += 1
        elif role == IDENTIFIER:
            head.identifier_end = finish
        elif role == DATESTAMP:
            head.datestamp_end = finish
        elif role == SET:
            page.sets[s.sets].end = finish
            s.sets += 1
        elif role == METADATA:
            if head.raw < 0:
                return REFUSED
        elif role == RECORD:
            if not head.headed or head.identifier == 0:
                return REFUSED
            head.end = at
            head.sets, head.abouts, head.values, head.packed = s.sets, s.abouts, s.values, s.packed
            s.records += 1
        s.depth = depth - 1


@kernel
def _number(text: Bytes, at: int, most: int) -> tuple[int, int]:
    """The number at a place, and where it ends."""
    low, value = at, as_int(0)
    while text[at] >= 48 and text[at] <= 57 and at - low < most:
        value = 10 * value + text[at] - 48
        at += 1
    return value, at


@kernel
def _vector(text: Bytes, at: int, out: Bytes, to: int, head: Rows) -> tuple[int, int]:
    """Reads an index part from `at` on, and writes its packed vector; gives where both end, or -1."""
    low = at + _TERMS.size
    head.length, at = _number(text, low, 9)
    if at == low or text[at] != 34:
        return -1, to
    at += 1
    head.language = head.language_end = at
    if starts(text, at, _LANG):
        at += _LANG.size
        head.language = at
        while (text[at] >= 97 and text[at] <= 122) or text[at] == 45:
            at += 1
        head.language_end = at
        if text[at] != 34:
            return -1, to
        at += 1
    if text[at] != 62:
        return -1, to
    at += 1
    begin = to
    while starts(text, at, _LINE):
        at, to = _line(text, at + _LINE.size, out, to, begin)
        if at < 0:
            return -1, to
    line = as_int(-1)
    while starts(text, at, _TERM):
        low = at + _TERM.size
        at = low
        while text[at] != 34:
            c = text[at]
            if c <= 32 or c == 60 or c == 62 or c == 38 or c == 127:
                return -1, to
            at += 1
        high = at
        if high == low or not starts(text, at, _FREQ):
            return -1, to
        digits = at + _FREQ.size
        frequency, at = _number(text, digits, 10)
        if at == digits or text[at] != 34 or text[at + 1] != 47 or text[at + 2] != 62:
            return -1, to
        if frequency != line:
            if to > begin:
                out[to] = 10
                to += 1
            for i in range(digits, at):
                out[to] = text[i]
                to += 1
            line = frequency
        out[to] = 32
        to += 1
        for i in range(low, high):
            out[to] = text[i]
            to += 1
        at += 3
    if not starts(text, at, _TERMS_END):
        return -1, to
    return at + _TERMS_END.size, to


@kernel
def _line(text: Bytes, at: int, out: Bytes, to: int, begin: int) -> tuple[int, int]:
    """One frequency of `tf_compact` with its terms."""
    if to > begin:
        out[to] = 10
        to += 1
    while text[at] >= 48 and text[at] <= 57:
        out[to] = text[at]
        to += 1
        at += 1
    if text[at] != 34 or text[at + 1] != 62:
        return -1, to
    at += 2
    out[to] = 32
    to += 1
    while text[at] != 60:
        c, step = as_int(text[at]), 1
        if c == 38:
            c, step = _reference(text, at)
            if step == 0 or c > 127:
                return -1, to
        if c < 32 or (step == 1 and (c == 62 or c == 127)):
            return -1, to
        out[to] = c
        to += 1
        at += step
    if not starts(text, at, _LINE_END):
        return -1, to
    return at + _LINE_END.size, to
