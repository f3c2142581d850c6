"""Which engine keeps the index of a store."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from indlet.errors import MissingExtra
from indlet.kernels import state
from indlet.model import Stored
from indlet.service.index import Index
from indlet.service.index.embedded.index import EmbeddedIndex
from indlet.store import Store
from indlet.text import Analyzer

if TYPE_CHECKING:
    from indlet.service.index.opensearch.cluster import Cluster

FOLDER: Final = "index"


def folder(store: Store) -> Path:
    """Where the embedded engine keeps the index of a store."""
    return store.local_folder / FOLDER


def warm(*, wait: bool = True) -> None:
    """Loads what searches need. What is not compiled yet is waited for, or is compiled aside."""
    if wait or state.ready():
        from indlet.service.index.embedded.warming import warm as compiled

        compiled()
    else:
        state.compile_aside()


def identity(store: Store) -> str:
    """What tells a store from every other."""
    return blake2b(store.secret("index"), digest_size=8).hexdigest()


def index_of(store: Store) -> Index:
    chosen = store.index_engine
    if chosen.engine == "embedded":
        return EmbeddedIndex(folder(store), (chosen.prune, chosen.prune_best) if chosen.prune else None)
    try:
        from indlet.service.index.opensearch.index import OpenSearchIndex
    except ModuleNotFoundError as e:
        if (e.name or "").startswith("indlet"):
            raise
        raise MissingExtra(f"an index on OpenSearch (it imports {e.name})", "opensearch") from e
    return OpenSearchIndex(_cluster(chosen.url), f"indlet-{identity(store)}", chosen.shards)


@lru_cache(8)
def _cluster(urls: tuple[str, ...]) -> Cluster:
    """One pool of connections for a process."""
    from indlet.service.index.opensearch.cluster import Cluster

    return Cluster(urls)


def load_embedded() -> None:
    """Loads what the embedded engine indexes with, in a process that will be told to."""
    from indlet.service.index.embedded import engine, merge_scheduler  # noqa: F401
    from indlet.service.index.embedded.analysis import Analyses

    if state.ready():  # the kernels, and with them the words of all languages
        title = Stored(1, 1, 1, "x", 0, 0, "", "", 0, 0, b'{"title":["x"]}', b"{}", b"", None, None, b"")
        Analyses(Analyzer()).together([title])
