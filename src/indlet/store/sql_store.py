"""What every store does alike."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Self

from indlet.settings import IndexEngine
from indlet.store.contract import Transaction, View


class SqlStore:
    index_engine = IndexEngine()
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
