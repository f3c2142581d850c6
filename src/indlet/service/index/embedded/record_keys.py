"""The keys of many records at once: what `index.keys` makes of each, but sooner.

One kernel tells where the values stand in the metadata of a batch, another makes the keys of those that are
written as most are. The others are asked for one by one; what comes back in other records is looked up.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

from indlet.formats import people
from indlet.kernels import blake2b
from indlet.kernels import keys as k
from indlet.kernels.folding import FOLDED, KNOWN, LEFT, LETTER
from indlet.kernels.term_hash import SEED
from indlet.memo import SHORT
from indlet.model import KEY_MARKS, SORT_MARKS, VALUE_MARKS
from indlet.service.index.keys import ELEMENTS, ElementKeys, identifier_keys, unaccented_words
from indlet.service.index.values import ARTICLES, SEPARATOR, SPACE
from indlet.text.tokens import fold, split

Numbers = NDArray[np.int64]

_NONE: Final = ElementKeys(0, lambda value, language: "", lambda value, language: "")
# The kinds of keys of an element's first value, and of others.
_KINDS: Final = {
    "identifier": (k.IDENTIFIER, k.IDENTIFIER), "creator": (k.FIRST_CREATOR, k.CREATOR),
    "contributor": (k.CONTRIBUTOR, k.CONTRIBUTOR), "subject": (k.SUBJECT, k.SUBJECT),
    "title": (k.FIRST_TITLE, k.TITLE), "format": (k.NO_NUMBER, k.NO_NUMBER),
}  # fmt: skip
_MARKS: Final = np.frombuffer(
    "".join([
        KEY_MARKS["identifier"][0],
        *(KEY_MARKS[name][1] for name in ("identifier", "creator", "contributor", "title")),
        VALUE_MARKS["creator"][1], VALUE_MARKS["subject"][1], SORT_MARKS["author"][1], SORT_MARKS["title"][1],
        SEPARATOR, SPACE,
    ]).encode(),
    np.uint8,
)  # fmt: skip
_WORD: Final = re.compile(r"\w+")
# Values that are remembered, at most half as many as this, and bytes of them and their keys.
_SLOTS, _BYTES = 1 << 16, 4 << 20
_LANGUAGES: Final = {language: row for row, language in enumerate(ARTICLES)}
# Articles as numbers, a row for each language; what is left is filled by the first.
_ARTICLES: Final = np.array(
    [
        (numbers + numbers[:1] * 8)[:8]
        for numbers in (
            [int.from_bytes(word.encode(), "little") for word in words] for words in ARTICLES.values()
        )
    ],
    np.uint64,
)


def sliced(text: bytes, low: Sequence[int], high: Sequence[int]) -> list[bytes]:
    return list(map(text.__getitem__, map(slice, low, high)))


class RecordKeys:
    """Makes the keys of values of the elements with these names, by whose places a kernel calls them."""

    def __init__(self, elements: Sequence[str]) -> None:
        known = [ELEMENTS.get(name, _NONE) for name in elements]
        self._by = [by for element in known for by in (element.first, element.another)]
        self._recurring = [element.recurring for element in known]
        self._kinds = np.array([_KINDS.get(name, (k.ASK, k.ASK)) for name in elements], np.int64).ravel()
        self._folds, self._cases = np.zeros(FOLDED, np.uint64), np.zeros(FOLDED, np.uint64)
        self._learn_folding(map(chr, range(128)))
        self._learned = k.KnownKeys(
            np.zeros(_SLOTS, np.uint64), np.empty((_SLOTS, 4), np.int64), np.empty(_BYTES, np.uint8),
            np.array([0, 0, SEED], np.int64),
        )  # fmt: skip

    def vectors(
        self, identifiers: Sequence[str], text: bytes, values: Numbers, until: Numbers, stated: Sequence[str]
    ) -> list[bytes]:
        """The keys of records as packed vectors. `values` (element, where it begins and ends in `text`; see
        `kernels.analyse.read`) are those of a record up to `until`; `stated` are the languages of records.
        """
        names = [name.encode("utf-8", "replace") for name in identifiers]
        name_ends = np.cumsum(np.fromiter(map(len, names), np.int64, len(names)))
        many, records = int(until[-1]), len(names)
        sizes = int((values[:many, 2] - values[:many, 1]).sum() + name_ends[-1])
        octets = np.frombuffer(text, np.uint8)
        names_in_lists = np.count_nonzero(octets == ord(";"))
        out = np.empty(k.EACH * sizes + k.BESIDE * (many + records + names_in_lists) + k.AFTER, np.uint8)
        ends, count = np.empty(records, np.int64), np.zeros(1, np.int64)
        asked = np.empty((many + records + names_in_lists, 4), np.int64)
        which = np.array([_LANGUAGES.get(tag[:2].lower(), _LANGUAGES["en"]) for tag in stated], np.int64)
        k.write(
            octets, values, until, self._kinds,
            np.frombuffer(b"".join([*names, bytes(8)]), np.uint8), name_ends, self._folds, self._cases,
            _ARTICLES, which, _MARKS, np.empty(k.SCRATCH, np.uint8), blake2b.SIGMA, blake2b.IV,
            np.empty(blake2b.STATE, np.uint64), self._learned, out, ends, asked, count,
        )  # fmt: skip
        bounds = ends.tolist()
        made = sliced(out[: bounds[-1]].tobytes(), [0, *bounds[:-1]], bounds)
        new: dict[tuple[int, bytes], bytes] = {}
        wide = ""
        for number, low, high, record in asked[: count[0]].tolist():
            if number < 0:
                made[record] += identifier_keys(identifiers[record]).encode("utf-8", "replace")
            elif self._recurring[number // 2]:
                value = number, text[low:high]
                if value not in new:
                    new[value] = self._by[number](found := _text(value[1]), "").encode()
                    wide += "" if found.isascii() else found
                made[record] += new[value]
            else:
                made[record] += self._by[number](found := _text(text[low:high]), stated[record]).encode()
                wide += "" if found.isascii() else found
        self._learn_folding(set(wide))
        self._learn({value: keys for value, keys in new.items() if len(value[1]) <= SHORT})
        return made

    def _learn_folding(self, characters: Iterable[str]) -> None:
        """Notes what becomes of characters in keys."""
        for c in characters:
            if ord(c) < FOLDED and not self._folds[ord(c)]:
                self._folds[ord(c)], self._cases[ord(c)] = _folding(c), _case(c)

    def _learn(self, new: Mapping[tuple[int, bytes], bytes]) -> None:
        """Notes the keys of values that may come back."""
        text = b"".join([part for (_, value), keys in new.items() for part in (value, keys)])
        table = self._learned
        if 2 * (table.used[0] + len(new)) > _SLOTS or table.used[1] + len(text) > _BYTES:
            table.hashes[:] = table.used[:2] = 0
        if not new or 2 * len(new) > _SLOTS or len(text) > _BYTES:
            return
        sizes = [size for (_, value), keys in new.items() for size in (len(value), len(keys))]
        ends = np.cumsum(np.array(sizes, np.int64))
        begins = np.concatenate(([0], ends[1:-1:2]))
        rows = np.stack((np.array([number for number, _ in new]), begins, ends[::2], ends[1::2]), 1)
        k.learn(np.frombuffer(text + bytes(16), np.uint8), rows, table)


def _text(value: bytes) -> str:
    """A string in JSON, without its quotation marks."""
    text: str = orjson.loads(b'"%b"' % value) if b"\\" in value else value.decode()
    return text


def _folding(c: str) -> int:
    """What becomes of a character in keys, see `kernels.folding`. Left out is whatever may depend on the
    characters beside it (marks, white space, scripts but Latin, Greek and Cyrillic) or takes more room.
    """
    if c.isascii():
        filed = told = c.lower() if c.isalnum() else ""
    else:
        filed, whole, words = people.folded(c), fold(c), unaccented_words(c)
        told = "".join(words)
        forms = unicodedata.normalize("NFKC", c) + filed + whole
        plain = (
            ("\x80" <= c < "\u0530" or c >= "\u1e00")
            and (c + filed).isprintable()
            and not any(form.isspace() or unicodedata.category(form)[0] == "M" for form in forms)
            and split(filed) in ([], [filed])
            and (not words or _WORD.fullmatch(whole) is not None)
            and max(len(filed.encode()), len(told.encode())) <= min(len(c.encode()), 3)
        )
        if not plain:
            return KNOWN | LEFT
        filed = filed if split(filed) else ""
    parts = [len(form.encode()) << 24 | int.from_bytes(form.encode(), "little") for form in (filed, told)]
    return KNOWN | (LETTER if c.isalpha() and filed.isalpha() else 0) | parts[1] << 32 | parts[0]


def _case(c: str) -> int:
    """The same in an identifier, where case alone goes; zero is left out."""
    small = c.casefold()
    octets = small.encode()
    plain = not c.isspace() and (c + small).isprintable() and len(octets) <= min(len(c.encode()), 3)
    return len(octets) << 24 | int.from_bytes(octets, "little") if plain else 0
