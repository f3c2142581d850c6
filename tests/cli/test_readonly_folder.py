"""A data folder that one may read and not write: an exhibition copy, a snapshot, another user's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from indlet.model import Record, TermVector
from indlet.service.index import follow
from indlet.store import Store

# The system's own administrator may write everywhere, unless that right is given up.
BOUND = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
pytestmark = pytest.mark.skipif(
    bool(BOUND) and shutil.which("setpriv") is None, reason="root without setpriv cannot be kept from writing"
)


def put(store: Store, *words: str) -> None:
    vectors = {word: TermVector.of({word: 1, "salt": 2}, language="en") for word in words}
    with store.write() as tx:
        origin = tx.origin("source", "s")
        tx.put(origin, [Record(f"oai:s:{w}", {"title": [w]}, vector) for w, vector in vectors.items()])


def rights(folder: Path, allowed: bool) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod((0o755 if path.is_dir() else 0o644) if allowed else (0o555 if path.is_dir() else 0o444))


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    with Store.open(folder) as store:
        put(store, "harbour", "orchard")
        follow.catch_up(store)
    yield folder
    rights(folder, True)


def indlet(folder: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [*BOUND, sys.executable, "-m", "indlet", command, "--data", str(folder), *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_it_can_be_searched_and_listed(data: Path) -> None:
    rights(data, False)
    files = {path.name for path in data.rglob("*")}
    found = json.loads(indlet(data, "search", "--json", "harbour").stdout)
    assert (found["total"], found["notes"]) == (1, [])
    assert json.loads(indlet(data, "stats", "--json").stdout)["index"]["records"] == 2
    assert len(indlet(data, "records", "--jsonl").stdout.splitlines()) == 2
    done = indlet(data, "reindex")
    assert (done.returncode, "Permission denied" in done.stderr) == (1, True)
    assert {path.name for path in data.rglob("*")} == files


def test_an_index_that_is_behind_says_so(data: Path) -> None:
    with Store.open(data) as store:
        put(store, "barrel")
        # The writer's journal holds the change: who may only read sees it beside the writer.
        rights(data, False)
        assert "barrel" in indlet(data, "records").stdout
        found = json.loads(indlet(data, "search", "--json", "salt").stdout)
        assert found["total"] == 2
        assert "could not be brought up to date" in found["notes"][0]


def test_changes_that_only_a_writer_can_bring_in_are_not_passed_over(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with Store.open(data) as store:
        put(store, "barrel")
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*-shm"))
    rights(copy, False)
    done = indlet(copy, "records")
    rights(copy, True)
    assert done.returncode == 1
    assert "store.sqlite-wal" in done.stderr


READS = """
    import sys
    from indlet.errors import StoreError
    from indlet.store import Store

    with Store.open(sys.argv[1], create=False) as store:
        try:
            with store.read() as view:
                print(view.last_seq(), flush=True)
                sys.stdin.readline()
        except StoreError as e:
            print(e)
        with store.read() as view:
            print(view.last_seq())
        try:
            with store.write() as tx:
                pass
        except StoreError as e:
            print(e)
"""


def test_a_store_that_was_written_while_it_was_read_is_not_trusted(data: Path, tmp_path: Path) -> None:
    script = tmp_path / "reads.py"
    script.write_text(textwrap.dedent(READS))
    rights(data, False)
    with subprocess.Popen(
        [*BOUND, sys.executable, str(script), str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "2\n"
        rights(data, True)
        with Store.open(data) as store:
            put(store, "barrel")
        out, _ = child.communicate("go on\n", timeout=60)
    told, then, refused = out.splitlines()
    assert told.endswith("was written while it was being read; try again")
    assert then == "3"
    assert "may not be written" in refused
