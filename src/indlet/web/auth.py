"""Who may sit at the operations desk: password hashes, sessions, CSRF tokens, slow sign-in, and from where.

Sessions are signed values in a cookie, bound to the password they were opened with: a new password ends them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from indlet.errors import SettingsError
from indlet.settings import Settings

# 2^15 * 8 * 128 bytes = 32 MB and some 0.1 s for each guess.
_N, _R, _P = 2**15, 8, 1
COOKIE: Final = "indlet_session"


def hash_password(password: str, *, salt: bytes | None = None) -> str:
    """What settings keep instead of a password: "scrypt$n$r$p$salt$hash"."""
    salt = secrets.token_bytes(16) if salt is None else salt
    digest = _scrypt(password, salt, _N, _R, _P)
    return f"scrypt${_N}${_R}${_P}${_encode(salt)}${_encode(digest)}"


def check_password(password: str, hashed: str) -> bool:
    try:
        scheme, n, r, p, salt, digest = hashed.split("$")
        if scheme != "scrypt":
            raise ValueError(scheme)
        expected = _decode(digest)
        found = _scrypt(password, _decode(salt), int(n), int(r), int(p))
    except ValueError as e:
        raise SettingsError(
            "admin.password_hash is not of the form scrypt$n$r$p$salt$hash; make a new one with  indlet init"
        ) from e
    return hmac.compare_digest(expected, found)


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    if not (1 < n <= 2**20 and 0 < r <= 32 and 0 < p <= 16):
        raise ValueError("scrypt parameters out of bounds")
    return hashlib.scrypt(
        password.encode()[:1024], salt=salt, n=n, r=r, p=p, maxmem=n * r * 128 + 2**20 * p, dklen=32
    )


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    expires: float
    csrf: str


@dataclass
class Gate:
    """Opens and checks sessions; keeps count of failed sign-ins."""

    secret: bytes
    settings: Settings
    clock: Callable[[], float] = time.time
    tries: int = 5  # from one address before it has to wait
    wait: float = 60.0  # seconds, doubled by each further failure up to an hour
    _failures: OrderedDict[str, tuple[int, float]] = field(default_factory=OrderedDict)
    _ended: dict[str, float] = field(default_factory=dict)

    # Sessions

    def open(self) -> tuple[str, Session]:
        """A new session and the cookie's value for it."""
        expires = self.clock() + self.settings.admin.session_hours * 3600
        identity = secrets.token_urlsafe(18)
        payload = f"{identity}.{int(expires)}"
        return f"{payload}.{self._sign('session', payload)}", self._session(identity, expires)

    def session(self, request: Request) -> Session | None:
        """The session that a request's cookie proves; None if it proves nothing any more."""
        cookie = request.cookies.get(COOKIE, "")
        payload, _, signature = cookie.rpartition(".")
        identity, _, until = payload.partition(".")
        if not until.isdecimal() or len(until) > 12:
            return None
        if not hmac.compare_digest(signature.encode(), self._sign("session", payload).encode()):
            return None
        if float(until) < self.clock() or identity in self._ended:
            return None
        return self._session(identity, float(until))

    def end(self, session: Session) -> None:
        """Close a session before its time, for this process's life: its cookie is worth nothing."""
        now = self.clock()
        self._ended = {i: until for i, until in self._ended.items() if until > now}
        self._ended[session.id] = session.expires

    def csrf_matches(self, session: Session, token: str) -> bool:
        return hmac.compare_digest(session.csrf.encode(), token.encode())

    def _session(self, identity: str, expires: float) -> Session:
        return Session(identity, expires, self._sign("csrf", identity))

    def _sign(self, purpose: str, payload: str) -> str:
        bound = f"{purpose}\0{self.settings.admin.password_hash}\0{payload}".encode()
        return _encode(hmac.new(self.secret, bound, hashlib.sha256).digest())

    # Sign-in

    def must_wait(self, address: str) -> int:
        """Seconds until this address may try again; 0 if it may now."""
        count, last = self._failures.get(address, (0, 0.0))
        if count < self.tries:
            return 0
        pause = min(self.wait * 2 ** (count - self.tries), 3600.0)
        return max(0, int(last + pause - self.clock() + 0.999))

    def sign_in(self, address: str, password: str) -> bool:
        """Whether the password is right; a wrong one counts against the address."""
        if self.must_wait(address):
            return False
        # Counted before the slow check, so that parallel guesses count too.
        count, _ = self._failures.pop(address, (0, 0.0))
        self._failures[address] = (count + 1, self.clock())
        while len(self._failures) > 10_000:
            self._failures.popitem(last=False)
        if not check_password(password, self.settings.admin.password_hash):
            return False
        del self._failures[address]
        return True

    # From where

    def admits(self, request: Request) -> bool:
        """Whether the desk may be shown to this client at all."""
        if self.settings.admin.public:
            return True
        return is_local(request, self.settings)


def client_address(request: Request, settings: Settings) -> str:
    """The address that a request comes from; a proxy is believed only if the settings trust it."""
    peer = request.client.host if request.client else ""
    forwarded = request.headers.get("x-forwarded-for", "")
    if forwarded and _within(peer, settings.serve.trusted_proxies):
        hops = [hop.strip() for hop in forwarded.split(",")]
        while len(hops) > 1 and _within(hops[-1], settings.serve.trusted_proxies):
            hops.pop()
        return hops[-1]
    return peer


def is_local(request: Request, settings: Settings) -> bool:
    """Whether a request comes from this machine, and not merely through a proxy on it.

    The Host header is checked too: a foreign page that points its own name at 127.0.0.1 gets nothing.
    """
    proxied = any(name in request.headers for name in ("x-forwarded-for", "forwarded", "x-real-ip", "via"))
    peer = request.client.host if request.client else ""
    if proxied and not _within(peer, settings.serve.trusted_proxies):
        return False
    try:
        if not ipaddress.ip_address(client_address(request, settings)).is_loopback:
            return False
    except ValueError:
        return False
    host = (urlsplit(f"//{request.headers.get('host', '')}").hostname or "").lower()
    own = (urlsplit(settings.base_url()).hostname or "").lower()
    return host in ("localhost", "127.0.0.1", "::1", own)


def _within(address: str, networks: tuple[str, ...]) -> bool:
    try:
        ip = ipaddress.ip_address(address)
        return any(ip in ipaddress.ip_network(network, strict=False) for network in networks)
    except ValueError:
        return False
