"""The number of matches is exact however many documents are skipped, or said not to be: compared with a count
one by one. And what is skipped changes no page: compared with the formula itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indlet.model import Stored
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.embedded.searcher import SegmentSearcher as Searcher
from indlet.service.index.expression import And, Expression, Filter, Not, Or, Term
from indlet.service.index.protocol import Results
from indlet.service.search.rank import MODELS, Model

# Shares of the documents that hold a term: from long lists, whose bounds are low, to single postings.
SHARES = {"every": 0.99, "most": 0.8, "half": 0.5, "some": 0.2, "few": 0.03, "rare": 0.003, "once": 0.00005}


@dataclass(frozen=True)
class Held:
    """What the index was made of: the terms, the resource and the origin of each live record."""

    terms: dict[int, frozenset[str]]
    resource: dict[int, int]
    origin: dict[int, int]

    def total(self, words: frozenset[str], without: int, collapse: bool) -> int:
        found = [id for id, terms in self.terms.items() if terms & words and self.origin[id] != without]
        return len({self.resource[id] or -id for id in found}) if collapse else len(found)


@pytest.fixture(scope="module")
def corpus(
    tmp_path_factory: pytest.TempPathFactory, record: Callable[..., Stored]
) -> Iterator[tuple[Searcher, Held]]:
    """Lists of several windows in a large segment, a small one behind it, deletions, and shared resources."""
    source = random.Random(7)
    held = Held({}, {}, {})
    with Engine.open(tmp_path_factory.mktemp("index"), writable=True) as engine:
        for low, high in ((1, 26_001), (26_001, 27_001)):
            for id in range(low, high):
                content = {
                    term: source.choice([1, 1, 1, 2, 3, 40, 300])
                    for term, share in SHARES.items()
                    if source.random() < share
                }
                # A resource that two records of one origin have is none (see `groups.grouped`).
                shared = id - id % 3 + 1 if id % 11 < 3 else 0
                held.terms[id] = frozenset(content)
                held.resource[id], held.origin[id] = shared, id % 3 + 1
                engine.apply([record(id, id, content, resource=shared, origin=id % 3 + 1)])
            engine.commit()
        for seq, id in enumerate(source.sample(range(1, 27_001), 1500), 27_001):
            del held.terms[id]
            engine.apply([record(id, seq, None)])
        engine.commit()
        yield engine.searcher(), held


@given(
    words=st.sets(st.sampled_from([*SHARES, "unknown"]), min_size=1, max_size=5).map(frozenset),
    model=st.sampled_from(sorted(MODELS)),
    limit=st.sampled_from([0, 1, 3, 10, 100]),
    collapse=st.booleans(),
    without=st.sampled_from([0, 1, 3]),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_totals_are_those_of_a_count(
    words: frozenset[str],
    model: str,
    limit: int,
    collapse: bool,
    without: int,
    corpus: tuple[Searcher, Held],
) -> None:
    searcher, held = corpus
    expression = Or(tuple(map(Term, sorted(words))))
    filters = [Not(Filter("origin", str(without)))] if without else []
    found = searcher.search(expression, MODELS[model](), limit, filters=filters, collapse=collapse)
    expected = held.total(words, without, collapse)
    assert found.total == expected
    assert len(found.hits) == min(limit, expected)


@given(
    words=st.sets(st.sampled_from([*SHARES, "unknown"]), min_size=1, max_size=7).map(sorted),
    model=st.sampled_from(sorted(MODELS)),
    limit=st.sampled_from([1, 10, 700]),
    collapse=st.booleans(),
    without=st.sampled_from([0, 1]),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_skipped_changes_no_page(
    words: list[str],
    model: str,
    limit: int,
    collapse: bool,
    without: int,
    corpus: tuple[Searcher, Held],
) -> None:
    searcher, _ = corpus
    expression = Or(tuple(map(Term, words)))
    filters = [Not(Filter("origin", str(without)))] if without else []
    kind = MODELS[model]
    found = searcher.search(expression, kind(), limit, filters=filters, collapse=collapse)
    assert found.total_is_exact
    quick = searcher.search(expression, kind(), limit, filters=filters, collapse=collapse, exact_total=False)
    assert quick.hits == found.hits
    assert (
        quick.total == found.total if quick.total_is_exact else len(quick.hits) <= quick.total <= found.total
    )
    plain = type(f"Plain{kind.__name__}", (kind,), {"__slots__": (), "kernel": ""})()
    assert searcher.search(expression, plain, limit, filters=filters, collapse=collapse).hits == found.hits


@pytest.mark.parametrize("model", sorted(MODELS))
def test_few_of_many_lists_are_read_for_a_lower_bound(model: str, corpus: tuple[Searcher, Held]) -> None:
    searcher, _ = corpus
    asked = Or((Term("once"), Term("every")))
    found = searcher.search(asked, MODELS[model](), 1, exact_total=False, collapse=False)
    assert found.hits == searcher.search(asked, MODELS[model](), 1, collapse=False).hits
    assert found.total_is_exact or found.total < searcher.search(asked, collapse=False).total


@given(
    words=st.sets(st.sampled_from([*SHARES, "unknown"]), min_size=2, max_size=5).map(sorted),
    rarest=st.booleans(),
    model=st.sampled_from(sorted(MODELS)),
    page=st.tuples(st.sampled_from([0, 1, 10, 300]), st.sampled_from([0, 0, 1, 7, 150])),
    collapse=st.booleans(),
    without=st.sampled_from([0, 1]),
    facets=st.sampled_from([(), ("origin",)]),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_goes_first_goes_first_by_each_way(
    words: list[str],
    rarest: bool,
    model: str,
    page: tuple[int, int],
    collapse: bool,
    without: int,
    facets: tuple[str, ...],
    corpus: tuple[Searcher, Held],
) -> None:
    searcher, _ = corpus
    terms = tuple(map(Term, words))
    filters = [Not(Filter("origin", str(without)))] if without else []
    first: list[Expression] = [And(terms)]
    if rarest and "once" in words:
        first.insert(0, Term("once"))

    def ask(asked: Expression, kind: type[Model] = MODELS[model], exact: bool = True) -> Results:
        return searcher.search(
            asked, kind(), *page, filters=filters, facets=facets, collapse=collapse, first=first,
            exact_total=exact,
        )  # fmt: skip

    slow = type("Slow", (MODELS[model],), {"__slots__": (), "kernel": ""})  # scores all that match
    slowly = ask(Or(terms), slow)
    assert ask(Or(terms)) == slowly
    nested = And((Or(terms), Or((Not(Term("few")), Term("some")))))
    assert ask(nested) == ask(nested, slow)
    quick = ask(Or(terms), exact=False)
    assert (quick.hits, quick.facets) == (slowly.hits, slowly.facets)
    assert quick.total == slowly.total if quick.total_is_exact else quick.total <= slowly.total
