"""The metadata of many records analysed at once: what `Analyzer` gives, term for term, but sooner.

The texts of a batch are cut into tokens by a compiled kernel, which numbers them in a table that lasts.
Python is asked once for each token and language what term it becomes; after that a record is numbers, and
goes to the index as such. What the kernels do not do (soft hyphens, huge records and tokens, positions,
pruning) the analyser does as ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, count, islice
from operator import not_
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

from indlet.kernels import analyse as k
from indlet.kernels import dates as plain_dates
from indlet.kernels.postings import LOST, RUN
from indlet.kernels.term_hash import SEED
from indlet.memo import remembered
from indlet.model import Stored
from indlet.service.index.dates import date_number
from indlet.service.index.described import described
from indlet.service.index.embedded.batch import noted
from indlet.service.index.embedded.languages import (
    LETTER_COLUMNS,
    Judged,
    detected,
    first_stated,
    first_told,
    function_words,
    judged,
    letters_of,
    modelled,
    told_by,
    values_of,
)
from indlet.service.index.embedded.postings import COLUMNS, Facets, Names, Words
from indlet.service.index.embedded.record_keys import RecordKeys, sliced
from indlet.service.index.keys import ELEMENTS
from indlet.text import FIELDS, LANGUAGES, SEARCHED, Analyzer, analyse, searched
from indlet.text import language as judging

# The columns of what is searched where a record has no vector, and of all, a bit for each.
_SEARCHED: Final = sum(1 << COLUMNS.index(name) for name in SEARCHED)
_ALL: Final = (1 << len(COLUMNS)) - 1
# Elements whose values facets are made of, the language first; their columns are -2, -3, -4.
_FACETS: Final = ("language", "type", "date")
# Elements that are neither, of which keys are made.
_OTHERS: Final = tuple(name for name in ELEMENTS if name not in COLUMNS)
_NAMES: Final = (*COLUMNS, *_FACETS, *_OTHERS)
# How elements are known to a kernel: the first eight bytes of their names, the names' sizes, their columns,
# and how many of their values have keys.
_ELEMENTS: Final = (
    np.array([int.from_bytes(name[:8].encode(), "little") for name in _NAMES], np.uint64),
    np.array([len(name) for name in _NAMES]),
    np.array([*range(len(COLUMNS)), *range(-2, -2 - len(_FACETS), -1), *[-1 for _ in _OTHERS]]),
    np.array([ELEMENTS[name].most if name in ELEMENTS else 0 for name in _NAMES]),
)

# Texts that are longer are judged by a sample.
_JUDGED: Final = 2 * judging.SAMPLE
# Tokens and terms that are remembered: a table starts again when it has more, which bounds its memory and
# costs no more than the misses of a larger one.
_TOKENS: Final = 1 << 17

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens of records; for `until`, `codes` and `firsts` see `Words`, for the rest the kernel."""

    ids: NDArray[np.int32]
    until: Numbers
    codes: Numbers
    sizes: Numbers
    firsts: Numbers
    spans: Numbers
    odd: NDArray[np.uint8]
    whole: Numbers
    whole_until: Numbers


class Analyses:
    """The analyses of one analyser, for one thread. Keep it: it is fast because it remembers."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self._keys = RecordKeys(_NAMES)

    @cached_property
    def _table(self) -> _Table:
        return _Table(self.analyzer)

    def one_by_one(self, changes: Sequence[Stored]) -> list[Stored]:
        """Changes with their vectors and the terms of their fields, which are made here and kept in the index
        alone."""
        return described(self.analyzer, changes)

    def together(self, changes: Sequence[Stored]) -> tuple[list[Stored], Words]:
        """The same for many, most of it as words."""
        policy = self.analyzer.policy
        if policy.positions or policy.prune is not None or policy.lead is not None:
            changes = [self.analyzer.completed(stored) for stored in changes]
        table = self._table
        whole = b"".join([*(stored.metadata for stored in changes), bytes(16)])
        tokens = table.cut(whole, [len(stored.metadata) for stored in changes])
        own = [int(stored.vector is None and not stored.deleted) for stored in changes]
        bounds = tokens.spans[:, :4].T.tolist()
        stated, types = map(sliced, (whole, whole), bounds[::2], bounds[1::2])
        languages = self._languages(changes, own, tokens, stated)
        fields = self._keys.vectors(
            [stored.identifier for stored in changes], whole, tokens.whole, tokens.whole_until,
            list(map(first_stated, stated)),
        )  # fmt: skip
        facets = Facets(
            list(map(_joined, types)),
            [
                _joined(said) or (language if mine else stored.language)
                for said, language, mine, stored in zip(stated, languages, own, changes, strict=True)
            ],
            _dates(whole, tokens.spans[:, 4:]),
        )
        by_language: dict[str, list[int]] = {}
        out = list(changes)
        for number, (language, odd) in enumerate(zip(languages, tokens.odd.tolist(), strict=True)):
            if not odd:
                by_language.setdefault(language if language in LANGUAGES else "", []).append(number)
                continue
            own[number] = 0
            out[number] = stored = self.one_by_one([changes[number]])[0]
            fields[number] = stored.fields
            facets.types[number], facets.languages[number], facets.dates[number] = noted(stored)
        terms = np.full(tokens.ids.size, LOST, np.int32)
        for language, numbers in by_language.items():
            table.translate(language, tokens, np.array(numbers, np.int64), terms)
        return out, Words(
            terms, tokens.until, tokens.codes, tokens.firsts, table.runs, np.array(own, np.uint8), _SEARCHED,
            table.names(), facets, fields,
        )  # fmt: skip

    def _languages(
        self,
        changes: Sequence[Stored],
        own: Sequence[int],
        tokens: _Tokens,
        stated: Sequence[bytes],
    ) -> list[str]:
        """The language by whose rules each record is treated. One that has none, and so asks for that of all
        its fields, becomes odd. `stated`: the languages in the metadata, as JSON.
        """
        rules_for = self.analyzer.rules_for
        known = ["" if mine else stored.language for stored, mine in zip(changes, own, strict=True)]
        if self.analyzer.policy.language != "auto" or all(known):
            return [rules_for(language) for language in known]
        told = [first_told(span) if mine else told_by(span) for span, mine in zip(stated, own, strict=True)]
        said, numbers, sure = zip(*told, strict=True)
        asked = ~np.array(sure) & np.fromiter(map(not_, known), np.bool_, len(known))
        kinds = {
            mine: self._detected(changes, tokens, said, numbers, asked & (np.array(own) == mine), mine)
            for mine in set(own)
        }
        found = kinds[own[0]] if len(kinds) == 1 else [kinds[mine][number] for number, mine in enumerate(own)]
        for number in np.flatnonzero(sure).tolist() if any(sure) else ():
            found[number] = said[number]
        default = self.analyzer.policy.default_language
        out = [a or b or c or default for a, b, c in zip(known, found, said, strict=True)]
        if not default:
            for number, language in enumerate(out):
                if own[number] and not language:
                    tokens.odd[number] = 1
        return out

    def _detected(
        self,
        changes: Sequence[Stored],
        tokens: _Tokens,
        stated: Sequence[str],
        numbers: Sequence[int],
        asked: NDArray[np.bool_],
        own: int,
    ) -> list[str]:
        """The languages of the records that are asked for: of what is searched of them, or of all fields.
        `stated` and `numbers`: see `Told`.
        """
        fields, mask = (SEARCHED, _SEARCHED) if own else (FIELDS, _ALL)
        judged, long = self._table.judged(tokens, mask, numbers)
        out = judged.answers
        unsure = np.flatnonzero(judged.asks & asked & ~long).tolist()
        texts = [_text(changes[number], fields) for number in unsure]
        for number, language in zip(unsure, modelled(texts, unsure, judged), strict=True):
            out[number] = language
        for number in np.flatnonzero(long & asked).tolist():
            out[number] = detected(_text(changes[number], fields), stated[number])
        return out


def _text(stored: Stored, fields: Sequence[str]) -> str:
    return searched(orjson.loads(stored.metadata or b"{}"), fields)


@remembered(1 << 14)
def _joined(span: bytes) -> str:
    return "\0".join(values_of(span))


def _dates(text: bytes, spans: Numbers) -> list[int]:
    """The dates of records, which stand in JSON."""
    begins, ends = spans.T.copy()
    out = np.empty(begins.size, np.int64)
    plain_dates.numbers(np.frombuffer(text, np.uint8), begins, ends, out)
    for number in np.flatnonzero(out == plain_dates.ASK).tolist():
        out[number] = _date(text[begins[number] : ends[number]])
    dates: list[int] = out.tolist()
    return dates


@remembered(1 << 16)
def _date(span: bytes) -> int:
    return date_number({"date": orjson.loads(b"[%b]" % span)})


class _Table:
    """Tokens with their numbers, and their terms in each language."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
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

    def cut(self, metadata: bytes, sizes: Sequence[int]) -> _Tokens:
        """The tokens of metadata, records in JSON one after another; sixteen bytes follow the last."""
        if self._used[0] > _TOKENS or len(self._terms) > _TOKENS:
            self._begin()
        return self._cut(metadata, sizes)

    def _cut(self, metadata: bytes, sizes: Sequence[int]) -> _Tokens:
        records = len(sizes)
        # A token takes a separator; a value two quotation marks, and a comma or bracket.
        ids, room = np.empty(len(metadata) // 2 + 1, np.int32), len(metadata) // 3 + 1
        until, codes, bytes_of = (np.empty(room, np.int64) for _ in range(3))
        firsts, spans = np.zeros(records + 1, np.int64), np.empty((records, 2 * len(_FACETS)), np.int64)
        odd, value = np.zeros(records, np.uint8), np.empty(k.RECORD + 32, np.uint8)
        whole, whole_until = np.empty((room, 3), np.int64), np.zeros(records, np.int64)
        text, ends, done = np.frombuffer(metadata, np.uint8), np.cumsum(np.array(sizes, np.int64)), 0
        while True:
            done = k.read(
                text, ends, done, *_ELEMENTS, value, self._slots, self._places, self._names,
                self._kinds, self._widths, self._used, ids, until, codes, bytes_of, firsts, spans, odd,
                whole, whole_until,
            )  # fmt: skip
            if done == records:
                break
            self._grow()
        parts = int(firsts[-1])
        until = until[:parts]
        return _Tokens(
            ids[: until[-1] if parts else 0], until, codes[:parts], bytes_of[:parts], firsts, spans, odd,
            whole, whole_until,
        )  # fmt: skip

    def judged(self, tokens: _Tokens, mask: int, stated: Sequence[int]) -> tuple[Judged, NDArray[np.bool_]]:
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

    def translate(self, language: str, tokens: _Tokens, which: Numbers, out: NDArray[np.int32]) -> None:
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
