"""What a transaction can do, in SQL that SQLite and PostgreSQL both understand.

Docstrings are those of the contract (contract.py).
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, Final

from indlet.model import Failure, JsonMapping, Packed, Record
from indlet.store.content import encode_record
from indlet.store.contract import NO_LIMIT, Clock, FileState
from indlet.store.kept_tables import ANSWERED, COUNTERS, Counter
from indlet.store.packed import packed, sets_with_parents
from indlet.store.sql_departures import SqlDeparturesWriter
from indlet.store.sql_documents import SqlDocumentsWriter
from indlet.store.sql_grants import SqlGrantsWriter
from indlet.store.sql_view import Row, SqlValue
from indlet.store.sql_waiting import SqlWaitingWriter
from indlet.store.tables import COLUMNS

Dated = tuple[int, int | None, Packed]  # origin, datestamp (None: that of the commit), record
KEY: Final = "identifier, origin"
SERVED: Final = '"headers":'  # in the properties of a file that a web server serves


def replaced(properties: str) -> str:
    """What an upsert sets in a record that is there already, and different.

    Where its metadata stays as it is (only its index part has changed), its place and its datestamp in the
    list of metadata stay too. `properties` is the database's way to read those that metadata formats show:
    neither the policy nor, except for files of web servers, a file's size and time. `{}` stands for a table.
    """
    compared = ("deleted", "sets", "resource", "metadata", "raw")
    same = " AND ".join(f"records.{name} = excluded.{name}" for name in compared)
    same += f" AND {properties.format('records')} = {properties.format('excluded')}"
    kept = {
        name: f"CASE WHEN {same} THEN records.{name} ELSE excluded.{name} END"
        for name in ("metadata_seq", "metadata_datestamp")
    }
    return ", ".join(
        f"{name} = {kept.get(name, f'excluded.{name}')}" for name in COLUMNS if name not in KEY.split(", ")
    )


_FILE = ", ".join(FileState._fields)
_FILE_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in FileState._fields if name != "path")
# What a record becomes when it is deleted: its identifier, its sets, and the fact.
_TOMBSTONE = (
    "UPDATE records SET seq = ?, metadata_seq = ?, datestamp = ?, metadata_datestamp = ?, deleted = 1, "
    "digest = ?, metadata = ?, properties = ?, raw = ?, vector = NULL, positions = NULL, length = 0, "
    "resource = 0, language = '' WHERE identifier = ? AND origin = ? AND deleted = 0"
)
_TOGETHER = 400  # identifiers in one question


class SqlTransaction(SqlWaitingWriter, SqlDocumentsWriter, SqlGrantsWriter, SqlDeparturesWriter):
    """A `Transaction` by SQL. `?` stands for a value; each database says how a statement is carried out.

    `begin` is called once this transaction is the only one that writes.
    """

    def __init__(self, clock: Clock, require_room: Callable[[int], None]) -> None:
        """`require_room` raises StoreFull where the disk has no room for that many bytes."""
        self._clock, self._require_room = clock, require_room
        self._given = 0
        self._kept = NO_LIMIT  # the earliest datestamp that a record came with and kept
        self._dates: set[int] = set()  # that records were written with
        self._sets: dict[tuple[int, str], int] = {}
        self._joined: dict[tuple[int, str], list[int]] = {}
        self._kinds: dict[int, str] = {}  # of origins

    def begin(self) -> None:
        # Earlier versions kept the last answer in the store itself.
        self._last_datestamp = max(self._newest_datestamp(), *(one.value for one in self.select(ANSWERED)), 0)
        self._first = self._seq = self.counter("seq")
        self._dated = self._first  # up to here records keep the datestamps that they came with

    def become_only_writer(self) -> None:
        """On SQLite every writing transaction is the only one."""

    @abstractmethod
    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        """Carry out a statement; its rows."""

    @abstractmethod
    def _run(self, statement: str, values: Sequence[SqlValue] = ()) -> None:
        """Carry out a statement that gives no rows."""

    @abstractmethod
    def _many(self, statement: str, rows: Sequence[Sequence[SqlValue]]) -> None:
        """Carry out a statement for each row."""

    @abstractmethod
    def _upsert(self, records: Sequence[Dated]) -> Sequence[int]:
        """Store records, no two of one key, numbered on from `_seq`; the numbers of those that were new or
        different."""

    @abstractmethod
    def _join(self, members: Sequence[tuple[int, int]]) -> None:
        """Enter (set, seq) pairs."""

    @abstractmethod
    def _answered(self) -> int:
        """The last second in which a list was answered, as known now (`Store.note_answer`)."""

    @abstractmethod
    def meta(self, key: str, value: float | str | bytes) -> None: ...

    @abstractmethod
    def meta_value(self, key: str, default: Any) -> Any: ...

    @abstractmethod
    def meta_default(self, key: str, value: bytes) -> bytes: ...

    # Records

    def put(self, origin: int, records: Iterable[Record | Packed]) -> int:
        return self._put([(origin, None, packed(record)) for record in records])

    def put_dated(self, records: Sequence[tuple[int, int, Record | Packed]]) -> int:
        self.become_only_writer()
        assert self._seq == self._first, "dated records come first in their transaction"
        first, now = max(self._last_datestamp, self._answered()), int(self._clock())
        kept = sorted((one for one in records if first <= one[1] <= now), key=lambda one: one[1])
        changed = self._put([(origin, stamp, packed(record)) for origin, stamp, record in kept])
        self._dated = self._seq
        ticks = self._all(
            "SELECT datestamp, min(seq) FROM records WHERE seq > ? GROUP BY datestamp", (self._first,)
        )
        self._many("INSERT INTO ticks VALUES (?, ?) ON CONFLICT DO NOTHING", ticks)
        self._last_datestamp = max([self._last_datestamp, *(stamp for stamp, _ in ticks)])
        self._kept = min((stamp for stamp, _ in ticks), default=NO_LIMIT)
        return changed + self._put(
            [(one[0], None, packed(one[2])) for one in records if not first <= one[1] <= now]
        )

    def _put(self, records: Sequence[Dated]) -> int:
        rows = [(origin, stamp, self._encoded(origin, one)) for origin, stamp, one in _latest(records)]
        if not rows:
            return 0
        # Deletions need little room, and make some.
        size = sum(len(r.metadata) + len(r.raw) + len(r.vector or b"") for *_, r in rows if not r.deleted)
        if size:
            self._require_room(size)
        changed = self._upsert(rows)
        first = self._seq - len(rows) + 1
        sets = [(origin, record.sets) for origin, _, record in rows]
        if len(changed) < len(rows):
            sets = [sets[seq - first] for seq in changed]
        self._know_sets(set(sets))
        self._join([(i, seq) for seq, key in zip(changed, sets, strict=True) for i in self._joined[key]])
        self._note_departures()
        return len(changed)

    def _encoded(self, origin: int, record: Packed) -> Packed:
        if origin not in self._kinds:
            self._kinds = self._origin_kinds()
        return encode_record(record, is_harvested=self._kinds.get(origin) == "source")

    def _origin_kinds(self) -> dict[int, str]:
        return dict(self._all("SELECT id, kind FROM origins"))

    def delete(self, origin: int, identifiers: Iterable[str]) -> int:
        wanted = list(dict.fromkeys(identifiers))
        count = 0
        for start in range(0, len(wanted), _TOGETHER):
            part = wanted[start : start + _TOGETHER]
            found = self._in_parts(
                "SELECT identifier, sets FROM records WHERE origin = ? AND deleted = 0 "
                "AND identifier IN ({})", [origin], part,
            )  # fmt: skip
            sets: dict[str, str] = dict(found)
            rows, members, now = [], [], self._now()
            for identifier in part:
                if identifier in sets:
                    self._seq += 1
                    numbers = (self._seq, self._seq, now, now)
                    rows.append((*numbers, b"", b"{}", b"{}", b"", identifier, origin))
                    members.append((self._seq, sets[identifier]))
            self._many(_TOMBSTONE, rows)
            self._join_sets(origin, members)
            count += len(rows)
        return count

    def _join_sets(self, origin: int, places: Iterable[tuple[int, str]]) -> None:
        places = list(places)
        self._know_sets({(origin, specs) for _, specs in places})
        self._join([(i, seq) for seq, specs in places for i in self._joined[origin, specs]])

    def forget(self, origin: int) -> int:
        rows = self._all("SELECT identifier FROM records WHERE origin = ? AND deleted = 0", (origin,))
        count = self.delete(origin, [row[0] for row in rows])
        for table in ("files", "failures", "withheld", "documents"):
            self._run(f"DELETE FROM {table} WHERE origin = ?", (origin,))
        return count

    def name_set(self, origin: int, spec: str, name: str) -> None:
        self._know_sets({(origin, spec)})
        self._run("UPDATE sets SET name = ? WHERE id = ?", (name, self._sets[origin, spec]))

    def sweep(self) -> None:
        self._run(
            "DELETE FROM membership WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.seq = membership.seq) "
            "AND NOT EXISTS (SELECT 1 FROM records r WHERE r.metadata_seq = membership.seq) "
            "AND NOT EXISTS (SELECT 1 FROM grant_records v WHERE v.seq = membership.seq)"
        )

    # Datestamps

    def stamp(self) -> None:
        """Date everything that this transaction changed, and remember where the counter stands."""
        if self._seq > self._first:
            if self._seq > self._dated:
                self._date()
            self.upsert(COUNTERS, [Counter("seq", self._seq)])

    def stamp_again(self) -> None:
        """Date it anew, in a transaction of its own. Others may have committed meanwhile: their changes get
        the same date, for dates never decrease along the feed; the counter is theirs."""
        self._last_datestamp = self._newest_datestamp()
        self._date()

    def late(self) -> bool:
        """Whether the clock, or an answer, has moved past a datestamp that this transaction gave."""
        if self._kept < NO_LIMIT and self._kept < self._answered():
            # An answer that does not show these records is later than they are: they get the commit's date.
            self._dates.add(self._kept)
            self._dated, self._kept = self._first, NO_LIMIT
            return True
        return self._given != 0 and self._second() > self._given

    def _second(self) -> int:
        """The earliest second that a commit may be dated now."""
        return max(int(self._clock()), self._answered())

    def _date(self) -> None:
        given = self._given = self._now()
        self._run("DELETE FROM ticks WHERE seq > ?", (self._dated,))
        if self._dates != {given}:
            # Metadata that stayed as it was keeps its date.
            new = "metadata_seq > ?"
            self._run(
                "UPDATE records SET datestamp = ?, "
                f"metadata_datestamp = CASE WHEN {new} THEN ? ELSE metadata_datestamp END "
                f"WHERE seq > ? AND (datestamp != ? OR ({new} AND metadata_datestamp != ?))",
                (given, self._dated, given, self._dated, given, self._dated, given),
            )
        self._run("INSERT INTO ticks VALUES (?, ?) ON CONFLICT DO NOTHING", (given, self._dated + 1))

    def _now(self) -> int:
        """The clock's second, but never before a datestamp or an answer that was given out already."""
        now = max(self._second(), self._last_datestamp)
        self._dates.add(now)
        return now

    def _newest_datestamp(self) -> int:
        (row,) = self._all("SELECT max(datestamp) FROM ticks")
        return int(row[0] or 0)

    # Origins, their state, their journal

    def origin(self, kind: str, name: str, settings: JsonMapping | None = None) -> int:
        rows = self._all("SELECT id FROM origins WHERE kind = ? AND name = ?", (kind, name))
        if not rows:
            rows = self._all("INSERT INTO origins (kind, name) VALUES (?, ?) RETURNING id", (kind, name))
        number = int(rows[0][0])
        if settings is not None:
            self._run("UPDATE origins SET settings = ? WHERE id = ?", (json.dumps(settings), number))
        return number

    def rename_origin(self, kind: str, name: str, wanted: str) -> bool:
        if self._all("SELECT 1 FROM origins WHERE kind = ? AND name = ?", (kind, wanted)):
            return False
        self._run("UPDATE origins SET name = ? WHERE kind = ? AND name = ?", (wanted, kind, name))
        return True

    def state(self, origin: int, state: JsonMapping) -> None:
        self._run("UPDATE origins SET state = ? WHERE id = ?", (json.dumps(state), origin))

    def start_run(self, origin: int, kind: str) -> int:
        (row,) = self._all(
            "INSERT INTO runs (origin, kind, started, outcome, detail) VALUES (?, ?, ?, 'running', '{}') "
            "RETURNING id",
            (origin, kind, self._clock()),
        )
        return int(row[0])

    def note_run(self, run: int, detail: JsonMapping, outcome: str = "running") -> None:
        finished = None if outcome == "running" else self._clock()
        self._run(
            "UPDATE runs SET detail = ?, outcome = ?, finished = ? WHERE id = ?",
            (json.dumps(detail), outcome, finished, run),
        )

    def drop_run(self, run: int) -> None:
        self._run("DELETE FROM runs WHERE id = ?", (run,))

    # Failures

    def fail(
        self, origin: int, failure: Failure, *, due: int | None = None, new_attempt: bool = True
    ) -> None:
        now = first = int(self._clock())
        attempts, raw = 1, failure.raw
        reason = failure.reason.replace("\0", "\ufffd")  # not every database keeps a NUL in text
        values: list[SqlValue] = [origin, failure.where]
        here = "origin = ? AND place = ?"
        if due is None:
            here, values = f"{here} AND stage = ?", [*values, failure.stage]
        if earlier := self._all(f"SELECT first, attempts, raw FROM failures WHERE {here}", values):
            first = min(row[0] for row in earlier)
            attempts = max(row[1] for row in earlier) + int(new_attempt)
            raw = raw or max(row[2] for row in earlier)
            self._run(f"DELETE FROM failures WHERE {here}", values)
        self._run(
            "INSERT INTO failures (origin, place, stage, reason, raw, at, first, attempts, due) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (origin, failure.where, failure.stage, reason, raw, now, first, attempts, due),
        )

    def forgive(self, origin: int, places: Iterable[str]) -> None:
        self._many(
            "DELETE FROM failures WHERE origin = ? AND place = ?", [(origin, place) for place in places]
        )

    def forget_failures(self, origin: int, before: int) -> None:
        self._run("DELETE FROM failures WHERE origin = ? AND at < ?", (origin, before))

    # Files

    def put_files(self, origin: int, files: Iterable[FileState]) -> None:
        marks = ", ".join("?" * len(FileState._fields))
        self._many(
            f"INSERT INTO files (origin, {_FILE}) VALUES (?, {marks}) "
            f"ON CONFLICT (origin, path) DO UPDATE SET {_FILE_REPLACED}",
            [(origin, *file) for file in files],
        )

    def drop_files(self, origin: int, paths: Iterable[str]) -> None:
        self._many("DELETE FROM files WHERE origin = ? AND path = ?", [(origin, path) for path in paths])

    # Whole tables, for a copy

    def clear(self, name: str) -> None:
        self._run(f"DELETE FROM {name}")

    def loaded(self) -> None:
        """Called when all tables have been loaded: numbers that are given from now on are new ones."""

    # Sets

    def _know_sets(self, wanted: Set[tuple[int, str]]) -> None:
        """Find the numbers of sets, given as (origin, setSpecs), and of all above them; enter new ones."""
        missing = sorted(wanted - self._joined.keys())
        lineages = {(origin, specs): sets_with_parents(specs) for origin, specs in missing}
        specs = {(origin, spec) for (origin, _), above in lineages.items() for spec in above}
        self._find_sets(sorted(specs - self._sets.keys()))
        if new := sorted(specs - self._sets.keys()):
            self._many("INSERT INTO sets (origin, spec) VALUES (?, ?)", new)
            self._find_sets(new)
        for (origin, listed), above in lineages.items():
            self._joined[origin, listed] = [self._sets[origin, spec] for spec in above]

    def _find_sets(self, specs: Sequence[tuple[int, str]]) -> None:
        rows = self._in_parts(
            "SELECT origin, spec, id FROM sets WHERE spec IN ({})", [], [spec for _, spec in specs]
        )
        self._sets.update({(origin, spec): number for origin, spec, number in rows})


def _latest(records: Sequence[Dated]) -> Sequence[Dated]:
    """The last of each key, in the order in which these came, by names that every database can hold."""
    if "\0" in "".join([record.identifier for _, _, record in records]):  # no XML holds one
        records = [
            (origin, stamp, record._replace(identifier=record.identifier.replace("\0", "\ufffd")))
            for origin, stamp, record in records
        ]
    found = {(origin, record.identifier): (origin, stamp, record) for origin, stamp, record in records}
    if len(found) == len(records):
        return records
    found.clear()
    for one in records:
        key = (one[0], one[2].identifier)
        found.pop(key, None)
        found[key] = one
    return list(found.values())
