"""Opening a store, and handing out transactions and snapshots of it."""

from __future__ import annotations

import contextlib
import fcntl
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from indlet.errors import StoreError
from indlet.store.migrations import migrate
from indlet.store.read import View
from indlet.store.write import Transaction

FILE_NAME = "store.sqlite"
# A record of a few kB fits a page of this size without an overflow chain.
PAGE_SIZE = 16384
BUSY_SECONDS = 60.0


class Store:
    """One SQLite file: one writer at a time, any number of readers, each with a snapshot."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self.folder = folder
        self.path = folder / FILE_NAME
        self._clock = clock
        self._writing = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._guard = threading.Lock()

    @classmethod
    def open(
        cls, folder: Path | str, *, create: bool = True, clock: Callable[[], float] = time.time
    ) -> Store:
        """The store in a folder, made or migrated where needed."""
        folder = Path(folder)
        if not create and not (folder / FILE_NAME).exists():
            raise StoreError(
                f"{folder}: no indlet store here; name the folder given as --data when it was made"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise StoreError(f"{folder}: cannot be used as data folder: {e.strerror}") from e
        store = cls(folder, clock)
        connection = store._connect()
        try:
            migrate(connection, str(store.path))
        except sqlite3.DatabaseError as e:
            connection.close()
            raise StoreError(f"{store.path}: not a usable store: {e}; restore it from a backup") from e
        store._idle.append(connection)
        return store

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction. Datestamps are those of the moment at which it has become visible.

        A reader that did not see this commit answered at or before the second in which the commit ended. So
        the batch must not be stamped earlier than that second: it is stamped last thing before the commit,
        and once more in the rare case that the commit itself ran into the next second.
        """
        with self._writing, _explained(self.path):
            if self._writer is None:
                self._writer = self._connect()
            connection = self._writer
            connection.execute("BEGIN IMMEDIATE")
            try:
                tx = Transaction(connection, self._clock)
                yield tx
                tx.stamp()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            while tx.late():
                connection.execute("BEGIN IMMEDIATE")
                tx.stamp()
                connection.execute("COMMIT")

    @contextlib.contextmanager
    def read(self) -> Iterator[View]:
        """A snapshot: what was committed when the block was entered, and nothing later."""
        with self._guard:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            with _explained(self.path):
                connection.execute("BEGIN")
                try:
                    # A deferred transaction takes its snapshot at the first read.
                    connection.execute("SELECT 1 FROM meta LIMIT 1").fetchone()
                    yield View(connection)
                finally:
                    connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        with self._guard:
            self._idle.append(connection)

    def secret(self, name: str) -> bytes:
        """A random key that is made once and kept: what resumption tokens and sessions are signed with."""
        with self.read() as view:
            found = view.meta(name)
        if isinstance(found, bytes):
            return found
        with self.write() as tx:
            return tx.meta_default(name, secrets.token_bytes(32))

    @contextlib.contextmanager
    def job(self, name: str) -> Iterator[None]:
        """Holds the store's only permit for a kind of job; a second process is told so at once."""
        with (self.folder / f"{name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as e:
                raise StoreError(
                    f"{self.folder}: another process is busy with {name!r} here; wait for it or stop it"
                ) from e
            yield

    def close(self) -> None:
        with self._guard:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
        with self._writing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> sqlite3.Connection:
        with _explained(self.path):
            connection = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode = WAL")
            # In WAL mode NORMAL keeps the file whole through a crash of the process; FULL also keeps the last
            # commits through a power cut, which "nothing lost" asks for.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -65536")
            connection.execute("PRAGMA mmap_size = 1073741824")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA wal_autocheckpoint = 2000")
            return connection


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as e:
        if "locked" in str(e):
            raise StoreError(
                f"{path}: another process kept it locked for {BUSY_SECONDS:.0f} s; stop that one and retry"
            ) from e
        if "full" in str(e):
            raise StoreError(
                f"{path}: the disk is full; nothing was lost, free some room and run again"
            ) from e
        if "unable to open" in str(e) or "readonly" in str(e):
            raise StoreError(
                f"{path}: {e}; the data folder must be writable, for readers too: give the right to write "
                "there, or work on a copy"
            ) from e
        raise StoreError(f"{path}: {e}") from e
    except sqlite3.DatabaseError as e:
        if isinstance(e, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        raise StoreError(f"{path}: {e}; check the file with  sqlite3 {path} 'pragma integrity_check'") from e
