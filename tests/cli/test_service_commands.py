"""search, stats, reindex and evaluate, as they are called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indlet.cli import main
from indlet.model import Record
from indlet.service.search.library import Library
from indlet.service.search.rank import MODELS
from indlet.store import Store
from indlet.text import Analyzer, Policy

TEXTS = {
    "1": "experimental study of a wing in a propeller slipstream",
    "2": "simple shear flow past a flat plate in an incompressible fluid",
    "3": "boundary layer in simple shear flow past a flat plate",
    "4": "flutter of a wing at supersonic speed",
}

Indlet = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    analyzer = Analyzer(Policy())
    with Store.open(folder) as store, store.write() as tx:
        records = []
        for number, text in TEXTS.items():
            metadata = {"title": [text.title() + "\x1b[31m"], "date": [f"195{number}"]}
            records.append(Record(f"oai:t:{number}", metadata, analyzer.vector(text, "en")))
        tx.put(tx.origin("source", "tunnel"), records)
    return folder


@pytest.fixture
def indlet(capsys: pytest.CaptureFixture[str]) -> Indlet:
    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            status = main([str(argument) for argument in arguments]) or 0
        except SystemExit as e:
            status = int(e.code or 0)
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def answered(indlet: Indlet, *arguments: object) -> Any:
    status, out, _ = indlet(*arguments)
    assert status == 0
    return json.loads(out)


def test_search_as_json(indlet: Indlet, data: Path) -> None:
    answer = answered(indlet, "search", "--data", data, "--json", "flow", "past", "plate")
    assert answer["total"] == 2
    with Library.open(data) as library:
        expected = [(hit.identifier, hit.score) for hit in library.search("flow past plate")]
    assert [(hit["identifier"], hit["score"]) for hit in answer["hits"]] == expected
    hit = answer["hits"][0]
    assert hit["source"] == "tunnel"
    assert hit["metadata"]["date"] == ["1952"] or hit["metadata"]["date"] == ["1953"]


def test_search_for_people_is_safe_to_print(indlet: Indlet, data: Path) -> None:
    status, out, _ = indlet("search", "--data", data, "--facets", "--explain", "wing")
    assert status == 0
    assert "\x1b" not in out
    assert "2 records, 1–2 · bm25" in out
    assert "Flutter Of A Wing At Supersonic Speed" in out
    assert "score" in out
    assert "year  1951 1, 1954 1" in out


def test_model_parameters_sort_and_pages(indlet: Indlet, data: Path) -> None:
    options = ("--model", "lm-dirichlet", "--param", "mu=10", "--sort", "oldest", "--limit", 1, "--offset", 1)
    answer = answered(indlet, "search", "--data", data, "--json", *options, "wing")
    assert answer["parameters"] == {"mu": 10.0}
    assert [hit["identifier"] for hit in answer["hits"]] == ["oai:t:4"]


def test_explanations_as_json(indlet: Indlet, data: Path) -> None:
    answer = answered(indlet, "search", "--data", data, "--json", "--explain", "wing")
    for hit in answer["hits"]:
        assert hit["explanation"]["score"] == hit["score"]


def test_a_trec_run(indlet: Indlet, data: Path, tmp_path: Path) -> None:
    status, out, _ = indlet("search", "--data", data, "--trec", "run1", "--qid", "7", "shear flow")
    assert status == 0
    rows = [line.split() for line in out.splitlines()]
    assert [row[:4] + row[5:] for row in rows] == [
        ["7", "Q0", row[2], str(place), "run1"] for place, row in enumerate(rows, 1)
    ]
    assert {row[2] for row in rows} == {"oai:t:2", "oai:t:3"}
    topics = tmp_path / "topics.tsv"
    topics.write_text('a\twhat is a "wing (\nb\tshear AND\nc\tthe\n')
    status, out, _ = indlet("search", "--data", data, "--queries", topics, "--trec", "run2")
    assert status == 0
    assert {line.split()[0] for line in out.splitlines()} == {"a", "b"}
    status, out, _ = indlet("search", "--data", data, "--queries", topics, "--limit", 1)
    assert [len(json.loads(line)["hits"]) for line in out.splitlines()] == [1, 1, 0]


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["titel:wing"], 1, "did you mean title:?"),
        (["the", "of"], 1, "too common"),
        (["x" * 65], 1, "or too long"),
        (["--model", "magic", "wing"], 2, "choose one of bm25"),
        (["--param", "k1=-3", "wing"], 2, "at least 0"),
        (["--language", "xx", "wing"], 2, "ISO 639-1"),
        (["--offset", "99999999", "wing"], 2, "offset is"),
        (["--trec", "my run", "wing"], 2, "without spaces"),
        (["--trec", "run", "--qid", "", "wing"], 2, "without spaces"),
        (["--trec", "run", "--offset", "3", "wing"], 2, "--offset does not go with a run"),
        (["--trec", "run", "--sort", "newest", "wing"], 2, "--sort does not go with a run"),
        (["--trec", "run", "--facets", "wing"], 2, "--facets does not go with a run"),
        (["--json", "--trec", "x", "wing"], 2, "exclude each other"),
        ([], 2, "give a QUERY"),
        (["--limit", "-1", "wing"], 2, "--limit"),
        (["--queries", "/nowhere/topics", "--trec", "x"], 1, "cannot be read"),
    ],
)
def test_faults_are_said_in_a_line(
    indlet: Indlet, data: Path, arguments: list[str], status: int, says: str
) -> None:
    found, out, err = indlet("search", "--data", data, *arguments)
    assert found == status
    assert says in err
    assert "Traceback" not in err
    assert out == ""


def pointed_at(err: str) -> tuple[str, int]:
    """The line of the query, and the column of the caret below it."""
    _, shown, caret = err.rstrip("\n").split("\n")
    assert caret.strip() == "^"
    return shown, len(caret) - 1


def test_a_fault_is_pointed_at_where_a_terminal_shows_it(indlet: Indlet, data: Path) -> None:
    shown, column = pointed_at(indlet("search", "--data", data, "wing AND (")[2])
    assert shown[column:] == "("
    # Characters of two columns, and marks that take none.
    assert pointed_at(indlet("search", "--data", data, "情報 (")[2]) == ("  情報 (", 2 + 5)
    assert pointed_at(indlet("search", "--data", data, "e\u0301t\u0308 (")[2])[1] == 2 + 3


def test_of_a_long_query_only_the_place_of_the_fault_is_shown(indlet: Indlet, data: Path) -> None:
    shown, column = pointed_at(indlet("search", "--data", data, "flow " * 200 + "(wing " + "x " * 200)[2])
    assert shown[column:].startswith("(wing x x")
    assert len(shown) < 200
    assert "\x1b" not in indlet("search", "--data", data, "\x1b[31m" * 6000)[2]


def test_a_folder_without_a_store_is_said(indlet: Indlet, tmp_path: Path) -> None:
    for command in (["search", "wing"], ["stats"], ["reindex"]):
        status, _, err = indlet(command[0], "--data", tmp_path / "nothing", *command[1:])
        assert status == 1
        assert str(tmp_path / "nothing") in err
    assert not (tmp_path / "nothing").exists()


def test_suggestions_and_notes_go_beside_the_results(indlet: Indlet, data: Path) -> None:
    status, out, err = indlet("search", "--data", data, "fluter source:nowhere")
    assert status == 0
    assert "no record contains “fluter”" in err and "did you mean  flutter source:nowhere" in err
    assert "no source is called “nowhere”" in err
    assert out.startswith("0 records")


def test_a_settings_file_is_found(indlet: Indlet, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data.parent / "indlet.toml").write_text('data = "data"\n[search]\nmodel = "vsm"\nlimit = 1\n')
    monkeypatch.chdir(data.parent)
    answer = answered(indlet, "search", "--json", "wing")
    assert (answer["model"], len(answer["hits"])) == ("vsm", 1)


def test_stats(indlet: Indlet, data: Path) -> None:
    counted = answered(indlet, "stats", "--data", data, "--json")
    assert counted["store"]["records"] == counted["index"]["records"] == 4
    status, out, _ = indlet("stats", "--data", data)
    assert status == 0
    assert counted["index"]["fingerprint"] in out
    assert "source            tunnel: 4" in out


def test_reindex_changes_nothing(indlet: Indlet, data: Path) -> None:
    before = answered(indlet, "stats", "--data", data, "--json")["index"]["fingerprint"]
    status, out, _ = indlet("reindex", "--data", data)
    assert (status, out[:17]) == (0, "4 records indexed")
    assert answered(indlet, "stats", "--data", data, "--json")["index"]["fingerprint"] == before


def test_evaluate(indlet: Indlet, data: Path, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"id": "1", "text": "flutter"}\n{"id": "2", "text": "slipstream"}\n')
    (tmp_path / "qrels").write_text("1 0 4 1\n2 0 1 1\n2 0 9 1\n")
    files = ("--queries", tmp_path / "q.jsonl", "--qrels", tmp_path / "qrels")
    table = answered(indlet, "evaluate", "--data", data, *files, "--json", "--param", "k1=0.9")
    assert table["topics"] == 2
    assert [row["model"] for row in table["models"]] == [
        "bm25", "vsm", "lm-dirichlet", "lm-jm", "bm25-plus", "pl2",
    ]  # fmt: skip
    assert {row["MAP"] for row in table["models"]} == {0.75}
    status, out, _ = indlet("evaluate", "--data", data, *files, "--models", "bm25")
    assert status == 0
    assert out.splitlines()[-1].split() == ["bm25", "0.7500", "0.8066", "0.1000", "0.7500"]
    status, _, err = indlet("evaluate", "--data", data, *files, "--param", "mu=3", "--models", "bm25")
    assert (status, "parameter 'mu'" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--models", ","], 2, "names no model"),
        (["--models", "magic"], 2, "there is no model 'magic'"),
        (["--models", "bm25", "--param", "mu=5"], 2, "they take b, k1"),
        (["--models", "vsm", "--param", "mu=5"], 2, "they take none"),
        (["--models", "bm25", "--param", "b=5"], 2, "from 0 to 1"),
        (["--id-pattern", "("], 1, "no regular expression"),
        (["--id-pattern", "zzz"], 1, "no judged document"),
    ],
)
def test_evaluate_says_what_cannot_be_measured(
    indlet: Indlet, data: Path, tmp_path: Path, arguments: list[str], status: int, says: str
) -> None:
    topics, qrels = tmp_path / "topics.tsv", tmp_path / "qrels"
    topics.write_text("a\tshear flow\n")
    qrels.write_text("a 0 2 1\n")
    found, _, err = indlet("evaluate", "--data", data, "--queries", topics, "--qrels", qrels, *arguments)
    assert (found, says in err) == (status, True), err


def test_without_the_service_part_it_says_what_to_install(data: Path) -> None:
    code = "import sys; sys.modules['jinja2'] = None; from indlet.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", "--data", str(data), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "it imports jinja2" in done.stderr
    assert "pip install 'indlet[service]'" in done.stderr


def test_the_real_command_answers(data: Path) -> None:
    command = [sys.executable, "-m", "indlet", "search", "--data", str(data), "--json", "wing"]
    done = subprocess.run(command, capture_output=True, timeout=120, env=os.environ, check=True)
    assert json.loads(done.stdout)["total"] == 2
    assert done.stderr == b""


def test_help_names_every_model(indlet: Indlet) -> None:
    _, told, _ = indlet("search", "--help")
    assert [name for name in MODELS if name not in told] == []
