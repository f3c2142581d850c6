"""A full disk: a harvest says that nothing was indexed, and a node serves what it has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.hostile.misbehaving import Provider, Rec

from indlet.service.pipeline import harvest_all
from indlet.settings import Settings, Source
from indlet.store import open_store

INDLET = (sys.executable, "-m", "indlet")
MEGABYTE = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=90m", "tmpfs", str(place)]
    if subprocess.run(mounted, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path, room: int) -> None:
    """Leave this much room."""
    about = os.statvfs(disk)
    with (disk / f"filler-{room}").open("wb") as file:
        file.write(b"x" * max(about.f_bavail * about.f_frsize - room, 0))


def records(first: int, last: int) -> list[Rec]:
    return [
        Rec(f"oai:x.org:{n}", "2099-05-01T00:00:00Z", " ".join(f"wing{n}x{k}" for k in range(40)))
        for n in range(first, last)
    ]


def test_a_harvest_that_cannot_index_fails_and_a_node_starts_all_the_same(small_disk: Path) -> None:
    data = small_disk / "data"
    with Provider(records(0, 50), page=100) as provider:
        command = [*INDLET, "harvest", provider.url, "--data", str(data), "--quiet"]
        first = subprocess.run(command, check=False, capture_output=True, text=True)
        assert first.returncode == 0, first.stdout + first.stderr
        provider.records += records(50, 600)
        source = Source(provider.url)
        with open_store(data) as store:
            harvest_all(store, Settings(data=data), [source], index=False)
        fill(small_disk, MEGABYTE)
        found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert found.returncode == 1
    assert "cannot be written" in found.stderr, found.stdout + found.stderr
    fill(small_disk, 0)
    serve = [*INDLET, "serve", "--data", str(data), "--port", "0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None and node.stderr is not None
        try:
            address = re.search(r"http://\S+/", node.stdout.readline())
            assert address is not None, node.stderr.read()
            with urlopen(f"{address[0]}api/search?q=wing7x3") as answer:
                assert b"oai:x.org:7" in answer.read()
        finally:
            node.terminate()
            node.stdout.read()
