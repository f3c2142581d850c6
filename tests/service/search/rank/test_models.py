"""The models against numbers worked out by hand, and the ways to name them."""

from __future__ import annotations

import math

import pytest

from indlet.errors import SettingsError
from indlet.service.search.rank import (
    MODELS,
    Bm25,
    Collection,
    DocumentStatistics,
    QueryTerm,
    canonical,
    model,
    score,
)
from indlet.service.search.rank.bm25_plus import Bm25Plus
from indlet.service.search.rank.boolean import Boolean
from indlet.service.search.rank.dirichlet import Dirichlet
from indlet.service.search.rank.jelinek_mercer import JelinekMercer
from indlet.service.search.rank.pl2 import Pl2
from indlet.service.search.rank.vsm import Vsm

# Four documents of 40 tokens in all. The query asks twice for "wing" (in two documents, 5 times in all) and
# once for "air" (in three, 4 times). The document has 8 tokens: wing 3 times, air once, four others once.
COLLECTION = Collection(4, 40)
TERMS = canonical(
    [QueryTerm(b"air", 1.0, 3, 4), QueryTerm(b"wing", 2.0, 2, 5), QueryTerm(b"gone", 1.0, 0, 0)]
)
DOCUMENT = DocumentStatistics(8, math.sqrt(5 + (1 + math.log(3)) ** 2))


def test_canonical_order_is_rarest_first_and_drops_unknown_terms() -> None:
    assert [term.term for term in TERMS] == [b"wing", b"air"]


def test_bm25_by_hand() -> None:
    # idf(wing) = ln(1 + 2.5/2.5) = ln 2; idf(air) = ln(1 + 1.5/3.5); K = 1.2 (0.25 + 0.75 · 8/10) = 1.02
    by_hand = 2 * math.log(2) * 2.2 * 3 / (3 + 1.02) + math.log(5 / 3.5) * 2.2 * 1 / (1 + 1.02)
    assert score(Bm25(), TERMS, [3, 1], DOCUMENT, COLLECTION) == pytest.approx(by_hand, rel=1e-14)
    assert score(Bm25(), TERMS, [3, 1], DOCUMENT, COLLECTION) == pytest.approx(2.664464, abs=1e-6)


def test_bm25_is_never_negative() -> None:
    everywhere = QueryTerm(b"the", 1.0, 4, 30)
    assert score(Bm25(), [everywhere], [9], DOCUMENT, COLLECTION) > 0


def test_cosine_by_hand() -> None:
    wing, air = (1 + math.log(2)) * math.log(4 / 2), math.log(4 / 3)
    by_hand = (wing * (1 + math.log(3)) + air) / (DOCUMENT.norm * math.hypot(wing, air))
    assert score(Vsm(), TERMS, [3, 1], DOCUMENT, COLLECTION) == pytest.approx(by_hand, rel=1e-14)


def test_cosine_of_a_document_with_itself_asked_is_at_most_one() -> None:
    terms = [QueryTerm(b"x", 1.0, 1, 1), QueryTerm(b"y", 1.0, 1, 1)]
    assert score(Vsm(), terms, [1, 1], DocumentStatistics(2, math.sqrt(2)), COLLECTION) == pytest.approx(1.0)


def test_dirichlet_is_the_likelihood_of_the_whole_query() -> None:
    mu = 1000.0
    textbook = 2 * math.log((3 + mu * 5 / 40) / (8 + mu)) + math.log((1 + mu * 4 / 40) / (8 + mu))
    assert score(Dirichlet(), TERMS, [3, 1], DOCUMENT, COLLECTION) == pytest.approx(textbook, rel=1e-12)
    lacking = 2 * math.log((3 + mu * 5 / 40) / (8 + mu)) + math.log((mu * 4 / 40) / (8 + mu))
    assert score(Dirichlet(), TERMS, [3, 0], DOCUMENT, COLLECTION) == pytest.approx(lacking, rel=1e-12)


def test_jelinek_mercer_weighs_the_collection_by_lambda() -> None:
    textbook = 2 * math.log(0.3 * 3 / 8 + 0.7 * 5 / 40) + math.log(0.7 * 4 / 40)
    assert score(JelinekMercer(0.7), TERMS, [3, 0], DOCUMENT, COLLECTION) == pytest.approx(
        textbook, rel=1e-12
    )


def test_bm25_plus_by_hand() -> None:
    # idf(wing) = ln(5/2); idf(air) = ln(5/3); K = 1.02 as for BM25; each term adds its idf once more
    by_hand = 2 * math.log(5 / 2) * (2.2 * 3 / 4.02 + 1) + math.log(5 / 3) * (2.2 / 2.02 + 1)
    assert score(Bm25Plus(), TERMS, [3, 1], DOCUMENT, COLLECTION) == pytest.approx(by_hand, rel=1e-14)
    assert score(Bm25Plus(), TERMS, [3, 1], DOCUMENT, COLLECTION) == pytest.approx(5.908468, abs=1e-6)


def test_bm25_plus_never_ranks_a_long_document_as_if_it_lacked_a_term() -> None:
    endless = DocumentStatistics(10**9, 1.0)
    assert score(Bm25Plus(), TERMS[:1], [1], endless, COLLECTION) > TERMS[0].weight * math.log(5 / 2)
    assert score(Bm25(), TERMS[:1], [1], endless, COLLECTION) < 1e-6


def test_pl2_by_hand() -> None:
    # tfn = tf · log2(1 + 10/8) = 1.169925 tf; the means are 5/4 and 4/4.
    def divergence(tfn: float, mean: float) -> float:
        ln = tfn * math.log(tfn / mean) + mean + 1 / (12 * tfn) - tfn + math.log(2 * math.pi * tfn) / 2
        return ln / math.log(2) / (tfn + 1)

    by_hand = 2 * divergence(3 * 1.1699250014423124, 1.25) + divergence(1.1699250014423124, 1.0)
    assert score(Pl2(), TERMS, [3, 1], DOCUMENT, COLLECTION) == pytest.approx(by_hand, rel=1e-12)
    assert score(Pl2(), TERMS, [3, 1], DOCUMENT, COLLECTION) == pytest.approx(2.596918, abs=1e-6)


def test_pl2_at_the_average_length_is_the_improbability_of_the_frequency() -> None:
    """With c = 1 a document of average length keeps its frequencies: tfn = tf · log2(2)."""
    poisson = -math.log2(math.exp(-1.25) * 1.25**3 / math.factorial(3))
    found = score(Pl2(), [QueryTerm(b"wing", 1.0, 2, 5)], [3], DocumentStatistics(10, 1.0), COLLECTION)
    assert found * 4 == pytest.approx(poisson, abs=1e-3)


def test_boolean_scores_one() -> None:
    assert score(Boolean(), TERMS, [1, 0], DOCUMENT, COLLECTION) == 1.0


def test_models_by_name() -> None:
    assert list(MODELS) == ["bm25", "vsm", "lm-dirichlet", "lm-jm", "bm25-plus", "pl2", "boolean"]
    assert model("bm25", ["k1=0.9", " b = 0.4"]) == Bm25(0.9, 0.4)
    assert model("lm-jm", ["lambda=0.2"]) == JelinekMercer(0.2)
    assert model("lm-dirichlet", ["mu=500"]) == Dirichlet(500.0)


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("tfidf", [], "choose one of bm25, vsm, lm-dirichlet, lm-jm, bm25-plus, pl2, boolean"),
        ("bm25", ["mu=1"], "it takes k1, b"),
        ("vsm", ["k1=1"], "it takes none"),
        ("bm25", ["b=2"], "from 0 to 1"),
        ("bm25", ["k1"], "at least 0"),
        ("lm-jm", ["lambda=0"], "between 0 and 1"),
        ("lm-dirichlet", ["mu=nan"], "above 0"),
        ("bm25-plus", ["delta=-1"], "at least 0"),
        ("pl2", ["c=0"], "above 0"),
    ],
)
def test_a_wrong_name_or_parameter_is_told(name: str, parameters: list[str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        model(name, parameters)
