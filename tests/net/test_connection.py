"""HTTP as servers speak it, rightly and wrongly, over real sockets."""

from __future__ import annotations

import gc
import socket
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from indlet.errors import SettingsError
from indlet.net.connection import (
    HEAD_BYTES,
    AnswerBounds,
    Connections,
    GetRequest,
    NotConnected,
    NotHttp,
    request_to,
)


def request(url: str, address: str, headers: dict[str, str]) -> GetRequest:
    return request_to(url, address, headers, AnswerBounds(5.0, 5.0, 1000))


@contextmanager
def server(*connections: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """Its URL, and the requests that came. One list for each connection: what is sent for each request."""
    asked = list[bytes]()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answers in connections:
                sock, _ = listening.accept()
                with sock, suppress(OSError):  # whoever asked has gone
                    for answer in answers:
                        read = b""
                        while not read.endswith(b"\r\n\r\n") and (data := sock.recv(4096)):
                            read += data
                        asked.append(read)
                        sock.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", asked
        finally:
            thread.join(5)


def body(answer: bytes) -> bytes:
    with (
        server([answer]) as (url, _),
        closing(Connections(5, 5)) as http,
        closing(http(request(url + "/", "127.0.0.1", {}))) as reply,
    ):
        return b"".join(reply.pieces)


@pytest.mark.parametrize(
    ("head", "sent"),
    [
        (b"Content-Length: 5", b"hello"),
        (b"Content-Length: 5, 5", b"hello"),
        (b"Content-Length: 5", b"hello and more"),
        (b"X: y", b"hello"),
        (b"Transfer-Encoding: chunked", b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: x\r\n\r\n"),
        (b"transfer-encoding:Chunked", b"5\nhello\n0\n\n"),
        (b"Transfer-Encoding: chunked", b"".join(b"1\r\n%c\r\n" % c for c in b"hello") + b"0\r\n\r\n"),
    ],
)
def test_a_body_ends_as_its_head_says(head: bytes, sent: bytes) -> None:
    assert body(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + sent) == b"hello"
    assert body(b"HTTP/1.0 200\n" + head + b"\n\n" + sent) == b"hello"
    assert body(b"HTTP/1.1 200\r\n" + head + b"\r\n\r\n" + sent) == b"hello"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (HEAD_BYTES + 1),
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"5" * 10_000 + b"\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * (1 << 19) + b"\r\n",
    ],
)
def test_what_is_not_http_is_refused(answer: bytes) -> None:
    with pytest.raises((NotHttp, ConnectionError)):
        body(answer)


def test_a_connection_is_kept_only_where_an_answer_was_read_to_its_end() -> None:
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    more = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and what nobody asked for"
    with server([whole, whole, more], [whole]) as (url, asked), closing(Connections(5, 5)) as http:
        for number in range(4):
            with closing(http(request(f"{url}/{number}", "127.0.0.1", {}))) as reply:
                assert b"".join(reply.pieces) == b"ok"
    assert [one.split(b" ")[1] for one in asked] == [b"/0", b"/1", b"/2", b"/3"]
    with server([whole], [whole]) as (url, asked), closing(Connections(5, 5)) as http:
        for number in range(2):
            http(request(f"{url}/{number}", "127.0.0.1", {})).close()  # not read
    assert [one.split(b" ")[1] for one in asked] == [b"/0", b"/1"]


def test_nothing_of_an_answer_that_was_read_stays_for_the_cyclic_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        with server([whole]) as (url, _), closing(Connections(5, 5)) as http:
            reply = http(request(url + "/", "127.0.0.1", {}))
            assert b"".join(reply.pieces) == b"ok"
            reply.close()
            left = weakref.ref(reply)
            del reply
            assert left() is None
    finally:
        gc.enable()


def test_a_server_that_falls_silent_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(TimeoutError):
            Connections(5, 0.05)(request(url, "127.0.0.1", {}))


def test_a_request_goes_to_the_address_under_the_name_and_holds_no_line_breaks() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    with server([answer]) as (url, asked), closing(Connections(5, 5)) as http:
        named = url.replace("127.0.0.1", "Bücher.example") + '/a b?x=ü&y=%41%zz"#part'
        http(request(named, "127.0.0.1", {"Accept": "*/*"})).close()
    port = url.rsplit(":", 1)[1].encode()
    first, host, *_ = asked[0].split(b"\r\n")
    assert first == b"GET /a%20b?x=%C3%BC&y=%41%25zz%22 HTTP/1.1"
    assert host == b"Host: xn--bcher-kva.example:" + port
    for unfit in ("http://h/\r\nX: y", "ftp://h/", "http:///x", "http://h/" + "x" * 70_000):
        with pytest.raises(ValueError, match=r"."):
            request(unfit, "127.0.0.1", {})
    with pytest.raises(ValueError, match="cannot be sent"), server([answer]) as (url, _):
        Connections(5, 5)(request(url, "127.0.0.1", {"Accept": "x\r\nY: z"}))


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NotConnected):
        Connections(5, 5)(request(f"http://127.0.0.1:{port}/", "127.0.0.1", {}))


def test_a_proxy_is_asked_by_whole_urls_and_tunnels_are_asked_for_by_name() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    with server([answer], [b"HTTP/1.1 403 Forbidden\r\n\r\n"]) as (url, asked):
        proxy = url.replace("//", "//me:pass%20word@")
        http = Connections(5, 5, proxy)
        http(request("http://far.test:81/x", "", {})).close()
        with pytest.raises(NotConnected, match="403"):
            http(request("https://far.test/x", "", {}))
    assert asked[0].startswith(b"GET http://far.test:81/x HTTP/1.1\r\nHost: far.test:81\r\n")
    assert asked[1].startswith(b"CONNECT far.test:443 HTTP/1.1\r\n")
    assert all(b"Proxy-Authorization: Basic bWU6cGFzcyB3b3Jk\r\n" in one for one in asked)
    for other in ("socks5://me:secret@127.0.0.1:1", "http://me:secret@127.0.0.1:x", "127.0.0.1:8080"):
        with pytest.raises(SettingsError, match=r"harvest\.proxy") as refused:
            Connections(5, 5, other)
        assert "secret" not in str(refused.value)


def test_a_kept_connection_that_is_closed_costs_one_more_request() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n%b"
    with server([answer % b"ab", b""], [answer % b"cd"]) as (url, asked), closing(Connections(5, 5)) as http:
        found = []
        for _ in range(2):
            with closing(http(request(url + "/", "127.0.0.1", {}))) as reply:
                found.append(b"".join(reply.pieces))
    assert found == [b"ab", b"cd"] and len(asked) == 3


def test_a_new_connection_that_is_closed_is_not_tried_again() -> None:
    with (
        server([b""]) as (url, asked),
        closing(Connections(5, 5)) as http,
        pytest.raises(NotHttp, match="without an answer"),
    ):
        http(request(url + "/", "127.0.0.1", {}))
    assert len(asked) == 1
