"""Which records have left which sets, and since when, in SQL that SQLite and PostgreSQL both understand.

A record that leaves a set is listed there as deleted, at the place of the change by which it left. A set that
no record ever left has no departures and costs nothing. The header names the sets in which the record is now:
by these a harvester tells a departure from a deletion.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from indlet.store.contract import GrantMode, GrantView
from indlet.store.sql_grants import GONE, LEFT, SHOWN
from indlet.store.sql_waiting import SqlValue

SCHEMA: Final = (
    "CREATE TABLE departures ("
    "set_id {number} NOT NULL REFERENCES sets (id), record {number} NOT NULL, seq {number} NOT NULL, "
    "PRIMARY KEY (set_id, record))",
    "CREATE INDEX departures_place ON departures (set_id, seq)",
)


class Move(NamedTuple):
    """A record whose sets a transaction has changed."""

    record: int
    origin: int
    seq: int
    sets: str
    former: str


def departures(chosen: str) -> str:
    """The departures from the chosen sets (`m.set_id`), as a table like that of the places of a grant."""
    return f"(SELECT m.record, m.seq, '' AS sets, {LEFT} AS state FROM departures m WHERE {chosen})"


def departures_shown(grant: GrantView) -> tuple[str, list[SqlValue]]:
    """The condition that a grant shows the departure `v` of a record `r`, and the condition's values."""
    place = "SELECT 1 FROM grant_records g WHERE g.grant_id = ? AND g.record = r.id"
    match grant.mode:
        case GrantMode.OPEN:
            condition = f"(r.origin = ? AND (r.seq > ? OR EXISTS ({place} AND g.state = {SHOWN})))"
            return condition, [grant.origin, grant.base, grant.id]
        case GrantMode.CLOSED:
            return f"EXISTS ({place} AND g.state = {GONE} AND g.seq > v.seq)", [grant.id]
        case GrantMode.REPLACED:
            return "FALSE", []


class SqlDeparturesWriter:
    _joined: dict[tuple[int, str], list[int]]

    @abstractmethod
    def _many(self, statement: str, rows: Sequence[Sequence[SqlValue]]) -> None: ...

    @abstractmethod
    def _know_sets(self, wanted: Set[tuple[int, str]]) -> None: ...

    @abstractmethod
    def _moves(self) -> list[Move]:
        """The records among those that were stored last whose sets have changed."""

    def _note_departures(self) -> None:
        if not (moves := self._moves()):
            return
        self._know_sets({(m.origin, sets) for m in moves for sets in (m.sets, m.former)})
        joined = self._joined
        self._many(
            "DELETE FROM departures WHERE set_id = ? AND record = ?",
            [(i, m.record) for m in moves for i in joined[m.origin, m.sets]],
        )
        self._many(
            "INSERT INTO departures (set_id, record, seq) VALUES (?, ?, ?) "
            "ON CONFLICT (set_id, record) DO UPDATE SET seq = excluded.seq",
            [
                (i, m.record, m.seq)
                for m in moves
                for i in joined[m.origin, m.former]
                if i not in joined[m.origin, m.sets]
            ],
        )
