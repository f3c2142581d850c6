"""What a snapshot can tell, in SQL that SQLite and PostgreSQL both understand.

Docstrings are those of the contract (contract.py).
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import ClassVar, NamedTuple

import orjson

from indlet.model import JsonObject, Stored
from indlet.store.content import decode_content, is_encoded, original_of
from indlet.store.contract import (
    NO_LIMIT,
    PARTS,
    FileState,
    GrantView,
    OpenFailure,
    Origin,
    RunEntry,
    Shared,
    StoredFailure,
)
from indlet.store.sql_departures import departures, departures_shown
from indlet.store.sql_documents import SqlDocumentsView
from indlet.store.sql_grants import IS_SHOWN, PLACED, SqlGrantsView, given_places, own_places
from indlet.store.sql_waiting import Row as Row
from indlet.store.sql_waiting import SqlValue as SqlValue
from indlet.store.sql_waiting import SqlWaitingView
from indlet.store.tables import TABLES

# A row as `Stored`, without the look at its length that `Stored._make` takes: whole collections pass here.
_stored: Callable[[Row], Stored] = partial(tuple.__new__, Stored)
_METADATA, _RAW, _VECTOR = map(Stored._fields.index, ("metadata", "raw", "vector"))
_FILE = ", ".join(FileState._fields)
_ORIGINAL = "CASE WHEN length(r.raw) > 0 THEN r.raw ELSE r.metadata END"  # for `original_of`
_RUN = ", ".join(RunEntry._fields)


def _run(row: Row) -> RunEntry:
    return RunEntry._make((*row[:6], orjson.loads(row[6])))


_seq_of_row = itemgetter(0)
_seq_of_stored = itemgetter(Stored._fields.index("seq"))


class _Asked(NamedTuple):
    """What part of the order of changes a list covers: of metadata, unless it is said otherwise."""

    after: int = 0
    since: int | None = None
    until: int | None = None
    set_spec: str | None = None
    metadata_only: bool = True
    before: int | None = None
    identifier: str | None = None

    @property
    def seq(self) -> str:
        return "r.metadata_seq" if self.metadata_only else "r.seq"


class SqlView(SqlWaitingView, SqlDocumentsView, SqlGrantsView):
    """A `View` by SQL. `?` stands for a value; each database says how a statement is carried out."""

    no_bytes: ClassVar[str]  # as this database writes them
    join: ClassVar[str] = "JOIN"
    _known: list[Origin] | None = None  # a request asks for the origins more than once

    @abstractmethod
    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        """All rows at once."""

    @abstractmethod
    def _each(self, statement: str, values: Sequence[SqlValue] = ()) -> Iterator[Row]:
        """The rows one after another, however many there are."""

    def _one(self, statement: str, values: Sequence[SqlValue] = ()) -> Row | None:
        return next(iter(self._all(statement, values)), None)

    # The change feed

    def changes(
        self, after: int = 0, limit: int = NO_LIMIT, *, parts: Iterable[str] = PARTS
    ) -> Iterator[Stored]:
        parts = tuple(parts)
        rows = self._each(
            f"SELECT {self._columns(parts)} FROM records r WHERE r.seq > ? ORDER BY r.seq LIMIT ?",
            (after, limit),
        )
        return map(_reader(parts), rows)

    def last_seq(self) -> int:
        (row,) = self._all("SELECT max(seq) FROM records")
        return int(row[0] or 0)

    # Lists

    def page(
        self,
        limit: int,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
        parts: Iterable[str] = PARTS,
        metadata_only: bool = False,
        grants: Sequence[GrantView] = (),
        identifier: str | None = None,
    ) -> list[Stored]:
        parts = tuple(parts)
        asked = _Asked(after, since, until, set_spec, metadata_only, identifier=identifier)
        clause, values = self._where(asked, origins, grants)
        rows = self._all(
            f"SELECT {self._columns(parts, metadata_only)} FROM {clause} "
            f"ORDER BY {_order(set_spec, metadata_only)} LIMIT ?",
            (*values, limit),
        )
        if not (placed := self._placed(asked, origins, grants)):
            return list(map(_reader(parts), rows))
        for clause, values in placed:
            columns = self._columns(parts, metadata_only, placed=True)
            rows += self._all(f"SELECT {columns} FROM {clause} ORDER BY v.seq LIMIT ?", (*values, limit))
        rows.sort(key=_seq_of_stored)
        return list(map(_reader(parts), rows[:limit]))

    def newest(
        self,
        limit: int,
        *,
        before: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
    ) -> list[Stored]:
        clause, values = self._where(_Asked(set_spec=set_spec, before=before), origins)
        order = f"{_order(set_spec, True)} DESC"
        asked = f"SELECT {self._columns(PARTS, True)} FROM {clause} ORDER BY {order} LIMIT ?"
        return list(map(_reader(), self._all(asked, (*values, limit))))

    def latest_ids(
        self, limit: int, *, before: int | None = None, origins: Iterable[int] | None = None
    ) -> list[tuple[int, int]]:
        clause, values = self._where(_Asked(before=before), origins)
        return self._all(
            f"SELECT r.id, r.metadata_seq FROM {clause} AND r.deleted = 0 "
            f"ORDER BY {_order(None, True)} DESC LIMIT ?",
            (*values, limit),
        )

    def withdrawn(self, origin: int, limit: int) -> list[tuple[str, int]]:
        return self._all(
            "SELECT identifier, datestamp FROM records WHERE origin = ? AND deleted != 0 "
            "ORDER BY seq DESC LIMIT ?",
            (origin, limit),
        )

    def headers(
        self,
        limit: int,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
        metadata_only: bool = False,
        grants: Sequence[GrantView] = (),
    ) -> list[tuple[int, str, int, int, str]]:
        asked = _Asked(after, since, until, set_spec, metadata_only)
        clause, values = self._where(asked, origins, grants)
        of = "r.metadata_" if metadata_only else "r."
        rows = self._all(
            f"SELECT {of}seq, r.identifier, {of}datestamp, r.deleted, r.sets FROM {clause} "
            f"ORDER BY {_order(set_spec, metadata_only)} LIMIT ?",
            (*values, limit),
        )
        if not (placed := self._placed(asked, origins, grants)):
            return rows
        columns = "{seq}, r.identifier, {datestamp}, {deleted}, {sets}".format(**PLACED)
        for clause, values in placed:
            rows += self._all(f"SELECT {columns} FROM {clause} ORDER BY v.seq LIMIT ?", (*values, limit))
        return sorted(rows)[:limit]

    def originals(
        self,
        limit: int,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
        metadata_only: bool = False,
        grants: Sequence[GrantView] = (),
    ) -> Iterator[tuple[int, str, int, str, bytes | None]]:
        asked = _Asked(after, since, until, set_spec, metadata_only)
        clause, values = self._where(asked, origins, grants)
        of = "r.metadata_" if metadata_only else "r."
        # A column more takes a tenth longer.
        columns = f"{of}seq, r.identifier, {of}datestamp, r.sets, CASE r.deleted WHEN 0 THEN {_ORIGINAL} END"
        rows = self._each(
            f"SELECT {columns} FROM {clause} ORDER BY {_order(set_spec, metadata_only)} LIMIT ?",
            (*values, limit),
        )
        if not (placed := self._placed(asked, origins, grants)):
            return map(_with_original, rows)
        columns = "{seq}, r.identifier, {datestamp}, {sets}".format(**PLACED)
        columns += f", CASE WHEN r.deleted = 0 AND {IS_SHOWN} THEN {_ORIGINAL} END"
        more = [
            self._each(f"SELECT {columns} FROM {clause} ORDER BY v.seq LIMIT ?", (*values, limit))
            for clause, values in placed
        ]
        return map(_with_original, islice(merge(rows, *more, key=_seq_of_row), limit))

    def count(
        self,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
        metadata_only: bool = False,
        grants: Sequence[GrantView] = (),
    ) -> int:
        asked = _Asked(after, since, until, set_spec, metadata_only)
        counted = [self._where(asked, origins, grants), *self._placed(asked, origins, grants)]
        return sum(self._all(f"SELECT count(*) FROM {clause}", values)[0][0] for clause, values in counted)

    def addresses(
        self, limit: int, *, after: int = 0, origins: Iterable[int] | None = None
    ) -> list[tuple[int, int, str | None]]:
        clause, values = self._where(_Asked(after), origins)
        rows = self._each(
            f"SELECT r.metadata_seq, r.metadata_datestamp, r.properties FROM {clause} AND r.deleted = 0 "
            "ORDER BY r.metadata_seq LIMIT ?",
            (*values, limit),
        )
        return [(seq, stamp, orjson.loads(properties).get("url")) for seq, stamp, properties in rows]

    def _where(
        self, asked: _Asked, origins: Iterable[int] | None, grants: Sequence[GrantView] = ()
    ) -> tuple[str, list[SqlValue]]:
        """The tables and the condition of a list, and the condition's values."""
        seq = asked.seq
        (after, before), values = self._bounds(asked), list[SqlValue]()
        if asked.set_spec is None:
            clause, values = f"records r WHERE {seq} > ? AND {seq} < ?", [after, before]
        else:
            chosen, values = self._in_set(asked.set_spec)
            tables = f"membership m {self.join} records r ON {seq} = m.seq"
            clause = f"{tables} WHERE {chosen} AND m.seq > ? AND m.seq < ?"
            values += [after, before]
        if asked.identifier is not None:
            clause, values = f"{clause} AND r.identifier = ?", [*values, asked.identifier]
        if origins is not None:
            chosen, more = _among("r.origin", origins)
            for grant in grants:
                condition, used = own_places(grant, seq)
                chosen, more = f"{chosen} OR {condition}", [*more, *used]
            clause, values = f"{clause} AND ({chosen})", [*values, *more]
        return clause, values

    def _placed(
        self, asked: _Asked, origins: Iterable[int] | None, grants: Sequence[GrantView]
    ) -> list[tuple[str, list[SqlValue]]]:
        """The same for the records whose places grants or departures from the set determine."""
        found = list(self._granted(asked, grants)) if grants else []
        return found if asked.set_spec is None else [*found, *self._departed(asked, origins, grants)]

    def _departed(
        self, asked: _Asked, origins: Iterable[int] | None, grants: Sequence[GrantView]
    ) -> Iterator[tuple[str, list[SqlValue]]]:
        chosen, sets = self._in_set(asked.set_spec or "")
        if not self._all(f"SELECT 1 FROM departures m WHERE {chosen} LIMIT 1", sets):
            return
        shown, values = _among("r.origin", origins)
        for grant in grants:
            condition, more = departures_shown(grant)
            shown, values = f"{shown} OR {condition}", [*values, *more]
        tables = f"{departures(chosen)} v {self.join} records r ON r.id = v.record"
        yield f"{tables} WHERE v.seq > ? AND v.seq < ? AND ({shown})", [*sets, *self._bounds(asked), *values]

    def _granted(self, asked: _Asked, grants: Sequence[GrantView]) -> Iterator[tuple[str, list[SqlValue]]]:
        bounds = self._bounds(asked)
        for grant in grants:
            condition, values = given_places(grant, asked.seq)
            tables = f"grant_records v {self.join} records r ON r.id = v.record"
            values = [*bounds, *values]
            if asked.set_spec is not None:
                chosen, more = self._in_set(asked.set_spec)
                tables = f"membership m {self.join} grant_records v ON v.seq = m.seq {self.join} records r"
                tables += " ON r.id = v.record"
                condition, values = f"{condition} AND {chosen}", [*values, *more]
            if asked.identifier is not None:
                tables = f"records r {self.join} grant_records v ON v.record = r.id"
                condition, values = f"{condition} AND r.identifier = ?", [*values, asked.identifier]
            yield f"{tables} WHERE v.seq > ? AND v.seq < ? AND {condition}", values

    def _bounds(self, asked: _Asked) -> tuple[int, int]:
        """The places between which a list is."""
        after, before = asked.after, NO_LIMIT if asked.before is None else asked.before
        if asked.since is not None:
            after = max(after, self._first_seq(asked.since) - 1)
        if asked.until is not None:
            before = min(before, self._first_seq(asked.until + 1))
        return after, before

    def _in_set(self, set_spec: str) -> tuple[str, list[SqlValue]]:
        ids = [row[0] for row in self._all("SELECT id FROM sets WHERE spec = ?", (set_spec,))]
        return _among("m.set_id", ids)

    def _first_seq(self, datestamp: int) -> int:
        """That of the first change at a datestamp or later: datestamps never decrease along the feed."""
        row = self._one("SELECT seq FROM ticks WHERE datestamp >= ? ORDER BY datestamp LIMIT 1", (datestamp,))
        return NO_LIMIT if row is None else int(row[0])

    # Single records

    def get(
        self, identifier: str, origins: Sequence[int] | None = None, *, metadata_only: bool = False
    ) -> Stored | None:
        chosen, values = _among("r.origin", origins)
        row = self._one(
            f"SELECT {self._columns(PARTS, metadata_only)} FROM records r "
            f"WHERE r.identifier = ? AND {chosen} ORDER BY r.deleted, r.seq DESC LIMIT 1",
            (identifier, *values),
        )
        return _reader()(row) if row else None

    def shared_identifiers(self) -> list[Shared]:
        rows = self._all(
            "WITH twice AS (SELECT identifier FROM records GROUP BY identifier HAVING count(*) > 1) "
            "SELECT a.origin, b.origin, count(*), min(a.identifier) FROM twice "
            "JOIN records a ON a.identifier = twice.identifier "
            "JOIN records b ON b.identifier = a.identifier AND b.origin > a.origin "
            "WHERE a.deleted = 0 AND b.deleted = 0 AND (a.resource = 0 OR a.resource != b.resource) "
            "GROUP BY a.origin, b.origin ORDER BY a.origin, b.origin"
        )
        return [Shared(*row) for row in rows]

    def by_id(
        self, ids: Sequence[int], *, parts: Iterable[str] = PARTS, metadata_only: bool = False
    ) -> dict[int, Stored]:
        found: dict[int, Stored] = {}
        parts = tuple(parts)
        columns, read = self._columns(parts, metadata_only), _reader(parts)
        for start in range(0, len(ids), 500):
            chosen, values = _among("r.id", ids[start : start + 500])
            rows = self._all(f"SELECT {columns} FROM records r WHERE {chosen}", values)
            found.update((row[0], read(row)) for row in rows)
        return found

    def same_resource(self, stored: Stored) -> list[Stored]:
        ((origins,),) = self._all("SELECT count(*) FROM origins")
        rows = self._all(
            f"SELECT {self._columns()} FROM records r WHERE r.resource = ? AND r.resource != 0 LIMIT ?",
            (stored.resource, origins + 1),
        )
        found = sorted(map(_reader(), rows))
        if len({other.origin for other in found}) < len(found):
            return []
        return [other for other in found if other.id != stored.id]

    def identifiers(self, origin: int, *, live: bool = True) -> Iterator[str]:
        rows = self._each(
            f"SELECT identifier FROM records WHERE origin = ? {'AND deleted = 0' if live else ''}", (origin,)
        )
        return (row[0] for row in rows)

    def documents(self, origin: int, identifier: str) -> list[str]:
        rows = self._all(
            "SELECT identifier FROM records WHERE origin = ? AND deleted = 0 "
            "AND (identifier = ? OR (identifier > ? AND identifier < ?))",
            (origin, identifier, f"{identifier};", f"{identifier}<"),
        )
        return [row[0] for row in rows]

    def totals(self) -> dict[int, tuple[int, int]]:
        rows = self._all(
            "SELECT origin, sum(CASE WHEN deleted = 0 THEN 1 ELSE 0 END), "
            "sum(CASE WHEN deleted = 0 THEN 0 ELSE 1 END) FROM records GROUP BY origin ORDER BY origin"
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def datestamps(self) -> tuple[int, int] | None:
        (row,) = self._all("SELECT min(datestamp), max(datestamp) FROM ticks")
        return None if row[0] is None else (row[0], row[1])

    def latest(self, origins: Iterable[int] | None = None) -> int | None:
        clause, values = self._where(_Asked(), origins)
        row = self._one(
            f"SELECT r.metadata_datestamp FROM {clause} ORDER BY r.metadata_seq DESC LIMIT 1", values
        )
        return int(row[0]) if row else None

    # Sets

    def sets(self, origins: Iterable[int] | None = None) -> list[tuple[str, str]]:
        chosen, values = _among("origin", origins)
        return self._all(
            f"SELECT spec, max(name) FROM sets WHERE {chosen} GROUP BY spec ORDER BY spec", values
        )

    def set_names(self, origins: Iterable[int] | None = None) -> list[tuple[int, str, str]]:
        chosen, values = _among("origin", origins)
        return self._all(
            f"SELECT origin, spec, name FROM sets WHERE name != '' AND {chosen} ORDER BY spec, origin", values
        )

    # Origins, journal, failures, files

    def origins(self, kind: str | None = None) -> list[Origin]:
        if self._known is None:
            self._known = self._origins("TRUE", [])
        return [origin for origin in self._known if kind is None or origin.kind == kind]

    def origin(self, kind: str, name: str) -> Origin | None:
        return next(iter(self._origins("kind = ? AND name = ?", [kind, name])), None)

    def _origins(self, condition: str, values: list[SqlValue]) -> list[Origin]:
        statement = f"SELECT id, kind, name, settings, state FROM origins WHERE {condition} ORDER BY id"
        return [Origin(*row) for row in self._all(statement, values)]

    def state(self, origin: int) -> JsonObject:
        row = self._one("SELECT state FROM origins WHERE id = ?", (origin,))
        return dict(json.loads(row[0])) if row else {}

    def runs(self, origin: int | None = None, limit: int = 50, outcome: str | None = None) -> list[RunEntry]:
        (chosen, values), (ended, outcomes) = _equal("origin", origin), _equal("outcome", outcome)
        rows = self._all(
            f"SELECT {_RUN} FROM runs WHERE {chosen} AND {ended} ORDER BY id DESC LIMIT ?",
            (*values, *outcomes, limit),
        )
        return [_run(row) for row in rows]

    def recent_runs(self, origins: Sequence[int], limit: int) -> dict[int, list[RunEntry]]:
        one = f"SELECT * FROM (SELECT {_RUN} FROM runs WHERE origin = ? ORDER BY id DESC LIMIT ?) AS recent"
        found = dict[int, list[RunEntry]]()
        for start in range(0, len(origins), 100):  # SQLite combines 500 queries at most
            part = origins[start : start + 100]
            query = " UNION ALL ".join([one] * len(part)) + " ORDER BY origin, id DESC"
            for row in self._all(query, [value for origin in part for value in (origin, limit)]):
                found.setdefault(row[1], []).append(_run(row))
        return found

    def failures(self, origin: int | None = None) -> Iterator[StoredFailure]:
        chosen, values = _equal("origin", origin)
        rows = self._each(
            "SELECT origin, place, stage, reason, raw, at, first, attempts, due FROM failures "
            f"WHERE {chosen} ORDER BY origin, place, stage",
            values,
        )
        return map(StoredFailure._make, rows)

    def stored_bytes(self, origin: int) -> int:
        parts = ("metadata", "properties", "raw", "vector", "positions")
        records = " + ".join(f"coalesce(length({part}), 0)" for part in parts)
        rows = self._all(
            f"SELECT (SELECT coalesce(sum({records}), 0) FROM records WHERE origin = ?) + "
            "(SELECT coalesce(sum(length(raw)), 0) FROM failures WHERE origin = ?)",
            (origin, origin),
        )
        return int(rows[0][0])

    def open_failures(self, origin: int) -> Iterator[OpenFailure]:
        rows = self._each(
            "SELECT place, max(stage), min(first), min(due) FROM failures WHERE origin = ? "
            "GROUP BY place ORDER BY coalesce(min(due), 0), place",
            (origin,),
        )
        return map(OpenFailure._make, rows)

    def failure_counts(self) -> dict[int, int]:
        return dict(self._all("SELECT origin, count(*) FROM failures GROUP BY origin"))

    def files(self, origin: int) -> Iterator[FileState]:
        rows = self._each(f"SELECT {_FILE} FROM files WHERE origin = ? ORDER BY path", (origin,))
        return map(FileState._make, rows)

    def file(self, origin: int, path: str) -> FileState | None:
        row = self._one(f"SELECT {_FILE} FROM files WHERE origin = ? AND path = ?", (origin, path))
        return FileState._make(row) if row else None

    # Whole tables, for a copy

    def rows(self, name: str, *, after: int | None = None) -> Iterator[Row]:
        """All rows of a table in a fixed order; of records, those after a seq."""
        table = TABLES[name]
        chosen, values = ("TRUE", []) if after is None else ("seq > ?", [after])
        return self._each(
            f"SELECT {', '.join(table.columns)} FROM {name} WHERE {chosen} ORDER BY {', '.join(table.order)}",
            values,
        )

    @abstractmethod
    def metas(self) -> JsonObject:
        """Every single value by its key."""

    def _columns(
        self, parts: Iterable[str] = PARTS, metadata_only: bool = False, *, placed: bool = False
    ) -> str:
        """The columns of `Stored`, those of its heavy parts only that are asked for.

        Field terms are not kept: they follow from the metadata, and are made on the way into the index.
        """
        wanted = set(parts)
        instead = {"fields": self.no_bytes}
        if metadata_only:
            instead |= {name: f"r.metadata_{name}" for name in ("seq", "datestamp")}
        for name in set(PARTS) - wanted:
            instead[name] = "NULL" if name in ("vector", "positions") else self.no_bytes
        if "metadata" not in wanted:
            # Metadata stand in for raw ones, and for a vector, where there is none, or hold both.
            wanting = {"raw": "length(r.raw) = 0", "vector": "r.vector IS NULL"}
            if used := " OR ".join(clause for part, clause in wanting.items() if part in wanted):
                instead["metadata"] = f"CASE WHEN {used} THEN r.metadata ELSE {self.no_bytes} END"
        if placed:
            instead |= PLACED
            for name in ("metadata", "properties", "raw"):
                instead[name] = (
                    f"CASE WHEN {IS_SHOWN} THEN {instead.get(name, f'r.{name}')} ELSE {self.no_bytes} END"
                )
        return ", ".join(instead.get(name, f"r.{name}") for name in Stored._fields)


def _reader(parts: Iterable[str] = PARTS) -> Callable[[Row], Stored]:
    """What makes a `Stored` of a row of `_columns(parts)`, and takes encoded content apart."""
    wanted = set(parts)

    def read(row: Row) -> Stored:
        if not is_encoded(row[_METADATA]):
            return _stored(row)
        metadata, raw = decode_content(row[_METADATA])
        is_needed = ("raw" in wanted and not raw) or ("vector" in wanted and row[_VECTOR] is None)
        return _stored((
            *row[:_METADATA], metadata if "metadata" in wanted or is_needed else b"", row[_METADATA + 1],
            raw if "raw" in wanted else b"", *row[_RAW + 1 :],
        ))  # fmt: skip

    return read


def _with_original(row: Row) -> Row:
    return row if row[4] is None else (*row[:4], original_of(row[4]))


def _order(set_spec: str | None, metadata_only: bool) -> str:
    if set_spec is not None:
        return "m.seq"
    return "r.metadata_seq" if metadata_only else "r.seq"


def _equal(column: str, value: SqlValue) -> tuple[str, list[SqlValue]]:
    """The condition that a column has a value, or any where that is None; and the condition's values."""
    return ("TRUE", []) if value is None else (f"{column} = ?", [value])


def _among(column: str, values: Iterable[int] | None) -> tuple[str, list[SqlValue]]:
    """The condition that a column has one of these values, or any; and the condition's values."""
    if values is None:
        return "TRUE", []
    chosen = list[SqlValue](values)
    return (f"{column} IN ({', '.join('?' * len(chosen))})" if chosen else "FALSE"), chosen
