"""Hosts of sources that have had a public address, as the store remembers them."""

from __future__ import annotations

from functools import partial

from indlet.net.reach import KnownPublic
from indlet.store import Store, kept_tables


def known_public(store: Store) -> KnownPublic:
    return KnownPublic(public_hosts(store), partial(remember_public_host, store))


def public_hosts(store: Store) -> frozenset[str]:
    with store.read() as view:
        return frozenset(row.host for row in view.select(kept_tables.PUBLIC_HOSTS))


def remember_public_host(store: Store, host: str) -> None:
    with store.write() as tx:
        tx.upsert(kept_tables.PUBLIC_HOSTS, [kept_tables.PublicHost(host)])
