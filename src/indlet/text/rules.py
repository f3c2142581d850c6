"""What a language does to a token: its stop words and its stemmer.

The two are tied by one rule, so that they can be applied together or one after the other with the same
outcome: a stop word is never stemmed, and a word whose stem would be a stop word ("cans", "wills") stays
as it is. Among the stems of an unstopped text the stop words are then exactly the terms that stand in the
list, and a service that drops them gets what it would have got from the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from types import MappingProxyType
from typing import Final

import Stemmer

from indlet.text.tokens import words

# Languages with a Snowball stemmer, by ISO 639-1 code.
LANGUAGES: Final[Mapping[str, str]] = MappingProxyType({
    "ar": "Arabic", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "ga": "Irish", "hi": "Hindi", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "it": "Italian", "lt": "Lithuanian", "ne": "Nepali", "nl": "Dutch", "no":
    "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sr": "Serbian",
    "st": "Sesotho", "sv": "Swedish", "ta": "Tamil", "tr": "Turkish", "yi": "Yiddish",
})  # fmt: skip

# Algorithms that are not called after their language.
_ALGORITHMS: Final = {"en": "porter"}

# Stems differ between releases of the algorithms; exactness needs the same ones on both sides.
STEMMER: Final = "snowball " + ".".join(Stemmer.version().split(".")[:2]) + ", english=porter"


def _listed(language: str) -> list[str]:
    file = files(__package__).joinpath("stop", f"{language}.txt")
    if language not in LANGUAGES or not file.is_file():
        return []
    lines = file.read_text("utf-8").splitlines()
    return [word for line in lines if not line.startswith("#") for word in line.split()]


@cache
def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language as tokens; none where we have no list of it."""
    return frozenset(token for word in _listed(language) for token in words(word))


@cache
def stops_digest() -> str:
    """A digest over the content of all stop lists."""
    content = "\n".join(f"{language} {' '.join(sorted(set(_listed(language))))}" for language in LANGUAGES)
    return blake2b(content.encode(), digest_size=8).hexdigest()


class Stems:
    """From tokens that are no stop words to their terms, in a language that has a stemmer.

    A stemmer keeps state and must not be shared by threads that run at once.
    """

    def __init__(self, language: str) -> None:
        # Terms are kept by the analyser, so the stemmer's own cache would only cost.
        self._stemmer = Stemmer.Stemmer(_ALGORITHMS.get(language, LANGUAGES[language].lower()), 0)
        self._stops = stop_words(language)

    def one(self, word: str) -> str:
        stemmed: str = self._stemmer.stemWord(word)
        return word if not stemmed or stemmed in self._stops else stemmed

    def many(self, words: list[str]) -> list[str]:
        stops = self._stops
        stemmed: list[str] = self._stemmer.stemWords(words)
        if all(stemmed) and stops.isdisjoint(stemmed):
            return stemmed
        return [w if not s or s in stops else s for w, s in zip(words, stemmed, strict=True)]


def stemmer(language: str) -> Stems | None:
    """A stemmer of its own for each call; none for a language without."""
    return Stems(language) if language in LANGUAGES else None
