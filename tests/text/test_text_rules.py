"""Stop words and stems by language."""

from __future__ import annotations

import pytest

from indlet.text import Analyzer, Policy
from indlet.text.rules import LANGUAGES, stop_words, stops_digest
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
    assert len(set(Analyzer().terms(forms, language))) == 1


def test_a_stem_is_never_a_stop_word() -> None:
    assert Analyzer().terms("cans wills wings", "en") == ["cans", "wills", "wing"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_stemmer_leaves_something(language: str) -> None:
    analyzer = Analyzer(Policy(language=language, stop=False))
    words = sorted({word for other in LANGUAGES for word in stop_words(other)})
    for made in analyzer.core.map_words(words, language):
        assert made
        assert all(term.strip() for term in made)


def test_the_digest_is_of_the_lists() -> None:
    assert len(stops_digest()) == 16
    int(stops_digest(), 16)
