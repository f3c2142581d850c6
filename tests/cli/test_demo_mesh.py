"""The tour of four laboratories as people start it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pymarc


def test_what_changes_travels_round(tmp_path: Path) -> None:
    home = tmp_path / "mesh"
    done = subprocess.run(
        [sys.executable, "-m", "indlet", "demo", "--mesh", "--data", str(home)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = [line.split()[1] for line in done.stdout.splitlines() if line[1:2].isdigit()]
    assert steps == ["Share", "Add", "Update", "Delete", "Crash", "Return"]
    assert "All four hold the same 13 records" in done.stdout
    assert "\x1b" not in done.stdout  # plain when it is piped
    # LaRC's catalogue imports MARC, whatever the others speak.
    written = [path for path in (home / "larc" / "import").rglob("*") if path.is_file()]
    assert {path.parent.name for path in written} == {"lanl", "afrl", "sandia"} and len(written) == 9
    titles = set()
    for path in written:
        with path.open("rb") as file:
            titles |= {
                record.title.strip(" /.") for record in pymarc.MARCReader(file) if record and record.title
            }
    assert {"A relay that does not stick", "Shock waves in a bed of sand"} <= titles
    assert "Plumes at high altitude" not in titles
