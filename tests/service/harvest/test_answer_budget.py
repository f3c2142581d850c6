"""Answers without end, before and after their bodies: each is given up in time, whoever reads them."""

from __future__ import annotations

import contextlib
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from indlet.net.client import Client, NoAnswer
from indlet.net.connection import Reply
from indlet.settings import Harvest
from indlet.site.mirror.fetch import Fetcher, NotFetched

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def dripping(start: bytes, more: bytes, pause: float) -> Callable[[socket.socket, threading.Event], None]:
    """An answer that begins so, and goes on for ever."""

    def act(peer: socket.socket, over: threading.Event) -> None:
        peer.sendall(start)
        while not over.wait(pause):
            peer.sendall(more)

    return act


ENDLESS = {
    "headers that drip": dripping(b"HTTP/1.1 200 OK\r\nX: ", b"a", 0.02),
    "interim answers": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 400, 0),
    "trailers": dripping(CHUNKED + b"0\r\n", b"X: y\r\n", 0.02),
    "extensions of chunks": dripping(CHUNKED, b"1;" + b"a" * 3000 + b"\r\nx\r\n", 0),
    "a body that drips": dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"a", 0.02),
}


@contextlib.contextmanager
def served(act: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                peer, _ = listening.accept()
                with peer:
                    peer.recv(65536)
                    act(peer, over)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            over.set()
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_harvest_gives_up_an_answer_without_end(name: str) -> None:
    with served(ENDLESS[name]) as url:
        client = Client(Harvest(timeout_seconds=0.01, stall_seconds=0.1))
        with pytest.raises(NoAnswer):
            client.get(url, 100_000)
        client.close()


@pytest.mark.parametrize("name", ENDLESS)
def test_a_mirror_gives_up_a_file_without_end(name: str, tmp_path: Path) -> None:
    with served(ENDLESS[name]) as url:
        fetcher = Fetcher(url, "", (), 100_000, 0.3)
        with pytest.raises(NotFetched):
            fetcher.fetch(url, tmp_path / "file")
        fetcher.close()


def test_a_body_in_tiny_chunks_takes_no_more_room_than_others() -> None:
    pieces = (b"%02d" % (n % 100) for n in range(200_000))
    client = Client(Harvest(), transport=lambda request: Reply(200, (), pieces))
    tracemalloc.start()
    try:
        body = client.get("http://127.0.0.1:9/", 1 << 20).body
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(body) == 400_000 and body.startswith(b"000102")
    assert peak < 4 * len(body)
