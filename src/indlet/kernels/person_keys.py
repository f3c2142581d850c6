"""The keys of the names of people that are written as most are.

For what is left out, and `marks`, see `keys`. `formats.people` is the plain twin.
"""

from __future__ import annotations

import numpy as np

from indlet.kernels.arrays import Bytes, Hashes, Int
from indlet.kernels.folding import LETTER, folding, put_folded
from indlet.kernels.identifier_keys import letter, lower, marked
from indlet.kernels.jit import kernel, part

# What stands in terms, by its place in `marks`; for the first two see `identifier_keys`.
OF_CREATOR, OF_CONTRIBUTOR, OF_TITLE = range(2, 5)
SHOWN_CREATOR, SHOWN_SUBJECT, BY_AUTHOR, BY_TITLE, SEPARATOR, SPACE = range(5, 11)
_NAME = 60  # the most bytes of a name
# What stands beside a name and is none.
_JR, _SR, _DR, _MD, _PH, _PHD, _PROF = (
    int.from_bytes(name, "little") for name in (b"jr", b"sr", b"dr", b"md", b"ph", b"phd", b"prof")
)


@part
def spelt(text: Bytes, low: Int, high: Int, marks: Bytes, small: bool, out: Bytes, to: Int) -> Int:
    """A value with single spaces, as they are in terms."""
    begin = to
    for i in range(low, high):
        if text[i] != 32:
            if i > low and text[i - 1] == 32 and to > begin:
                out[to] = marks[SPACE]
                to += 1
            out[to] = lower(text[i]) if small else text[i]
            to += 1
    return to


@part
def _apart(c: np.uint8) -> bool:
    """Whether a byte of a folded name separates words."""
    return not (letter(c) or c >= 128)


@kernel
def _filed(name: Bytes, high: Int, marks: Bytes, out: Bytes, to: Int) -> Int:
    """A folded name as a list files it: words of the family name, comma, given names."""
    first = True
    for i in range(high):
        c = name[i]
        if c == 44:
            out[to] = 44
            to += 1
        elif not _apart(c):
            if not first and _apart(name[i - 1]):
                out[to] = marks[SPACE]
                to += 1
            out[to] = c
            to += 1
            first = False
    return to


@kernel
def _folded(text: Bytes, low: Int, high: Int, folds: Hashes, out: Bytes) -> tuple[Int, Int]:
    """Writes a name of letters with one comma in small letters without accents; gives its size and where the
    comma is, which is -1 for any other name.
    """
    comma: Int = np.int64(-1)
    to: Int = np.int64(0)
    at = np.int64(low)
    while at < high:
        c, size = text[at], np.int64(1)
        if c == 44 and comma < 0:
            comma = to
        if c == 44 or c == 32 or c == 39 or c == 45 or c == 46:
            if c == 44 and comma < to:
                return to, np.int64(-1)
            out[to] = c
            to += 1
        else:
            made, size = folding(text, at, folds)
            if not made & np.uint64(LETTER):
                return to, np.int64(-1)
            to = put_folded(made, out, to)
        at += size
    return to, comma


@part
def _with_given(name: Bytes, given: Int, more: Int, begin: Int, out: Bytes, end: Int) -> Int:
    """Adds a given name to the family name from `begin` on, and then the same with the initial alone."""
    family = end - begin
    initial = np.int64(1)
    while initial < more and name[given + initial] & 0xC0 == 0x80:
        initial += 1
    out[end] = 47
    end += 1
    for k in range(more):
        out[end + k] = name[given + k]
    end += more
    if more == initial:
        out[end] = 46
        end += 1
    out[end] = 32
    end += 1
    same = 2 + family + 1 + initial
    for k in range(same):
        out[end + k] = out[begin - 2 + k]
    end += same
    out[end] = 42
    out[end + 1] = 32
    return end + 2


@kernel
def person(
    text: Bytes, low: Int, high: Int, contributor: bool, first: bool, folds: Hashes, marks: Bytes,
    name: Bytes, out: Bytes, to: Int,
) -> Int:  # fmt: skip
    """The keys of a name of letters: family name, comma, given names. `name` has room for it; by the `first`
    one a record is sorted.
    """
    if high - low > _NAME:
        return np.int64(-1)
    size, comma = _folded(text, low, high, folds, name)
    if comma < 0:
        return np.int64(-1)
    begin = marked(out, to, marks, OF_CONTRIBUTOR if contributor else OF_CREATOR)
    end, given, more = begin, np.int64(-1), np.int64(0)
    at = np.int64(0)
    while at < size:
        start = at
        value = np.uint64(0)
        while at < size and not _apart(name[at]):
            if at - start < 8:
                value |= np.uint64(name[at]) << np.uint64(8 * (at - start))
            at += 1
        if at == start:
            at += 1
            continue
        if np.int64(value) in (_JR, _SR, _DR, _MD, _PH, _PHD, _PROF):
            return np.int64(-1)
        if start < comma:
            for k in range(start, at):
                out[end] = name[k]
                end += 1
        elif given < 0:
            given, more = start, at - start
    if end == begin or given < 0:
        return np.int64(-1)
    end = _with_given(name, given, more, begin, out, end)
    if contributor:
        return end
    end = _filed(name, size, marks, out, marked(out, end, marks, SHOWN_CREATOR))
    out[end] = marks[SEPARATOR]
    end = spelt(text, low, high, marks, False, out, end + 1)
    out[end] = 32
    end += 1
    if first:
        end = _filed(name, size, marks, out, marked(out, end, marks, BY_AUTHOR))
        out[end] = 32
        end += 1
    return end
