"""indlet sources: the table, renaming and removing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.hostile.misbehaving import Provider

from indlet.cli import cli


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
