"""The metadata of many records analysed at once: what `Analyzer` gives, byte for byte, but sooner.

The texts of a batch are cut into tokens by a compiled kernel, which numbers them in a table that lasts.
Python is asked once for each token and language what term it becomes; after that a record's vectors are put
together from numbers. What the kernel does not do (soft hyphens, huge texts and tokens, positions, pruning,
a doubt about the language) the analyser does as ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import count, islice
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from indlet.model import FIELD_MARKS, Metadata, TermVector
from indlet.service import analysis_kernel as k
from indlet.text import FIELDS, LANGUAGES, Analyzer, code, detect, stop_words
from indlet.text import language as judging
from indlet.text.analyse import LOST

# What is searched as one text where a source has no index part, in the order in which it is read.
SEARCHED: Final = ("title", "description", "subject", "creator")

# Fields in the order of their names, which is the order of their marked terms.
_NAMES: Final = tuple(sorted(FIELDS))
# A field's number, for those that are searched.
COLUMNS: Final = {name: place for place, name in enumerate(_NAMES) if name in SEARCHED}
_MASK: Final = sum(1 << place for place, name in enumerate(_NAMES) if name in SEARCHED)
_ALL: Final = (1 << len(_NAMES)) - 1
_MARKS: Final = [FIELD_MARKS[name].encode() for name in _NAMES]
# How elements are known to a kernel: the first eight bytes of their names, the names' sizes, their numbers.
_ELEMENTS: Final = (
    np.array([int.from_bytes(name[:8].encode(), "little") for name in _NAMES], np.uint64),
    np.array([len(name) for name in _NAMES]),
    np.arange(len(_NAMES)),
)
_MARKS_TEXT: Final = np.frombuffer(b"".join(_MARKS) + bytes(8), np.uint8)
_MARKS_BOUNDS: Final = np.cumsum([0, *map(len, _MARKS), 0])

# ASCII in lower case; what is neither letter nor digit separates (rule 2 of `indlet.text.tokens`).
_SEPARATED: Final = bytes(
    byte if byte > 0x7F or chr(byte).isalnum() else 0x20 for byte in bytes(range(256)).lower()
)
_SOFT_HYPHEN: Final = "\u00ad"

# Characters of a batch, and of a record that may be in one.
_BATCH: Final = 1 << 18
_RECORD: Final = k.RECORD
# Texts that are longer are judged by a sample.
_JUDGED: Final = 2 * judging._SAMPLE
# Tokens and terms that are remembered; a table starts again when it has more.
_TOKENS: Final = 1 << 20

Numbers = NDArray[np.int64]

# What was asked for (the fields, or the searched text as one), the latter's length, the language.
Made = tuple[bytes, int, str]

_LANGUAGES: Final = tuple(LANGUAGES)
_code = lru_cache(maxsize=512)(code)


@dataclass(frozen=True, slots=True)
class Texts:
    """Parts of records, one after another with a byte between them, each of one field.

    `ends` says where each part ends; `codes` its record and, in the lowest three bits, its field (COLUMNS);
    `firsts` the first part of each record, and after the last how many there are. `odd` marks records that
    the analyser has to do.
    """

    data: bytes
    ends: Numbers
    codes: Numbers
    firsts: Numbers
    odd: NDArray[np.uint8]


class Analyses:
    """The analyses of one analyser, for one thread. Keep it: it is fast because it remembers."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    @cached_property
    def _table(self) -> _Table:
        return _Table(self.analyzer)

    def fields(self, wanted: Sequence[tuple[Metadata, str]]) -> list[bytes]:
        """`Analyzer.fields` of each metadata in its language."""
        analyzer = self.analyzer
        # Without a language, Analyzer.fields judges all fields by what they state together.
        found = self._analysed(
            [m for m, _ in wanted], [analyzer.rules_for(g) if g else None for _, g in wanted], 0
        )
        return [
            analyzer.fields(metadata, language) if made is None else made[0]
            for (metadata, language), made in zip(wanted, found, strict=True)
        ]

    def marked(self, metadata: Sequence[bytes], languages: Sequence[str]) -> list[bytes]:
        """The same of metadata in JSON, with the terms of a frequency in any order."""
        sizes = np.fromiter(map(len, metadata), np.int64, len(metadata))
        text = np.frombuffer(b"".join([*metadata, bytes(8)]), np.uint8)
        room = 1 + int(sizes.sum())
        out, odd = np.empty(room, np.uint8), np.zeros(len(metadata), np.uint8)
        # A value takes two quotation marks and a comma or bracket.
        ends, codes = np.empty(room // 3 + 1, np.int64), np.empty(room // 3 + 1, np.int64)
        firsts = np.empty(len(metadata) + 1, np.int64)
        count = k.parts(text, np.cumsum(sizes), *_ELEMENTS, out, ends, codes, firsts, odd)
        data = out[: ends[count - 1] if count else 0].tobytes()
        texts = Texts(data, ends[:count], codes[:count], firsts, odd)
        rules = [self.analyzer.rules_for(g) if g else None for g in languages]

        def read(number: int) -> Metadata:
            found: Metadata = orjson.loads(metadata[number])
            return found

        return [
            self.analyzer.fields(read(number), languages[number]) if made is None else made[0]
            for number, made in enumerate(self._made(texts, rules, None, read, 0, True))
        ]

    def vectors(self, wanted: Sequence[Metadata]) -> list[TermVector]:
        """For each metadata the vector of what is searched in it."""
        policy = self.analyzer.policy
        if policy.positions or policy.prune is not None:
            return list(map(self._vector, wanted))
        found = self._analysed(wanted, [None] * len(wanted), _MASK)
        return [
            self._vector(metadata) if made is None else TermVector(made[0], made[1], None, made[2])
            for metadata, made in zip(wanted, found, strict=True)
        ]

    def vectors_of(
        self, texts: Texts, stated: Sequence[str], metadata: Callable[[int], Metadata]
    ) -> list[TermVector]:
        """The same for texts that were put together already; `stated` are their first languages."""
        policy, count = self.analyzer.policy, len(stated)
        if policy.positions or policy.prune is not None:
            return [self._vector(metadata(number)) for number in range(count)]
        return [
            self._vector(metadata(number)) if made is None else TermVector(made[0], made[1], None, made[2])
            for number, made in enumerate(self._made(texts, [None] * count, stated, metadata, _MASK))
        ]

    def _vector(self, metadata: Metadata) -> TermVector:
        return self.analyzer.vector(searched(metadata), next(iter(metadata.get("language", ())), ""))

    def _analysed(
        self, wanted: Sequence[Metadata], languages: Sequence[str | None], mask: int
    ) -> Iterator[Made | None]:
        """The metadata in batches; None for what the analyser has to do."""
        parts: list[str] = []
        codes: list[int] = []
        firsts: list[int] = [0]
        size = begin = 0
        left_out: set[int] = set()
        names = [name if not mask or name in SEARCHED else "" for name in _NAMES]
        for number, metadata in enumerate(wanted):
            place = (number - begin) << 3
            before = len(parts)
            own = 0
            for values in map(metadata.get, names):
                if values:
                    text = values[0] if len(values) == 1 else "\n".join(values)
                    own += len(text)
                    parts.append(text)
                    codes.append(place)
                place += 1
            if own > _RECORD:
                left_out.add(number - begin)
                del parts[before:], codes[before:]
            else:
                size += own
            firsts.append(len(parts))
            if size > _BATCH or number + 1 == len(wanted):
                known = languages[begin : number + 1]
                yield from self._batch(
                    wanted[begin : number + 1], known, mask, parts, codes, firsts, left_out
                )
                parts, codes, firsts, left_out = [], [], [0], set()
                size, begin = 0, number + 1

    def _batch(
        self,
        wanted: Sequence[Metadata],
        languages: Sequence[str | None],
        mask: int,
        parts: list[str],
        codes: list[int],
        firsts: list[int],
        left_out: set[int],
    ) -> list[Made | None]:
        odd = np.zeros(len(wanted), np.uint8)
        odd[list(left_out)] = 1
        whole = "\n".join(parts)
        if whole.isascii():
            data, sizes = whole.encode(), list(map(len, parts))
        else:
            # What else is white space becomes spaces, so that the kernel need not know it.
            encoded = [
                p.encode() if p.isascii() else " ".join(p.split()).encode("utf-8", "replace") for p in parts
            ]
            data, sizes = b"\n".join(encoded), list(map(len, encoded))
            if _SOFT_HYPHEN in whole:
                odd[[place >> 3 for place, p in zip(codes, parts, strict=True) if _SOFT_HYPHEN in p]] = 1
        ends = np.cumsum(np.array(sizes, np.int64)) + np.arange(len(sizes))
        texts = Texts(data, ends, np.array(codes, np.int64), np.array(firsts, np.int64), odd)
        return self._made(texts, languages, None, wanted.__getitem__, mask)

    def _made(
        self,
        texts: Texts,
        languages: Sequence[str | None],
        stated: Sequence[str] | None,
        metadata: Callable[[int], Metadata],
        mask: int,
        loose: bool = False,
    ) -> list[Made | None]:
        """The analysis of texts, those without a language by their own or by the one that is stated."""
        table = self._table
        ids, until = table.cut(texts)
        judged: list[int] = []
        if self.analyzer.policy.language == "auto" and None in languages:
            judged = table.judged(ids, until, texts, mask or _ALL)
        by_language: dict[str, list[int]] = {}
        used: list[str] = []
        ours = texts.odd.tolist()
        for number, language in enumerate(languages):
            if language is None:
                told = None if stated is None else stated[number]
                language = self._language(number, metadata, told, judged[number] if judged else -1, mask)
            used.append(language)
            if not ours[number]:
                by_language.setdefault(language if language in LANGUAGES else "", []).append(number)
        out: list[Made | None] = [None] * len(languages)
        for language, numbers in by_language.items():
            which = np.array(numbers, np.int64)
            packed, cuts, lengths = table.packed(language, ids, until, texts, which, mask, loose)
            at = 0
            for number, end, length in zip(numbers, cuts, lengths, strict=True):
                out[number] = packed[at:end], length, used[number]
                at = end
        return out

    def _language(
        self, number: int, metadata: Callable[[int], Metadata], told: str | None, judged: int, mask: int
    ) -> str:
        """The language by `Analyzer`'s rules, of the searched text (mask) or of all fields (no mask).

        `told` is the first that is stated; None if that is yet to be looked up.
        """
        policy = self.analyzer.policy
        if policy.language != "auto":
            return policy.language
        if told is not None:
            stated = _code(told) if told else ""
        else:
            values = metadata(number).get("language", ())
            known = map(_code, values[:1] if mask else values)
            stated = next(filter(None, known), "")
        if stated and not stop_words(stated):
            return stated
        if judged >= 0:
            return _LANGUAGES[judged]
        names = SEARCHED if mask else FIELDS
        text = "\n".join(value for name in names for value in metadata(number).get(name, ()))
        return detect(text) or stated or policy.default_language


def searched(metadata: Metadata) -> str:
    """What is searched of a record that has no index part."""
    return "\n".join(value for name in SEARCHED for value in metadata.get(name, ()))


class _Table:
    """Tokens with their numbers, and their terms in each language."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._begin()

    def _begin(self) -> None:
        words, units = _function_words()
        self._units = units
        self._used = np.zeros(3, np.int64)  # tokens, bytes of their names, see `emit`
        self._rows = np.empty(0, np.int64)
        self._hashes = np.empty(0, np.uint64)
        self._names = np.empty(0, np.uint8)
        self._kinds = np.empty(0, np.uint8)
        self._maps: dict[str, NDArray[np.int32]] = {}
        self._runs = np.empty(0, np.int64)
        # Terms with their numbers, given as they come; what stands for none has the first.
        self._terms = defaultdict[str, int](count().__next__)
        # Of each term: its first eight bytes as a number, where it stands in the text, its size; see `emit`.
        self._about = np.full(k.ABOUT << 12, -1, np.int64)
        self._text = np.empty(1 << 15, np.uint8)
        # Room for `emit`.
        self._scratch = np.empty((5, 3 << 10), np.int64)
        self._counts = np.empty(7 << 10, np.int64)
        self._out = np.empty(1 << 18, np.uint8)
        assert self._terms[LOST] == 0
        self._add([LOST])
        self._grow()
        # The first tokens are the function words, by whose numbers the kernel knows them.
        none, one = np.zeros(1, np.int64), np.array([len(words)])
        self._cut(Texts(words, one, none, np.array([0, 1]), np.zeros(1, np.uint8)))
        assert self._used[0] == len(units)

    def _grow(self) -> None:
        size = max(1 << 14, 2 * self._hashes.size)
        self._rows = np.resize(self._rows, 4 * size)
        self._hashes = np.resize(self._hashes, size)
        self._names = np.resize(self._names, 16 * size)
        self._kinds = np.resize(self._kinds, size)
        self._slots = np.zeros(4 * size, np.uint64)
        k.rehash(self._hashes, self._used[0], self._slots)

    def cut(self, texts: Texts) -> Any:
        """The tokens of all parts by their numbers, and where those of each part end."""
        if self._used[0] > _TOKENS or len(self._terms) > _TOKENS:
            self._begin()
        return self._cut(texts)

    def _cut(self, texts: Texts) -> Any:
        text = np.frombuffer(texts.data.translate(_SEPARATED) + bytes(16), np.uint8)
        count = texts.ends.size
        ids = np.empty(len(texts.data) // 2 + count + 1, np.int32)
        until = np.zeros(count, np.int64)
        part = 0
        while True:
            part = k.cut(
                text, texts.ends, texts.codes, part, self._slots, self._rows, self._hashes, self._names,
                self._kinds, self._used, ids, until, texts.odd,
            )  # fmt: skip
            if part == count:
                return ids, until
            self._grow()

    def judged(self, ids: Any, until: Any, texts: Texts, mask: int) -> list[int]:
        """The number of the language that each record's words make sure, -1 for none."""
        codes, records = texts.codes, texts.odd.size
        out = np.full(records, -1, np.int64)
        seen, known = np.full(len(self._units), -1, np.int64), np.empty(len(self._units), np.int64)
        hits = np.empty(len(_LANGUAGES), np.int64)
        k.languages(ids, until, codes, mask, self._units, self._kinds, _RULES, seen, hits, known, out)
        sizes = np.diff(texts.ends, prepend=-1) * ((mask >> (codes & 7)) & 1)  # in bytes: never too small
        out[np.bincount(codes >> 3, sizes, records) > _JUDGED + 1] = -1
        return out.tolist()

    def packed(
        self, language: str, ids: Any, until: Any, texts: Texts, which: Numbers, mask: int, loose: bool
    ) -> tuple[bytes, list[int], list[int]]:
        """The packed vectors of records in one language, as `emit` gives them."""
        codes, firsts = texts.codes, texts.firsts
        terms = self._map(language)
        new = np.empty(ids.size, np.int32)
        count = k.unknown(ids, until, firsts, which, terms, new)
        if count:
            self._resolve(language, terms, new[:count])
        lengths, cuts = np.empty(which.size, np.int64), np.empty(which.size, np.int64)
        done = 0
        while True:
            done = k.emit(
                ids, until, codes, firsts, which, mask, loose, terms, self._runs, self._about, self._text,
                self._used, _MARKS_TEXT, _MARKS_BOUNDS, self._scratch, self._counts, self._out, lengths, cuts,
                done,
            )  # fmt: skip
            if done == which.size:
                break
            self._scratch = np.empty((5, 2 * self._scratch.shape[1]), np.int64)
            self._counts = np.empty(2 * self._counts.size, np.int64)
            self._out = np.resize(self._out, 2 * self._out.size)
        return self._out[: cuts[-1]].tobytes(), cuts.tolist(), lengths.tolist()

    def _map(self, language: str) -> NDArray[np.int32]:
        found = self._maps.get(language)
        if found is None or found.size < self._hashes.size:
            grown = np.full(self._hashes.size, k.UNKNOWN, np.int32)
            if found is not None:
                grown[: found.size] = found
            self._maps[language] = found = grown
        return found

    def _resolve(self, language: str, terms: NDArray[np.int32], tokens: NDArray[np.int32]) -> None:
        """Fills in the terms of tokens in a language, and the new ones among the terms."""
        lexicon = self._analyzer.lexicon(language)
        room = np.empty(int(self._rows[4 * tokens + 2].sum()) + tokens.size, np.uint8)
        k.spelt(tokens, self._rows, self._names, room)
        names = room[:-1].tobytes().decode().split(" ")
        made = lexicon.many(names)
        known, before = self._terms, len(self._terms)
        runs: list[int] = []
        # Only what goes beyond ASCII can become several terms.
        wide = np.flatnonzero(self._kinds[tokens] & k.WIDE).tolist()
        for place in wide:
            each = [known[term] for term in lexicon[names[place]].split() if term != LOST]
            made[place] = LOST
            if each:
                runs += [place, len(each), *each]
        values = np.fromiter(map(known.__getitem__, made), np.int32, len(made))
        values[values == 0] = k.LOST
        at = 0
        while at < len(runs):
            place, count = runs[at : at + 2]
            values[place] = runs[at + 2] if count == 1 else k.RUN - self._runs.size
            if count > 1:
                self._runs = np.append(self._runs, np.array(runs[at + 1 : at + 2 + count], np.int64))
            at += 2 + count
        terms[tokens] = values
        if new := len(known) - before:
            self._add([*islice(reversed(known), new)][::-1])

    def _add(self, new: list[str]) -> None:
        """Notes new terms, which have numbers already."""
        end = len(self._terms)
        begin = end - len(new)
        low = (
            int(self._about[k.ABOUT * (begin - 1) + 1] + self._about[k.ABOUT * (begin - 1) + 2])
            if begin
            else 0
        )
        text = "".join(new).encode()
        while self._about.size < k.ABOUT * end:
            self._about = np.append(self._about, np.full(self._about.size, -1, np.int64))
        while self._text.size < low + len(text) + 8:  # read by eight bytes at a time
            self._text = np.resize(self._text, 2 * self._text.size)
        self._text[low : low + len(text)] = np.frombuffer(text, np.uint8)
        ascii_only = len(text) == sum(map(len, new))
        sizes = np.fromiter(map(len, new if ascii_only else [t.encode() for t in new]), np.int64, len(new))
        k.noted(begin, low, sizes, self._text, self._about)


# What `detect` asks of function words.
_RULES: Final = np.array([judging._ENOUGH, judging._LEAD, judging._WORDS, judging._TABLE_WORDS], np.float64)


@cache
def _function_words() -> tuple[bytes, NDArray[np.uint8]]:
    """The function words of all languages, and their units for each language."""
    evidence: Mapping[str, int] = judging._evidence()
    units = [list(number.to_bytes(2 * len(LANGUAGES), "little")[::2]) for number in evidence.values()]
    return " ".join(evidence).encode(), np.array(units, np.uint8)
