"""What a snapshot can tell."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from indlet.model import Stored

# Field terms are not kept: they follow from the metadata, and are made on the way into the index.
_STORED = ", ".join("x''" if name == "fields" else f"r.{name}" for name in Stored._fields)
# A row as `Stored`, without the look at its length that `Stored._make` takes: whole collections pass here.
_stored: Callable[[tuple[Any, ...]], Stored] = partial(tuple.__new__, Stored)
_NO_LIMIT = 2**62
# What a record is heavy with, and what stands for it where it is not asked for.
_PARTS = {
    "metadata": "x''",
    "properties": "x''",
    "raw": "x''",
    "vector": "NULL",
    "positions": "NULL",
}


class Origin(NamedTuple):
    id: int
    kind: str
    name: str
    settings: dict[str, Any]
    state: dict[str, Any]


class FileState(NamedTuple):
    """A file as the crawler last saw it. `state`: "primary", "other", or "failed"."""

    path: str
    resource: str
    size: int
    modified: int  # nanoseconds since 1970; -1 if the storage does not tell
    etag: str
    digest: str
    media_type: str
    state: str
    policy: str


class StoredFailure(NamedTuple):
    origin: int
    where: str
    stage: str
    reason: str
    raw: bytes
    at: int  # the last time
    first: int = 0
    attempts: int = 1
    due: int | None = None  # when it is asked for again; None: it is not, by itself


class OpenFailure(NamedTuple):
    """A failure without its reason and bytes: what is needed to decide when to retry."""

    where: str
    stage: str
    first: int
    due: int | None


class RunEntry(NamedTuple):
    id: int
    origin: int
    kind: str
    started: float
    finished: float | None
    outcome: str
    detail: dict[str, Any]


class Shared(NamedTuple):
    """Two origins with different records under the same identifiers."""

    first: int
    second: int
    identifiers: int
    example: str


class View:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    # The change feed

    def changes(
        self, after: int = 0, limit: int = _NO_LIMIT, *, parts: Iterable[str] = tuple(_PARTS)
    ) -> Iterator[Stored]:
        """Every record whose last change comes after `after`, in the order of changes, deleted ones too."""
        rows = self._connection.execute(
            f"SELECT {_columns(parts)} FROM records r WHERE r.seq > ? ORDER BY r.seq LIMIT ?", (after, limit)
        )
        return map(_stored, rows)

    def last_seq(self) -> int:
        """The seq of the newest change."""
        row = self._connection.execute("SELECT max(seq) FROM records").fetchone()
        return int(row[0] or 0)

    # OAI lists

    def page(
        self,
        limit: int,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
        parts: Iterable[str] = tuple(_PARTS),
    ) -> list[Stored]:
        """The next records of a list, in feed order. Datestamps in seconds, both bounds inclusive.

        Of the heavy columns only those in `parts` are read; the others come empty.
        """
        clause, values = self._where(after, since, until, set_spec, origins)
        rows = self._connection.execute(
            f"SELECT {_columns(parts)} FROM {clause} ORDER BY {_order(set_spec)} LIMIT ?", (*values, limit)
        )
        return list(map(_stored, rows))

    def newest(
        self, limit: int, *, set_spec: str | None = None, origins: Iterable[int] | None = None
    ) -> list[Stored]:
        """The latest changes, newest first, deleted records among them: what a feed shows."""
        clause, values = self._where(0, None, None, set_spec, origins)
        rows = self._connection.execute(
            f"SELECT {_STORED} FROM {clause} ORDER BY {_order(set_spec)} DESC LIMIT ?", (*values, limit)
        )
        return list(map(_stored, rows))

    def latest_ids(self, limit: int, *, before: int | None = None) -> list[tuple[int, int]]:
        """(id, seq) of the latest changes that left a live record, newest first, from below a seq."""
        return self._connection.execute(
            "SELECT id, seq FROM records WHERE seq < ? AND deleted = 0 ORDER BY seq DESC LIMIT ?",
            (_NO_LIMIT if before is None else before, limit),
        ).fetchall()

    def withdrawn(self, origin: int, limit: int) -> list[tuple[str, int]]:
        """(identifier, datestamp) of an origin's latest deletions, newest first."""
        return self._connection.execute(
            "SELECT identifier, datestamp FROM records WHERE origin = ? AND deleted != 0 "
            "ORDER BY seq DESC LIMIT ?",
            (origin, limit),
        ).fetchall()

    def headers(
        self,
        limit: int,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
    ) -> list[tuple[int, str, int, int, str]]:
        """(seq, identifier, datestamp, deleted, sets) of the records that `page` would give."""
        clause, values = self._where(after, since, until, set_spec, origins)
        return self._connection.execute(
            f"SELECT r.seq, r.identifier, r.datestamp, r.deleted, r.sets FROM {clause} "
            f"ORDER BY {_order(set_spec)} LIMIT ?",
            (*values, limit),
        ).fetchall()

    def count(
        self,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
    ) -> int:
        clause, values = self._where(after, since, until, set_spec, origins)
        return int(self._connection.execute(f"SELECT count(*) FROM {clause}", values).fetchone()[0])

    def _where(
        self,
        after: int,
        since: int | None,
        until: int | None,
        set_spec: str | None,
        origins: Iterable[int] | None,
    ) -> tuple[str, list[Any]]:
        if since is not None:
            row = self._connection.execute(
                "SELECT min(seq) FROM ticks WHERE datestamp >= ?", (since,)
            ).fetchone()
            after = max(after, _NO_LIMIT if row[0] is None else row[0] - 1)
        before = _NO_LIMIT
        if until is not None:
            row = self._connection.execute(
                "SELECT min(seq) FROM ticks WHERE datestamp > ?", (until,)
            ).fetchone()
            before = _NO_LIMIT if row[0] is None else row[0]
        if set_spec is None:
            clause, values = "records r WHERE r.seq > ? AND r.seq < ?", [after, before]
        else:
            ids = [i for i, _ in self._set_ids(set_spec)]
            marks = ", ".join("?" * len(ids))
            clause = (
                "membership m CROSS JOIN records r ON r.seq = m.seq "
                f"WHERE m.set_id IN ({marks}) AND m.seq > ? AND m.seq < ?"
            )
            values = [*ids, after, before]
        if origins is not None:
            chosen = list(origins)
            clause += f" AND r.origin IN ({', '.join('?' * len(chosen))})"
            values += chosen
        return clause, values

    # Single records

    def get(self, identifier: str, origins: Sequence[int] | None = None) -> Stored | None:
        """The record of that identifier; the most recently changed where several origins have one."""
        clause, values = "r.identifier = ?", [identifier]
        if origins is not None:
            clause += f" AND r.origin IN ({', '.join('?' * len(origins))})"
            values += [str(o) for o in origins]
        row = self._connection.execute(
            f"SELECT {_STORED} FROM records r WHERE {clause} ORDER BY r.deleted, r.seq DESC LIMIT 1", values
        ).fetchone()
        return Stored._make(row) if row else None

    def shared_identifiers(self) -> list[Shared]:
        """Pairs of origins that have live records of the same identifiers, unless these are one resource."""
        rows = self._connection.execute(
            "WITH twice AS (SELECT identifier FROM records GROUP BY identifier HAVING count(*) > 1) "
            "SELECT a.origin, b.origin, count(*), min(a.identifier) FROM twice "
            "JOIN records a ON a.identifier = twice.identifier "
            "JOIN records b ON b.identifier = a.identifier AND b.origin > a.origin "
            "WHERE a.deleted = 0 AND b.deleted = 0 AND (a.resource = 0 OR a.resource != b.resource) "
            "GROUP BY a.origin, b.origin ORDER BY a.origin, b.origin"
        )
        return [Shared(*row) for row in rows]

    def by_id(self, ids: Sequence[int]) -> dict[int, Stored]:
        found: dict[int, Stored] = {}
        for start in range(0, len(ids), 500):
            chunk = ids[start : start + 500]
            rows = self._connection.execute(
                f"SELECT {_STORED} FROM records r WHERE r.id IN ({', '.join('?' * len(chunk))})", list(chunk)
            )
            found.update((row[0], Stored._make(row)) for row in rows)
        return found

    def same_resource(self, stored: Stored) -> list[Stored]:
        """The other live records that stand for a record's resource (see `Stored.resource`).

        What several records of one origin share (the address of their repository, say) tells no resource.
        """
        (origins,) = self._connection.execute("SELECT count(*) FROM origins").fetchone()
        rows = self._connection.execute(
            f"SELECT {_STORED} FROM records r WHERE r.resource = ? AND r.resource != 0 LIMIT ?",
            (stored.resource, origins + 1),
        )
        found = sorted(map(_stored, rows))
        if len({other.origin for other in found}) < len(found):
            return []
        return [other for other in found if other.id != stored.id]

    def identifiers(self, origin: int, *, live: bool = True) -> Iterator[str]:
        rows = self._connection.execute(
            f"SELECT identifier FROM records WHERE origin = ? {'AND deleted = 0' if live else ''}", (origin,)
        )
        return (row[0] for row in rows)

    def documents(self, origin: int, identifier: str) -> list[str]:
        """The live records of one resource: its own, and those of its documents (`identifier;key`)."""
        rows = self._connection.execute(
            "SELECT identifier FROM records WHERE origin = ?1 AND deleted = 0 "
            "AND (identifier = ?2 OR (identifier > ?2 || ';' AND identifier < ?2 || '<'))",
            (origin, identifier),
        )
        return [row[0] for row in rows]

    def totals(self) -> dict[int, tuple[int, int]]:
        """For each origin: live records, deleted records."""
        rows = self._connection.execute(
            "SELECT origin, sum(deleted = 0), sum(deleted != 0) FROM records GROUP BY origin"
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def datestamps(self) -> tuple[int, int] | None:
        """The earliest and the latest datestamp; None for an empty store."""
        row = self._connection.execute("SELECT min(datestamp), max(datestamp) FROM ticks").fetchone()
        return None if row[0] is None else (row[0], row[1])

    def latest(self, origins: Iterable[int] | None = None) -> int | None:
        """The datestamp of the newest change, of these origins or of all; None if there is no record."""
        clause, values = self._where(0, None, None, None, origins)
        row = self._connection.execute(
            f"SELECT r.datestamp FROM {clause} ORDER BY r.seq DESC LIMIT 1", values
        ).fetchone()
        return int(row[0]) if row else None

    # Sets

    def sets(self, origins: Iterable[int] | None = None) -> list[tuple[str, str]]:
        """(setSpec, name) of every set, in order of setSpec."""
        clause, values = _among(origins)
        return self._connection.execute(
            f"SELECT spec, max(name) FROM sets WHERE {clause} GROUP BY spec ORDER BY spec", values
        ).fetchall()

    def set_names(self, origins: Iterable[int] | None = None) -> list[tuple[int, str, str]]:
        """(origin, setSpec, name) of every set that has a name."""
        clause, values = _among(origins)
        return self._connection.execute(
            f"SELECT origin, spec, name FROM sets WHERE name != '' AND {clause} ORDER BY spec, origin", values
        ).fetchall()

    def _set_ids(self, spec: str) -> list[tuple[int, int]]:
        return self._connection.execute("SELECT id, origin FROM sets WHERE spec = ?", (spec,)).fetchall()

    # Origins, journal, failures, files

    def origins(self, kind: str | None = None) -> list[Origin]:
        rows = self._connection.execute(
            "SELECT id, kind, name, settings, state FROM origins WHERE ?1 IS NULL OR kind = ?1 ORDER BY id",
            (kind,),
        )
        return [Origin(i, k, n, json.loads(settings), json.loads(state)) for i, k, n, settings, state in rows]

    def origin(self, kind: str, name: str) -> Origin | None:
        return next((o for o in self.origins(kind) if o.name == name), None)

    def state(self, origin: int) -> dict[str, Any]:
        row = self._connection.execute("SELECT state FROM origins WHERE id = ?", (origin,)).fetchone()
        return dict(json.loads(row[0])) if row else {}

    def runs(self, origin: int | None = None, limit: int = 50) -> list[RunEntry]:
        """The journal, newest first."""
        rows = self._connection.execute(
            "SELECT id, origin, kind, started, finished, outcome, detail FROM runs "
            "WHERE ?1 IS NULL OR origin = ?1 ORDER BY id DESC LIMIT ?2",
            (origin, limit),
        )
        return [RunEntry._make((*row[:6], json.loads(row[6]))) for row in rows]

    def failures(self, origin: int | None = None) -> Iterator[StoredFailure]:
        rows = self._connection.execute(
            "SELECT origin, place, stage, reason, raw, at, first, attempts, due FROM failures "
            "WHERE ?1 IS NULL OR origin = ?1 ORDER BY origin, place, stage",
            (origin,),
        )
        return map(StoredFailure._make, rows)

    def open_failures(self, origin: int) -> Iterator[OpenFailure]:
        """The failures of an origin, those due first at the beginning; one entry a place."""
        rows = self._connection.execute(
            "SELECT place, max(stage), min(first), min(due) FROM failures WHERE origin = ? "
            "GROUP BY place ORDER BY min(due), place",
            (origin,),
        )
        return map(OpenFailure._make, rows)

    def failure_counts(self) -> dict[int, int]:
        return dict(
            self._connection.execute("SELECT origin, count(*) FROM failures GROUP BY origin").fetchall()
        )

    def files(self, origin: int) -> Iterator[FileState]:
        """Every file that the crawler knows, in order of path."""
        rows = self._connection.execute(
            "SELECT path, resource, size, modified, etag, digest, media_type, state, policy "
            "FROM files WHERE origin = ? ORDER BY path",
            (origin,),
        )
        return map(FileState._make, rows)

    def file(self, origin: int, path: str) -> FileState | None:
        """One file as the crawler knows it."""
        row = self._connection.execute(
            "SELECT path, resource, size, modified, etag, digest, media_type, state, policy "
            "FROM files WHERE origin = ? AND path = ?",
            (origin, path),
        ).fetchone()
        return FileState._make(row) if row else None

    def addresses(
        self, limit: int, *, after: int = 0, origins: Iterable[int] | None = None
    ) -> list[tuple[int, int, str | None]]:
        """(seq, datestamp, URL) of live records, in feed order; the URL is None where a record has none."""
        clause, values = self._where(after, None, None, None, origins)
        return self._connection.execute(
            "SELECT r.seq, r.datestamp, json_extract(CAST(r.properties AS TEXT), '$.url') "
            f"FROM {clause} AND r.deleted = 0 ORDER BY r.seq LIMIT ?",
            (*values, limit),
        ).fetchall()

    def meta(self, key: str) -> Any:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None


def _order(set_spec: str | None) -> str:
    return "r.seq" if set_spec is None else "m.seq"


def _among(origins: Iterable[int] | None) -> tuple[str, list[int]]:
    """The condition that something is of these origins, or of any, and its values."""
    if origins is None:
        return "TRUE", []
    values = list(origins)
    return f"origin IN ({', '.join('?' * len(values))})", values


def _columns(parts: Iterable[str]) -> str:
    """The columns of `Stored`, those of its heavy parts only that are asked for.

    Metadata stand in for raw ones, and for a vector, where there is none.
    """
    columns = _STORED
    for name in _PARTS.keys() - set(parts):
        instead = _PARTS[name]
        if name == "metadata":
            wanting = {"raw": "length(r.raw) = 0", "vector": "r.vector IS NULL"}
            if used := " OR ".join(clause for part, clause in wanting.items() if part in parts):
                instead = f"iif({used}, r.metadata, x'')"
        columns = columns.replace(f"r.{name}", instead)
    return columns
