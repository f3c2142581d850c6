"""The keys of values that are written as most are: `service.index.keys` is the plain twin, and has the rest.

Values stand in a text as JSON writes them. A function here writes terms, each with a space after it, into
`out` from `to` on, and gives the new end, or -1 for a value that is left to the plain way: beyond ASCII,
escaped, long, or of an unusual form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indlet.kernels.arrays import Bytes, Hashes, Int, Numbers
from indlet.kernels.blake2b import digest
from indlet.kernels.codec import word
from indlet.kernels.identifier_keys import hexed, identifier, letter, lower, marked
from indlet.kernels.jit import kernel, part
from indlet.kernels.term_hash import spelling


class KnownKeys(NamedTuple):
    """The keys of values that the plain way was asked for: a table by the hashes of values (0: none there).

    A row has a value's number (see `write`), where in `text` it stands, its size, and the size of its keys,
    which follow it. `used` counts the values and the bytes of the text, and has the seed of hashes.
    """

    hashes: Hashes
    rows: Numbers
    text: Bytes
    used: Numbers


# What is made of a value: nothing here, or keys of these kinds.
ASK, IDENTIFIER, CREATOR, FIRST_CREATOR, CONTRIBUTOR, SUBJECT, TITLE, FIRST_TITLE = range(8)
# What stands in terms, by its place in `marks`; for the first two see `identifier_keys`.
OF_CREATOR, OF_CONTRIBUTOR, OF_TITLE = range(2, 5)
SHOWN_CREATOR, SHOWN_SUBJECT, BY_AUTHOR, BY_TITLE, SEPARATOR, SPACE = range(5, 11)
# Bytes of keys for each byte of values, for each value and name in a list beside that, and after the last:
# never more.
EACH, BESIDE, AFTER = 6, 48, 2048

# The most bytes of a name, a subject, a title; the words of a title, its bytes in an order; names in a value.
_NAME, _SUBJECT, _LONGEST = 60, 100, 1000
_WORDS, _ORDER, _NAMES = 60, 120, 200


# What stands beside a name and is none.
_JR, _SR, _DR, _MD, _PH, _PHD, _PROF = (
    int.from_bytes(name, "little") for name in (b"jr", b"sr", b"dr", b"md", b"ph", b"phd", b"prof")
)

TITLE_DIGEST = 6  # bytes
SCRATCH = 2 * _LONGEST + 16  # bytes that the words of a title are written to


@part
def _spelt(text: Bytes, low: Int, high: Int, marks: Bytes, small: bool, out: Bytes, to: Int) -> Int:
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


@kernel
def _subject(text: Bytes, low: Int, high: Int, marks: Bytes, out: Bytes, to: Int) -> Int:
    if high - low > _SUBJECT:
        return np.int64(-1)
    for i in range(low, high):
        if text[i] < 32 or text[i] >= 127 or text[i] == 92:
            return np.int64(-1)
    begin = marked(out, to, marks, SHOWN_SUBJECT)
    end = _spelt(text, low, high, marks, True, out, begin)
    if end == begin:
        return to
    out[end] = marks[SEPARATOR]
    end = _spelt(text, low, high, marks, False, out, end + 1)
    out[end] = 32
    return end + 1


@kernel
def _filed(text: Bytes, low: Int, high: Int, marks: Bytes, out: Bytes, to: Int) -> Int:
    """A name as a list files it: words of the family name, comma, given names."""
    first = True
    for i in range(low, high):
        c = lower(text[i])
        if c == 44:
            out[to] = 44
            to += 1
        elif letter(c):
            if not first and not letter(lower(text[i - 1])):
                out[to] = marks[SPACE]
                to += 1
            out[to] = c
            to += 1
            first = False
    return to


@kernel
def _comma(text: Bytes, low: Int, high: Int) -> Int:
    """Where the only comma is in a name of ASCII letters; -1 for any other name."""
    comma = np.int64(-1)
    for i in range(low, high):
        c = lower(text[i])
        if c == 44 and comma < 0:
            comma = np.int64(i)
        elif not ((c >= 97 and c <= 122) or c == 32 or c == 39 or c == 45 or c == 46):
            return np.int64(-1)
    return comma


@kernel
def _person(text: Bytes, low: Int, high: Int, kind: Int, marks: Bytes, out: Bytes, to: Int) -> Int:
    """The keys of a name of ASCII letters: family name, comma, given names."""
    comma = _comma(text, low, high) if high - low <= _NAME else np.int64(-1)
    if comma < 0:
        return np.int64(-1)
    begin = marked(out, to, marks, OF_CONTRIBUTOR if kind == CONTRIBUTOR else OF_CREATOR)
    end, given, more = begin, np.int64(-1), np.int64(0)
    at = np.int64(low)
    while at < high:
        start = at
        value = np.uint64(0)
        while at < high and letter(lower(text[at])):
            if at - start < 8:
                value |= np.uint64(lower(text[at])) << np.uint64(8 * (at - start))
            at += 1
        if at == start:
            at += 1
            continue
        if np.int64(value) in (_JR, _SR, _DR, _MD, _PH, _PHD, _PROF):
            return np.int64(-1)
        if start < comma:
            for k in range(start, at):
                out[end] = lower(text[k])
                end += 1
        elif given < 0:
            given, more = start, at - start
    if end == begin or given < 0:
        return np.int64(-1)
    family = end - begin
    out[end] = 47
    end += 1
    for k in range(more):
        out[end + k] = lower(text[given + k])
    end += more
    if more == 1:
        out[end] = 46
        end += 1
    out[end] = 32
    end += 1
    # The same with the initial alone.
    for k in range(2 + family + 2):
        out[end + k] = out[begin - 2 + k]
    end += 2 + family + 2
    out[end] = 42
    out[end + 1] = 32
    end += 2
    if kind == CONTRIBUTOR:
        return end
    end = _filed(text, low, high, marks, out, marked(out, end, marks, SHOWN_CREATOR))
    out[end] = marks[SEPARATOR]
    end = _spelt(text, low, high, marks, False, out, end + 1)
    out[end] = 32
    end += 1
    if kind == FIRST_CREATOR:
        end = _filed(text, low, high, marks, out, marked(out, end, marks, BY_AUTHOR))
        out[end] = 32
        end += 1
    return end


@part
def _digested(value: np.uint64, marks: Bytes, out: Bytes, to: Int) -> Int:
    to = hexed(value, TITLE_DIGEST, out, marked(out, to, marks, OF_TITLE))
    out[to] = 32
    return to + 1


@kernel
def _title(
    text: Bytes, low: Int, high: Int, first: bool, articles: Hashes, row: Int, marks: Bytes, scratch: Bytes,
    sigma: Numbers, iv: Hashes, state: Hashes, out: Bytes, to: Int,
) -> Int:  # fmt: skip
    """The key of a title, and of what stands before a colon in it; of the first one, what it is sorted by."""
    if high - low > _LONGEST:
        return np.int64(-1)
    size = words = kept = one = spaced = np.int64(0)
    colon, before = False, np.int64(-1)
    for i in range(low, high):
        c = text[i]
        if c >= 128 or (c == 92 and text[i + 1] != 34):  # a quotation mark is written with a backslash
            return np.int64(-1)
        if not colon:
            spaced += c != 32 and c != 58 and (i == low or text[i - 1] == 32)
            if c == 58:
                colon = True
                before = kept if words > _WORDS else size
        c = lower(c)
        if letter(c):
            if i == low or not letter(lower(text[i - 1])):
                if words == 1:
                    one = size
                if words == _WORDS:
                    kept = size
                words += 1
                if words > 1:
                    scratch[size] = 32
                    size += 1
            scratch[size] = c
            size += 1
    if words == 0:
        return to
    if words <= _WORDS:
        kept = size
    to = _digested(digest(scratch, kept, TITLE_DIGEST, sigma, iv, state), marks, out, to)
    if spaced > 2 and before > 0:
        to = _digested(digest(scratch, before, TITLE_DIGEST, sigma, iv, state), marks, out, to)
    if not first:
        return to
    begin = np.int64(0)
    if words > 1 and one < 8:
        value = word(scratch, 0) & ((np.uint64(1) << np.uint64(8 * one)) - np.uint64(1))
        for k in range(articles.shape[1]):
            if value == articles[row, k]:
                begin = one + 1
    size = min(size, begin + _ORDER)
    while scratch[size - 1] == 32:
        size -= 1
    to = marked(out, to, marks, BY_TITLE)
    for i in range(begin, size):
        out[to] = marks[SPACE] if scratch[i] == 32 else scratch[i]
        to += 1
    out[to] = 32
    return to + 1


@part
def _found(text: Bytes, low: Int, high: Int, number: Int, table: KnownKeys) -> tuple[Int, np.uint64]:
    """Where in the table a value is, or would be; and its hash."""
    _, _, value = spelling(text, low, high - low, table.used[2])
    value = (value + np.uint64(number)) | np.uint64(1)
    slot = np.int64(value & np.uint64(table.hashes.size - 1))
    while table.hashes[slot] != np.uint64(0):
        place, size = table.rows[slot, 1], table.rows[slot, 2]
        if table.hashes[slot] == value and table.rows[slot, 0] == number and size == high - low:
            i = np.int64(0)
            while i < size and table.text[place + i] == text[low + i]:
                i += 1
            if i == size:
                break
        slot = (slot + 1) & (table.hashes.size - 1)
    return slot, value


@kernel
def _recalled(text: Bytes, low: Int, high: Int, number: Int, table: KnownKeys, out: Bytes, to: Int) -> Int:
    slot, _ = _found(text, low, high, number, table)
    if table.hashes[slot] == np.uint64(0):
        return np.int64(-1)
    place, size = table.rows[slot, 1] + table.rows[slot, 2], table.rows[slot, 3]
    if size > EACH * (high - low) + BESIDE:
        return np.int64(-1)
    for i in range(size):
        out[to + i] = table.text[place + i]
    return np.int64(to + size)


@kernel
def learn(text: Bytes, values: Numbers, table: KnownKeys) -> None:
    """Notes the keys of values, for which there is room: number, where a value begins and ends, where the
    keys that follow it end.
    """
    for v in range(values.shape[0]):
        number, low, middle, high = values[v, 0], values[v, 1], values[v, 2], values[v, 3]
        slot, value = _found(text, low, middle, number, table)
        if table.hashes[slot] == np.uint64(0):
            begin = table.used[1]
            table.hashes[slot] = value
            table.rows[slot, 0] = number
            table.rows[slot, 1] = begin
            table.rows[slot, 2] = middle - low
            table.rows[slot, 3] = high - middle
            for i in range(low, high):
                table.text[begin + i - low] = text[i]
            table.used[0] += 1
            table.used[1] = begin + high - low


@kernel
def _people(
    text: Bytes, low: Int, high: Int, number: Int, kind: Int, marks: Bytes, table: KnownKeys, asked: Numbers,
    count: Numbers, record: Int, out: Bytes, to: Int,
) -> Int:  # fmt: skip
    """The keys of the names in a value, with semicolons between them. A name that is left out is asked for
    alone; -1 where that is the first one, and in doubt.
    """
    before, names, start = count[0], 0, np.int64(low)
    while start < high:
        stop = start
        while stop < high and text[stop] != 59:
            stop += 1
        while start < stop and text[start] == 32:
            start += 1
        if start < stop:
            names += 1
            made = _person(text, start, stop, kind, marks, out, to)
            if made < 0 and kind != FIRST_CREATOR:
                made = _recalled(text, start, stop, number | 1, table, out, to)
            if made >= 0:
                to = made
            elif kind == FIRST_CREATOR or names > _NAMES:
                count[0] = before
                return np.int64(-1)
            else:
                _ask(asked, count, number | 1, start, stop, record)
            if kind == FIRST_CREATOR:
                kind = CREATOR
        start = stop + 1
    if names > _NAMES:
        count[0] = before
        return np.int64(-1)
    return to


@part
def _ask(asked: Numbers, count: Numbers, number: Int, low: Int, high: Int, record: Int) -> None:
    n = count[0]
    asked[n, 0] = number
    asked[n, 1] = low
    asked[n, 2] = high
    asked[n, 3] = record
    count[0] = n + 1


@kernel
def write(
    text: Bytes, values: Numbers, until: Numbers, kinds: Numbers, names: Bytes, name_ends: Numbers,
    articles: Hashes, which: Numbers, marks: Bytes, scratch: Bytes, sigma: Numbers, iv: Hashes, state: Hashes,
    table: KnownKeys, out: Bytes, ends: Numbers, asked: Numbers, count: Numbers,
) -> None:  # fmt: skip
    """Writes the keys of records as packed vectors, up to `ends`, less those of values that are left out.
    `asked` gets these, count[0] many: number, where the value begins and ends, its record; the number of a
    record's identifier is -1.

    `values` are numbers (even for the first value of an element, the next odd one for others), for which
    `kinds` has the kind of keys, and where they begin and end in `text`, those of a record up to `until`;
    `names` are the records' identifiers. A record has the articles of row which[record].
    """
    to: Int = np.int64(0)
    v = np.int64(0)
    for record in range(until.size):
        out[to] = 49
        out[to + 1] = 32
        to += 2
        low = name_ends[record - 1] if record > 0 else np.int64(0)
        high = name_ends[record]
        made = identifier(names, low, high, marks, scratch, sigma, iv, state, out, to)
        if made < 0:
            _ask(asked, count, -1, low, high, record)
        to = to if made < 0 else made
        while v < until[record]:
            number, low, high = values[v, 0], values[v, 1], values[v, 2]
            kind = kinds[number]
            made = np.int64(-1)
            if kind == IDENTIFIER:
                made = identifier(text, low, high, marks, scratch, sigma, iv, state, out, to)
            elif kind in (TITLE, FIRST_TITLE):
                made = _title(
                    text, low, high, kind == FIRST_TITLE, articles, which[record], marks, scratch, sigma,
                    iv, state, out, to,
                )  # fmt: skip
            else:
                if kind == SUBJECT:
                    made = _subject(text, low, high, marks, out, to)
                elif kind != ASK:
                    made = _people(
                        text, low, high, number, kind, marks, table, asked, count, record, out, to
                    )  # fmt: skip
                if made < 0:
                    made = _recalled(text, low, high, number, table, out, to)
            if made < 0:
                _ask(asked, count, number, low, high, record)
            to = to if made < 0 else made
            v += 1
        ends[record] = to
