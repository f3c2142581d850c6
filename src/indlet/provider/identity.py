"""The name of a node that was given none: made once, kept in its store, and part of its identifiers."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Final

from indlet.oai.identifier import LOCAL, repository_identifier
from indlet.settings import Settings
from indlet.store import Store

_KEY: Final = "repository"


def identified(store: Store, settings: Settings) -> Settings:
    """The settings with the domain part of identifiers filled in where nothing configured tells it.

    Two nodes on two machines that both called themselves localhost gave different documents one identifier.
    A store that was crawled before nodes had names of their own keeps the identifiers that it gave out.
    """
    if repository_identifier(settings) != LOCAL or settings.node.repository:
        return settings
    return replace(settings, node=replace(settings.node, repository=_own(store)))


def _own(store: Store) -> str:
    with store.read() as view:
        found, crawled = view.meta(_KEY), bool(view.origins("hierarchy"))
    if not isinstance(found, bytes):
        name = LOCAL if crawled else f"node-{secrets.token_hex(4)}.localdomain"
        with store.write() as tx:
            found = tx.meta_default(_KEY, name.encode())
    return found.decode()
