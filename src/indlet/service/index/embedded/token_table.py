"""The tokens of records with their numbers, and their terms in each language.

A compiled kernel cuts the texts of many records into tokens, and numbers them in a table that lasts. Python
is asked once for each token and language what term it becomes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, count, islice
from typing import Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from indlet.kernels import analyse as k
from indlet.kernels.postings import LOST, RUN
from indlet.kernels.term_hash import SEED
from indlet.service.index.embedded.languages import (
    LETTER_COLUMNS,
    Judged,
    function_words,
    judged,
    letters_of,
)
from indlet.service.index.embedded.postings import COLUMNS, Names
from indlet.service.index.keys import ELEMENTS
from indlet.text import Analyzer, analyse
from indlet.text import language as judging

# Elements whose values facets are made of, the language first; their columns are -2, -3, -4.
_FACETS: Final = ("language", "type", "date")
# Elements that are neither, of which keys are made.
_OTHERS: Final = tuple(name for name in ELEMENTS if name not in COLUMNS)
NAMES: Final = (*COLUMNS, *_FACETS, *_OTHERS)
# How elements are known to a kernel: the first eight bytes of their names, the names' sizes, their columns,
# and how many of their values have keys.
_ELEMENTS: Final = (
    np.array([int.from_bytes(name[:8].encode(), "little") for name in NAMES], np.uint64),
    np.array([len(name) for name in NAMES]),
    np.array([*range(len(COLUMNS)), *range(-2, -2 - len(_FACETS), -1), *[-1 for _ in _OTHERS]]),
    np.array([ELEMENTS[name].most if name in ELEMENTS else 0 for name in NAMES]),
)

# Texts that are longer are judged by a sample.
_JUDGED: Final = 2 * judging.SAMPLE
# Tokens and terms that are remembered: a table starts again when it has more, which bounds its memory and
# costs no more than the misses of a larger one.
_MOST_TOKENS: Final = 1 << 17
_KEPT_ROOM: Final = 1 << 23  # bytes of metadata; room for more is let go

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CutTokens:
    """The tokens of records; for `until`, `codes` and `firsts` see `Words`, for the rest the kernel. `ids`,
    `sizes` and `whole` are good until the next records are cut.
    """

    ids: NDArray[np.int32]
    until: Numbers
    codes: Numbers
    sizes: Numbers
    firsts: Numbers
    spans: Numbers
    odd: NDArray[np.uint8]
    whole: Numbers
    whole_until: Numbers


class _Room(NamedTuple):
    """Room in which so many bytes of metadata are cut; see `CutTokens`."""

    bytes: int
    ids: NDArray[np.int32]
    until: Numbers
    codes: Numbers
    sizes: Numbers
    whole: Numbers
    value: NDArray[np.uint8]


def _room(size: int) -> _Room:
    # A token takes a separator; a value two quotation marks, and a comma or bracket.
    ids, parts = np.empty(size // 2 + 1, np.int32), size // 3 + 1
    until, codes, sizes = np.empty((3, parts), np.int64)
    whole, value = np.empty((parts, 3), np.int64), np.empty(k.RECORD + 32, np.uint8)
    return _Room(size, ids, until, codes, sizes, whole, value)


class TokenTable:
    """Tokens with their numbers, and their terms in each language."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._room: _Room | None = None
        self._begin()

    def _begin(self) -> None:
        words, units = function_words()
        self._units = units
        self._used = np.array([0, 0, SEED], np.int64)  # tokens, bytes of their names
        self._slots = np.empty(0, np.uint64)
        self._places = np.empty(1, np.int64)  # where their names begin, and after the last where it ends
        self._names = np.empty(0, np.uint8)
        self._kinds, self._widths = np.empty(0, np.uint8), np.empty(0, np.uint8)
        self._rows = np.empty(0, np.int32)  # of foreign tokens in `letters`
        self._letters = np.empty((0, LETTER_COLUMNS), np.int16)
        self._counted = 0  # tokens whose letters are counted
        self._maps: dict[str, NDArray[np.int32]] = {}
        self.runs = np.empty(0, np.int64)
        # Terms with their numbers, given as they come; what stands for none has the first.
        self._terms = defaultdict[str, int](count().__next__)
        self._ends = np.empty(1 << 12, np.int64)
        self._text = np.empty(1 << 15, np.uint8)
        self._longest = 0
        assert self._terms[analyse.LOST] == 0
        self._add([analyse.LOST])
        self._grow()
        # The first tokens are the function words, by whose numbers the kernel knows them.
        lines = [
            orjson.dumps({"title": [" ".join(words[at : at + 1000])]}) for at in range(0, len(words), 1000)
        ]
        self._cut(b"".join([*lines, bytes(16)]), list(map(len, lines)))
        assert self._used[0] == len(units)

    def names(self) -> Names:
        """The terms so far. Arrays are only ever added to, or replaced: these stay as they are."""
        return Names(self._terms, self._ends[: len(self._terms)], self._text, self._longest)

    def _grow(self) -> None:
        size = max(1 << 14, 2 * self._kinds.size)
        self._places = np.resize(self._places, size + 1)
        self._names = np.resize(self._names, 16 * size)
        self._kinds, self._widths = np.resize(self._kinds, size), np.resize(self._widths, size)
        self._rows = np.resize(self._rows, size)
        slots = np.zeros(2 * 4 * size, np.uint64)  # at most half of them are taken
        k.rehash(self._slots, slots)
        self._slots = slots

    def cut(self, metadata: bytes, sizes: Sequence[int]) -> CutTokens:
        """The tokens of metadata, records in JSON one after another; sixteen bytes follow the last."""
        if self._used[0] > _MOST_TOKENS or len(self._terms) > _MOST_TOKENS:
            self._begin()
        return self._cut(metadata, sizes)

    def _cut(self, metadata: bytes, sizes: Sequence[int]) -> CutTokens:
        records, room = len(sizes), self._room_for(len(metadata))
        firsts, spans = np.zeros(records + 1, np.int64), np.empty((records, 2 * len(_FACETS)), np.int64)
        odd, whole_until = np.zeros(records, np.uint8), np.zeros(records, np.int64)
        text, ends, done = np.frombuffer(metadata, np.uint8), np.cumsum(np.array(sizes, np.int64)), 0
        while True:
            done = k.read(
                text, ends, done, *_ELEMENTS, room.value, self._slots, self._places, self._names,
                self._kinds, self._widths, self._used, room.ids, room.until, room.codes, room.sizes, firsts,
                spans, odd, room.whole, whole_until,
            )  # fmt: skip
            if done == records:
                break
            self._grow()
        parts = int(firsts[-1])
        # What outlives the next call is copied: a view would keep all of the room.
        until = room.until[:parts].copy()
        return CutTokens(
            room.ids[: until[-1] if parts else 0], until, room.codes[:parts].copy(), room.sizes[:parts],
            firsts, spans, odd, room.whole, whole_until,
        )  # fmt: skip

    def _room_for(self, size: int) -> _Room:
        """Room to cut so many bytes of metadata; that for a block of usual size serves the next."""
        if size > _KEPT_ROOM:
            return _room(size)
        if self._room is None or self._room.bytes < size:
            self._room = _room(1 << size.bit_length())
        return self._room

    def judged(self, tokens: CutTokens, mask: int, stated: Sequence[int]) -> tuple[Judged, NDArray[np.bool_]]:
        """What the words of each record tell of its language, and which records are too long for that."""
        self._look_beyond_ascii()
        known = k.Known(self._units, self._kinds, self._widths, self._rows, self._letters)
        plainly = k.Tokens(tokens.ids, tokens.until, tokens.codes)
        sizes = (tokens.sizes + 1) * ((mask >> (tokens.codes & 7)) & 1)  # in bytes: never too small
        long = np.bincount(tokens.codes >> 3, sizes, tokens.odd.size) > _JUDGED + 1
        return judged(plainly, tokens.odd.size, mask, known, stated), long

    def _look_beyond_ascii(self) -> None:
        """Tells which of the new tokens beyond ASCII are digits, and counts the letters of foreign ones."""
        new = self._counted + np.flatnonzero(self._kinds[self._counted : self._used[0]] & k.WIDE)
        self._counted = int(self._used[0])
        if new.size:
            names = self._spelt(new.astype(np.int32))
            self._kinds[new] |= np.fromiter(map(str.isdigit, names), np.uint8, len(names)) * k.DIGITS
            foreign = (self._kinds[new] & k.FOREIGN) > 0
            letters = letters_of(compress(names, foreign.tolist()))
            self._rows[new[foreign]] = np.arange(len(self._letters), len(self._letters) + len(letters))
            self._letters = np.concatenate((self._letters, letters))

    def _spelt(self, tokens: NDArray[np.int32]) -> list[str]:
        sizes = self._places[tokens + 1] - self._places[tokens]
        room = np.empty(int(sizes.sum()) + tokens.size, np.uint8)
        k.spelt(tokens, self._places, self._names, room)
        return room[:-1].tobytes().decode().split(" ")

    def translate(self, language: str, tokens: CutTokens, which: Numbers, out: NDArray[np.int32]) -> None:
        """Writes the terms of the tokens of records in one language."""
        terms = self._map(language)
        new = np.empty(tokens.ids.size, np.int32)
        count = k.unknown(tokens.ids, tokens.until, tokens.firsts, which, terms, new)
        if count:
            self._resolve(language, terms, new[:count])
        k.translated(tokens.ids, tokens.until, tokens.firsts, which, terms, out)

    def _map(self, language: str) -> NDArray[np.int32]:
        found = self._maps.get(language)
        if found is None or found.size < self._kinds.size:
            grown = np.full(self._kinds.size, k.UNKNOWN, np.int32)
            if found is not None:
                grown[: found.size] = found
            self._maps[language] = found = grown
        return found

    def _resolve(self, language: str, terms: NDArray[np.int32], tokens: NDArray[np.int32]) -> None:
        """Fills in the terms of tokens in a language, and the new ones among the terms."""
        lexicon = self._analyzer.lexicon(language)
        names = self._spelt(tokens)
        made = lexicon.many(names)
        known, before = self._terms, len(self._terms)
        runs: list[int] = []
        # Only what goes beyond ASCII can become several terms.
        wide = np.flatnonzero(self._kinds[tokens] & k.WIDE).tolist()
        for place in wide:
            each = [known[term] for term in lexicon[names[place]].split() if term != analyse.LOST]
            made[place] = analyse.LOST
            if each:
                runs += [place, len(each), *each]
        values = np.fromiter(map(known.__getitem__, made), np.int32, len(made))
        values[values == 0] = LOST
        at = 0
        while at < len(runs):
            place, count = runs[at : at + 2]
            values[place] = runs[at + 2] if count == 1 else RUN - self.runs.size
            if count > 1:
                self.runs = np.append(self.runs, np.array(runs[at + 1 : at + 2 + count], np.int64))
            at += 2 + count
        terms[tokens] = values
        if new := len(known) - before:
            self._add([*islice(reversed(known), new)][::-1])

    def _add(self, new: list[str]) -> None:
        """Notes new terms, which have numbers already."""
        end = len(self._terms)
        begin = end - len(new)
        low = int(self._ends[begin - 1]) if begin else 0
        text = "".join(new).encode()
        while self._ends.size < end:
            self._ends = np.resize(self._ends, 2 * self._ends.size)
        while self._text.size < low + len(text):
            self._text = np.resize(self._text, 2 * self._text.size)
        self._text[low : low + len(text)] = np.frombuffer(text, np.uint8)
        ascii_only = len(text) == sum(map(len, new))
        sizes = list(map(len, new if ascii_only else [term.encode() for term in new]))
        self._ends[begin:end] = low + np.cumsum(sizes)
        self._longest = max(self._longest, *sizes)
