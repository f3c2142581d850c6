"""Permits for jobs, and the lock of writers: advisory locks, which the server releases with their connection.

All permits of a process are held by one connection. If that is lost, so are they, and another process may
begin the same job. So a writer that holds permits looks, once it is the only writer, whether they are still
its own; and who takes a permit waits for the writer of that moment. So nothing is committed by a job after
another process has begun it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from hashlib import blake2b

import psycopg

from indlet.cluster.postgresql.statements import Connection, PostgresView
from indlet.errors import StoreError, StoreUnavailable

_HELD = (
    "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' "
    "AND objsubid = 1 AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class Permits:
    def __init__(self, place: str, connect: Callable[[], Connection]) -> None:
        self._place = place
        self._connect = connect
        self._schema = ""
        self._guard = threading.Lock()
        self._connection: Connection | None = None
        self._held: set[str] = set()

    def identify(self, connection: Connection) -> None:
        """Advisory locks belong to a database; the stores in its schemas have locks of their own."""
        row = connection.execute("SELECT current_schema()").fetchone()
        self._schema = str(row and row[0])

    def key(self, name: str) -> int:
        digest = blake2b(f"indlet {self._schema} {name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    def alone(self, connection: Connection) -> str:
        """Wait until this transaction is the only one that writes; its number.

        StoreError if a permit has been lost.
        """
        row = connection.execute(
            "SELECT pg_advisory_xact_lock(%s)::text, pg_current_xact_id()::text", (self.key("write"),)
        ).fetchone()
        number = str(row and row[1])
        with self._guard:
            if not self._held or self._connection is None:
                return number
            pid = self._connection.info.backend_pid
            mine = {row[0] for row in connection.execute(f"{_HELD} AND pid = %s".encode(), (pid,))}
            lost = sorted(name for name in self._held if self.key(name) not in mine)
        if lost:
            raise StoreUnavailable(
                f"{self._place}: the connection that held the permit for {', '.join(map(repr, lost))} was "
                "lost; the run ends here, and the next one goes on from its last commit"
            )
        return number

    def take(self, name: str) -> None:
        with self._guard:
            if name in self._held:
                raise self._busy(name)
            if self._connection is not None and not self._held and not _alive(self._connection):
                self._connection.close()
                self._connection = None
            if self._connection is None:
                self._connection = self._connect()
            row = self._connection.execute("SELECT pg_try_advisory_lock(%s)", (self.key(name),)).fetchone()
            if row is None or not row[0]:
                raise self._busy(name)
            self._held.add(name)

    def release(self, name: str) -> None:
        with self._guard:
            self._held.discard(name)
            if self._connection is not None:
                with contextlib.suppress(psycopg.Error):  # with its connection the permit has gone too
                    self._connection.execute("SELECT pg_advisory_unlock(%s)", (self.key(name),))

    def taken(self, view: PostgresView, name: str) -> bool:
        return (self.key(name),) in view._all(_HELD)

    def close(self) -> None:
        with self._guard:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _busy(self, name: str) -> StoreError:
        return StoreError(
            f"{self._place}: another process is busy with {name!r} here; wait for it or stop it"
        )


def _alive(connection: Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True
