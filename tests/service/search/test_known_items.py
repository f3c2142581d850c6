"""Known items: whoever knows its title, an identifier, or who wrote it when, gets the record."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from indlet.errors import QueryError
from indlet.model import Record
from indlet.service.search.library import Library
from indlet.text import Analyzer

COUNT = 1000
WORDS = [
    "boundary",
    "layer",
    "shock",
    "wave",
    "turbulence",
    "neural",
    "network",
    "translation",
    "parsing",
    "grammar",
    "corpus",
    "retrieval",
    "index",
    "metadata",
    "harvesting",
    "protocol",
    "library",
    "archive",
    "catalogue",
    "soil",
    "river",
    "nutrient",
    "carbon",
    "railway",
    "timetable",
    "opera",
    "libretto",
    "orchestra",
    "preservation",
    "emulation",
    "migration",
    "probability",
    "ranking",
    "feedback",
    "query",
    "expansion",
    "semantic",
    "graph",
    "model",
    "learning",
    "deep",
    "transfer",
    "survey",
    "evaluation",
    "method",
    "analysis",
    "theory",
    "history",
    "design",
    "system",
]
GIVEN = [
    "Wei",
    "Anna",
    "Jürgen",
    "María",
    "Olga",
    "Kofi",
    "Yuki",
    "Søren",
    "Léa",
    "Ivan",
    "Priya",
    "Ahmed",
    "Chloë",
    "Peter",
]
FAMILY = [
    "Wang",
    "Müller",
    "García",
    "Ivanova",
    "Mensah",
    "Tanaka",
    "Østergård",
    "Dubois",
    "Singh",
    "O'Neill",
    "Smith",
    "Kowalski",
]
SHAPES = (
    "{a} {b} for {c} {d}",
    "{a}-{b}: a {c} of {d}",
    "On the {a} of {b} (and {c}) {d}",
    'The "{a}" of {b}: {c}, {d}?',
    "{a} AND {b} OR {c} NOT {d}",
    "Über {a} und {b} naïve {c} {d}",
    "Réseaux de {a}: étude de {b} {c} {d}",
    "{a}:{b} — {c} [{d}",
    "What is {a}? Towards {b} in {c} & {d}",
)


def records(seed: int, with_statistics: bool) -> Iterator[Record]:
    """Odd but real-looking records: signs that mean something in a query, several languages, namesakes."""
    chance = random.Random(seed)
    analyzer = Analyzer()
    for number in range(COUNT):
        a, b, c, d = chance.sample(WORDS, 4)
        title = chance.choice(SHAPES).format(a=a.capitalize(), b=b, c=c, d=d) + f" {number % 40 + 1}"
        given, family = chance.choice(GIVEN), chance.choice(FAMILY)
        name = chance.choice((f"{family}, {given}", f"{given} {family}", f"{family}, {given[0]}."))
        metadata = {
            "title": [title],
            "creator": [name],
            "date": [str(1960 + number % 60)],
            "identifier": [
                chance.choice(IDENTIFIERS)(number),
                f"https://repository.example.org/item/{number}/",
            ],
            "description": [" ".join(chance.choices(WORDS, k=40))],
        }
        text = f"{title} {' '.join(chance.choices(WORDS, k=200))}"
        yield Record(
            f"oai:repository.example.org:{number}",
            metadata,
            analyzer.vector(text) if with_statistics else None,
        )


IDENTIFIERS: tuple[Callable[[int], str], ...] = (
    lambda n: f"https://doi.org/10.5555/Item.{n}",
    lambda n: f"doi:10.5555/item({n})",
    lambda n: f"hdl:1234.5/{n}",
    lambda n: f"arXiv:{1000 + n // 100}.{10000 + n}v1",
    lambda n: f"REP-{n:05}/A",
    lambda n: f"urn:isbn:978{(body := f'0{n:08}')}{_check('978' + body)}",
)


def _check(digits: str) -> int:
    return -sum((1, 3)[i % 2] * int(c) for i, c in enumerate(digits)) % 10


@pytest.fixture(scope="module", params=["generated", "harvested"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with Library.open(tmp_path_factory.mktemp("known")) as found:
        with found.store.write() as tx:
            generated = request.param == "generated"
            tx.put(tx.origin("source", "repository"), list(records(7 if generated else 8, generated)))
        found.sync()
        yield found


def reciprocal_rank(library: Library, text: str, wanted: Record) -> float:
    hits = library.search(text, limit=20).hits
    return next((1 / hit.rank for hit in hits if hit.identifier == wanted.identifier), 0.0)


def each(library: Library) -> list[Record]:
    with library.store.read() as view:
        return [stored.record for stored in view.changes()]


def test_by_title(library: Library) -> None:
    known = each(library)
    found = [reciprocal_rank(library, record.metadata["title"][0], record) for record in known]
    assert sum(found) / len(found) >= 0.98


def test_by_identifier_in_every_form(library: Library) -> None:
    for record in each(library):
        stated, address = record.metadata["identifier"]
        forms = [record.identifier, stated, address, address.rstrip("/").removeprefix("https://")]
        if "10.5555" in stated:
            bare = stated.partition("10.5555")[2]
            forms += [f"10.5555{bare.upper()}", f"DOI 10.5555{bare}", f"http://dx.doi.org/10.5555{bare}"]
        for form in forms:
            assert reciprocal_rank(library, form, record) == 1.0, form


def test_by_author_and_year(library: Library) -> None:
    """Namesakes of one year cannot be told apart: the record is among those, and all of them are theirs."""
    for record in each(library)[::10]:
        name, year = record.metadata["creator"][0], record.metadata["date"][0]
        hits = library.search(f'creator:"{name}" date:{year}', limit=50).hits
        assert record.identifier in {hit.identifier for hit in hits}
        assert len(hits) <= 6


def test_identifiers_as_fields(library: Library) -> None:
    record = next(r for r in each(library) if r.metadata["identifier"][0].startswith("https://doi.org"))
    doi = record.metadata["identifier"][0].removeprefix("https://doi.org/")
    for asked in (f"doi:{doi}", f"doi:https://doi.org/{doi}", f"url:{record.metadata['identifier'][1]}",
                  f"identifier:{record.identifier}", f'id:"{doi}"', f"doi:{doi} date:1900.."):  # fmt: skip
        assert [hit.identifier for hit in library.search(asked)] == [record.identifier], asked
    assert library.search(f"parsing -doi:{doi}", limit=0).total <= library.search("parsing", limit=0).total
    assert "form of a isbn" in library.search("isbn:12 OR parsing").notes[0]


def test_an_identifier_that_nobody_has_is_searched_as_words(library: Library) -> None:
    assert library.search("10.9999/parsing").total > 0


def test_a_whole_title_comes_before_the_beginning_of_a_longer_one(tmp_path: Path) -> None:
    titles = ("The wind in summer fields: a study", "The wind in summer fields", "Wind: the wind in fields")
    with Library.open(tmp_path) as library:
        with library.store.write() as tx:
            made = [
                Record(
                    f"oai:x:{n}", {"title": [t], "identifier": [f"J. Wind {n} (2014) 7", f"urn:nbn:x-{n}"]}
                )
                for n, t in enumerate(titles)
            ]
            tx.put(tx.origin("source", "repository"), made)
        library.sync()
        found = [hit.title for hit in library.search("The Wind in Summer Fields")]
        assert found[:2] == [titles[1], titles[0]]
        assert library.search("J. Wind 2 (2014)").hits[0].identifier == "oai:x:2"
        assert [hit.identifier for hit in library.search("urn:nbn:x-1")] == ["oai:x:1"]
        assert library.search("urn:nbn:unknown").total == 0


def test_a_reference_pasted_whole_puts_its_record_first(tmp_path: Path) -> None:
    with Library.open(tmp_path) as library:
        with library.store.write() as tx:
            made = [
                Record("oai:x:1", {"title": ["Gales"], "identifier": ["https://doi.org/10.5555/gale.1"]}),
                Record("oai:x:2", {"title": ["Wind, waves and the sea in the journal of wind"]}),
            ]
            tx.put(tx.origin("source", "repository"), made)
        library.sync()
        pasted = 'Wei, W. (2014): "Gales", Journal of Wind 7(2), pp. 1-9. doi: 10.5555/GALE.1.'
        assert [hit.identifier for hit in library.search(pasted)] == ["oai:x:1", "oai:x:2"]
        asked = "title:wind AND NOT (doi:10.5555/gale.1 OR doi:10.5555/gale.2 OR doi:10.5555/gale.3)"
        assert [hit.identifier for hit in library.search(asked)] == ["oai:x:2"], "no reference"


# Records that hold all words first


def test_records_with_all_words_come_first(library: Library) -> None:
    asked = "parsing corpus orchestra"
    result = library.search(asked, limit=COUNT)
    all_words = library.search(asked.replace(" ", " AND "), limit=COUNT)
    assert 0 < all_words.total < result.total
    assert result.ahead == all_words.total
    assert [hit.identifier for hit in result.hits[: result.ahead]] == [h.identifier for h in all_words.hits]
    scores = [hit.score for hit in result.hits]
    assert scores[: result.ahead] == sorted(scores[: result.ahead], reverse=True)
    assert scores[result.ahead :] == sorted(scores[result.ahead :], reverse=True)
    # Paging goes through the same order.
    paged = [
        hit.identifier
        for offset in range(0, result.total, 70)
        for hit in library.search(asked, limit=70, offset=offset)
    ]
    assert paged == [hit.identifier for hit in result.hits]


def test_it_can_be_switched_off(library: Library) -> None:
    by_score = library.search("parsing corpus orchestra", limit=COUNT, all_words="off")
    scores = [hit.score for hit in by_score]
    assert (by_score.ahead, by_score.words) == (0, 0) and scores == sorted(scores, reverse=True)


def test_two_words_are_enough_and_one_is_not(library: Library) -> None:
    both = library.search("parsing AND corpus", limit=COUNT)
    result = library.search("parsing corpus", limit=COUNT)
    assert (result.ahead, result.words) == (both.total, 2)
    assert [hit.identifier for hit in result.hits[: both.total]] == [hit.identifier for hit in both]
    assert (library.search("parsing").ahead, library.search("parsing").words) == (0, 0)


@pytest.mark.parametrize("sort", ["newest", "oldest", "title", "author"])
def test_an_order_that_leaves_records_out_says_how_many_there_are(library: Library, sort: str) -> None:
    by_score = library.search("parsing corpus orchestra")
    ordered = library.search("parsing corpus orchestra", sort=sort)
    assert 0 < ordered.total == by_score.ahead
    assert (ordered.any_words, ordered.words) == (by_score.total, 3)
    everything = library.search("parsing corpus orchestra", sort=sort, all_words="off")
    assert (everything.total, everything.any_words) == (by_score.total, 0)


def test_an_order_leaves_nothing_out_where_no_record_has_all_words(library: Library) -> None:
    by_score = library.search("parsing xylophonist")
    ordered = library.search("parsing xylophonist", sort="newest")
    assert 0 < by_score.total == ordered.total and ordered.any_words == 0


def test_by_date_all_words_are_required(library: Library) -> None:
    newest = library.search("parsing corpus orchestra", sort="newest", limit=COUNT)
    every = library.search("parsing AND corpus AND orchestra", limit=COUNT)
    assert {hit.identifier for hit in newest} == {hit.identifier for hit in every}
    assert [hit.date for hit in newest] == sorted((hit.date for hit in newest), reverse=True)


def test_titles_that_words_alone_do_not_tell(tmp_path: Path) -> None:
    """Stop words alone, signs, and spellings that differ by case, accents and markup."""
    titles = [
        "The Who",
        "To be, or not to be",
        "C++",
        "E=mc^2",
        "Front matter",
        "Front Matter",
        "Über uns",
        "uber uns",
    ]
    with Library.open(tmp_path) as found:
        with found.store.write() as tx:
            known = [Record(f"oai:x:{n}", {"title": [title]}) for n, title in enumerate(titles)]
            tx.put(tx.origin("source", "x"), known)
        found.sync()
        for record in known:
            (title,) = record.metadata["title"]
            assert (
                reciprocal_rank(found, title, record) == reciprocal_rank(found, f'"{title}"', record) == 1.0
            )
        with pytest.raises(QueryError):
            found.search("it")
