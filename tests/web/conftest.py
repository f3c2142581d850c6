"""A portal over a small collection; a provider that answers slowly enough to be watched."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from indlet.provider.pipeline import crawl
from indlet.provider.serve import application as provider_application
from indlet.service.index import follow
from indlet.settings import Crawl, Hierarchy, Node, Serve, Settings
from indlet.store import Store

# pytest names test modules by their path, but does not make `tests` a package that can be imported from.
package = sys.modules.setdefault("tests", types.ModuleType("tests"))
package.__path__ = [str(Path(__file__).parents[1])]

from tests.web.collection import TOPICS, fill  # noqa: E402
from tests.web.nodes import free_socket, listening, make_client, settings_for  # noqa: E402


@pytest.fixture(scope="session")
def library_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The collection, harvested and indexed. Tests that read only share it."""
    with Store.open(tmp_path_factory.mktemp("portal")) as store:
        fill(store)
        follow.catch_up(store)
        yield store


@pytest.fixture(scope="session")
def client(library_store: Store) -> TestClient:
    return make_client(library_store, settings_for(library_store.local_folder))


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[tuple[Store, TestClient]]:
    """A node of its own, for tests that change something."""
    with Store.open(tmp_path / "data") as store:
        yield store, make_client(store, settings_for(tmp_path / "data"))


@pytest.fixture(scope="session")
def slow_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real provider over real files, whose pages are small and take their time."""
    root = tmp_path_factory.mktemp("files")
    for number, (topic, words) in enumerate(list(TOPICS.items()) * 8):
        text = f"{topic} number {number}\n\nA note on quincunx {words} {topic}.\n"
        (root / f"note-{number}.txt").write_text(text, encoding="utf-8")
    data = tmp_path_factory.mktemp("provider")
    bound, port = free_socket()
    settings = Settings(
        data=data,
        node=Node(name="Slow Repository", port=port, base_url=f"http://127.0.0.1:{port}"),
        crawl=Crawl(workers=1, settle_seconds=0.0),
        serve=Serve(records_per_page=4, identifiers_per_page=4),
        hierarchy=(Hierarchy(root=str(root), name="notes"),),
    )
    with Store.open(data) as store:
        crawl(store, settings)
        app = provider_application(store, settings)

        async def slowly(scope: Scope, receive: Receive, send: Send) -> None:
            if b"ListRecords" in scope.get("query_string", b""):
                await asyncio.sleep(0.1)
            await app(scope, receive, send)

        with listening(slowly, bound):
            yield f"http://127.0.0.1:{port}"
