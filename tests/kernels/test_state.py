"""Nobody waits for a compiler, and processes that compile keep each other's work."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import numpy as np
import pytest

from indlet.kernels import state
from indlet.kernels.scan import starts

PAGE = """
import sys, time
from indlet.kernels import state
from indlet.service.records.page import read_page
from tests_page import BODY
page = read_page(BODY, kernels=True)
print(len(page.items), "llvmlite" in sys.modules, page.items[0].source is not None)
"""
BODY = b"""<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-01-01T00:00:00Z</responseDate>
<ListRecords><record><header><identifier>oai:x:1</identifier><datestamp>2026-01-01</datestamp></header>
<metadata><dc><title>Wing</title></dc></metadata></record></ListRecords></OAI-PMH>"""


def fresh(tmp_path: Path) -> dict[str, str]:
    """The environment of an installation on which nothing has been compiled."""
    (tmp_path / "tests_page.py").write_text(f"BODY = {BODY!r}", encoding="utf-8")
    return {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}


def read(environment: dict[str, str]) -> list[str]:
    told = subprocess.run(
        [sys.executable, "-c", PAGE], env=environment, capture_output=True, text=True, check=True
    )
    return told.stdout.split()


def test_a_page_is_read_at_once_and_by_kernels_once_they_are_compiled_aside(tmp_path: Path) -> None:
    environment = fresh(tmp_path)
    compiled, place = state.folder(), tmp_path / "cache"
    # Those that read pages are missing, and none that takes a minute to compile, nor what is being written.
    if compiled is not None:
        left_out = ignore_patterns("complete", ".*", "*-*.*", "scan.*", "utf8.*")
        copytree(compiled, place / compiled.name, ignore=left_out)
    assert read(environment) == ["1", "False", "False"]
    until = time.monotonic() + 600
    while not list(place.glob("kernels-*/complete")):
        assert time.monotonic() < until, "the kernels were not compiled aside"
        time.sleep(0.2)
    assert read(environment) == ["1", "True", "True"]


COMPILE = """
import sys, numpy as np
from indlet.kernels.scan import starts
from indlet.kernels.state import compile_here
compile_here()
kind = np.dtype(sys.argv[1])
assert starts(np.zeros(4, kind), 0, np.zeros(2, kind))
print(int("numba" in sys.modules))
"""


def test_processes_that_compile_at_once_keep_each_others_work(tmp_path: Path) -> None:
    kinds = ("int64", "uint64", "int32", "uint32")
    command = [sys.executable, "-c", COMPILE]
    environment = fresh(tmp_path)
    running = [subprocess.Popen([*command, kind], env=environment) for kind in kinds]
    assert [process.wait() for process in running] == [0] * len(kinds)
    for kind in kinds:
        told = subprocess.run([*command, kind], env=environment, capture_output=True, text=True, check=True)
        assert told.stdout.split() == ["0"]


def test_machine_code_that_was_not_written_in_full_is_made_again(tmp_path: Path) -> None:
    environment = fresh(tmp_path)
    command = [sys.executable, "-c", COMPILE, "int64"]
    subprocess.run(command, env=environment, check=True)
    (kept,) = (tmp_path / "cache").glob("kernels-*/scan.starts-*")
    whole = kept.read_bytes()
    for torn in (whole[:100], whole[:-1] + bytes([whole[-1] ^ 1])):
        kept.write_bytes(torn)
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert told.stdout.split() == ["1"]
        assert len(kept.read_bytes()) == len(whole)


def test_arguments_of_other_types_have_other_machine_code() -> None:
    numbers = np.arange(6, dtype=np.int64)
    texts: list[Any] = [
        numbers,
        numbers.astype(np.uint8),
        np.repeat(numbers, 2)[::2],
        numbers.astype(np.float64),
    ]
    for text in texts:
        assert starts(text, 1, text[1:3])
        assert not starts(text, 0, text[1:3])
    with pytest.raises(NotImplementedError):
        starts(texts[0], "one", texts[0])  # type: ignore[arg-type]


def test_one_at_a_time(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    with state.alone(place) as mine, state.alone(place, wait=False) as second:
        assert (mine, second) == (True, False)
    with state.alone(place, wait=False) as free:
        assert free


def test_where_nothing_can_be_kept_kernels_are_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert state.folder() is None
    assert state.ready()
    state.mark_ready()


def test_all_kernels_are_compiled_ahead() -> None:
    code = """
import importlib, pkgutil, re
from pathlib import Path
from indlet import kernels
from indlet.kernels.jit import Kernel
from indlet.service.index.embedded.warming import warm
warm()
text = "".join(path.read_text() for path in Path(kernels.__file__).parent.glob("*.py"))
for module in pkgutil.iter_modules(kernels.__path__):
    for name, value in vars(importlib.import_module(f"indlet.kernels.{module.name}")).items():
        if isinstance(value, Kernel) and not value._linked:
            if not re.search(rf"(?<!def )\\b{name}\\(", text):  # no other kernel has it as a part
                print(module.name, name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
