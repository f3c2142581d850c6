"""The process that indexes beside a harvest: it brings the index up, and ends with whoever started it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from indlet.model import Record, TermVector
from indlet.service.index import follow, indexer
from indlet.store import Store
from indlet.text import Policy


def filled(folder: Path, count: int) -> Store:
    store = Store.open(folder)
    records = [
        Record(f"oai:x.org:{n}", {"title": ["x"]}, TermVector.of({f"w{n % 7}": 1})) for n in range(count)
    ]
    with store.write() as tx:
        tx.put(tx.origin("source", "s"), records)
    return store


def wait_until_level(store: Store, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while follow.lag(store)[0] != follow.lag(store)[1]:
        assert time.monotonic() < deadline, "the index was not brought up"
        time.sleep(0.05)


def test_it_starts_when_it_is_worth_while_and_ends_with_the_block(tmp_path: Path) -> None:
    with filled(tmp_path, indexer.CHANGES) as store:
        with indexer.Indexer(store, Policy()) as beside:
            beside.look()
            process = beside._process
            assert process is not None
            wait_until_level(store)
        assert process.poll() == 0


def test_a_small_harvest_needs_none(tmp_path: Path) -> None:
    with filled(tmp_path, 10) as store, indexer.Indexer(store, Policy()) as beside:
        beside.look()
        assert beside._process is None


def test_it_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    filled(tmp_path, indexer.CHANGES).close()
    script = (
        "import sys, time\nfrom indlet.service.index.indexer import Indexer\nfrom indlet.store import Store\n"
        "from indlet.text import Policy\nbeside = Indexer(Store.open(sys.argv[1]), Policy())\nbeside.look()\n"
        "print(beside._process.pid, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = Path(f"/proc/{int(parent.stdout.readline())}")
        parent.kill()
    if not Path("/proc/self").exists():
        pytest.skip("no /proc to look a process up in")
    deadline = time.monotonic() + 60
    while child.exists() and "Z" not in (child / "stat").read_text().split(")")[1][:3]:
        assert time.monotonic() < deadline, "the indexer outlived its parent"
        time.sleep(0.05)
