"""People, phrases in metadata, languages of few records, accents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from indlet.model import Record
from indlet.service.harvest.source_shape import Shape
from indlet.service.harvest.source_state import SourceState
from indlet.service.search.library import Library
from indlet.text import Analyzer

FRENCH = "Les réseaux neuronaux sont utilisés dans les systèmes pour la traduction de la langue et des textes"
ENGLISH = "A study of the wing and of the flow around it, which is what the tests of the tunnel are for"


def record(
    number: int, title: str, creator: str = "Nobody, N.", text: str = ENGLISH, language: str = ""
) -> Record:
    vector = Analyzer().vector(f"{title}. {text}", language)
    return Record(f"oai:x:{number}", {"title": [title], "creator": [creator]}, vector)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    odd = [
        record(1, "Réseaux neuronaux profonds", text=FRENCH),
        record(2, "On flow", "Wang, Wei"),
        record(3, "On flow again", "Wei Wang"),
        record(4, "On flow once more", "Wang, W."),
        record(5, "On flow and again", "Wang, Wenli"),
        record(6, "On flow at last", "Zhang, Wei; Wang, Li"),
        record(7, "The naïve approach of Müller"),
        record(8, "The naive approach of Muller"),
        record(9, "Shock of the wave at a plate"),
        record(10, "Wave and shock: the plate"),
        record(11, "Tests", "Working Group A"),
        record(12, "Graphene"),
        record(13, "Graphs"),
        record(14, "Graphene og vinger", text="Vingerne i tunnelen", language="da"),
    ]
    with Library.open(tmp_path_factory.mktemp("people")) as found:
        with found.store.write() as tx:
            plain = [record(100 + n, f"Wing number {n}") for n in range(60)]
            tx.put(tx.origin("source", "x"), [*odd, *plain])
        found.sync()
        yield found


def found(library: Library, text: str, **options: str) -> set[int]:
    hits = library.search(text, limit=100, **options)  # type: ignore[arg-type]
    return {int(hit.identifier.rpartition(":")[2]) for hit in hits}


def test_a_person_is_found_however_the_name_is_written(library: Library) -> None:
    for name in ("Wei Wang", "Wang, Wei", "WANG, Wei", "wei wang"):
        assert found(library, f'creator:"{name}"') == {2, 3, 4}, name
    assert found(library, 'creator:"W. Wang"') == {2, 3, 4, 5}
    assert found(library, 'author:"Working Group A"') == {11}
    assert found(library, 'creator:"Working Group"') == {11}  # as a phrase
    assert found(library, "creator:wang") == {2, 3, 4, 5, 6}  # words, as ever


def test_phrases_in_metadata_are_exact(library: Library) -> None:
    assert found(library, 'title:"shock of the wave"') == {9}
    assert found(library, 'title:"wave and shock"') == {10}
    assert found(library, 'title:"shock wave"') == set()
    assert library.search('title:"shock of the wave"').notes == ()
    assert found(library, 'title:plate -title:"wave and shock"') == {9}


def test_a_phrase_is_exact_where_the_text_is_the_metadata(tmp_path: Path) -> None:
    def described(number: int, title: str, text: str) -> Record:
        return Record(f"oai:x:{number}", {"title": [title], "description": [text]})

    with Library.open(tmp_path) as library:
        with library.store.write() as tx:
            plain = tx.origin("source", "plain")
            tx.put(plain, [described(1, "Of a shock wave", "A gale"), described(2, "Wave", "A shock, later")])
            tx.state(plain, SourceState(shape=Shape(metadata_prefix="oai_dc")).to_json())
        library.sync()
        assert found(library, '"shock wave"') == {1}
        assert found(library, '"wave a gale"') == set()  # not across values
        assert library.search('"shock wave"').notes == ()
        with library.store.write() as tx:
            tx.put(tx.origin("source", "texts"), [record(3, "Wave", text="The shock of a gale")])
        library.sync()
        assert found(library, '"shock wave"') == {1, 3}
        (note,) = library.search('"shock wave"').notes
        assert "texts came without word positions" in note


def test_what_is_asked_under_other_languages_changes_no_answer_to_the_next(library: Library) -> None:
    found(library, 'title:"the shock of the wave"', languages="fr")  # to which "the" and "of" are words
    assert found(library, 'title:"the shock of the wave"') == {9}


def test_a_language_of_few_records_takes_part(library: Library) -> None:
    assert found(library, "réseaux neuronaux") == {1}
    assert found(library, "réseau neuronal") == {1}
    assert found(library, "reseau neuronal") == {1}
    assert "fr" in library.search("wing").languages
    # A stop word of the many is no rare word of the few.
    assert found(library, "the neuronal") == {1}
    assert library.search("wing", filters={"language": ["fr"]}).languages == ("fr",)


def test_a_language_of_few_records_finds_these_alone(library: Library) -> None:
    # Danish takes "graphene" and "graphs" for forms of one word, English does not.
    for text in ("graphene", '"graphene"', "graphene*", "+graphene", "title:graphene", 'title:"graphene"'):
        assert found(library, text) == {12, 14}, text
    assert found(library, "graphs") == {13, 14}
    assert found(library, "graphene -graphs") == {12}


def test_accents_fold_unless_they_are_asked_for(library: Library) -> None:
    for text in ("naive", "naïve", "Müller", "muller", "title:müller", "title:Muller"):
        assert found(library, text) == {7, 8}, text
    assert found(library, '"naïve"') == {7}
    assert found(library, '"naive"') == {8}
    assert found(library, "müller", accents="exact") == {7}
    assert found(library, "muller", accents="exact") == {8}


def test_an_explanation_takes_the_query_as_the_search_does(library: Library) -> None:
    assert library.explain("müller", "oai:x:8").matches
    assert not library.explain("müller", "oai:x:8", accents="exact").matches
    assert library.explain("neuronaux", "oai:x:1").matches
    # Under English rules alone the word is another term than in a French record.
    assert not library.explain("neuronaux", "oai:x:1", filters={"language": ["en"]}).matches
    assert library.explain("wing flow tunnel", "oai:x:2").all_words == "all"
    assert library.explain("wing flow tunnel", "oai:x:2", all_words="off").all_words == ""
