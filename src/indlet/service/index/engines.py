"""Which engine keeps the index of a store."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from indlet.errors import MissingExtra
from indlet.service.index import Index
from indlet.service.index.embedded.index import EmbeddedIndex
from indlet.store import Store

if TYPE_CHECKING:
    from indlet.cluster.opensearch.cluster import Cluster

FOLDER: Final = "index"


def folder(store: Store) -> Path:
    """Where the embedded engine keeps the index of a store."""
    return store.local_folder / FOLDER


def identity(store: Store) -> str:
    """What tells a store from every other."""
    return blake2b(store.secret("index"), digest_size=8).hexdigest()


def index_of(store: Store) -> Index:
    chosen = store.index_engine
    if chosen.engine == "embedded":
        return EmbeddedIndex(folder(store), (chosen.prune, chosen.prune_best) if chosen.prune else None)
    try:
        from indlet.cluster.opensearch.index import OpenSearchIndex
    except ModuleNotFoundError as e:
        if (e.name or "").startswith("indlet"):
            raise
        raise MissingExtra(f"an index on OpenSearch (it imports {e.name})", "opensearch") from e
    return OpenSearchIndex(_cluster(chosen.url), f"indlet-{identity(store)}", chosen.shards)


@lru_cache(8)
def _cluster(urls: tuple[str, ...]) -> Cluster:
    """One pool of connections for a process."""
    from indlet.cluster.opensearch.cluster import Cluster

    return Cluster(urls)
