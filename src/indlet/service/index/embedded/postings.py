"""From vectors and numbered words to posting lists, for a whole batch of records at once.

A record's terms come in one of two ways. A packed vector has no mark-up, so a kernel can read the joined
bytes of many and number the terms by hashing. Metadata that was analysed here comes as `Words`, whose terms
have numbers already. Either way no Python object exists for a term or a posting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from indlet.kernels import postings as k
from indlet.kernels import term_hash
from indlet.kernels.codec import PADDING, encode, room
from indlet.kernels.term_hash import SEED
from indlet.model import FIELD_MARKS
from indlet.service.index.embedded.array_file import Array

# The fields by their columns.
COLUMNS: Final = tuple(sorted(FIELD_MARKS))
assert len(COLUMNS) == k.BODY
_MARKS: Final = np.frombuffer("".join(FIELD_MARKS[name] for name in COLUMNS).encode(), np.uint8)
assert _MARKS.size == k.MARK * k.BODY
# Postings of a large batch; of one that two threads turn into lists.
_MANY: Final = 1 << 24
_FOR_TWO: Final = 1 << 16

T = TypeVar("T")


class Facets(NamedTuple):
    """Of records, in their order: types and languages, those of each joined by zeros; dates as numbers.

    Not a tuple for each record: a million containers would set the garbage collector going.
    """

    types: list[str]
    languages: list[str]
    dates: list[int]


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
    `facets` are those of the records, `fields` packed vectors of their keys.
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
    fields: Sequence[bytes]


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


def cursors(order: Array, starts: Array) -> Array:
    """For each term, by the number that it came by, where its list begins."""
    out = np.empty(int(order.max(initial=-1)) + 1, np.int64)
    out[order] = starts[:-1]
    return out


def _none(documents: int) -> Words:
    nothing = np.empty(0, np.int64)
    return Words(
        np.empty(0, np.int32), nothing, nothing, np.zeros(documents + 1, np.int64), nothing,
        np.zeros(documents, np.uint8), 0, Names(None, nothing, np.empty(0, np.uint8), 0),
        Facets([], [], []), (),
    )  # fmt: skip


class Postings:
    """The postings of documents, as they come; for one thread at a time.

    What has room for one batch has room for the next: `clear` keeps that.
    """

    def __init__(self) -> None:
        self.documents = 0
        self._used = np.array([0] * 7 + [SEED], np.int64)
        self._rows = np.empty(k.ROW << 12, np.int64)
        self._slots = np.zeros(2 << 12, np.uint64)  # at most half of them are taken
        self._names = np.empty(1 << 16, np.uint8)
        self._of, self._freqs = np.empty(1 << 16, np.uint32), np.empty(1 << 16, np.uint32)
        self._begins = np.zeros(1 << 10, np.int64)
        self._norms, self._lengths = np.empty(1 << 10, np.float64), np.empty(1 << 10, np.int64)
        self._lot: object = None
        # Of each numbered term, for each column: the number that it has here, and its last posting.
        self._known = np.empty(0, np.int64)
        self._counts = np.zeros(1 << 10, np.int64)
        self._room = _room_to_cut(0, 0)

    def clear(self) -> None:
        """Forgets all documents."""
        self.documents = 0
        self._used[:-1] = 0
        self._slots[:] = 0
        self._known[:] = -1

    @property
    def weight(self) -> int:
        """Bytes of what is held."""
        return int(8 * self._used[k.POSTINGS] + 64 * self._used[k.TERMS] + self._used[k.BYTES])

    def add(
        self,
        vectors: Sequence[bytes],
        lengths: Array,
        words: Words | None = None,
        which: Array | None = None,
    ) -> None:
        """Takes documents: their packed vectors, two for each (its own and that of its fields), their
        lengths, and what `words` say of them or of the records `which`.
        """
        size, found = lengths.size, self._cut(vectors)
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
                k.gather(
                    *found, which, words.terms, words.until, words.codes, words.firsts, words.runs,
                    words.own, words.searched, names.text, names.ends, names.longest, _MARKS, self._known,
                    self._rows, self._slots, self._names, self._of, self._freqs, self._begins, self._norms,
                    self._lengths, self._used, self._counts, w, self.documents,
                )
            )  # fmt: skip
            if w == size:
                break
            self._grow()
        self.documents = end

    def _cut(self, vectors: Sequence[bytes]) -> Cut:
        sizes = np.fromiter(map(len, vectors), np.int64, len(vectors))
        text = np.frombuffer(bytearray().join([*vectors, bytes(16)]), np.uint8)
        most = text.size // 2 + 1  # a term takes two bytes at least
        if self._room.places.size < most or self._room.until.size < sizes.size:
            self._room = _room_to_cut(_power(most), _power(sizes.size))
        found = self._room._replace(text=text)
        k.scan(np.cumsum(sizes), *found, SEED)
        return found

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
        if self._rows.size < k.ROW * (terms + more):
            self._rows = _larger(self._rows, k.ROW * (terms + more))
            self._slots = np.zeros(2 * (self._rows.size // k.ROW), np.uint64)
            k.rehash(self._rows, terms, self._names, self._slots, SEED)

    def inverted(self, alive: Array | None = None) -> Inverted:
        """The posting lists of all documents, or of those (ascending) that are alive."""
        terms, postings, filled = self._used[:3].tolist()
        of, freqs, begins = self._of[:postings], self._freqs[:postings], self._begins[: self.documents + 1]
        begins[self.documents] = postings
        places = self._rows[: k.ROW * terms].reshape(terms, k.ROW)[:, k.NAME]
        names, widths = places >> k.SIZE_BITS, places & k.LONGEST
        norms, lengths = self._norms[: self.documents], self._lengths[: self.documents]
        if alive is not None:
            sizes = np.diff(begins)
            left = np.zeros(self.documents, bool)
            left[alive] = True
            kept = np.repeat(left, sizes)
            of, freqs, norms, lengths = of[kept], freqs[kept], norms[alive], lengths[alive]
            begins = np.concatenate(([0], np.cumsum(sizes[alive])))
        halves = 2 if of.size >= _FOR_TWO else 1
        parts = [(begins.size - 1) * part // halves for part in range(halves + 1)]

        def counted(low: int, high: int) -> Array:
            df = np.zeros(terms, np.int64)
            k.frequencies(of[begins[low] : begins[high]], df)
            return df

        each = _at_once(counted, parts)
        df = sum(each[1:], each[0])
        present = np.flatnonzero(df)
        text = self._names[:filled]
        order = present[term_hash.ordered(text, names[present], widths[present])]
        starts = np.zeros(order.size + 1, np.int64)
        np.cumsum(df[order], out=starts[1:])
        docs, counts = np.empty(of.size, np.uint32), np.empty(of.size, np.uint32)

        def scattered(low: int, high: int) -> None:
            to = cursors(order, starts)
            if low > 0:
                to += each[0][: to.size]
            term_hash.scatter(of, freqs, begins, low, high, to, docs, counts)

        _at_once(scattered, parts)
        shown = np.clip(lengths, 0, 0xFFFFFFFF).astype(np.uint32)

        def encoded(low: int, high: int) -> tuple[Array, Array]:
            own = starts[low : high + 1]
            out, ends = np.empty(int(room(own)), np.uint8), np.zeros(high - low, np.int64)
            return out[: int(encode(docs, counts, own, shown, out, ends))], ends

        shares = [int(np.searchsorted(starts, of.size * part // halves)) for part in range(halves)]
        streams, ends_of = zip(*_at_once(encoded, [*shares, order.size]), strict=True)
        stream = np.concatenate([*streams, np.zeros(PADDING, np.uint8)])
        shifts = np.cumsum([0, *(part.size for part in streams)])
        ends = np.concatenate([part + shift for part, shift in zip(ends_of, shifts[:-1], strict=True)])
        bounds = np.concatenate(([0], ends[:-1]))[: order.size]
        blob, name_ends = np.empty(int(widths[order].sum()), np.uint8), np.empty(order.size, np.int64)
        term_hash.copied(text, names, widths, order, blob, name_ends)
        return Inverted(
            of, freqs, begins, order, starts, stream, bounds, blob, name_ends, shown, norms.copy()
        )


class Cut(NamedTuple):
    """Packed vectors, cut into terms.

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


def _room_to_cut(terms: int, vectors: int) -> Cut:
    return Cut(
        np.empty(0, np.uint8), np.empty(terms, np.int64), np.empty(terms, np.int64),
        np.empty(terms, np.int64), np.empty(terms, np.uint64), np.empty(terms, np.int64),
        np.empty(vectors, np.int64), np.empty(vectors, np.float64),
    )  # fmt: skip


def _at_once(work: Callable[[int, int], T], bounds: Sequence[int]) -> list[T]:
    """What some work gives for each part between two bounds; kernels leave the interpreter to the others."""
    first, *rest = pairwise(bounds)
    if not rest:
        return [work(*first)]
    with ThreadPoolExecutor(len(rest)) as others:
        waiting = [others.submit(work, *part) for part in rest]
        return [work(*first), *(one.result() for one in waiting)]


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
