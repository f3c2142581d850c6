"""Whatever is typed: an answer or a fault that is pointed at, and rules that hold for every query."""

from __future__ import annotations

import math

import orjson
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from indlet.errors import QueryError
from indlet.service.search.library import FACETS, Library
from indlet.service.search.rank import MODELS

_PIECES = st.sampled_from(
    ["boundary", "layer", "wind", "wave*", "b*", "the", "AND", "OR", "NOT", "(", ")", '"', "+", "-", "*",
     "title:", "creator:", "date:", "1950..", "set:flow", "source:air", "language:", "Strömung", "情報", "_",
     "\ud800", "\x00", "ﬁ", "İ", "heat-transfer"]
)  # fmt: skip
_queries = st.one_of(st.lists(_PIECES, min_size=1, max_size=9).map(" ".join), st.text(max_size=40))
_often = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_often
@given(text=_queries, model=st.sampled_from(list(MODELS)), plain=st.booleans())
def test_any_text_is_answered_or_pointed_at(shelf: Library, text: str, model: str, plain: bool) -> None:
    try:
        result = shelf.search(text, model=model, facets=FACETS, plain=plain)
    except QueryError as fault:
        assert 0 <= fault.position <= max(len(text) - 1, 0)
        return
    orjson.dumps(result.to_json())
    assert result.total >= len(result.hits)
    for hit in result:
        assert math.isfinite(hit.score)
        told = shelf.explain(result.query, hit.identifier, model=model, plain=plain)
        assert (told.matches, told.score) == (True, hit.score)


@_often
@given(left=_queries, right=_queries)
@example(left="boundary", right="boundary AND the")  # "the" is a stop word to the English records alone
@example(left="boundary", right="+the")
@example(left="wind", right="the AND der")
@example(left="wind", right="-boundary-the")
def test_operators_are_those_of_sets(shelf: Library, left: str, right: str) -> None:
    def found(text: str) -> set[str]:
        return {hit.identifier for hit in shelf.search(text, limit=100)}

    try:
        found(left), found(right)  # their own brackets are in order
        one, two = found(f"({left})"), found(f"({right})")
    except QueryError:
        return
    assert found(f"({left}) AND ({right})") == one & two
    assert found(f"({left}) OR ({right})") == one | two
    assert found(f"({left}) AND NOT ({right})") == one - two
