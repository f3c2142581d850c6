"""HTTP/1.1 GET requests over kept connections: an answer's head, and its body piece by piece.

Not httpx: loading it takes longer than a small harvest. Nothing of an answer is trusted: headers that
drip, interim answers (1xx), trailers and bodies without end are given up where their bytes arrive.
"""

from __future__ import annotations

import os
import re
import select
import socket
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from indlet.errors import SettingsError
from indlet.net.settings import without_credentials

if TYPE_CHECKING:
    import ssl

HEAD_BYTES: Final = 1 << 16  # of one head
BEFORE_BODY: Final = 1 << 20  # of all heads; the last read may hold some of the body
# Bytes on the wire for each of a body that is let in: chunks may be small.
FRAMING: Final = 4
URL_LENGTH: Final = 1 << 16
LINE_BYTES: Final = 4096  # of a chunk's size, with extensions
PIECE: Final = 1 << 18
KEPT: Final = 8

# Some servers leave out the reason, and the space before it.
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?:[ \r]|$)")
_FIELD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNFIT = re.compile(r"""%(?![0-9A-Fa-f]{2})|[^\x21\x23-\x3b\x3d\x3f-\x7e]""")
# RFC 9112, section 2.2: a line may end with LF alone.
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}(?=[ \t;\r\n])")


class NotConnected(OSError):
    """No connection can be made."""


class ConnectingTooLong(NotConnected):
    """No connection can be made within the time for it."""


class NotHttp(OSError):
    """An answer that breaks the rules of HTTP, or off before its end."""


class ClosedWhileIdle(NotHttp):
    """A kept connection that was closed before a byte of the answer had come."""


class AnswerTooLong(TimeoutError):
    """An answer that takes more time in all than it may."""


class AnswerBounds(NamedTuple):
    """What an answer may take in all: seconds until its body, seconds of its body, bytes of its body."""

    head_seconds: float
    seconds: float
    size: int


class GetRequest(NamedTuple):
    """A request for a URL that is sent to one address of its host; to a proxy, if there is none."""

    secure: bool
    host: str  # by which the certificate and the Host field go
    port: int
    address: str
    target: str  # path and query
    headers: Mapping[str, str]
    bounds: AnswerBounds
    certificate: str = ""  # PEM file with a certificate of our own and its key

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


class Reply:
    """A status, the header fields as they came, and a body that is still to be read."""

    def __init__(
        self,
        status: int,
        fields: tuple[tuple[str, str], ...] = (),
        pieces: Iterable[bytes] = (),
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.status, self.fields, self.pieces, self.close = status, fields, pieces, close
        # What comes behind a body of stated length that has been read, until nothing comes for some seconds.
        self.beyond: Callable[[float], Iterable[bytes]] = lambda seconds: ()

    def get(self, name: str) -> str:
        """The values of a field, whatever the case of its name; empty if there is none."""
        return ", ".join(value for field, value in self.fields if field.lower() == name)

    @property
    def onward(self) -> str:
        """Where a redirect leads, as it is written there; empty if the answer is none."""
        return self.get("location") if self.status in (301, 302, 303, 307, 308) else ""


Transport = Callable[[GetRequest], Reply]


def request_to(
    url: str, address: str, headers: Mapping[str, str], bounds: AnswerBounds, certificate: str = ""
) -> GetRequest:
    """A GET of a URL. ValueError if it is none that can be asked for."""
    if len(url) > URL_LENGTH:
        raise ValueError("the URL is too long")
    if _CONTROLS.search(url):
        raise ValueError("it holds control characters")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("only http and https URLs can be fetched")
    host, secure = parts.hostname, parts.scheme == "https"
    if not host.isascii():
        host = host.encode("idna").decode()
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = _UNFIT.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), target)
    port = parts.port or (443 if secure else 80)
    return GetRequest(secure, host, port, address, target, headers, bounds, certificate)


class Connections:
    """Sends requests. Connections are kept for the next one to the same place."""

    def __init__(self, connect_seconds: float, read_seconds: float, proxy: str = "") -> None:
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        self._proxy = _proxy(proxy) if proxy else None
        self._idle: dict[tuple[object, ...], socket.socket] = {}

    def __call__(self, request: GetRequest) -> Reply:
        """The answer, its body to come. NotConnected, or another OSError."""
        place = (request.secure, request.host, request.port, request.address, request.certificate)
        kept = self._idle.pop(place, None)
        if kept is not None and _closed(kept):
            kept.close()
            kept = None
        if kept is not None:
            try:
                return self._exchange(kept, place, request, kept=True)
            except ClosedWhileIdle:
                pass  # a request that nothing was said to can be sent again (RFC 9112, section 9.3.1)
        return self._exchange(self._connected(request), place, request)

    def _exchange(
        self, sock: socket.socket, place: tuple[object, ...], request: GetRequest, *, kept: bool = False
    ) -> Reply:
        """Send a request over a connection. ClosedWhileIdle if one that was kept turns out to be closed."""
        answer = _Answer(sock, self._read_seconds, request.bounds)
        try:
            sock.settimeout(self._read_seconds)  # one that was kept has what its last answer left
            sock.sendall(self._written(request))
            reply = answer.reply()
        except BaseException as e:
            sock.close()
            if kept and isinstance(e, OSError) and not isinstance(e, TimeoutError) and not answer.begun:
                raise ClosedWhileIdle(str(e)) from e
            raise

        def close() -> None:
            if not (answer.whole and answer.kept):
                sock.close()
                return
            while len(self._idle) >= KEPT:
                self._idle.pop(next(iter(self._idle))).close()
            self._idle[place] = sock

        reply.close = close
        return reply

    def close(self) -> None:
        while self._idle:
            self._idle.popitem()[1].close()

    def _connected(self, request: GetRequest) -> socket.socket:
        proxy = self._proxy
        place = (proxy.host, proxy.port) if proxy else (request.address, request.port)
        try:
            sock = socket.create_connection(place, self._connect_seconds)
        except TimeoutError as e:
            raise ConnectingTooLong(str(e)) from e
        except (OSError, UnicodeError) as e:
            raise NotConnected(str(e)) from e
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if proxy and request.secure:
                self._tunnelled(sock, request, proxy)
            if request.secure:
                sock = tls(request.certificate).wrap_socket(sock, server_hostname=request.host)
        except BaseException as e:
            sock.close()
            if isinstance(e, OSError):  # ssl.SSLError is one
                kind = ConnectingTooLong if isinstance(e, TimeoutError) else NotConnected
                raise kind(str(e)) from e
            raise
        return sock

    def _tunnelled(self, sock: socket.socket, request: GetRequest, proxy: _Proxy) -> None:
        host = f"[{request.host}]" if ":" in request.host else request.host
        place = f"{host}:{request.port}"
        sock.sendall(_head(f"CONNECT {place} HTTP/1.1", {"Host": place} | proxy.fields))
        bounds = AnswerBounds(self._connect_seconds, 0.0, 0)
        status = _Answer(sock, self._connect_seconds, bounds).reply().status
        if not 200 <= status < 300:
            raise NotHttp(f"the proxy answers {status}")

    def _written(self, request: GetRequest) -> bytes:
        target, fields = request.target, {"Host": request.authority, **request.headers}
        if self._proxy and not request.secure:
            target, fields = f"http://{request.authority}{target}", fields | self._proxy.fields
        return _head(f"GET {target} HTTP/1.1", fields)


class _Answer:
    """What comes over a connection in answer to one request."""

    def __init__(self, sock: socket.socket, seconds: float, bounds: AnswerBounds) -> None:
        self._sock, self._seconds, self._bounds = sock, seconds, bounds
        self._buffer, self._at = b"", 0
        self._begin(bounds.head_seconds, BEFORE_BODY)
        self.whole = self.kept = False  # read to its end; the connection can be used again
        self.begun = False  # a byte has come

    def _begin(self, seconds: float, size: int) -> None:
        """From now on, so many seconds and bytes."""
        self._allowed, self._until, self._left = seconds, time.monotonic() + seconds, size

    def _received(self) -> bytes:
        """The next bytes; none at the end of the connection."""
        left = self._until - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self._sock.settimeout(min(left, self._seconds))
            data = self._sock.recv(PIECE)
        except TimeoutError as e:
            if time.monotonic() >= self._until:
                raise AnswerTooLong(f"an answer that takes more than {self._allowed:g} s") from e
            raise
        self.begun = self.begun or bool(data)
        self._left -= len(data)
        if self._left < 0:
            raise NotHttp("an answer with more around its body than is read")
        return data

    def reply(self) -> Reply:
        """The answer, its body to come. It is not kept here: a circle would keep a page's bytes for long."""
        while True:
            first, *lines = self._lines()
            found = _STATUS.match(first)
            if found is None:
                raise NotHttp("what comes is not HTTP")
            status = int(found[2])
            if status == 101:
                raise NotHttp("the server speaks another protocol")
            if status >= 200:  # 1xx: the answer is still to come
                break
        reply = Reply(status, tuple(_fields(lines)))
        told = reply.get("connection").lower()
        self.kept = "close" not in told and (found[1] == b"1" or "keep-alive" in told)
        reply.pieces = self._body(reply)
        return reply

    def _lines(self) -> list[bytes]:
        """The lines of a head."""
        head, looked = self._buffer[self._at :], 0
        while (end := _HEAD_END.search(head, looked)) is None:
            if len(head) > HEAD_BYTES:
                raise NotHttp(f"an answer's head is larger than {HEAD_BYTES} bytes")
            data = self._received()
            if not data:
                raise NotHttp("the server closes the connection without an answer")
            looked = max(len(head) - 3, 0)  # the end may have begun
            head += data
        self._buffer, self._at = head, end.end()
        return head[: end.start()].split(b"\n")

    def _body(self, reply: Reply) -> Iterator[bytes]:
        self._begin(self._bounds.seconds, BEFORE_BODY + FRAMING * self._bounds.size)
        coding, length = reply.get("transfer-encoding").lower().strip(), reply.get("content-length")
        lengths = {one.strip() for one in length.split(",")}
        if reply.status in (204, 304):
            pass
        elif coding == "chunked":
            yield from self._chunks()
        elif coding not in ("", "identity"):
            raise NotHttp(f"a transfer coding that was not asked for: {coding[:50]!r}")
        elif length:
            if len(lengths) > 1 or not re.fullmatch("[0-9]{1,15}", stated := lengths.pop()):
                raise NotHttp(f"Content-Length is {length[:50]!r}")
            yield from self._part(int(stated))
            reply.beyond = self._beyond
        else:
            self.kept = False
            yield self._buffer[self._at :]
            self._at = len(self._buffer)
            while data := self._received():
                yield data
        self.whole, self.kept = True, self.kept and self._at >= len(self._buffer)

    def _part(self, left: int) -> Iterator[bytes]:
        """So many bytes."""
        while left:
            if self._at >= len(self._buffer):
                self._more()
            piece = self._buffer[self._at : self._at + left]
            self._at += len(piece)
            left -= len(piece)
            yield piece

    def _beyond(self, seconds: float) -> Iterator[bytes]:
        self.kept, self._seconds = False, seconds
        self._until = min(self._until, time.monotonic() + 30 * seconds)
        yield self._buffer[self._at :]
        self._at = len(self._buffer)
        with suppress(OSError):
            while data := self._received():
                yield data

    def _chunks(self) -> Iterator[bytes]:
        while True:
            line = self._line()
            size = _SIZE.match(line)
            if size is None:
                raise NotHttp(f"no size of a chunk: {line[:20]!r}")
            if not (left := int(size[0], 16)):
                break
            yield from self._part(left)
            if self._line().strip():
                raise NotHttp("a chunk is larger than it says")
        while self._line().strip():  # fields after the body
            pass

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\n", self._at)) < 0:
            if len(self._buffer) - self._at > LINE_BYTES:
                raise NotHttp("a line without end")
            before = self._buffer[self._at :]
            self._more()
            self._buffer = before + self._buffer
        line = self._buffer[self._at : end + 1]
        self._at = end + 1
        return line

    def _more(self) -> None:
        data = self._received()
        if not data:
            raise NotHttp("the server closes the connection before the answer's end")
        self._buffer, self._at = data, 0


class _Proxy(NamedTuple):
    host: str
    port: int
    fields: dict[str, str]


def _proxy(url: str) -> _Proxy:
    place, user, password = without_credentials(url)
    try:
        parts = urlsplit(place)
        host, port = parts.hostname or "", parts.port or 80
        if parts.scheme != "http" or not host:
            raise ValueError("no HTTP proxy")
    except ValueError as e:
        raise SettingsError(f"harvest.proxy: {place!r}: {e}; use one like 'http://host:port'") from e
    told = b64encode(f"{user}:{password}".encode()).decode()
    return _Proxy(host, port, {"Proxy-Authorization": f"Basic {told}"} if user else {})


def _head(first: str, fields: Mapping[str, str]) -> bytes:
    for name, value in fields.items():
        if not _FIELD.fullmatch(name) or _CONTROLS.search(value):
            raise ValueError(f"the header field {name!r} cannot be sent")
    lines = (first, *(f"{name}: {value}" for name, value in fields.items()), "", "")
    return "\r\n".join(lines).encode("latin-1", "replace")


def _fields(lines: list[bytes]) -> Iterator[tuple[str, str]]:
    for line in lines:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("latin-1")
        name, colon, value = text.partition(":")
        if colon and _FIELD.fullmatch(name):
            yield name, value.strip()


def _closed(sock: socket.socket) -> bool:
    """Whether a connection that nothing is awaited on was closed by its server meanwhile."""
    try:
        found = select.poll()
        found.register(sock, select.POLLIN)
        return bool(found.poll(0))
    except (OSError, ValueError):
        return True


@cache
def tls(certificate: str = "") -> ssl.SSLContext:
    """One for all sources: reading the certificates takes longer than many a harvest."""
    import ssl

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        import certifi

        file = certifi.where()
    context = ssl.create_default_context(cafile=file, capath=folder)
    if certificate:
        try:
            context.load_cert_chain(certificate, password="")  # nobody is there to be asked for one
        except (OSError, ValueError) as e:
            raise SettingsError(
                f"{certificate}: no client certificate with its key, without a password, in PEM form: {e}"
            ) from e
    return context
