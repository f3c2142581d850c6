"""The loops of `analysis`, compiled: text to numbered tokens, tokens to a language, terms to packed vectors.

A *part* is the text of one field of one record. Parts stand in one buffer, a byte between two of them, those
of a record together; `codes` tells for each the record (from bit 3 on) and the field (the lowest three bits).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from indlet.service.index.codec import word
from indlet.service.index.compiled import kernel, part

# Tokens that are longer are left to the analyser; no policy makes terms of them.
LONGEST = 255
# So are records with more bytes.
RECORD = 1 << 15
# What is known of a token.
DIGITS, WIDE, FOREIGN = 1, 2, 4
# A token's term in a language: its number, or one of these; below them, where in `runs` its terms stand.
LOST, UNKNOWN, RUN = -1, -2, -3
# A row for each token: its first sixteen bytes, its size, where it stands in `names`.
_ROW = 4
# A row for each term: its first eight bytes as a number, where it stands in the text, its size, its place.
ABOUT = 4
# Columns of a term's counts: six fields, then all that are searched as one text.
_BODY, _COLUMNS = 6, 7


def _put(typing_context: Any, array: Any, at: Any, value: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.gep(data, [arguments[1]])
        builder.store(arguments[2], builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), generate


# put(array, at, value): writes eight bytes from `at` on, aligned or not: what `codec.word` reads.
put: Callable[..., Any] = intrinsic(_put)


@kernel
def parts(
    text: Any, ends: Any, keys: Any, sizes: Any, columns: Any, out: Any, until: Any, codes: Any, firsts: Any,
    odd: Any,
) -> Any:  # fmt: skip
    """The values of metadata, records in JSON one after another, that belong to one of the columns: written
    to `out` up to until[p], with a byte between them; gives their number.

    An element is known by the first eight bytes of its name and its size. Records that are not written as
    ours are, or that hold what `cut` does not know, are marked as odd.
    """
    p = to = at = np.int64(0)
    for record in range(ends.size):
        end = ends[record]
        firsts[record] = p
        before, before_to = p, to
        good = end - at <= RECORD and end - at >= 2 and text[at] == 123 and text[end - 1] == 125
        at += 1
        while good and at < end - 1:
            # "name":[
            good = text[at] == 34
            at += 1
            low = at
            while at < end and text[at] != 34:
                at += 1
            size = at - low
            key = word(text, low)
            if size < 8:
                key &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
            column = np.int64(-1)
            for k in range(keys.size):
                if keys[k] == key and sizes[k] == size:
                    column = columns[k]
            good = good and text[at + 1] == 58 and text[at + 2] == 91
            at += 3
            while good and text[at] == 34:
                at += 1
                low = at
                while at < end and text[at] != 34:
                    c = text[at]
                    if c == 92:
                        good = False
                    elif c >= 0x80 and c != 0xC3 and column >= 0:
                        # White space beyond ASCII and soft hyphens begin with these.
                        good = good and c != 0xC2 and c != 0xE1 and c != 0xE2 and c != 0xE3
                    at += 1
                if column >= 0:
                    for i in range(low, at):
                        out[to] = text[i]
                        to += 1
                    codes[p] = record << 3 | column
                    until[p] = to
                    out[to] = 10
                    to += 1
                    p += 1
                at += 1
                if text[at] == 44:
                    at += 1
            good = good and text[at] == 93
            at += 1
            if text[at] == 44:
                at += 1
        if not good:
            odd[record] = 1
            p, to = before, before_to
        at = end
    firsts[ends.size] = p
    return p


@kernel
def cut(
    text: Any,
    ends: Any,
    codes: Any,
    p: Any,
    slots: Any,
    rows: Any,
    hashes: Any,
    names: Any,
    kinds: Any,
    used: Any,
    ids: Any,
    until: Any,
    odd: Any,
) -> Any:
    """The numbers of the tokens of each part from `p` on, in `ids`; gives the first part that was not done,
    because the table is full.

    `text` is in lower case, has spaces in the place of all separators, and sixteen bytes after its end.
    `used` counts the tokens and the bytes of their names. A slot holds the upper half of a hash and the
    number of a token plus one. `odd` marks records with a token that is too long.
    """
    upper, last, one = np.uint64(0xFFFFFFFF00000000), np.uint64(slots.size - 1), np.uint64(1)
    tokens, filled = used[0], used[1]
    n = until[p - 1] if p > 0 else np.int64(0)
    while p < ends.size:
        begin = n
        at = ends[p - 1] + 1 if p > 0 else np.int64(0)
        end = ends[p]
        while at < end:
            if text[at] == 32:
                at += 1
                continue
            low = at
            while at < end and text[at] != 32:
                at += 1
            size = at - low
            if size > LONGEST:
                odd[codes[p] >> 3] = 1
                continue
            first = word(text, low)
            second = np.uint64(0)
            if size < 8:
                first &= (one << np.uint64(8 * size)) - one
            elif size > 8:
                second = word(text, low + 8)
                if size < 16:
                    second &= (one << np.uint64(8 * size - 64)) - one
            value = first * np.uint64(0x9E3779B97F4A7C15)
            value = (value ^ (value >> np.uint64(32)) ^ second) * np.uint64(0xD6E8FEB86659FD93)
            for j in range(low + 16, at):
                value = (value ^ np.uint64(text[j])) * np.uint64(0x100000001B3)
            value = (value ^ (value >> np.uint64(29)) ^ np.uint64(size)) * np.uint64(0xBF58476D1CE4E5B9)
            value ^= value >> np.uint64(32)
            slot = value & last
            found = np.int64(-1)
            held = slots[slot]
            while held != np.uint64(0):
                if held & upper == value & upper:
                    token = np.int64(held & ~upper) - 1
                    row = _ROW * token
                    if (
                        rows[row] == np.int64(first)
                        and rows[row + 1] == np.int64(second)
                        and rows[row + 2] == size
                    ):
                        i = 16
                        while i < size and text[low + i] == names[rows[row + 3] + i]:
                            i += 1
                        if i >= size:
                            found = token
                            break
                slot = (slot + one) & last
                held = slots[slot]
            if found < 0:
                if tokens == hashes.size or filled + size > names.size:
                    used[0], used[1] = tokens, filled
                    until[p] = begin
                    return p
                found = tokens
                tokens += 1
                slots[slot] = value & upper | np.uint64(tokens)
                hashes[found] = value
                row = _ROW * found
                rows[row] = np.int64(first)
                rows[row + 1] = np.int64(second)
                rows[row + 2] = size
                rows[row + 3] = filled
                kinds[found] = _kind(text, low, at)
                for j in range(low, at):
                    names[filled] = text[j]
                    filled += 1
            ids[n] = found
            n += 1
        until[p] = n
        p += 1
    used[0], used[1] = tokens, filled
    return p


@part
def _kind(text: Any, low: Any, high: Any) -> Any:
    """Whether text[low:high] is all ASCII digits; holds more than ASCII; may hold letters of U+0370 and
    beyond, which only starts from 0xCD on can, and of those 0xE2 for U+2D00 and beyond alone.
    """
    digits, kind = True, 0
    for i in range(low, high):
        c = text[i]
        digits = digits and c >= 48 and c <= 57
        if c >= 0x80:
            kind |= WIDE
            if c >= 0xCD and (c != 0xE2 or i + 1 >= high or text[i + 1] >= 0xB4):
                kind |= FOREIGN
    return kind | DIGITS if digits else kind


@kernel
def rehash(hashes: Any, tokens: Any, slots: Any) -> None:
    """Puts all tokens into empty slots."""
    upper, last = np.uint64(0xFFFFFFFF00000000), np.uint64(slots.size - 1)
    for token in range(tokens):
        slot = hashes[token] & last
        while slots[slot] != np.uint64(0):
            slot = (slot + np.uint64(1)) & last
        slots[slot] = hashes[token] & upper | np.uint64(token + 1)


@kernel
def languages(
    ids: Any, until: Any, codes: Any, mask: Any, units: Any, kinds: Any, rules: Any, seen: Any, hits: Any,
    known: Any, out: Any,
) -> None:  # fmt: skip
    """For each record the language that the function words in the fields of `mask` make sure, or -1.

    Tokens below len(units) are function words, with their units for each language. `rules` are the numbers of
    `text.language`: enough units, the lead, words, words of a table. What is -1 here may still be told
    by `detect`, which the answers agree with. `seen` comes filled with -1.
    """
    words, kinds_of = units.shape[0], units.shape[1]
    p = 0
    while p < codes.size:
        record = codes[p] >> 3
        met = pieces = digits = wide = 0
        foreign = False
        for k in range(kinds_of):
            hits[k] = 0
        while p < codes.size and codes[p] >> 3 == record:
            if (mask >> (codes[p] & 7)) & 1:
                for i in range(until[p - 1] if p > 0 else 0, until[p]):
                    token = ids[i]
                    kind = kinds[token]
                    pieces += 1
                    digits += kind & DIGITS
                    wide += (kind & WIDE) >> 1
                    foreign |= (kind & FOREIGN) != 0
                    if token < words and seen[token] != record:
                        seen[token] = record
                        known[met] = token
                        met += 1
                        for k in range(kinds_of):
                            hits[k] += units[token, k]
            p += 1
        out[record] = -1
        if foreign:
            continue
        best = 0
        second = np.int64(-1)
        for k in range(1, kinds_of):
            if hits[k] > hits[best]:
                second = hits[best]
                best = k
            elif hits[k] > second:
                second = hits[k]
        if hits[best] < rules[0] or hits[best] <= rules[1] * second:
            continue
        own = 0
        for i in range(met):
            own += units[known[i], best] > 0
        # A piece beyond ASCII may be a digit all the same.
        if own >= rules[3] or (own >= rules[2] and 5 * (digits + wide) < pieces):
            out[record] = best


@kernel
def unknown(ids: Any, until: Any, firsts: Any, which: Any, terms: Any, out: Any) -> Any:
    """The tokens of records that have no term yet, each once, in `out`; gives their number."""
    n = 0
    for record in which:
        low = until[firsts[record] - 1] if firsts[record] > 0 else 0
        high = until[firsts[record + 1] - 1] if firsts[record + 1] > 0 else 0
        for i in range(low, high):
            if terms[ids[i]] == UNKNOWN:
                terms[ids[i]] = LOST
                out[n] = ids[i]
                n += 1
    return n


@kernel
def spelt(tokens: Any, rows: Any, names: Any, out: Any) -> None:
    """Writes the names of tokens, with a space after each."""
    to = 0
    for i in range(tokens.size):
        row = _ROW * np.int64(tokens[i])
        low = rows[row + 3]
        for j in range(low, low + rows[row + 2]):
            out[to] = names[j]
            to += 1
        out[to] = 32
        to += 1


@kernel
def noted(begin: Any, at: Any, sizes: Any, names: Any, about: Any) -> None:
    """Notes terms from number `begin` on, whose names stand one after another from names[at] on."""
    for i in range(sizes.size):
        size = sizes[i]
        key = np.uint64(0)
        for j in range(min(size, 8)):
            key |= np.uint64(names[at + j]) << np.uint64(56 - 8 * j)
        row = ABOUT * (begin + i)
        about[row] = np.int64(key ^ np.uint64(1 << 63))  # signed numbers in the order of the unsigned ones
        about[row + 1] = at
        about[row + 2] = size
        about[row + 3] = -1
        at += size


@part
def _after(a: Any, b: Any, about: Any, names: Any) -> Any:
    """Whether term a comes after term b, which has the same first eight bytes."""
    i = 8
    low, other = about[ABOUT * a + 1], about[ABOUT * b + 1]
    size, least = about[ABOUT * a + 2], about[ABOUT * b + 2]
    while i < size and i < least:
        x, y = names[low + i], names[other + i]
        if x != y:
            return x > y
        i += 1
    return size > least


@kernel
def _sort(order: Any, own: Any, n: Any, about: Any, names: Any) -> None:
    """Brings n terms into the order of their bytes (Shell's sort: it is short, and so quick to compile)."""
    for i in range(n):
        own[i] = about[ABOUT * order[i]]
    gap = n
    while gap > 1:
        gap = 1 if gap < 5 else gap * 5 // 11
        for i in range(gap, n):
            term, key = order[i], own[i]
            to = i
            while to >= gap and (
                own[to - gap] > key or (own[to - gap] == key and _after(order[to - gap], term, about, names))
            ):
                order[to] = order[to - gap]
                own[to] = own[to - gap]
                to -= gap
            order[to] = term
            own[to] = key


@kernel
def _packed(
    entries: Any, n: Any, highest: Any, spare: Any, buckets: Any, about: Any, names: Any,
    marks: Any, bounds: Any, out: Any, to: Any,
) -> Any:  # fmt: skip
    """Writes the packed vector of entries (term, column, count) from out[to] on; gives where it ends.

    Eight bytes follow the last mark and the last name.
    """
    for count in range(highest + 2):
        buckets[count] = 0
    for e in range(n):
        buckets[entries[3 * e + 2] + 1] += 1
    for count in range(1, highest + 2):
        buckets[count] += buckets[count - 1]
    for e in range(n):  # stable: within a frequency the order stays
        count = entries[3 * e + 2]
        spare[buckets[count]] = e
        buckets[count] += 1
    before = 0
    for i in range(n):
        e = spare[i]
        term, column, count = entries[3 * e], entries[3 * e + 1], entries[3 * e + 2]
        if count != before:
            if before:
                out[to] = 10
                to += 1
            before = count
            digits = 1
            limit = 10
            while count >= limit:
                digits += 1
                limit *= 10
            for k in range(digits):
                out[to + digits - 1 - k] = 48 + count % 10
                count //= 10
            to += digits
        out[to] = 32
        to += 1
        # Eight bytes at a time; the last of them may be too many, and are written over.
        size = bounds[column + 1] - bounds[column]
        for k in range(0, size, 8):
            put(out, to + k, word(marks, bounds[column] + k))
        to += size
        low, size = about[ABOUT * term + 1], about[ABOUT * term + 2]
        for k in range(0, size, 8):
            put(out, to + k, word(names, low + k))
        to += size
    return to


@kernel
def emit(
    ids: Any,
    until: Any,
    codes: Any,
    firsts: Any,
    which: Any,
    mask: Any,
    loose: Any,
    terms: Any,
    runs: Any,
    about: Any,
    names: Any,
    used: Any,
    marks: Any,
    bounds: Any,
    scratch: Any,
    counts: Any,
    out: Any,
    lengths: Any,
    cuts: Any,
    w: Any,
) -> Any:
    """Writes, for each record of `which` from the w-th on, the packed vector of its fields or, if `mask`
    names any, of those taken as one text: into `out`, up to cuts[w]. `lengths` gets the tokens of the latter.
    Gives the first that was not done, for want of room. `loose` leaves the terms of a frequency in the order
    in which they came.

    A term's place less used[2], where not negative, is the number that it has in the current record.
    """
    room = counts.size // _COLUMNS
    order, local, spare, buckets, entries = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    to = cuts[w - 1] if w > 0 else np.int64(0)
    base = used[2]
    while w < which.size:
        record = which[w]
        total = np.int64(0)
        need = np.int64(0)
        for p in range(firsts[record], firsts[record + 1]):
            for i in range(until[p - 1] if p > 0 else 0, until[p]):
                term = np.int64(terms[ids[i]])
                if term >= 0:
                    total += 1
                    need += 2 * about[ABOUT * term + 2] + 64
                elif term <= RUN:
                    first = RUN - term + 1
                    for j in range(first, first + runs[first - 1]):
                        total += 1
                        need += 2 * about[ABOUT * runs[j] + 2] + 64
        if total > room or to + need > out.size:
            used[2] = base
            return w
        n = np.int64(0)
        length = np.int64(0)
        for p in range(firsts[record], firsts[record + 1]):
            column = codes[p] & 7
            body = (mask >> column) & 1
            for i in range(until[p - 1] if p > 0 else 0, until[p]):
                term = np.int64(terms[ids[i]])
                k, more = np.int64(0), np.int64(1)
                if term <= RUN:
                    k = RUN - term + 1
                    more = runs[k - 1]
                elif term < 0:
                    continue
                for j in range(k, k + more):
                    if k > 0:
                        term = runs[j]
                    number = about[ABOUT * term + 3] - base
                    if number < 0:
                        number = n
                        n += 1
                        about[ABOUT * term + 3] = base + number
                        order[number] = term
                        for c in range(_COLUMNS * number, _COLUMNS * n):
                            counts[c] = 0
                    counts[_COLUMNS * number + column] += 1
                    counts[_COLUMNS * number + _BODY] += body
                    length += body
        if not loose:
            _sort(order, local, n, about, names)
        for i in range(n):
            local[i] = _COLUMNS * (about[ABOUT * order[i] + 3] - base)
        found = highest = np.int64(0)
        for column in range(_BODY if mask else 0, _COLUMNS if mask else _BODY):
            for i in range(n):
                count = counts[local[i] + column]
                if count:
                    entries[3 * found] = order[i]
                    entries[3 * found + 1] = column
                    entries[3 * found + 2] = count
                    highest = max(highest, count)
                    found += 1
        to = _packed(entries, found, highest, spare, buckets, about, names, marks, bounds, out, to)
        cuts[w] = to
        lengths[w] = length
        base += n
        w += 1
    used[2] = base
    return w
