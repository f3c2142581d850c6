"""Nodes for tests: settings, a client without a network, a real server in a thread."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.testclient import TestClient

from indlet.provider.serve import server
from indlet.service.index import follow
from indlet.settings import Admin, Appearance, Harvest, Node, Settings
from indlet.store import Store
from indlet.web.app import application
from indlet.web.auth import hash_password

PASSWORD = "open sesame"
HASH = hash_password(PASSWORD)


def settings_for(folder: Path, port: int = 8080, **changes: Any) -> Settings:
    base = Settings(
        data=folder,
        node=Node(name="Union Catalogue", port=port),
        admin=Admin(password_hash=HASH),
        harvest=Harvest(retries=1, backoff_seconds=0.05),
        portal=Appearance(models=True),
    )
    return replace(base, **changes)


def make_client(store: Store, settings: Settings, address: str = "127.0.0.1") -> TestClient:
    """A client that sits on the same machine, unless told otherwise. The index is as it is now."""
    follow.catch_up(store, engine=settings.index)
    return TestClient(
        application(store, settings, follow=False),
        base_url=settings.base_url(),
        client=(address, 50000),
        follow_redirects=False,
        raise_server_exceptions=False,
    )


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


@contextlib.contextmanager
def shipped(app: Starlette, settings: Settings, bound: socket.socket) -> Iterator[None]:
    """The server of `indlet serve`, in a thread."""
    running = server(app, settings)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    until(lambda: running.started)
    try:
        yield
    finally:
        running.should_exit = True
        thread.join(15)


def free_socket() -> tuple[socket.socket, int]:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound, bound.getsockname()[1]


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something that another thread brings about."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
