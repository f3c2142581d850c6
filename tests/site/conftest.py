"""A web server, a store beside it, and what harvesters of several credentials see."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from lxml import etree
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.provider.conftest import workers as workers
from tests.site.web_servers import Web, available, basic, web_server

from indlet.oai.names import OAI_NAMESPACE
from indlet.provider.pipeline import crawl
from indlet.provider.serve import application
from indlet.provider.serve import server as make_server
from indlet.provider.summary import Summary
from indlet.provider.workers import Workers
from indlet.settings import Crawl, Serve, Settings, Site
from indlet.store import Store

OAI = f"{{{OAI_NAMESPACE}}}"
Make = Callable[..., "Bench"]


class Client:
    """Harvests as somebody: with a user's credentials, from an address."""

    def __init__(self, app: Starlette) -> None:
        self.http = TestClient(app, base_url="http://x.org", client=("127.0.0.1", 5000))

    def get(
        self, user: str = "", address: str = "198.51.100.7", path: str = "/oai", **arguments: str
    ) -> etree._Element:
        headers = {"X-Forwarded-For": address} | ({"Authorization": basic(user)} if user else {})
        arguments = {name.rstrip("_"): value for name, value in arguments.items()}
        answer = self.http.get(f"{path}?{urlencode(arguments)}", headers=headers)
        assert answer.status_code == 200, answer.text
        return etree.fromstring(answer.content)

    def pages(self, verb: str = "ListIdentifiers", user: str = "", address: str = "198.51.100.7",
              **arguments: str) -> Iterator[etree._Element]:  # fmt: skip
        """The pages of a list to its end."""
        given = {"metadataPrefix": "oai_dc", **arguments}
        while True:
            page = self.get(user, address, verb=verb, **given)
            yield page
            token = page.findtext(f".//{OAI}resumptionToken")
            if not token:
                return
            given = {"resumptionToken": token}

    def harvested(self, verb: str = "ListIdentifiers", user: str = "", address: str = "198.51.100.7",
                  **arguments: str) -> set[str]:  # fmt: skip
        """The paths that a list names; deleted ones with a minus."""
        found: list[str] = []
        for page in self.pages(verb, user, address, **arguments):
            if page.find(f"{OAI}error") is not None:
                return set()
            for header in page.iter(f"{OAI}header"):
                url = urlsplit(header.findtext(f"{OAI}identifier", "")).path
                found.append(("-" if header.get("status") == "deleted" else "") + url)
        assert len(found) == len(set(found)), found
        return set(found)


class Bench:
    """A web server, its site in the settings, and the store that it is crawled into."""

    def __init__(self, web: Web, folder: Path, workers: Workers, **site: Any) -> None:
        self.web = web
        self.store = Store.open(folder / "data")
        self._workers = workers
        self.settings = Settings(
            data=folder / "data",
            crawl=Crawl(settle_seconds=0.0),
            site=(Site(str(web.root), web.url, name="site", **site),),
        )

    def crawl(self, **options: Any) -> Summary:
        (summary,) = crawl(self.store, self.settings, workers=self._workers, **options)
        return summary

    def serve(self, **serve: Any) -> Client:
        """The node's own web side, as a proxy on this machine reaches it."""
        options = {
            "trusted_proxies": ("127.0.0.1",),
            "records_per_page": 3,
            "identifiers_per_page": 3,
            **serve,
        }
        self.settings = replace(self.settings, serve=Serve(**options))
        return Client(application(self.store, self.settings))

    @contextmanager
    def listening(self, **serve: Any) -> Iterator[str]:
        """The address of the node's own web side, on loopback."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as sock:
            sock.bind(("127.0.0.1", 0))
            root = f"http://127.0.0.1:{sock.getsockname()[1]}"
            node = replace(self.settings.node, base_url=root)
            self.settings = replace(self.settings, node=node, serve=Serve(**serve))
            server = make_server(application(self.store, self.settings), self.settings)
            thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
            thread.start()
            while not server.started and thread.is_alive():
                time.sleep(0.005)
            try:
                yield root
            finally:
                server.should_exit = server.force_exit = True
                thread.join(10)

    def listed(self, origin: str = "site") -> dict[str, dict[str, Any]]:
        """The live records of an origin by path, with all that is known of them."""
        with self.store.read() as view:
            found = view.origin("hierarchy", origin)
            assert found is not None
            return {
                s.identifier.removeprefix(f"{self.web.url}/"): {
                    "datestamp": s.datestamp, "sets": s.sets.split(), "seq": s.seq, "vector": s.vector,
                    **s.record.properties, "metadata": s.record.metadata,
                }
                for s in view.page(100_000, origins=[found.id])
                if not s.deleted
            }  # fmt: skip


@pytest.fixture(params=["apache-event", "apache-prefork", "nginx"])
def web(request: pytest.FixtureRequest) -> Iterator[Web]:
    yield from _started(request.param)


@pytest.fixture
def apache() -> Iterator[Web]:
    yield from _started("apache-event")


def _started(kind: str) -> Iterator[Web]:
    if not available(kind):
        pytest.skip(f"no {kind.partition('-')[0]} here: apt-get install apache2 nginx-light")
    with web_server(kind) as found:
        yield found


@pytest.fixture
def make(tmp_path: Path, workers: Workers) -> Iterator[Make]:
    with ExitStack() as stack:

        def made(web: Web, **site: Any) -> Bench:
            bench = Bench(web, tmp_path, workers, **site)
            stack.callback(bench.store.close)
            return bench

        yield made
