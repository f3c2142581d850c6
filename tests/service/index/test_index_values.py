"""Creators, subjects and formats as values: counted, listed from A to Z, filtered by, and sorted by."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indlet._core import record_key_terms, title_words, value_key
from indlet.formats.file_formats import file_format
from indlet.formats.people import filing_name, folded
from indlet.model import SORT_MARKS, Metadata, Record
from indlet.service.index import Searcher, follow
from indlet.service.index import expression as e
from indlet.service.index.dates import date_number
from indlet.service.index.engines import index_of
from indlet.service.index.values import plain
from indlet.store import Store
from indlet.text.tokens import split

PEOPLE = [
    "Wang, Wei",
    "Wei Wang",
    "WANG, Wei",
    "Wang, W.",
    "Müller, Jörg",
    "Muller, Jorg",
    "National Office of X",
]
SUBJECTS = ["Shock waves", "shock waves", "C++", "C", "Réseaux neuronaux", "Reseaux neuronaux", "水"]
FORMATS = ["application/pdf", "text/html", "12 pages", "application/x-odd", "PDF"]
TITLES = ["The Zebra", "An apple", "apple pie", "Äpfel", "", "zebra crossing", "Mice", "mice"]


def record(number: int, chance: random.Random) -> Record:
    return Record(
        f"oai:x:{number}",
        {
            "title": [t] if (t := chance.choice(TITLES)) else [],
            "creator": chance.sample(PEOPLE, chance.randint(0, 3)),
            "subject": chance.sample(SUBJECTS, chance.randint(0, 3)),
            "format": chance.sample(FORMATS, chance.randint(0, 2)),
            "identifier": [f"https://doi.org/10.5555/{number % 17}"] if number % 3 == 0 else [],
            "language": ["en"],
        },
    )


@contextmanager
def indexed(folder: Path, parts: list[dict[str, list[Record]]]) -> Iterator[tuple[Store, Searcher]]:
    """An index of some commits, each with records of sources."""
    with Store.open(folder) as store:
        for part in parts:
            for source, records in part.items():
                with store.write() as tx:
                    tx.put(tx.origin("source", source), records)
            follow.catch_up(store)
        yield store, index_of(store).searcher()


def expected(records: list[Record], facet: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in records:
        values = one.metadata.get(facet, ())
        if facet == "format":
            values = [name for value in values if (name := file_format(value))]
        found.update({value_key(facet, value) for value in values} - {""})
    return found


def test_values_count_as_their_filters_find_them_whatever_the_layout(tmp_path: Path) -> None:
    chance = random.Random(5)
    records = [record(number, chance) for number in range(120)]
    plain = [r for r in records if not r.metadata["identifier"]]
    layouts = [[{"a": records}], [{"a": records[low : low + 25]} for low in range(0, 120, 25)]]
    answers = []
    for number, layout in enumerate(layouts):
        with indexed(tmp_path / str(number), layout) as (_, searcher):
            alone = e.And((e.Filter("origin", "1"), e.Not(e.Prefix("\x1fidoi:"))))
            told = searcher.search(alone, limit=0, facets=("creator", "subject", "format"))
            for facet, values in told.facets.items():
                assert Counter({value_key(facet, v): n for v, n in values}) == expected(plain, facet), facet
            whole = searcher.search(e.Everything(), limit=0, facets=("creator", "subject", "format"))
            for facet, values in whole.facets.items():
                for value, times in values:
                    found = searcher.search(e.Filter(facet, value), limit=0)
                    assert found.total == times, (facet, value)
                # The fewer are wanted, the same come first.
                few = searcher.search(e.Everything(), limit=0, facets=(facet,), values=3).facets[facet]
                assert few == values[:3]
            assert whole.facets["format"][0][0] == "PDF"
            orders = [
                [hit.id for hit in searcher.search(e.Everything(), limit=200, sort=sort).hits]
                for sort in ("title", "author")
            ]
            answers.append((whole.facets, orders, searcher.listed("subject", "", 100)))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("sort", ["title", "author"])
def test_the_order_is_that_of_names_and_pages_are_parts_of_it(tmp_path: Path, sort: str) -> None:
    chance = random.Random(6)
    records = [record(number, chance) for number in range(90)]
    with indexed(tmp_path, [{"a": records[:40]}, {"b": records[40:]}]) as (store, searcher):
        whole = searcher.search(e.Everything(), limit=90, sort=sort)
        with store.read() as view:
            stored = view.by_id([hit.id for hit in whole.hits])
        keys = []
        for hit in whole.hits:
            metadata = stored[hit.id].record.metadata
            title = title_order(metadata)
            author = next((filing_name(n) for n in metadata.get("creator", ())), "")
            keys.append(
                ((not author, author), (not title, title)) if sort == "author" else (not title, title)
            )
        assert keys == sorted(keys)  # records without a name come last
        pages = [
            searcher.search(e.Everything(), limit=7, offset=at, sort=sort).hits for at in range(0, 90, 7)
        ]
        assert [hit for page in pages for hit in page] == list(whole.hits)


def test_lists_go_on_from_any_key_and_back(tmp_path: Path) -> None:
    records = [Record(f"oai:x:{n}", {"subject": [f"Subject {n:03}"]}) for n in range(100)]
    with indexed(tmp_path, [{"a": records[::2]}, {"a": records[1::2]}]) as (store, searcher):
        labels = [value.label for value in searcher.listed("subject", "", 200)]
        assert labels == [f"Subject {n:03}" for n in range(100)]
        page = searcher.listed("subject", "subject 050", 10)
        assert [value.label for value in page] == labels[50:60]
        before = searcher.listed("subject", page[0].key, 10, backwards=True)
        assert [value.label for value in before] == labels[40:50]
        assert searcher.listed("subject", "zzz", 10) == searcher.listed("creator", "", 10) == []
        with store.write() as tx:
            tx.delete(tx.origin("source", "a"), ["oai:x:50"])
        follow.catch_up(store)
        gone = index_of(store).searcher().listed("subject", "subject 050", 1)
        assert [value.label for value in gone] == ["Subject 051"]


@pytest.mark.parametrize(
    ("written", "filed"),
    [
        ("Wang, Wei", "wang, wei"), ("Wei Wang", "wang, wei"), ("Jan van der Berg", "van der berg, jan"),
        ("Wang, W., 1970-", "wang, w"), ("National Office of Records", "national office of records"),
        ("Working Group A", "working group a"), ("王伟", "王伟"), ("...", ""),
        ("Müller, Jörg", "muller, jorg"),
    ],
)  # fmt: skip
def test_names_are_filed_by_the_family_name(written: str, filed: str) -> None:
    assert filing_name(written) == filed


@pytest.mark.parametrize(
    ("language", "title", "order"),
    [
        ("en", "The Zebra", "zebra"),
        ("de", "Die Äpfel", "apfel"),
        ("en", "Die Hard", "die hard"),
        ("en", "The", "the"),
    ],
)
def test_a_title_is_sorted_without_its_article(language: str, title: str, order: str) -> None:
    assert title_order({"title": [title], "language": [language]}) == order


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("application/pdf", "PDF"),
        ("text/html; charset=utf-8", "HTML"),
        ("12 p.", ""),
        ("image/png", "PNG"),
        ("pdf", "PDF"),
    ],
)
def test_formats_have_short_names(value: str, name: str) -> None:
    assert file_format(value) == name


def title_order(metadata: Metadata) -> str:
    """By what a record stands among titles, as its term has it."""
    mark = SORT_MARKS["title"]
    terms = record_key_terms("x", json.dumps(dict(metadata)).encode())
    return plain(next((term.removeprefix(mark) for term in terms if term.startswith(mark)), ""))


_LETTERS = st.sampled_from("aZ9 .,<=:\u0338\u0301\u0307IéßﬁΣς½…\u00a0\u2028й和ᄒ\u1161\u3000İ¨")


@given(st.lists(_LETTERS, max_size=12).map("".join))
def test_a_title_that_is_folded_piece_by_piece_is_the_title_folded(title: str) -> None:
    assert title_words(f"x {title}") == split(folded(f"x {title}"))


def test_of_several_dates_the_earliest_year_counts() -> None:
    assert date_number({"date": ["2004-08-17", "2003-04", "2003"]}) == 20030400
    assert date_number({"date": ["0001-01-01T00:00:00Z", "2004-08-17"]}) == 20040817
    for words in ("s.a.", "c1890"):
        assert date_number({"date": [words, "[1887?]"]}) == 18870000
    assert date_number({"date": ["2004-08-17"]}) == 20040817 and date_number({}) == 0
