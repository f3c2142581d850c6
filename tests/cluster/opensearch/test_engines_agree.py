"""Both engines give the same answers: identifiers, order, doubles, totals, facets, explanations."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from tests.opensearch_index import TemporaryIndex
from tests.opensearch_server import on_opensearch

from indlet.cluster.opensearch import vocabulary
from indlet.model import FIELD_MARKS, Stored
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
    Positioned,
    Prefix,
    Term,
)
from indlet.service.search.rank import MODELS
from indlet.service.search.rank.bm25 import Bm25
from indlet.service.search.rank.dirichlet import Dirichlet
from indlet.text import Analyzer, Policy

pytestmark = pytest.mark.skipif(not on_opensearch(), reason="make test-cluster starts OpenSearch")

Make = Callable[..., Stored]
WORDS = [f"w{number}" for number in range(60)] + [
    "wing",
    "wings",
    "éclair",
    "eclair",
    "日本",
    "naïve",
    "a.b",
    "c++",
]
PEOPLE = ["Wang, Wei", "Wei Wang", "WANG, Wei", "Müller, Jörg", "Muller, Jorg", "Office of X", "o'Neill, S."]
ANALYZER = Analyzer(Policy())


def records(record: Make, seed: int, ids: range, seq: int) -> list[Stored]:
    """Words by Zipf's law, few lengths, shared and ambiguous resources, sets that differ in case."""
    source = random.Random(seed)
    shares = [1.0 / (rank + 1) for rank in range(len(WORDS))]
    out = []
    for number, id in enumerate(ids):
        tokens = source.choices(WORDS, shares, k=source.choice([3, 3, 3, 8, 40, 300]))
        options: dict[str, Any] = {}
        if source.random() < 0.4:
            step = source.choice([1, 1, 2, 70])  # gaps wider than phrases reach
            places: dict[str, list[int]] = {}
            for place, token in enumerate(tokens):
                places.setdefault(token, []).append(place * step)
            options["places"] = places
        frequencies = {token: tokens.count(token) for token in tokens}
        sets = source.sample(["p", "p:x", "P:y", "q:x:z", "r", "R"], source.randrange(4))
        out.append(
            record(
                id, seq + number, None if "places" in options else frequencies, sets=" ".join(sets),
                origin=source.randrange(1, 6), resource=source.choice([0, *range(1, 40)]),
                length=source.choice([None, None, 50]) if "places" not in options else None,
                metadata={
                    "title": [" ".join(tokens[:2])],
                    "date": [source.choice(["2001", "2001-05", "1999-12-31", "unknown"])],
                    "type": source.sample(["Text", "text", "Image"], source.randrange(3)),
                    "language": source.sample(["en", "de"], source.randrange(2)),
                    "creator": source.sample(PEOPLE, source.randrange(4)),
                    "subject": [f"Topic {source.randrange(30)}", source.choice(["水", "C++", "c++"])],
                    "format": source.sample(["application/pdf", "text/html", "3 p."], source.randrange(3)),
                },
                **options,
            )
        )  # fmt: skip
    return out


def write(indices: tuple[Index, ...], changes: list[Stored]) -> None:
    for index in indices:
        with index.writer(ANALYZER) as writer:
            writer.apply(writer.prepare(changes))
            writer.commit()


@pytest.fixture(scope="module")
def indices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Index, ...]]:
    with ExitStack() as stack:
        folder: Path = tmp_path_factory.mktemp("index")
        yield (
            stack.enter_context(closing(EmbeddedIndex(folder))),
            stack.enter_context(closing(TemporaryIndex(shards=3))),
        )


WING = Or((Term("w0"), Term("wing", 2.0), Term("日本")))
ASKED: list[tuple[Expression, dict[str, Any]]] = [
    (Term("w1"), {}),
    (WING, {}),
    (WING, {"collapse": False, "limit": 500}),
    (WING, {"offset": 30, "limit": 20}),
    (WING, {"sort": "newest", "limit": 40}),
    (WING, {"sort": "oldest", "collapse": False, "limit": 40}),
    (WING, {"sort": "title", "limit": 40}),
    (WING, {"sort": "author", "limit": 20, "offset": 15}),
    (Everything(), {"sort": "author", "collapse": False, "limit": 400}),
    (WING, {"facets": ("creator", "subject", "format"), "filters": [Filter("creator", "Jörg Müller")]}),
    (Everything(), {"facets": ("creator", "subject", "format", "year"), "values": 4}),
    (And((Phrase(("w0", "w1")), Positioned())), {"limit": 100}),
    (WING, {"facets": ("origin", "set", "type", "language", "year")}),
    (WING, {"filters": [Filter("set", "p"), Not(Filter("type", "IMAGE"))], "facets": ("set", "type")}),
    (WING, {"first": [And((Term("w0"), Term("wing")))], "limit": 60}),
    (WING, {"first": [Term("w3"), Term("w0")], "collapse": False, "limit": 60, "offset": 5}),
    (Or((WING, Filter("origin", "2"))), {"limit": 200}),
    (And((Term("w2"), Not(Term("w3")), Dates(20010000, 20019999))), {}),
    (Or((Prefix("wi"), Prefix("w1", 3))), {"limit": 50}),
    (Phrase(("w0", "w1")), {"limit": 100}),
    (And((Phrase(("w1", "w0"), (0, 2)), Not(Ids((3, 5, 7))))), {"limit": 100, "facets": ("year",)}),
    (Everything(), {"limit": 30, "offset": 10, "facets": ("set",)}),
    (Term(FIELD_MARKS["title"] + "w0"), {}),
    (Or((Term("unknown"),)), {"facets": ("type",)}),
]  # fmt: skip


def agree(here: Searcher, there: Searcher) -> None:
    assert here.collection == there.collection
    assert here.fingerprint() == there.fingerprint()
    models = [kind() for kind in MODELS.values()] + [Bm25(0.4, 0.0), Dirichlet(5.0)]
    for expression, options in ASKED:
        for model in models if not options else (models[0], models[2]):
            expected = here.search(expression, model, **options)
            assert there.search(expression, model, **options) == expected, (expression, model, options)
        assert there.query_terms(expression) == here.query_terms(expression)
        for id in (3, 7, 11):
            assert there.explain(expression, id, models[2]) == here.explain(expression, id, models[2])
    for prefix, limit in (("w", None), ("", 7), ("wing", 5), ("éc", None), ("a.", None), ("c+", None)):
        assert there.terms(prefix, limit) == here.terms(prefix, limit)
    for word, edits in (("wnig", 1), ("w1", 1), ("w1", 2), ("eclairs", 2), ("日", 2), ("naive", 2)):
        assert sorted(there.near(word, edits)) == sorted(here.near(word, edits)), word
    for plain in ("eclair", "naive", "wing"):
        assert sorted(there.accented(plain)) == sorted(here.accented(plain))
    for facet, start in (("creator", ""), ("creator", "o"), ("subject", "topic 2"), ("format", "z")):
        for backwards in (False, True):
            asked = facet, start, 5, backwards
            assert there.listed(*asked) == here.listed(*asked), asked
    shown, told = there.stats(), here.stats()
    assert (shown.documents, shown.terms, shown.postings) == (told.documents, told.terms, told.postings)


def test_both_engines_agree_through_changes_deletions_and_merges(
    indices: tuple[Index, ...], record: Make
) -> None:
    embedded, cluster = indices
    write(indices, records(record, 1, range(1, 301), 1))
    agree(embedded.searcher(), cluster.searcher())
    changed = records(record, 2, range(250, 350), 1001)
    gone = [record(id, 2000 + id, None) for id in range(1, 350) if id % 7 == 0]
    write(indices, changed)
    write(indices, gone)
    agree(embedded.searcher(), cluster.searcher())
    for index in indices:
        index.settle(everything=True)
    agree(embedded.searcher().without({2, 4}), cluster.searcher().without({2, 4}))


def test_both_engines_agree_where_terms_are_too_many_for_one_answer(
    indices: tuple[Index, ...], record: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "_MOST", 7)
    write(indices, records(record, 4, range(400, 440), 5000))
    agree(*(index.searcher().without({2}) for index in indices))


def test_pages_past_what_a_cluster_gives_at_once(indices: tuple[Index, ...], record: Make) -> None:
    """Deep pages, and thousands of equal scores, whose order is that of their hashes."""
    many = [record(id, 10_000 + id, {"deep": 1 + id % 3}, length=5) for id in range(1000, 12_500)]
    write(indices, many)
    here, there = (index.searcher() for index in indices)
    for offset in (0, 3820, 11_495):
        expected = here.search(Term("deep"), None, 5, offset)
        assert there.search(Term("deep"), None, 5, offset) == expected
    assert there.search(Everything(), None, 3, 11_000) == here.search(Everything(), None, 3, 11_000)
