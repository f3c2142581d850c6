"""An index on an OpenSearch cluster as the protocol of an index wants it (`service/index/protocol.py`)."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from functools import lru_cache
from typing import Final

from indlet.cluster.opensearch.cluster import WRITING, Cluster, NotThere
from indlet.cluster.opensearch.control import Control
from indlet.cluster.opensearch.searcher import ClusterSearcher
from indlet.cluster.opensearch.writer import OpenSearchWriter
from indlet.errors import IndexDamaged
from indlet.service.index.engines import identity
from indlet.service.index.protocol import IndexState
from indlet.settings import IndexEngine
from indlet.store import Store
from indlet.text import Analyzer

MERGING: Final = 6 * 3600  # seconds that merging everything may take


class OpenSearchIndex:
    """The index of one name on a cluster. May be used by many threads."""

    def __init__(self, cluster: Cluster, name: str, shards: int) -> None:
        self._control = Control(cluster, name)
        self._shards = shards
        self._guard = threading.Lock()
        self._searcher: tuple[int, ClusterSearcher] | None = None

    def state(self) -> IndexState:
        state = self._control.read()
        return IndexState(state.position, state.about)

    def version(self) -> Hashable:
        return self._control.read().generation

    def searcher(self) -> ClusterSearcher:
        state = self._control.read()
        with self._guard:
            if self._searcher is None or self._searcher[0] != state.generation:
                if state.data:
                    try:
                        self._control.cluster.ask("HEAD", state.data)
                    except NotThere as e:
                        raise IndexDamaged(
                            f"{state.data} is missing; rebuild the index with `indlet reindex`"
                        ) from e
                self._searcher = state.generation, ClusterSearcher(self._control, state)
            return self._searcher[1]

    def writer(self, analyzer: Analyzer, anew: bool = False) -> OpenSearchWriter:
        return OpenSearchWriter(self._control, analyzer, self._shards, anew)

    def erase(self) -> None:
        """Empties the index; who has a snapshot keeps it for a while."""
        lease = self._control.take()
        try:
            state = self._control.read()
            empty = {
                "generation": state.generation + 1, "position": 0, "about": {}, "data": "", "snapshot": "",
                "changing": False, "documents": 0, "length": 0, "longest": 0,
            }  # fmt: skip
            lease.set(empty, [(state.data, state.snapshot)] if state.data else [])
        finally:
            lease.release()

    def upkeep(self) -> ClusterUpkeep:
        return ClusterUpkeep()

    def settle(self, everything: bool = False) -> None:
        """The cluster merges by itself; `everything` asks it to do so at once, and lets go of what was
        merged, which the published point in time holds."""
        state, cluster = self._control.read(), self._control.cluster
        if everything and state.data:
            cluster.ask("POST", f"{state.data}/_forcemerge", max_num_segments=1, request_timeout=MERGING)
            cluster.ask("POST", f"{state.data}/_refresh", request_timeout=WRITING)
            self._control.republish(state)

    def close(self) -> None:
        """The connection is shared, and stays."""


class ClusterUpkeep:
    """Nothing is left to do here: the cluster looks after itself."""

    def wake(self) -> None:
        pass

    def close(self) -> None:
        pass


def index_on(store: Store, engine: IndexEngine) -> OpenSearchIndex:
    """The index of a store on the cluster that the settings name."""
    return OpenSearchIndex(_cluster(engine.url), f"indlet-{identity(store)}", engine.shards)


@lru_cache(8)
def _cluster(urls: tuple[str, ...]) -> Cluster:
    """One pool of connections for a process."""
    return Cluster(urls)
