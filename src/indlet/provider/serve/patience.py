"""Closes connections that hold a slot without need: they send no request, or read no response."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

# From connecting, or from the first byte on a connection that stayed open, to the end of the head.
HEAD_SECONDS: Final = 20.0
# How often a connection that has something to read is looked at, and the bytes a second that it must take.
# Slower than any network in use; a page of 1 MB may take 17 minutes.
READ_SECONDS: Final = 15.0
LEAST_RATE: Final = 1000
_BYTES_ACKED: Final = 120  # offset of the field in `struct tcp_info` of Linux
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing drops what was not taken


class Patient(H11Protocol):
    """uvicorn's own protocol, which waits forever for the rest of a request, and for a client to read."""

    _waiting: asyncio.TimerHandle | None = None
    _watching: asyncio.TimerHandle | None = None
    _unread = _taken = 0  # as they were when the connection was last looked at

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        self._watching = self.loop.call_later(READ_SECONDS, self._look)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self._watching is not None:
            self._watching.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _look(self) -> None:
        """Drop a client that had something to read all the time and took almost none of it."""
        unread, taken = self._progress()
        wanted = min(self._unread, LEAST_RATE * READ_SECONDS)
        if unread and self._unread and taken - self._taken < wanted:
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()
            return
        self._unread, self._taken = unread, taken
        self._watching = self.loop.call_later(READ_SECONDS, self._look)

    def _progress(self) -> tuple[int, int]:
        """Bytes that the client has still to take, and has taken; zeros where the system does not tell."""
        connection = self.transport.get_extra_info("socket")
        try:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            (taken,) = struct.unpack_from("=Q", info, _BYTES_ACKED)
            queued = struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
        except (AttributeError, OSError, struct.error):
            return 0, 0
        return self.transport.get_write_buffer_size() + queued, taken
