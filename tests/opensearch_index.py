"""Indices on the OpenSearch node of the tests."""

from __future__ import annotations

import os
from uuid import uuid4

from tests.opensearch_server import SERVER, awaited

from indlet.service.index.opensearch.cluster import Cluster
from indlet.service.index.opensearch.index import OpenSearchIndex


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
