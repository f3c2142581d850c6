"""Hosts of sources that have had a public address, as the store remembers them."""

from __future__ import annotations

from functools import partial
from typing import Final

import orjson

from indlet.net.reach import KnownPublic
from indlet.store import Store

_META: Final = "public hosts"


def known_public(store: Store) -> KnownPublic:
    return KnownPublic(public_hosts(store), partial(remember_public_host, store))


def public_hosts(store: Store) -> frozenset[str]:
    with store.read() as view:
        raw = view.meta(_META)
    return frozenset(orjson.loads(raw)) if raw else frozenset()


def remember_public_host(store: Store, host: str) -> None:
    with store.write() as tx:
        raw = tx.meta_value(_META, None)
        tx.meta(_META, orjson.dumps(sorted({host, *(orjson.loads(raw) if raw else ())})))
