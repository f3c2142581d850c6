"""A provider over a real store: asked directly, or over loopback from a real uvicorn."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
import uvicorn
from lxml import etree
from starlette.applications import Starlette
from starlette.testclient import TestClient

from indlet.formats import oai_dc
from indlet.model import Record, TermVector
from indlet.oai.names import FT_NAMESPACE, OAI_NAMESPACE
from indlet.provider.serve import application
from indlet.settings import Settings, from_mapping
from indlet.store import Store

START = 1_700_000_000.0


class Clock:
    """A clock that the test moves."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def record(
    number: int, sets: tuple[str, ...] = ("papers",), text: str = "wing air", positions: bool = False
) -> Record:
    terms = {word: text.split().count(word) for word in text.split()} | {f"term{number}": 1}
    if positions:
        words = [*text.split(), f"term{number}"]
        vector = TermVector.of_positions(
            {w: [i for i, other in enumerate(words) if other == w] for w in words}, language="en"
        )
    else:
        vector = TermVector.of(terms, language="en")
    url = f"http://x.org/files/{number}.pdf"
    metadata = {"title": [f"Report {number} on <wings> & air"], "creator": ["Ada"], "identifier": [url]}
    name = f"oai:x.org:papers/{number:04d}%20a"
    return Record(name, metadata, vector, sets, raw=oai_dc.write(metadata), properties={"url": url})


@dataclass
class Provider:
    """A store and its application, with shortcuts that tests read well by."""

    store: Store
    settings: Settings
    clock: Clock
    app: Starlette = field(init=False)
    client: TestClient = field(init=False)

    def __post_init__(self) -> None:
        self.configure(self.settings)

    def configure(self, settings: Settings) -> None:
        self.settings = settings
        self.app = application(self.store, settings, clock=self.clock)
        self.client = TestClient(self.app, base_url="http://x.org", follow_redirects=False)

    def put(self, records: Iterable[Record], origin: str = "papers") -> None:
        with self.store.write() as tx:
            tx.put(tx.origin("hierarchy", origin), records)

    def delete(self, identifiers: Iterable[str], origin: str = "papers") -> None:
        with self.store.write() as tx:
            tx.delete(tx.origin("hierarchy", origin), identifiers)

    def ask(
        self, path: str = "/oai", headers: dict[str, str] | None = None, **arguments: str
    ) -> etree._Element:
        """The root of the answer; `from_` stands for from."""
        query = urlencode({name.rstrip("_"): value for name, value in arguments.items()})
        response = self.client.get(f"{path}?{query}", headers=headers)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "text/xml; charset=utf-8"
        return etree.fromstring(response.content)

    def pages(
        self, path: str = "/oai", between: Callable[[], None] = lambda: None, **arguments: str
    ) -> Iterator[etree._Element]:
        """Every page of a list, following tokens; `between` runs before each next page."""
        root = self.ask(path, **arguments)
        yield root
        while token := found(root, "resumptionToken"):
            between()
            root = self.ask(path, verb=arguments["verb"], resumptionToken=token[0])
            yield root


def found(root: etree._Element, name: str) -> list[str]:
    """The text of every element of that name in the protocol's own namespaces, empty ones left out."""
    return [
        node.text
        for node in root.iter(f"{{{OAI_NAMESPACE}}}{name}", f"{{{FT_NAMESPACE}}}{name}")
        if node.text
    ]


def codes(root: etree._Element) -> list[str]:
    return [e.get("code", "") for e in root.iter(f"{{{OAI_NAMESPACE}}}error", f"{{{FT_NAMESPACE}}}error")]


SETTINGS = {
    "node": {"name": "Wings", "base_url": "http://x.org", "admin_email": ["a@x.org", "b@x.org"]},
    "serve": {"records_per_page": 10, "identifiers_per_page": 10, "sets_per_page": 3},
}


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    clock = Clock()
    with Store.open(tmp_path / "data", clock=clock) as store:
        yield Provider(store, from_mapping(SETTINGS), clock)


@pytest.fixture
def filled(provider: Provider) -> Provider:
    """25 records in two sets over three seconds; numbers 3 and 14 are deleted."""
    provider.put(record(n, ("papers:a",)) for n in range(10))
    provider.clock.now += 100
    provider.put(record(n, ("papers:b",)) for n in range(10, 25))
    provider.clock.now += 100
    provider.delete(["oai:x.org:papers/0003%20a", "oai:x.org:papers/0014%20a"])
    provider.clock.now += 100
    return provider


@pytest.fixture
def running() -> Iterator[Callable[[Store, Settings], str]]:
    """Starts a real server for a store; gives its root URL."""
    servers: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(store: Store, settings: Settings) -> str:
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        root = f"http://127.0.0.1:{sock.getsockname()[1]}"
        app = application(store, replace(settings, node=replace(settings.node, base_url=root)))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", proxy_headers=False, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        servers.append((server, thread))
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        return root

    yield start
    for server, thread in servers:
        server.should_exit = True
        thread.join(10)
