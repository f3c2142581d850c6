"""What every store does alike."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Final, Self

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

    @abstractmethod
    def read(self) -> AbstractContextManager[View]: ...

    @abstractmethod
    def write(self) -> AbstractContextManager[Transaction]: ...

    @abstractmethod
    def close(self) -> None: ...

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
