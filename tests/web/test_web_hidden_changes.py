"""A change of what a stranger may not see changes no answer to them: neither a byte, nor a header field, by
which tools ask whether something is new."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.routing import Match, Route
from starlette.testclient import TestClient
from tests.service.api.test_hidden_records import asked as asked_of_the_api
from tests.web.nodes import make_client
from tests.web.test_web_hidden import PAGES
from tests.web.test_web_hidden_endpoints import OPEN, VAULT, asked, comparable, settings_with

from indlet.model import Failure, Record, TermVector
from indlet.service.index import follow
from indlet.settings import Access, VirtualRepository
from indlet.store import Store

REPOSITORY = VirtualRepository("/oai/part", "Part", from_=("open", "vault"))
MORE = (
    "/values/creator?q=wind", "/values/subject?inside=a", "/answers?q=wi",
    "/about/author?name=Zebra", "/about/subject?name=Wind", "/about/source?name=vault", "/embed?q=wind",
    "/search?q=wind", "/marked", "/information", "/help", "/preferences", "/api", "/api/",
    "/unapi", "/unapi?id=oai:open:1", "/unapi?id=oai:vault:1&format=oai_dc", "/record?id=oai:vault:1",
    "/record?id=oai:open:1", "/export/bibtex?id=oai:open:1", "/export/ris?id=oai:vault:1", "/logo",
    "/colours.css", "/api/openapi.json", "/api/nothing",
    "/ft-oai/part?verb=ListIdentifiers&metadataPrefix=oai_dc", "/oai/",
    "/ft-oai/", "/sitemap/1.xml", "/portal-sitemap/1.xml", "/feed.json?q=*",
    "/oai/part?verb=Identify", "/oai/part?verb=ListSets", "/browse/set?from=v", "/none",
    "/oai/part?verb=ListRecords&metadataPrefix=oai_dc", "/oai.xsl", "/static/none",
)  # fmt: skip
# What has no part of the collection in it, or asks for a password.
_APART = re.compile(r"/(admin|schema|metrics|static|favicon|marked\.)")


def addresses() -> Iterator[str]:
    yield from asked()
    yield from (page.replace("oai:x:", "oai:open:") for page in PAGES)
    for path, arguments in asked_of_the_api():
        yield f"{path}?{urlencode(arguments)}".replace("oai%3Ax%3A", "oai%3Aopen%3A")
    yield from MORE


def put(store: Store, where: str, number: int, word: str) -> None:
    metadata = {
        "title": [f"{word} wind"], "creator": [f"{word.title()}, A."], "subject": [word, "Wind"],
        "date": ["1999"], "language": ["en"], "type": ["Book"], "format": ["application/pdf"],
        "identifier": ["http://doi.org/1" if number == 1 else f"http://doi.org/{where}{number}"],
    }  # fmt: skip
    vector = TermVector.of({"wind": number, word: 2, f"{word}{number}": 1})
    with store.write() as tx:
        record = Record(f"oai:{where}:{number}", metadata, vector, (f"{where}:{word}",))
        tx.put(tx.origin("hierarchy", where), [record])


def answers(client: TestClient) -> dict[str, tuple[int, dict[str, str], bytes]]:
    found = {}
    for address in addresses():
        if address == "/metrics":
            continue  # counts requests
        answer = client.get(address)
        body = re.sub(rb"[\d.,]+ ms|\"took_ms\":[\d.e-]+", b"<ms>", comparable(answer.content))
        headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
        found[address] = answer.status_code, headers, body
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path, clock=lambda: 1_700_000_000.0) as opened:
        with opened.write() as tx:
            for tree in (OPEN, VAULT):
                tx.origin("hierarchy", tree.name, {"access": {"tokens": len(tree.access.tokens)}})
        for number in range(1, 6):
            put(opened, "open", number, "flutter")
            put(opened, "vault", number, "zeppelin")
        yield opened


def test_a_hidden_change_changes_no_answer(store: Store, tmp_path: Path) -> None:
    settings = replace(settings_with(tmp_path, hidden=True), repository=(REPOSITORY,))
    before = answers(make_client(store, settings, address="192.0.2.7"))
    assert sum(status == 200 for status, _, _ in before.values()) > 150
    assert before["/sitemap/1.xml"][0] == 404, "sequence numbers are no addresses"
    for number in range(3, 120):  # more than an archive of a feed holds
        put(store, "vault", number, "wind" if number % 2 else "zebra")
    put(store, "vault", 1, "flutter")
    with store.write() as tx:
        vault = tx.origin("hierarchy", "vault")
        tx.delete(vault, ["oai:vault:2"])
        tx.fail(vault, Failure("oai:vault:50", "extract", "broken"))
        tx.name_set(vault, "vault:zebra", "A new name")
    follow.catch_up(store)
    after = answers(make_client(store, settings, address="192.0.2.7"))
    for address, answer in before.items():
        assert after[address] == answer, address


def test_a_repository_that_is_closed_is_answered_like_one_that_is_not_there(
    store: Store, tmp_path: Path
) -> None:
    closed = replace(REPOSITORY, access=Access(tokens=("key",)))
    settings = replace(settings_with(tmp_path, hidden=True), repository=(closed,))
    client = make_client(store, settings, address="192.0.2.7")
    for path in ("/oai/part", "/ft-oai/part"):
        here, there = (client.get(f"{path}{more}?verb=Identify") for more in ("", "x"))
        assert (here.status_code, here.text) == (404, there.text.replace("partx", "part"))
        told = [{n: v for n, v in one.headers.items() if n != "content-length"} for one in (here, there)]
        assert told[0] == told[1]
        assert client.get(f"{path}?verb=Identify", headers={"Authorization": "Bearer key"}).status_code == 200


def test_every_address_is_asked(store: Store, tmp_path: Path) -> None:
    settings = replace(settings_with(tmp_path, hidden=True), repository=(REPOSITORY,))
    app = make_client(store, settings).app
    assert isinstance(app, Starlette)
    paths = {address.partition("?")[0] for address in addresses()}
    for route in app.routes:
        assert isinstance(route, Route)
        if "GET" in (route.methods or ()) and not _APART.match(route.path):
            scopes = ({"type": "http", "method": "GET", "path": path, "headers": []} for path in paths)
            assert any(route.matches(scope)[0] is Match.FULL for scope in scopes), route.path
