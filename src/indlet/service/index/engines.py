"""Which engine keeps the index of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from indlet.service.index import Index
from indlet.service.index.embedded.index import EmbeddedIndex
from indlet.service.index.embedded.warming import warm
from indlet.store import Store

__all__ = ["FOLDER", "folder", "index_of", "warm"]

FOLDER: Final = "index"


def folder(store: Store) -> Path:
    """Where the embedded engine keeps the index of a store."""
    return store.local_folder / FOLDER


def index_of(store: Store) -> Index:
    return EmbeddedIndex(folder(store))
