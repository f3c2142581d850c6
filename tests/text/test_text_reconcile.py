"""Foreign vectors: exact from a milder policy, with the loss in words from a harsher one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.errors import BadResponse
from indlet.model import TermVector
from indlet.text import LANGUAGES, Analyzer, Policy, loss, renormalise, stop_words

SERVICE = Policy()

# Words whose stem would be a stop word, and words that are not plain ASCII.
AWKWARD = [
    "cans", "wills", "doings", "others", "ins", "ours", "theses", "whiles", "computing", "computed", "wings",
    "wing’s", "l’homme", "don't", "Häuser", "情報検索", "ภาษา", "naïve", "İzmir", "x\u00ady", "-", "x" * 70,
]  # fmt: skip

texts = st.lists(
    st.one_of(
        st.sampled_from(sorted(stop_words("en") | stop_words("de") | stop_words("fr"))),
        st.sampled_from(AWKWARD),
        st.text(max_size=8),
    ),
    max_size=40,
).map(" ".join)
languages = st.sampled_from(["", *LANGUAGES])


@settings(max_examples=400)
@given(
    texts,
    languages,
    st.sampled_from([(False, True), (True, False), (False, False), (True, True)]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 0.3, 1.0]),
)
def test_a_milder_source_loses_nothing(
    text: str, language: str, mild: tuple[bool, bool], source_places: bool, places: bool, prune: float | None
) -> None:
    service = Policy(positions=places and source_places, prune=prune)
    source = Policy(stop=mild[0], stem=mild[1], positions=source_places)
    assert loss(source, service).exact
    vector = Analyzer(source).vector(text, language)
    assert renormalise(vector, source, Analyzer(service)) == Analyzer(service).vector(text, language)


@given(texts, languages, st.integers(1, 3), st.integers(3, 70), st.booleans())
def test_stricter_lengths_and_a_fixed_language_are_exact_from_words(
    text: str, language: str, shortest: int, longest: int, fixed: bool
) -> None:
    source = Policy(stop=False, stem=False, max_length=255)
    service = Policy(min_length=shortest, max_length=longest, language="de" if fixed else "auto")
    assert loss(source, service).kind == "milder"
    vector = Analyzer(source).vector(text, language)
    assert renormalise(vector, source, Analyzer(service)) == Analyzer(service).vector(text, language)


@given(texts)
def test_the_same_policy_changes_nothing(text: str) -> None:
    vector = Analyzer().vector(text)
    assert renormalise(vector, SERVICE, Analyzer()) is vector
    assert str(loss(SERVICE, SERVICE)) == "identical"


@given(texts, languages)
def test_a_pruned_source_keeps_its_true_length(text: str, language: str) -> None:
    source = Policy(prune=0.4)
    vector = Analyzer(source).vector(text, language)
    assert renormalise(vector, source, Analyzer()) == vector


def test_a_pruned_source_is_not_pruned_again() -> None:
    source = Policy(prune=0.8, positions=True)
    vector = Analyzer(source).vector("wing wing lift drag flow boundary")
    assert len(vector.frequencies()) == 4
    assert len(renormalise(vector, source, Analyzer(Policy(prune=0.5))).frequencies()) == 4


@pytest.mark.parametrize(
    ("source", "service", "words"),
    [
        ({}, {"stem": False}, "source already stemmed"),
        ({}, {"stop": False}, "stop words dropped"),
        ({"prune": 0.4}, {}, "pruned to 40% of the terms"),
        ({"prune": 0.4, "stop": False}, {"prune": 0.4}, "pruned to 40% of the terms"),
        ({"prune": 0.8}, {"prune": 0.4}, "pruned to 80% of the terms"),
        ({}, {"positions": True}, "positions missing"),
        ({"stops": "00"}, {}, "stop words taken from other lists"),
        ({"stops": "00", "stop": False}, {}, "stop words taken from other lists"),
        ({"stemmer": "snowball 1.0"}, {}, "stemmed by other stemmers (snowball 1.0, here "),
        ({"max_length": 20}, {}, "only tokens of 1 to 20 characters kept"),
        ({"min_length": 3}, {}, "only tokens of 3 to 64 characters kept"),
        ({"max_length": 100}, {}, "the lengths of tokens cannot be told from their stems"),
        ({"language": "de"}, {"language": "en"}, "analysed by the rules of 'de', here 'en'"),
        ({}, {"language": "en"}, "analysed by the rules of each document's language, here 'en'"),
        ({"language": ""}, {}, "languages not told: all texts count as 'en'"),
        ({"default_language": "fr"}, {}, "texts that do not tell their language count as 'fr'"),
    ],
)
def test_losses_are_put_into_words(source: dict[str, Any], service: dict[str, Any], words: str) -> None:
    found = loss(Policy(**source), Policy(**service))
    assert found.kind == "harsher"
    assert not found.exact
    assert any(line.startswith(words) for line in found.losses)
    assert words in str(found)


@pytest.mark.parametrize(
    ("source", "service"),
    [
        ({"positions": True}, {}),
        ({"positions": True, "prune": 0.4}, {"prune": 0.4}),
        ({}, {"prune": 0.4}),
        ({"stop": False}, {}),
        ({"stem": False, "stemmer": "snowball 1.0"}, {}),
        ({"stem": False, "stop": False, "stops": "00"}, {}),
        ({"language": "de", "stem": False, "stop": False}, {"language": "en"}),
        ({"language": "", "stop": True, "stem": True}, {"language": "en"}),
    ],
)
def test_what_is_milder(source: dict[str, Any], service: dict[str, Any]) -> None:
    assert loss(Policy(**source), Policy(**service)).kind == "milder"


def test_an_unknown_policy_is_foreign_and_its_terms_are_taken_for_words() -> None:
    assert loss(None, SERVICE).kind == "foreign"
    assert loss(replace(SERVICE, rules="elsewhere-7"), SERVICE).kind == "foreign"
    vector = TermVector.of({"Wings": 2, "wing": 1, "the": 4, "state-of-the-art": 3}, length=20)
    assert renormalise(vector, None, Analyzer()) == TermVector(b"3 art state wing", 19, None, "en")


def test_stems_are_not_stemmed_again() -> None:
    # Porter makes "gener" of "generalities" only in several steps.
    service = Policy(language="en", positions=True)
    source = Policy(language="en", stop=False)
    words = "generalization universities relational databases"
    once = Analyzer(source).vector(words)
    assert renormalise(once, source, Analyzer(service)) == once
    assert loss(source, service).losses == ("positions missing",)


def test_positions_survive() -> None:
    source, service = Policy(stop=False, stem=False, positions=True), Policy(positions=True)
    vector = Analyzer(source).vector("the wings of a wing")
    assert renormalise(vector, source, Analyzer(service)).places() == {"wing": [1, 4]}


def test_a_length_that_is_too_short_is_not_believed() -> None:
    vector = TermVector.of({"wing": 5}, length=1)
    assert renormalise(vector, Policy(stem=False), Analyzer()).length == 5


def test_positions_of_a_term_that_is_many_words_have_a_limit() -> None:
    term = "-".join(f"w{n}" for n in range(40_000))
    vector = TermVector.of_positions({term: range(40_000)})
    with pytest.raises(BadResponse, match="20 times its size"):
        renormalise(vector, None, Analyzer(Policy(positions=True)))


@pytest.mark.parametrize("stem", [True, False])
@pytest.mark.parametrize("stop", [True, False])
def test_a_fixed_language_is_no_milder_policy(stem: bool, stop: bool) -> None:
    source = Policy(language="en", stem=stem, stop=stop)
    text = "Die Häuser der Stadt sind alt, und die Straßen sind leer; die Menschen schlafen in ihren Häusern."
    vector = renormalise(Analyzer(source).vector(text), source, Analyzer(SERVICE))
    assert vector != Analyzer(SERVICE).vector(text)
    found = loss(source, SERVICE)
    assert (found.kind, found.exact) == ("harsher", False)
    assert "all texts analysed as 'en'" in str(found)
    assert loss(source, replace(SERVICE, language="en")).exact
