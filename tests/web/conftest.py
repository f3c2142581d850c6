"""A portal over a small collection; a provider that answers slowly enough to be watched."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from indlet.provider.pipeline import crawl
from indlet.provider.serve import application as provider_application
from indlet.service import follow
from indlet.settings import Admin, Crawl, Harvest, Hierarchy, Node, Serve, Settings
from indlet.store import Store
from indlet.web.app import application
from indlet.web.auth import hash_password

sys.path.insert(0, str(Path(__file__).parent))
from collection import TOPICS, fill

PASSWORD = "open sesame"
HASH = hash_password(PASSWORD)


def settings_for(folder: Path, port: int = 8080, **changes: Any) -> Settings:
    base = Settings(
        data=folder,
        node=Node(name="Union Catalogue", port=port),
        admin=Admin(password_hash=HASH),
        harvest=Harvest(retries=1, backoff_seconds=0.05),
    )
    return replace(base, **changes)


def make_client(store: Store, settings: Settings, address: str = "127.0.0.1") -> TestClient:
    """A client that sits on the same machine, unless told otherwise. The index is as it is now."""
    follow.catch_up(store)
    return TestClient(
        application(store, settings, follow=False),
        base_url=settings.base_url(),
        client=(address, 50000),
        follow_redirects=False,
        raise_server_exceptions=False,
    )


@pytest.fixture(scope="session")
def library_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The collection, harvested and indexed. Tests that read only share it."""
    with Store.open(tmp_path_factory.mktemp("portal")) as store:
        fill(store)
        follow.catch_up(store)
        yield store


@pytest.fixture(scope="session")
def client(library_store: Store) -> TestClient:
    return make_client(library_store, settings_for(library_store.folder))


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[tuple[Store, TestClient]]:
    """A node of its own, for tests that change something."""
    with Store.open(tmp_path / "data") as store:
        yield store, make_client(store, settings_for(tmp_path / "data"))


@contextlib.contextmanager
def listening(app: Any, bound: socket.socket) -> Iterator[None]:
    """A real server on a bound socket, in a thread."""
    config = uvicorn.Config(app, log_level="error", access_log=False, proxy_headers=False, lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(15)


def free_socket() -> tuple[socket.socket, int]:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound, bound.getsockname()[1]


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


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for something that another thread brings about."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
