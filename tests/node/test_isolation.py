"""Code that lies in the working directory never runs, and a child ends when it should."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from indlet import process
from indlet.node import children

TRAP = "import pathlib\npathlib.Path({marker!r}).touch()\nraise SystemExit('a trap')\n"


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Path, Path]:
    """A folder whose files would like to be imported, and the file that shows if one was."""
    folder, marker = tmp_path / "files", tmp_path / "ran"
    (folder / "indlet").mkdir(parents=True)
    code = TRAP.format(marker=str(marker))
    for name in ("orjson.py", "json.py", "numpy.py", "sitecustomize.py", "usercustomize.py"):
        (folder / name).write_text(code)
    (folder / "indlet" / "__init__.py").write_text(code)
    return folder, marker


def test_a_node_in_a_hostile_folder_crawls_indexes_and_answers(
    trap: tuple[Path, Path], tmp_path: Path
) -> None:
    """More than 300 documents: crawled by workers, indexed by a process of their own."""
    folder, marker = trap
    for number in range(320):
        (folder / f"note-{number}.txt").write_text(f"A note on quincunx, number {number}.")
    command = [sys.executable, "-P", "-m", "indlet", "provide", ".", "--portal", "--port", "0", "--data"]
    with subprocess.Popen(
        [*command, str(tmp_path / "data")], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as node:  # fmt: skip
        try:
            assert node.stdout is not None
            found = re.search(r"http://[\d.:]+", node.stdout.readline())
            assert found is not None
            end = time.monotonic() + 300
            while True:
                answer = httpx.get(f"{found[0]}/api/search", params={"q": "quincunx"}).json()
                if answer["total"] == 320:
                    break
                assert time.monotonic() < end and node.poll() is None, answer["total"]
                time.sleep(0.2)
        finally:
            node.terminate()
    assert not marker.exists()


@pytest.mark.parametrize("path", ["", ".", "..:.:", "files"])
def test_children_do_not_import_from_relative_folders(
    trap: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    folder, marker = trap
    monkeypatch.chdir(folder if path != "files" else folder.parent)
    monkeypatch.setenv("PYTHONPATH", path)
    child = process.start("indlet.service.index.indexer", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.communicate()  # no task: it ends
    assert child.returncode == 1 and not marker.exists()


def test_python_m_forgets_the_working_directory(trap: tuple[Path, Path]) -> None:
    folder, marker = trap
    (folder / "indlet" / "__init__.py").unlink()
    (folder / "indlet").rmdir()  # that one is what the command line asks for
    (folder / "sitecustomize.py").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "indlet", "failures", "--data", "none"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert "no indlet store here" in done.stderr and not marker.exists()


def test_secrets_are_not_in_a_childs_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDLET_TOKEN", "secret")
    monkeypatch.setenv("INDLET_ADMIN_PASSWORD_HASH", "secret")
    assert "secret" not in process.child_environment().values()


def test_a_parser_of_foreign_files_gets_no_passwords_of_databases_and_buckets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("PGPASSWORD", "PGPASSFILE", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "INDLET_MIRROR_USER")
    for name in names:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("TESSDATA_PREFIX", "/usr/share/tessdata")
    # A child that opens the store or a bucket needs them.
    assert process.child_environment()["PGPASSWORD"] == "secret"
    printed = process.run_program(["/usr/bin/env"], Path("/tmp"), 10.0).decode()
    assert "secret" not in printed and "TESSDATA_PREFIX=/usr/share/tessdata" in printed


STUBBORN = """
import signal, sys, time
from indlet import process
process.receive_task()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def stubborn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that does not hear SIGTERM."""
    (tmp_path / "stubborn_child.py").write_text(STUBBORN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "stubborn_child"


def test_a_child_that_does_not_hear_is_killed(stubborn: str) -> None:
    stop = threading.Event()
    status = children.run(stubborn, None, lambda line: stop.set(), stop, patience=0.2)
    assert status == -signal.SIGKILL


def test_a_child_has_so_much_time_and_no_more(stubborn: str) -> None:
    with pytest.raises(children.TookTooLong):
        children.run(stubborn, None, lambda line: None, seconds=1.0, patience=0.2)


def test_a_listener_that_fails_leaves_no_child_behind(stubborn: str) -> None:
    def hear(line: bytes) -> None:
        raise ValueError(line)

    with pytest.raises(ValueError, match="ready"):
        children.run(stubborn, None, hear)
    assert not [t for t in threading.enumerate() if t.name.startswith("watch-")]


GREEDY = """
import orjson
from indlet import process
from indlet.limits import CHILD_MEMORY_MB
from indlet.node import children
process.receive_task()
with children.ending():
    taken = bytearray((CHILD_MEMORY_MB + 1) << 20)
"""


def test_a_child_has_so_much_memory_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "greedy_child.py").write_text(GREEDY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said: list[bytes] = []
    assert children.run("greedy_child", None, said.append) == 1
    assert b"MB of memory would be needed" in b"".join(said)
