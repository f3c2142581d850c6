"""The languages of many records at once: what `text.language.detect_pieces` tells of each, but sooner.

A kernel counts function words and letters, and the rules of the plain way are applied to all. What they leave
in doubt is put to the statistical model together. Texts that are judged by a sample, and those where it
matters which tokens are digits, `detect` looks at one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from indlet.kernels import analyse as k
from indlet.memo import remembered
from indlet.text import LANGUAGES, langid, stop_words
from indlet.text import language as plain

ASK: Final = None
_LANGUAGES: Final = tuple(LANGUAGES)
_NUMBERS: Final = {language: number for number, language in enumerate(_LANGUAGES)}
_SCRIPTS: Final = tuple(plain.SCRIPTS)
# Columns of the letters of foreign tokens: all, each script's, kana, whether Russian ones, whether others.
_ALL, _KANA, _RUSSIAN, _OTHERS = 0, len(_SCRIPTS) + 1, len(_SCRIPTS) + 2, len(_SCRIPTS) + 3
LETTER_COLUMNS: Final = len(_SCRIPTS) + 4

Numbers = NDArray[np.int64]


def letters_of(token: str) -> list[int]:
    """A foreign token's letters, by the columns above."""
    out = [0] * LETTER_COLUMNS
    for letter in token:
        for column in _columns(letter):
            out[column] += 1
    if out[_ALL]:
        out[_RUSSIAN] = plain.RUSSIAN.search(token) is not None
        out[_OTHERS] = plain.NOT_RUSSIAN.search(token) is not None
        return out
    return [0] * LETTER_COLUMNS


@remembered(1 << 14)
def _columns(letter: str) -> tuple[int, ...]:
    """The columns that count a letter."""
    patterns = (plain.FOREIGN, *plain.script_patterns().values(), plain.KANA)
    return tuple(column for column, pattern in enumerate(patterns) if pattern.match(letter))


@cache
def function_words() -> tuple[list[str], NDArray[np.uint8]]:
    """The function words of all languages, and their units for each language."""
    evidence: Mapping[str, int] = plain.evidence()
    units = [list(number.to_bytes(2 * len(LANGUAGES), "little")[::2]) for number in evidence.values()]
    return list(evidence), np.array(units, np.uint8)


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
    """What the tokens of records tell of their languages: codes, nothing (the empty string), or that the
    statistical model is to be asked (None); what was counted for that, and of whom it is all that the rules
    ask for: not where most letters are of another script, nor where a text is judged by a sample.
    """

    answers: list[str | None]
    found: k.Rows
    counted: NDArray[np.bool_]


def judged(tokens: k.Tokens, records: int, mask: int, known: k.Known, stated: Sequence[str]) -> Judged:
    """What the tokens in the fields of `mask` tell. `stated` are the codes that are stated."""
    found = np.empty(records, k.EVIDENCE)
    letters = np.zeros((records, LETTER_COLUMNS), np.int64)
    numbers = np.array([_NUMBERS.get(language, -1) for language in stated], np.int64)
    k.evidence(tokens, mask, known, numbers, found, letters)
    foreign = 2 * letters[:, _ALL] > found["characters"]
    out = _by_words(found)
    for place in np.flatnonzero(foreign).tolist():
        most = int(found[place]["letters"] + found[place]["wide_letters"])
        out[place] = _by_script(letters[place], most)
    return Judged(out, found, ~foreign)


class Question(NamedTuple):
    """A text whose words leave a doubt, the language that is stated of it, and what was counted in it, if
    that is all of it and in Latin letters.
    """

    text: str
    stated: str
    found: np.void | None


def answered(questions: Sequence[Question]) -> list[str]:
    """What `detect` gives for each text; the model is asked for all of them together."""
    if not questions:
        return []
    samples = [plain.sample(question.text)[: plain.READ] for question in questions]
    out = []
    for question, classified in zip(questions, langid.classify_all(samples, weighed), strict=True):
        language = ASK if question.found is None else _modelled(question.text, question.found, classified)
        if language is ASK:
            language = plain.detect(question.text, question.stated, classified)
        out.append(language)
    return out


def _modelled(text: str, found: np.void, classified: langid.Classified) -> str | None:
    """The rules for what the model says of a text in Latin letters; tokens beyond ASCII may be digits."""
    pieces, digits, wide, _, letters, _, best, first, *_ = found.item()
    running = pieces - digits
    prose = 5 * digits < pieces
    certain = prose == (5 * (digits + wide) < pieces) and (first < running) == (first < running - wide)
    if not certain or letters < plain.LETTERS:
        return ASK
    listed = first >= (plain.ENOUGH if text.isascii() else plain.UNITS)
    unlisted = first < running and prose
    answer, probability = classified
    if probability < plain.SURE:
        return ""
    language = plain.code(answer)
    if not stop_words(language):
        return language if unlisted else ""
    if language == _LANGUAGES[best] or not listed:
        return language if listed else ""
    return ASK


def _by_words(found: k.Rows) -> list[str | None]:
    """The rules for Latin letters. Tokens beyond ASCII may be digits or not: where that matters, ask."""
    pieces, digits, wide, first = (found[name] for name in ("pieces", "digits", "wide", "first"))
    prose, perhaps = 5 * (digits + wide) < pieces, 5 * digits < pieces
    told = (first >= plain.ENOUGH) & (first > plain.LEAD * found["second"])
    enough = found["words"] >= plain.TABLE_WORDS
    some = found["words"] >= plain.WORDS
    sure = told & (enough | (some & prose))
    doubtful = told & ~sure & some & perhaps
    believed = (found["stated"] >= 0) & (found["stated"] == first)
    short = found["letters"] + found["wide_letters"] < plain.LETTERS
    listed = first >= np.where(wide == 0, plain.ENOUGH, plain.UNITS)
    unlisted = (first < pieces - digits) & perhaps
    silent = ~doubtful & (believed | short | ~(listed | unlisted))
    answers = np.where(sure, found["best"], np.where(silent, -1, -2)).tolist()
    names: dict[int, str | None] = {-1: "", -2: ASK}
    return [_LANGUAGES[answer] if answer >= 0 else names[answer] for answer in answers]


def _by_script(letters: Numbers, most: int) -> str | None:
    """The rules for other scripts; `most` letters are no digits."""
    counts = letters[1 : len(_SCRIPTS) + 1]
    script = int(counts.argmax())
    name = _SCRIPTS[script]
    if name == "Han":
        return "ja" if 20 * letters[_KANA] > counts[script] else "zh"
    candidates = plain.SCRIPTS[name][1]
    if len(candidates) == 1:
        return candidates[0]
    if name == "Cyrillic" and letters[_RUSSIAN] and not letters[_OTHERS]:
        return "ru"
    return "" if most < plain.LETTERS // 4 else ASK


@remembered(1 << 12)
def told_by(span: bytes) -> tuple[str, bool]:
    """The language that is stated, and whether it has to be believed."""
    return _believed(values_of(span))


@remembered(1 << 12)
def first_told(span: bytes) -> tuple[str, bool]:
    """The same by the first value alone."""
    return _believed(values_of(span)[:1])


def _believed(values: tuple[str, ...]) -> tuple[str, bool]:
    stated = next((found for value in values if value and (found := plain.code(value))), "")
    return stated, bool(stated) and not stop_words(stated)


@remembered(1 << 12)
def first_stated(span: bytes) -> str:
    """The language by whose articles titles are filed."""
    values = values_of(span)
    return values[0] if values else "en"


@remembered(1 << 14)
def values_of(span: bytes) -> tuple[str, ...]:
    """The values between the brackets of a list in JSON."""
    return tuple(orjson.loads(b"[%b]" % span))
