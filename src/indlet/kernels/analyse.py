"""The loops of `analysis`, compiled: metadata to numbered tokens, tokens to a language and to terms.

A *part* is a value of one field of one record; the parts of a record stand together. `codes` tells for each
the record (from bit 3 on) and the field (the lowest three bits).

Long because all of it reads and writes one form of tokens.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indlet.kernels.codec import lowest_bit, word
from indlet.kernels.jit import allocating_kernel, kernel, light_kernel, part
from indlet.kernels.postings import LOST
from indlet.kernels.scan import equal_to, put_word
from indlet.kernels.term_hash import spelling

Rows = Any  # a structured array, or a row of one: type checkers do not know its fields
Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Ids = NDArray[np.int32]
Slots = NDArray[np.uint64]
Int = int | np.int64


class Tokens(NamedTuple):
    """The tokens of records: `ids` are their numbers, those of part p up to until[p]."""

    ids: Ids
    until: Numbers
    codes: Numbers


# Tokens that are longer are left to the analyser; no policy makes terms of them.
LONGEST = 255
# So are records with more bytes.
RECORD = 1 << 15
# What is known of a token; of one beyond ASCII, whether it is all digits, Python tells.
DIGITS, WIDE, FOREIGN = 1, 2, 4
# A token's term in a language, where it is not yet known; for the rest see `index.postings_kernel`.
UNKNOWN = -2
# A slot of the table: the first sixteen bytes of a token, its hash, its size and (plus one) its number.
_SLOT = 4
LANES = 4  # units of sixteen bits that a word of 64 holds
# Texts whose languages are weighed at once.
_TEXTS = 16


@kernel
def _looked_at(text: Bytes, at: Int) -> tuple[np.uint8, int]:
    """What stands for a character that may be more than its first byte says, and how many bytes that takes
    the place of; 0 for one that is left to the analyser: white space beyond ASCII, soft hyphens.
    """
    c, second, third = text[at], text[at + 1], text[at + 2]
    space = np.uint8(32)
    if c == 92:
        if second != 117:
            return space, 2
        # Only controls are written by their numbers.
        return space if third == 48 and text[at + 3] == 48 and text[at + 4] < 50 else np.uint8(0), 6
    size = 3
    if c == 0xC2:
        left, size = second in (0x85, 0xA0, 0xAD), 2
    elif c == 0xE1:
        left = second == 0x9A and third == 0x80
    elif c == 0xE2:
        left = second == 0x80 and (third <= 0x8A or third in (0xA8, 0xA9, 0xAF))
        left = left or (second == 0x81 and third == 0x9F)
    else:
        left = second == 0x80 and third == 0x80
    return (np.uint8(0), size) if left else (c, 1)


@part
def _eight(text: Bytes, at: Int, out: Bytes, to: Int) -> np.uint64:
    """Writes what becomes of eight bytes: ASCII in lower case, spaces for what is neither letter nor digit
    (rule 2 of `text.tokens`), others as they are. Gives, as `equal_to` does, the first of them that ends a
    value or takes a look: what escapes in JSON, what white space beyond ASCII and soft hyphens begin with.
    """
    each, top = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
    eight = word(text, at)
    high, low = eight & top, eight & ~top
    small = low | each * np.uint64(0x20)
    letters = (small + each * np.uint64(0x1F)) & ~(small + each * np.uint64(0x05)) & top & ~high
    digits = (low + each * np.uint64(0x50)) & ~(low + each * np.uint64(0x46)) & top & ~high
    kept = ((letters | digits | high) >> np.uint64(7)) * np.uint64(0xFF)
    made = (eight | letters >> np.uint64(2)) & kept | each * np.uint64(0x20) & ~kept
    put_word(out, to, made)
    stop = equal_to(eight, 0x22) | equal_to(eight, 0x5C)
    if high:
        stop |= equal_to(eight, 0xC2) | equal_to(eight & (each * np.uint64(0xFC)), 0xE0)
    return stop


@part
def _number(
    text: Bytes, low: Int, size: Int, slots: Slots, places: Numbers, names: Bytes, kinds: Bytes,
    widths: Bytes, used: Numbers,
) -> Int:  # fmt: skip
    """The number of a token, which gets one if it has none; -1 if the table is full.

    A token of up to sixteen bytes is told by its slot alone: one line of the processor's cache. `used` counts
    the tokens and the bytes of their names, and has the seed of hashes.
    """
    last, one, two, three = np.uint64(slots.size // _SLOT - 1), np.uint64(1), np.uint64(2), np.uint64(3)
    first, second, value = spelling(text, low, size, used[2])
    slot = (value & last) * np.uint64(_SLOT)
    held = slots[slot + three]
    while held != np.uint64(0):
        if slots[slot] == first and slots[slot + one] == second and held >> np.uint64(32) == np.uint64(size):
            found = np.int64(held & np.uint64(0xFFFFFFFF)) - 1
            i = np.int64(16)
            while i < size and text[low + i] == names[places[found] + i]:
                i += 1
            if i >= size:
                return found
        slot = (slot + np.uint64(_SLOT)) & (np.uint64(slots.size) - one)
        held = slots[slot + three]
    tokens, filled = used[0], used[1]
    if tokens == kinds.size or filled + size > names.size:
        return np.int64(-1)
    used[0], used[1] = tokens + 1, filled + size
    slots[slot] = first
    slots[slot + one] = second
    slots[slot + two] = value
    slots[slot + three] = np.uint64(size) << np.uint64(32) | np.uint64(tokens + 1)
    places[tokens] = filled
    places[tokens + 1] = filled + size
    kinds[tokens] = _kind(text, low, low + size)
    characters = 0
    for j in range(size):
        names[filled + j] = text[low + j]
        characters += text[low + j] & 0xC0 != 0x80
    widths[tokens] = characters
    return np.int64(tokens)


@kernel
def read(
    text: Bytes, ends: Numbers, record: int, keys: Slots, lengths: Numbers, columns: Numbers,
    most: Numbers, value: Bytes, slots: Slots, places: Numbers, names: Bytes, kinds: Bytes, widths: Bytes,
    used: Numbers,
    ids: Ids, until: Numbers, codes: Numbers, sizes: Numbers, firsts: Numbers, spans: Numbers, odd: Bytes,
    whole: Numbers, whole_until: Numbers,
) -> int:  # fmt: skip
    """The tokens of metadata, records in JSON one after another, from the given record on; gives the first
    that was not done, because the table is full.

    Long because it is one loop over the bytes whose state would have to be handed around.

    An element is known by the first eight bytes of its name and the name's length. The values of one with a
    column are parts: `ids` gets the numbers of their tokens up to until[p], `sizes` their bytes. Those of one
    with a column below -1 stand in text[spans[record, 2c]:spans[record, 2c + 1]], where c is -2 less the
    column. The first most[e] values of element e are noted as a whole: `whole` gets, for each, 2e (2e + 1 for
    those after the first) and where it begins and ends in the text, up to whole_until[record].

    What JSON escapes separates. Records that are not written as ours are, or that hold white space beyond
    ASCII, soft hyphens or tokens that are too long, are marked as odd. Sixteen bytes follow the text; `value`
    has room for a record, and for thirty-two more.
    """
    p = firsts[record]
    n = until[p - 1] if p > 0 else np.int64(0)
    at = ends[record - 1] if record > 0 else np.int64(0)
    w = whole_until[record - 1] if record > 0 else np.int64(0)
    while record < ends.size:
        end = ends[record]
        firsts[record] = p
        before, first_id, first_whole = p, n, w
        for s in range(spans.shape[1]):
            spans[record, s] = 0
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
            column, element, many = np.int64(-1), np.int64(0), np.int64(0)
            left = np.int64(0)
            for k in range(keys.size):
                if keys[k] == key and lengths[k] == size:
                    column, element, left = columns[k], np.int64(k), most[k]
            good = good and text[at + 1] == 58 and text[at + 2] == 91
            at += 3
            begin = at
            while good and at < end and text[at] == 34:
                at += 1
                low = at
                if column < 0:
                    while at < end and text[at] != 34:
                        at += 2 if text[at] == 92 else 1
                else:
                    to = np.int64(0)
                    while at < end:
                        stop = _eight(text, at, value, to)
                        if stop == np.uint64(0):
                            at += 8
                            to += 8
                            continue
                        plain = np.int64(lowest_bit(stop) >> np.uint64(3))
                        at += plain
                        to += plain
                        if text[at] == 34:
                            break
                        c, size = _looked_at(text, at)
                        if c == 0:
                            good = False
                            c = np.uint8(32)
                        value[to] = c
                        to += 1
                        at += size
                    value[to] = 32
                    i = np.int64(0)
                    while i < to:
                        if value[i] == 32:
                            i += 1
                            continue
                        start = i
                        space = equal_to(word(value, i), 32)
                        while space == np.uint64(0):
                            i += 8
                            space = equal_to(word(value, i), 32)
                        i += np.int64(lowest_bit(space) >> np.uint64(3))
                        if i - start > LONGEST:
                            good = False
                            continue
                        number = _number(value, start, i - start, slots, places, names, kinds, widths, used)
                        if number < 0:
                            return record
                        ids[n] = number
                        n += 1
                    codes[p] = record << 3 | column
                    until[p] = n
                    sizes[p] = at - low
                    p += 1
                if many < left:
                    whole[w, 0] = 2 * element + (many > 0)
                    whole[w, 1] = low
                    whole[w, 2] = at
                    w += 1
                    many += 1
                at += 1
                if text[at] != 44:
                    break
                at += 1
            good = good and text[at] == 93
            if column < -1:
                spans[record, -2 * column - 4] = begin
                spans[record, -2 * column - 3] = at
            at += 1
            if text[at] == 44:
                at += 1
        if not good or at != end - 1:
            odd[record] = 1
            p, n, w = before, first_id, first_whole
        whole_until[record] = w
        at = end
        record += 1
        firsts[record] = p
    return record


@part
def _kind(text: Bytes, low: Int, high: Int) -> int:
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
def rehash(old: Slots, slots: Slots) -> None:
    """Puts all tokens into empty slots."""
    for place in range(0, old.size, _SLOT):
        if old[place + 3]:
            slot = (old[place + 2] & np.uint64(slots.size // _SLOT - 1)) * np.uint64(_SLOT)
            while slots[slot + np.uint64(3)] != np.uint64(0):
                slot = (slot + np.uint64(_SLOT)) & np.uint64(slots.size - 1)
            for i in range(_SLOT):
                slots[slot + np.uint64(i)] = old[place + i]


class Known(NamedTuple):
    """What is known of tokens by their numbers. Those below len(units) are function words, with their units
    for each language, LANES of them in a word, so that a sum adds up several; `rows` tells where in `letters`
    the letters of a foreign token are counted.
    """

    units: Slots
    kinds: NDArray[np.uint8]
    sizes: NDArray[np.uint8]  # in characters
    rows: NDArray[np.int32]
    letters: NDArray[np.int16]


# What the tokens of a record tell of its language: tokens, those of digits, those beyond ASCII; characters,
# those of tokens that are no digits; the best language, its units, those of the second and of the language
# that is stated; the best one's words.
EVIDENCE = np.dtype(
    [(name, np.int64) for name in (
        "pieces", "digits", "wide", "characters", "letters", "best", "first", "second", "stated", "words",
    )]
)  # fmt: skip


@part
def _lane(words: Slots, number: Int) -> Int:
    """The units of a language."""
    return np.int64((words[number >> 2] >> np.uint64(16 * (number & 3))) & np.uint64(0xFFFF))


@allocating_kernel
def evidence(
    tokens: Tokens, mask: int, known: Known, languages: int, stated: Numbers, out: Rows, hits: Slots,
    letters: Numbers,
) -> None:  # fmt: skip
    """Counts the tokens in the fields of `mask` of each record; `hits` gets the units of all languages,
    `letters`, which are zeros before, the sums of `known.letters`.

    `text.language.detect_pieces` is the plain twin. `stated` is the number of a language, or -1.
    """
    words = np.int64(known.units.shape[0])
    # What is no function word stands in one place behind them, where everything has been seen.
    seen, met = np.full(words + 1, -1, np.int32), np.empty(words + 1, np.int32)
    p = 0
    for record in range(out.size):
        row = out[record]
        pieces = digits = wide = characters = digit_characters = different = np.int64(0)
        seen[words] = record
        while p < tokens.codes.size and tokens.codes[p] >> 3 == record:
            if (mask >> (tokens.codes[p] & 7)) & 1:
                begin = tokens.until[p - 1] if p > 0 else np.int64(0)
                pieces += tokens.until[p] - begin
                # Hardly a branch: which of the next tokens is a function word, no processor can guess.
                for i in range(begin, tokens.until[p]):
                    token = np.uint64(tokens.ids[i])
                    kind, size = np.int64(known.kinds[token]), np.int64(known.sizes[token])
                    characters += size
                    wide |= kind & WIDE
                    digits += kind & DIGITS
                    digit_characters += size * (kind & DIGITS)
                    if kind & FOREIGN:
                        for k in range(letters.shape[1]):
                            letters[record, k] += known.letters[known.rows[token], k]
                    place = min(np.int64(token), words)
                    met[different] = place
                    different += np.int64(seen[place] != record)
                    seen[place] = record
            p += 1
        for j in range(np.uint64(hits.shape[1])):
            total = np.uint64(0)
            for i in range(np.uint64(different)):
                total += known.units[np.uint64(met[i]), j]
            hits[record, j] = total
        own, best = hits[record], np.int64(0)
        first, second = np.int64(_lane(own, 0)), np.int64(0)
        for k in range(1, languages):
            units = np.int64(_lane(own, k))
            second = max(second, min(first, units))
            first = max(first, units)
        while _lane(own, best) != first:
            best += 1
        row.pieces, row.digits, row.wide, row.characters = pieces, digits, wide, characters
        row.letters = characters - digit_characters
        row.best, row.first, row.second = best, first, second
        row.stated = _lane(own, stated[record]) if stated[record] >= 0 else np.int64(-1)
        listed = np.int64(0)
        for i in range(different):
            listed += np.int64(_lane(known.units[met[i]], best) > 0)
        row.words = listed


@light_kernel
def weigh(
    weights: NDArray[np.float32], moves: NDArray[np.uint32], rows: NDArray[np.int64],
    features: NDArray[np.int64], shares: NDArray[np.float32], text: NDArray[np.uint8], ends: Numbers,
    out: NDArray[np.float32],
) -> None:  # fmt: skip
    """Adds up, for each text and class, the weights of the features that an automaton meets in the text.

    `text.langid.weighed` is the plain twin. `ends` says where in `text` each text ends, `shares` what so many
    meetings with a feature count.
    """
    counts, met = np.zeros(weights.shape[0], np.int32), np.empty(text.size, np.int64)
    states = np.empty(_TEXTS, np.int64)
    # Some texts at a time, a byte of each in turn: while the memory is asked for one, others go on.
    for first in range(0, ends.size, _TEXTS):
        texts, longest, begin = min(_TEXTS, ends.size - first), np.int64(0), np.int64(0)
        for t in range(first, first + texts):
            states[t - first] = 0
            longest = max(longest, ends[t] - (ends[t - 1] if t > 0 else np.int64(0)))
        for step in range(longest):
            begin = ends[first - 1] if first > 0 else np.int64(0)
            for t in range(texts):
                at = begin + step
                begin = ends[first + t]
                if at < begin:
                    state = np.int64(moves[rows[states[t]] + np.int64(text[at])])
                    states[t] = state
                    met[at] = features[state]
    at = np.int64(0)
    for t in range(ends.size):
        many = at
        for i in range(at, ends[t]):
            feature = met[i]
            if feature >= 0:
                if counts[feature] == 0:
                    met[many] = feature
                    many += 1
                counts[feature] += 1
        for i in range(at, many):
            feature = met[i]
            share, row = shares[counts[feature]], weights[np.uint64(feature)]
            counts[feature] = 0
            for j in range(out.shape[1]):
                out[t, np.uint64(j)] += share * row[np.uint64(j)]
        at = ends[t]


@kernel
def unknown(ids: Ids, until: Numbers, firsts: Numbers, which: Numbers, terms: Ids, out: Ids) -> int:
    """The tokens of records that have no term yet, each once, in `out`; gives their number."""
    n = 0
    for record in which:
        low = until[firsts[record] - 1] if firsts[record] > 0 else np.int64(0)
        high = until[firsts[record + 1] - 1] if firsts[record + 1] > 0 else np.int64(0)
        for i in range(low, high):
            if terms[ids[i]] == UNKNOWN:
                terms[ids[i]] = LOST
                out[n] = ids[i]
                n += 1
    return n


@kernel
def spelt(tokens: Ids, places: Numbers, names: Bytes, out: Bytes) -> None:
    """Writes the names of tokens, with a space after each."""
    to = 0
    for i in range(tokens.size):
        for j in range(places[tokens[i]], places[tokens[i] + 1]):
            out[to] = names[j]
            to += 1
        out[to] = 32
        to += 1


@kernel
def translated(ids: Ids, until: Numbers, firsts: Numbers, which: Numbers, terms: Ids, out: Ids) -> None:
    """Writes the terms of records' tokens."""
    for record in which:
        low = until[firsts[record] - 1] if firsts[record] > 0 else np.int64(0)
        high = until[firsts[record + 1] - 1] if firsts[record + 1] > 0 else np.int64(0)
        for i in range(low, high):
            out[i] = terms[ids[i]]
