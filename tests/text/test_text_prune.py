"""Pruning: the terms that matter, by the document alone."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from indlet.text import Analyzer, Policy
from indlet.text.prune import kept

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
