"""Pruning: the terms that matter, by the document alone."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from indlet import _core
from indlet.text import Analyzer, Policy, loss, renormalise


def kept(counts: dict[str, int], share: float) -> list[str]:
    return _core.most_telling(list(counts.items()), share)


frequencies = st.dictionaries(st.text("abcdé字", min_size=1, max_size=6), st.integers(1, 9), max_size=40)


def test_frequent_terms_stay_then_long_ones_then_by_code_point() -> None:
    counts = {"wing": 3, "lift": 1, "drag": 1, "viscosity": 1, "flow": 2}
    assert kept(counts, 1.0) == ["wing", "flow", "viscosity", "drag", "lift"]
    assert kept(counts, 0.4) == ["wing", "flow"]
    assert kept(counts, 0.41) == ["wing", "flow", "viscosity"]


@given(frequencies, st.floats(0.01, 1))
def test_no_term_that_went_outweighs_one_that_stayed(counts: dict[str, int], share: float) -> None:
    stays = kept(counts, share)
    assert len(stays) == ceil(share * len(counts))
    gone = counts.keys() - set(stays)
    assert not gone or min(counts[term] for term in stays) >= max(counts[term] for term in gone)
    assert kept(dict(reversed(counts.items())), share) == stays


def test_the_length_stays_true() -> None:
    text = "wing wing wing lift drag flow flow boundary"
    whole = Analyzer(Policy(positions=True)).vector(text)
    for positions in (True, False):
        vector = Analyzer(Policy(prune=0.4, positions=positions)).vector(text)
        assert vector.frequencies() == {"wing": 3, "flow": 2}
        assert vector.length == whole.length == 8
    assert Analyzer(Policy(prune=0.4, positions=True)).vector(text).places() == {
        "wing": [0, 1, 2],
        "flow": [5, 6],
    }


def test_a_summary_keeps_the_beginning_and_the_keywords() -> None:
    text = "boundary layers of wings drag drag drag lift flow flow boundary"
    whole = Analyzer(Policy(positions=True)).vector(text)
    for positions in (True, False):
        lead = Analyzer(Policy(lead=0.2, positions=positions)).vector(text)
        # Three of eleven words, of which one is a stop word; frequencies are those of the whole text.
        assert lead.frequencies() == {"boundari": 2, "layer": 1}
        both = Analyzer(Policy(lead=0.2, prune=0.2, positions=positions)).vector(text)
        assert both.frequencies() == {"boundari": 2, "layer": 1, "drag": 3}
        assert lead.length == both.length == whole.length == 10
    assert Analyzer(Policy(lead=0.2, prune=0.2, positions=True)).vector(text).places() == {
        "boundari": [0, 10],
        "layer": [1],
        "drag": [4, 5, 6],
    }


def test_a_summary_is_declared_and_its_loss_is_told() -> None:
    plain, short = Policy(), Policy(lead=0.2, prune=0.1)
    assert "lead" not in plain.to_json() and short.to_json()["lead"] == 0.2
    assert Policy.read(short.to_json()) == short and short.digest != plain.digest
    assert loss(short, short).kind == "identical"
    (told,) = loss(short, plain).losses
    assert told == "summarised: the terms of the first 20% of each text, and the 10% most frequent"
    assert loss(plain, short).losses == ("not summarised as here: all its terms are kept",)
    vector = Analyzer(plain).vector("boundary layers of wings drag drag drag lift")
    assert renormalise(vector, plain, Analyzer(short)) == vector


def test_policies_of_the_first_release_keep_their_digests() -> None:
    first = Policy(stops="x", stemmer="y", rules="indlet-text-1")
    assert first.digest == "798e4038451e4fe11211a77f93e974d2"


def test_vectors_of_the_rules_before_tex_are_not_taken_for_ours() -> None:
    earlier = Policy(rules="indlet-text-1")
    assert earlier.digest != Policy().digest
    found = loss(earlier, Policy())
    assert found.kind == "foreign" and "indlet-text-1" in found.losses[0]
