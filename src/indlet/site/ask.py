"""What a web server says of a path: HEAD requests in rows over kept connections, single GETs.

HEAD answers have no body, so many requests can be sent before the first answer is read (RFC 9112, section
9.3.2): one connection to a local Apache gives some ten thousand answers a second.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import re
import select
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from indlet.errors import HierarchyError, SettingsError

ROW: Final = 50  # requests sent at once
HEAD_BYTES: Final = 65536
SECONDS: Final = 30.0
CHUNK: Final = 1 << 20
NOT_HEADS: Final = "what it sends is not HTTP, or it answers HEAD requests with a body"
# Addresses of documentation (RFC 5737, RFC 3849): a route to them shows this machine's outward address.
_ELSEWHERE: Final[dict[int, str]] = {socket.AF_INET: "198.51.100.1", socket.AF_INET6: "2001:db8::1"}
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9][0-9])(?: |$)")
_FIELD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class HeadAnswer(NamedTuple):
    """A status and the header fields as they came."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()

    def get(self, name: str) -> str:
        """A field's value, whatever the case of its name; empty if there is none."""
        return next((value for field, value in self.headers if field.lower() == name), "")


class Pace:
    """How many requests a second a server gets: as many as it answers, until it is seen to limit them."""

    # After a pause of so many seconds, so many requests a second. mod_evasive blocks a client for ten seconds
    # after fifty requests in one.
    _STEPS: Final = ((2.0, 100.0), (15.0, 25.0), (30.0, 10.0), (60.0, 5.0))

    def __init__(self, per_second: float = 0.0, wait: Callable[[float], object] = time.sleep) -> None:
        """`per_second`: at most so many from the start; 0: no limit."""
        self._wait = wait
        self._steps = [one for one in self._STEPS if not per_second or one[1] < per_second]
        self.per_second = per_second
        self._next = 0.0
        self._guard = threading.Lock()

    def slow_down(self) -> bool:
        """Pause, and go on slower; False if that was done as often as makes sense."""
        if not self._steps:
            return False
        pause, self.per_second = self._steps.pop(0)
        self._wait(pause)
        return True

    def take(self, requests: int) -> None:
        """Wait until so many more requests may be sent."""
        if self.per_second:
            with self._guard:
                now = time.monotonic()
                delay = max(0.0, self._next - now)
                self._next = max(self._next, now) + requests / self.per_second
            if delay:
                self._wait(delay)


class WebServer:
    """One server, asked at `address` (scheme, host, port) for paths of `url`'s host."""

    def __init__(
        self, url: str, address: str = "", connections: int = 4, pace: Pace | None = None, source: str = ""
    ) -> None:
        """`source`: the address of this machine from which to connect; empty: as the system chooses."""
        self._source = (source, 0) if source else None
        asked = _checked(address or url)
        self._secure = asked.scheme == "https"
        self._host = asked.hostname or ""
        self._port = asked.port or (443 if self._secure else 80)
        self._authority = _checked(url).netloc
        self._connections = max(1, connections)
        self.pace = pace or Pace()
        self._idle_gets: list[http.client.HTTPConnection] = []
        self._idle: list[_Connection] = []
        self._guard = threading.Lock()
        self._context = ssl.create_default_context() if self._secure else None

    def heads(self, paths: Sequence[str], headers: Mapping[str, str]) -> list[HeadAnswer]:
        """The answer to a HEAD request for each path. HierarchyError if the server cannot be asked."""
        together = min(ROW, max(1, int(self.pace.per_second / 10))) if self.pace.per_second else ROW
        rows = [paths[start : start + together] for start in range(0, len(paths), together)]
        fields = self._fields(headers)
        if len(rows) <= 1:
            return self._row(rows[0], fields) if rows else []
        with ThreadPoolExecutor(min(self._connections, len(rows))) as pool:
            return [answer for row in pool.map(lambda row: self._row(row, fields), rows) for answer in row]

    @contextlib.contextmanager
    def get(self, path: str, headers: Mapping[str, str]) -> Iterator[tuple[HeadAnswer, Iterator[bytes]]]:
        """The answer to a GET request, with its body in pieces. OSError if it cannot be had."""
        self.pace.take(1)
        connection, response = self._respond(path, headers)
        try:
            answer = HeadAnswer(response.status, tuple(response.getheaders()))
            yield answer, iter(lambda: response.read(CHUNK), b"")
            if response.isclosed() and connection.sock is not None:
                with self._guard:
                    self._idle_gets.append(connection)
                return
        except http.client.HTTPException as e:
            connection.close()
            raise OSError(f"the server's answer cannot be read: {e!r}") from e
        except BaseException:
            connection.close()
            raise
        connection.close()

    def _respond(
        self, path: str, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """A connection that was kept may have been closed by the server meanwhile: then a new one is used."""
        with self._guard:
            kept = self._idle_gets.pop() if self._idle_gets else None
        if kept is not None:
            with contextlib.suppress(http.client.HTTPException, OSError):
                return kept, self._send(kept, path, headers)
            kept.close()
        connection = http.client.HTTPConnection(self._host, self._port)
        connection.auto_open = 0  # it would connect without TLS
        connection.sock = self._connected()
        try:
            return connection, self._send(connection, path, headers)
        except (http.client.HTTPException, OSError) as e:
            connection.close()
            raise OSError(f"the server's answer cannot be read: {e!r}") from e

    def _send(
        self, connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
        for line in self._fields(headers).decode("latin-1").split("\r\n"):
            name, _, value = line.partition(": ")
            if name:
                connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse()

    def close(self) -> None:
        with self._guard:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
            for one in self._idle_gets:
                one.close()
            self._idle_gets.clear()

    def _fields(self, headers: Mapping[str, str]) -> bytes:
        lines = [f"Host: {self._authority}", "User-Agent: indlet", "Accept: */*"]
        for name, value in headers.items():
            if not _FIELD.fullmatch(name) or re.search(r"[\r\n\0]", value):
                raise ValueError(f"the header field {name!r} cannot be sent")
            lines.append(f"{name}: {value}")
        return "".join(f"{line}\r\n" for line in lines).encode("latin-1", "replace")

    def _row(self, paths: Sequence[str], fields: bytes) -> list[HeadAnswer]:
        self.pace.take(len(paths))
        found: list[HeadAnswer] = []
        idle_tries = 0
        while len(found) < len(paths):
            connection = self._taken()
            rest = [b"HEAD %b HTTP/1.1\r\n%b\r\n" % (path.encode(), fields) for path in paths[len(found) :]]
            before = len(found)
            try:
                found += connection.heads(rest)
            except (OSError, ValueError) as e:
                connection.close()
                raise HierarchyError(
                    f"http{'s' * self._secure}://{self._host}:{self._port}: the server does not answer: "
                    f"{getattr(e, 'strerror', None) or e}"
                ) from e
            if connection.open:
                with self._guard:
                    self._idle.append(connection)
            # A kept connection may have been closed while it was idle, and every server closes one some time.
            idle_tries = idle_tries + 1 if len(found) == before else 0
            if idle_tries > self._connections + 2:
                raise HierarchyError(
                    f"http{'s' * self._secure}://{self._host}:{self._port}: the server closes connections "
                    "without an answer"
                )
        return found

    def _taken(self) -> _Connection:
        with self._guard:
            while self._idle:
                kept = self._idle.pop()
                if kept.quiet():
                    return kept
                kept.close()
        try:
            return _Connection(self._connected())
        except OSError as e:
            raise HierarchyError(
                f"http{'s' * self._secure}://{self._host}:{self._port}: the server cannot be reached: "
                f"{e.strerror or e}; nothing was deleted"
            ) from e

    def _connected(self) -> socket.socket:
        made = socket.create_connection((self._host, self._port), SECONDS, self._source)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is None:
            return made
        name = urlsplit(f"//{self._authority}").hostname
        return self._context.wrap_socket(made, server_hostname=name)


def outward_address(url: str) -> str:
    """An address of this machine from which a connection to a server on loopback does not count as local;
    empty if the server is elsewhere, or the machine has no such address."""
    parts = _checked(url)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    except OSError:
        return ""
    for family, *_, address in found:
        if family in _ELSEWHERE and ipaddress.ip_address(address[0]).is_loopback:
            with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.connect((_ELSEWHERE[family], 9))  # chooses a route; UDP sends nothing here
                outward: str = sock.getsockname()[0]
                if not ipaddress.ip_address(outward).is_loopback:
                    return outward
    return ""


def is_this_machine(url: str) -> bool:
    """Whether a server is asked at an address of this machine."""
    parts = _checked(url)
    with contextlib.suppress(OSError):
        for family, *_, address in socket.getaddrinfo(parts.hostname, 0, type=socket.SOCK_STREAM):
            with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as sock:
                sock.bind(address)
                return True
    return False


class _Connection:
    """A socket, and what was read from it beyond the last answer."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = bytearray()
        self.open = True
        weakref.finalize(self, sock.close)

    def heads(self, requests: Sequence[bytes]) -> list[HeadAnswer]:
        """As many answers as came before the server closed the connection."""
        found: list[HeadAnswer] = []
        try:
            self._socket.sendall(b"".join(requests))
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            return found
        while len(found) < len(requests) and self.open:
            head = self._head()
            if head is None:
                self.close()
                break
            answer, last = _parsed(head)
            if answer.status >= 200:
                found.append(answer)
            if last:
                self.close()
        if self._buffer:  # nobody can tell which answer is whose
            self.close()
            raise ValueError(NOT_HEADS)
        return found

    def quiet(self) -> bool:
        """Whether nothing came while nothing was asked: neither its end nor the rest of an answer."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return not waiting.poll(0)

    def _head(self) -> bytes | None:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > HEAD_BYTES:
                raise ValueError(f"an answer's head is larger than {HEAD_BYTES} bytes")
            try:
                data = self._socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self._buffer += data
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        return head

    def close(self) -> None:
        self.open = False
        self._socket.close()


def _parsed(head: bytes) -> tuple[HeadAnswer, bool]:
    """An answer, and whether the server ends the connection with it."""
    first, *lines = head.split(b"\r\n")
    match = _STATUS.match(first)
    if match is None:
        raise ValueError(NOT_HEADS)
    fields = []
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if colon and _FIELD.fullmatch(name):
            fields.append((name, value.strip(" \t")))
    answer = HeadAnswer(int(match[1]), tuple(fields))
    kept = answer.get("connection").lower()
    return answer, kept == "close" or (first.startswith(b"HTTP/1.0") and kept != "keep-alive")


def _checked(url: str) -> SplitResult:
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        usable = parts.hostname and not parts.username and parts.port != 0
        if parts.scheme in ("http", "https") and usable:
            return parts
    raise SettingsError(f"site: {url!r} is no address of a web server; use one like 'http://127.0.0.1:80'")
