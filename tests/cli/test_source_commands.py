"""indlet sources: the table, renaming and removing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.hostile.misbehaving import Provider

from indlet.cli import cli
from indlet.settings import Settings
from indlet.settings.file import from_mapping


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as running:
        yield running


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)))


def test_a_source_is_renamed_with_its_records(tmp_path: Path, provider: Provider) -> None:
    assert run("harvest", provider.url, "--data", tmp_path, "--name", "one", "--quiet").exit_code == 0
    done = run("sources", "--data", tmp_path, "--rename", "one", "Technical  reports")
    assert done.exit_code == 0 and "is called Technical reports now, with its 43 records" in done.stdout
    again = run("harvest", "Technical reports", "--data", tmp_path)
    assert "Technical reports (oai_dc): 0 records" in again.stdout, again.output
    assert run("sources", "--data", tmp_path, "--rename", "one", "two").exit_code == 1


def test_nothing_is_deleted_unless_somebody_says_so(tmp_path: Path, provider: Provider) -> None:
    assert run("harvest", provider.url, "--data", tmp_path, "--name", "one", "--quiet").exit_code == 0
    unsure = run("sources", "--data", tmp_path, "--remove", "one")
    assert unsure.exit_code == 2 and "deletes 43 records" in " ".join(unsure.output.split())
    kept = run("sources", "--data", tmp_path, "--remove", "one", "--records", "keep")
    assert kept.stdout == "one: removed, 43 records kept\n"
    assert "43 records" in run("search", "--data", tmp_path, "flutter").stdout
    assert run("harvest", provider.url, "--data", tmp_path, "--quiet").exit_code == 0
    gone = run("sources", "--data", tmp_path, "--remove", "one", "--records", "delete")
    assert gone.stdout == "one: removed, 43 records deleted\n", gone.output
    assert "0 records" in run("search", "--data", tmp_path, "flutter").stdout


def test_the_table_fits_eighty_columns(tmp_path: Path, provider: Provider) -> None:
    name = "A repository whose name is much longer than any table of eighty columns can hold"
    assert run("harvest", provider.url, "--data", tmp_path, "--name", name, "--quiet").exit_code == 0
    run("harvest", "http://127.0.0.1:9/oai", "--data", tmp_path, "--quiet")
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-c",
        "from indlet.cli import main; main()",
        "sources",
        "--data",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stdout=theirs, env={**os.environ, "COLUMNS": "80"}) as child:
        child.wait(60)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    lines = [line for line in shown.replace("\r", "").split("\n") if line]
    assert max(map(len, lines)) <= 80 and len(lines) >= 3, shown
    assert lines[0].split() == ["source", "state", "records", "failures", "last", "run"]
    assert any(line.startswith("A repository") and " complete " in line and " 43 " in line for line in lines)
    assert any("failed" in line for line in lines)


def test_init_writes_fifteen_lines_and_all_the_rest(tmp_path: Path) -> None:
    short, whole = tmp_path / "short.toml", tmp_path / "whole.toml"
    assert run("init", short).exit_code == 0 and run("init", whole, "--all").exit_code == 0
    assert len(short.read_text().splitlines()) == 15 and len(whole.read_text().splitlines()) > 150
    assert from_mapping(tomllib.loads(short.read_text())) == Settings()
    rooted = tmp_path / "rooted.toml"
    assert run("init", rooted, "--root", tmp_path, "--password", "open sesame").exit_code == 0
    read = from_mapping(tomllib.loads(rooted.read_text()))
    assert [h.root for h in read.hierarchy] == [str(tmp_path)] and read.admin.password_hash
    changed = CliRunner().invoke(
        cli, ["password", "--config", str(short), "--password-file", "-"], input="x" * 12
    )
    assert changed.exit_code == 0 and from_mapping(tomllib.loads(short.read_text())).admin.password_hash


def test_search_suggests_a_correction(tmp_path: Path, provider: Provider) -> None:
    assert run("harvest", provider.url, "--data", tmp_path, "--quiet").exit_code == 0
    found = run("search", "--data", tmp_path, "fluter", "wing")
    assert "no record contains “fluter”" in found.stderr and "did you mean  flutter wing" in found.stderr
