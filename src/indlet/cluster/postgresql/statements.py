"""The SQL of snapshots and transactions on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import psycopg

from indlet.model import Failure, JsonObject
from indlet.store.contract import Clock
from indlet.store.kept_tables import LONGEST_KEY
from indlet.store.sql_departures import Move
from indlet.store.sql_transaction import KEY, SERVED, Dated, SqlTransaction, replaced
from indlet.store.sql_view import Row, SqlValue, SqlView
from indlet.store.tables import COLUMNS

Connection = psycopg.Connection[Row]
_FETCHED: Final = 1000  # rows of one answer
# What a record brings, in the order of `Packed`, with the types by which COPY carries it.
_TYPES: Final = {
    "identifier": "text", "deleted": "int2", "sets": "text", "language": "text", "length": "int4",
    "resource": "int8", "digest": "bytea", "metadata": "bytea", "properties": "bytea", "raw": "bytea",
    "vector": "bytea", "positions": "bytea",
}  # fmt: skip
_INCOMING: Final = {"n": "int4", "origin": "int8", "datestamp": "int8", **_TYPES}
INCOMING: Final = (
    f"CREATE TEMPORARY TABLE IF NOT EXISTS incoming ({', '.join(f'{n} {t}' for n, t in _INCOMING.items())}) "
    "ON COMMIT DELETE ROWS"
)
_COPY: Final = f"COPY incoming ({', '.join(_INCOMING)}) FROM STDIN (FORMAT BINARY)"
_NUMBER, _DATE = "%(seq)s + n", "coalesce(datestamp, %(now)s)"
_GIVEN: Final = {
    "seq": _NUMBER, "metadata_seq": _NUMBER, "datestamp": _DATE, "metadata_datestamp": _DATE
}  # fmt: skip
_TEXT: Final = "convert_from({0}.properties, 'UTF8')"
# As `shown_properties` does it for SQLite.
_SHOWN_PROPERTIES: Final = (
    f'regexp_replace({_TEXT}, CASE WHEN strpos({_TEXT}, \'{SERVED}\') > 0 THEN \'"policy":"[^"]*"\' '
    'ELSE \'"(policy|modified)":"[^"]*"|"size":-?[0-9]+\' END, \'\', \'g\')'
)
# An equal record (by its digest) is left alone: no new seq, no new datestamp.
_UPSERT: Final = (
    f"INSERT INTO records (id, {', '.join(COLUMNS)}) "
    f"SELECT %(seq)s + n, {', '.join(_GIVEN.get(name, name) for name in COLUMNS)} FROM incoming ORDER BY n "
    f"ON CONFLICT ({KEY}) DO UPDATE SET {replaced(_SHOWN_PROPERTIES)} "
    "WHERE records.digest IS DISTINCT FROM excluded.digest "
    # A new record has one number as id and seq. Of another, a statement's own queries see the former version.
    "RETURNING id, origin, seq, sets, CASE WHEN id != seq "
    "THEN (SELECT old.sets FROM records old WHERE old.id = records.id) ELSE sets END"
)
_MEMBERS: Final = (
    "INSERT INTO membership SELECT * FROM unnest(%s::bigint[], %s::bigint[]) ON CONFLICT DO NOTHING"
)
CLOCK: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"
# What a standby shows is complete until the last commit that has come to it: whatever it does not show yet is
# dated no earlier.
SHOWN: Final = (
    "SELECT extract(epoch FROM CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_xact_replay_timestamp(), "
    "to_timestamp((SELECT max(datestamp) FROM ticks)), to_timestamp(0)) ELSE clock_timestamp() END)::float8"
)
ANSWERED: Final = "(SELECT coalesce(max(value), 0)::bigint FROM answered)"
# By itself, without the lock of writers: an answer waits for no commit, and no commit for an answer.
NOTE_ANSWER: Final = (
    "INSERT INTO answered VALUES ('answered', %(second)s) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE answered.value < excluded.value"
)
_SECOND: Final = f"SELECT greatest(floor(extract(epoch FROM clock_timestamp()))::bigint, {ANSWERED})"
_BEGIN: Final = (
    "SELECT (SELECT max(datestamp) FROM ticks), "
    "(SELECT value FROM counters WHERE name = 'seq'), "
    f"extract(epoch FROM clock_timestamp())::float8, {ANSWERED}"
)


@lru_cache(maxsize=1000)
def _query(statement: str) -> str:
    """A statement of ours with the driver's marks for values."""
    return statement.replace("?", "%s")


def _clean(values: Sequence[SqlValue]) -> list[SqlValue]:
    """PostgreSQL keeps no NUL in text; nothing that is well-formed XML or a path holds one."""
    return [v.replace("\0", "\ufffd") if isinstance(v, str) and "\0" in v else v for v in values]


def _brief(text: str) -> str:
    """A text that is too long for an index by its beginning and a digest."""
    if len(text) <= LONGEST_KEY // 4 or len(encoded := text.encode("utf-8", "replace")) <= LONGEST_KEY:
        return text
    return f"{text[:500]}… ({blake2b(encoded, digest_size=8).hexdigest()})"


def _all(connection: Connection, statement: str, values: Sequence[SqlValue]) -> list[Row]:
    return connection.execute(_query(statement), _clean(values), binary=True).fetchall()


class PostgresView(SqlView):
    no_bytes = "''::bytea"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursors = 0

    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        return _all(self._connection, statement, values)

    def _each(self, statement: str, values: Sequence[SqlValue] = ()) -> Iterator[Row]:
        self._cursors += 1
        return self._fetch(f"each_{self._cursors}", statement, values)

    def _fetch(self, name: str, statement: str, values: Sequence[SqlValue]) -> Iterator[Row]:
        """By a cursor of the server's, which ends with the snapshot at the latest."""
        run = self._connection.execute
        run(_query(f"DECLARE {name} NO SCROLL CURSOR FOR {statement}"), _clean(values))
        fetch = _query(f"FETCH {_FETCHED} FROM {name}")
        while rows := run(fetch, binary=True).fetchall():
            yield from rows
            if len(rows) < _FETCHED:
                break
        run(_query(f"CLOSE {name}"))

    def meta(self, key: str) -> Any:
        row = self._one("SELECT kind, value FROM meta WHERE key = ?", (key,))
        return _decode(*row) if row else None

    def metas(self) -> JsonObject:
        return {key: _decode(kind, value) for key, kind, value in self._all("SELECT * FROM meta")}


class PostgresTransaction(SqlTransaction):
    """Records are copied into a temporary table first. Everything else waits until this transaction is the
    only one that writes: so the order of numbers is the order of commits, and datestamps follow it."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock | None,
        alone: Callable[[Connection], str],
        require_room: Callable[[int], None],
    ) -> None:
        super().__init__(clock or self._server_time, require_room)
        self.connection = connection
        self.number = ""  # the server's, once it has one
        self._alone = alone  # takes the lock of writers, or raises; gives the transaction's number
        self._locked = self._begun = False
        self._by_server = clock is None
        self._moved: list[Move] = []

    def _server_time(self) -> float:
        """One clock for all machines that write."""
        (row,) = _all(self.connection, CLOCK, ())
        return float(row[0])

    def _answered(self) -> int:
        (row,) = _all(self.connection, f"SELECT {ANSWERED}", ())
        return int(row[0])

    def _second(self) -> int:
        if not self._by_server:
            return super()._second()
        (row,) = _all(self.connection, _SECOND, ())
        return int(row[0])

    def become_only_writer(self) -> None:
        if not self._locked:
            self.number = self._alone(self.connection)
            self._locked = True
            if not self._begun:
                self._begun = True
                self.begin()

    def begin(self) -> None:
        # One query for four values: each query is a round trip.
        ((newest, seq, self._began, answered),) = _all(self.connection, _BEGIN, ())
        self._last_datestamp = max(int(newest or 0), answered)
        self._first = self._seq = self._dated = int(seq or 0)

    def stamp(self) -> None:
        if self._begun:
            with self.connection.pipeline():
                super().stamp()

    def stamp_again(self) -> None:
        self._locked = False
        self.become_only_writer()
        super().stamp_again()

    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        self.become_only_writer()
        return _all(self.connection, statement, values)

    def _run(self, statement: str, values: Sequence[SqlValue] = ()) -> None:
        self.become_only_writer()
        self.connection.execute(_query(statement), _clean(values))

    def _many(self, statement: str, rows: Sequence[Sequence[SqlValue]]) -> None:
        self.become_only_writer()
        with self.connection.cursor() as cursor:
            cursor.executemany(_query(statement), [_clean(row) for row in rows])

    def _put(self, records: Sequence[Dated]) -> int:
        return super()._put(list(self._fitting(records)))

    def _fitting(self, records: Sequence[Dated]) -> Iterator[Dated]:
        """Without those that no index takes: they are failures, and hold up nothing else."""
        for one in records:
            identifier = one[2].identifier
            if _brief(identifier) == identifier:
                yield one
            else:
                reason = f"its identifier is longer than {LONGEST_KEY} bytes, which PostgreSQL cannot index; "
                self.fail(one[0], Failure(identifier, "store", reason + "have the source name it otherwise"))

    def fail(
        self, origin: int, failure: Failure, *, due: int | None = None, new_attempt: bool = True
    ) -> None:
        where = _brief(failure.where)
        if where != failure.where:  # the shortened name cannot be requested again
            failure, due = replace(failure, where=where), None
        super().fail(origin, failure, due=due, new_attempt=new_attempt)

    def _upsert(self, records: Sequence[Dated]) -> list[int]:
        with self.connection.cursor(binary=True) as cursor:
            if self._begun:  # this may not be the first batch of the transaction
                cursor.execute("DELETE FROM incoming")
            with cursor.copy(_COPY) as copy:
                copy.set_types(list(_INCOMING.values()))
                for number, (origin, stamp, record) in enumerate(records, 1):
                    copy.write_row((number, origin, stamp, *record))
            self.become_only_writer()
            # `stamp` sets the final datestamps; reading the server's clock here would be another round trip.
            now = max(int(self._began), self._last_datestamp) if self._by_server else self._now()
            self._dates.add(now)
            cursor.execute(_UPSERT, {"seq": self._seq, "now": now})
            self._seq += len(records)
            stored = list(map(Move._make, cursor.fetchall()))
            self._moved = [one for one in stored if one.sets != one.former]
            return sorted(one.seq for one in stored)

    def _origin_kinds(self) -> dict[int, str]:
        return dict(
            _all(self.connection, "SELECT id, kind FROM origins", ())
        )  # records are copied without the lock

    def _moves(self) -> list[Move]:
        return self._moved

    def loaded(self) -> None:
        for name in ("origins", "sets", "runs", "alerts", "grants"):
            sequence = f"pg_get_serial_sequence('{name}', 'id')"
            self._all(f"SELECT setval({sequence}, max(id)) FROM {name} HAVING max(id) > 0")

    def _join(self, members: Sequence[tuple[int, int]]) -> None:
        if members:
            self.connection.execute(_MEMBERS, [list(column) for column in zip(*members, strict=True)])

    def meta(self, key: str, value: float | str | bytes) -> None:
        self._run(
            "INSERT INTO meta VALUES (?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET kind = excluded.kind, value = excluded.value",
            (key, *_encode(value)),
        )

    def meta_value(self, key: str, default: Any) -> Any:
        rows = self._all("SELECT kind, value FROM meta WHERE key = ?", (key,))
        return _decode(*rows[0]) if rows else default

    def meta_default(self, key: str, value: bytes) -> bytes:
        self._run("INSERT INTO meta VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (key, *_encode(value)))
        return bytes(self.meta_value(key, value))


def _encode(value: float | str | bytes) -> tuple[str, bytes]:
    """A value of `meta`, which SQLite keeps in its own type, as the name of that type and bytes."""
    if isinstance(value, bytes):
        return "bytes", value
    return type(value).__name__, str(value).encode()


def _decode(kind: str, value: bytes) -> float | str | bytes:
    if kind == "bytes":
        return value
    kinds: dict[str, Callable[[str], float | str]] = {"int": int, "float": float, "str": str}
    return kinds[kind](value.decode())
