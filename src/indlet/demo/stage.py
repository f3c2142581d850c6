"""What the tour plays on: a folder with copies of the collections, two providers, the service's settings."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import orjson

from indlet import process
from indlet.errors import IndletError, SettingsError
from indlet.model import JsonObject

MARK = "indlet-demo.txt"
STOP_SECONDS = 5.0

HIERARCHY = """
[[hierarchy]]
root = "{name}"
name = "{name}"
title = "{title}"
{more}"""
PRIVATE = """rights = "Closed to the public; its statistics are not."
[hierarchy.access]
content = "private"
"""


class Children:
    """Processes of ours. Leaving the context ends them; if we die before that, they end by themselves."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """A module of ours as a program, with an end of a pipe as its lifeline; see tether.py."""
        child = process.start("indlet.demo.tether", *arguments, stdin=subprocess.PIPE, **options)
        self._running.append(child)
        return child

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._running:
            if child.poll() is None:
                child.terminate()
        for child in self._running:
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


@dataclass
class Provider:
    """A collection at its owner's: a settings file, and a node that serves it."""

    name: str
    title: str
    home: Path
    hierarchies: dict[str, str]  # name of the folder -> title
    private: tuple[str, ...] = ()
    url: str = ""
    _server: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _crawl: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def config(self) -> Path:
        return self.home / f"{self.name}.toml"

    def files(self) -> list[Path]:
        return [p for name in self.hierarchies for p in (self.home / name).rglob("*") if p.is_file()]

    @property
    def content_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.files())

    def begin_serving(self, children: Children) -> None:
        self._configure(0)
        arguments = ("indlet", "serve", "--config", str(self.config), "--no-crawl", "--no-portal")
        with (self.home / f"{self.name}.log").open("wb") as log:
            self._server = children.start(*arguments, stdout=subprocess.PIPE, stderr=log)

    def await_serving(self) -> None:
        """Reads off what the node says where it is: it took any port that was free."""
        assert self._server is not None
        assert self._server.stdout is not None
        line = self._server.stdout.readline().decode()
        found = re.search(r"http://[^\s/]+:(\d+)", line)
        if not found:
            said = (self.home / f"{self.name}.log").read_text("utf-8", "replace").strip()
            raise IndletError(f"{self.title} did not start: {said or line or 'no reason given'}")
        self.url = found[0]
        self._configure(int(found[1]))

    def begin_crawl(self, children: Children) -> None:
        arguments = ("indlet", "crawl", "--config", str(self.config), "--json")
        self._crawl = children.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def await_crawl(self) -> JsonObject:
        """What the crawl came to, over all hierarchies."""
        assert self._crawl is not None
        assert self._crawl.stdout is not None
        assert self._crawl.stderr is not None
        output = self._crawl.stdout.read()
        said = self._crawl.stderr.read().decode("utf-8", "replace").strip()
        if self._crawl.wait() != 0:
            raise IndletError(
                f"the crawl of {self.title} failed: {said or output.decode('utf-8', 'replace')}"
            )
        summaries = orjson.loads(output)
        counted = ("files", "records", "deleted", "unchanged", "read")
        return {name: sum(summary[name] for summary in summaries) for name in counted} | {
            "seconds": sum(summary["seconds"] for summary in summaries)
        }

    def _configure(self, port: int) -> None:
        head = (
            f'data = "data/{self.name}"\n\n[node]\nname = "{self.title}"\n'
            f'repository = "{self.name}.example"\nport = {port}\n\n[crawl]\nworkers = 1\nsettle_seconds = 0\n'
        )
        parts = [
            HIERARCHY.format(name=name, title=title, more=PRIVATE if name in self.private else "")
            for name, title in self.hierarchies.items()
        ]
        self.config.write_text(head + "".join(parts), "utf-8")


def typed_command() -> str:
    """What to type for this program: its name where that is on the path, otherwise its file."""
    beside, found = Path(sys.executable).with_name("indlet"), shutil.which("indlet")
    if not beside.exists():
        return f"{shlex.quote(sys.executable)} -m indlet"
    on_path = found is not None and Path(found).samefile(beside)
    return "indlet" if on_path else shlex.quote(str(beside))


def providers(home: Path) -> tuple[Provider, Provider]:
    harbour = {"harbour": "Notes of the harbour station", "logbook": "Logbook of the outer light"}
    orchard = {"orchard": "Leaflets of the orchard school"}
    return (
        Provider("harbour", "Harbour station", home, harbour, ("logbook",)),
        Provider("orchard", "Orchard school", home, orchard),
    )


def lay_out(home: Path) -> None:
    """Copies the collections into a folder that is empty or holds an earlier demonstration, which goes."""
    if home.exists() and any(home.iterdir()) and not (home / MARK).exists():
        raise SettingsError(
            f"{home}: not empty, and not made by indlet demo; choose another folder for --data"
        )
    home.mkdir(parents=True, exist_ok=True)
    (home / MARK).write_text("Made by indlet demo; the next run in this folder starts again.\n", "utf-8")
    source = resources.files("indlet.demo")
    dates = dict(line.split("\t") for line in source.joinpath("dates.tsv").read_text("utf-8").splitlines())
    for name in ("harbour", "logbook", "orchard", "data"):
        shutil.rmtree(home / name, ignore_errors=True)
    for name in ("harbour", "logbook", "orchard"):
        for path, file in _walk(source.joinpath(name), name):
            target = home / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
            # Packages do not keep the times of files; plain text has no other date.
            moment = datetime.fromisoformat(dates[path]).replace(hour=9, tzinfo=UTC).timestamp()
            os.utime(target, (moment, moment))
    (home / "data").mkdir()


def _walk(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        below = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _walk(entry, below)
        else:
            yield below, entry
