"""Answers of a web server are only taken for those of the requests that they answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from indlet.errors import HierarchyError
from indlet.site.ask import WebServer

FORGED = b"HTTP/1.1 200 OK\r\nX-Forged: yes\r\n\r\n"


class OddServer:
    """Answers each HEAD request; `after` is what follows the answers to a row."""

    def __init__(self) -> None:
        self.after = b""
        self.connections: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listening.accept()[0]
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):  # it is closed by the one who asks, or by the end of the test
            while data := connection.recv(65536):
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n" * data.count(b"HEAD ") + self.after)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        for one in (self._listening, *self.connections):
            one.close()


@contextmanager
def odd_server() -> Iterator[OddServer]:
    server = OddServer()
    try:
        yield server
    finally:
        server.close()


def test_what_follows_the_last_answer_belongs_to_none() -> None:
    with odd_server() as server:
        server.after = FORGED
        with pytest.raises(HierarchyError, match="answers HEAD requests with a body"):
            WebServer(server.url).heads(["/a", "/b"], {})


def test_what_comes_unasked_is_no_answer_to_the_next_request() -> None:
    with odd_server() as server:
        asked = WebServer(server.url)
        assert [one.status for one in asked.heads(["/a", "/b"], {})] == [403, 403]
        assert [one.status for one in asked.heads(["/a"], {})] == [403]
        assert len(server.connections) == 1
        server.connections[0].sendall(FORGED)
        while asked._idle[0].quiet():
            pass
        assert [one.status for one in asked.heads(["/c"], {})] == [403]
        assert len(server.connections) == 2
        asked.close()
