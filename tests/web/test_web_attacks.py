"""Attacks on a whole node, over the wire: each was once possible, or would be by a slip."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.web.nodes import HASH, PASSWORD, free_socket, settings_for, shipped

from indlet.model import Record
from indlet.node.probe import probe_in_child
from indlet.provider.pipeline import crawl
from indlet.service.index import follow
from indlet.settings import Access, Admin, Crawl, Hierarchy, Node, Serve, Settings
from indlet.store import Store
from indlet.web.admin import source_pages
from indlet.web.app import application

get = partial(httpx.get, timeout=60)  # the machine may be busy


@contextlib.contextmanager
def serving(folder: Path, **changes: object) -> Iterator[str]:
    """A node as `indlet serve` runs it."""
    bound, port = free_socket()
    settings: Settings = replace(settings_for(folder / "data", port), **changes)  # type: ignore[arg-type]
    settings = replace(settings, node=replace(settings.node, port=port))
    with Store.open(settings.data) as store:
        if settings.hierarchy:
            crawl(store, replace(settings, crawl=Crawl(workers=1, settle_seconds=0.0)))
        with store.write() as tx:
            tx.put(
                tx.origin("source", "s"),
                [
                    Record(
                        "oai:s:1", {"title": ["Zebra"], "description": ["a <b>bold</b> & <script>x</script>"]}
                    )
                ],
            )
        follow.catch_up(store)
        with shipped(application(store, settings), settings, bound):
            yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "evil.js").write_text("alert(document.domain) // zebra")
    (folder / "evil.html").write_text("<p>zebra<script>alert(1)</script>")
    (folder / "style.css").write_text("* { color: red } /* zebra */")
    (folder / "data.json").write_text('{"zebra": 1}')
    return folder


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[str]:
    with serving(
        tmp_path_factory.mktemp("node"), hierarchy=(Hierarchy(root=str(files), name="files"),)
    ) as address:
        yield address


def test_no_page_of_another_origin_may_read_a_node_on_loopback(node: str) -> None:
    for path in (
        "/api/search?q=zebra",
        "/api/stats",
        "/api/nothing",
        "/oai?verb=Identify",
        "/",
        "/feed.atom",
    ):
        answer = get(node + path, headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in answer.headers, path
    assert "access-control-allow-origin" not in httpx.options(f"{node}/api/search", timeout=60).headers


@pytest.mark.parametrize(
    ("serve", "public", "allowed"),
    [
        (Serve(), "https://search.example.org", "*"),
        (Serve(allow_origins=("*",)), "", "*"),
        (Serve(allow_origins=("https://friend.example",)), "", "https://friend.example"),
        (Serve(allow_origins=("https://other.example",)), "", None),
    ],
)
def test_a_setting_opens_the_api_and_a_public_node_is_open(
    tmp_path: Path, serve: Serve, public: str, allowed: str | None
) -> None:
    with serving(tmp_path, serve=serve, node=Node(base_url=public)) as address:
        answer = get(f"{address}/api/stats", headers={"Origin": "https://friend.example"})
        assert answer.headers.get("access-control-allow-origin") == allowed
        if allowed not in ("*", None):
            assert "Origin" in answer.headers["vary"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "[", ""])
def test_a_node_on_loopback_answers_to_its_own_names_only(node: str, host: str) -> None:
    for path in ("/", "/content/files/evil.html", "/oai?verb=Identify", "/api/search?q=zebra", "/admin"):
        answer = raw(node, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert answer.split()[1] in (b"421", b"400"), (path, answer[:80])
    for good in ("localhost", "127.0.0.1"):
        assert get(f"{node}/healthz", headers={"Host": good}).status_code == 200


def test_more_names_may_be_allowed(tmp_path: Path) -> None:
    with serving(tmp_path, serve=Serve(allow_hosts=("library.lan",))) as address:
        assert get(f"{address}/healthz", headers={"Host": "library.lan:80"}).status_code == 200


def test_the_host_header_is_not_reflected(tmp_path: Path) -> None:
    with serving(tmp_path, node=Node(base_url="https://search.example.org")) as address:
        evil = {"Host": "evil.example"}
        for path in ("/help/", "/admin/", "/search?q=x", "/api/openapi.json", "/oai/"):
            answer = get(address + path, headers=evil)
            assert "evil.example" not in answer.headers.get("location", "") + answer.text, path
        assert get(f"{address}//evil.example/").headers["location"] == "/evil.example"
        assert get(f"{address}/help/").headers["location"] == "/help"


def test_a_script_in_the_collection_is_no_script_of_ours(node: str) -> None:
    for name in ("evil.js", "style.css", "data.json"):
        answer = get(f"{node}/content/files/{name}")
        if answer.status_code == 404:  # not a kind that is crawled: not served at all
            continue
        assert answer.headers["content-type"].startswith("text/plain"), name
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; sandbox")
    page = get(f"{node}/content/files/evil.html")
    assert page.status_code == 200 and page.headers["content-security-policy"].startswith(
        "default-src 'none'; sandbox"
    )


def test_an_rss_description_is_text_for_whoever_takes_it_for_html(node: str) -> None:
    feed = get(f"{node}/feed.rss").text
    assert "&amp;lt;script&amp;gt;" in feed and "<script>" not in feed and "&lt;script&gt;" not in feed


@pytest.mark.parametrize("addresses", [1, 80])
def test_open_guesses_do_not_lock_out_a_browser_that_has_signed_in(tmp_path: Path, addresses: int) -> None:
    async def attack(address: str) -> None:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:

            def guess(number: int, password: str = "wrong") -> Coroutine[Any, Any, httpx.Response]:
                sender = {"X-Forwarded-For": f"198.51.100.{number}"}
                return client.post("/admin/sign-in", data={"password": password}, headers=sender)

            known = (await guess(200, PASSWORD)).cookies
            client.cookies.clear()
            waiting = [asyncio.create_task(guess(number % addresses)) for number in range(80)]
            while not any(task.done() and task.result().status_code == 429 for task in waiting):
                await asyncio.sleep(0.01)
            for _ in range(3):
                client.cookies = known
                begun = time.monotonic()
                assert (await guess(0, PASSWORD)).status_code == 303
                assert time.monotonic() - begun < 10, "nor does it wait for them"
            client.cookies.clear()
            if addresses == 1:
                assert (await guess(100, PASSWORD)).status_code == 303, "an unknown browser elsewhere"
            for task in waiting:
                task.cancel()

    trusted = Serve(trusted_proxies=("127.0.0.1",))
    with serving(tmp_path, serve=trusted, admin=Admin(password_hash=HASH, public=True)) as address:
        asyncio.run(attack(address))


@pytest.mark.parametrize("path", ["/admin/act", "/admin/test", "/admin/sign-out"])
def test_who_is_not_signed_in_is_answered_before_the_body_is_read(node: str, path: str) -> None:
    """A body that never comes does not keep a place."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n"
    head += "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    begun = time.monotonic()
    assert raw(node, head.encode(), until_closed=False).split()[1] == b"303"
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("path", ["/admin/sign-in", "/marked.csv"])
def test_a_slow_body_is_not_waited_for(node: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indlet.provider.serve.http._BODY_SECONDS", 0.5)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n"
    head += "Content-Type: application/x-www-form-urlencoded\r\n\r\npassw"
    assert raw(node, head.encode(), until_closed=False).split()[1] == b"408"


def test_a_signed_out_cookie_is_dead_after_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as address, httpx.Client(base_url=address, timeout=60) as client:
        csrf = signed_in(client)
        stolen = dict(client.cookies)
        assert client.post("/admin/sign-out", data={"csrf": csrf}).status_code == 303
        assert get(f"{address}/admin", cookies=stolen).status_code == 303
    with serving(tmp_path) as address:
        assert get(f"{address}/admin", cookies=stolen).status_code == 303


def test_a_test_of_a_source_is_a_post_with_the_token(tmp_path: Path) -> None:
    with serving(tmp_path) as address, httpx.Client(base_url=address, timeout=60) as client:
        csrf = signed_in(client)
        assert client.get("/admin/test?url=http://127.0.0.1:9/").status_code == 405
        assert client.post("/admin/test", data={"url": "http://127.0.0.1:9/"}).status_code == 403
        assert (
            client.post("/admin/test", data={"url": "http://127.0.0.1:9/", "csrf": csrf}).status_code == 200
        )


def test_a_source_that_hangs_its_reader_does_not_hang_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a source answers is read in a child with a time limit; pages are answered meanwhile."""
    monkeypatch.setattr(source_pages, "probe_in_child", partial(probe_in_child, seconds=10.0))
    with (
        endless() as source,
        serving(tmp_path) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        csrf = signed_in(client)
        done: list[httpx.Response] = []
        form = {"url": source, "csrf": csrf}
        asking = threading.Thread(
            target=lambda: done.append(client.post("/admin/test", data=form, timeout=120)), daemon=True
        )
        asking.start()
        worst = 0.0
        while asking.is_alive() and worst < 60:
            begun = time.monotonic()
            assert get(f"{address}/healthz").status_code == 200
            worst = max(worst, time.monotonic() - begun)
            time.sleep(0.05)
        asking.join()
        assert done[0].status_code == 200 and "cannot be harvested" in done[0].text
        assert worst < 10


def test_forwarding_headers_open_nothing(tmp_path: Path) -> None:
    proxied = Serve(trusted_proxies=("127.0.0.1",))
    with serving(tmp_path, serve=proxied) as address:
        lines = "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-For: 192.0.2.7\r\n"
        answer = raw(
            address, f"GET /admin HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{lines}\r\n".encode()
        )
        assert answer.split()[1] == b"404"
    with serving(tmp_path) as address:
        for name in (
            "X-Forwarded-For",
            "Forwarded",
            "X-Real-IP",
            "Via",
            "X-Forwarded-Host",
            "X-Forwarded-Proto",
        ):
            assert get(f"{address}/admin", headers={name: "127.0.0.1"}).status_code == 404
    # Behind a proxy that says nothing everybody seems local: a password is asked for all the same.
    public = Node(base_url="https://search.example.org")
    with serving(tmp_path, node=public) as address:
        for host in ("127.0.0.1", "search.example.org"):
            answer2 = get(f"{address}/admin/jobs.json", headers={"Host": host})
            assert answer2.status_code == 303 and "sign-in" in answer2.headers["location"]
    with serving(tmp_path, node=public, admin=Admin()) as address:
        assert get(f"{address}/admin").status_code == 403


def test_restricted_content_needs_the_token_through_every_header(tmp_path: Path, files: Path) -> None:
    closed = Hierarchy(root=str(files), name="files", access=Access(networks=("192.0.2.0/24",)))
    with serving(tmp_path, hierarchy=(closed,)) as address:
        for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
            answer = get(f"{address}/content/files/evil.html", headers={name: "192.0.2.7"})
            assert answer.status_code == 404


def signed_in(client: httpx.Client) -> str:
    answer = client.post("/admin/sign-in", data={"password": PASSWORD})
    assert answer.status_code == 303
    page = client.get("/admin").text
    return page.partition('name="csrf" value="')[2].partition('"')[0]


def raw(address: str, request: bytes, until_closed: bool = True) -> bytes:
    """What the node answers to these very bytes."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
            if not until_closed and b"\r\n\r\n" in answer:
                break
        return answer


@contextlib.contextmanager
def endless() -> Iterator[str]:
    """A source whose answer drips without end."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n<?xml version='1.0'?>")
            while not over.wait(0.2):
                connection.sendall(b"<!---->" * 10)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=drip, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/oai"
    finally:
        over.set()
        listener.close()


MANY = "&".join(["model=bm25"] * 300)


@pytest.mark.parametrize(
    "query",
    [
        f"compare?q=zebra&{MANY}",
        "compare?q=zebra&limit=1000",
        "search?q=" + "a" * 9000,
        "search?q=zebra&offset=999999999",
        "search?q=zebra&" + "&".join(f"source=s{n}" for n in range(60)),
        "search?q=zebra&limit=1001",
        "search?q=zebra&facet_values=1001&facets=all",
        "search?q=" + "+OR+".join(f"w{n}" for n in range(1500)),
        "search?q=" + "(" * 3000 + "zebra" + ")" * 3000,
        "search?q=zebra&" + "&".join(f"languages=l{n}" for n in range(60)),
        "explain?q=zebra&identifier=" + "x" * 9000,
        "suggest?q=zeb&limit=51",
    ],
)
def test_every_argument_of_the_api_has_a_bound(node: str, query: str) -> None:
    begun = time.monotonic()
    answer = get(f"{node}/api/{query}")
    assert answer.status_code in (400, 414), answer.text[:200]
    if answer.headers["content-type"] == "application/problem+json":
        assert answer.json()["detail"] and len(answer.content) < 20_000
    assert time.monotonic() - begun < 50


def test_what_is_asked_twice_is_answered_once(node: str) -> None:
    twice = get(f"{node}/api/compare?q=zebra&model=bm25&model=bm25&model=vsm").json()
    assert twice["models"] == ["bm25", "vsm"]
