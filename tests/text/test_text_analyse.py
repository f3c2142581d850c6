"""Analysis: a text under a policy becomes a vector."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.model import FIELD_MARKS, Stored, TermVector, groups, pack
from indlet.text import LANGUAGES, Analyzer, Policy, detect, stop_words
from indlet.text.rules import stemmer
from indlet.text.tokens import join_lines, split, words

ENGLISH = "The wings of the aircraft, and the wing's lift: computing is computed."

WORDS = [
    "the",
    "wings",
    "of",
    "don't",
    "cans",
    "will",
    "wills",
    "computing",
    "情報検索",
    "Über",
    "für",
    "die",
]

texts = st.text(
    st.one_of(st.sampled_from("aeinst  \n.'-’\u00adéß字あกİ9"), st.characters()), max_size=80
) | st.lists(
    st.sampled_from(WORDS),
    max_size=30,
).map(" ".join)


def slow(text: str, policy: Policy, language: str) -> TermVector:
    """The analysis written down plainly: token by token, nothing remembered."""
    stem = stemmer()
    places: dict[str, list[int]] = {}
    tokens = [word for piece in split(join_lines(text)) for word in words(piece)]
    for place, token in enumerate(tokens):
        if not policy.min_length <= len(token) <= policy.max_length:
            continue
        if token in stop_words(language):
            if policy.stop:
                continue
        elif policy.stem and language in LANGUAGES:
            (stemmed,) = stem(language, [token])
            token = token if not stemmed or stemmed in stop_words(language) else stemmed
        places.setdefault(token, []).append(place)
    if policy.positions:
        return TermVector.of_positions(places, language=language)
    return TermVector.of({term: len(at) for term, at in places.items()}, language=language)


def test_an_english_sentence() -> None:
    vector = Analyzer().vector(ENGLISH)
    assert vector == TermVector(b"1 aircraft lift\n2 comput wing", 6, None, "en")


def test_positions_count_every_token() -> None:
    vector = Analyzer(Policy(positions=True)).vector(ENGLISH)
    assert vector.places() == {"aircraft": [4], "lift": [9], "comput": [10, 12], "wing": [1, 7]}
    assert vector.length == 6


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy(stem=False), "1 aircraft computed computing lift wing wings"),
        (
            Policy(language="", default_language=""),
            "1 aircraft and computed computing is lift of s wing wings\n3 the",
        ),
        (Policy(min_length=5), "1 aircraft\n2 comput\n1 wing"),
        (Policy(max_length=5), "1 lift\n2 wing"),
    ],
)
def test_choices(policy: Policy, expected: str) -> None:
    lines = [line.split() for line in expected.splitlines()]
    frequencies = {term: int(line[0]) for line in lines for term in line[1:]}
    assert Analyzer(policy).vector(ENGLISH).packed == pack(frequencies)


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Die Häuser der Stadt sind nicht für die Katzen", "de", ["haus", "stadt", "katz"]),
        ("L’homme qu’on aime n’était pas d’ici, les chercheurs", "fr", ["homm", "aim", "chercheur"]),
        ("Las bibliotecas de la ciudad", "es", ["bibliotec", "ciud"]),
        ("Библиотеки этого города", "ru", ["библиотек", "город"]),
        ("情報検索", "ja", ["情報", "報検", "検索"]),
    ],
)
def test_languages(text: str, language: str, expected: list[str]) -> None:
    assert Analyzer().terms(text, language) == expected


def test_a_language_is_found_stated_or_assumed() -> None:
    german = "Der Katalog wurde in zwei Bänden gedruckt, und der zweite ist seit dem Brand verschollen."
    assert Analyzer().vector(german).language == "de"
    assert Analyzer().vector(german, "ger").language == "de"
    assert Analyzer().vector(german, "not a language").language == "de"
    assert Analyzer().vector("Wings", "fr").language == "fr"
    # Turkish records with English abstracts; Slovak, which looks like Czech to who knows only Czech.
    assert Analyzer().vector(german, "tr").language == "de"
    assert Analyzer().vector(german, "sk").language == "sk"
    assert Analyzer().terms("die Häuser", "en") == ["die", "häuser"]
    assert Analyzer().vector("Wings").language == "en"
    assert Analyzer(Policy(default_language="nl")).vector("Wings").language == "nl"
    assert Analyzer(Policy(default_language="")).vector("Wings") == TermVector(b"1 wings", 1, None, "")
    assert Analyzer(Policy(language="it")).vector(german, "de").language == "it"
    assert Analyzer(Policy(language="")).vector(german).language == ""


@settings(max_examples=200)
@given(
    texts,
    st.builds(
        Policy,
        stop=st.booleans(),
        stem=st.booleans(),
        positions=st.booleans(),
        min_length=st.integers(1, 3),
        max_length=st.integers(3, 64),
    ),
    st.sampled_from(["en", "de", "fr", "tr", "ar", "ja"]),
)
def test_what_is_remembered_is_what_is_worked_out(text: str, policy: Policy, language: str) -> None:
    analyzer = Analyzer(replace(policy, language=language))
    expected = slow(text, policy, language)
    assert analyzer.vector(text) == expected
    assert analyzer.vector(text) == expected


@given(texts)
def test_vectors_are_canonical_and_clean(text: str) -> None:
    for analyzer in (Analyzer(), Analyzer(Policy(positions=True))):
        vector = analyzer.vector(text)
        assert vector.packed == pack(vector.frequencies())
        assert vector.length == sum(vector.frequencies().values())
        for _, terms in groups(vector.packed):
            for term in terms:
                assert term
                # Letters that this Python does not know are in no category of its own.
                assert all(c.isprintable() or unicodedata.category(c) == "Cn" for c in term)
        assert Counter(analyzer.terms(text, vector.language)) == vector.frequencies()


@given(st.text(max_size=40), st.sampled_from(sorted(LANGUAGES)))
def test_no_language_makes_terms_that_cannot_be_sent(text: str, language: str) -> None:
    vector = Analyzer(Policy(language=language)).vector(text)
    for _, terms in groups(vector.packed):
        for term in terms:
            assert term
            # Letters that this Python does not know are in no category of its own.
            assert all(c.isprintable() or unicodedata.category(c) == "Cn" for c in term)
            assert " " not in term


@given(texts)
def test_the_language_is_the_detected_one(text: str) -> None:
    assert Analyzer().vector(text).language == (detect(text) or "en")


def test_a_large_text_is_the_sum_of_its_parts() -> None:
    text = ENGLISH + " naïve 情報検索 infor\u00ad\nmation "
    one = Analyzer(Policy(language="en")).vector(text).frequencies()
    many = Analyzer(Policy(language="en")).vector(text * 5000).frequencies()
    assert many == {term: 5000 * tf for term, tf in one.items()}


def test_memory_is_bounded() -> None:
    analyzer = Analyzer(Policy(language="en"))
    for part in range(8):
        text = " ".join(f"word{number}" for number in range(100_000 * part, 100_000 * (part + 1)))
        assert len(analyzer.vector(text).frequencies()) == 100_000
    assert analyzer.vector(ENGLISH) == Analyzer(Policy(language="en")).vector(ENGLISH)


def test_overlong_tokens_are_dropped_but_counted() -> None:
    vector = Analyzer(Policy(positions=True)).vector("wing " + "x" * 65 + " lift")
    assert vector.places() == {"wing": [0], "lift": [2]}
    # Twenty-two ligatures are sixty-six letters.
    assert Analyzer().terms("ﬃ" * 22) == []
    assert Analyzer().terms("ﬃ" * 21) == ["ffi" * 21]


def test_one_word() -> None:
    analyzer = Analyzer()
    assert analyzer.term("Wings", "en") == ("wing",)
    assert analyzer.term("the", "en") == ()
    assert analyzer.term("State-of-the-Art", "en") == ("state", "art")
    assert analyzer.term("Wings", "ja") == ("wings",)


def fields(metadata: dict[str, list[str]], language: str = "") -> dict[str, int]:
    """The terms of fields, without keys."""
    row = Stored(
        1, 1, 1, "x", 0, 0, "", language, 0, 0, json.dumps(metadata).encode(), b"{}", b"", b"", None, b""
    )
    (made,) = Analyzer().described([row])
    marks = tuple(FIELD_MARKS.values())
    return {term: f for f, terms in groups(made.fields) for term in terms if term.startswith(marks)}


def test_fields() -> None:
    metadata = {
        "title": ["Wings of Desire", "The wing"],
        "creator": ["Müller, Jo"],
        "date": ["1987"],
        "subject": [],
    }
    assert fields(metadata) == {"\x1ftwing": 2, "\x1ftdesir": 1, "\x1fcmüller": 1, "\x1fcjo": 1}
    assert fields({}) == {}


def test_the_language_of_fields_is_given_found_or_stated() -> None:
    assert fields({"title": ["Häuser"], "language": ["ger"]}) == {"\x1fthaus": 1}
    english = {"title": ["What the houses of the city are made from"], "language": ["ger"]}
    assert "\x1fthous" in fields(english)
    assert fields({"title": ["Häuser"]}, "de") == {"\x1fthaus": 1}
    assert fields({"title": ["Häuser"], "language": ["??", "deu"]}) == {"\x1fthaus": 1}
