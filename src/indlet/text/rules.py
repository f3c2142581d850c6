"""What a language does to a token: its stop words and its stemmer.

The two are tied by one rule (`core/src/text/analyzer.rs`), so that they can be applied together or one after
the other with the same outcome: a stop word is never stemmed, and a word whose stem would be a stop word
("cans", "wills") stays as it is. Among the stems of an unstopped text the stop words are then exactly the
terms that stand in the list, and a service that drops them gets what it would have got from the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
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

# Stems differ between releases of the algorithms; exactness needs the same ones on both sides. That is why
# the core asks PyStemmer for each new word: the crates at hand are of another release, and differ in five
# languages.
STEMMER: Final = "snowball " + ".".join(Stemmer.version().split(".")[:2]) + ", english=porter"


@cache
def _list_stop_words(language: str) -> tuple[str, ...]:
    """The stop words as our list of the language spells them; none where there is no list."""
    file = Path(__file__).with_name("stop") / f"{language}.txt"
    if language not in LANGUAGES or not file.is_file():
        return ()
    lines = file.read_text("utf-8").splitlines()
    return tuple(word for line in lines if not line.startswith("#") for word in line.split())


@cache
def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language as tokens; none where we have no list of it."""
    return frozenset(words(" ".join(_list_stop_words(language))))


@cache
def stops_digest() -> str:
    """A digest over the content of all stop lists."""
    words_of = {language: sorted(set(_list_stop_words(language))) for language in LANGUAGES}
    content = "\n".join(f"{language} {' '.join(listed)}" for language, listed in words_of.items())
    return blake2b(content.encode(), digest_size=8).hexdigest()


def stemmer() -> Callable[[str, list[str]], list[str]]:
    """A function from a language of `LANGUAGES` and words to their stems, for one thread at a time."""
    # Terms are kept by the analyser, so the stemmer's own cache would only cost.
    made: dict[str, Stemmer.Stemmer] = {}

    def stem(language: str, words: list[str]) -> list[str]:
        if language not in made:
            made[language] = Stemmer.Stemmer(_ALGORITHMS.get(language, LANGUAGES[language].lower()), 0)
        stems: list[str] = made[language].stemWords(words)
        return stems

    return stem
