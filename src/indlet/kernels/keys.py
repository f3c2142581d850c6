"""The keys of values that are written as most are: `service.index.keys` is the plain twin, and has the rest.

Values stand in a text as JSON writes them. A function here writes terms, each with a space after it, into
`out` from `to` on, and gives the new end, or -1 for a value that is left to the plain way: escaped, long, of
an unusual form, or with a character whose folding is unknown or depends on those beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indlet.kernels.arrays import Bytes, Hashes, Int, Numbers
from indlet.kernels.blake2b import digest
from indlet.kernels.codec import word
from indlet.kernels.folding import LEFT, folding
from indlet.kernels.identifier_keys import hexed, identifier, marked
from indlet.kernels.jit import kernel, part
from indlet.kernels.person_keys import (
    BY_TITLE,
    OF_TITLE,
    SEPARATOR,
    SHOWN_SUBJECT,
    SPACE,
    person,
    spelt,
)
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


# What is made of a value: nothing here, or keys of these kinds; of the last, none where it begins with a
# digit ("12 pages", "26171 bytes").
ASK, IDENTIFIER, CREATOR, FIRST_CREATOR, CONTRIBUTOR, SUBJECT, TITLE, FIRST_TITLE, NO_NUMBER = range(9)
# Bytes of keys for each byte of values, for each value and name in a list beside that, and after the last:
# never more.
EACH, BESIDE, AFTER = 6, 48, 2048

# The most bytes of a subject, a title; the words of a title, its characters in an order; names in a value.
_SUBJECT, _LONGEST = 100, 1000
_WORDS, _ORDER, _NAMES = 60, 120, 200
TITLE_DIGEST = 6  # bytes
# Where the words of a title are written to as they are filed; before that, as they are in its key.
_FILED = _LONGEST + 16
SCRATCH = 2 * _FILED


@kernel
def _subject(text: Bytes, low: Int, high: Int, marks: Bytes, out: Bytes, to: Int) -> Int:
    if high - low > _SUBJECT:
        return np.int64(-1)
    for i in range(low, high):
        if text[i] < 32 or text[i] >= 127 or text[i] == 92:
            return np.int64(-1)
    begin = marked(out, to, marks, SHOWN_SUBJECT)
    end = spelt(text, low, high, marks, True, out, begin)
    if end == begin:
        return to
    out[end] = marks[SEPARATOR]
    end = spelt(text, low, high, marks, False, out, end + 1)
    out[end] = 32
    return end + 1


@part
def _digested(value: np.uint64, marks: Bytes, out: Bytes, to: Int) -> Int:
    to = hexed(value, TITLE_DIGEST, out, marked(out, to, marks, OF_TITLE))
    out[to] = 32
    return to + 1


@part
def _added(
    made: np.uint64, shift: Int, inside: bool, words: Int, out: Bytes, to: Int
) -> tuple[bool, Int, Int]:
    """Adds what becomes of a character to words with a space between them: whether a word goes on, how many
    there are, where they end.
    """
    size = np.int64(made >> np.uint64(shift + 24)) & 3
    if size == 0:
        return False, words, to
    if not inside:
        words += 1
        if words > 1:
            out[to] = 32
            to += 1
    for k in range(size):
        out[to] = np.uint8((made >> np.uint64(shift + 8 * k)) & np.uint64(0xFF))
        to += 1
    return True, words, to


@kernel
def _title(
    text: Bytes, low: Int, high: Int, first: bool, folds: Hashes, articles: Hashes, row: Int, marks: Bytes,
    scratch: Bytes, sigma: Numbers, iv: Hashes, state: Hashes, out: Bytes, to: Int,
) -> Int:  # fmt: skip
    """The key of a title, and of what stands before a colon in it; of the first one, what it is sorted by."""
    if high - low > _LONGEST:
        return np.int64(-1)
    size: Int = np.int64(0)
    words: Int = np.int64(0)
    filed_words: Int = np.int64(0)
    filed: Int = np.int64(_FILED)
    kept, one, spaced = size, size, np.int64(0)
    inside = filed_inside = colon = False
    before: Int = np.int64(-1)
    at = np.int64(low)
    while at < high:
        c = text[at]
        if c == 92 and text[at + 1] != 34:  # a quotation mark is written with a backslash
            return np.int64(-1)
        if not colon:
            spaced += c != 32 and c != 58 and (at == low or text[at - 1] == 32)
            if c == 58:
                colon = True
                before = kept if words > _WORDS else size
        made, step = folding(text, at, folds)
        if made == np.uint64(0) or made & np.uint64(LEFT):
            return np.int64(-1)
        if words == _WORDS and not inside:
            kept = size
        if filed_words == 1 and not filed_inside:
            one = filed - _FILED
        inside, words, size = _added(made, 32, inside, words, scratch, size)
        filed_inside, filed_words, filed = _added(made, 0, filed_inside, filed_words, scratch, filed)
        at += step
    if words > 0:
        kept = size if words <= _WORDS else kept
        to = _digested(digest(scratch, kept, TITLE_DIGEST, sigma, iv, state), marks, out, to)
        if spaced > 2 and before > 0:
            to = _digested(digest(scratch, before, TITLE_DIGEST, sigma, iv, state), marks, out, to)
    if not first or filed_words == 0:
        return to
    begin = np.int64(_FILED)
    if filed_words > 1 and one < 8:
        value = word(scratch, begin) & ((np.uint64(1) << np.uint64(8 * one)) - np.uint64(1))
        for k in range(articles.shape[1]):
            if value == articles[row, k]:
                begin = np.int64(_FILED) + one + 1
    to = marked(out, to, marks, BY_TITLE)
    characters = np.int64(0)
    for i in range(begin, filed):
        characters += scratch[i] & 0xC0 != 0x80
        if characters > _ORDER:
            break
        out[to] = marks[SPACE] if scratch[i] == 32 else scratch[i]
        to += 1
    if out[to - 1] == marks[SPACE]:
        to -= 1
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
    text: Bytes, low: Int, high: Int, number: Int, kind: Int, folds: Hashes, marks: Bytes, scratch: Bytes,
    table: KnownKeys, asked: Numbers, count: Numbers, record: Int, out: Bytes, to: Int,
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
            made = person(
                text, start, stop, kind == CONTRIBUTOR, kind == FIRST_CREATOR, folds, marks, scratch, out, to
            )
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
    folds: Hashes, cases: Hashes, articles: Hashes, which: Numbers, marks: Bytes, scratch: Bytes,
    sigma: Numbers, iv: Hashes, state: Hashes, table: KnownKeys, out: Bytes, ends: Numbers, asked: Numbers,
    count: Numbers,
) -> None:  # fmt: skip
    """Writes the keys of records as packed vectors, up to `ends`, less those of values that are left out.
    `asked` gets these, count[0] many: number, where the value begins and ends, its record; the number of a
    record's identifier is -1.

    `values` are numbers (even for the first value of an element, the next odd one for others), for which
    `kinds` has the kind of keys, and where they begin and end in `text`, those of a record up to `until`;
    `names` are the records' identifiers. A record has the articles of row which[record]. For `folds`
    and `cases` (of identifiers) see `folding`.
    """
    to: Int = np.int64(0)
    v = np.int64(0)
    for record in range(until.size):
        out[to] = 49
        out[to + 1] = 32
        to += 2
        low = name_ends[record - 1] if record > 0 else np.int64(0)
        high = name_ends[record]
        made = identifier(names, low, high, cases, marks, scratch, sigma, iv, state, out, to)
        if made < 0:
            _ask(asked, count, -1, low, high, record)
        to = to if made < 0 else made
        while v < until[record]:
            number, low, high = values[v, 0], values[v, 1], values[v, 2]
            kind = kinds[number]
            made = np.int64(-1)
            if kind == IDENTIFIER:
                made = identifier(text, low, high, cases, marks, scratch, sigma, iv, state, out, to)
            elif kind in (TITLE, FIRST_TITLE):
                made = _title(
                    text, low, high, kind == FIRST_TITLE, folds, articles, which[record], marks, scratch,
                    sigma, iv, state, out, to,
                )  # fmt: skip
            else:
                if kind == SUBJECT:
                    made = _subject(text, low, high, marks, out, to)
                elif kind == NO_NUMBER and text[low] >= 48 and text[low] <= 57:
                    made = to
                elif kind in (CREATOR, FIRST_CREATOR, CONTRIBUTOR):
                    made = _people(
                        text, low, high, number, kind, folds, marks, scratch, table, asked, count, record,
                        out, to,
                    )  # fmt: skip
                if made < 0:
                    made = _recalled(text, low, high, number, table, out, to)
            if made < 0:
                _ask(asked, count, number, low, high, record)
            to = to if made < 0 else made
            v += 1
        ends[record] = to
