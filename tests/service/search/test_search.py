"""A library answers: what matches, in which order, and how it is shown."""

from __future__ import annotations

import gc
import math
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from indlet.errors import QueryError, SettingsError, UnknownRecord
from indlet.limits import MISSPELT_WORDS, VERIFIED_RECORDS
from indlet.model import Record, TermVector
from indlet.service.search.library import FACETS, Library
from indlet.service.search.rank import MODELS
from indlet.service.search.results import link
from indlet.settings import Settings
from indlet.store import Store
from indlet.text import Analyzer, Policy


def found(library: Library, text: str, **options: object) -> set[str]:
    return {hit.identifier for hit in library.search(text, **options)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flutter", {"air:2"}),
        ("FLUTTERING wings", {"air:2"}),
        ("boundary flutter", {"air:1", "air:2", "air:3", "sea:1"}),
        ("boundary AND waves", {"air:3", "sea:1"}),
        ("boundary AND NOT waves", {"air:1"}),
        ("boundary -waves", {"air:1"}),
        ("boundary NOT (waves OR plate)", set()),
        ("wind OR plate", {"air:1", "air:2", "sea:1", "sea:2"}),
        ("+wind boundary", {"air:2", "sea:1", "sea:2"}),
        ("+(wind plate) flutter", {"air:1", "air:2", "sea:1", "sea:2"}),
        ("boundary -(plate shock)", {"sea:1"}),
        ("boundary -heat-shock", {"air:1", "sea:1"}),
        ("+heat-shock", {"air:3"}),
        ("heat-shock AND boundary", {"air:3"}),
        ("(heat shock) AND boundary", {"air:3", "sea:1"}),
        ("heat-sho*", {"air:2", "air:3", "sea:1"}),
        ("+heat-sho*", {"air:2", "air:3"}),  # "show" begins so
        ("title:heat", {"air:2", "air:3"}),
        ("title:heated", {"air:2", "air:3"}),
        ("creator:munk", {"sea:1"}),
        ("author:(munk OR lees)", {"air:3", "sea:1"}),
        ('title:"flat plate"', {"air:1"}),
        ("visc*", {"air:1"}),
        ("title:boun*", {"air:1"}),
        ("currents*", {"sea:1"}),
        ("source:sea", {"sea:1", "sea:2"}),
        ("source:SEA wind", {"sea:1", "sea:2"}),
        ('source:"http://sea.example/oai"', {"sea:1", "sea:2"}),
        ("set:flow", {"air:1", "air:3"}),
        ("set:flow:viscous", {"air:1"}),
        ("set:flow set:ocean wind", {"sea:1", "sea:2"}),
        ("type:article", {"air:3"}),
        ("language:de", {"sea:2"}),
        ("lang:ger", {"sea:2"}),
        ("date:1950..1955", {"air:2", "sea:1"}),
        ("date:1955-07..", {"air:3"}),
        ("date:..1904", {"air:1"}),
        ("date:1956-03-01", {"air:3"}),
        ("NOT boundary", {"air:2", "sea:2"}),
        ("*", {"air:1", "air:2", "air:3", "sea:1", "sea:2"}),
        ("* -source:air", {"sea:1", "sea:2"}),
        ("Strömung", {"sea:2"}),
        ("zeppelin", set()),
        ("zeppelin AND wing", set()),
    ],
)
def test_what_matches(shelf: Library, text: str, expected: set[str]) -> None:
    assert found(shelf, text) == {f"oai:{name}" for name in expected}


def test_words_mean_all_of_them_in_the_boolean_model(shelf: Library) -> None:
    assert found(shelf, "boundary waves", model="boolean") == {"oai:air:3", "oai:sea:1"}
    assert found(shelf, "boundary OR flutter", model="boolean") == found(shelf, "boundary flutter")
    assert {hit.score for hit in shelf.search("boundary waves", model="boolean")} == {1.0}
    # "in" is a stop word to all records, the others to the English ones: what is left finds nothing alone.
    assert found(shelf, "(the-of OR in)", model="boolean") == set()
    assert found(shelf, "(the-of OR in) AND wind", model="boolean") == set()


def test_parameters_of_a_model_may_be_named(shelf: Library) -> None:
    for model, text, named in (
        ("lm-dirichlet", "mu=500.0", {"mu": 500}),
        ("lm-jm", "lambda=0.2", {"lambda_": 0.2}),
        ("bm25", "k1=0.5", {"k1": 0.5}),
    ):
        spelt = shelf.search("wing", model=model, parameters=[text])
        assert [h.score for h in shelf.search("wing", model=model, **named)] == [h.score for h in spelt]
    with pytest.raises(SettingsError, match="has no parameter 'mu'"):
        shelf.search("wing", model="bm25", mu=1)


def test_a_hyphenated_word_is_its_words_when_ranked_and_all_of_them_when_required(shelf: Library) -> None:
    assert found(shelf, "boundary-wing") == found(shelf, "boundary wing")
    assert found(shelf, "+boundary-flow") == {"oai:air:3"}


def test_a_word_that_is_asked_for_twice_weighs_twice(shelf: Library) -> None:
    once, twice = (shelf.search(text).hits[0].score for text in ("flutter", "flutter flutter"))
    assert twice == 2 * once


def test_phrases_where_positions_are_known(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf(positions=True)
    assert found(library, '"boundary layer"') == {"oai:air:1", "oai:air:3"}
    assert found(library, '"layer of mixing"') == {"oai:sea:1"}
    assert found(library, '"mixing layer"') == set()
    assert library.search('"boundary layer"').notes == ()


def test_a_phrase_without_positions_means_all_words_and_says_so(shelf: Library) -> None:
    result = shelf.search('"boundary layer"')
    assert {hit.identifier for hit in result} == {"oai:air:1", "oai:air:3", "oai:sea:1"}
    assert "without word positions" in result.notes[0]
    # Of fields the metadata are held, and tell.
    assert found(shelf, 'title:"plate flat"') == set()


def test_stop_words_alone_are_explained(shelf: Library) -> None:
    with pytest.raises(QueryError, match="too common to be indexed") as caught:
        shelf.search("to be or not to be", languages=("en",))
    assert caught.value.position == 0


@pytest.mark.parametrize(
    ("text", "model", "as_good_as"),
    [
        ("the heat of the ocean", "boolean", "heat ocean"),
        ("the AND wind", "bm25", "wind language:en"),  # no German record holds "the"
        ("wind AND der", "bm25", "wind language:de"),
        ("+wind +of-the-layer", "vsm", "+wind +layer language:en"),
        ("title:the AND title:waves", "bm25", "title:waves"),
        ("the AND date:1905..1955", "bm25", "date:1905..1955 language:en"),
        ("wind NOT the", "bm25", "wind"),
        ("wind AND (the OR of)", "bm25", "thermodynamics"),  # not one of the two was found
        ("the AND NOT wind", "bm25", "thermodynamics"),
        ("the of", "boolean", "thermodynamics"),
        ("+the heat", "bm25", "heat"),
        ("+the -heat wind", "vsm", "wind -heat language:en"),
        ("+the +der wind", "bm25", "thermodynamics"),  # either language holds one of them, and none has it
        ("+der wind", "lm-jm", "wind language:de"),
        ("+the wind date:1950..1955", "bm25", "wind date:1950..1955"),
        ("+the of", "bm25", "thermodynamics"),
        ("+of-the heat", "bm25", "heat"),
        ("of-the AND wind", "bm25", "wind language:en"),
    ],
)
def test_what_a_language_drops_is_not_asked_of_its_records(
    shelf: Library, text: str, model: str, as_good_as: str
) -> None:
    assert found(shelf, text, model=model) == found(shelf, as_good_as, model=model)


def test_what_one_language_drops_another_may_hold(shelf: Library) -> None:
    assert shelf.search("*").languages == ("en", "de")
    assert found(shelf, "der wind") == found(
        shelf, "wind"
    )  # German drops "der", and no English record has it
    assert shelf.search("the wind").suggestions == (), "no misspelling, but a stop word of English"
    with pytest.raises(QueryError):
        shelf.search("der", languages=("de",))
    with pytest.raises(SettingsError, match="no rules for the language"):
        shelf.search("wind", languages=("klingon",))


def test_what_a_stop_word_of_some_asks_of_others_is_asked(make_shelf: Callable[..., Library]) -> None:
    """A German record that holds an English stop word has what "+the" asks for, with or without the rest."""
    library = make_shelf()
    analyzer = Analyzer(Policy())
    with library.store.write() as tx:
        for name, text in (
            ("1", "Das Projekt the Ocean"),
            ("2", "Das Projekt the Meere"),
            ("3", "Das Ocean"),
        ):
            record = Record(f"oai:de:{name}", {"language": ["de"]}, analyzer.vector(text, "de"))
            tx.put(tx.origin("source", "sea"), [record])
    ranked = library.search("+the ocean")
    assert ranked.hits[0].identifier == "oai:de:1"
    assert {hit.identifier for hit in ranked} == {"oai:de:1", "oai:de:2", "oai:sea:1"}
    assert {part.term: part.weight for part in library.explain("+the ocean", "oai:de:1").shares} == {
        "the": 1.0,
        "ocean": 1.0,
    }


def test_one_language_may_be_named_as_it_is(shelf: Library) -> None:
    assert shelf.search("wind", languages="de").languages == ("de",)
    assert shelf.search("wind", languages="").languages == ("en", "de")
    with pytest.raises(SettingsError, match="'klingon'"):
        shelf.rank("wind", 10, languages="klingon")


def test_notes_on_what_cannot_be_meant(shelf: Library) -> None:
    assert shelf.search("wind source:nowhere").notes == ("no source is called “nowhere”",)
    assert "leave out" in shelf.search("-wind").notes[0]


def test_a_query_analysed_otherwise_than_the_records_says_so(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf()
    with library.store.write() as tx:
        for name, made in (("kept", Policy(positions=True)), ("raw", Policy(stem=False))):
            tx.state(tx.origin("hierarchy", name), {"policy": made.digest})
    (note,) = library.search("wind").notes
    assert note.startswith("raw: indexed under another analysis policy")
    raw = replace(library.settings, analysis=replace(library.settings.analysis, stem=False))
    (note,) = Library(library.store, raw).search("wind").notes
    assert note.startswith("kept: ")


def test_what_records_of_one_source_share_hides_none_of_them(make_shelf: Callable[..., Library]) -> None:
    """Theses that all link to the front page of their repository are not one thesis."""
    library = make_shelf()
    with library.store.write() as tx:
        for source, names in (("one", "abc"), ("two", "a"), ("three", "d"), ("four", "d")):
            origin = tx.origin("source", source)
            tx.put(origin, [
                Record(f"oai:{source}:{name}", {"title": [f"Thesis {name}"]}, resource=f"key {name > 'c'}")
                for name in names
            ])  # fmt: skip
    found = library.search("thesis", limit=10)
    assert found.total == 5
    sources = sorted(sorted(hit.sources) for hit in found.hits)
    assert sources == [["four", "three"], ["one"], ["one"], ["one"], ["two"]]
    assert library.record("oai:one:a").sources == ("one",)
    assert sorted(library.record("oai:three:d").sources) == ["four", "three"]
    assert {hit.identifier for hit in library.similar("oai:one:a").hits} >= {"oai:one:b", "oai:two:a"}


def test_suggestions_for_unknown_words(shelf: Library) -> None:
    result = shelf.search("bondary AND fluter")
    assert result.total == 0
    assert [(s.word, s.instead[0]) for s in result.suggestions] == [
        ("bondary", "boundary"),
        ("fluter", "flutter"),
    ]
    assert result.corrected == "boundary AND flutter"
    assert shelf.search("boundary").suggestions == ()
    assert shelf.search("title:hypersanic").corrected == "title:hypersonic"


def test_completions_are_words_not_stems(shelf: Library) -> None:
    found = {one.word: one for one in shelf.suggest("flat bound")}
    assert found["boundary"].query == "flat boundary"
    assert found["boundary"].records == shelf.search("flat boundary").ahead == 1
    assert shelf.suggest("x") == []
    assert shelf.suggest("") == []
    assert shelf.suggest("flat " * 100 + "bound") == [], "nobody types that"


def test_hits_show_their_record(shelf: Library) -> None:
    hit = shelf.search("flutter").hits[0]
    assert (hit.rank, hit.source, hit.sources) == (1, "air", ("air",))
    assert (hit.title, hit.creators, hit.date, hit.year) == (
        "Flutter of a heated wing", ("Garrick, I.",), "1955-06", "1955",
    )  # fmt: skip
    assert hit.url == "http://example.org/2"
    assert [(term.term, term.words, term.frequency) for term in hit.terms] == [("flutter", ("flutter",), 3)]


def test_shares_of_the_terms_add_up(shelf: Library) -> None:
    for model in MODELS:
        for hit in shelf.search("boundary layer title:heat", model=model):
            assert math.isclose(sum(term.share for term in hit.terms), 1.0)


def test_facets_count_exactly(shelf: Library) -> None:
    result = shelf.search("wind OR boundary", facets=FACETS, limit=1)
    assert result.total == 5
    assert result.facets["source"].values == (("air", 3), ("sea", 2))
    assert result.facets["language"].values == (("en", 4), ("de", 1))
    assert result.facets["type"].values == (("Text", 4), ("Article", 1))
    # A set has what is in those below it, as its filter finds it.
    assert dict(result.facets["set"].values) == {"flow": 2, "flow:viscous": 1, "wing": 1, "ocean": 2}
    assert result.histogram == ((1904, 1), (1905, 1), (1950, 1), (1955, 1), (1956, 1))


def test_filters_narrow_like_ticked_boxes(shelf: Library) -> None:
    assert found(shelf, "*", filters={"source": ["sea"], "language": ["en", "de"]}) == {
        "oai:sea:1",
        "oai:sea:2",
    }
    assert found(shelf, "*", filters={"year": ["1904", "1905"]}) == {"oai:air:1", "oai:sea:2"}
    assert found(shelf, "*", filters={"date": ["1950..1955"]}) == {"oai:air:2", "oai:sea:1"}
    assert found(shelf, "*", filters={"date": "1950..1955"}) == {"oai:air:2", "oai:sea:1"}, (
        "one, without a list"
    )
    with pytest.raises(QueryError):
        shelf.search("*", filters={"date": ["soon"]})
    with pytest.raises(SettingsError, match="no filter 'colour'"):
        shelf.search("*", filters={"colour": ["red"]})


def test_pages_are_the_one_long_list(shelf: Library) -> None:
    for text in ("boundary wind heat", "*", "boundary OR wind"):
        for sort in ("score", "newest", "oldest"):
            whole = [hit.identifier for hit in shelf.search(text, sort=sort, limit=100)]
            pages = [shelf.search(text, sort=sort, limit=2, offset=n) for n in range(0, 6, 2)]
            assert [hit.identifier for page in pages for hit in page] == whole
            assert [hit.rank for page in pages for hit in page] == list(range(1, len(whole) + 1))


def test_sorting_by_date(shelf: Library) -> None:
    years = [hit.year for hit in shelf.search("*", sort="newest")]
    assert years == sorted(years, reverse=True)


@pytest.mark.parametrize("model", list(MODELS))
def test_an_explanation_adds_up_to_the_score(shelf: Library, model: str) -> None:
    text = "boundary layer title:heat flow"
    for hit in shelf.search(text, model=model):
        told = shelf.explain(text, hit.identifier, model=model)
        assert told.score == hit.score
        assert told.matches
        assert math.isclose(sum(share.contribution for share in told.shares) + told.remainder, hit.score)
    assert not shelf.explain("flutter", "oai:sea:1", model=model).matches


def test_parameters_of_a_model_matter(shelf: Library) -> None:
    scores = {shelf.search("boundary", parameters=[f"k1={k1}"]).hits[0].score for k1 in (0.5, 1.2, 2.0)}
    assert len(scores) == 3
    with pytest.raises(SettingsError, match="no parameter 'mu'"):
        shelf.search("boundary", parameters=["mu=3"])
    with pytest.raises(SettingsError, match="no model"):
        shelf.search("boundary", model="pagerank")


def test_more_like_this(shelf: Library) -> None:
    result = shelf.similar("oai:air:1")
    assert {hit.identifier for hit in result} == {
        "oai:air:3",
        "oai:sea:1",
    }  # they share words, and not itself
    assert {term.term for term in result.hits[0].terms} >= {"boundari", "layer"}
    with pytest.raises(UnknownRecord, match="oai:nobody:1"):
        shelf.similar("oai:nobody:1")


def test_models_side_by_side(shelf: Library) -> None:
    compared = shelf.compare("boundary layer", ("bm25", "vsm", "boolean"), limit=3)
    assert [result.model for result in compared.results] == ["bm25", "vsm", "boolean"]
    assert all(compared.overlap[i][i] == 1.0 for i in range(3))
    for row in compared.rows:
        assert any(rank is not None for rank in row.ranks)


def test_one_resource_from_two_sources_is_shown_once(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf()
    copy = Record(
        "oai:mirror:9", {"title": ["Mirrored"]}, TermVector.of({"mirror": 2}), resource="http://r/1"
    )
    with library.store.write() as tx:
        for name in ("air", "sea"):
            origin = tx.origin("source", name)
            tx.put(origin, [replace(copy, identifier=f"oai:{name}:mirror")])
    result = library.search("mirror")
    assert (result.total, len(result)) == (1, 1)
    assert set(result.hits[0].sources) == {"air", "sea"}
    assert library.search("mirror", facets=("source",)).facets["source"].values == (("air", 1), ("sea", 1))
    assert set(library.record("oai:air:mirror").sources) == {"air", "sea"}


def test_changes_are_found_at_once(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf()
    assert library.search("flutter").total == 1
    with library.store.write() as tx:
        tx.delete(tx.origin("source", "air"), ["oai:air:2"])
    assert library.search("flutter").total == 0
    with pytest.raises(UnknownRecord, match="deleted by its source"):
        library.record("oai:air:2")


def test_statistics(shelf: Library) -> None:
    counted = shelf.stats()
    analyzer = Analyzer(shelf.analyzer.policy)
    assert counted["store"]["records"] == counted["index"]["records"] == 5
    assert counted["index"]["lag"] == 0
    with shelf.store.read() as view:
        lengths = [stored.length for stored in view.changes()]
    assert counted["index"]["length"] == sum(lengths)
    assert counted["index"]["average_length"] == sum(lengths) / 5
    assert analyzer.policy.digest == shelf.analyzer.policy.digest
    assert [source["records"] for source in counted["store"]["sources"]] == [3, 2]


def test_sources_show_nothing_secret(shelf: Library) -> None:
    assert "secret" not in repr(shelf.sources())
    assert shelf.sources()[0]["url"] == "http://air.example/oai"


def test_an_origin_that_is_made_while_a_question_is_answered_is_hidden_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Library(
        Store.open(tmp_path), Settings(data=tmp_path), restricted={("hierarchy", "vault"): True}
    ) as library:
        hidden = library.hidden

        def late() -> tuple[int, ...]:
            found = hidden()
            with library.store.write() as tx:
                record = Record("oai:v:1", {"title": ["Zeppelin"]}, TermVector.of({"zeppelin": 1}))
                tx.put(tx.origin("hierarchy", "vault"), [record])
            return found

        monkeypatch.setattr(library, "hidden", late)
        for _ in range(2):
            assert library.namesakes("oai:v:1") == []
            assert library.stats()["store"]["sources"] == []
            assert library.sources() == []


def test_what_is_concealed_is_not_found_nor_suggested_nor_listed(make_shelf: Callable[..., Library]) -> None:
    open_to_all = make_shelf()
    with open_to_all.store.write() as tx:
        vector = TermVector.of({"zeppelin": 1, "wind": 1})
        origin = tx.origin("hierarchy", "vault")
        tx.put(origin, [Record("oai:vault:1", {"title": ["Zeppelin"]}, vector)])
    assert open_to_all.search("zeppelin").total == 1
    library = Library(open_to_all.store, open_to_all.settings, restricted={("hierarchy", "vault"): True})
    assert library.search("zeppelin").total == 0
    assert library.search("wind").total == 3
    assert library.search("zepelin").suggestions == library.search("title:zepelin").suggestions == ()
    assert library.suggest("zepp") == []
    assert [source["name"] for source in library.sources()] == ["air", "sea"]
    with pytest.raises(UnknownRecord, match="is not here"):
        library.record("oai:vault:1")


@pytest.mark.parametrize("held", [False, True])
def test_a_snapshot_goes_when_there_is_a_later_one_whatever_is_hidden(
    make_shelf: Callable[..., Library], held: bool
) -> None:
    whole = make_shelf()
    with whole.store.write() as tx:
        vault = tx.origin("hierarchy", "vault")
        if held:
            tx.put(vault, [Record("oai:vault:1", {"title": ["Zeppelin"]})])
    library = Library(whole.store, whole.settings, restricted={("hierarchy", "vault"): True})
    library.stats()
    library.search('title:"flat plate" fluter')  # a phrase to verify, and a word that no record holds
    before = [weakref.ref(library.whole()), weakref.ref(library.searcher())]
    with whole.store.write() as tx:
        tx.put(tx.origin("source", "air"), [Record("oai:air:new", {"title": ["Gliders"]})])
    library.searcher()
    gc.collect()
    assert [snapshot() for snapshot in before] == [None, None]


def test_only_web_addresses_become_links() -> None:
    assert (
        link({"identifier": ["javascript:alert(1)", "ISBN 1", "https://a.example/x"]}, {})
        == "https://a.example/x"
    )
    assert link({"identifier": ["doi:10/1"]}, {"url": "file:///etc/passwd"}) == ""


def test_limits(shelf: Library) -> None:
    for wrong in ({"limit": -1}, {"limit": 10**7}, {"offset": -1}, {"sort": "mood"}, {"facets": ["colour"]}):
        with pytest.raises(SettingsError):
            shelf.search("wind", **wrong)
    assert shelf.search("wind", limit=0).total == 3


def test_rankings_remember_a_bounded_number_of_records(shelf: Library) -> None:
    whole = shelf.rank("wind", 10)
    assert len(whole) > 1
    shelf.named_limit = 1
    for _ in range(3):
        assert shelf.rank("wind", 1) == whole[:1]
        assert shelf.rank("wind", 10) == whole
        assert len(shelf._named) <= shelf.named_limit + 10


def test_few_misspelt_words_of_a_query_are_looked_for_in_the_vocabulary(tmp_path: Path) -> None:
    words = ["harbour", "mountain", "elephant", "crocodile", "telescope", "algorithm"]
    with Library.open(tmp_path) as library:
        with library.store.write() as tx:
            tx.put(tx.origin("source", "one", {}), [Record("oai:x:1", {"title": [" ".join(words)]})])
        library.sync()
        misspelt = " ".join(word[:3] + "q" + word[3:] for word in words)
        found = library.search(misspelt).suggestions
        assert [one.instead for one in found] == [(word,) for word in words[:MISSPELT_WORDS]]
        calls: Counter[str] = Counter()
        sys.setprofile(lambda frame, event, _: calls.update([frame.f_code.co_qualname] * (event == "call")))
        try:
            results = library.compare(misspelt).results
        finally:
            sys.setprofile(None)
        assert all(one.suggestions == found for one in results)
        # Under every model but one, which needs all words, the query means the same.
        assert (calls["QueryReader.meaning"], calls["QueryReader.suggestions"]) == (2, 1)
        for result in results:
            alone = library.search(misspelt, model=result.model, all_words="off")
            assert (alone.total, alone.notes) == (result.total, result.notes)


def test_few_records_of_a_query_are_read_for_its_phrases(tmp_path: Path) -> None:
    words = [f"word{n}" for n in range(30)]
    with Library.open(tmp_path) as library:
        with library.store.write() as tx:
            titles = [Record(f"oai:x:{n}", {"title": [" ".join(words)]}) for n in range(400)]
            tx.put(tx.origin("source", "one", {}), titles)
        library.sync()
        phrases = [f'title:"{one} {other}"' for one, other in pairwise(words)]
        few = library.search(" AND ".join(phrases[: VERIFIED_RECORDS // 400]))
        assert (few.total, few.notes) == (400, ())
        many = library.search(" AND ".join(reversed(phrases)))
        assert many.total == 400
        assert any("phrase" in note for note in many.notes)
