"""Opening a SQLite store, and handing out transactions and snapshots of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from indlet.durable import open_private
from indlet.errors import StoreError, StoreFull
from indlet.model import JsonObject
from indlet.store.contract import Clock, Transaction, View
from indlet.store.private import keep_private
from indlet.store.sql_store import SqlStore
from indlet.store.sqlite.answered import AnsweredFile
from indlet.store.sqlite.migrations import migrate
from indlet.store.sqlite.statements import SqliteTransaction, SqliteView, prepare_writing

FILE_NAME = "store.sqlite"
# A record of a few kB fits a page of this size without an overflow chain.
PAGE_SIZE = 32768
BUSY_SECONDS = 60.0
# Connections that wait for the next reader. A burst may need more: these are closed after it, for each holds
# two files, a cache, and the store's pages once more in the memory that is counted for the process.
IDLE_CONNECTIONS = 8
IDLE_SECONDS = 60.0  # after which one that nobody has needed is closed, too
_NO_ROOM = (
    sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_WRITE,
)  # fmt: skip
_TRIES, _LOOK_SECONDS = 3, 0.01  # to get a job's permit


class Frozen(sqlite3.Connection):
    """Reads a file that nobody is writing, without SQLite's files beside it; `seen` tells if that held."""

    seen: tuple[int, ...]


class SqliteStore(SqlStore):
    """One SQLite file: one writer at a time, any number of readers, each with a snapshot.

    Where the folder or the file may not be written, it can be read all the same.
    """

    def __init__(self, folder: Path, clock: Clock, local_folder: Path | None = None) -> None:
        self.local_folder = local_folder or folder
        self._folder = folder
        self._path = folder / FILE_NAME
        self._clock = clock
        self._answered = AnsweredFile(folder)
        self.writable = not self._path.exists() or (_may_write(folder) and _may_write(self._path))
        self._writing = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        self._idle: list[tuple[sqlite3.Connection, float]] = []  # and when it was used, the latest last
        self._guard = threading.Lock()
        self._secrets: dict[str, bytes] = {}  # that could not be kept
        self.disk_folder = folder

    def now(self) -> float:
        return self._clock()

    def note_answer(self, second: int) -> None:
        if self.writable:
            # On a full disk lists are answered, too; a clock that is set back then may hide changes.
            with contextlib.suppress(OSError):
                self._answered.note(second)

    def last_answer(self) -> int:
        return self._answered.second()

    @classmethod
    def open(
        cls,
        folder: Path | str,
        *,
        create: bool = True,
        clock: Clock | None = None,
        local_folder: Path | None = None,
    ) -> Self:
        """The store in a folder, made or migrated where needed."""
        folder = Path(folder)
        if not create and not (folder / FILE_NAME).exists():
            raise StoreError(
                f"{folder}: no indlet store here; name the folder given as --data when it was made"
            )
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as e:
            raise StoreError(f"{folder}: cannot be used as data folder: {e.strerror}") from e
        keep_private(folder)
        with contextlib.suppress(OSError):  # what cannot be written is explained below
            open_private(folder / FILE_NAME, "ab").close()
        store = cls(folder, clock or time.time, local_folder)
        connection = store._connect()
        try:
            migrate(connection, str(store._path), store.writable)
        except sqlite3.OperationalError:
            connection.close()
            with _explained(store._path):
                raise
        except sqlite3.DatabaseError as e:
            connection.close()
            raise StoreError(f"{store._path}: not a usable store: {e}; restore it from a backup") from e
        store._idle.append((connection, time.monotonic()))
        keep_private(folder)
        return store

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """Datestamps are those of the moment at which the transaction has become visible.

        A reader that did not see this commit answered at or before the second in which the commit ended. So
        the batch must not be stamped earlier than that second: it is stamped last thing before the commit,
        and once more in the rare case that the commit itself ran into the next second.
        """
        if not self.writable:
            raise StoreError(f"{self._path}: may not be written; get the right to, or work on a copy")
        with self._writing, _explained(self._path):
            if self._writer is None:
                self._writer = self._connect_writing()
                prepare_writing(self._writer)
            connection = self._writer
            with _committed(connection):
                tx = SqliteTransaction(connection, self._clock, self._answered.second, self._require_room)
                yield tx
                tx.stamp()
            while tx.late():
                with _committed(connection):
                    tx.stamp_again()

    @contextlib.contextmanager
    def read(self) -> Iterator[View]:
        with self._guard:
            connection = self._idle.pop()[0] if self._idle else None
        if isinstance(connection, Frozen) and connection.seen != _state(self._path):
            connection.close()
            connection = None
        if connection is None:
            connection = self._connect()
        try:
            with _explained(self._path):
                connection.execute("BEGIN")
                view = SqliteView(connection)
                try:
                    # A deferred transaction takes its snapshot at the first read.
                    connection.execute("SELECT 1 FROM meta LIMIT 1").fetchone()
                    yield view
                finally:
                    view.end()
                    connection.execute("ROLLBACK")
                    if isinstance(connection, Frozen) and connection.seen != _state(self._path):
                        raise StoreError(f"{self._path}: was written while it was being read; try again")
        except BaseException:
            connection.close()
            raise
        with self._guard:
            now = time.monotonic()
            self._idle.append((connection, now))
            used = [at for _, at in self._idle[-IDLE_CONNECTIONS:] if now - at <= IDLE_SECONDS]
            spare, self._idle = self._idle[: -len(used)], self._idle[-len(used) :]
        for each, _ in spare:
            each.close()

    def secret(self, name: str) -> bytes:
        """On a full disk a new one is for this process alone: better than not to serve at all."""
        if name in self._secrets:
            return self._secrets[name]
        try:
            return super().secret(name)
        except StoreFull:
            return self._secrets.setdefault(name, secrets.token_bytes(32))

    @contextlib.contextmanager
    def job(self, name: str) -> Iterator[None]:
        """By a lock on a file: the system releases it when the process ends."""
        try:
            lock = open_private(self._lock_file(name), "wb")
        except OSError as e:
            raise StoreError(f"{self._folder}: cannot be written: {e.strerror}; get the right to") from e
        with lock:
            for left in reversed(range(_TRIES)):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as e:
                    if not left:
                        raise StoreError(
                            f"{self._folder}: another process is busy with {name!r} here; "
                            "wait for it or stop it"
                        ) from e
                time.sleep(_LOOK_SECONDS)  # it may be somebody who only looks whether the job is done
            yield

    def busy(self, name: str) -> bool:
        """By a lock that all who look share; it is released at once."""
        try:
            with self._lock_file(name).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def _lock_file(self, name: str) -> Path:
        return self._folder / f"{name}.lock"

    # Upkeep

    @property
    def url(self) -> str:
        return str(self._folder.absolute())

    @property
    def location(self) -> str:
        return str(self._path)

    def size(self) -> int:
        return sum(file.stat().st_size for file in self._folder.glob(f"{FILE_NAME}*"))

    def check(self) -> list[str]:
        with _explained(self._path), contextlib.closing(self._connect()) as connection:
            return [row[0] for row in connection.execute("PRAGMA quick_check(20)") if row[0] != "ok"]

    def back_up(self, path: Path) -> None:
        with (
            _explained(path),
            contextlib.closing(self._connect()) as source,
            contextlib.closing(sqlite3.connect(path, isolation_level=None)) as copy,
        ):
            source.backup(copy)  # in one step: others write on, and what they write is not in it
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
            if problems := [row[0] for row in copy.execute("PRAGMA quick_check(5)") if row[0] != "ok"]:
                raise StoreError(
                    f"{self._path}: is damaged: {'; '.join(problems)}; restore an earlier backup"
                )

    def settle(self) -> None:
        """Moves what it can from the journal to the store."""
        with self._writing, contextlib.suppress(sqlite3.Error):  # closing tries again, and tells
            if self._writer is not None:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        with self._guard:
            for connection, _ in self._idle:
                connection.close()
            self._idle.clear()
        with self._writing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _connect(self) -> sqlite3.Connection:
        """A connection to read by. On a full disk, where SQLite cannot make the files that it writes by, one
        that needs none, if there is something to read."""
        with _explained(self._path):
            if not self.writable:
                return self._connect_reading()
            try:
                return self._connect_writing()
            except StoreFull:
                if not self._path.stat().st_size:
                    raise
                return self._connect_reading()

    def _connect_writing(self) -> sqlite3.Connection:
        with _explained(self._path):
            connection = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode = WAL")
            # In WAL mode NORMAL keeps the file whole through a crash of the process; FULL also keeps the last
            # commits through a power cut, which "nothing lost" asks for.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -32768")
            connection.execute("PRAGMA mmap_size = 1073741824")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA wal_autocheckpoint = 1000")
            return connection

    def _connect_reading(self) -> sqlite3.Connection:
        """A connection that writes nothing at all.

        SQLite reads a store in WAL mode by way of two files beside it. Where a writer has left them there,
        it can; where they are missing and cannot be made, everything is in the store's own file, which may be
        read as it stands for as long as it does not change.
        """
        place = f"{self._path.absolute().as_uri()}?mode=ro"
        options: JsonObject = {"uri": True, "isolation_level": None, "check_same_thread": False}
        seen = _state(self._path)
        connection: sqlite3.Connection = sqlite3.connect(place, timeout=BUSY_SECONDS, **options)
        try:
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            if seen[-1]:
                raise StoreError(
                    f"{self._path}: its newest changes are still in {self._path.name}-wal, and only who may "
                    "write there can bring them in: run  indlet stats  with that right, or work on a copy"
                ) from None
            frozen = sqlite3.connect(f"{place}&immutable=1", factory=Frozen, **options)
            frozen.seen = seen
            connection = frozen
        connection.execute("PRAGMA mmap_size = 1073741824")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _state(path: Path) -> tuple[int, ...]:
    """What changes when a store is written; last, how much waits in its journal."""
    about, waiting = path.stat(), 0
    with contextlib.suppress(FileNotFoundError):
        waiting = path.with_name(f"{path.name}-wal").stat().st_size
    return about.st_ino, about.st_size, about.st_mtime_ns, waiting


@contextlib.contextmanager
def _committed(connection: sqlite3.Connection) -> Iterator[None]:
    """The only writing transaction, from here to the end of the block."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it
            connection.execute("ROLLBACK")
        raise


def _is_full(error: BaseException | None) -> bool:
    """Whether SQLite has found no room on the disk: for data, or for the file by which processes share its
    journal (SQLITE_IOERR_SHMSIZE and its like)."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code == sqlite3.SQLITE_FULL or code in _NO_ROOM


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as e:
        if "locked" in str(e):
            raise StoreError(
                f"{path}: another process kept it locked for {BUSY_SECONDS:.0f} s; stop that one and retry"
            ) from e
        if _is_full(e):
            raise StoreFull(
                f"{path}: the disk is full; nothing was lost, free some room and run again"
            ) from e
        if "unable to open" in str(e) or "readonly" in str(e):
            raise StoreError(f"{path}: {e}; give the right to read and write it, or work on a copy") from e
        raise StoreError(f"{path}: {e}") from e
    except sqlite3.DatabaseError as e:
        if isinstance(e, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        raise StoreError(f"{path}: {e}; check the file with  sqlite3 {path} 'pragma integrity_check'") from e
