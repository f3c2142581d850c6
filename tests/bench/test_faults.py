"""A few seconds of `python -m bench.faults`: each fault of the machine, and what the laws say afterwards."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bench.faults import power, shim

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or not sys.platform.startswith("linux"), reason="needs Linux and a C compiler"
)
WRITER = """
import os, sys
from pathlib import Path
from bench.faults import shim
data, shadow, mode = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
shim.watch(data, shadow)
shim.plan(mode, 4, 128)
with (data / "synced").open("wb", buffering=0) as file:
    file.write(b"kept" * 100)
    os.fsync(file.fileno())
with (data / "not").open("wb", buffering=0) as file:
    file.write(b"lost" * 100)
    try:
        file.write(b"more" * 100)
    except OSError as e:
        print(e.errno)
"""


def written(tmp_path: Path, mode: int) -> tuple[int, str]:
    for name in ("data", "shadow"):
        (tmp_path / name).mkdir()
    command = [sys.executable, "-c", WRITER, str(tmp_path / "data"), str(tmp_path / "shadow"), str(mode)]
    done = subprocess.run(
        command, env=shim.environment(shim.compiled(tmp_path)), cwd=ROOT, capture_output=True, check=False
    )
    return done.returncode, done.stdout.decode().strip()


def test_a_torn_write_and_what_a_power_cut_takes(tmp_path: Path) -> None:
    assert written(tmp_path, shim.TORN)[0] == -9
    data = tmp_path / "data"
    assert (data / "not").stat().st_size == 600, "half of the write that was the fourth change"
    sizes = set()
    for seed in range(40):
        (data / "not").write_bytes(b"lost" * 150)
        power.cut(data, tmp_path / "shadow", random.Random(seed))
        assert (data / "synced").read_bytes() == b"kept" * 100
        sizes.add((data / "not").stat().st_size)
    assert {0, 600} < sizes, "all, nothing, or a part"


def test_a_full_disk(tmp_path: Path) -> None:
    assert written(tmp_path, shim.FULL) == (0, "28")
    assert (tmp_path / "data" / "not").stat().st_size == 400


def test_every_fault_of_a_commit(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    options = ["--trials", "10", "--only", "commit", "--json", str(found)]
    command = [sys.executable, "-m", "bench.faults", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()[-3000:] + done.stderr.decode()[-2000:]
    told = json.loads(found.read_text())
    assert (told["trials"], told["findings"]) == (10, [])
    assert len(told["counts"]) == 6, "every kind of fault"
