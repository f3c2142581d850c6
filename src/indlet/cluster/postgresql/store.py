"""Opening a PostgreSQL store, and handing out transactions, snapshots and permits of it."""

from __future__ import annotations

import contextlib
import ipaddress
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from indlet.cluster.postgresql.driver_errors import BUSY_SECONDS, explain_errors
from indlet.cluster.postgresql.jobs import Permits
from indlet.cluster.postgresql.migrations import migrate, renew_if_restored
from indlet.cluster.postgresql.statements import (
    INCOMING,
    NOTE_ANSWER,
    SHOWN,
    Connection,
    PostgresTransaction,
    PostgresView,
)
from indlet.errors import SettingsError, StoreError, StoreUnavailable
from indlet.model import JsonObject
from indlet.settings import Settings
from indlet.store.contract import Clock, Transaction, View
from indlet.store.kept_tables import ANSWERED, COUNTERS
from indlet.store.private import keep_private
from indlet.store.sql_store import SqlStore

# How long a reader and a writer wait for a server that is being restarted or replaced.
READ_PATIENCE: Final = 5.0
WRITE_PATIENCE: Final = 30.0
_IDLE: Final = 8  # connections of each kind that are kept for the next
_DEFAULTS: Final = {
    "application_name": "indlet",
    "client_encoding": "UTF8",
    "connect_timeout": 10,
    # A server whose machine has gone is noticed within a minute; so is a client, which ends its locks. While
    # something sent is not acknowledged, keepalives rest, and the system would wait a quarter of an hour.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_SESSION: Final = (
    f"SET lock_timeout = '{BUSY_SECONDS}s'; SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; "
    "SET tcp_keepalives_count = 3; SET tcp_user_timeout = 60000"
)
_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1"  # taken by the first question


class PostgresStore(SqlStore):
    """A schema of a PostgreSQL database, shared by any number of processes and machines.

    Writers prepare side by side and commit one after another, by an advisory lock. Snapshots are transactions
    that only read. What fails before a caller has seen anything is tried again on a new connection.
    """

    def __init__(self, url: str, clock: Clock | None, local_folder: Path) -> None:
        self.local_folder = local_folder
        self.writable = True
        self._url = url
        self._clock = clock
        self._guard = threading.Lock()
        self._readers: list[Connection] = []
        self._writers: list[Connection] = []
        self._permits = Permits(self.location, self._connect)

    shared = True

    def now(self) -> float:
        """By the server's clock, which all machines share; of a standby, until when it is complete."""
        if self._clock is not None:
            return self._clock()
        with self.read() as view:
            assert isinstance(view, PostgresView)
            return float(view._all(SHOWN)[0][0])

    def note_answer(self, second: int) -> None:
        if not self.writable:
            return
        with explain_errors(self.location):
            connection = self._begun(self._readers, "SELECT 1", READ_PATIENCE)
            try:
                connection.execute(NOTE_ANSWER, {"second": second})
            except BaseException:
                connection.close()
                raise
        self._keep(self._readers, connection)

    def last_answer(self) -> int:
        with self.read() as view:
            return max((one.value for one in view.select(ANSWERED)), default=0)

    @classmethod
    def open(
        cls,
        url: Path | str,
        *,
        create: bool = True,
        clock: Clock | None = None,
        local_folder: Path | None = None,
    ) -> Self:
        """The store in a database, made or migrated where needed."""
        store = cls(str(url), clock, local_folder or Settings().data)
        if local_folder is not None:
            local_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            keep_private(local_folder)
        try:
            conninfo_to_dict(store._url)
        except psycopg.Error as e:
            raise SettingsError(f"{store.location}: not a PostgreSQL URL: {str(e).strip()}") from e
        with explain_errors(store.location):
            connection = store._connect()
            try:
                store._permits.identify(connection)
                store.writable = _may_write(connection)
                lock = store._permits.key("migrate")
                migrate(connection, store.location, lock, create=create, writable=store.writable)
                store.writable = store.writable and _may_insert(connection)
                if store.writable:
                    renew_if_restored(connection, lock)
                    store.disk_folder = _local_data_folder(connection)
            except BaseException:
                connection.close()
                raise
        store._readers.append(connection)
        return store

    @contextlib.contextmanager
    def read(self) -> Iterator[View]:
        with explain_errors(self.location):
            connection = self._begun(self._readers, _SNAPSHOT, READ_PATIENCE)
            try:
                yield PostgresView(connection)
                connection.execute("ROLLBACK")
            except BaseException:
                connection.close()
                raise
        self._keep(self._readers, connection)

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """Datestamps are those of the moment at which the transaction has become visible, as in SQLite.

        A commit whose answer was lost is looked up: only the server knows whether it took place.
        """
        if not self.writable:
            raise StoreError(f"{self.location}: may not be written; get the right to, or name the primary")
        with explain_errors(self.location):
            connection = self._begun(self._writers, "BEGIN", WRITE_PATIENCE)
            try:
                tx = PostgresTransaction(connection, self._clock, self._permits.alone, self._require_room)
                yield tx
                tx.stamp()
                tx.connection = connection = self._commit(connection, tx.number)
                while tx.late():
                    connection.execute("BEGIN")
                    tx.stamp_again()
                    connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
        self._keep(self._writers, connection)

    @contextlib.contextmanager
    def job(self, name: str) -> Iterator[None]:
        with explain_errors(self.location):
            self._permits.take(name)
        try:
            with self.write() as tx:  # whoever had the permit before may still be committing: wait for that
                tx.become_only_writer()
            yield
        finally:
            self._permits.release(name)

    def busy(self, name: str) -> bool:
        with self.read() as view:
            assert isinstance(view, PostgresView)
            return self._permits.taken(view, name)

    # Upkeep

    @property
    def url(self) -> str:
        return self._url

    @property
    def location(self) -> str:
        parts = urlsplit(self._url)
        user, at, hosts = parts.netloc.rpartition("@")
        return f"postgresql://{user.partition(':')[0]}{at}{hosts}{parts.path}"

    def size(self) -> int:
        with self.read() as view:
            assert isinstance(view, PostgresView)
            (row,) = view._all(
                "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class "
                "WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
            )
        return int(row[0])

    def back_up(self, path: Path) -> None:
        raise StoreError(
            f"{self.location}: PostgreSQL backs up its databases itself, while they are in use:  "
            f"pg_dump --format=custom --file={path.parent.name}.dump '{self.location}'  and  "
            "pg_restore --clean --if-exists --dbname=…  brings one back;  indlet reindex  makes its index"
        )

    def check(self) -> list[str]:
        with self.read() as view:
            newest, stamps = view.last_seq(), [s for *_, s in _ticks(view)]
            counter = sum(one.value for one in view.select(COUNTERS, name="seq"))
        problems = []
        if counter < newest:
            problems.append(f"the counter of changes stands at {counter}, and there is a change {newest}")
        if stamps != sorted(stamps):
            problems.append("datestamps do not follow the order of changes")
        return problems

    def close(self) -> None:
        with self._guard:
            connections = [*self._readers, *self._writers]
            self._readers.clear()
            self._writers.clear()
        for connection in connections:
            connection.close()
        self._permits.close()

    # Connections

    def _connect(self) -> Connection:
        given = conninfo_to_dict(self._url)
        defaults: JsonObject = {k: v for k, v in _DEFAULTS.items() if k not in given}
        connection: Connection = psycopg.connect(self._url, autocommit=True, **defaults)
        try:
            connection.execute(_SESSION)
        except BaseException:
            connection.close()
            raise
        return connection

    def _begun(self, idle: list[Connection], begin: str, patience: float) -> Connection:
        """A connection that has carried out `begin`. Nothing has been done yet: it is safe to try again."""
        until, pause = time.monotonic() + patience, 0.05
        while True:
            with self._guard:
                connection = idle.pop() if idle else None
            kept = connection is not None
            try:
                if connection is None:
                    connection = self._connect()
                    if idle is self._writers:
                        connection.execute(INCOMING)
                connection.execute(begin.encode())
                return connection
            except psycopg.OperationalError:
                if connection is not None:
                    connection.close()
                if not kept:
                    if time.monotonic() + pause > until:
                        raise
                    time.sleep(pause)
                    pause = min(pause * 2, 1.0)
            except BaseException:
                if connection is not None:
                    connection.close()
                raise

    def _keep(self, idle: list[Connection], connection: Connection) -> None:
        with self._guard:
            if len(idle) < _IDLE and connection.info.transaction_status == TransactionStatus.IDLE:
                idle.append(connection)
                return
        connection.close()

    def _commit(self, connection: Connection, number: str) -> Connection:
        """Commit; the connection to go on with."""
        try:
            connection.execute("COMMIT")
            return connection
        except psycopg.OperationalError:
            if not number or not connection.broken:
                raise
            connection.close()
            again = self._begun([], "SELECT 1", WRITE_PATIENCE)
            try:
                if _outcome(again, number) == "committed":
                    return again
            except BaseException:
                again.close()
                raise
            again.close()
            raise


def _outcome(connection: Connection, transaction: str) -> str | None:
    """What became of a transaction; one that is still ending is waited for."""
    for _ in range(100):
        row = connection.execute("SELECT pg_xact_status(%s::text::xid8)", (transaction,)).fetchone()
        if row is None or row[0] != "in progress":
            return str(row[0]) if row and row[0] else None
        time.sleep(0.1)
    raise StoreUnavailable("a transaction whose connection was lost has not ended; run again")


def _may_write(connection: Connection) -> bool:
    row = connection.execute(
        "SELECT NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off'"
    ).fetchone()
    return bool(row and row[0])


def _may_insert(connection: Connection) -> bool:
    row = connection.execute("SELECT has_table_privilege('records', 'INSERT')").fetchone()
    return bool(row and row[0])


def _local_data_folder(connection: Connection) -> Path | None:
    """The folder of the database's files if the server is on this machine and the folder is visible.

    PostgreSQL shows `data_directory` to superusers and members of pg_read_all_settings only.
    """
    host = connection.info.hostaddr or connection.info.host
    if not host.startswith("/") and not _is_loopback(host):
        return None
    row = connection.execute(
        "SELECT coalesce(nullif(pg_tablespace_location(dattablespace), ''), "
        "(SELECT setting FROM pg_settings WHERE name = 'data_directory')) "
        "FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    folder = Path(row[0]) if row and row[0] else None
    try:
        return folder if folder is not None and folder.is_dir() else None
    except OSError:  # a folder above it may not be entered
        return None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _ticks(view: View) -> list[tuple[int, int]]:
    assert isinstance(view, PostgresView)
    return view._all("SELECT seq, datestamp FROM ticks ORDER BY seq")
