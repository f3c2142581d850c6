"""Whatever happened to an index, it equals one without a history: statistics and scores, bit for bit."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indlet.model import Stored
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.embedded.searcher import SegmentSearcher as Searcher
from indlet.service.index.expression import And, Everything, Expression, Filter, Not, Or, Term
from indlet.service.search.rank import MODELS, Bm25
from indlet.service.search.rank.bm25_plus import Bm25Plus
from indlet.service.search.rank.dirichlet import Dirichlet
from indlet.service.search.rank.jelinek_mercer import JelinekMercer
from indlet.service.search.rank.pl2 import Pl2

TERMS = [
    "a",
    "b",
    "ab",
    "acid",
    "air",
    "abcdefgh",
    "abcdefghi",
    "abcdefghijklmnopqrst",
    "wing",
    "éclair",
    "日本",
    "zz",
]
MODELS_TRIED = [
    *(kind() for kind in MODELS.values()), Bm25(0.0, 1.0), Dirichlet(10.0), JelinekMercer(0.1),
    Bm25Plus(delta=0.2), Pl2(7.0),
]  # fmt: skip

# The same models as if they were not compiled: then their formula itself runs.
MODELS_TRIED += [
    type(f"Plain{kind.__name__}", (kind,), {"__slots__": (), "compiled": ""})()
    for kind in MODELS.values()
    if kind.compiled
]

document = st.dictionaries(
    st.sampled_from(TERMS), st.one_of(st.integers(1, 3), st.integers(1, 70000)), max_size=len(TERMS)
)
step = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 12), document),
    st.tuples(st.just("put"), st.integers(1, 12), document),
    st.tuples(st.just("delete"), st.integers(1, 12), st.none()),
    st.tuples(st.sampled_from(["commit", "flush", "merge", "reopen", "rollback"]), st.none(), st.none()),
)
query = st.dictionaries(
    st.sampled_from([*TERMS, "unknown"]), st.sampled_from([1.0, 2.0, 0.5]), min_size=1, max_size=4
)


@given(steps=st.lists(step, max_size=40), asked=st.lists(query, min_size=1, max_size=3))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_history_equals_the_naive_index(
    steps: list[Any], asked: list[dict[str, float]], record: Callable[..., Stored], naive: Callable[..., Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine.open(folder, writable=True)
        pending, committed = naive(), naive()
        seq = applied = 0
        for kind, id, content in steps:
            if kind in ("put", "delete"):
                seq += 1
                applied = seq
                engine.apply([record(id, seq, content)])
                pending.documents.pop(id, None)
                if content is not None:
                    pending.documents[id] = dict(content)
                continue
            if kind == "flush":
                engine._flush()
            elif kind == "rollback":
                engine.rollback()
                applied = engine.position
                pending = naive(dict(committed.documents))
            else:
                engine.commit()
                committed = naive(dict(pending.documents))
                assert engine.position == applied
                if kind == "merge":
                    engine.merge(everything=True)
                elif kind == "reopen":
                    engine.close()
                    engine = Engine.open(folder, writable=True)
            check(engine.searcher(), committed, asked)
        engine.commit()
        check(engine.searcher(), pending, asked)
        engine.close()
        again = Engine.open(folder).searcher()
        assert again.fingerprint() == clean(folder, pending, record).fingerprint()


def clean(folder: str, content: Any, record: Callable[..., Stored]) -> Searcher:
    """An index of the same records that has no history."""
    with Engine.open(Path(folder) / "clean", writable=True) as engine:
        engine.apply(record(id, id, document) for id, document in sorted(content.documents.items()))
        engine.commit()
        return engine.searcher()


def check(searcher: Searcher, expected: Any, asked: list[dict[str, float]]) -> None:
    assert searcher.collection == expected.collection
    statistics = expected.statistics()
    assert {name.decode(): (df, cf) for name, df, cf in searcher.vocabulary()} == statistics
    assert [name for name, _, _ in searcher.vocabulary()] == sorted(term.encode() for term in statistics)
    assert {term: (df, cf) for term, df, cf in searcher.terms()} == statistics
    told = searcher.stats()
    assert (told.terms, told.postings) == (len(statistics), sum(df for df, _ in statistics.values()))
    for words in asked:
        expression = Or(tuple(Term(word, weight) for word, weight in words.items()))
        for model in MODELS_TRIED:
            scores = expected.scores(words, model)
            found = searcher.search(expression, model, limit=100)
            assert found.total == len(scores)
            assert {hit.id: hit.score for hit in found.hits} == scores
            # The path for operators and for sorting is another one, with the same result.
            both = And((expression, Everything()))
            assert searcher.search(both, model, limit=100).hits == found.hits
            assert searcher.search(expression, model, limit=100, filters=[Everything()]).hits == found.hits
            assert searcher.search(expression, model, limit=3, offset=1).hits == found.hits[1:4]
            for hit in found.hits[:2]:
                explained = searcher.explain(expression, hit.id, model)
                assert explained is not None
                assert explained.score == hit.score
                total = 0.0
                for part in explained.parts:
                    total += part.contribution
                assert total == explained.total


@given(sizes=st.lists(st.integers(1, 400), min_size=1, max_size=4), seed=st.integers(0, 1000))
@settings(max_examples=12, deadline=None)
def test_long_lists_in_any_layout(
    sizes: list[int], seed: int, record: Callable[..., Stored], naive: Callable[..., Any]
) -> None:
    """Lists of several blocks, spread over segments, with deletions in them."""
    import random

    source = random.Random(seed)
    expected = naive()
    with tempfile.TemporaryDirectory() as folder, Engine.open(folder, writable=True) as engine:
        seq = 0
        for size in sizes:
            for _ in range(size):
                seq += 1
                content = {
                    "all": source.randint(1, 5),
                    f"w{source.randrange(40)}": source.choice([1, 2, 300]),
                }
                expected.documents[seq] = content
                engine.apply([record(seq, seq, content)])
            for id in source.sample(sorted(expected.documents), k=len(expected.documents) // 5):
                seq += 1
                del expected.documents[id]
                engine.apply([record(id, seq, None)])
            engine.commit()
        asked = [{"all": 1.0, "w3": 1.0, "w7": 2.0}, {"w1": 1.0}]
        before = engine.searcher()
        check_top(before, expected, asked)
        engine.merge(everything=True)
        check_top(engine.searcher(), expected, asked)
        assert before.fingerprint() == engine.searcher().fingerprint()


def check_top(searcher: Searcher, expected: Any, asked: list[dict[str, float]]) -> None:
    """The best ten are the first ten of everything, for every model; and so is each page."""
    assert {name.decode(): (df, cf) for name, df, cf in searcher.vocabulary()} == expected.statistics()
    for words in asked:
        expression = Or(tuple(Term(word, weight) for word, weight in words.items()))
        for model in MODELS_TRIED:
            scores = expected.scores(words, model)
            everything = searcher.search(expression, model, limit=10_000)
            assert {hit.id: hit.score for hit in everything.hits} == scores
            top = searcher.search(expression, model, limit=10)
            assert top.hits == everything.hits[:10]
            assert top.total == everything.total == len(scores)
            assert searcher.search(expression, model, limit=7, offset=9).hits == everything.hits[9:16]


@given(
    parts=st.lists(
        st.lists(st.tuples(st.integers(0, 6), document), min_size=1, max_size=15), min_size=1, max_size=3
    ),
    gone=st.sets(st.integers(1, 20), max_size=6),
    words=query,
    page=st.tuples(st.integers(0, 12), st.integers(0, 6)),
)
@settings(max_examples=60, deadline=None)
def test_one_hit_for_a_resource_by_either_path(
    parts: list[list[tuple[int, dict[str, int]]]],
    gone: set[int],
    words: dict[str, float],
    page: tuple[int, int],
    record: Callable[..., Stored],
) -> None:
    """Few best are kept one for each resource as they are met; with operators, all are scored and sorted."""
    with tempfile.TemporaryDirectory() as folder, Engine.open(folder, writable=True) as engine:
        id = 0
        for part in parts:
            for resource, content in part:
                id += 1
                engine.apply([record(id, id, content, resource=resource, origin=id % 3 + 1)])
            engine.commit()
        engine.apply(record(number, id + number, None) for number in sorted(gone))
        engine.commit()
        searcher = engine.searcher()
        expression = Or(tuple(Term(word, weight) for word, weight in words.items()))
        limit, offset = page
        filters: list[Expression] = [Everything(), Filter("origin", "1"), Not(Filter("origin", "3"))]
        for model in MODELS_TRIED:
            for filtered in filters:
                asked: dict[str, Any] = {"filters": [filtered], "facets": ["origin"]}
                found = searcher.search(expression, model, limit, offset, **asked)
                slowly = searcher.search(And((expression, filtered)), model, limit, offset, facets=["origin"])
                assert found == slowly
                asked["facets"] = []
                assert searcher.search(expression, model, limit, offset, **asked).hits == found.hits


def test_skipping_changes_nothing(tmp_path: Path, record: Callable[..., Stored]) -> None:
    """In lists of many windows most documents are counted only: the best are still the best of all."""
    import random

    source = random.Random(3)
    words, odds = [f"w{i}" for i in range(60)], [1 / (i + 1) for i in range(60)]
    with Engine.open(tmp_path, writable=True) as engine:
        for low in (1, 25_001, 28_001):  # three segments: a full heap meets the next one
            for id in range(low, low + 25_000 if low == 1 else low + 3000):
                drawn = source.choices(words, odds, k=source.randint(1, 12))
                content = {word: drawn.count(word) * source.choice([1, 1, 1, 9]) for word in drawn}
                marked = {f"\x1ft{word}": 1 for word in drawn[:2]}
                shared = source.randrange(1, 4000) if id % 7 == 0 else 0
                engine.apply([record(id, id, content, fields=marked, resource=shared, origin=id % 997)])
            engine.commit()
        engine.apply(record(id, 40_000 + id, None) for id in range(1, 28_000, 7))
        engine.commit()
        searcher = engine.searcher()
        for asked in (
            ["w0", "w5", "w40"],
            ["w1", "w2"],
            ["w0"],
            ["w50", "w3", "w0", "w9"],
            ["\x1ftw0", "w8"],
        ):
            expression = Or(tuple(map(Term, asked)))
            for model in MODELS_TRIED:
                for collapse in (False, True):
                    everything = searcher.search(expression, model, limit=100_000, collapse=collapse)
                    for limit in (1, 10, 300):
                        found = searcher.search(expression, model, limit=limit, collapse=collapse)
                        assert found.total == everything.total
                        assert found.hits == everything.hits[:limit]
