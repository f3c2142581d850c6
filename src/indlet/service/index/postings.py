"""From vectors and numbered words to posting lists, for a whole batch of records at once.

A record's terms come in one of two ways. A packed vector has no mark-up, so a kernel can read the joined
bytes of many and number the terms by hashing. Metadata that was analysed here comes as `Words`, whose terms
have numbers already. Either way no Python object exists for a term or a posting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indlet.model import FIELD_MARKS
from indlet.service.index import tokens
from indlet.service.index.codec import PADDING, encode, room
from indlet.service.index.compiled import kernel, part
from indlet.service.index.segment import Array
from indlet.service.index.tokens import spelling

# The fields by their columns; what a record is searched by comes after them.
COLUMNS: Final = tuple(sorted(FIELD_MARKS))
BODY = 6
assert len(COLUMNS) == BODY
_MARKS: Final = np.frombuffer("".join(FIELD_MARKS[name] for name in COLUMNS).encode(), np.uint8)
# Before a field's term stand so many bytes.
_MARK = 2
assert _MARKS.size == _MARK * BODY
# What stands for a token that is no term; at or below RUN, for one that is several.
LOST, RUN = -1, -3

# A row for each term, half a line of the processor's cache: its first sixteen bytes; where its name stands
# and, in the lowest bits, its size; its last posting.
_ROW = 4
_LOW, _HIGH, _NAME, _LATEST = range(_ROW)
_SIZE_BITS = 24
# A term of more bytes is none.
_LONGEST = (1 << _SIZE_BITS) - 1
# Postings of a large batch.
_MANY: Final = 1 << 24
# What is in use: terms, postings, bytes of names. And what the next document needs: of the first two, of the
# third, and for its words.
_TERMS, _POSTINGS, _BYTES, _MORE, _MORE_BYTES, _WORDS, _AHEAD = range(7)


class Facets(NamedTuple):
    """Of records, in their order: types and languages, those of each joined by zeros; dates as numbers.

    Not a tuple for each record: a million containers would set the garbage collector going.
    """

    types: list[str]
    languages: list[str]
    dates: list[int]

    def add(self, type: str, language: str, date: int) -> None:
        self.types.append(type)
        self.languages.append(language)
        self.dates.append(date)


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """Terms by their numbers: the bytes of all, where each ends in them. `lot` is whose numbers they are."""

    lot: object
    ends: Array
    text: Array
    longest: int


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The fields of records, token by token: parts of one field each, those of a record together.

    `terms` holds for each token the number of its term, or LOST, or RUN less a place in `runs`, where the
    number of its terms stands before them. `until` says where each part ends, `codes` its record and, in the
    lowest three bits, its column; `firsts` the first part of each record, and after the last how many there
    are. `own` marks records that are searched by their fields: by the columns in `searched`, a bit for each.
    `facets` are those of the records.
    """

    terms: NDArray[np.int32]
    until: Array
    codes: Array
    firsts: Array
    runs: Array
    own: NDArray[np.uint8]
    searched: int
    names: Names
    facets: Facets


@dataclass(frozen=True, slots=True, eq=False)
class Inverted:
    """A batch's postings: `of` and `freqs` as they came, `stream` as they are stored."""

    of: Array
    freqs: Array
    begins: Array
    order: Array
    starts: Array
    stream: Array
    bounds: Array
    names: Array
    name_ends: Array
    lengths: Array
    norms: Array

    def cursors(self) -> Array:
        """For each term, by the number that it came by, where its list begins."""
        out = np.empty(int(self.order.max(initial=-1)) + 1, np.int64)
        out[self.order] = self.starts[:-1]
        return out


def _none(documents: int) -> Words:
    nothing = np.empty(0, np.int64)
    return Words(
        np.empty(0, np.int32), nothing, nothing, np.zeros(documents + 1, np.int64), nothing,
        np.zeros(documents, np.uint8), 0, Names(None, nothing, np.empty(0, np.uint8), 0),
        Facets([], [], []),
    )  # fmt: skip


class Postings:
    """The postings of documents, as they come; for one thread at a time.

    What has room for one batch has room for the next: `clear` keeps that.
    """

    def __init__(self) -> None:
        self.documents = 0
        self._used = np.zeros(7, np.int64)
        self._rows = np.empty(_ROW << 12, np.int64)
        self._slots = np.zeros(2 << 12, np.uint64)  # at most half of them are taken
        self._names = np.empty(1 << 16, np.uint8)
        self._of, self._freqs = np.empty(1 << 16, np.uint32), np.empty(1 << 16, np.uint32)
        self._begins = np.zeros(1 << 10, np.int64)
        self._norms, self._lengths = np.empty(1 << 10, np.float64), np.empty(1 << 10, np.int64)
        self._lot: object = None
        # Of each numbered term, for each column: the number that it has here, and its last posting.
        self._known = np.empty(0, np.int64)
        self._counts = np.zeros(1 << 10, np.int64)

    def clear(self) -> None:
        """Forgets all documents."""
        self.documents = 0
        self._used[:] = 0
        self._slots[:] = 0
        self._known[:] = -1

    @property
    def weight(self) -> int:
        """Bytes of what is held."""
        return int(8 * self._used[_POSTINGS] + 64 * self._used[_TERMS] + self._used[_BYTES])

    def add(
        self,
        vectors: Cut,
        lengths: Array,
        words: Words | None = None,
        which: Array | None = None,
    ) -> None:
        """Takes documents: their vectors, their lengths, and what `words` say of them or of the records
        `which`.
        """
        size = lengths.size
        if words is None:
            words, which = _none(size), None
        if which is None:
            which = np.arange(size, dtype=np.int64)
        self._meet(words.names)
        end = self.documents + size
        self._begins = _larger(self._begins, end + 1)
        self._norms = _larger(self._norms, end)
        self._lengths = _larger(self._lengths, end)
        self._lengths[self.documents : end] = lengths
        names, w = words.names, 0
        while True:
            w = int(
                _gather(
                    *vectors, which, words.terms, words.until, words.codes, words.firsts, words.runs,
                    words.own, words.searched, names.text, names.ends, names.longest, _MARKS, self._known,
                    self._rows, self._slots, self._names, self._of, self._freqs, self._begins, self._norms,
                    self._lengths, self._used, self._counts, w, self.documents,
                )
            )  # fmt: skip
            if w == size:
                break
            self._grow()
        self.documents = end

    def _meet(self, names: Names) -> None:
        """Makes room for what is known of numbered terms; of others than those before, nothing is."""
        if names.lot is not self._lot:
            self._lot, self._known = names.lot, np.empty(0, np.int64)
        before, wanted = self._known.size, 8 * names.ends.size
        if before < wanted:
            self._known = _larger(self._known, wanted)
            self._known[before:] = -1

    def _grow(self) -> None:
        terms, postings, filled, more, more_bytes, words = self._used[:6].tolist()
        # Where there are many there will be more: room that is not used costs nothing, to move them does.
        least = max(postings + more, _MANY if postings > _MANY >> 4 else 0)
        self._of, self._freqs = _larger(self._of, least), _larger(self._freqs, least)
        self._names = _larger(self._names, filled + more_bytes)
        self._counts = _larger(self._counts, words + 1, empty=True)
        if self._rows.size < _ROW * (terms + more):
            self._rows = _larger(self._rows, _ROW * (terms + more))
            self._slots = np.zeros(2 * (self._rows.size // _ROW), np.uint64)
            _rehash(self._rows, terms, self._names, self._slots)

    def inverted(self, alive: Array | None = None) -> Inverted:
        """The posting lists of all documents, or of those (ascending) that are alive."""
        terms, postings, filled = self._used[:3].tolist()
        of, freqs, begins = self._of[:postings], self._freqs[:postings], self._begins[: self.documents + 1]
        begins[self.documents] = postings
        places = self._rows[: _ROW * terms].reshape(terms, _ROW)[:, _NAME]
        names, widths = places >> _SIZE_BITS, places & _LONGEST
        norms, lengths = self._norms[: self.documents], self._lengths[: self.documents]
        if alive is not None:
            sizes = np.diff(begins)
            left = np.zeros(self.documents, bool)
            left[alive] = True
            kept = np.repeat(left, sizes)
            of, freqs, norms, lengths = of[kept], freqs[kept], norms[alive], lengths[alive]
            begins = np.concatenate(([0], np.cumsum(sizes[alive])))
        df = np.zeros(terms, np.int64)
        _frequencies(of, df)
        present = np.flatnonzero(df)
        text = self._names[:filled]
        order = present[tokens.ordered(text, names[present], widths[present])]
        starts = np.zeros(order.size + 1, np.int64)
        np.cumsum(df[order], out=starts[1:])
        cursors = np.empty(terms, np.int64)
        cursors[order] = starts[:-1]
        docs, counts = np.empty(of.size, np.uint32), np.empty(of.size, np.uint32)
        tokens.scatter(of, freqs, begins, cursors, docs, counts)
        shown = np.clip(lengths, 0, 0xFFFFFFFF).astype(np.uint32)
        stream = np.empty(int(room(starts)) + PADDING, np.uint8)
        ends = np.zeros(order.size, np.int64)
        used = int(encode(docs, counts, starts, shown, stream, ends))
        stream[used : used + PADDING] = 0
        bounds = np.concatenate(([0], ends[:-1]))[: order.size]
        blob, name_ends = np.empty(int(widths[order].sum()), np.uint8), np.empty(order.size, np.int64)
        tokens.copied(text, names, widths, order, blob, name_ends)
        stream = stream[: used + PADDING]
        return Inverted(
            of, freqs, begins, order, starts, stream, bounds, blob, name_ends, shown, norms.copy()
        )


class Cut(NamedTuple):
    """Packed vectors, two for each document (its own and that of its fields), cut into terms.

    Of each term: where it stands in `text` and its size, its first sixteen bytes, its hash, its frequency.
    `until` says where each vector ends, `squares` is the sum of (1 + ln f)² over each.
    """

    text: Array
    places: Array
    first: Array
    second: Array
    hashes: Array
    frequencies: Array
    until: Array
    squares: Array


def cut(vectors: Sequence[bytes]) -> Cut:
    sizes = np.fromiter(map(len, vectors), np.int64, len(vectors))
    text = np.frombuffer(bytearray().join([*vectors, bytes(16)]), np.uint8)
    most = text.size // 2 + 1  # a term takes two bytes at least
    found = Cut(
        text, np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64),
        np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(sizes.size, np.int64),
        np.empty(sizes.size, np.float64),
    )  # fmt: skip
    _scan(np.cumsum(sizes), *found)
    return found


def _power(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _larger(array: Any, least: int, empty: bool = False) -> Any:
    """The array with room for so many items, in steps of doubling; `empty` gives zeros alone."""
    if array.size >= least:
        return array
    if empty:
        return np.zeros(_power(least), array.dtype)
    out = np.empty(_power(least), array.dtype)
    out[: array.size] = array
    return out


@kernel
def _scan(
    ends: Any, text: Any, places: Any, firsts: Any, seconds: Any, hashes: Any, frequencies: Any, until: Any,
    squares: Any,
) -> None:  # fmt: skip
    """Cuts packed vectors into their terms, see `Cut`; lines in their order."""
    at = np.int64(0)
    n = np.int64(0)
    for v in range(ends.size):
        end = ends[v]
        total = 0.0
        while at < end:
            frequency = np.int64(0)
            while at < end and text[at] != 32 and text[at] != 10:
                frequency = min(frequency * 10 + np.int64(text[at]) - 48, np.int64(0x7FFFFFFF))
                at += 1
            before = n
            while at < end and text[at] == 32:
                at += 1
                low = at
                while at < end and text[at] != 32 and text[at] != 10:
                    at += 1
                size = at - low
                if size == 0 or size > _LONGEST or frequency < 1:
                    continue
                first, second, hashes[n] = spelling(text, low, size)
                places[n] = low << _SIZE_BITS | size
                firsts[n] = np.int64(first)
                seconds[n] = np.int64(second)
                frequencies[n] = frequency
                n += 1
            if n > before:
                weight = 1.0 + math.log(float(frequency))
                total += (n - before) * (weight * weight)
            while at < end and text[at] != 10:
                at += 1
            at += 1
        at = end
        until[v] = n
        squares[v] = total


@kernel
def _rehash(rows: Any, terms: Any, names: Any, slots: Any) -> None:
    """Puts all terms into empty slots.

    A slot holds the upper half of a hash and the number of a term plus one.
    """
    last = np.uint64(slots.size - 1)
    for term in range(terms):
        place = rows[_ROW * term + _NAME]
        _, _, value = spelling(names, place >> _SIZE_BITS, place & _LONGEST)
        slot = value & last
        while slots[slot] != np.uint64(0):
            slot = (slot + np.uint64(1)) & last
        slots[slot] = value & np.uint64(0xFFFFFFFF00000000) | np.uint64(term + 1)


@part
def _number(
    text: Any, low: Any, size: Any, first: Any, second: Any, value: Any, rows: Any, slots: Any, names: Any,
    used: Any,
) -> Any:  # fmt: skip
    """The number of the term that stands in `text`, which gets one if it has none."""
    upper, last, one = np.uint64(0xFFFFFFFF00000000), np.uint64(slots.size - 1), np.uint64(1)
    slot = value & last
    held = slots[slot]
    while held != np.uint64(0):
        if held & upper == value & upper:
            term = (held & ~upper) - one
            row = term * np.uint64(_ROW)
            place = rows[row + np.uint64(_NAME)]
            if (
                rows[row + np.uint64(_LOW)] == first
                and rows[row + np.uint64(_HIGH)] == second
                and place & _LONGEST == size
            ):
                i: Any = np.int64(16)
                while i < size and text[low + i] == names[(place >> _SIZE_BITS) + i]:
                    i += 1
                if i >= size:
                    return term
        slot = (slot + one) & last
        held = slots[slot]
    term = np.uint64(used[_TERMS])
    slots[slot] = value & upper | (term + one)
    row = term * np.uint64(_ROW)
    rows[row + np.uint64(_LOW)] = first
    rows[row + np.uint64(_HIGH)] = second
    rows[row + np.uint64(_NAME)] = used[_BYTES] << _SIZE_BITS | size
    rows[row + np.uint64(_LATEST)] = -1
    for i in range(size):
        names[used[_BYTES] + i] = text[low + i]
    used[_BYTES] += size
    used[_TERMS] += 1
    return term


@kernel
def _count(
    low: Any, high: Any, text: Any, places: Any, firsts: Any, seconds: Any, hashes: Any, frequencies: Any,
    rows: Any, slots: Any, names: Any, used: Any, begin: Any, n: Any, of: Any, freqs: Any,
) -> Any:  # fmt: skip
    """Counts terms of a document as postings from n on; gives the new number of postings.

    A term that a malformed vector names twice counts once, with both frequencies.
    """
    # A look ahead at all of them, so that the misses of the processor's cache overlap.
    last_slot, ahead = np.uint64(slots.size - 1), np.uint64(0)
    for k in range(low, high):
        held = slots[hashes[k] & last_slot] & np.uint64(0xFFFFFFFF)
        ahead ^= np.uint64(rows[(held - (held != np.uint64(0))) * np.uint64(_ROW)])
    used[_AHEAD] = np.int64(ahead)
    for k in range(low, high):
        term = _number(
            text, places[k] >> _SIZE_BITS, places[k] & _LONGEST, firsts[k], seconds[k], hashes[k], rows,
            slots, names, used,
        )  # fmt: skip
        last = term * np.uint64(_ROW) + np.uint64(_LATEST)
        latest = rows[last]
        if latest >= begin:
            freqs[latest] += np.uint32(frequencies[k])
            continue
        rows[last] = n
        of[n] = term
        freqs[n] = frequencies[k]
        n += 1
    return n


@kernel
def _frequencies(of: Any, df: Any) -> None:
    for i in range(of.size):
        df[of[i]] += 1


@kernel
def _named(
    text: Any, low: Any, size: Any, marks: Any, column: Any, rows: Any, slots: Any, names: Any, used: Any
) -> Any:
    """The number of a term of a field, or of the text, by its name."""
    # It is spelt out where new names go; one that is known is written over by the next.
    to = used[_BYTES]
    if column < BODY:
        for i in range(_MARK):
            names[to + i] = marks[_MARK * column + i]
        to += _MARK
    for i in range(size):
        names[to + i] = text[low + i]
    begin = used[_BYTES]
    size = to + size - begin
    first, second, value = spelling(names, begin, size)
    return np.int64(
        _number(names, begin, size, np.int64(first), np.int64(second), value, rows, slots, names, used)
    )


@kernel
def _counted(
    low: Any, high: Any, body: Any, terms: Any, until: Any, codes: Any, runs: Any, searched: Any, spelt: Any,
    spelt_ends: Any, marks: Any, known: Any, rows: Any, slots: Any, names: Any, used: Any, begin: Any, n: Any,
    of: Any, freqs: Any,
) -> Any:  # fmt: skip
    """Counts the words of a document's parts as postings from n on: each in its column, or, for `body`, those
    of the searched columns as one text. Gives their number and the new number of postings.
    """
    length = np.int64(0)
    for p in range(low, high):
        column = codes[p] & 7
        if body:
            if not (searched >> column) & 1:
                continue
            column = np.int64(BODY)
        for i in range(until[p - 1] if p > 0 else np.int64(0), until[p]):
            word = np.int64(terms[i])
            k, more = np.int64(0), np.int64(1)
            if word <= RUN:
                k = RUN - word + 1
                more = runs[k - 1]
            elif word < 0:
                continue
            length += more
            for j in range(k, k + more):
                if k > 0:
                    word = runs[j]
                at = np.uint64(8 * word + column)
                held = known[at]
                if held < 0:
                    place = spelt_ends[word - 1] if word > 0 else np.int64(0)
                    term = _named(
                        spelt, place, spelt_ends[word] - place, marks, column, rows, slots, names, used
                    )
                    held = term << 32
                elif held & 0xFFFFFFFF >= begin:
                    freqs[np.uint64(held & 0xFFFFFFFF)] += np.uint32(1)
                    continue
                known[at] = (held >> 32) << 32 | n
                of[n] = held >> 32
                freqs[n] = 1
                n += 1
    return length, n


@part
def _squares(freqs: Any, begin: Any, end: Any, counts: Any) -> Any:
    """The sum of (1 + ln f)² over postings, by ascending frequency, as `_scan` has it."""
    highest = np.int64(0)
    for i in range(begin, end):
        counts[freqs[i]] += 1
        highest = max(highest, np.int64(freqs[i]))
    squares = 0.0
    for frequency in range(1, highest + 1):
        if counts[frequency]:
            weight = 1.0 + math.log(float(frequency))
            squares += counts[frequency] * (weight * weight)
            counts[frequency] = 0
    return squares


@kernel
def _gather(
    text: Any, places: Any, cut_firsts: Any, seconds: Any, hashes: Any, frequencies: Any, cut_until: Any,
    squares: Any, which: Any,
    terms: Any, until: Any, codes: Any, firsts: Any, runs: Any, own: Any, searched: Any,
    spelt: Any, spelt_ends: Any, longest: Any, marks: Any, known: Any,
    rows: Any, slots: Any, names: Any, of: Any, freqs: Any, begins: Any, norms: Any, lengths: Any, used: Any,
    counts: Any, w: Any, documents: Any,
) -> Any:  # fmt: skip
    """The postings of documents, from the w-th on. Gives the first that was not done, for want of room.

    Document w has two vectors of a `Cut`, and what the words say of which[w]. Its postings begin at
    begins[documents + w].
    """
    while w < which.size:
        record = which[w]
        low, high = firsts[record], firsts[record + 1]
        more = np.int64(0)
        for p in range(low, high):
            for i in range(until[p - 1] if p > 0 else np.int64(0), until[p]):
                more += runs[RUN - terms[i]] if terms[i] <= RUN else 1
        start = cut_until[2 * w - 1] if w > 0 else np.int64(0)
        middle, stop = cut_until[2 * w], cut_until[2 * w + 1]
        size = np.int64(0)
        for k in range(start, stop):
            size += places[k] & _LONGEST
        used[_WORDS] = more
        used[_MORE] = stop - start + 2 * more + 1
        used[_MORE_BYTES] = size + 2 * more * (longest + _MARK) + 32
        if (
            _ROW * (used[_TERMS] + used[_MORE]) > rows.size
            or used[_POSTINGS] + used[_MORE] > of.size
            or used[_BYTES] + used[_MORE_BYTES] > names.size
            or more >= counts.size
        ):
            return w
        begin = n = used[_POSTINGS]
        begins[documents + w] = begin
        # The document's own terms come first: positions follow their order.
        n = _count(
            start, middle, text, places, cut_firsts, seconds, hashes, frequencies, rows, slots, names, used,
            begin, n, of, freqs,
        )  # fmt: skip
        total = squares[2 * w]
        if own[record]:
            length, n = _counted(
                low, high, True, terms, until, codes, runs, searched, spelt, spelt_ends, marks, known, rows,
                slots, names, used, begin, n, of, freqs,
            )  # fmt: skip
            lengths[documents + w] = length
            total = _squares(freqs, begin, n, counts)
        norms[documents + w] = math.sqrt(total)
        _, n = _counted(
            low, high, False, terms, until, codes, runs, searched, spelt, spelt_ends, marks, known, rows,
            slots, names, used, begin, n, of, freqs,
        )  # fmt: skip
        n = _count(
            middle, stop, text, places, cut_firsts, seconds, hashes, frequencies, rows, slots, names, used,
            begin, n, of, freqs,
        )  # fmt: skip
        used[_POSTINGS] = n
        w += 1
    return w
