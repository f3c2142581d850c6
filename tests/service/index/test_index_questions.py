"""What can be asked besides a bag of words: phrases, prefixes, operators, filters, facets, duplicates."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from indlet.model import FIELD_MARKS, Stored
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.embedded.searcher import SegmentSearcher as Searcher
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
from indlet.service.search.rank.boolean import Boolean

Make = Callable[..., Stored]


@pytest.fixture(params=["one segment", "many segments", "merged"])
def searcher(request: pytest.FixtureRequest, tmp_path: Path, record: Make) -> Iterator[Searcher]:
    title = FIELD_MARKS["title"] + "wing"
    records = [
        record(1, 1, None, places={"heated": [0], "wing": [1, 7]}, fields={title: 1}, sets="a:b c",
               resource=5, metadata={"date": ["2001-05"], "type": ["Text"], "language": ["en"]}),
        record(2, 2, None, places={"wing": [0], "heated": [5], "air": [3]}, sets="a", resource=6,
               metadata={"date": ["2003-01-02"], "type": ["Text", "Article"]}, language="de"),
        record(3, 3, {"heated": 1, "wing": 2}, sets="ab", origin=2, resource=5,
               metadata={"date": ["c. 1900", "1999"], "type": ["article"]}),
        record(4, 4, {"airfoil": 3, "airs": 1}, origin=2, metadata={"date": ["unknown"]}),
        record(5, 5, {"wing": 1}, origin=3),
    ]  # fmt: skip
    with Engine.open(tmp_path, writable=True) as engine:
        for change in records:
            engine.apply([change])
            if request.param != "one segment":
                engine.commit()
        engine.apply([record(5, 6, None)])
        engine.commit()
        if request.param == "merged":
            engine.merge(everything=True)
        assert len(engine.searcher().segments) == (4 if request.param == "many segments" else 1)
        yield engine.searcher()


def ids(searcher: Searcher, expression: Expression, **options: object) -> set[int]:
    found = searcher.search(expression, limit=100, collapse=False, **options)  # type: ignore[arg-type]
    assert found.total == len(found.hits)
    assert sorted(searcher.matching(expression)) == sorted(hit.id for hit in found.hits) or options
    return {hit.id for hit in found.hits}


def test_hidden_origins_stay_hidden_for_threads_that_ask_at_the_same_time(searcher: Searcher) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: ids(searcher.without({2}), Everything()), range(40)))
    assert found == [{1, 2}] * 40


def test_a_snapshot_with_nothing_left_to_hide_is_itself(tmp_path: Path, record: Make) -> None:
    with Engine.open(tmp_path, writable=True) as engine:
        engine.apply([record(1, 1, {"wing": 1}), record(2, 2, {"air": 1}, origin=2)])
        engine.commit()
        engine.apply([record(2, 3, None, origin=2)])
        engine.commit()
        searcher = engine.searcher()
        (segment,) = searcher.segments
        assert segment.deleted == 1
        assert searcher.without({2}) is searcher


def test_operators(searcher: Searcher) -> None:
    assert ids(searcher, And((Term("heated"), Term("wing")))) == {1, 2, 3}
    assert ids(searcher, And((Term("wing"), Not(Term("air"))))) == {1, 3}
    assert ids(searcher, Or((Term("airs"), And((Term("air"), Term("wing")))))) == {2, 4}
    assert ids(searcher, Not(Term("wing"))) == {4}
    assert ids(searcher, And(())) == ids(searcher, Everything()) == {1, 2, 3, 4}
    assert ids(searcher, Or(())) == set()


def test_only_positive_terms_score(searcher: Searcher) -> None:
    plain = searcher.search(Term("heated"), collapse=False)
    other = searcher.search(And((Term("heated"), Not(Term("airs")))), collapse=False)
    assert plain.hits == other.hits
    assert searcher.search(Everything(), limit=1).hits[0].score == 0.0


def test_a_phrase_needs_its_positions_in_order(searcher: Searcher) -> None:
    found = searcher.search(Phrase(("heated", "wing")), limit=9, collapse=False)
    assert {hit.id for hit in found.hits} == {1, 3}
    assert found.loose  # record 3 has no positions
    exact = searcher.search(And((Phrase(("heated", "wing")), Not(Ids((3,))))), collapse=False)
    assert {hit.id for hit in exact.hits} == {1}
    assert ids(searcher, Phrase(("wing", "air"), (0, 3))) == {2}
    assert ids(searcher, Phrase(("air", "heated"))) == set()
    assert not searcher.search(Phrase(("wing", "air"), (0, 3))).loose
    assert ids(searcher, Phrase(("wing", "unknown"))) == set()


def test_prefixes(searcher: Searcher) -> None:
    assert ids(searcher, Prefix("air")) == {2, 4}
    assert ids(searcher, Prefix("airf")) == {4}
    assert ids(searcher, Prefix("zzz")) == set()
    assert searcher.terms("air") == [("air", 1, 1), ("airfoil", 1, 3), ("airs", 1, 1)]
    assert searcher.terms("w", 1) == [("wing", 3, 5)]


def test_a_prefix_scores_a_bounded_number_of_terms_and_finds_all(
    tmp_path: Path, record: Callable[..., Stored]
) -> None:
    """However many terms begin so, over several segments, only the most frequent of them are weighed."""
    with Engine.open(tmp_path / "wide", writable=True) as engine:
        for id in range(1, 601):
            rare = {f"a{id}x{n}": 1 for n in range(5)}
            engine.apply([record(id, id, rare | {f"a{n}": 1 for n in range(200) if id % (n + 2) == 0})])
            if id in (200, 450):
                engine.commit()
        engine.commit()
        searcher = engine.searcher()
        frequent = sorted(searcher.terms("a"), key=lambda entry: (-entry[1], entry[0]))
        assert len(frequent) > 3000
        limit = Prefix("a").limit
        assert searcher.terms("a", limit) == frequent[:limit]
        plain: dict[str, Any] = {"limit": 50, "collapse": False}
        found = searcher.search(Prefix("a"), **plain)
        weighed = searcher.search(Or(tuple(Term(term) for term, _, _ in frequent[:limit])), **plain)
        assert [(hit.id, hit.score) for hit in found.hits] == [(hit.id, hit.score) for hit in weighed.hits]
        assert found.total == 600, "what holds none of the weighed terms is found all the same"


def test_fields_are_terms_of_their_own(searcher: Searcher) -> None:
    assert ids(searcher, Term(FIELD_MARKS["title"] + "wing")) == {1}
    assert searcher.collection.length == 3 + 3 + 3 + 4


def test_filters_and_dates(searcher: Searcher) -> None:
    assert ids(searcher, Filter("set", "a")) == {1, 2}
    assert ids(searcher, Filter("set", "A:B")) == {1}
    assert ids(searcher, Filter("type", "ARTICLE")) == {2, 3}
    assert ids(searcher, Filter("language", "de")) == {2}
    assert ids(searcher, Filter("origin", "2")) == {3, 4}
    assert ids(searcher, Filter("year", "2003")) == {2}
    assert ids(searcher, Filter("nothing", "x")) == set()
    assert ids(searcher, Dates(19990000, 20019999)) == {1, 3}
    assert ids(searcher, Dates(0, 99999999)) == {1, 2, 3}
    assert ids(searcher, Term("wing"), filters=[Filter("origin", "1"), Dates(20020000, 20039999)]) == {2}


def test_facets_count_everything_that_matches(searcher: Searcher) -> None:
    found = searcher.search(
        Term("wing"), limit=1, facets=["type", "set", "year", "origin", "language"], collapse=False
    )
    assert found.total == 3
    assert found.facets["type"] == (("Article", 2), ("Text", 2))
    assert found.facets["set"] == (("a", 2), ("a:b", 1), ("ab", 1), ("c", 1))
    assert found.facets["year"] == (("1999", 1), ("2001", 1), ("2003", 1))
    assert found.facets["origin"] == (("1", 2), ("2", 1))
    assert found.facets["language"] == (("de", 1), ("en", 1))
    for name, values in found.facets.items():
        for value, count in values:  # as many as the filter finds
            assert len(ids(searcher, Term("wing"), filters=[Filter(name, value)])) == count
    with pytest.raises(ValueError, match="no facet 'colour'"):
        searcher.search(Term("wing"), facets=["colour"])


def test_order_by_date(searcher: Searcher) -> None:
    def order(sort: str) -> list[int]:
        return [hit.id for hit in searcher.search(Everything(), sort=sort, collapse=False).hits]

    assert order("newest") == [2, 1, 3, 4]
    assert order("oldest") == [3, 1, 2, 4]
    assert searcher.search(Everything(), sort="newest").hits[0].date == 20030102
    with pytest.raises(ValueError, match="sort is one of"):
        order("size")


def test_records_of_one_resource_are_one_hit(searcher: Searcher) -> None:
    found = searcher.search(Term("wing"), facets=["origin"])
    apart = searcher.search(Term("wing"), collapse=False)
    assert found.total == 2
    best = next(hit for hit in apart.hits if hit.id in (1, 3))
    shown = next(hit for hit in found.hits if hit.id in (1, 3))
    assert shown.id == best.id
    assert shown.score == best.score
    assert sorted(shown.ids) == [1, 3]
    assert shown.ids[0] == shown.id
    # Resource 5 is to be had from both origins, and would be found under either.
    assert found.facets["origin"] == (("1", 2), ("2", 1))


def test_equal_scores_keep_one_order_over_all_pages(searcher: Searcher) -> None:
    whole = searcher.search(Everything(), Boolean(), limit=10, collapse=False).hits
    pages = [searcher.search(Everything(), Boolean(), 1, i, collapse=False).hits for i in range(5)]
    assert tuple(hit for page in pages for hit in page) == whole


def test_explanation_of_unknown_records(searcher: Searcher) -> None:
    assert searcher.explain(Term("wing"), 5) is None
    assert searcher.explain(Term("wing"), 99) is None
    explained = searcher.explain(Term("wing"), 1)
    assert explained is not None
    assert [(part.term, part.frequency, part.df, part.cf) for part in explained.parts] == [("wing", 2, 3, 5)]


def test_weights_must_be_positive(searcher: Searcher) -> None:
    with pytest.raises(ValueError, match="above 0"):
        searcher.search(Term("wing", 0.0))


def test_an_empty_index_answers(tmp_path: Path) -> None:
    searcher = Engine.open(tmp_path / "none").searcher()
    found = searcher.search(Term("wing"), facets=["type"])
    assert (found.total, found.hits, found.facets) == (0, (), {"type": ()})
    assert searcher.search(Or((Term("a"), Term("b")))).total == 0
    assert searcher.stats().documents == 0
    assert list(searcher.vocabulary()) == []
    assert searcher.fingerprint() == Engine.open(tmp_path / "neither").searcher().fingerprint()


def test_many_duplicates_are_grouped_and_counted_as_a_scan_would(tmp_path: Path, record: Make) -> None:
    """Random records of few resources, over segments and deletions, against dictionaries."""
    rng = random.Random(5)
    live: dict[int, tuple[int, set[str]]] = {}
    with Engine.open(tmp_path, writable=True) as engine:
        for seq in range(1, 400):
            id = rng.randrange(1, 120)
            if id in live and rng.random() < 0.3:
                engine.apply([record(id, seq, None)])
                del live[id]
            else:
                resource = rng.choice([0, *range(1, 30)])
                sets = rng.sample(["p", "p:x", "P:y", "q:x:z", "r", "R", "s"], rng.randrange(4))
                changed = record(
                    id, seq, {"wing": 1}, sets=" ".join(sets), resource=resource, origin=id % 25 + 1
                )
                engine.apply([changed])
                below = {
                    ":".join(s.split(":")[: n + 1]).casefold() for s in sets for n in range(s.count(":") + 1)
                }
                live[id] = resource, below
            if seq % 40 == 0:
                engine.commit()
        engine.commit()
        found = engine.searcher().search(Term("wing"), limit=1000, facets=["set"])
    sharing: dict[int, set[int]] = {}
    for id, (resource, _) in live.items():
        sharing.setdefault(resource, set()).add(id)
    groups: dict[object, set[int]] = {}
    for resource, those in sharing.items():
        # What two records of one origin share is no resource.
        one = resource and len({id % 25 for id in those}) == len(those)
        groups |= {resource: those} if one else {("alone", id): {id} for id in those}
    assert 3 < sum(len(ids) > 1 for ids in groups.values()) < len(sharing) - 3
    assert found.total == len(groups)
    assert {frozenset(hit.ids) for hit in found.hits} == {frozenset(ids) for ids in groups.values()}
    counts = Counter(name for ids in groups.values() for name in set().union(*(live[id][1] for id in ids)))
    assert {name.casefold(): count for name, count in found.facets["set"]} == dict(counts)
