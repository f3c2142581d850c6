"""The packed vector is canonical and loses nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from indlet.model import TermVector, merge_metadata

words = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)


@given(st.dictionaries(words, st.integers(1, 300), max_size=30))
def test_packing_is_a_round_trip_and_canonical(frequencies: dict[str, int]) -> None:
    vector = TermVector.of(frequencies)
    assert vector.frequencies() == frequencies
    assert vector.length == sum(frequencies.values())
    assert TermVector.of(dict(reversed(frequencies.items()))) == vector


@given(
    st.dictionaries(words, st.lists(st.integers(0, 10_000), min_size=1, max_size=9, unique=True).map(sorted))
)
def test_positions_are_a_round_trip(places: dict[str, list[int]]) -> None:
    vector = TermVector.of_positions(places)
    assert vector.places() == places
    assert vector.frequencies() == {term: len(where) for term, where in places.items()}


def test_the_form_is_the_documented_one() -> None:
    assert TermVector.of({"wing": 3, "air": 1, "acid": 1}).packed == b"1 acid air\n3 wing"
    assert TermVector.of({}).packed == b""


def test_merging_keeps_order_and_drops_repeats() -> None:
    assert merge_metadata({"title": ["a"], "date": ["1"]}, {"title": ["a", "b"], "creator": ["c"]}) == {
        "title": ["a", "b"],
        "creator": ["c"],
        "date": ["1"],
    }
