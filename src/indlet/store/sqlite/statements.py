"""How SQLite carries out what a snapshot and a transaction are asked for."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from indlet.model import JsonObject
from indlet.store.contract import Clock
from indlet.store.sql_departures import Move
from indlet.store.sql_transaction import KEY, SERVED, Dated, SqlTransaction, replaced
from indlet.store.sql_view import Row, SqlValue, SqlView
from indlet.store.tables import COLUMNS

# Rows of one statement. sqlite3 releases the GIL once for each statement: with a row to each, a thread that
# writes and one that parses take turns of 5 ms and both stand still; so they run side by side.
_TOGETHER = 400
# An equal record (by its digest) is left alone: no new seq, no new datestamp.
_UPSERT = (
    f"INSERT INTO records ({', '.join(COLUMNS)}) VALUES {{rows}} "
    f"ON CONFLICT ({KEY}) DO UPDATE SET {replaced('shown_properties({}.properties)')} "
    "WHERE records.digest IS NOT excluded.digest"
)
_MEMBERS = "INSERT OR IGNORE INTO membership VALUES {rows}"
# The values of a row, and of one without a vector: to bind None takes longer than most values take.
_ROW = f"({', '.join('?' * len(COLUMNS))})"
_BARE_ROW = f"({', '.join('?' * (len(COLUMNS) - 2))}, NULL, NULL)"
# What a connection needs to notice whose sets an upsert changes; new records cost nothing.
_WATCH_SETS = (
    "CREATE TEMP TABLE moved (record INTEGER NOT NULL, former TEXT NOT NULL)",
    "CREATE TEMP TRIGGER watch_sets AFTER UPDATE OF sets ON main.records WHEN old.sets != new.sets "
    "BEGIN INSERT INTO moved VALUES (old.id, old.sets); END",
)
# sqlite3 looks for an adapter of bytes, in its table and then by attributes, for each value, which takes
# longer than to bind it. This one, which it finds at once, gives the value itself.
sqlite3.register_adapter(bytes, bytes)


@lru_cache(64)
def _statement(form: str, row: str, count: int) -> str:
    """A statement for so many rows."""
    return form.format(rows=", ".join([row] * count))


# The properties that no metadata format shows: of a file that a web server serves, the policy alone.
_NOT_SHOWN = re.compile(rb'"(?:policy|modified)":"[^"]*"|"size":-?[0-9]+')
_POLICY = re.compile(rb'"policy":"[^"]*"')


def shown_properties(properties: bytes) -> bytes:
    """What metadata formats show of properties, which are JSON as `orjson` writes it; for comparison only."""
    return (_POLICY if SERVED.encode() in properties else _NOT_SHOWN).sub(b"", properties)


def prepare_writing(connection: sqlite3.Connection) -> None:
    """Give a connection the functions and triggers of a transaction.

    Once: every prepared statement is prepared again after it.
    """
    connection.create_function("shown_properties", 1, shown_properties, deterministic=True)
    for statement in _WATCH_SETS:
        connection.execute(statement)


class SqliteView(SqlView):
    no_bytes = "x''"
    join = "CROSS JOIN"  # which SQLite carries out in the order that is written: memberships, then records

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._begun: list[sqlite3.Cursor] = []

    def end(self) -> None:
        """Ends what was not read to its end: SQLite would keep this snapshot for it, and the next
        reader by this connection would be given that instead of its own."""
        for cursor in self._begun:
            cursor.close()

    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def _each(self, statement: str, values: Sequence[SqlValue] = ()) -> Iterator[Row]:
        cursor = self._connection.execute(statement, values)
        self._begun.append(cursor)
        return cursor

    def meta(self, key: str) -> Any:
        row = self._one("SELECT value FROM meta WHERE key = ?", (key,))
        return row[0] if row else None

    def metas(self) -> JsonObject:
        return dict(self._all("SELECT key, value FROM meta"))


class SqliteTransaction(SqlTransaction):
    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        answered: Callable[[], int],
        require_room: Callable[[int], None],
    ) -> None:
        super().__init__(clock, require_room)
        self._connection = connection
        self._answered_by_file = answered
        self.begin()

    def _answered(self) -> int:
        return self._answered_by_file()

    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def _run(self, statement: str, values: Sequence[SqlValue] = ()) -> None:
        self._connection.execute(statement, values)

    def _many(self, statement: str, rows: Sequence[Sequence[SqlValue]]) -> None:
        self._connection.executemany(statement, rows)

    def _upsert(self, records: Sequence[Dated]) -> Sequence[int]:
        first, now = self._seq, self._now()
        changed = 0
        self._run("DELETE FROM moved")
        for start in range(0, len(records), _TOGETHER):
            part = records[start : start + _TOGETHER]
            bare = all(record[-1] is record[-2] is None for _, _, record in part)
            values: list[SqlValue] = []
            for seq, (origin, stamp, record) in enumerate(part, self._seq + 1):
                date = now if stamp is None else stamp
                values += (seq, seq, origin, record[0], date, date)
                values += record[1:-2] if bare else record[1:]
            self._seq += len(part)
            upsert = _statement(_UPSERT, _BARE_ROW if bare else _ROW, len(part))
            changed += self._connection.execute(upsert, values).rowcount
        # Counted, not listed by RETURNING, which is a third of the cost: mostly all are new.
        if changed == len(records):
            return range(first + 1, self._seq + 1)
        return [seq for (seq,) in self._all("SELECT seq FROM records WHERE seq > ? ORDER BY seq", (first,))]

    def _moves(self) -> list[Move]:
        rows = self._all(
            "SELECT r.id, r.origin, r.seq, r.sets, m.former FROM moved m CROSS JOIN records r "
            "ON r.id = m.record"
        )
        return list(map(Move._make, rows))

    def _join(self, members: Sequence[tuple[int, int]]) -> None:
        for start in range(0, len(members), _TOGETHER):
            part = members[start : start + _TOGETHER]
            self._connection.execute(_statement(_MEMBERS, "(?, ?)", len(part)), [*chain.from_iterable(part)])

    def meta(self, key: str, value: float | str | bytes) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def meta_value(self, key: str, default: Any) -> Any:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else default

    def meta_default(self, key: str, value: bytes) -> bytes:
        self._connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (key, value))
        return bytes(self.meta_value(key, value))
