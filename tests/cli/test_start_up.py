"""Commands import what they use: the start of the process is most of the time that a search takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import indlet

HEAVY = {
    "asyncio", "cronsim", "email", "http", "httpx", "importlib.resources", "jinja2", "lxml", "numpy",
    "rapidfuzz", "starlette", "tomllib", "uvicorn",
    "indlet.provider", "indlet.service.harvest.run_state", "indlet.web",
}  # fmt: skip


@pytest.mark.parametrize(
    "arguments", [["--help"], ["search", "wing"], ["search", "--facets", "title:flügel"]]
)
def test_a_command_imports_only_what_it_uses(arguments: list[str], tmp_path: Path) -> None:
    with indlet.open_store(tmp_path / "data").write() as tx:
        tx.put(
            tx.origin("source", "a"), [indlet.Record("oai:a:1", metadata={"title": ["A wing", "Ein Flügel"]})]
        )
    given = [] if arguments == ["--help"] else ["--data", str(tmp_path / "data")]
    code = (
        "import atexit, sys; from indlet.cli import main\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, *given], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert ("oai:a:1" if given else "Usage") in done.stdout
    assert HEAVY & set(done.stderr.split()) == set()
