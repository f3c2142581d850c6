"""A provider over a real store: asked directly, or over loopback from a real uvicorn."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

import pytest
import uvicorn
from lxml import etree
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.stores import store_in

from indlet.formats import METADATA
from indlet.formats.metadata import oai_dc
from indlet.model import Record, TermVector
from indlet.oai.names import BUNDLE_NAMESPACE, FT_NAMESPACE, OAI_NAMESPACE
from indlet.provider.serve import application
from indlet.provider.serve import server as make_server
from indlet.provider.serve.pages import packaged
from indlet.settings import Settings
from indlet.settings.file import from_mapping
from indlet.store import Store

START = 1_700_000_000.0


class Clock:
    """A clock that the test moves."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def record(number: int, sets: tuple[str, ...] = ("papers",), text: str = "wing air") -> Record:
    words = [*text.split(), f"term{number}"]
    places = {word: [i for i, other in enumerate(words) if other == word] for word in words}
    vector = TermVector.of_positions(places, language="en")
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
        self.app = application(self.store, settings, clock=self.clock)
        self.settings = settings
        self.client = TestClient(self.app, base_url="http://x.org", follow_redirects=False)

    def put(self, records: Iterable[Record], origin: str = "papers") -> None:
        with self.store.write() as tx:
            tx.put(tx.origin("hierarchy", origin), records)

    def delete(self, identifiers: Iterable[str], origin: str = "papers") -> None:
        with self.store.write() as tx:
            tx.delete(tx.origin("hierarchy", origin), identifiers)

    def get(self, path: str = "/oai", /, **arguments: str) -> bytes:
        """The XML of an answer; `from_` stands for from."""
        query = urlencode({name.rstrip("_"): value for name, value in arguments.items()})
        return self.fetch(f"{path}?{query}")

    def fetch(self, url: str, headers: dict[str, str] | None = None) -> bytes:
        response = self.client.get(url, headers=headers)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "text/xml; charset=utf-8"
        return bytes(response.content)

    def ask(self, path: str = "/oai", /, **arguments: str) -> etree._Element:
        return etree.fromstring(self.get(path, **arguments))

    def pages(
        self, path: str = "/oai", between: Callable[[], None] = lambda: None, /, **arguments: str
    ) -> Iterator[etree._Element]:
        """Every page of a list, following tokens; `between` runs before each next page."""
        root = self.ask(path, **arguments)
        yield root
        while token := self.found(root, "resumptionToken"):
            between()
            root = self.ask(path, verb=arguments["verb"], resumptionToken=token[0])
            yield root

    def listed(self, path: str = "/oai", /, **arguments: str) -> list[str]:
        """Every identifier of a list, page by page."""
        return [name for page in self.pages(path, **arguments) for name in self.found(page, "identifier")]

    @staticmethod
    def found(root: etree._Element, name: str) -> list[str]:
        """The text of every element of that name in the protocol's own namespaces, empty ones left out."""
        return [
            node.text
            for node in root.iter(f"{{{OAI_NAMESPACE}}}{name}", f"{{{FT_NAMESPACE}}}{name}")
            if node.text
        ]

    @staticmethod
    def codes(root: etree._Element) -> list[str]:
        return [e.get("code", "") for e in root.iter(f"{{{OAI_NAMESPACE}}}error", f"{{{FT_NAMESPACE}}}error")]

    @staticmethod
    def record(number: int, sets: tuple[str, ...] = ("papers",), text: str = "wing air") -> Record:
        return record(number, sets, text)

    @staticmethod
    def name(number: int) -> str:
        return f"oai:x.org:papers/{number:04d}%20a"


SETTINGS = {
    "node": {"name": "Wings", "base_url": "http://x.org", "admin_email": ["a@x.org", "b@x.org"]},
    "serve": {"records_per_page": 10, "identifiers_per_page": 10, "sets_per_page": 3},
}


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    clock = Clock()
    with store_in(tmp_path / "data", clock=clock) as store:
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
def running() -> Iterator[Callable[..., str]]:
    """Starts a real server for a store; gives its root URL."""
    servers: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(store: Store, settings: Settings, path: str = "") -> str:
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        root = f"http://127.0.0.1:{sock.getsockname()[1]}"
        settings = replace(settings, node=replace(settings.node, base_url=root + path))
        app = application(store, settings)
        server = make_server(app, settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        servers.append((server, thread))
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        return root

    yield start
    for server, thread in servers:
        server.should_exit = server.force_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def valid() -> Callable[[bytes], None]:
    """Checks an answer against the schemas: ours always, the official ones where INDLET_XSD names a schema
    that imports them all.

    Ours for the extension says of the plain elements what the official one says, so an answer of /oai must
    pass it too, once its namespace is exchanged and as long as it uses nothing of the extension.
    """
    ours = etree.XMLSchema(
        etree.fromstring(packaged("schema/ft-oai.xsd"), base_url=str(schemas / "ft-oai.xsd"))
    )
    official = _official() if os.environ.get("INDLET_XSD") else None

    def check(answer: bytes) -> None:
        root = etree.fromstring(answer)
        if root.tag == f"{{{OAI_NAMESPACE}}}OAI-PMH":
            if official is not None and _known(root):
                official.assertValid(root)
            for extension in (b"indexPrefix", b"<index>", b"ListIndexFormats", b"noIndexFormats"):
                assert extension not in answer.partition(b"<error")[0]
            answer = answer.replace(
                f'xmlns="{OAI_NAMESPACE}"'.encode(), f'xmlns="{FT_NAMESPACE}"'.encode(), 1
            )
            root = etree.fromstring(answer)
        ours.assertValid(root)

    return check


schemas = Path(str(files("indlet.provider.serve"))) / "schema"


def _schema_files() -> dict[str, Path]:
    """The schemas of metadata formats by namespace: ours, and official ones that lie beside INDLET_XSD."""
    beside = Path(os.environ["INDLET_XSD"]).resolve().parent
    found = {BUNDLE_NAMESPACE: schemas / "bundle.xsd"}
    for metadata in METADATA.values():
        ours = "://" not in metadata.schema
        path = (schemas if ours else beside) / metadata.schema.rpartition("/")[2]
        if metadata.prefix != "oai_dc" and path.exists():
            found[metadata.namespace] = path
    return found


def _known(root: etree._Element) -> bool:
    """Whether there is a schema for every metadata part: the protocol's asks for one."""
    files = _schema_files()
    parts = root.findall(f".//{{{OAI_NAMESPACE}}}metadata/*")
    spaces = {etree.QName(part).namespace for part in parts}
    return all(space in files or space == METADATA["oai_dc"].namespace for space in spaces)


def _official() -> etree.XMLSchema:
    """The official schemas, joined with those of metadata formats, which strict validation would ask for."""
    imports = "".join(
        f'<xs:import namespace="{space}" schemaLocation="{path.as_uri()}"/>'
        for space, path in _schema_files().items()
    )
    wrapper = f"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
      <xs:include schemaLocation="{Path(os.environ["INDLET_XSD"]).resolve().as_uri()}"/>{imports}
    </xs:schema>"""
    return etree.XMLSchema(etree.fromstring(wrapper))
