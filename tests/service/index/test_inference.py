"""Inferred subjects and types: found, marked, and never given out as a source's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from indlet.errors import SettingsError
from indlet.model import Record, TermVector
from indlet.service.search.library import Library
from indlet.settings import IndexEngine, Settings
from indlet.settings.file import load
from indlet.store import Store

BOTH = Settings(index=IndexEngine(infer=("subject", "type")))


def put(folder: Path, *records: Record) -> None:
    with Store.open(folder) as store, store.write() as tx:
        tx.put(tx.origin("source", "texts"), records)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty records of two subjects and types, and two that lack both."""
    taught = [
        Record(
            f"oai:x.org:{kind}{n}", {"title": [f"{kind} {n}"], "subject": [subject], "type": [type]}, vector
        )
        for kind, subject, type, terms in (
            ("w", "Aeronautics", "Text", {"wing": 3, "air": 1}),
            ("g", "Grain", "Dataset", {"wheat": 2, "bushel": 1}),
        )
        for n in range(10)
        for vector in (TermVector.of({**terms, f"{kind}{n}": 1}),)
    ]
    put(
        tmp_path,
        *taught,
        Record("oai:x.org:lacks", {"title": ["A wing"]}, TermVector.of({"wing": 2, "air": 2})),
        Record("oai:x.org:typed", {"title": ["Wheat"], "type": ["Sound"]}, TermVector.of({"wheat": 4})),
    )
    return tmp_path


def facet(library: Library, name: str) -> dict[str, int]:
    return dict(library.search("*", facets=(name,)).facets[name].values)


def test_nothing_is_inferred_unless_asked_for(folder: Path) -> None:
    with Library.open(folder, Settings()) as library:
        assert library.reindex().learned == {}
        assert library.inferred("oai:x.org:lacks") == {}
        assert facet(library, "inferred_subject") == {}


def test_what_records_lack_is_inferred_and_marked(folder: Path) -> None:
    with Library.open(folder, BOTH) as library:
        before = library.record("oai:x.org:lacks").to_json()
        told = library.reindex().learned
        assert told["subject"].records == 20 and told["subject"].values == 2
        assert (told["subject"].precision, told["subject"].recall) == (1.0, 1.0)
        assert library.inferred("oai:x.org:lacks") == {"subject": ["Aeronautics"], "type": ["Text"]}
        assert library.inferred("oai:x.org:typed") == {"subject": ["Grain"]}  # it says its type itself
        assert library.inferred("oai:x.org:w1") == {}
        # Facets count the two kinds apart, and filters take either.
        assert facet(library, "inferred_subject") == {"Aeronautics": 1, "Grain": 1}
        assert facet(library, "inferred_type") == {"Text": 1}
        assert facet(library, "subject") == {"Aeronautics": 10, "Grain": 10}
        assert facet(library, "type") == {"Text": 10, "Dataset": 10, "Sound": 1}
        found = library.search("*", filters={"inferred_subject": ["Grain"]})
        assert [hit.identifier for hit in found] == ["oai:x.org:typed"]
        # The words of an inferred subject find nothing, and the record is what it was.
        assert library.search("subject:aeronautics").total == 10
        assert library.record("oai:x.org:lacks").to_json() == before
    with Library.open(folder, BOTH) as library:
        put(folder, Record("oai:x.org:new", {"title": ["New"]}, TermVector.of({"bushel": 2, "wheat": 1})))
        assert facet(library, "inferred_subject") == {"Aeronautics": 1, "Grain": 2}
    with Library.open(folder, Settings()) as library:  # taken back
        assert facet(library, "inferred_subject") == {}


def test_restricted_records_teach_nothing(folder: Path) -> None:
    with Store.open(folder) as store, store.write() as tx:
        hidden = tx.origin("hierarchy", "secret", {"access": {"networks": ["10.0.0.0/8"]}})
        secret = [
            Record(f"oai:x.org:s{n}", {"subject": ["Secret"]}, TermVector.of({"wing": 9, "cipher": 9}))
            for n in range(20)
        ]
        tx.put(hidden, secret)
    with Library.open(folder, BOTH) as library:
        library.reindex()
        assert library.inferred("oai:x.org:lacks")["subject"] == ["Aeronautics"]
        assert set(facet(library, "inferred_subject")) == {"Aeronautics", "Grain"}


@pytest.fixture
def plugged() -> Iterator[ModuleType]:
    module = sys.modules["own_inference"] = ModuleType("own_inference")
    yield module
    del sys.modules["own_inference"]


def test_a_function_of_the_operators_infers_instead(folder: Path, plugged: ModuleType) -> None:
    def guess(metadata: dict[str, list[str]], frequencies: dict[str, int]) -> dict[str, list[str]]:
        if "wheat" in frequencies:
            raise ValueError("not this one")
        return {"subject": [metadata["title"][0].upper(), "x" * 500], "creator": ["nobody"]}

    plugged.guess = guess  # type: ignore[attr-defined]
    chosen = IndexEngine(infer=("subject",), infer_function="own_inference:guess")
    with Library.open(folder, Settings(index=chosen)) as library:
        assert library.inferred("oai:x.org:lacks") == {"subject": ["A WING", "x" * 200]}
        assert library.inferred("oai:x.org:typed") == {}
        assert facet(library, "inferred_subject")["A WING"] == 1
        assert facet(library, "creator") == {}


@pytest.mark.parametrize(
    "said", ['infer = ["title"]', 'infer_function = "a:b"', 'infer = ["type"]\ninfer_function = "a"']
)
def test_impossible_settings_are_refused(said: str, tmp_path: Path) -> None:
    (tmp_path / "indlet.toml").write_text(f"[index]\n{said}\n")
    with pytest.raises(SettingsError, match=r"index\.infer"):
        load(tmp_path / "indlet.toml")


def test_a_function_that_is_not_there_is_named(folder: Path) -> None:
    chosen = IndexEngine(infer=("subject",), infer_function="no_such_module:guess")
    with (
        Library.open(folder, Settings(index=chosen)) as library,
        pytest.raises(SettingsError, match="no_such"),
    ):
        library.inferred("oai:x.org:lacks")
