"""What the records of a page say, as the JSON in which it is stored.

`kernels.scan` has found the values; Python has been asked for those that have a form of their own (dates,
languages). `service.records.normalise.arranged` is the plain twin.
"""

from __future__ import annotations

import numpy as np

from indlet.kernels.codec import lowest_bit, word
from indlet.kernels.jit import allocating_kernel, kernel, part
from indlet.kernels.scan import (
    DONE,
    FULL,
    REFUSED,
    Bytes,
    Numbers,
    Rows,
    as_int,
    copy_words,
    equal_to,
    put_word,
)
from indlet.kernels.term_hash import digest

# Which values of an element Python is asked for: none, all, those that do not begin with a digit, dates that
# are not in ISO 8601 (where a time follows a day, the day is what stands).
NOT_ASKED, ASKED, NO_NUMBERS, DATES = range(4)
# Looks at a table of values, for each of them, after which a page is left to the tolerant reader.
_LOOKS = 64
# Bytes that are written between two values: the longest name, punctuation, and a word that is copied whole.
BETWEEN = 64


@kernel
def _date_end(text: Bytes, low: int, high: int) -> int:
    """Where a year, a month or a day ends that is written as in ISO 8601, alone or (a day) before a time; -1
    for what is written otherwise. `formats.dublin.iso_date` is the plain twin.
    """
    if high - low > 10 and (text[low + 10] == 84 or text[low + 10] == 32):
        high = low + 10
    size = high - low
    if size not in (4, 7, 10):
        return -1
    number = as_int(0)
    for i in range(size):
        c = as_int(text[low + i])
        if i == 4 or i == 7:
            if c != 45:
                return -1
            number = 0
        elif c < 48 or c > 57:
            return -1
        else:
            number = 10 * number + c - 48
        if (i == 3 and number == 0) or (i == 6 and (number < 1 or number > 12)):
            return -1
    return -1 if size == 10 and (number < 1 or number > 31) else high


@allocating_kernel
def gathered(
    values: Rows, folded: Bytes, kinds: Bytes, lows: Numbers, highs: Numbers, lines: Numbers, out: Bytes
) -> int:
    """Notes where each value stands, and copies those that Python must be asked for, a line for each, which
    begins with a letter for the element (A for the first); gives the bytes of all lines.

    `kinds` tells for each element which these are. `lines` tells for each value which line it is, or -1 if it
    stands as it is.
    """
    low = to = count = 0
    slots, looks = np.zeros(1 << _bits(values.size), np.int64), _LOOKS * (values.size + 1)
    for i in range(values.size):
        high, kind = values[i].end - 1, kinds[values[i].code]
        lows[i], highs[i], lines[i] = low, high, -1
        if kind == DATES:
            highs[i] = _date_end(folded, low, high)
        if kind == ASKED or (kind == NO_NUMBERS and (folded[low] < 48 or folded[low] > 57)) or highs[i] < 0:
            highs[i] = high
            slot, looks = _looked_up(folded, values, 0, i, lows, highs, slots, looks)
            if looks >= 0 and slots[slot] > 0:
                lines[i] = lines[slots[slot] - 1]
            else:
                slots[slot] = i + 1
                lines[i] = count
                count += 1
                out[to] = 65 + values[i].code
                to = copy_words(folded, low, high + 1, out, to + 1)
        low = high + 1
    return to


@kernel
def _take_forms(text: Bytes, at: int, lines: Numbers, begins: Numbers, lows: Numbers, highs: Numbers) -> None:
    """Has values stand where their forms do: lines of text, from `at` on."""
    begins[0], count = at, 0
    for i in range(lines.size):
        line = lines[i]
        while count <= line:
            while text[at] != 10:
                at += 1
            at += 1
            count += 1
            begins[count] = at
        if line >= 0:
            lows[i], highs[i] = begins[line], begins[line + 1] - 1


@kernel
def _ordered(values: Rows, low: int, high: int, out: Numbers) -> None:
    """The values of a record in the order in which their elements begin; few of them stand otherwise."""
    for i in range(low, high):
        at = i
        while at > low and values[out[at - 1]].order > values[i].order:
            out[at] = out[at - 1]
            at -= 1
        out[at] = i


@part
def json_room(low: int, high: int) -> int:
    """The most bytes that a value can take as a string of JSON, with what stands before it."""
    return 2 * (high - low) + BETWEEN


@kernel
def json_string(text: Bytes, low: int, high: int, out: Bytes, to: int) -> int:
    """Writes a value as a string of JSON; gives where it ends. `json_room` says how much room it needs."""
    out[to] = 34
    to += 1
    while low < high:
        eight = word(text, low)
        found = equal_to(eight, 34) | equal_to(eight, 92)
        plain = min(as_int(lowest_bit(found)) >> 3 if found else 8, high - low)
        put_word(out, to, eight)
        low += plain
        to += plain
        if plain < 8 and low < high:
            out[to], out[to + 1] = 92, text[low]
            low += 1
            to += 2
    out[to] = 34
    return to + 1


@kernel
def _looked_up(
    text: Bytes, values: Rows, first: int, one: int, lows: Numbers, highs: Numbers, slots: Numbers, most: int
) -> tuple[int, int]:
    """The slot of a value among those of its record (from `first` on) and element; and how many looks, at
    most, are left after it.
    """
    low, size, code = lows[one], highs[one] - lows[one], values[one].code
    hashed = np.int64(digest(text, low, low + size) >> np.uint64(1)) ^ (first * 16 + code) * 0x9E3779B1
    slot = hashed & (slots.size - 1)
    while slots[slot] > 0 and most >= 0:
        other = slots[slot] - 1
        if other >= first and values[other].code == code and highs[other] - lows[other] == size:
            i = 0
            while i < size and text[low + i] == text[lows[other] + i]:
                i += 1
            if i == size:
                break
        slot = (slot + 1) & (slots.size - 1)
        most -= 1
    return slot, most


@kernel
def _begins(text: Bytes, low: int, high: int, marks: Bytes) -> bool:
    """Whether a value begins with one of some marks, each of which ends in a line feed."""
    at, same = low, True
    for mark in marks:
        if mark == 10:
            if same:
                return True
            at, same = low, True
        else:
            same = same and at < high and text[at] == mark
            at += 1
    return False


@allocating_kernel
def described(
    heads: Rows, values: Rows, text: Bytes, forms: int, lows: Numbers, highs: Numbers, lines: Numbers,
    marks: Bytes, names: Bytes, name_ends: Numbers, out: Bytes, ends: Numbers,
) -> int:  # fmt: skip
    """Writes the metadata of each record into `out`: elements in the order of `names`, each value once; and
    in `ends` where they end. For `lows`, `highs` and `lines` see `gathered`; what Python made of its lines
    stands in `text` from `forms` on.

    DONE; FULL if `out` is too small, and the call can be repeated with a larger one; REFUSED if a title
    begins with one of `marks`, or if it would take too long: many values within others, or with equal hashes.
    Long because its parts would hand its tables around.
    """
    _take_forms(text, forms, lines, np.empty(lines.size + 1, np.int64), lows, highs)
    order, counts = np.empty(values.size, np.int64), np.empty(name_ends.size, np.int64)
    slots = np.zeros(1 << _bits(values.size), np.int64)  # of values, plus one
    looks = _LOOKS * (values.size + 1)
    first = to = 0
    for record in range(heads.size):
        last = heads[record].values
        if heads[record].nested:
            looks -= (last - first) * (last - first)
        _ordered(values, first, last if looks >= 0 else first, order)
        counts[:] = 0
        for i in range(first, last):
            counts[values[i].code] += 1
        if out.size - to < BETWEEN:
            return FULL
        out[to] = 123
        to += 1
        for code in range(counts.size):
            if counts[code] == 0:
                continue
            if out.size - to < BETWEEN:
                return FULL
            if out[to - 1] != 123:
                out[to] = 44
                to += 1
            to = copy_words(names, name_ends[code - 1] if code > 0 else 0, name_ends[code], out, to)
            for i in order[first:last]:
                if looks < 0:
                    return REFUSED
                if values[i].code != code:
                    continue
                if code == 0 and _begins(text, lows[i], highs[i], marks):
                    return REFUSED
                if counts[code] > 1:
                    slot, looks = _looked_up(text, values, first, i, lows, highs, slots, looks)
                    if slots[slot] > 0:
                        continue
                    slots[slot] = i + 1
                if out.size - to < json_room(lows[i], highs[i]):
                    return FULL
                if out[to - 1] != 91:
                    out[to] = 44
                    to += 1
                to = json_string(text, lows[i], highs[i], out, to)
            out[to] = 93
            to += 1
        out[to] = 125
        to += 1
        ends[record] = to
        first = last
    return DONE if looks >= 0 else REFUSED


@kernel
def _bits(values: int) -> int:
    """The bits of a table that such values fill to a half."""
    bits = 2
    while 1 << bits < 2 * values:
        bits += 1
    return bits
