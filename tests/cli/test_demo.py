"""The demonstration as people start it: a process, its output, and what it leaves behind."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

import pytest

from indlet.demo.stage import MARK, lay_out
from indlet.errors import SettingsError

COMMAND = [sys.executable, "-m", "indlet", "demo"]


def processes_naming(folder: Path) -> set[int]:
    """Running processes with the folder in their command line."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in command:
                found.add(int(entry.name))
    return found


@contextmanager
def portal(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A demonstration at the end of its tour, and the portal's address."""
    command = [*COMMAND, "--port", "0", "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = ""
            for line in process.stdout:
                if found := re.search(r"search +(http://\S+)", line):
                    address = found[1]
                if "harvest --config service.toml" in line:
                    break
            assert address, "the portal's address was not printed"
            yield process, address
        finally:
            process.kill()


def numbers(line: str) -> list[int]:
    return [int(n.replace(",", "")) for n in re.findall(r"(?<= )\d[\d,]*(?= |$)", line)]


def test_the_tour(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = subprocess.run(
        [*COMMAND, "--once", "--data", str(folder)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    output = done.stdout
    assert "\x1b" not in output, "colours in a file"
    assert all(len(line) <= 80 for line in output.splitlines())

    def lines(start: str) -> list[str]:
        return [line.strip() for line in output.splitlines() if line.strip().startswith(start)]

    crawled, harvested, again, changed = lines("Harbour station  ")
    assert numbers(crawled)[:2] == [105, 112]
    assert numbers(harvested)[:2] == [112, 0]
    assert numbers(again) == [104, 104, 0, 1], "files, unchanged, records, deletions"
    assert numbers(changed)[:2] == [0, 1]
    crawled, harvested, again, changed = lines("Orchard school  ")
    assert numbers(crawled)[:2] == [95, 99]
    assert numbers(harvested)[:2] == [99, 0]
    assert numbers(again) == [96, 94, 2, 0]
    assert numbers(changed)[:2] == [2, 0]

    assert numbers(" " + lines("211 records")[0])[0] == 211
    moved = re.search(r"([\d.]+) kB moved for ([\d.]+) kB of content", output)
    assert moved and float(moved[1]) < float(moved[2]) / 2
    assert re.search(r"salt wind +\d+ records", output)
    # Three of these five are documents of one file, and keep apart through the harvest.
    assert re.search(r"Sturmflut OR surge +5 records", output)
    assert "link to its content: none is given out" in output

    arrived, gone = lines("marmalade")[-1], lines("radar AND rain")[-1]
    assert re.fullmatch(r"marmalade +0 +– +2 +Marmalade", arrived)
    assert re.fullmatch(r"radar AND rain +1 +What radar sees.* 0 +–", gone)
    assert processes_naming(folder) == set()


def test_the_portal_stays_until_it_is_told_to_go(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with portal(folder) as (process, address):
        with urlopen(f"{address}?q=marmalade", timeout=30) as answer:
            assert b"Marmalade" in answer.read()
        assert len(processes_naming(folder)) >= 3, "two providers and the service"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert processes_naming(folder) == set()


def test_the_last_lines_name_a_command_that_can_be_typed(tmp_path: Path) -> None:
    folder = tmp_path / "demo data"
    elsewhere = {**os.environ, "PATH": "/usr/bin:/bin"}
    command = [*COMMAND, "--port", "0", "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=elsewhere) as process:
        try:
            assert process.stdout is not None
            lines = list[str]()
            for line in process.stdout:
                lines.append(line.strip())
                if "harvest --config service.toml" in line:
                    break
            (folder / "orchard" / "quince.txt").write_text("Quince\n\nQuinces keep until January.\n")
            typed = " && ".join(lines[-3:])
            done = subprocess.run(["/bin/sh", "-c", typed], env=elsewhere, capture_output=True, text=True)
            assert done.returncode == 0, (typed, done.stderr)
            assert re.search(r"Orchard school .* 1 changed", done.stdout), done.stdout
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def test_children_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [*COMMAND, "--once", "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert any("Orchard school" in line for line in process.stdout)  # the providers are up
            handles = [os.pidfd_open(child) for child in processes_naming(folder) - {process.pid}]
            assert len(handles) >= 2
        finally:
            process.kill()
    for handle in handles:  # becomes readable when its process ends
        assert select.select([handle], [], [], 30)[0], "a child was left behind"
        os.close(handle)


def test_foreign_folders_are_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "harbour"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    with pytest.raises(SettingsError, match="not empty"):
        lay_out(tmp_path)
    assert (mine / "thesis.txt").read_text() == "mine"


def test_a_second_demonstration_begins_anew(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    lay_out(folder)
    (folder / "orchard" / "new.txt").write_text("of the last tour")
    lay_out(folder)
    assert (folder / MARK).exists()
    assert not (folder / "orchard" / "new.txt").exists()
    old = folder / "harbour" / "tides" / "Tidal_bores.txt"
    assert datetime.fromtimestamp(old.stat().st_mtime, UTC).year == 1959
