"""Who may sit at the operations desk: password hashes, sessions, CSRF tokens, slow sign-in, and from where.

Sessions are signed values in a cookie, bound to the password they were opened with: a new password ends them.
A proxy that is trusted may name who sits there instead, in a header field; then nobody signs in here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request

from indlet.errors import SettingsError
from indlet.provider.serve.access import client_address, forwarded, trusted_proxies
from indlet.provider.serve.hosts import LOCAL_NAMES, host_of
from indlet.settings import ROLES, Settings
from indlet.store import Store, kept_tables

# 2^15 * 8 * 128 bytes = 32 MB and some 0.1 s for each guess.
_N, _R, _P = 2**15, 8, 1
COOKIE: Final = "indlet_session"
DEVICE: Final = "indlet_device"
_FORGET: Final = 3600.0  # seconds after which failures no longer count
_HEAR: Final = 2.0  # seconds after which a session that another node has ended is ended here
_SKEW: Final = 3600.0  # seconds by which clocks of nodes may differ
ADMIN: Final = "admin"  # whose password is that of the section [admin]


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
            "admin.password_hash is not of the form scrypt$n$r$p$salt$hash; "
            "make a new one with  indlet password"
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


# A hash that no password has.
_NOBODY: Final = f"scrypt${_N}${_R}${_P}${_encode(bytes(16))}${_encode(bytes(32))}"


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    expires: float
    csrf: str
    user: str = ADMIN
    role: str = "admin"
    by_proxy: bool = False

    def may(self, role: str) -> bool:
        """Whether whoever sits here has this role, or one that may more."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Guesser(NamedTuple):
    """Whose wrong passwords count together: a browser that has signed in before, else an address."""

    name: str
    is_known: bool = False


@dataclass
class Gate:
    """Opens and checks sessions; slows down whoever guesses passwords.

    After a few wrong passwords each further one from the same address is looked at only after a pause, the
    right one too: it is late, but never refused. A browser that has signed in before is counted by itself, so
    that strangers behind the same address do not slow it down.
    """

    secret: bytes
    settings: Settings
    clock: Callable[[], float] = time.time
    tries: int = 5  # wrong passwords before the first pause
    longest: float = 16.0  # seconds; pauses double from one second up to this
    # Sessions that were signed out before their time, and what keeps them through a restart.
    ended: dict[str, float] = field(default_factory=dict)
    keep: Callable[[dict[str, float]], None] = lambda ended: None
    others: Callable[[], dict[str, float]] | None = None  # those that other nodes of the store have ended
    _asked: float = -1e9
    _failures: OrderedDict[Guesser, tuple[int, float]] = field(default_factory=OrderedDict)

    # Sessions

    def open(self, user: str = ADMIN) -> tuple[str, Session]:
        """A new session and the cookie's value for it."""
        expires = self.clock() + self.settings.admin.session_hours * 3600
        identity = secrets.token_urlsafe(18) + ("" if user == ADMIN else f"~{_encode(user.encode())}")
        payload = f"{identity}.{int(expires)}"
        session = self._session(identity, expires)
        assert session is not None
        return f"{payload}.{self._sign('session', payload, self._hash(user))}", session

    def session(self, request: Request) -> Session | None:
        """The session that a proxy or a request's cookie proves; None if it proves nothing any more."""
        return self._by_proxy(request) or self._by_cookie(request)

    def _by_cookie(self, request: Request) -> Session | None:
        cookie = request.cookies.get(COOKIE, "")
        payload, _, signature = cookie.rpartition(".")
        identity, _, until = payload.partition(".")
        if not until.isdecimal() or len(until) > 12:
            return None
        hashed = self._hash(_user_of(identity))
        if not hashed:
            return None
        if not hmac.compare_digest(signature.encode(), self._sign("session", payload, hashed).encode()):
            return None
        self._hear_of_others()
        if float(until) < self.clock() or identity in self.ended:
            return None
        return self._session(identity, float(until))

    def _hear_of_others(self) -> None:
        now = time.monotonic()
        if self.others is not None and now - self._asked > _HEAR:
            self._asked = now
            self.ended = {**self.others(), **self.ended}

    def end(self, session: Session) -> None:
        """Close a session before its time: its cookie is worth nothing, after a restart neither."""
        now = self.clock()
        self.ended = {i: until for i, until in self.ended.items() if until > now} | {
            session.id: session.expires
        }
        self.keep(self.ended)

    def csrf_matches(self, session: Session, token: str) -> bool:
        return hmac.compare_digest(session.csrf.encode(), token.encode())

    def _by_proxy(self, request: Request) -> Session | None:
        """Who a trusted proxy says is signed in there: one field, one name, from the proxy's own address."""
        field = self.settings.admin.user_header
        if not field:
            return None
        peer, named = client_address(request, ()), request.headers.getlist(field)
        if peer is None or not any(peer in network for network in trusted_proxies(self.settings)):
            return None
        name = _name(named[0]) if len(named) == 1 else ""
        role = self._role(name) or (self.settings.admin.header_role if name and name != ADMIN else "")
        if not role:
            return None
        # There is no sign-in to bind the token to: it is bound to the name.
        return Session(f"proxy {name}", float("inf"), self._sign("csrf", f"proxy\0{name}"), name, role, True)

    def _session(self, identity: str, expires: float) -> Session | None:
        user = _user_of(identity)
        role = self._role(user)
        return Session(identity, expires, self._sign("csrf", identity), user, role) if role else None

    def _sign(self, purpose: str, payload: str, hashed: str | None = None) -> str:
        hashed = self.settings.admin.password_hash if hashed is None else hashed
        bound = f"{purpose}\0{hashed}\0{payload}".encode()
        return _encode(hmac.new(self.secret, bound, hashlib.sha256).digest())

    # Users

    def opens(self) -> bool:
        """Whether there is anybody who may enter."""
        return self.asks() or bool(self.settings.admin.user_header)

    def asks(self) -> bool:
        """Whether there is a password to sign in with."""
        return any((self.settings.admin.password_hash, *(user.password_hash for user in self.settings.user)))

    def _role(self, name: str) -> str:
        if name == ADMIN:
            return "admin" if self.settings.admin.password_hash else ""
        return next((user.role for user in self.settings.user if user.name == name), "")

    def _hash(self, name: str) -> str:
        if name == ADMIN:
            return self.settings.admin.password_hash
        return next((user.password_hash for user in self.settings.user if user.name == name), "")

    # Sign-in

    def new_device(self) -> str:
        """A cookie that shows at a later sign-in that this browser has signed in before."""
        identity = secrets.token_urlsafe(18)
        return f"{identity}.{self._sign('device', identity)}"

    def guesser(self, request: Request, address: str) -> Guesser:
        """Who signs in. One client has all addresses of an IPv6 network of 64 bits."""
        identity, _, signature = request.cookies.get(DEVICE, "").partition(".")
        if hmac.compare_digest(signature.encode(), self._sign("device", identity).encode()):
            return Guesser(identity, is_known=True)
        if ":" in address:
            address = str(ip_network((address, 64), strict=False))
        return Guesser(address)

    def pause(self, guesser: Guesser) -> float:
        """Seconds before the next password is looked at."""
        count, last = self._failures.get(guesser, (0, 0.0))
        if count < self.tries or self.clock() - last > _FORGET:
            return 0.0
        return float(min(2.0 ** (count - self.tries), self.longest))

    def sign_in(self, guesser: Guesser, password: str, name: str = ADMIN) -> bool:
        """Whether the password is that of the user; a wrong one counts against whoever guesses."""
        # Counted before the slow check, so that parallel guesses count too.
        count, last = self._failures.pop(guesser, (0, 0.0))
        if self.clock() - last > _FORGET:
            count = 0
        self._failures[guesser] = (count + 1, self.clock())
        while len(self._failures) > 10_000:
            self._failures.popitem(last=False)
        hashed = self._hash(name)
        # Who has no password takes as long to be refused as who has one.
        if not check_password(password, hashed or _NOBODY) or not hashed:
            return False
        del self._failures[guesser]
        return True

    # From where

    def admits(self, request: Request) -> bool:
        """Whether the desk may be shown to this client at all."""
        if self.settings.admin.public:
            return True
        return is_local(request, self.settings)


def _user_of(identity: str) -> str:
    """The user of a session, whose name stands in its identity; ADMIN where none does."""
    _, mark, name = identity.partition("~")
    try:
        return _decode(name).decode() if mark else ADMIN
    except ValueError:
        return ""


def _name(raw: str) -> str:
    """A name as a proxy sends it, UTF-8 in a header field; empty if it cannot be one."""
    try:
        name = raw.encode("latin-1").decode().strip()
    except UnicodeError:
        return ""
    return name if len(name) <= 100 and name.isprintable() else ""


def address_of(request: Request, settings: Settings) -> str:
    """The address that a request comes from, or "" where that cannot be told."""
    found = client_address(request, trusted_proxies(settings))
    return "" if found is None else str(found)


def is_local(request: Request, settings: Settings) -> bool:
    """Whether a request comes from this machine, and not merely through a proxy on it.

    The Host header is checked too: a foreign page that points its own name at 127.0.0.1 gets nothing.
    """
    proxies = trusted_proxies(settings)
    peer = client_address(request, ())
    if forwarded(request) and (peer is None or not any(peer in network for network in proxies)):
        return False
    address = client_address(request, proxies)
    if address is None or not address.is_loopback:
        return False
    own = (urlsplit(settings.base_url()).hostname or "").lower()
    return host_of(request) in LOCAL_NAMES | {own}


def over_https(request: Request, settings: Settings) -> bool:
    """Whether a browser came by https: to us, or to the proxy in front of our public address."""
    public = urlsplit(settings.base_url())
    by_name = public.scheme == "https" and host_of(request) == (public.hostname or "").lower()
    return request.url.scheme == "https" or by_name


def ended_sessions(store: Store) -> dict[str, float]:
    """The sessions that were signed out, as the store keeps them."""
    with store.read() as view:
        return {row.session: row.until for row in view.select(kept_tables.ENDED_SESSIONS)}


def keep_ended_sessions(store: Store, ended: dict[str, float]) -> None:
    """Beside those that other nodes have ended, as long as they matter."""
    with store.write() as tx:
        for row in tx.select(kept_tables.ENDED_SESSIONS):
            if row.until <= time.time() - _SKEW:
                tx.remove(kept_tables.ENDED_SESSIONS, session=row.session)
        tx.upsert(kept_tables.ENDED_SESSIONS, map(kept_tables.EndedSession._make, ended.items()))
