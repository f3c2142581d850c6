"""The languages of many records at once: what `text.language.detect_pieces` tells of each, but sooner.

A kernel counts function words and letters, and the rules of the plain way are applied to all. What they leave
in doubt is put to the statistical model together. Texts that are judged by a sample `detect` looks at one by
one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from indlet.kernels import analyse as k
from indlet.memo import remembered
from indlet.text import LANGUAGES, langid, stop_words
from indlet.text import language as plain

_LANGUAGES: Final = tuple(LANGUAGES)
_WORDS: Final = -(-len(_LANGUAGES) // k.LANES)  # that hold the units of all languages
_NUMBERS: Final = {language: number for number, language in enumerate(_LANGUAGES)}
_SCRIPTS: Final = tuple(plain.SCRIPTS)
# Answers: numbers of these codes, none, and what the statistical model is to be asked.
_CODES: Final = (*_LANGUAGES, "zh", "ja", *(codes[0] for _, codes in plain.SCRIPTS.values()))
_NONE, _ASK = -1, -2
_NAMES: Final = np.array([*_CODES, "", ""], object)
# What each script alone tells.
_ALONE: Final = np.array(
    [_CODES.index(codes[0]) if len(codes) == 1 else _ASK for _, codes in plain.SCRIPTS.values()]
)
# Columns of the letters of foreign tokens: all, each script's, kana, those of Russian alone, those of others.
_ALL, _KANA, _RUSSIAN, _OTHERS = 0, len(_SCRIPTS) + 1, len(_SCRIPTS) + 2, len(_SCRIPTS) + 3
LETTER_COLUMNS: Final = len(_SCRIPTS) + 4

Numbers = NDArray[np.int64]


def letters_of(tokens: Iterable[str]) -> NDArray[np.int16]:
    """The letters of foreign tokens, by the columns above: a row for each token."""
    rows = [sum(map(_columns, token)).to_bytes(2 * LETTER_COLUMNS, "little") for token in tokens]
    return np.frombuffer(b"".join(rows), "<i2").reshape(-1, LETTER_COLUMNS)


@remembered(1 << 14)
def _columns(letter: str) -> int:
    """A one for each column that counts a letter, in sixteen-bit places of one number."""
    patterns = (
        plain.FOREIGN, *plain.script_patterns().values(), plain.KANA, plain.RUSSIAN, plain.NOT_RUSSIAN,
    )  # fmt: skip
    return sum(1 << 16 * column for column, pattern in enumerate(patterns) if pattern.match(letter))


@cache
def function_words() -> tuple[list[str], NDArray[np.uint64]]:
    """The function words of all languages, and their units for each language (`kernels.analyse.Known`)."""
    evidence: Mapping[str, int] = plain.evidence()
    units = b"".join([number.to_bytes(8 * _WORDS, "little") for number in evidence.values()])
    return list(evidence), np.frombuffer(units, "<u8").reshape(-1, _WORDS).copy()


def weighed(model: langid.LanguageModel, texts: Sequence[bytes]) -> NDArray[np.float32]:
    """`langid.weighed` by a kernel."""
    out = np.zeros((len(texts), len(model.classes)), np.float32)
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    octets = np.frombuffer(b"".join(texts), np.uint8)
    shares = _shares(1 << max(map(len, texts), default=0).bit_length())
    k.weigh(model.weights, model.moves, model.rows, model.features, shares, octets, ends, out)
    return out


@cache
def _shares(most: int) -> NDArray[np.float32]:
    """What so many meetings with a feature count."""
    return np.array([math.log1p(count) for count in range(most + 1)], np.float32)


class Judged(NamedTuple):
    """What the tokens of records tell of their languages: codes, or nothing. `asks`: of which the model is to
    be asked, and by what its answer is judged: whether function words, or their absence, let it be believed,
    the units of each language and the most of any; the script, of those that several languages share.
    """

    answers: list[str]
    asks: NDArray[np.bool_]
    listed: NDArray[np.bool_]
    unlisted: NDArray[np.bool_]
    hits: NDArray[np.uint16]
    most: Numbers
    script: Numbers


def judged(tokens: k.Tokens, records: int, mask: int, known: k.Known, stated: Sequence[int]) -> Judged:
    """What the tokens in the fields of `mask` tell. `stated` are the languages that are, see `Told`."""
    found = np.empty(records, k.EVIDENCE)
    hits = np.empty((records, _WORDS), np.uint64)
    letters = np.zeros((records, LETTER_COLUMNS), np.int64)
    k.evidence(tokens, mask, known, len(_LANGUAGES), np.array(stated, np.int64), found, hits, letters)
    pieces, digits, wide, first, words = (
        found[name] for name in ("pieces", "digits", "wide", "first", "words")
    )
    # The rules for Latin letters.
    prose = 5 * digits < pieces
    sure = (first >= plain.ENOUGH) & (first > plain.LEAD * found["second"])
    sure &= (words >= plain.TABLE_WORDS) | ((words >= plain.WORDS) & prose)
    listed = first >= np.where(wide == 0, plain.ENOUGH, plain.UNITS)
    unlisted = (first < pieces - digits) & prose
    asks = (found["letters"] >= plain.LETTERS) & (listed | unlisted) & (found["stated"] != first)
    out = np.where(sure, found["best"], np.where(asks, _ASK, _NONE))
    script = np.full(records, -1)
    foreign = np.flatnonzero(2 * letters[:, _ALL] > found["characters"])
    if foreign.size:
        out[foreign], script[foreign] = _by_script(letters[foreign], found["letters"][foreign])
    return Judged(_NAMES[out].tolist(), out == _ASK, listed, unlisted, hits.view(np.uint16), first, script)


def _by_script(letters: Numbers, size: Numbers) -> tuple[Numbers, Numbers]:
    """The rules for other scripts, and the script of each text; `size`: its letters that are no digits."""
    counts = letters[:, 1 : len(_SCRIPTS) + 1]
    script = counts.argmax(1)
    out = _ALONE[script]
    japanese = 20 * letters[:, _KANA] > counts[:, _SCRIPTS.index("Han")]
    han = np.where(japanese, _CODES.index("ja"), _CODES.index("zh"))
    out = np.where(script == _SCRIPTS.index("Han"), han, out)
    russian = (script == _SCRIPTS.index("Cyrillic")) & (letters[:, _RUSSIAN] > 0) & (letters[:, _OTHERS] == 0)
    out[russian] = _CODES.index("ru")
    out[(out == _ASK) & (size < plain.LETTERS // 4)] = _NONE
    return out, script


def modelled(texts: Sequence[str], places: Sequence[int], by: Judged) -> list[str]:
    """What `detect` gives for texts of which the model is to be asked, which it is for all of them together.
    `places`: of each in what was judged.
    """
    if not texts:
        return []
    classified = langid.classify_all([text[: plain.READ] for text in texts], weighed)
    parts = (part[places].tolist() for part in (by.hits, by.listed, by.unlisted, by.most, by.script))
    return [
        _believable(_code(answer), *of) if probability >= plain.SURE else ""
        for (answer, probability), *of in zip(classified, *parts, strict=True)
    ]


def detected(text: str, stated: str) -> str:
    """`detect` for one text."""
    (classified,) = langid.classify_all([plain.sample(text)[: plain.READ]], weighed)
    return plain.detect(text, stated, classified)


def _believable(
    language: str, hits: Sequence[int], listed: bool, unlisted: bool, most: int, script: int
) -> str:
    """What the model says of a text, where that can be believed."""
    if script >= 0:
        return language if language in plain.SCRIPTS[_SCRIPTS[script]][1] else ""
    if stop_words(language):
        return language if listed and 2 * hits[_NUMBERS[language]] >= most else ""
    return language if unlisted else ""


@remembered(1 << 12)
def _code(name: str) -> str:
    return plain.code(name)


class Told(NamedTuple):
    """The language that is stated, its number (-1 if it has no rules), whether it has to be believed."""

    language: str
    number: int
    sure: bool


@remembered(1 << 12)
def told_by(span: bytes) -> Told:
    """What values in JSON state."""
    return _told(values_of(span))


@remembered(1 << 12)
def first_told(span: bytes) -> Told:
    """The same by the first value alone."""
    return _told(values_of(span)[:1])


def _told(values: tuple[str, ...]) -> Told:
    stated = next((found for value in values if value and (found := plain.code(value))), "")
    return Told(stated, _NUMBERS.get(stated, -1), bool(stated) and not stop_words(stated))


@remembered(1 << 12)
def first_stated(span: bytes) -> str:
    """The language by whose articles titles are filed."""
    values = values_of(span)
    return values[0] if values else "en"


@remembered(1 << 14)
def values_of(span: bytes) -> tuple[str, ...]:
    """The values between the brackets of a list in JSON."""
    return tuple(orjson.loads(b"[%b]" % span))
