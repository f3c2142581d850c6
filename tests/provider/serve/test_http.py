"""Around the protocol: codings, conditional requests, overload, limits, pages for people."""

from __future__ import annotations

import gzip
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard
from lxml import etree
from starlette.testclient import TestClient

from indlet.errors import SettingsError
from indlet.formats.metadata import oai_dc
from indlet.provider.pipeline import crawl
from indlet.provider.serve.coding import negotiated
from indlet.settings import Crawl, Hierarchy, Settings
from indlet.store import Store
from indlet.store.sqlite.store import SqliteStore

Provider = Any  # of conftest.py
LIST = "/oai?verb=ListRecords&metadataPrefix=oai_dc"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, "identity"),
        ("", "identity"),
        ("identity", "identity"),
        ("gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("GZIP", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip;q=1.0, zstd;q=0.5", "gzip"),
        ("gzip;q=0, br;q=0.1", "br"),
        ("gzip;q=0", "identity"),
        ("*", "zstd"),
        ("*;q=0.5, zstd;q=0", "br"),
        ("identity, gzip;q=0.5", "identity"),
        ("identity;q=0.5, gzip", "gzip"),
        ("gzip;q=nonsense", "identity"),
        ("compress, bzip2", "identity"),
    ],
)
def test_the_coding_is_the_requesters_choice(accept: str | None, expected: str) -> None:
    assert negotiated(accept, ("zstd", "br", "gzip")) == expected


@pytest.mark.parametrize(
    ("coding", "decode"),
    [
        ("gzip", gzip.decompress),
        ("br", brotli.decompress),
        ("zstd", lambda b: zstandard.ZstdDecompressor().decompress(b)),
        ("identity", bytes),
    ],
)
def test_every_coding_decodes_to_the_same_bytes(
    filled: Provider, coding: str, decode: Callable[[bytes], bytes]
) -> None:
    with filled.client.stream("GET", LIST, headers={"Accept-Encoding": coding}) as response:
        raw = b"".join(response.iter_raw())
        assert response.headers.get("content-encoding", "identity") == coding
        assert "Accept-Encoding" in response.headers["vary"]
        assert int(response.headers["content-length"]) == len(raw)
    assert decode(raw) == filled.fetch(LIST)


def test_an_unknown_coding_in_the_settings_is_refused(filled: Provider) -> None:
    with pytest.raises(SettingsError, match="lzma"):
        filled.configure(
            replace(filled.settings, serve=replace(filled.settings.serve, compression=("lzma",)))
        )


@pytest.mark.parametrize(
    "url",
    [
        "/oai?verb=Identify",
        "/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x.org:papers/0001%2520a",
        "/ft-oai?verb=ListIndexFormats",
        "/schema/ft-oai.xsd",
        "/oai.xsl",
        "/sitemap.xml",
        "/robots.txt",
        "/",
    ],
)
def test_what_has_not_changed_is_not_sent_again(filled: Provider, url: str) -> None:
    first = filled.client.get(url)
    assert first.status_code == 200
    filled.clock.now += 60
    again = filled.client.get(url, headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""
    assert again.headers["etag"] == first.headers["etag"]
    assert filled.client.get(url, headers={"If-None-Match": '"other"'}).status_code == 200


def test_a_changed_record_is_sent_again(filled: Provider) -> None:
    url = "/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x.org:papers/0001%2520a"
    first = filled.client.get(url)
    assert first.headers["last-modified"] == "Tue, 14 Nov 2023 22:13:20 GMT"
    since = {"If-Modified-Since": first.headers["last-modified"]}
    assert filled.client.get(url, headers=since).status_code == 304
    filled.put([filled.record(1, text="other words")])
    assert filled.client.get(url, headers=since).status_code == 200
    assert filled.client.get(url, headers={"If-None-Match": first.headers["etag"]}).status_code == 200


def test_head_gives_the_headers_alone(filled: Provider) -> None:
    response = filled.client.head(LIST)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/xml; charset=utf-8"
    assert int(response.headers["content-length"]) > 0
    assert response.content == b""


def test_hostile_requests_are_refused_early(filled: Provider) -> None:
    client = filled.client
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/oai", content=b"verb=" + b"x" * 70_000, headers=form).status_code == 413
    assert client.post("/oai", content=b"{}", headers={"Content-Type": "application/json"}).status_code == 415
    assert client.get("/oai?" + "&".join("a=1" for _ in range(100))).status_code == 400
    assert client.put("/oai").status_code == 405
    assert client.delete("/oai").status_code == 405
    for query in (b"verb=%ff%fe", b"verb=ListRecords&metadataPrefix=%ed%a0%80", b"%00=%00", b"&&&;=;"):
        response = client.get("/oai?" + query.decode())
        assert response.status_code == 200
        assert etree.fromstring(response.content).find("{*}error") is not None


WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
PART = b"GET /oai?verb=Identify HTTP/1.1\r\nHost: "


@pytest.mark.parametrize(("before", "sent"), [(b"", b""), (b"", PART), (WHOLE, PART)])
def test_a_request_that_does_not_come_is_not_waited_for(
    filled: Provider,
    running: Callable[[Store, Any], str],
    monkeypatch: pytest.MonkeyPatch,
    before: bytes,
    sent: bytes,
) -> None:
    monkeypatch.setattr("indlet.provider.serve.patience.HEAD_SECONDS", 0.2)
    host, _, port = running(filled.store, filled.settings).removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        if before:
            connection.sendall(before)
            answer = HTTPResponse(connection)
            answer.begin()
            assert answer.status == 200
            assert answer.read()
        connection.sendall(sent)
        assert connection.recv(1) == b""


@pytest.mark.parametrize("pause", [None, 0.02])
def test_a_client_must_read_what_it_asked_for(
    tmp_path: Path, running: Callable[..., str], monkeypatch: pytest.MonkeyPatch, pause: float | None
) -> None:
    """One that reads nothing is dropped; one that reads slowly gets everything."""
    monkeypatch.setattr("indlet.provider.serve.patience.READ_SECONDS", 0.4)
    data = b"<p>zebra</p>" * 700_000
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "large.html").write_bytes(data)
    settings = Settings(
        data=tmp_path / "data",
        crawl=Crawl(workers=1, settle_seconds=0.0),
        hierarchy=(Hierarchy(root=str(tmp_path / "files"), name="files"),),
    )
    with Store.open(tmp_path / "data") as store:
        crawl(store, settings)
        host, _, port = running(store, settings).removeprefix("http://").partition(":")
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            connection.settimeout(30)
            connection.connect((host, int(port)))
            connection.sendall(b"GET /content/files/large.html HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if pause is None:
                poll = select.poll()
                poll.register(connection, select.POLLRDHUP)
                assert poll.poll(20_000), "the server is still there"
                return
            read, end = 0, time.monotonic() + 3
            while read < len(data):
                if time.monotonic() < end:
                    time.sleep(pause)
                received = connection.recv(65536)
                assert received, f"closed after {read} bytes"
                read += len(received)


@pytest.mark.parametrize("prefix", ["", "/repo", "/my%20library/repo"])
def test_a_proxy_may_leave_the_public_path_on(
    filled: Provider, running: Callable[..., str], prefix: str
) -> None:
    root = running(filled.store, filled.settings, path=prefix)
    for path in ("", prefix):
        answer = urlopen(f"{root}{path}/oai?verb=Identify").read()
        assert f"<baseURL>{root}{prefix}/oai</baseURL>".encode() in answer
        assert b"harvest" in urlopen(f"{root}{path}/").read()
    if prefix:
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{root}{prefix}s/oai?verb=Identify")


def test_a_slash_too_many_leads_home(filled: Provider) -> None:
    response = filled.client.get("/oai/?verb=Identify")
    assert (response.status_code, response.headers["location"]) == (308, "http://x.org/oai?verb=Identify")


class Slow(SqliteStore):
    """A store whose readers wait until they are let go."""

    gate = threading.Event()
    inside = threading.Semaphore(0)

    def read(self) -> Any:
        self.inside.release()
        assert self.gate.wait(20)
        return super().read()


def test_beyond_its_room_a_node_says_come_back(filled: Provider) -> None:
    settings = replace(filled.settings, serve=replace(filled.settings.serve, requests_at_once=2))
    filled.store.secret("tokens")
    filled.store.close()
    Slow.gate.set()
    with Slow.open(filled.store.local_folder, clock=filled.clock) as store:
        filled.store = store
        filled.configure(settings)
        Slow.gate.clear()
        while Slow.inside.acquire(blocking=False):
            pass
        with TestClient(filled.app) as client:
            answers: list[int] = []
            threads = [
                threading.Thread(target=lambda: answers.append(client.get(LIST).status_code))
                for _ in range(2)
            ]
            for thread in threads:
                thread.start()
            for _ in threads:
                assert Slow.inside.acquire(timeout=20)
            refused = client.get(LIST)
            checked: list[int] = []
            threads.append(
                threading.Thread(target=lambda: checked.append(client.get("/healthz").status_code))
            )
            threads[-1].start()
            assert Slow.inside.acquire(timeout=20), "a busy node is not taken for a dead one"
            Slow.gate.set()
            for thread in threads:
                thread.join(20)
            assert checked == [200]
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "5"
            assert answers == [200, 200]
            assert client.get(LIST).status_code == 200


def test_a_store_that_cannot_be_read_is_no_crash(filled: Provider) -> None:
    filled.store.close()
    Path(filled.store.location).write_bytes(b"not a database, but long enough to be looked into" * 100)
    response = filled.client.get(LIST)
    assert response.status_code == 503
    assert "retry-after" in response.headers


@pytest.mark.parametrize("path", ["/oai", "/ft-oai"])
@pytest.mark.parametrize(
    "query",
    [
        "verb=Identify",
        "verb=ListSets",
        "verb=ListRecords&metadataPrefix=oai_dc_tf",
        "verb=ListIdentifiers&metadataPrefix=oai_dc",
        "verb=Oops",
    ],
)
def test_a_browser_gets_a_page(filled: Provider, path: str, query: str) -> None:
    response = filled.client.get(f"{path}?{query}", headers={"Accept": BROWSER})
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "Accept" in response.headers["vary"]
    assert "default-src 'none'" in response.headers["content-security-policy"]
    page = etree.fromstring(response.content, etree.HTMLParser())
    assert page.find(".//h1") is not None
    assert "<script" not in response.text


def test_a_long_identifier_breaks_no_page(filled: Provider) -> None:
    name = "oai:x.org:" + "%E4%B8%AD&+" * 400
    filled.put([replace(filled.record(1), identifier=name)])
    url = "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc&from=2023-11-14T22:18:00Z"
    response = filled.client.get(url, headers={"Accept": BROWSER})
    links = [str(a.get("href")) for a in etree.fromstring(response.content, etree.HTMLParser()).iter("a")]
    answer = filled.client.get("/oai" + next(link for link in links if "GetRecord" in link))
    assert filled.found(etree.fromstring(answer.content), "identifier") == [name]


@pytest.mark.parametrize(
    "accept",
    ["", "*/*", "text/xml", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
     "text/xml, application/xml, */*",
     "application/xml, text/html, application/xhtml+xml", "text/html;q=0.5, application/xhtml+xml"],
)  # fmt: skip
def test_a_harvester_gets_xml(filled: Provider, accept: str) -> None:
    response = filled.client.get(LIST, headers={"Accept": accept})
    assert response.headers["content-type"] == "text/xml; charset=utf-8"
    assert b"<?xml-stylesheet" in response.content


def test_a_page_says_nothing_that_runs(filled: Provider) -> None:
    hostile = filled.record(7)
    metadata = {"title": ["<script>alert(1)</script>"], "identifier": ["javascript:alert(1)"]}
    filled.put([replace(hostile, metadata=metadata, raw=oai_dc.write(metadata))])
    url = "/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x.org:papers/0007%2520a"
    text = filled.client.get(url, headers={"Accept": BROWSER}).text
    assert "<script" not in text
    assert 'href="javascript' not in text
