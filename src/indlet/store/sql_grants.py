"""Who is shown which origin since when, in SQL that SQLite and PostgreSQL both understand.

A grant shows an origin, or some sets of it, at one endpoint (`path`) to one kind of requester (`key`). When
it is opened, narrowed, widened or closed, each record that appears in it or leaves it gets a place in the
order of changes that holds for this grant alone. So the lists of a view tell of visibility as they tell of
content, and a grant that never changed has no such places and costs nothing.

Docstrings are those of the contract (contract.py).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final

from indlet.store.contract import ALL, UNCHANGED, Grant, GrantMode, GrantView, Takes
from indlet.store.sql_waiting import Row, SqlValue

SCHEMA: Final = (
    "CREATE TABLE grants ("
    "id {key}, path {text} NOT NULL, origin {number} NOT NULL REFERENCES origins (id), key {text} NOT NULL, "
    "shows {text} NOT NULL, base {number} NOT NULL, followed {number} NOT NULL, UNIQUE (path, origin, key))",
    "CREATE TABLE grant_records ("
    "grant_id {number} NOT NULL REFERENCES grants (id), record {number} NOT NULL, seq {number} NOT NULL, "
    "state {number} NOT NULL, sets {text} NOT NULL, PRIMARY KEY (grant_id, record))",
    "CREATE INDEX grant_records_place ON grant_records (grant_id, seq)",
    "CREATE INDEX grant_records_seq ON grant_records (seq)",
    "CREATE INDEX grants_changed ON grants (path, origin) WHERE base >= 0",
    # What tells the date of a place.
    "CREATE INDEX ticks_seq ON ticks (seq)",
)
_COLUMNS: Final = ", ".join(Grant._fields)
# States of a record in a grant; and of one that has left a set (sql_departures.py).
SHOWN, GONE, _HIDDEN, LEFT = 0, 1, 2, 3
_TOGETHER: Final = 5000
# Columns of a record as a grant shows it.
PLACED: Final = {
    "seq": "v.seq",
    "datestamp": "(SELECT t.datestamp FROM ticks t WHERE t.seq <= v.seq ORDER BY t.seq DESC LIMIT 1)",
    "deleted": f"CASE WHEN v.state IN ({GONE}, {LEFT}) THEN 1 ELSE r.deleted END",
    "sets": f"CASE WHEN v.state = {GONE} THEN v.sets ELSE r.sets END",
}
IS_SHOWN: Final = f"v.state = {SHOWN}"


def own_places(grant: GrantView, seq: str) -> tuple[str, list[SqlValue]]:
    """The condition that a grant shows a record `r` at its own place, and the condition's values."""
    if grant.mode is not GrantMode.OPEN:
        return "FALSE", []
    return (
        f"(r.origin = ? AND {seq} > ? AND NOT EXISTS (SELECT 1 FROM grant_records v "
        f"WHERE v.grant_id = ? AND v.record = r.id AND v.seq > {seq}))",
        [grant.origin, grant.base, grant.id],
    )


def given_places(grant: GrantView, seq: str) -> tuple[str, list[SqlValue]]:
    """The condition that a grant shows a record `r` at the place `v` that the grant gave it."""
    match grant.mode:
        case GrantMode.OPEN:
            condition = f"(v.seq > {seq} OR (v.state = {GONE} AND {seq} <= ?)) AND v.state != {_HIDDEN}"
            return f"v.grant_id = ? AND {condition}", [grant.id, grant.base]
        case GrantMode.CLOSED:
            return f"v.grant_id = ? AND v.state = {GONE}", [grant.id]
        case GrantMode.REPLACED:
            condition = f"v.state = {GONE} AND r.deleted != 0 AND {seq} <= ?"
            return f"v.grant_id = ? AND {condition}", [grant.id, grant.base]


class SqlGrantsView:
    @abstractmethod
    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]: ...

    def grants(self, path: str) -> list[Grant]:
        rows = self._all(
            f"SELECT {_COLUMNS} FROM grants WHERE path = ? AND origin IN "
            "(SELECT origin FROM grants WHERE path = ? AND base >= 0) ORDER BY id",
            (path, path),
        )
        return list(map(Grant._make, rows))

    def all_grants(self, path: str) -> list[Grant]:
        rows = self._all(f"SELECT {_COLUMNS} FROM grants WHERE path = ? ORDER BY id", (path,))
        return list(map(Grant._make, rows))

    def granted_places(self, seqs: Sequence[int]) -> set[int]:
        if not seqs:
            return set()
        marks = ", ".join("?" * len(seqs))
        return {row[0] for row in self._all(f"SELECT seq FROM grant_records WHERE seq IN ({marks})", seqs)}


class SqlGrantsWriter:
    _seq: int

    @abstractmethod
    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]: ...

    @abstractmethod
    def _run(self, statement: str, values: Sequence[SqlValue] = ()) -> None: ...

    @abstractmethod
    def _many(self, statement: str, rows: Sequence[Sequence[SqlValue]]) -> None: ...

    @abstractmethod
    def _join_sets(self, origin: int, places: Iterable[tuple[int, str]]) -> None:
        """Enter (seq, setSpecs) as members of these sets and of all above them."""

    def all_grants(self, path: str) -> list[Grant]:
        rows = self._all(f"SELECT {_COLUMNS} FROM grants WHERE path = ? ORDER BY id", (path,))
        return list(map(Grant._make, rows))

    def new_grant(self, path: str, origin: int, key: str, shows: str, takes: Takes | None) -> None:
        """Enter a grant that was in force before anybody asked: nobody has to be told of its records."""
        grant = self._insert(path, origin, key, shows, UNCHANGED if takes is None else 0)
        if takes is not None:
            rows = self._all("SELECT id, sets FROM records WHERE origin = ?", (origin,))
            self._enter(grant, [(number, 0, SHOWN, sets) for number, sets in rows if takes(sets.split())])

    def open_grant(self, path: str, origin: int, key: str, shows: str, takes: Takes | None) -> None:
        """Enter a grant of an origin whose records were not shown to anybody by this key so far."""
        self._insert(path, origin, key, "", UNCHANGED)
        (grant,) = [g for g in self.all_grants(path) if (g.origin, g.key) == (origin, key)]
        self.change_grant(grant, shows, takes)

    def change_grant(self, grant: Grant, shows: str, takes: Takes | None) -> None:
        base = self._seq if not grant.shows else max(grant.base, 0)
        self._place(grant, shows, takes, base)
        self._run(
            "UPDATE grants SET shows = ?, base = ?, followed = ? WHERE id = ?",
            (shows, base, self._followed(), grant.id),
        )

    def follow_grant(self, grant: Grant, takes: Takes) -> None:
        self._place(grant, grant.shows, takes, grant.base, following=True)
        self._run("UPDATE grants SET followed = ? WHERE id = ?", (self._followed(), grant.id))

    def _followed(self) -> int:
        (row,) = self._all("SELECT max(seq) FROM records")
        return int(row[0] or 0)

    def _insert(self, path: str, origin: int, key: str, shows: str, base: int) -> int:
        (row,) = self._all(
            "INSERT INTO grants (path, origin, key, shows, base, followed) VALUES (?, ?, ?, ?, ?, ?) "
            "RETURNING id",
            (path, origin, key, shows, base, self._followed()),
        )
        return int(row[0])

    def _place(
        self, grant: Grant, shows: str, takes: Takes | None, base: int, *, following: bool = False
    ) -> None:
        """Give places to the records that appear in a grant or leave it; `following`: of those that have
        changed since the grant was followed last."""
        by_sets, after = grant.shows not in ("", ALL), grant.followed if following else 0
        while rows := self._all(
            "SELECT r.id, r.seq, r.deleted, r.sets, v.seq, v.state, v.sets FROM records r "
            "LEFT JOIN grant_records v ON v.record = r.id AND v.grant_id = ? "
            "WHERE r.origin = ? AND r.seq > ? ORDER BY r.seq LIMIT ?",
            (grant.id, grant.origin, after, _TOGETHER),
        ):
            entries: list[tuple[int, int, int, str]] = []
            for number, seq, deleted, sets, place, state, former in rows:
                own = not by_sets and seq > grant.base and (place is None or place <= seq)
                before = bool(grant.shows) and (state == SHOWN or own)
                now = bool(shows) and (takes is None or takes(sets.split()))
                if before and now:
                    # The sets that it may leave later, and those that it has left: when it goes, it is
                    # deleted in the lists of all of them.
                    known = " ".join(dict.fromkeys(f"{former or ''} {sets}".split()))
                    if takes is not None and known != former:
                        entries.append((number, place or 0, SHOWN, known))
                elif before:
                    entries.append((number, self._next(), GONE, sets if former is None else former))
                elif now and following:  # it has just changed: its own place tells of it
                    entries.append((number, 0, SHOWN, sets))
                elif now and not deleted:
                    entries.append((number, self._next(), SHOWN, sets))
                elif now and grant.shows and state is None:  # a deletion that this grant never showed
                    entries.append((number, self._next(), _HIDDEN, sets))
            after = rows[-1][1]
            self._enter(grant.id, entries)
            self._join_sets(grant.origin, [(seq, sets) for _, seq, _, sets in entries if seq > base])

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _enter(self, grant: int, entries: Sequence[tuple[int, int, int, str]]) -> None:
        """Enter (record, seq, state, sets)."""
        self._many(
            "INSERT INTO grant_records (grant_id, record, seq, state, sets) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (grant_id, record) DO UPDATE SET "
            "seq = excluded.seq, state = excluded.state, sets = excluded.sets",
            [(grant, *entry) for entry in entries],
        )
