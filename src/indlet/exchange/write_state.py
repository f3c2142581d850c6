"""What a task of local write keeps between its runs, and what a run comes to."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from indlet.model import JsonMapping
from indlet.settings import Write
from indlet.store import FileState


class RaisedAlert(NamedTuple):
    """What a task has to say about a record."""

    kind: str
    record: str
    reason: str
    remedy: str


@dataclass(slots=True)
class Written:
    """What a task came to. `reason`: why it stopped before its end."""

    folder: str
    files: int = 0
    unchanged: int = 0
    deleted: int = 0
    failed: int = 0
    reason: str = ""


@dataclass(slots=True)
class WritePlace:
    """How far a task is, as its state keeps it.

    `reached`: the position that an earlier pass came to. `made`: the digest of the settings that files are
    written by. `again` and `dropped`: files that this pass wrote again, and records that it no longer
    selects, though nothing changed at their sources. `number`: of the next file of many records.
    """

    position: int = 0
    reached: int = 0
    made: str = ""
    again: int = 0
    dropped: int = 0
    number: int = 1

    @classmethod
    def of(cls, state: JsonMapping) -> WritePlace:
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in state.items() if name in known})

    def start_over(self) -> None:
        self.reached, self.position = max(self.reached, self.position), 0
        self.again = self.dropped = 0


@dataclass(slots=True)
class WriteBatch:
    """What a batch of changes comes to, until it is committed."""

    rows: list[FileState] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)  # paths
    raised: list[RaisedAlert] = field(default_factory=list)
    together: dict[str, list[bytes]] = field(default_factory=dict)  # files of many records, by their paths
    again: int = 0
    dropped: int = 0
    echo_keys: dict[str, str] = field(
        default_factory=dict
    )  # identifiers, by what records say when read again


def settings_digest(task: Write) -> str:
    """Changes whenever an unchanged record may be selected or written in another way: settings, tables."""
    tables = [Path(name.removeprefix("table:")) for name in (task.format, task.mapping, *task.subjects)]
    read = [table.read_bytes() if table.is_file() else b"" for table in tables]
    told = [task.format, task.mapping, task.subjects, task.subject_method, task.from_, task.path]
    told += [task.files] if task.files != "record" else []
    return blake2b(repr((told, task.required, read)).encode(), digest_size=8).hexdigest()
