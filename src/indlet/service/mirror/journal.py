"""What a mirror holds and how far its harvest has come: lines of JSON, appended, and written anew at the end.

A line that a crash has torn is the last one, and is not counted.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TextIO

import orjson

from indlet.durable import write_whole
from indlet.errors import StoreError
from indlet.service.mirror.paths import OWN


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
        self._file: TextIO | None = None
        self._lines: dict[str, str] = {}  # of the records that are kept
        self.state = MirrorState()

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
            with self._path.open("a", encoding="utf-8") as self._file:
                yield self
            self._compact()

    def progress(self, **values: str) -> None:
        """Note how far the harvest is: fields of MirrorState. All that was noted before is on disk then."""
        for name, value in values.items():
            setattr(self.state, name, value)
        self._append({"state": values})
        assert self._file is not None
        self._file.flush()

    def keep(self, identifier: str, files: list[Kept]) -> None:
        """Note the files of a record; none for one that is deleted."""
        line = self._append({"record": identifier, "files": [file._asdict() for file in files]})
        self._keep(identifier, files, line)

    def _keep(self, identifier: str, files: list[Kept], line: str) -> None:
        self.state.owed.pop(identifier, None)
        if files:
            self.state.records[identifier], self._lines[identifier] = files, line
        else:
            self.state.records.pop(identifier, None)
            self._lines.pop(identifier, None)

    def owe(self, identifier: str, reason: str) -> None:
        self.state.owed[identifier] = reason
        self._append({"owed": identifier, "reason": reason})

    def _append(self, values: dict[str, object]) -> str:
        assert self._file is not None, "a journal is open while it is written"
        line = json.dumps(values) + "\n"
        self._file.write(line)
        return line

    def _load(self) -> None:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            for raw in file:
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    self._take(_read(raw), raw.decode())
        # A torn line must not be continued by the next one.
        with self._path.open("ab") as file:
            if file.tell():
                file.write(b"\n")

    def _take(self, line: dict[str, object], written: str) -> None:
        state = self.state
        if isinstance(line.get("state"), dict):
            for name, value in dict(line["state"]).items():  # type: ignore[call-overload]
                if name in ("base_url", "prefix", "since", "token", "begun"):
                    setattr(state, name, str(value))
        elif "owed" in line:
            state.owed[str(line["owed"])] = str(line["reason"])
        elif isinstance(line.get("files"), list):
            files = [Kept(**file) for file in line["files"]]  # type: ignore[attr-defined]
            self._keep(str(line["record"]), files, written.rstrip("\n") + "\n")

    def _compact(self) -> None:
        state = self.state
        values = {name: getattr(state, name) for name in ("base_url", "prefix", "since", "token", "begun")}
        owed = [{"owed": name, "reason": reason} for name, reason in state.owed.items()]
        first, last = json.dumps({"state": values}) + "\n", "".join(json.dumps(one) + "\n" for one in owed)
        write_whole(self._path, (first + "".join(self._lines.values()) + last).encode())


def _read(line: bytes) -> dict[str, object]:
    try:
        return orjson.loads(line)  # type: ignore[no-any-return]
    except ValueError:
        return json.loads(line)  # type: ignore[no-any-return]  # names that are not UTF-8
