"""Pruning by term against the plain rule, through deletions, later changes and merges."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.errors import SettingsError
from indlet.model import Record, Stored, TermVector
from indlet.service.index import follow
from indlet.service.index.embedded.engine import Engine, Pruning
from indlet.service.index.engines import index_of
from indlet.service.index.expression import Or, Phrase, Term
from indlet.service.search.library import Library
from indlet.service.search.rank import MODELS, DocumentStatistics, QueryTerm, canonical, score
from indlet.settings import IndexEngine, Settings
from indlet.settings.file import load
from indlet.store import Store

Make = Callable[..., Stored]
Texts = dict[int, list[str]]
WORDS = ("a", "b", "acid", "日本")
text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9)
texts = st.dictionaries(st.integers(1, 12), text, max_size=10)


def counted(tokens: Sequence[str]) -> dict[str, int]:
    return {word: tokens.count(word) for word in sorted(set(tokens))}


def weight(frequency: int, length: int, average: float) -> float:
    return frequency / (frequency + 1.2 * (0.25 + 0.75 * length / average))


def thresholds(known: Texts, pruning: Pruning) -> tuple[dict[str, float], float]:
    """ε times the k-th best weight of each word that more than k texts have."""
    average = sum(map(len, known.values())) / len(known) if known else 1.0
    least = {}
    for word in WORDS:
        found = sorted(weight(t.count(word), len(t), average) for t in known.values() if word in t)[::-1]
        if len(found) > pruning.best:
            least[word] = pruning.share * found[pruning.best - 1]
    return least, average


def kept(known: Texts, least: Mapping[str, float], average: float) -> dict[int, dict[str, int]]:
    return {
        id: {
            word: frequency
            for word, frequency in counted(tokens).items()
            if weight(frequency, len(tokens), average) >= least.get(word, 0.0)
        }
        for id, tokens in known.items()
    }


def change(record: Make, id: int, seq: int, tokens: Sequence[str]) -> Stored:
    places = {word: [i for i, token in enumerate(tokens) if token == word] for word in tokens}
    made = record(id, seq, None, places=places, fields={f"\x1ft{word}": 1 for word in set(tokens)})
    return made if id % 3 else made._replace(positions=None)


def same_as_plain(engine: Engine, known: Texts, left: dict[int, dict[str, int]]) -> None:
    """Statistics, scores and phrases are those of what is kept; lengths, norms and fields the true ones."""
    searcher = engine.searcher()
    assert searcher.collection.documents == len(known)
    assert searcher.collection.length == sum(map(len, known.values()))
    found = {name.decode(): (df, cf) for name, df, cf in searcher.vocabulary()}
    for word in WORDS:
        df = sum(word in document for document in left.values())
        cf = sum(document.get(word, 0) for document in left.values())
        assert found.get(word, (0, 0)) == (df, cf)
        assert found.get(f"\x1ft{word}", (0, 0))[0] == sum(word in tokens for tokens in known.values())
    terms = canonical([QueryTerm(word.encode(), 1.0, *found.get(word, (0, 0))) for word in WORDS])
    for model in (make() for make in MODELS.values()):
        expected = {}
        for id, document in left.items():
            frequencies = [document.get(term.term.decode(), 0) for term in terms]
            if any(frequencies):
                whole = counted(known[id])
                norm = math.sqrt(sum((1.0 + math.log(f)) ** 2 for f in whole.values()))
                about = DocumentStatistics(len(known[id]), norm)
                expected[id] = score(model, terms, frequencies, about, searcher.collection)
        hits = searcher.search(Or(tuple(map(Term, WORDS))), model, limit=99).hits
        assert {hit.id: hit.score for hit in hits} == pytest.approx(expected, rel=1e-12)
    phrase = searcher.search(Phrase(("a", "b"), (0, 1)), limit=99)
    assert {hit.id for hit in phrase.hits} == {
        id
        for id, document in left.items()
        if {"a", "b"} <= set(document) and (id % 3 == 0 or "a b" in " ".join(known[id]))
    }


@given(
    first=texts,
    then=st.lists(st.dictionaries(st.integers(1, 12), st.none() | text, max_size=5), max_size=3),
    share=st.sampled_from([0.3, 0.7, 1.0]),
    best=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_what_an_index_keeps(
    first: Texts, then: list[dict[int, list[str] | None]], share: float, best: int, record: Make
) -> None:
    pruning = Pruning(share, best)
    known = dict(first)
    with tempfile.TemporaryDirectory() as folder:
        with Engine.open(folder, writable=True, anew=True, pruning=pruning) as engine:
            # The first record is written once more: its stale version counts for no threshold.
            again = [*first.items(), *list(first.items())[:1]]
            for seq, (id, tokens) in enumerate(again, 1):
                engine.apply([change(record, id, seq, tokens[::-1] if seq == 1 < len(again) else tokens)])
            engine.commit(len(again))
            least, average = thresholds(first, pruning)
            same_as_plain(engine, known, kept(known, least, average))
        with Engine.open(folder, writable=True) as engine:
            seq = len(first) + 1
            for batch in then:
                for id, tokens_or_none in batch.items():
                    seq += 1
                    if tokens_or_none is None:
                        known.pop(id, None)
                        engine.apply([record(id, seq, None)])
                    else:
                        known[id] = tokens_or_none
                        engine.apply([change(record, id, seq, tokens_or_none)])
                engine.commit()
                same_as_plain(engine, known, kept(known, least, average))
            engine.merge(everything=True)
            same_as_plain(engine, known, kept(known, least, average))
            engine.verify()


def filled(folder: Path) -> None:
    with Store.open(folder) as store, store.write() as tx:
        origin = tx.origin("source", "texts")
        tx.put(
            origin,
            [
                Record(
                    f"oai:x.org:{n}",
                    {"title": ["Wing theory"]},
                    TermVector.of({"wing": n, f"only{n}": 20 - n}),
                )
                for n in range(1, 20)
            ],
        )


def test_the_setting_prunes_says_so_and_is_taken_back(tmp_path: Path) -> None:
    filled(tmp_path)
    with Library.open(tmp_path, Settings()) as library:
        whole = library.stats()["index"]
        assert library.search("wing").total == 19 and whole["loss"] == ""
    pruned = Settings(index=IndexEngine(prune=0.9, prune_best=3))
    with Library.open(tmp_path, pruned) as library:
        result = library.search("wing")
        assert 3 <= result.total < 19
        assert "pruned by term" in library.stats()["index"]["loss"]
        assert [note for note in result.notes if "pruned by term" in note]
        assert library.search("title:wing").total == 19
        assert library.search("only19").total == 1
        assert library.stats()["index"]["postings"] < whole["postings"]
    with Library.open(tmp_path, Settings()) as library:
        assert library.stats()["index"] | {"bytes": 0, "bytes_per_posting": 0} == whole | {
            "bytes": 0,
            "bytes_per_posting": 0,
        }


def test_an_index_that_began_empty_says_that_it_is_not_pruned_yet(tmp_path: Path) -> None:
    pruned = Settings(index=IndexEngine(prune=0.9, prune_best=3))
    with Library.open(tmp_path, pruned) as library:
        library.search("wing")
        filled(tmp_path)
        follow.catch_up(library.store, engine=library.settings.index)
        assert "indlet reindex" in index_of(library.store, library.settings.index).searcher().loss
        follow.rebuild(library.store, engine=library.settings.index)
        searcher = index_of(library.store, library.settings.index).searcher()
        assert "pruned by term" in searcher.loss
        assert searcher.search(Term("wing")).total < 19


@pytest.mark.parametrize(
    "said",
    [
        "prune = 1.5",
        "prune = 0.5\nprune_best = 0",
        "prune = -1",
        'prune = 0.5\n[[hierarchy]]\nroot = "papers"\naccess.tokens = ["secret"]',
    ],
)
def test_impossible_settings_are_refused(said: str, tmp_path: Path) -> None:
    (tmp_path / "indlet.toml").write_text(f"[index]\n{said}\n")
    with pytest.raises(SettingsError, match=r"index\.prune"):
        load(tmp_path / "indlet.toml")
