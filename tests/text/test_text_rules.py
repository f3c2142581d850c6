"""Stop words and stems by language."""

from __future__ import annotations

import pytest

from indlet.text.rules import LANGUAGES, stemmer, stop_words, stops_digest
from indlet.text.tokens import words

WITHOUT_STOP_WORDS = {"hy", "ne", "st", "ta", "yi"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_stop_word_is_a_token(language: str) -> None:
    for word in stop_words(language):
        assert words(word) == [word]


@pytest.mark.parametrize("language", sorted(LANGUAGES.keys() - WITHOUT_STOP_WORDS))
def test_lists_are_short(language: str) -> None:
    assert 50 <= len(stop_words(language)) <= 400


def test_no_language_has_no_stop_words() -> None:
    assert stop_words("") == stop_words("xx") == stop_words("../stop/en") == frozenset()


@pytest.mark.parametrize(
    ("language", "function", "content"),
    [
        ("en", "the of and is were don t s ll ve", "information system computer index web text may us won"),
        ("de", "der und nicht für über", "zeit mensch haus"),
        ("fr", "le l d qu être où", "temps homme maison"),
        ("es", "el que está más", "tiempo casa mundo"),
        ("ru", "и в не что ещё", "время человек дом"),
        ("nl", "de het een van", "tijd huis"),
        ("sv", "och att det för", "tid hus"),
    ],
)
def test_function_words_only(language: str, function: str, content: str) -> None:
    assert stop_words(language).issuperset(function.split())
    assert stop_words(language).isdisjoint(content.split())


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("en", "computing computed computation"),
        ("de", "häuser häusern"),
        ("fr", "chercheur chercheurs"),
        ("es", "bibliotecas biblioteca"),
        ("it", "biblioteche biblioteca"),
        ("pt", "bibliotecas biblioteca"),
        ("nl", "boeken boek"),
        ("sv", "bibliotek biblioteket"),
        ("no", "bøkene bøker"),
        ("da", "bøgerne bøger"),
        ("fi", "kirjastossa kirjastosta"),
        ("ru", "библиотека библиотеки библиотек"),
        ("hu", "könyvtárak könyvtárban"),
        ("ro", "bibliotecii bibliotecile"),
    ],
)
def test_forms_of_a_word_share_a_stem(language: str, forms: str) -> None:
    stem = stemmer(language)
    assert stem is not None
    assert len({stem.one(word) for word in forms.split()}) == 1


def test_a_stem_is_never_a_stop_word() -> None:
    stem = stemmer("en")
    assert stem is not None
    assert stem.one("cans") == "cans"
    assert stem.one("wills") == "wills"
    assert stem.one("wings") == "wing"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_stemmer_leaves_something(language: str) -> None:
    stem = stemmer(language)
    assert stem is not None
    for other in LANGUAGES:
        for word in stop_words(other):
            assert stem.one(word).strip()


def test_no_stemmer_for_a_language_without_one() -> None:
    assert stemmer("") is None
    assert stemmer("ja") is None


def test_the_digest_is_of_the_lists() -> None:
    assert len(stops_digest()) == 16
    int(stops_digest(), 16)
