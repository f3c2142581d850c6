"""What a mirror holds and how far its harvest has come: lines of JSON, appended, and written anew at the end.

A line that a crash has torn is the last one, and is not counted. What a line names is on the disk before the
line is written: after a power cut, what is there of the journal is true of the files. So lines wait for a few
seconds, and what they name is made durable together.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import orjson

from indlet.durable import sync_changes, write_whole
from indlet.errors import StoreError
from indlet.net.reach import KnownPublic
from indlet.site.mirror.paths import OWN

if TYPE_CHECKING:
    from indlet.model import JsonMapping

PROGRESS: Final = {"base_url", "prefix", "since", "token", "begun"}
EVERY: Final = 5.0  # seconds from one writing to the next: a killed run repeats at most so much


class Kept(NamedTuple):
    """One file of a record."""

    path: str
    url: str
    size: int
    sha256: str


@dataclass
class MirrorState:
    base_url: str = ""
    prefix: str = ""
    since: str = ""  # from of the next harvest; empty: of everything
    token: str = ""  # of a list that was not read to its end
    begun: str = ""  # the responseDate of that list's first page
    records: dict[str, list[Kept]] = field(default_factory=dict)
    owed: dict[str, str] = field(default_factory=dict)  # identifier -> why its files are not here yet


class MirrorJournal:
    def __init__(self, folder: Path) -> None:
        self.own = folder / OWN
        self._path = self.own / "journal.jsonl"
        self._file: BinaryIO | None = None
        self._lines: dict[str, bytes] = {}  # of the records that are kept
        self._waiting: list[bytes] = []  # lines that are not written yet
        self._changed: set[str] = set()  # files that were written or removed since
        self._written = time.monotonic()
        self.also_durable: list[Callable[[], None]] = []  # what else has to be on the disk before a line is
        self.state = MirrorState()

    def known_public(self) -> KnownPublic:
        """The hosts that have had a public address, for as long as the mirror is kept: one a line."""
        path = self.own / "public-hosts"
        hosts = set(path.read_text("utf-8").split()) if path.exists() else set[str]()

        def remember(host: str) -> None:
            hosts.add(host)
            write_whole(path, "".join(f"{one}\n" for one in sorted(hosts)).encode())

        return KnownPublic(hosts, remember)

    @contextlib.contextmanager
    def opened(self) -> Iterator[MirrorJournal]:
        """The journal, for one process at a time."""
        try:
            self.own.mkdir(parents=True, exist_ok=True)
            lock = (self.own / "lock").open("w")
        except OSError as e:
            raise StoreError(f"{self.own}: cannot be written: {e.strerror}") from e
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as e:
                raise StoreError(f"{self.own.parent}: another process is mirroring here; wait for it") from e
            self._load()
            with self._path.open("ab") as self._file:
                try:
                    yield self
                except BaseException:
                    self._write()
                    raise
            self._make_durable()
            with self._told():
                self._compact()

    def progress(self, **values: str) -> None:
        """Note how far the harvest is: fields of MirrorState."""
        for name, value in values.items():
            setattr(self.state, name, value)
        self._append({"state": values})

    def changed(self, place: str) -> None:
        """A file has been written, renamed or removed; its record is noted after that."""
        self._changed.add(place)

    def keep(self, identifier: str, files: list[Kept]) -> None:
        """Note the files of a record; none for one that is deleted."""
        line = self._append({"record": identifier, "files": [file._asdict() for file in files]})
        self._keep(identifier, files, line)

    def _keep(self, identifier: str, files: list[Kept], line: bytes) -> None:
        self.state.owed.pop(identifier, None)
        if files:
            self.state.records[identifier], self._lines[identifier] = files, line
        else:
            self.state.records.pop(identifier, None)
            self._lines.pop(identifier, None)

    def owe(self, identifier: str, reason: str) -> None:
        self.state.owed[identifier] = reason
        self._append({"owed": identifier, "reason": reason})

    def _append(self, values: JsonMapping) -> bytes:
        line = _line(values)
        self._waiting.append(line)
        if time.monotonic() - self._written >= EVERY:
            self._write()
        return line

    def _write(self) -> None:
        """Write the lines that wait, and see them on the disk."""
        assert self._file is not None, "a journal is open while it is written"
        # Gone if this fails: a second sync may well succeed, but what the first could not write is lost.
        lines, self._waiting = b"".join(self._waiting), []
        self._make_durable()
        with self._told():
            self._file.write(lines)
            self._file.flush()
            os.fsync(self._file.fileno())
        self._written = time.monotonic()

    def _make_durable(self) -> None:
        changed, self._changed = self._changed, set()
        with self._told():
            for sync in self.also_durable:
                sync()
            sync_changes(str(self.own.parent), changed)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            raise StoreError(
                f"{e.filename or self.own.parent}: cannot be written to the disk: {e.strerror or e}; "
                "make room or change the disk, then run again"
            ) from e

    def _load(self) -> None:
        if not self._path.exists():
            return
        written = [line for line in self._path.read_bytes().split(b"\n") if line]
        for line, values in zip(written, _read(written), strict=True):
            with contextlib.suppress(KeyError, TypeError):
                self._take(values, line + b"\n")
        # A torn line must not be continued by the next one.
        with self._path.open("ab") as file:
            if file.tell():
                file.write(b"\n")

    def _take(self, values: JsonMapping, line: bytes) -> None:
        state = self.state
        if "files" in values:
            files = [Kept(one["path"], one["url"], one["size"], one["sha256"]) for one in values["files"]]
            self._keep(values["record"], files, line)
        elif "owed" in values:
            state.owed[values["owed"]] = values["reason"]
        elif "state" in values:
            for name in PROGRESS & values["state"].keys():
                setattr(state, name, str(values["state"][name]))

    def _compact(self) -> None:
        state = self.state
        owed = [{"owed": name, "reason": reason} for name, reason in state.owed.items()]
        first, *last = ({"state": {name: getattr(state, name) for name in sorted(PROGRESS)}}, *owed)
        write_whole(self._path, b"".join((_line(first), *self._lines.values(), *map(_line, last))))


def _line(values: JsonMapping) -> bytes:
    return json.dumps(values).encode() + b"\n"  # not orjson: names that are not UTF-8


def _read(lines: Sequence[bytes]) -> Sequence[JsonMapping]:
    """What the lines say, at once if all of them are whole; nothing for one that is torn."""
    try:
        found: list[JsonMapping] = orjson.loads(b"[%b]" % b",".join(lines))
        if len(found) == len(lines):
            return found
    except ValueError:
        pass
    return [_read_one(line) for line in lines]


def _read_one(line: bytes) -> JsonMapping:
    with contextlib.suppress(ValueError):
        found = json.loads(line)
        return found if isinstance(found, dict) else {}
    return {}
