"""Harvested from a cache, by its virtual repository, a collection is what it is at its origin."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import uvicorn

from indlet.model import Record
from indlet.provider.serve import application
from indlet.service.pipeline import harvest_all
from indlet.service.search.library import Library
from indlet.settings import Harvest, Node, Settings, Source, VirtualRepository
from indlet.store import Store, open_store
from indlet.text import Analyzer, Policy

TEXTS = (
    "flutter of swept wings",
    "shock waves on a blunt body",
    "wings in a transonic tunnel",
    "ice on wings",
)


class CacheNode:
    """A node on loopback that serves its store while it harvests another."""

    def __init__(self, folder: Path, name: str) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        nasa = VirtualRepository("/oai/nasa", "NASA", ("larc",))
        self.settings = Settings(
            data=folder / name, node=Node(name=name, port=port), repository=(nasa,),
            harvest=Harvest(retries=0),
        )  # fmt: skip
        self.store: Store = open_store(self.settings.data)
        app = application(self.store, self.settings)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self.socket]})
        self._thread.start()

    def harvest(self, url: str, name: str = "larc", set_spec: str = "") -> int:
        source = Source(url, name=name, set=set_spec, republish=True)
        (done,) = harvest_all(self.store, self.settings, [source])
        assert done.outcome == "complete", done.reason
        assert done.form.endswith("tf_compact")
        return done.changed

    def held(self) -> dict[str, tuple[bytes, bytes | None, bytes]]:
        with self.store.read() as view:
            return {s.identifier: (s.raw, s.vector, s.metadata) for s in view.changes() if not s.deleted}

    def scores(self, query: str, model: str) -> list[tuple[str, float]]:
        with Library.open(self.settings.data, self.settings) as library:
            return [(hit.identifier, hit.score) for hit in library.search(query, model=model).hits]

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self.store.close()


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[CacheNode]]:
    with ExitStack() as stack:
        found = []
        for name in ("origin", "cache", "direct", "beyond"):
            found.append(CacheNode(tmp_path, name))
            stack.callback(found[-1].close)
        yield found


def put(node: CacheNode, texts: dict[int, str], *sets: str) -> None:
    analyzer = Analyzer(Policy())
    with node.store.write() as tx:
        for n, text in texts.items():
            vector = analyzer.vector(f"{text} {text} of {n}", "en")
            record = Record(f"oai:larc.example.org:{n}", {"title": [text]}, vector, sets)
            tx.put(tx.origin("hierarchy", "larc"), [record])
    second_over()


def second_over() -> None:
    """Two states of one second have one version until the origin is asked again (docs/mesh.md)."""
    now = time.time()
    time.sleep(1.01 - now % 1)


def test_a_cache_is_worth_the_origin(nodes: list[CacheNode]) -> None:
    origin, cache, direct, beyond = nodes
    put(origin, dict(enumerate(TEXTS)))
    for _ in range(2):
        cache.harvest(origin.url)
        direct.harvest(origin.url)
        beyond.harvest(f"{cache.url}/ft-oai/nasa", "nasa")
        assert beyond.held() == direct.held() and len(direct.held()) >= 4
        for model in ("bm25", "vsm", "lm-dirichlet"):
            assert beyond.scores("wings", model) == direct.scores("wings", model) != []
        put(origin, {1: "wings that are changed", 7: "more wings"})
        with origin.store.write() as tx:
            tx.delete(tx.origin("hierarchy", "larc"), ["oai:larc.example.org:0"])
        second_over()


def test_whichever_way_a_record_comes_there_is_one_copy(nodes: list[CacheNode]) -> None:
    origin, cache, _, beyond = nodes
    put(origin, dict(enumerate(TEXTS)))
    cache.harvest(origin.url)
    beyond.harvest(f"{cache.url}/ft-oai/nasa", "nasa")
    beyond.harvest(f"{origin.url}/ft-oai/nasa", "by the origin's own view")
    beyond.harvest(origin.url, "")
    with beyond.store.read() as view:
        assert len([s for s in view.changes() if not s.deleted]) == len(TEXTS)


def test_a_record_that_leaves_a_set_goes_where_the_set_is_harvested_and_nowhere_else(
    nodes: list[CacheNode],
) -> None:
    origin, cache, direct, beyond = nodes
    put(origin, dict(enumerate(TEXTS)), "wings")
    for _ in range(2):
        cache.harvest(origin.url, set_spec="wings")
        direct.harvest(origin.url)
        beyond.harvest(origin.url)
        beyond.harvest(cache.url, "cache")
        put(origin, {1: TEXTS[1]}, "shocks")
    cache.harvest(origin.url, set_spec="wings")
    names = set(direct.held())
    assert cache.held().keys() == names - {"oai:larc.example.org:1"}
    with cache.store.read() as view:
        left = view.get("oai:larc.example.org:1")
    assert left is not None and b"version" not in left.properties  # no word of the origin
    for _ in range(2):
        beyond.harvest(cache.url, "cache")
        assert beyond.held().keys() == names and len(names) == len(TEXTS)
        beyond.harvest(origin.url)
