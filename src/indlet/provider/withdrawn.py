"""Records that their originator has marked as deleted, though the files that hold them are still there."""

from __future__ import annotations

import orjson

from indlet.model import JsonObject
from indlet.store import Transaction, View


def withdrawn(view: View, origin: int) -> dict[str, JsonObject]:
    """By identifier: who marked it, when, and the file that holds it."""
    found: dict[str, JsonObject] = orjson.loads(view.meta(_key(origin)) or b"{}")
    return found


def withdrawn_now(tx: Transaction, origin: int) -> dict[str, JsonObject]:
    """The same in a transaction: nobody changes it until that ends."""
    found: dict[str, JsonObject] = orjson.loads(tx.meta_value(_key(origin), b"{}"))
    return found


def keep_withdrawn(tx: Transaction, origin: int, marks: dict[str, JsonObject]) -> None:
    tx.meta(_key(origin), orjson.dumps(marks))


def _key(origin: int) -> str:
    return f"withdrawn:{origin}"
