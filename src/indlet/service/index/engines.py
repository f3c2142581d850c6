"""Which engine keeps the index of a store."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Final

from indlet.errors import SettingsError
from indlet.extension import extensions
from indlet.service.index import Index
from indlet.service.index.embedded.index import EmbeddedIndex
from indlet.settings import IndexEngine
from indlet.store import Store

FOLDER: Final = "index"
DEFAULT: Final = IndexEngine()


def folder(store: Store) -> Path:
    """Where the embedded engine keeps the index of a store."""
    return store.local_folder / FOLDER


def identity(store: Store) -> str:
    """What tells a store from every other."""
    return blake2b(store.secret("index"), digest_size=8).hexdigest()


def index_of(store: Store, engine: IndexEngine = DEFAULT) -> Index:
    if engine.is_embedded:
        return EmbeddedIndex(folder(store), (engine.prune, engine.prune_best) if engine.prune else None)
    for extension in extensions():
        if (kind := extension.index_engines.get(engine.engine)) is not None:
            return kind(store, engine)
    raise SettingsError(f"index.engine: no engine {engine.engine!r} is installed")
