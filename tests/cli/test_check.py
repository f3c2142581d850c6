"""indlet check: what it finds on a good node, and each thing that can be wrong with one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.hostile.misbehaving import Provider

from indlet.cli import cli
from indlet.model import Record
from indlet.service.index import follow
from indlet.store import Store


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Path]:
    """A settings file with a source that answers, and a store with an index."""
    with Provider(None) as provider:
        (tmp_path / "papers").mkdir()
        path = tmp_path / "indlet.toml"
        path.write_text(
            f'data = "data"\n[[hierarchy]]\nroot = "papers"\n[[source]]\nurl = "{provider.url}"\n'
            'name = "good"\ntoken = "hush"\n'
        )
        path.chmod(0o600)
        with Store.open(tmp_path / "data") as store:
            with store.write() as tx:
                tx.put(tx.origin("source", "good"), [Record("oai:x:1", {"title": ["Wing"]})])
            follow.catch_up(store)
        yield path


def check(path: Path, *options: str) -> tuple[int, dict[tuple[str, str], tuple[str, str]]]:
    done = CliRunner().invoke(cli, ["check", "--config", str(path), "--json", *options])
    assert "hush" not in done.output
    found: list[dict[str, Any]] = json.loads(done.output)
    return done.exit_code, {(f["area"], Path(f["subject"]).name): (f["status"], f["message"]) for f in found}


def test_a_good_node_has_no_problem(node: Path) -> None:
    status, found = check(node)
    assert status == 0 and {told for told, _ in found.values()} <= {"ok", "warning"}
    assert found["store", "store.sqlite"][1].startswith("whole, 1 record, ")
    assert found["index", "index"] == ("ok", "holds 1 record")
    assert found["source", "good"][0] == "ok" and found["folder", "papers"][0] == "ok"
    said = CliRunner().invoke(cli, ["check", "--config", str(node), "--offline"]).output
    assert "ok       store" in said and " source " not in said


def test_a_data_folder_that_is_not_there_is_not_called_ok(node: Path) -> None:
    node.write_text(node.read_text().replace('data = "data"', 'data = "elsewhere"'))
    status, found = check(node, "--offline")
    assert status == 1 and found["rights", "elsewhere"][0] == "warning"
    assert "is not there" in found["rights", "elsewhere"][1]
    assert found["store", "elsewhere"][0] == "problem"


def test_what_is_wrong_is_told(node: Path) -> None:
    node.chmod(0o644)
    node.write_text(
        node.read_text().replace("papers", "gone")
        + 'every = "1h"\n[[source]]\nurl = "http://127.0.0.1:9/oai"\nname = "dead"\n'
        + '[node]\nbase_url = "http://search.example.org"\n[admin]\npublic = true\n'
    )
    with Store.open(node.parent / "data") as store, store.write() as tx:
        origin = tx.origin("source", "good")
        tx.put(origin, [Record("oai:x:2", {"title": ["Wind"]})])
        tx.note_run(tx.start_run(origin, "harvest"), {"reason": "no answer"}, "failed")
    (node.parent / "data").chmod(0o755)
    status, found = check(node)
    assert status == 1
    assert found["folder", "gone"][0] == "problem"
    assert found["source", "dead"][0] == "problem" and "127.0.0.1:9" in found["source", "dead"][1]
    assert found["index", "index"] == ("warning", "1 change behind; a running node catches up")
    assert "chmod 600" in found["settings", "indlet.toml"][1]
    assert found["rights", "data"][0] == "warning"
    assert found["settings", "node.base_url"][0] == found["settings", "admin.public"][0] == "warning"


@pytest.mark.parametrize("what", ["settings", "store", "no store", "index"])
def test_what_is_broken_is_a_problem(node: Path, what: str) -> None:
    data = node.parent / "data"
    if what == "settings":
        node.write_text("data = ")
    elif what == "store":
        raw = bytearray((data / "store.sqlite").read_bytes())
        raw[32768 * 2 : 32768 * 3] = b"\xff" * 32768
        (data / "store.sqlite").write_bytes(raw)
    elif what == "no store":
        shutil.rmtree(data)
    else:
        for file in (data / "index").iterdir():
            if file.is_file():
                file.write_bytes(b"x" * 100)
    status, found = check(node, "--offline")
    assert status == 1
    area = what.removeprefix("no ")
    problems = [(key, message) for key, (told, message) in found.items() if told == "problem"]
    assert any(key[0] == area for key, _ in problems), found
    assert not [message for (_, subject), message in problems if message.startswith(subject)]


def test_last_runs_that_failed_are_told_without_asking(node: Path) -> None:
    with Store.open(node.parent / "data") as store, store.write() as tx:
        tx.note_run(tx.start_run(tx.origin("source", "good"), "harvest"), {"reason": "no answer"}, "failed")
    status, found = check(node, "--offline")
    assert status == 0 and found["source", "good"] == ("warning", "its last run failed: no answer")


def test_formats_tables_and_folders_of_catalogues_are_looked_at(node: Path) -> None:
    before = node.read_text()
    (node.parent / "export").mkdir()
    (node.parent / "import").mkdir()
    library, write = '[[library]]\nname = "larc"\nread = "export"\n', '[[write]]\nfolder = "import"\n'
    node.write_text(before + library + write)
    status, found = check(node, "--offline")
    assert status == 0
    assert found["format", "library larc"][0] == found["format", "import"][0] == "ok"
    assert found["folder", "import"] == ("ok", "can be written")
    for wrong, where in (
        (f'{library}format = "marc42"\n', ("format", "library larc")),
        (f'{library}mapping = "none.tsv"\n', ("format", "library larc")),
        (f'{write}format = "table:none.tsv"\n', ("format", "import")),
        (f'{write}mapping = "none.tsv"\n', ("format", "import")),
        (f'{write}subjects = ["none.tsv"]\n', ("format", "import")),
        ('[[write]]\nfolder = "nowhere"\n', ("folder", "nowhere")),
    ):
        node.write_text(before + wrong)
        status, found = check(node, "--offline")
        assert status == 1 and found.get(where, ("", ""))[0] == "problem", (wrong, found)
    node.write_text(before + f'{write}from = ["lost"]\n')
    status, found = check(node, "--offline")
    assert status == 0 and found["settings", "import"][0] == "warning"
