"""What waits for an operator, in SQL that SQLite and PostgreSQL both understand: deletions and alerts.

Docstrings are those of the contract (contract.py).
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from indlet.model import JsonMapping
from indlet.store.contract import Clock, StoredAlert, Withheld
from indlet.store.kept_tables import COUNTERS, Counter, KeptTable, R
from indlet.store.tables import TABLES

Row = tuple[Any, ...]
SqlValue = None | bool | int | float | str | bytes
_TOGETHER: Final = 400  # identifiers in one question
_ALERT: Final = ", ".join(StoredAlert._fields)
# Statements that both databases understand; each says in its migrations what its types are called.
SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS withheld ("
    "origin {number} NOT NULL REFERENCES origins (id), identifier {text} NOT NULL, "
    "at {number} NOT NULL, detail {text} NOT NULL, kept_by {text} NOT NULL DEFAULT '', "
    "PRIMARY KEY (origin, identifier))",
    "CREATE TABLE IF NOT EXISTS alerts ("
    "id {key}, kind {text} NOT NULL, source {text} NOT NULL, record {text} NOT NULL, "
    "reason {text} NOT NULL, remedy {text} NOT NULL, first {number} NOT NULL, at {number} NOT NULL, "
    "acknowledged {number}, acknowledged_by {text} NOT NULL DEFAULT '', UNIQUE (kind, source, record))",
    # Until then alerts were failures of tasks of local write.
    "INSERT INTO alerts (kind, source, record, reason, remedy, first, at) "
    "SELECT 'write', o.name, f.place, f.reason, '', f.first, f.at FROM failures f "
    "JOIN origins o ON o.id = f.origin WHERE f.stage = 'alert'",
    "DELETE FROM failures WHERE stage = 'alert'",
)


class SqlTableReader:
    """Reads rows of small tables."""

    @abstractmethod
    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]: ...

    def select(self, table: KeptTable[R], **equal: int | str) -> list[R]:
        rows = self._all(
            f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {_condition(equal)} "
            f"ORDER BY {', '.join(table.key)}",
            list(equal.values()),
        )
        return [table.row(*row) for row in rows]


class SqlWaitingView(SqlTableReader):
    """The part of a snapshot that tells what waits."""

    def live(self, origin: int, identifiers: Sequence[str]) -> set[str]:
        found = set[str]()
        for start in range(0, len(identifiers), _TOGETHER):
            part = identifiers[start : start + _TOGETHER]
            rows = self._all(
                "SELECT identifier FROM records WHERE origin = ? AND deleted = 0 "
                f"AND identifier IN ({', '.join('?' * len(part))})",
                [origin, *part],
            )
            found.update(row[0] for row in rows)
        return found

    def withheld(self, origin: int, identifiers: Sequence[str] | None = None) -> list[Withheld]:
        columns = "SELECT origin, identifier, at, detail, kept_by FROM withheld WHERE origin = ?"
        if identifiers is None:
            return _withheld(self._all(f"{columns} ORDER BY identifier", [origin]))
        found = list[Withheld]()
        for start in range(0, len(identifiers), _TOGETHER):
            part = identifiers[start : start + _TOGETHER]
            chosen = f"identifier IN ({', '.join('?' * len(part))})"
            found += _withheld(self._all(f"{columns} AND {chosen}", [origin, *part]))
        return found

    def withheld_counts(self) -> dict[int, tuple[int, int]]:
        rows = self._all(
            "SELECT origin, sum(CASE WHEN kept_by = '' THEN 1 ELSE 0 END), "
            "sum(CASE WHEN kept_by = '' THEN 0 ELSE 1 END) FROM withheld GROUP BY origin ORDER BY origin"
        )
        return {origin: (int(waiting), int(kept)) for origin, waiting, kept in rows}

    def alerts(self, *, acknowledged: bool = False) -> list[StoredAlert]:
        chosen = "TRUE" if acknowledged else "acknowledged IS NULL"
        return [
            StoredAlert._make(row)
            for row in self._all(f"SELECT {_ALERT} FROM alerts WHERE {chosen} ORDER BY first, id")
        ]


class SqlWaitingWriter(SqlTableReader):
    """The part of a transaction that makes things wait, and lets them go."""

    _clock: Clock

    @abstractmethod
    def _run(self, statement: str, values: Sequence[SqlValue] = ()) -> None: ...

    @abstractmethod
    def _many(self, statement: str, rows: Sequence[Sequence[SqlValue]]) -> None: ...

    def counter(self, name: str) -> int:
        return next((one.value for one in self.select(COUNTERS, name=name)), 0)

    def count_up(self, name: str) -> None:
        self.upsert(COUNTERS, [Counter(name, self.counter(name) + 1)])

    def upsert(self, table: KeptTable[R], rows: Iterable[R]) -> None:
        self.load(table.name, list(rows))

    def load(self, name: str, rows: Sequence[Sequence[SqlValue]]) -> None:
        """Enter rows of a table as they are; those whose key is there already replace them."""
        table = TABLES[name]
        replaced = ", ".join(f"{c} = excluded.{c}" for c in table.columns if c not in table.key)
        self._many(
            f"INSERT INTO {name} ({', '.join(table.columns)}) VALUES ({', '.join('?' * len(table.columns))}) "
            f"ON CONFLICT ({', '.join(table.key)}) DO {f'UPDATE SET {replaced}' if replaced else 'NOTHING'}",
            rows,
        )

    def remove(self, table: KeptTable[R], **equal: int | str) -> None:
        self._run(f"DELETE FROM {table.name} WHERE {_condition(equal)}", list(equal.values()))

    def withhold(self, origin: int, deletions: Mapping[str, JsonMapping]) -> None:
        now = int(self._clock())
        self._many(
            "INSERT INTO withheld (origin, identifier, at, detail) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (origin, identifier) DO UPDATE SET detail = excluded.detail",
            [(origin, identifier, now, json.dumps(detail)) for identifier, detail in deletions.items()],
        )

    def drop_withheld(self, origin: int, identifiers: Iterable[str]) -> None:
        self._many(
            "DELETE FROM withheld WHERE origin = ? AND identifier = ?",
            [(origin, identifier) for identifier in identifiers],
        )

    def keep_withheld(self, origin: int, by: str) -> None:
        self._run("UPDATE withheld SET kept_by = ? WHERE origin = ? AND kept_by = ''", (by, origin))

    def alert(self, kind: str, source: str, record: str, reason: str, remedy: str) -> None:
        now = int(self._clock())
        self._run(
            "INSERT INTO alerts (kind, source, record, reason, remedy, first, at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, source, record) DO UPDATE SET "
            "acknowledged = CASE WHEN alerts.reason = excluded.reason THEN alerts.acknowledged END, "
            "reason = excluded.reason, remedy = excluded.remedy, at = excluded.at",
            (kind, source, record, reason, remedy, now, now),
        )

    def resolve_alerts(self, kind: str, source: str, records: Iterable[str]) -> None:
        self._many(
            "DELETE FROM alerts WHERE kind = ? AND source = ? AND record = ?",
            [(kind, source, record) for record in records],
        )

    def acknowledge(self, alert: int, by: str) -> bool:
        rows = self._all(
            "UPDATE alerts SET acknowledged = ?, acknowledged_by = ? "
            "WHERE id = ? AND acknowledged IS NULL RETURNING id",
            (int(self._clock()), by, alert),
        )
        return bool(rows)


def _condition(equal: Mapping[str, int | str]) -> str:
    return " AND ".join(f"{column} = ?" for column in equal) or "TRUE"


def _withheld(rows: Iterable[Row]) -> list[Withheld]:
    return [Withheld(o, identifier, at, json.loads(detail), by) for o, identifier, at, detail, by in rows]
