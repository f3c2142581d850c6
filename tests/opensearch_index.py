"""Indices on the OpenSearch node of the tests, and libraries that are asked of both engines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from tests.opensearch_server import SERVER, awaited, on_opensearch

from indlet.cluster.opensearch.cluster import Cluster
from indlet.cluster.opensearch.index import OpenSearchIndex
from indlet.service.index.engines import identity
from indlet.service.search.library import Library
from indlet.settings import IndexEngine, Settings


@contextmanager
def library_in(folder: Path) -> Iterator[Library]:
    """A library whose index is embedded, or with INDLET_TEST_INDEX=opensearch on the node."""
    if not on_opensearch():
        with Library.open(folder) as library:
            yield library
        return
    url = awaited(os.environ[SERVER])
    with Library.open(folder, Settings(index=IndexEngine("opensearch", (url,), 2))) as library:
        yield library
        name = f"indlet-{identity(library.store)}"
    cluster = Cluster([url])
    cluster.ask("DELETE", f"{name}-*")
    cluster.close()


class TemporaryIndex(OpenSearchIndex):
    """An index of its own, which goes when it is closed."""

    def __init__(self, _: object = None, shards: int = 2, name: str = "") -> None:
        self.name = name or f"test-{uuid4().hex[:12]}"
        self.cluster = Cluster([awaited(os.environ[SERVER])])
        super().__init__(self.cluster, self.name, shards)

    def refresh(self) -> None:
        """Makes visible what was written, published or not."""
        self.cluster.ask("POST", f"{self.name}-data-*/_refresh")

    def close(self) -> None:
        self.cluster.ask("DELETE", f"{self.name}-*")
        self.cluster.close()
