"""Decisions about pairs: kept with the store, reversible, listed by the command."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.stores import command_options, store_in

from indlet.cli import cli
from indlet.errors import SettingsError, UnknownRecord
from indlet.exchange.duplicates.decisions import PairDecision, current, decide, decisions
from indlet.model import Record, TermVector

A, B, C = "oai:larc.example:7", "oai:lanl.example:1", "oai:lanl.example:2"
BOOKS = {
    "larc": [(A, "Flutter of swept wings at transonic speed", "Garrick, Isadore", "1957")],
    "lanl": [
        (B, "FLUTTER OF SWEPT WINGS AT TRANSONIC SPEED / by I. Garrick", "I. Garrick", "c1957"),
        (C, "Soil chemistry of the high plateau", "Ng, Amy", "1988"),
    ],
}
NOON = datetime(2020, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    text = TermVector.of({f"term{n}": 1 for n in range(100)})
    with store_in(folder) as store, store.write() as tx:
        for name, books in BOOKS.items():
            tx.put(
                tx.origin("source", name),
                [
                    Record(own, {"title": [title], "creator": [author], "date": [year]}, text)
                    for own, title, author, year in books
                ],
            )
    return folder


def run(data: Path, *arguments: str) -> str:
    done = CliRunner().invoke(cli, ["duplicates", *command_options(data), *arguments])
    if done.exception:
        raise done.exception
    return done.output


def listed(data: Path, *arguments: str) -> list[tuple[set[str], str | None]]:
    lines = [json.loads(line) for line in run(data, "--jsonl", *arguments).splitlines()]
    return [({one["id"] for one in line["records"]}, line["decision"]) for line in lines]


def test_pairs_are_shown_side_by_side(data: Path) -> None:
    (line,) = map(json.loads, run(data, "--jsonl").splitlines())
    assert line["score"] > 0.8
    assert "same title" in line["why"]
    assert line["records"] == [
        {
            "id": own, "source": source, "title": title, "authors": [author], "year": year, "identifiers": [],
        }
        for source in ("lanl", "larc")
        for own, title, author, year in BOOKS[source][:1]
    ]  # fmt: skip
    shown = run(data)
    assert f"{A}   (larc)" in shown
    assert f"{B}   (lanl)" in shown
    assert "same title" in shown
    assert run(data, "--least", "1") == "no possible duplicates\n"


def test_what_was_decided_is_not_shown_again_until_it_is_taken_back(data: Path) -> None:
    assert listed(data) == [({A, B}, None)]
    for decision in ("same", "different", "later"):
        run(data, "--decide", decision, A, B, "--by", "Ruth")
        assert listed(data) == []
        assert listed(data, "--all") == [({A, B}, decision)]
    assert "later, 20" in run(data, "--all")
    assert "Ruth" in run(data, "--all")
    run(data, "--decide", "open", B, A)
    assert listed(data) == [({A, B}, None)]


def test_decisions_keep_their_history_and_change_no_record(data: Path) -> None:
    with store_in(data) as store:
        with store.read() as view:
            before = list(view.changes())
        decide(store, A, B, "same", by="Ruth", now=NOON)
        decide(store, B, A, "different", now=NOON)
        decide(store, A, C, "later", now=NOON)
        made = decisions(store)
        with store.read() as view:
            assert list(view.changes()) == before
    assert made[B, A] == [
        PairDecision("same", "2020-01-02T12:00:00Z", "Ruth"),
        PairDecision("different", "2020-01-02T12:00:00Z"),
    ]
    assert current(made, A, B) == current(made, B, A) == made[B, A][-1]
    assert current(made, B, C) is None


def test_a_wrong_decision_is_refused(data: Path) -> None:
    with store_in(data) as store:
        with pytest.raises(SettingsError, match="no decision"):
            decide(store, A, B, "delete")
        with pytest.raises(SettingsError, match="itself"):
            decide(store, A, A, "same")
        with pytest.raises(UnknownRecord, match="oai:x:9"):
            decide(store, A, "oai:x:9", "same")
        assert decisions(store) == {}
    for wrong in ([A, B], ["--decide", "same", A], ["--decide", "merge", A, B]):
        done = CliRunner().invoke(cli, ["duplicates", *command_options(data), *wrong])
        assert done.exit_code == 2
