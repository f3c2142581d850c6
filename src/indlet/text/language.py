"""Which language a text is in: its script, its function words, and only then a statistical model.

Function words make up a third of running text and cost one look-up a word, so they decide nearly every
document. py3langid (Lui & Baldwin 2012, "langid.py: an off-the-shelf language identification tool") is
asked where they leave a doubt and the text is long enough to tell; it takes half a second to load and is
loaded on the first doubt only. A wrong language costs more than none, for its stemmer spoils every word:
`detect` is silent rather than rash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from struct import Struct
from typing import Any, Final

from indlet.text.rules import LANGUAGES, stop_words
from indlet.text.tokens import split

# A sample from the start and, as title pages mislead, one from the middle.
_SAMPLE: Final = 2000
# What the model reads: it takes 1 ms for 500 characters and 5 ms for 4,000, and is as sure.
_READ: Final = 600
# A function word speaks for its languages the louder the fewer they are, with six units between them. Three
# words that amount to two of its own make a language sure, if the runner-up is this far behind.
_UNITS: Final = 6
_ENOUGH: Final = 2 * _UNITS
_LEAD: Final = 1.5
_WORDS: Final = 3
# Abbreviations in tables look like function words, so there it takes more of them.
_TABLE_WORDS: Final = 6
# A text whose letters are this few is too short for the model, and an answer below this probability too weak.
_LETTERS: Final = 100
_SURE: Final = 0.9

# A sixteen-bit place for each language.
_PLACES: Final = Struct(f"<{len(LANGUAGES)}H")
_LANGUAGES: Final = tuple(LANGUAGES)

_FOREIGN: Final = re.compile("[\u0370-\u1cff\u2d00-\u2dff\u3005-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA: Final = re.compile("[\u3041-\u30ff]")
# Scripts by their letters, with the languages that they are used for.
_SCRIPTS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
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
_RUSSIAN: Final = re.compile("[ыэё]", re.IGNORECASE)
_NOT_RUSSIAN: Final = re.compile("[іїєґўјљњћђџѓќѕәғқңөұүһ]", re.IGNORECASE)

# ISO 639-2, both kinds, to ISO 639-1, for the languages that catalogues hold most.
_THREE: Final = {
    "afr": "af", "alb": "sq", "amh": "am", "ara": "ar", "arm": "hy", "asm": "as", "aze": "az", "bak": "ba",
    "baq": "eu", "bel": "be", "ben": "bn", "bod": "bo", "bos": "bs", "bre": "br", "bul": "bg", "bur": "my",
    "cat": "ca", "ces": "cs", "chi": "zh", "cym": "cy", "cze": "cs", "dan": "da", "deu": "de", "dut": "nl",
    "dzo": "dz", "ell": "el", "eng": "en", "epo": "eo", "est": "et", "eus": "eu", "fao": "fo", "fas": "fa",
    "fin": "fi", "fra": "fr", "fre": "fr", "fry": "fy", "geo": "ka", "ger": "de", "gla": "gd", "gle": "ga",
    "glg": "gl", "gre": "el", "guj": "gu", "heb": "he", "hin": "hi", "hrv": "hr", "hun": "hu", "hye": "hy",
    "ice": "is", "ind": "id", "isl": "is", "ita": "it", "jpn": "ja", "kan": "kn", "kat": "ka", "kaz": "kk",
    "khm": "km", "kir": "ky", "kor": "ko", "kur": "ku", "lao": "lo", "lat": "la", "lav": "lv", "lit": "lt",
    "ltz": "lb", "mac": "mk", "mal": "ml", "mar": "mr", "may": "ms", "mkd": "mk", "mlt": "mt", "mol": "ro",
    "mon": "mn", "msa": "ms", "mya": "my", "nep": "ne", "nld": "nl", "nno": "no", "nob": "no", "nor": "no",
    "ori": "or", "pan": "pa", "per": "fa", "pol": "pl", "por": "pt", "pus": "ps", "ron": "ro", "rum": "ro",
    "rus": "ru", "san": "sa", "scc": "sr", "scr": "hr", "sin": "si", "slk": "sk", "slo": "sk", "slv": "sl",
    "sot": "st", "spa": "es", "sqi": "sq", "srp": "sr", "swa": "sw", "swe": "sv", "tam": "ta", "tat": "tt",
    "tel": "te", "tgk": "tg", "tgl": "tl", "tha": "th", "tib": "bo", "tir": "ti", "tur": "tr", "uig": "ug",
    "ukr": "uk", "urd": "ur", "uzb": "uz", "vie": "vi", "wel": "cy", "yid": "yi", "zho": "zh", "zul": "zu",
}  # fmt: skip
_NAMES: Final = {name.lower(): code for code, name in LANGUAGES.items()} | {
    "chinese": "zh", "japanese": "ja", "korean": "ko", "hebrew": "he", "ukrainian": "uk", "bulgarian": "bg",
    "croatian": "hr", "slovak": "sk", "slovene": "sl", "latin": "la", "deutsch": "de", "français": "fr",
    "español": "es", "italiano": "it", "português": "pt", "nederlands": "nl",
    "svenska": "sv", "русский": "ru",
}  # fmt: skip
_TWO: Final = frozenset(_THREE.values())


def code(name: str) -> str:
    """The ISO 639-1 code that a language's name, code or tag means ("ger", "de-AT"); empty if unknown."""
    key = name.strip().lower()
    if key in _NAMES:
        return _NAMES[key]
    key = re.split("[-_.;, ]", key, maxsplit=1)[0]
    key = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "ji": "yi"}.get(key, key)
    return key if key in _TWO else _THREE.get(key, "")


def detect(text: str) -> str:
    """The ISO 639-1 code of a text's language; empty where the text does not tell."""
    taken = sample(text)
    return detect_pieces(taken, split(taken))


def sample(text: str) -> str:
    """The part of a text by which its language is judged: all of it unless it is long."""
    if len(text) <= 2 * _SAMPLE:
        return text
    middle = len(text) // 2
    return f"{text[:_SAMPLE]} {text[middle : middle + _SAMPLE]}"


def detect_pieces(taken: str, pieces: Sequence[str]) -> str:
    """`detect` for a sample that was split into its pieces already."""
    candidates: Sequence[str] = ()
    if not taken.isascii() and 2 * len(_FOREIGN.findall(taken)) > sum(map(len, pieces)):
        script, candidates = _script(taken)
        if len(candidates) == 1:
            return candidates[0]
        if script == "Cyrillic" and _RUSSIAN.search(taken) and not _NOT_RUSSIAN.search(taken):
            return "ru"
    known = _function_words().intersection(pieces)
    hits = _hits(known)
    *_, second, first = sorted(hits)
    # Bulgarian shares words with Russian, Urdu letters with Arabic: there, words alone do not tell.
    if first >= _ENOUGH and first > _LEAD * second and not candidates:
        best = _LANGUAGES[hits.index(first)]
        words = len(known & stop_words(best))
        if words >= _TABLE_WORDS or (words >= _WORDS and _prose(pieces)):
            return best
    return _model(taken, pieces, dict(zip(_LANGUAGES, hits, strict=True)), candidates)


def _hits(words: Iterable[str]) -> tuple[int, ...]:
    """The units that different words have for each language.

    Different words, as one that a table or a bibliography repeats proves no more than once. The units for all
    languages are sixteen-bit places of one number, so that a sum adds them up at once; no list is long enough
    to overflow.
    """
    total = sum(map(_evidence().__getitem__, words))
    return _PLACES.unpack(total.to_bytes(_PLACES.size, "little"))


def _script(taken: str) -> tuple[str, Sequence[str]]:
    """The script that most letters of a text are in, and the languages that it may be; none if any."""
    counts = {name: len(pattern.findall(taken)) for name, pattern in _script_patterns().items()}
    name = max(counts, key=counts.__getitem__)
    # Japanese mixes Han with kana; a Chinese text holds hardly any.
    if name == "Han":
        return name, ("ja",) if 20 * len(_KANA.findall(taken)) > counts[name] else ("zh",)
    return name, _SCRIPTS[name][1]


def _model(taken: str, pieces: Sequence[str], hits: Mapping[str, int], candidates: Sequence[str]) -> str:
    """What the statistical model makes of a text, where its answer can be believed."""
    running = [piece for piece in pieces if not piece.isdigit()]
    if sum(map(len, running)) < (_LETTERS // 4 if candidates else _LETTERS):
        return ""
    # Tables, lists of names and program text look like anything to the model: its answer needs words for it,
    # and where we have no words of a language, at least running text.
    most = max(hits.values())
    listed = most >= (_ENOUGH if taken.isascii() else _UNITS)
    unlisted = most < len(running) and _prose(pieces)
    if not (candidates or listed or unlisted):
        return ""
    answer, probability = _identifier().classify(taken[:_READ])
    language = code(answer)
    if probability < _SURE:
        return ""
    if candidates:
        return language if language in candidates else ""
    if stop_words(language):
        return language if listed and 2 * hits[language] >= most else ""
    return language if unlisted else ""


def _prose(pieces: Sequence[str]) -> bool:
    return 5 * sum(map(str.isdigit, pieces)) < len(pieces)


@cache
def _evidence() -> dict[str, int]:
    """Each function word with its units for the languages that have it.

    Single letters of ours are left out: they are initials and symbols as well.
    """
    found: dict[str, list[int]] = {}
    for place, language in enumerate(_LANGUAGES):
        for word in stop_words(language):
            if len(word) > 1 or not word.isascii():
                found.setdefault(word, []).append(place)
    return {
        word: sum(max(1, _UNITS // len(places)) << 16 * place for place in places)
        for word, places in found.items()
    }


@cache
def _function_words() -> frozenset[str]:
    return frozenset(_evidence())


@cache
def _script_patterns() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(f"[{letters}]") for name, (letters, _) in _SCRIPTS.items()}


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
