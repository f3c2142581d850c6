"""What every index engine promises (`service/index/protocol.py`): each test runs on each engine.

An engine is entered in ENGINES by a function that makes an empty index of it in a folder of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.opensearch_index import TemporaryIndex
from tests.opensearch_server import on_opensearch

from indlet.errors import IndexBusy
from indlet.model import FIELD_MARKS, KEY_MARKS, Stored
from indlet.service.index import Index, Searcher
from indlet.service.index.embedded.index import EmbeddedIndex
from indlet.service.index.expression import (
    And,
    Dates,
    Everything,
    Expression,
    Filter,
    Ids,
    Not,
    Or,
    Phrase,
    Prefix,
    Term,
)
from indlet.service.search.rank import MODELS, Collection
from indlet.text import Analyzer, Policy

ENGINES: dict[str, Callable[[Path], Index]] = {"embedded": EmbeddedIndex}
if on_opensearch():
    ENGINES["opensearch"] = TemporaryIndex
ANALYZER = Analyzer(Policy())
Make = Callable[..., Stored]


@pytest.fixture(params=sorted(ENGINES))
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    with closing(ENGINES[request.param](tmp_path / "index")) as made:
        yield made


def write(index: Index, changes: Iterable[Stored], position: int | None = None) -> Searcher:
    with index.writer(ANALYZER) as writer:
        writer.apply(writer.prepare(list(changes)))
        writer.commit(position, {"policy": "p"})
    return index.searcher()


def ids(searcher: Searcher, expression: Expression, **options: Any) -> list[int]:
    return [hit.id for hit in searcher.search(expression, limit=100, **options).hits]


def counts(searcher: Searcher) -> dict[str, tuple[int, int]]:
    """The statistics of words; keys have tests of their own."""
    found = {name.decode(): (df, cf) for name, df, cf in searcher.vocabulary()}
    return {name: told for name, told in found.items() if name[:2] not in KEY_MARKS.values()}


def library(record: Make) -> tuple[list[Stored], list[Stored]]:
    """Records of two commits, the second of which deletes one of the first."""
    return [
        record(1, 1, None, places={"heated": [0], "wing": [1, 7]}, sets="a:b c", resource=5,
               metadata={"title": ["A wing"], "date": ["2001-05"], "type": ["Text"], "language": ["en"]}),
        record(2, 2, None, places={"wing": [0], "heated": [5], "air": [3]}, sets="a", resource=6,
               metadata={"date": ["2003-01-02"], "type": ["Text", "Article"]}, language="de"),
        record(3, 3, {"heated": 1, "wing": 2}, sets="ab", origin=2, resource=5,
               metadata={"date": ["c. 1900", "1999"], "type": ["article"]}),
        record(5, 4, {"wing": 1}, origin=3),
    ], [record(4, 5, {"airfoil": 3, "airs": 1}, origin=2), record(5, 6, None, origin=3)]  # fmt: skip


@pytest.fixture
def searcher(index: Index, record: Make) -> Searcher:
    first, second = library(record)
    write(index, first)
    return write(index, second)


# ---- writing


def test_an_empty_index_answers(index: Index) -> None:
    assert index.state() == (0, {})
    searcher = index.searcher()
    assert (searcher.position, searcher.collection) == (0, Collection(0, 0))
    found = searcher.search(Or((Term("wing"), Prefix("a"))), facets=("origin",))
    assert (found.total, found.hits, found.facets) == (0, (), {"origin": ()})
    assert searcher.explain(Term("wing"), 1) is None
    assert searcher.terms() == []
    assert searcher.near("wing", 2) == []
    assert searcher.query_terms(Term("wing")) == []


def test_a_commit_is_seen_as_a_whole(index: Index, record: Make) -> None:
    before, version = index.searcher(), index.version()
    with index.writer(ANALYZER) as writer:
        assert writer.apply(writer.prepare([record(1, 7, {"wing": 1}), record(2, 8, {"wing": 3})])) == 2
        assert (writer.applied, writer.position) == (8, 0)
        assert (index.version(), index.searcher().collection.documents) == (version, 0)
        writer.commit(9, {"store": "s"})
        assert (writer.applied, writer.position) == (9, 9)
    assert index.version() != version
    assert index.state() == (9, {"store": "s"})
    after = index.searcher()
    assert (after.position, after.collection) == (9, Collection(2, 4))
    assert before.collection.documents == 0
    assert index.searcher() is after


def test_what_is_not_committed_is_forgotten(index: Index, record: Make) -> None:
    write(index, [record(1, 1, {"wing": 1})])
    with index.writer(ANALYZER) as writer:
        writer.apply(writer.prepare([record(1, 2, None), record(2, 3, {"air": 1})]))
    assert (index.state().position, counts(index.searcher())) == (1, {"wing": (1, 1)})
    with index.writer(ANALYZER) as writer:
        assert writer.applied == 1


def test_one_writer_at_a_time(index: Index) -> None:
    with index.writer(ANALYZER), pytest.raises(IndexBusy):
        index.writer(ANALYZER)
    with index.writer(ANALYZER) as again:
        assert again.position == 0


def test_a_new_index_takes_the_place_of_the_old_one_at_once(index: Index, record: Make) -> None:
    write(index, [record(1, 5, {"old": 1})])
    with index.writer(ANALYZER, anew=True) as writer:
        assert (writer.anew, writer.applied) == (True, 0)
        writer.apply(writer.prepare([record(2, 1, {"new": 1})]))
        assert counts(index.searcher()) == {"old": (1, 1)}
        writer.commit(2)
        assert (writer.anew, writer.position) == (False, 2)
    assert (index.state().position, counts(index.searcher())) == (2, {"new": (1, 1)})


def test_an_erased_index_is_empty(index: Index, record: Make) -> None:
    held = write(index, [record(1, 5, {"old": 1})])
    index.erase()
    assert index.state() == (0, {})
    assert (index.searcher().collection.documents, counts(held)) == (0, {"old": (1, 1)})


def test_upkeep_changes_no_answer(index: Index, record: Make) -> None:
    for number in range(1, 12):
        write(index, [record(number, number, {"wing": number, f"w{number}": 1})])
    before = index.searcher()
    upkeep = index.upkeep()
    upkeep.wake()
    upkeep.close()
    index.settle()
    index.settle(everything=True)
    after = index.searcher()
    assert after.fingerprint() == before.fingerprint()
    assert after.search(Term("wing"), limit=20) == before.search(Term("wing"), limit=20)


# ---- questions


def test_operators_and_filters(searcher: Searcher) -> None:
    wing, heated = Term("wing"), Term("heated")
    plain: dict[str, Any] = {"collapse": False}
    assert set(ids(searcher, Or((wing, Term("airs"))), **plain)) == {1, 2, 3, 4}
    assert set(ids(searcher, And((wing, Not(Ids((2,))))), **plain)) == {1, 3}
    assert set(ids(searcher, Everything(), filters=[Filter("set", "A")], **plain)) == {1, 2}
    assert set(ids(searcher, Everything(), filters=[Filter("type", "article")], **plain)) == {2, 3}
    assert set(ids(searcher, heated, filters=[Dates(20010000, 20019999)], **plain)) == {1}
    assert set(ids(searcher, Prefix("air"), **plain)) == {2, 4}
    assert set(ids(searcher, Term(FIELD_MARKS["title"] + "wing"), **plain)) == {1}
    assert ids(searcher, Filter("origin", "9")) == []


def test_phrases_go_by_positions_where_they_are_known(searcher: Searcher) -> None:
    found = searcher.search(Phrase(("heated", "wing")), limit=10, collapse=False)
    assert ({hit.id for hit in found.hits}, found.loose) == ({1, 3}, True)
    assert set(ids(searcher, Phrase(("wing", "heated"), (0, 5)), collapse=False)) == {2, 3}


def test_facets_and_sorting(searcher: Searcher) -> None:
    found = searcher.search(Everything(), limit=0, facets=("origin", "set", "type", "language", "year"))
    assert found.total == 3  # 1 and 3 are records of one resource
    assert found.facets["origin"] == (("1", 2), ("2", 2))
    assert found.facets["set"] == (("a", 2), ("a:b", 1), ("ab", 1), ("c", 1))
    assert dict(found.facets["type"]) == {"Text": 2, "Article": 2}
    assert ids(searcher, Everything(), sort="newest") == [2, 1, 4]
    assert ids(searcher, Everything(), sort="oldest", collapse=False)[:3] == [3, 1, 2]


def test_records_of_one_resource_are_one_hit(searcher: Searcher) -> None:
    found = {hit.id: hit.ids for hit in searcher.search(Term("heated"), limit=10).hits}
    assert len(found) == 2 and found[2] == (2,)
    assert sorted(next(other for id, other in found.items() if id != 2)) == [1, 3]


def test_pages_are_parts_of_one_list(searcher: Searcher) -> None:
    asked = Or((Term("wing"), Term("heated"), Term("airs")))
    for name in MODELS:
        whole = searcher.search(asked, MODELS[name](), 10, collapse=False).hits
        pages = [searcher.search(asked, MODELS[name](), 1, at, collapse=False).hits for at in range(5)]
        assert [hit for page in pages for hit in page] == list(whole)


def test_the_vocabulary_by_beginnings_and_by_nearness(searcher: Searcher) -> None:
    assert searcher.terms("air") == [("air", 1, 1), ("airfoil", 1, 3), ("airs", 1, 1)]
    assert searcher.terms("", 1) == [("heated", 3, 3)]  # as many hold "wing", which comes later
    assert sorted(searcher.near("wnig", 1)) == [("wing", 1, 3)]
    assert sorted(found.term for found in searcher.near("airz", 1)) == ["air", "airs"]
    assert searcher.near("nothing", 1) == []
    asked = Or((Term("airs"), Term("unknown")))
    assert [(term.term, term.df, term.cf) for term in searcher.query_terms(asked)] == [(b"airs", 1, 1)]


def test_statistics(searcher: Searcher) -> None:
    told = searcher.stats()
    assert (told.documents, told.length, told.position) == (4, 13, 6)
    every = list(searcher.vocabulary())
    assert (told.postings, told.terms) == (sum(df for _, df, _ in every), len(every))


@pytest.mark.parametrize("name", sorted(ENGINES))
@pytest.mark.parametrize("hidden", [{2}, {1}, {3}, {1, 2}, {2, 9}])
def test_a_state_without_some_origins_is_one_that_never_had_them(
    name: str, hidden: set[int], record: Make, tmp_path: Path
) -> None:
    with closing(ENGINES[name](tmp_path / "all")) as held, closing(ENGINES[name](tmp_path / "some")) as never:
        for changes in library(record):
            write(held, changes)
            write(never, [stored for stored in changes if stored.origin not in hidden])
        here, there = held.searcher().without(hidden), never.searcher()
        assert here.fingerprint() == there.fingerprint()
        assert (here.collection, counts(here)) == (there.collection, counts(there))
        assert here.terms("air") == there.terms("air")
        assert sorted(here.near("airfoyl", 2)) == sorted(there.near("airfoyl", 2))
        facets = ("origin", "set", "type", "language", "year")
        for asked in (Everything(), Or((Term("wing"), Prefix("air"))), Phrase(("heated", "wing"))):
            assert here.search(asked, facets=facets) == there.search(asked, facets=facets)
            assert here.query_terms(asked) == there.query_terms(asked)
            assert [here.explain(asked, id) for id in range(6)] == [
                there.explain(asked, id) for id in range(6)
            ]
        shown, told = here.stats(), there.stats()
        assert (shown.documents, shown.terms, shown.postings) == (told.documents, told.terms, told.postings)
        assert held.searcher().without({9}).fingerprint() == held.searcher().fingerprint()


WORDS = ["a", "ab", "acid", "wing", "éclair", "日本"]
document = st.dictionaries(
    st.sampled_from(["a", "ab", "acid", "wing", "éclair", "日本"]), st.integers(1, 300)
)
step = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 8), document),
    st.tuples(st.just("delete"), st.integers(1, 8), st.none()),
    st.tuples(st.just("commit"), st.none(), st.none()),
)


HISTORY = given(
    steps=st.lists(step, max_size=25),
    asked=st.dictionaries(
        st.sampled_from(["a", "wing", "日本", "x"]), st.sampled_from([1.0, 2.0]), min_size=1
    ),
)
EXAMPLES = {"embedded": 40, "opensearch": 8}  # a new index on a cluster takes half a second


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_any_history_gives_exact_statistics_and_scores(
    name: str, record: Make, naive: Callable[..., Any]
) -> None:
    """The formula, term by term over dictionaries, is what every engine has to equal bit for bit."""

    @settings(max_examples=EXAMPLES[name], deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @HISTORY
    def holds(steps: list[Any], asked: Mapping[str, float]) -> None:
        after_any_history(name, steps, asked, record, naive)

    holds()


def after_any_history(
    name: str, steps: list[Any], asked: Mapping[str, float], record: Make, naive: Callable[..., Any]
) -> None:
    expected = naive()
    with tempfile.TemporaryDirectory() as folder, closing(ENGINES[name](Path(folder))) as index:
        pending: list[Stored] = []
        for seq, (kind, id, content) in enumerate([*steps, ("commit", None, None)], 1):
            if kind == "commit":
                write(index, pending, seq)
                pending = []
                continue
            pending.append(record(id, seq, content))
            expected.documents.pop(id, None)
            if content is not None:
                expected.documents[id] = dict(content)
        searcher = index.searcher()
        assert searcher.collection == expected.collection
        assert counts(searcher) == expected.statistics()
        asking = Or(tuple(Term(word, weight) for word, weight in asked.items()))
        for kind in MODELS.values():
            scores = expected.scores(asked, kind())
            found = searcher.search(asking, kind(), 100)
            assert found.total == len(scores)
            assert {hit.id: hit.score for hit in found.hits} == scores
            for hit in found.hits[:1]:
                told = searcher.explain(asking, hit.id, kind())
                assert told is not None and told.score == hit.score
