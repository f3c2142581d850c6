"""Pairs made by hand: the same work described otherwise, and other works that look alike."""

from __future__ import annotations

import pytest

from indlet.exchange.duplicates.features import Features, described, title_words
from indlet.exchange.duplicates.pairs import LEAST
from indlet.exchange.duplicates.score import score, text_similarity
from indlet.model import TermVector

WING = "Flutter of swept wings at transonic speed"


def work(
    title: str, *names: str, year: str = "", ids: tuple[str, ...] = (), own: str = "oai:a:1"
) -> Features:
    metadata = {
        "title": [title],
        "creator": list(names),
        "date": [year] if year else [],
        "identifier": list(ids),
    }
    return described(own, metadata)


SAME = {
    "a typo in title and name": (
        work(WING, "Garrick, Isadore", year="1957"),
        work("Fluter of swept wings at transonic speed", "Garick, Isadore", year="1957", own="oai:b:2"),
    ),
    "a title cut within a word": (
        work("Summary of pressure distributions over swept wings in flow", "Loving, Donald L.", year="1955"),
        work("Summary of pressure distributions over swept wi", "Loving, D. L.", year="1955", own="oai:b:2"),
    ),
    "names the other way round": (
        work(WING, "Wei Wang", year="2001"),
        work(WING, "WANG, W.", year="2001", own="oai:b:2"),
    ),
    "no comma where the family name comes first": (
        work(WING, "Wang Wei", year="2001"),
        work(WING, "Wei Wang", year="2001", own="oai:b:2"),
    ),
    "other cataloguing rules": (
        work("The history of aeronautics : a sketch [microform] / by E. Vivian", "Vivian, E., 1882-1947"),
        work("HISTORY OF AERONAUTICS", "E. Charles Vivian", own="oai:b:2"),
    ),
    "accents and word breaks": (
        work("Études sur l’aérodynamique on-line", "Lévy, Zoé", year="1990"),
        work("Etudes sur l'aerodynamique online", "Levy, Zoe", year="[c1990]", own="oai:b:2"),
    ),
    "the same report number in two forms": (
        work("Wind tunnel tests", year="2002", ids=("NASA/TM-2002-211234",)),
        work("Wind-tunnel tests of the model", year="2002", ids=("NASA TM 2002 211234",), own="oai:b:2"),
    ),
    "the same ISBN, ten and thirteen digits": (
        work("Pride and prejudice", "Austen, Jane", ids=("ISBN 019282760X",)),
        work("Pride & prejudice", "Austen", ids=("9780192827609",), own="oai:b:2"),
    ),
}  # fmt: skip

DIFFERENT = {
    "parts of one work": (
        work("Handbook of supersonic aerodynamics, part 1", "Smith, John", year="1950"),
        work("Handbook of supersonic aerodynamics, part II", "Smith, John", year="1950", own="oai:b:2"),
    ),
    "years of a series": (
        work("Annual report of the laboratory", "Langley Research Center", year="1985"),
        work("Annual report of the laboratory", "Langley Research Center", year="1988", own="oai:b:2"),
    ),
    "one word for another": (
        work("Introduction to theoretical physics", "Page, Leigh", year="1928"),
        work("Introduction to theoretical physiology", "Page, Leigh", year="1928", own="oai:b:2"),
    ),
    "short words that differ by a letter": (
        work("The war on land", "Smith, John", year="1950"),
        work("The war on sand", "Smith, John", year="1950", own="oai:b:2"),
    ),
    "a common title by two people": (
        work("Collected poems", "Hughes, Ted", year="1970"),
        work("Collected poems", "Larkin, Philip", year="1970", own="oai:b:2"),
    ),
    "numbers of one report series": (
        work("Flight tests of the aircraft", "Smith, J.", year="1960", ids=("NACA-TN-3210",)),
        work("Flight tests of the aircraft", "Smith, J.", year="1960", ids=("NACA-TN-3390",), own="oai:b:2"),
    ),
    "a short report number of two institutions": (
        work("Flight tests of the aircraft", "Smith, J.", ids=("TR-17",)),
        work("Parsing of natural language", "Ng, Amy", ids=("TR 17",), own="oai:b:2"),
    ),
    "a plain number, for every catalogue counts": (
        work("Flutter", "Smith, J.", ids=("12345",)),
        work("Soil chemistry", "Ng, Amy", ids=("12345",), own="oai:b:2"),
    ),
    "nothing to compare": (work(""), work("", own="oai:b:2")),
}  # fmt: skip


@pytest.mark.parametrize("kind", SAME)
def test_the_same_work_described_otherwise_is_found(kind: str) -> None:
    found = score(*SAME[kind])
    assert found.score >= LEAST, found
    assert found.reasons


@pytest.mark.parametrize("kind", DIFFERENT)
def test_other_works_that_look_alike_are_not(kind: str) -> None:
    found = score(*DIFFERENT[kind])
    assert found.score < LEAST, found


def test_the_evidence_is_told() -> None:
    one = work(WING, "Garrick, Isadore", year="1957", ids=("10.1000/182",))
    other = work(WING, "Garrick, Isadore", year="1958", ids=("https://doi.org/10.1000/182",), own="oai:b:2")
    assert score(one, other).reasons == (
        "same identifier doi:10.1000/182",
        "same title",
        "same authors",
        "years 1 apart",
    )


def test_a_title_is_its_words() -> None:
    assert title_words("The Wing's  Édge : part II / by X") == ("wings", "edge", "part", "2")
    assert title_words("The") == ("the",)


def test_the_text_speaks_for_and_against() -> None:
    words = {f"term{n}": 1 + n % 3 for n in range(400)}
    others = {f"other{n}": 1 for n in range(400)}
    same, different = TermVector.of(words).packed, TermVector.of(others).packed
    alike, unlike = text_similarity(same, same), text_similarity(same, different)
    assert alike is not None
    assert unlike is not None
    assert alike.cosine == pytest.approx(1)
    assert unlike.cosine == 0
    one, other = work(WING, year="1957"), work("Swept wings: flutter", year="1957", own="oai:b:2")
    assert score(one, other, unlike).score < score(one, other).score < score(one, other, alike).score


def test_the_cosine_is_that_of_roots_of_frequencies() -> None:
    shared = {f"t{n}": 1 for n in range(20)}
    found = text_similarity(
        TermVector.of({**shared, "a": 4}).packed, TermVector.of({**shared, "a": 9, "b": 7}).packed
    )
    assert found is not None
    assert found.terms == 21
    assert found.cosine == pytest.approx((20 + 6) / (24 * 36) ** 0.5)


def test_a_text_and_a_description_are_not_compared() -> None:
    short = TermVector.of({f"t{n}": 1 for n in range(30)}).packed
    long = TermVector.of({f"t{n}": 1 for n in range(300)}).packed
    assert text_similarity(short, long) is None
    assert text_similarity(None, long) is None
    assert text_similarity(b"1 one two", b"1 one two") is None
