"""Which engine keeps the index of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from indlet.service.index import Index
from indlet.service.index.embedded.index import EmbeddedIndex
from indlet.store import Store

FOLDER: Final = "index"


def folder(store: Store) -> Path:
    """Where the embedded engine keeps the index of a store."""
    return store.local_folder / FOLDER


def warm() -> float:
    """Compiles what searches need; gives the seconds it took."""
    from indlet.service.index.embedded.warming import warm as compiled

    return compiled()


def index_of(store: Store) -> Index:
    return EmbeddedIndex(folder(store))
