"""What every store does alike."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Self

from indlet.errors import StoreFull
from indlet.limits import FREE_DISK, require_room
from indlet.store.contract import Transaction, View

# Keys of what names a store, and its history since it was made or restored.
IDENTITY: Final = "identity"
EPOCH: Final = "epoch"
TABLES_KEY: Final = "tables"  # on PostgreSQL: the tables that a store was last opened with
# Keys of what was given out after a backup: resumption tokens and sessions end, an older index is not taken
# for one of these records, and harvesters notice.
RENEWED_SECRETS: Final = ("tokens", "sessions", "index", EPOCH)


class SqlStore:
    shared = False
    disk_folder: Path | None = None  # on the disk of the store's data; None where that is not visible here
    free_disk: int = FREE_DISK  # bytes that a commit of records must leave on that disk

    @abstractmethod
    def read(self) -> AbstractContextManager[View]: ...

    @abstractmethod
    def write(self) -> AbstractContextManager[Transaction]: ...

    @abstractmethod
    def close(self) -> None: ...

    @property
    @abstractmethod
    def location(self) -> str: ...

    def _require_room(self, size: int) -> None:
        if self.disk_folder is None:
            return
        try:
            require_room(
                self.disk_folder, 2 * size, self.free_disk
            )  # in the journal first, then in the store
        except OSError as e:
            raise StoreFull(f"{self.location}: {e.strerror}; make room, what is held stays as it is") from e

    def settle(self) -> None:
        """Nothing, where closing takes no time."""

    def secret(self, name: str) -> bytes:
        with self.read() as view:
            found = view.meta(name)
        if isinstance(found, bytes):
            return found
        with self.write() as tx:
            return tx.meta_default(name, secrets.token_bytes(32))

    def epoch(self) -> str:
        return ":".join(self.secret(name).hex()[:16] for name in (IDENTITY, EPOCH))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
