"""Which language a text is in: its script, its function words, and only then a statistical model.

Function words make up a third of running text and cost one look-up a word, so they decide nearly every
document. A model (`langid`) is asked where they leave a doubt and the text is long enough to tell. A wrong
language costs more than none, for its stemmer spoils every word:
`detect` is silent rather than rash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from struct import Struct
from typing import TYPE_CHECKING, Final

from indlet.text.rules import LANGUAGES, stop_words
from indlet.text.tokens import split

if TYPE_CHECKING:
    from indlet.text.langid import Classified

# A sample from the start and, as title pages mislead, one from the middle.
SAMPLE: Final = 2000
# What the model reads: it takes 1 ms for 500 characters and 5 ms for 4,000, and is as sure.
READ: Final = 600
# A function word speaks for its languages the louder the fewer they are, with six units between them. Three
# words that amount to two of its own make a language sure, if the runner-up is this far behind.
UNITS: Final = 6
ENOUGH: Final = 2 * UNITS
LEAD: Final = 1.5
WORDS: Final = 3
# Abbreviations in tables look like function words, so there it takes more of them.
TABLE_WORDS: Final = 6
# A text whose letters are this few is too short for the model, and an answer below this probability too weak.
LETTERS: Final = 100
SURE: Final = 0.9

# A sixteen-bit place for each language.
_PLACES: Final = Struct(f"<{len(LANGUAGES)}H")
_LANGUAGES: Final = tuple(LANGUAGES)

FOREIGN: Final = re.compile(
    "[\u0370-\u167f\u1681-\u1cff\u2d00-\u2dff\u3005-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
KANA: Final = re.compile("[\u3041-\u30ff]")
# Scripts by their letters, with the languages that they are used for.
SCRIPTS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "Greek": ("\u0370-\u03ff\u1f00-\u1fff", ["el"]),
    "Cyrillic": ("\u0400-\u052f", ["ru", "uk", "bg", "sr", "mk", "be", "kk", "ky", "mn", "tg", "tt", "ba"]),
    "Armenian": ("\u0530-\u058f", ["hy"]),
    "Hebrew": ("\u0590-\u05ff", ["he", "yi"]),
    "Arabic": ("\u0600-\u077f\ufb50-\ufdff\ufe70-\ufefe", ["ar", "fa", "ur", "ps", "ku", "ug"]),
    "Devanagari": ("\u0900-\u097f", ["hi", "mr", "ne", "sa"]),
    "Bengali": ("\u0980-\u09ff", ["bn", "as"]),
    "Gurmukhi": ("\u0a00-\u0a7f", ["pa"]),
    "Gujarati": ("\u0a80-\u0aff", ["gu"]),
    "Oriya": ("\u0b00-\u0b7f", ["or"]),
    "Tamil": ("\u0b80-\u0bff", ["ta"]),
    "Telugu": ("\u0c00-\u0c7f", ["te"]),
    "Kannada": ("\u0c80-\u0cff", ["kn"]),
    "Malayalam": ("\u0d00-\u0d7f", ["ml"]),
    "Sinhala": ("\u0d80-\u0dff", ["si"]),
    "Thai": ("\u0e00-\u0e7f", ["th"]),
    "Lao": ("\u0e80-\u0eff", ["lo"]),
    "Tibetan": ("\u0f00-\u0fff", ["bo", "dz"]),
    "Myanmar": ("\u1000-\u109f", ["my"]),
    "Georgian": ("\u10a0-\u10ff", ["ka"]),
    "Ethiopic": ("\u1200-\u137f", ["am", "ti"]),
    "Khmer": ("\u1780-\u17ff", ["km"]),
    "Hangul": ("\u1100-\u11ff\uac00-\ud7ff", ["ko"]),
    "Han": ("\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff", ["zh", "ja"]),
}
# Letters that Russian, and those that its neighbours, use alone.
RUSSIAN: Final = re.compile("[ыэё]", re.IGNORECASE)
NOT_RUSSIAN: Final = re.compile("[іїєґўјљњћђџѓќѕәғқңөұүһ]", re.IGNORECASE)

# Codes that ISO 639 has withdrawn, with what stands for them now.
_WITHDRAWN: Final = {"in": "id", "iw": "he", "ji": "yi", "jw": "jv", "mo": "ro", "mol": "ro", "sh": "sr"}
# Codes of ISO 639-2 that name no single language, and what people write who know none.
_NO_LANGUAGE: Final = frozenset({"und", "mul", "zxx", "mis", "xxx", "n/a"})
# Both written forms of Norwegian have one set of rules.
_RULES: Final = {"nb": "no", "nn": "no"}


@cache
def _table() -> tuple[dict[str, str], dict[str, str]]:
    """What every code and name means, and the ISO 639-2 code (the bibliographic one) of each language."""
    meaning: dict[str, str] = {}
    bibliographic: dict[str, str] = {}
    text = resources.files(__package__).joinpath("languages.tsv").read_text("utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            two, terminological, older, names = line.split("\t")
            bibliographic[two] = older if older and older not in ("scr", "scc") else terminological
            for form in (two, terminological, older, *names.split("|")):
                if form:
                    meaning[form] = two
    return meaning, bibliographic


def language_code(value: str) -> str:
    """The ISO 639-1 code that a tag, code or name means ("ger", "de-AT", "Deutsch"), else its ISO 639-3 code;
    empty if neither. The one rule for languages: metadata and analysis both go by it."""
    folded = value.strip().lower()
    meaning, _ = _table()
    if folded in meaning:
        return meaning[folded]
    whole = re.split("[-_]", folded, maxsplit=1)[0]
    if whole in _WITHDRAWN:
        return _WITHDRAWN[whole]
    primary = re.split("[-_.;, ]", folded, maxsplit=1)[0]
    if len(primary) in (2, 3) and primary in meaning:
        return meaning[primary]
    if re.fullmatch("[a-z]{3}", primary) and primary not in _NO_LANGUAGE and whole == primary:
        return primary
    return ""


def marc_language(value: str) -> str:
    """The code of three letters that library catalogues use (ISO 639-2/B); the value if there is none."""
    return _table()[1].get(value, value)


def code(name: str) -> str:
    """The language by whose rules a text is analysed: as `language_code` has it, if ISO 639-1 knows it.

    Rules and statistics of a text are kept by codes of two letters: one of three letters is no language here.
    """
    found = language_code(name)
    return _RULES.get(found, found) if len(found) == 2 else ""


def detect(text: str, stated: str = "", classified: Classified | None = None) -> str:
    """The ISO 639-1 code of a text's language; empty where the text does not tell, or where it leaves a doubt
    and tells nothing against the language that is stated. `classified` is what the model says of it, where
    it was asked before.
    """
    taken = sample(text)
    return detect_pieces(taken, split(taken), stated, classified)


def sample(text: str) -> str:
    """The part of a text by which its language is judged: all of it unless it is long."""
    if len(text) <= 2 * SAMPLE:
        return text
    middle = len(text) // 2
    return f"{text[:SAMPLE]} {text[middle : middle + SAMPLE]}"


def detect_pieces(
    taken: str, pieces: Sequence[str], stated: str = "", classified: Classified | None = None
) -> str:
    """`detect` for a sample that was split into its pieces already.

    Where function words leave a doubt and none speak against the language that is stated, that one is to be
    believed, and the model is not asked: nothing comes out.
    """
    candidates: Sequence[str] = ()
    if not taken.isascii() and 2 * len(FOREIGN.findall(taken)) > sum(map(len, pieces)):
        script, candidates = _script(taken)
        if len(candidates) == 1:
            return candidates[0]
        if script == "Cyrillic" and RUSSIAN.search(taken) and not NOT_RUSSIAN.search(taken):
            return "ru"
    known = _function_words().intersection(pieces)
    hits = _hits(known)
    *_, second, first = sorted(hits)
    # Bulgarian shares words with Russian, Urdu letters with Arabic: there, words alone do not tell.
    if first >= ENOUGH and first > LEAD * second and not candidates:
        best = _LANGUAGES[hits.index(first)]
        words = len(known & stop_words(best))
        if words >= TABLE_WORDS or (words >= WORDS and _prose(pieces)):
            return best
    by_language = dict(zip(_LANGUAGES, hits, strict=True))
    if not candidates and by_language.get(stated) == first:
        return ""
    return _model(taken, pieces, by_language, candidates, classified)


def _hits(words: Iterable[str]) -> tuple[int, ...]:
    """The units that different words have for each language.

    Different words, as one that a table or a bibliography repeats proves no more than once. The units for all
    languages are sixteen-bit places of one number, so that a sum adds them up at once; no list is long enough
    to overflow.
    """
    total = sum(map(evidence().__getitem__, words))
    return _PLACES.unpack(total.to_bytes(_PLACES.size, "little"))


def _script(taken: str) -> tuple[str, Sequence[str]]:
    """The script that most letters of a text are in, and the languages that it may be; none if any."""
    counts = {name: len(pattern.findall(taken)) for name, pattern in script_patterns().items()}
    name = max(counts, key=counts.__getitem__)
    # Japanese mixes Han with kana; a Chinese text holds hardly any.
    if name == "Han":
        return name, ("ja",) if 20 * len(KANA.findall(taken)) > counts[name] else ("zh",)
    return name, SCRIPTS[name][1]


def _model(
    taken: str,
    pieces: Sequence[str],
    hits: Mapping[str, int],
    candidates: Sequence[str],
    classified: Classified | None,
) -> str:
    """What the statistical model makes of a text, where its answer can be believed."""
    running = [piece for piece in pieces if not piece.isdigit()]
    if sum(map(len, running)) < (LETTERS // 4 if candidates else LETTERS):
        return ""
    # Tables, lists of names and program text look like anything to the model: its answer needs words for it,
    # and where we have no words of a language, at least running text.
    most = max(hits.values())
    listed = most >= (ENOUGH if taken.isascii() else UNITS)
    unlisted = most < len(running) and _prose(pieces)
    if not (candidates or listed or unlisted):
        return ""
    if classified is None:
        from indlet.text import langid  # and numpy, which most texts do not need

        classified = langid.classify(taken[:READ])
    answer, probability = classified
    language = code(answer)
    if probability < SURE:
        return ""
    if candidates:
        return language if language in candidates else ""
    if stop_words(language):
        return language if listed and 2 * hits[language] >= most else ""
    return language if unlisted else ""


def _prose(pieces: Sequence[str]) -> bool:
    return 5 * sum(map(str.isdigit, pieces)) < len(pieces)


@cache
def evidence() -> dict[str, int]:
    """Each function word with its units for the languages that have it.

    Single letters of ours are left out: they are initials and symbols as well.
    """
    found: dict[str, list[int]] = {}
    for place, language in enumerate(_LANGUAGES):
        for word in stop_words(language):
            if len(word) > 1 or not word.isascii():
                found.setdefault(word, []).append(place)
    return {
        word: sum(max(1, UNITS // len(places)) << 16 * place for place in places)
        for word, places in found.items()
    }


@cache
def _function_words() -> frozenset[str]:
    return frozenset(evidence())


@cache
def script_patterns() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(f"[{letters}]") for name, (letters, _) in SCRIPTS.items()}
