"""What one HTTP answer may take in time and bytes, counted where they arrive.

Those who read a body see neither headers that drip, nor interim answers (1xx) or trailers without end: the
HTTP library reads these by itself, and each of its reads may last as long as the time limit of a read.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable
from typing import Final

import httpcore
import httpx

HEAD_BYTES: Final = 1 << 20  # of an answer until its body begins; a first read may hold some of the body
# Bytes on the wire for each of a body that is let in: chunks may be small.
FRAMING: Final = 4


class AnswerBudget:
    """Of one answer at a time. `spent` says what ran out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until, self._bytes, self._seconds = float("inf"), HEAD_BYTES, 0.0
        self.spent = ""

    def begin(self, seconds: float, size: int = HEAD_BYTES) -> None:
        """From now on, so many seconds and bytes."""
        self._until, self._bytes, self._seconds = self._clock() + seconds, size, seconds
        self.spent = ""

    def left(self, timeout: float | None) -> float:
        """The seconds that a read may take."""
        left = self._until - self._clock()
        if left <= 0:
            self.spent = f"an answer that takes more than {self._seconds:g} s"
            raise httpcore.ReadTimeout(self.spent)
        return left if timeout is None else min(timeout, left)

    def take(self, data: bytes) -> bytes:
        self._bytes -= len(data)
        if self._bytes < 0:
            self.spent = "an answer with more around its body than is read"
            raise httpcore.ReadError(self.spent)
        return data


def bounded_transport(
    budget: AnswerBudget, verify: ssl.SSLContext, proxy: str | None = None, connections: int = 10
) -> httpx.HTTPTransport:
    """HTTP whose reads draw on the budget."""
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    transport = httpx.HTTPTransport(verify=verify, proxy=proxy, limits=limits)
    # httpx offers no way of its own to hand a network to the pool that it makes.
    transport._pool._network_backend = _Network(budget)
    return transport


class _Network(httpcore.SyncBackend):
    def __init__(self, budget: AnswerBudget) -> None:
        self._budget = budget

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        stream = super().connect_tcp(host, port, timeout, local_address, socket_options)
        return _Stream(stream, self._budget)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, budget: AnswerBudget) -> None:
        self._stream, self._budget = stream, budget

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._budget.take(self._stream.read(max_bytes, self._budget.left(timeout)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout), self._budget)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)
