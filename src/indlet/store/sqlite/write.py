"""What a transaction can do. All of it becomes visible at once, or none of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b, sha256
from itertools import chain
from typing import Any

import orjson

from indlet.model import Failure, Packed, Record
from indlet.store.sqlite.read import FileState

_COLUMNS = (
    "seq, origin, identifier, datestamp, deleted, sets, language, length, resource, digest, "
    "metadata, properties, raw, vector, positions"
)
# Rows of one statement. sqlite3 lets go of the interpreter once for each statement: with a row to each, a
# thread that writes and one that parses take turns of 5 ms and both stand still; so they run side by side.
_TOGETHER = 400
# An equal record (by its digest) is left alone: no new seq, no new datestamp.
_UPSERT = f"""
INSERT INTO records ({_COLUMNS}) VALUES {{rows}}
ON CONFLICT (identifier, origin) DO UPDATE SET
  seq = excluded.seq, datestamp = excluded.datestamp, deleted = excluded.deleted, sets = excluded.sets,
  language = excluded.language, length = excluded.length, resource = excluded.resource,
  digest = excluded.digest, metadata = excluded.metadata, properties = excluded.properties,
  raw = excluded.raw, vector = excluded.vector, positions = excluded.positions
WHERE records.digest IS NOT excluded.digest
"""
_MEMBERS = "INSERT OR IGNORE INTO membership VALUES {rows}"

# What a record becomes when it is deleted: its identifier, its sets, and the fact.
_TOMBSTONE = """
UPDATE records SET seq = ?, datestamp = ?, deleted = 1, digest = x'', metadata = x'7b7d',
  properties = x'7b7d', raw = x'', vector = NULL, positions = NULL,
  length = 0, resource = 0, language = ''
WHERE identifier = ? AND origin = ? AND deleted = 0
"""


def resource_hash(resource: str) -> int:
    """A resource's key as a signed 64-bit number, never 0; 0 for no key."""
    if not resource:
        return 0
    return int.from_bytes(blake2b(resource.encode(), digest_size=8).digest(), "big", signed=True) or 1


class Transaction:
    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._clock = clock
        row = connection.execute(
            "SELECT datestamp, seq FROM ticks ORDER BY datestamp DESC LIMIT 1"
        ).fetchone()
        self._last_datestamp = int(row[0]) if row else 0
        self._first = self._seq = self.meta_value("seq", 0)
        self._given = 0
        self._dated = self._first  # up to here records keep the datestamps that they came with
        self._sets: dict[tuple[int, str], int] = {}
        self._joined: dict[tuple[int, str], list[int]] = {}

    # Records

    def put(self, origin: int, records: Iterable[Record | Packed]) -> int:
        """How many of the records were new or different; the others were left as they are."""
        return self._put((origin, self._now(), record) for record in records)

    def put_dated(self, records: Sequence[tuple[int, int, Record | Packed]], answered: int) -> int:
        """Put (origin, datestamp in seconds, record); how many records were new or different.

        A datestamp is kept if nothing later was given out: no record has a later one, and no list was
        answered since (`answered` is the last second of that) which ought to have shown it. The other records
        get the time of the commit. So lists stay in the order of datestamps, and no harvester misses one.
        """
        assert self._seq == self._first, "dated records come first in their transaction"
        first, now = max(answered, self._last_datestamp), int(self._clock())
        kept = sorted((one for one in records if first <= one[1] <= now), key=lambda one: one[1])
        changed = self._put(kept)
        self._dated = self._seq
        ticks = self._connection.execute(
            "SELECT datestamp, min(seq) FROM records WHERE seq > ? GROUP BY datestamp", (self._first,)
        ).fetchall()
        self._connection.executemany("INSERT OR IGNORE INTO ticks VALUES (?, ?)", ticks)
        self._last_datestamp = max([self._last_datestamp, *(stamp for stamp, _ in ticks)])
        stamp = self._now()
        rest = [(one[0], stamp, one[2]) for one in records if not first <= one[1] <= now]
        return changed + self._put(rest)

    def _put(self, records: Iterable[tuple[int, int, Record | Packed]]) -> int:
        rows, members = [], []
        for origin, stamp, record in records:
            self._seq += 1
            flat = record if isinstance(record, Packed) else packed(record)
            rows.append((self._seq, origin, flat[0], stamp, *flat[1:]))
            members += [(set_id, self._seq) for set_id in self._memberships(origin, flat.sets)]
        before = self._connection.total_changes
        self._many(_UPSERT, rows)
        changed = self._connection.total_changes - before
        if changed:
            self._many(_MEMBERS, members)
        return changed

    def _many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Carry out a statement for rows, many at a time."""
        for start in range(0, len(rows), _TOGETHER):
            part = rows[start : start + _TOGETHER]
            marks = f"({', '.join('?' * len(part[0]))})"
            self._connection.execute(
                statement.format(rows=", ".join([marks] * len(part))), list(chain.from_iterable(part))
            )

    def delete(self, origin: int, identifiers: Iterable[str]) -> int:
        """Turn records into deleted ones, which persist and keep their sets; how many there were."""
        count = 0
        for identifier in identifiers:
            row = self._connection.execute(
                "SELECT sets FROM records WHERE identifier = ? AND origin = ? AND deleted = 0",
                (identifier, origin),
            ).fetchone()
            if row is None:
                continue
            self._seq += 1
            self._connection.execute(_TOMBSTONE, (self._seq, self._now(), identifier, origin))
            members = [(i, self._seq) for spec in row[0].split() for i in self._lineage(origin, spec)]
            self._many(_MEMBERS, members)
            count += 1
        return count

    def name_set(self, origin: int, spec: str, name: str) -> None:
        self._connection.execute(
            "UPDATE sets SET name = ? WHERE id = ?", (name, self._lineage(origin, spec)[-1])
        )

    def stamp(self) -> None:
        """Date everything that this transaction changed, and remember where the counter stands."""
        if self._seq == self._first:
            return
        if self._seq > self._dated:
            self._given = self._now()
            self._connection.execute("DELETE FROM ticks WHERE seq > ?", (self._dated,))
            self._connection.execute(
                "UPDATE records SET datestamp = ?1 WHERE seq > ?2 AND datestamp != ?1",
                (self._given, self._dated),
            )
            self._connection.execute(
                "INSERT OR IGNORE INTO ticks VALUES (?, ?)", (self._given, self._dated + 1)
            )
        self.meta("seq", self._seq)

    def late(self) -> bool:
        """Whether the clock has moved past the datestamp that this transaction gave."""
        return self._given != 0 and int(self._clock()) > self._given

    def _now(self) -> int:
        """The clock's second, but never before a datestamp that was given out already."""
        return max(int(self._clock()), self._last_datestamp)

    def sweep(self) -> None:
        """Drop memberships of states that records have left."""
        self._connection.execute("DELETE FROM membership WHERE seq NOT IN (SELECT seq FROM records)")

    # Origins, their state, their journal

    def origin(self, kind: str, name: str, settings: Mapping[str, Any] | None = None) -> int:
        """The number of an origin, entered if new; its settings are brought up to date."""
        self._connection.execute("INSERT OR IGNORE INTO origins (kind, name) VALUES (?, ?)", (kind, name))
        if settings is not None:
            self._connection.execute(
                "UPDATE origins SET settings = ? WHERE kind = ? AND name = ?",
                (json.dumps(settings), kind, name),
            )
        row = self._connection.execute("SELECT id FROM origins WHERE kind = ? AND name = ?", (kind, name))
        return int(row.fetchone()[0])

    def state(self, origin: int, state: Mapping[str, Any]) -> None:
        self._connection.execute("UPDATE origins SET state = ? WHERE id = ?", (json.dumps(state), origin))

    def start_run(self, origin: int, kind: str) -> int:
        cursor = self._connection.execute(
            "INSERT INTO runs (origin, kind, started, outcome, detail) VALUES (?, ?, ?, 'running', '{}')",
            (origin, kind, self._clock()),
        )
        return int(cursor.lastrowid or 0)

    def note_run(self, run: int, detail: Mapping[str, Any], outcome: str = "running") -> None:
        """Record a run's progress; any outcome other than "running" ends it."""
        finished = None if outcome == "running" else self._clock()
        self._connection.execute(
            "UPDATE runs SET detail = ?, outcome = ?, finished = ? WHERE id = ?",
            (json.dumps(detail), outcome, finished, run),
        )

    def drop_run(self, run: int) -> None:
        self._connection.execute("DELETE FROM runs WHERE id = ?", (run,))

    # Failures

    def fail(
        self, origin: int, failure: Failure, *, due: int | None = None, new_attempt: bool = True
    ) -> None:
        """Enter a failure, or one more attempt at what has failed before; `due`: when to retry.

        The time of the first failure stays, and so do the bytes of an attempt that brought some.
        """
        now = int(self._clock())
        if due is not None:  # what is owed is one entry, whatever the stage at which it failed last
            self._connection.execute(
                "UPDATE OR REPLACE failures SET stage = ?1 WHERE origin = ?2 AND place = ?3 AND stage != ?1",
                (failure.stage, origin, failure.where),
            )
        self._connection.execute(
            "INSERT INTO failures (origin, place, stage, reason, raw, at, first, attempts, due) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 1, ?7) ON CONFLICT (origin, place, stage) DO UPDATE SET "
            "reason = ?4, raw = CASE WHEN length(?5) THEN ?5 ELSE raw END, at = ?6, "
            "attempts = attempts + ?8, due = ?7",
            (
                origin, failure.where, failure.stage, failure.reason, failure.raw, now, due, new_attempt,
            ),
        )  # fmt: skip

    def forgive(self, origin: int, places: Iterable[str]) -> None:
        """Drop the failures at these places: what failed there has succeeded, or has gone."""
        self._connection.executemany(
            "DELETE FROM failures WHERE origin = ? AND place = ?", [(origin, place) for place in places]
        )

    def forget_failures(self, origin: int, before: int) -> None:
        """Drop the failures of an origin that have not occurred again since then."""
        self._connection.execute("DELETE FROM failures WHERE origin = ? AND at < ?", (origin, before))

    # Files

    def put_files(self, origin: int, files: Iterable[FileState]) -> None:
        self._connection.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(origin, *file) for file in files],
        )

    def drop_files(self, origin: int, paths: Iterable[str]) -> None:
        self._connection.executemany(
            "DELETE FROM files WHERE origin = ? AND path = ?", [(origin, path) for path in paths]
        )

    # Odds and ends

    def meta(self, key: str, value: Any) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def meta_value(self, key: str, default: Any) -> Any:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else default

    def meta_default(self, key: str, value: bytes) -> bytes:
        """The value that a key has; the given one if it had none."""
        self._connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (key, value))
        return bytes(self.meta_value(key, value))

    def forget(self, origin: int) -> int:
        """Delete all records of an origin (as deletions that persist), its files and failures."""
        cursor = self._connection.execute(
            "SELECT identifier FROM records WHERE origin = ? AND deleted = 0", (origin,)
        )
        count = self.delete(origin, [row[0] for row in cursor.fetchall()])
        self._connection.execute("DELETE FROM files WHERE origin = ?", (origin,))
        self._connection.execute("DELETE FROM failures WHERE origin = ?", (origin,))
        return count

    def _memberships(self, origin: int, sets: str) -> list[int]:
        """The numbers of the sets and of all above them."""
        known = self._joined.get((origin, sets))
        if known is None:
            lineages = [self._lineage(origin, spec) for spec in sets.split()]
            known = self._joined[origin, sets] = list(chain.from_iterable(lineages))
        return known

    def _lineage(self, origin: int, spec: str) -> list[int]:
        """The numbers of a set and of all sets above it, entered if new; the set itself comes last."""
        parts = spec.split(":")
        return [self._set(origin, ":".join(parts[: depth + 1])) for depth in range(len(parts))]

    def _set(self, origin: int, spec: str) -> int:
        known = self._sets.get((origin, spec))
        if known is None:
            self._connection.execute(
                "INSERT OR IGNORE INTO sets (origin, spec) VALUES (?, ?)", (origin, spec)
            )
            row = self._connection.execute(
                "SELECT id FROM sets WHERE spec = ? AND origin = ?", (spec, origin)
            ).fetchone()
            known = self._sets[origin, spec] = int(row[0])
        return known


def packed(record: Record) -> Packed:
    """The record as it will stand in the store."""
    sets = " ".join(record.sets)
    if record.deleted:
        return Packed(record.identifier, 1, sets, "", 0, 0, b"", b"{}", b"{}", b"", None, None)
    vector = record.vector
    metadata, properties = orjson.dumps(record.metadata), orjson.dumps(record.properties)
    terms, positions, length, language = (
        (vector.packed, vector.positions, vector.length, vector.language) if vector else (None, None, 0, "")
    )
    resource = resource_hash(record.resource)
    digest = fingerprint(sets, language, length, resource, metadata, properties, record.raw, terms, positions)
    return Packed(
        record.identifier, 0, sets, language, length, resource, digest,
        metadata, properties, record.raw, terms, positions,
    )  # fmt: skip


def fingerprint(
    sets: str, language: str, length: int, resource: int,
    metadata: bytes, properties: bytes, raw: bytes, terms: bytes | None, positions: bytes | None,
) -> bytes:  # fmt: skip
    """What tells whether a record is the one that is there already."""
    vector, places = b"-" if terms is None else terms, b"-" if positions is None else positions
    head = (
        f"{sets}|{language}|{length} {resource} {len(metadata)} {len(properties)} {len(raw)} {len(vector)}|"
    )
    # SHA-256, because processors have it built in.
    return sha256(b"".join((head.encode(), metadata, properties, raw, vector, places))).digest()[:12]
