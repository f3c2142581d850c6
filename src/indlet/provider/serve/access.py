"""Who asks, and which hierarchies that requester may have. Whatever is not permitted does not exist."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from indlet.errors import SettingsError
from indlet.provider.serve.provenance import republished
from indlet.provider.serve.record_filter import ANYBODY, STRANGER, RecordFilter, Requester
from indlet.provider.serve.scope import Scope
from indlet.provider.source import crawl_targets
from indlet.settings import HIERARCHY, SOURCE, Access, OriginKey, Settings
from indlet.store import Audience, Origin, View

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Permit:
    """What one requester may have: the restricted hierarchies that are open to it.

    `digest` is bound into resumption tokens: a token does not travel to a requester with another permit.
    """

    opened: frozenset[OriginKey] = frozenset()
    closed: frozenset[OriginKey] = frozenset()
    configured: frozenset[OriginKey] = frozenset()
    requester: Requester = ANYBODY  # as a record filter passes it on
    scope: Scope | None = None  # of the virtual repository that is asked
    token: bytes = field(default=b"", repr=False)  # that was sent, whether it opens anything or not
    address: Address | None = None

    @property
    def digest(self) -> str:
        if not self.opened and self.scope is None:
            return self.requester.digest
        # A source is marked, a hierarchy is not: tokens of earlier versions stay valid.
        opened = (name if kind == HIERARCHY else f"{kind}\t{name}" for kind, name in self.opened)
        names = "\n".join(sorted(opened)) + self.requester.digest
        if self.scope is not None:
            names += f"\n{self.scope.path}"
        return blake2b(names.encode(), digest_size=6).hexdigest()

    def includes(self, origin: Origin) -> bool:
        """Whether the repository that is asked, if it is a virtual one, includes an origin."""
        return self.scope is None or self.scope.shows(origin)

    def allows(self, hierarchy: str) -> bool:
        return (HIERARCHY, hierarchy) not in self.closed

    def origins(self, view: View) -> list[int] | None:
        """The origins whose records may be shown; None where that is all there are."""
        known = view.origins()
        shown = [
            o.id
            for o in known
            if (o.kind == HIERARCHY or republished(o)) and self._shows(o) and self.includes(o)
        ]
        return None if len(shown) == len(known) else shown

    def _shows(self, origin: Origin) -> bool:
        if origin.audience is Audience.GUARDED:
            return False
        key = rules_key(origin, self.configured)
        return key not in self.closed if key in self.configured else is_open_unconfigured(origin)


def rules_key(origin: Origin, configured: Container[OriginKey]) -> OriginKey:
    """Whose rules in the settings hold for an origin: its own, or those of the source it was met through."""
    own = (origin.kind, origin.name)
    return own if own in configured else (origin.kind, str(origin.settings.get("learned_from", origin.name)))


def is_open_unconfigured(origin: Origin) -> bool:
    """Whether a hierarchy or source that is no longer in the settings is shown: as when it was last read;
    nothing about which a filter decides that is not asked."""
    return origin.audience is Audience.PUBLIC


def access_rules(settings: Settings) -> dict[OriginKey, Access]:
    """The rules of access of everything that is crawled or harvested."""
    rules = {(HIERARCHY, target.name): target.access for target in crawl_targets(settings)}
    return rules | {(SOURCE, source.name): source.access for source in settings.source if source.name}


@dataclass(frozen=True, slots=True)
class _Lock:
    networks: tuple[Network, ...]
    tokens: tuple[bytes, ...]


class AccessGate:
    """The settings' rules of access, ready to be asked. What has no rules is open to all.

    One with networks or tokens opens to a requester from any of the networks, or with any of the tokens.
    """

    def __init__(self, settings: Settings, filtering: RecordFilter | None = None) -> None:
        rules = access_rules(settings)
        self._locks = {
            key: _lock(access, f"{key[1]!r}") for key, access in rules.items() if access.is_restricted
        }
        self._names = frozenset(rules)
        self._proxies = trusted_proxies(settings)
        self._filter = filtering
        self._virtual = any(r.access.is_restricted for r in settings.repository)

    @property
    def restricted(self) -> bool:
        """Whether answers differ between requesters."""
        return bool(self._locks) or self._filter is not None or self._virtual

    def permit(self, connection: HTTPConnection) -> Permit:
        requester = self._requester(connection, self._filter) if self._filter is not None else ANYBODY
        address, token = self.address(connection), bearer_token(connection.headers)
        opened = frozenset(name for name, lock in self._locks.items() if _opens(lock, address, token))
        closed = frozenset(self._locks.keys() - opened)
        return Permit(opened, closed, self._names, requester, token=token, address=address)

    def lock(self, access: Access, where: str) -> Callable[[HTTPConnection], bool]:
        """What tells whether rules of access, those of a virtual repository say, let a requester in."""
        if not access.is_restricted:
            return lambda connection: True
        lock = _lock(access, where)
        return lambda connection: _opens(lock, self.address(connection), bearer_token(connection.headers))

    def _requester(self, connection: HTTPConnection, filtering: RecordFilter) -> Requester:
        """Who asks, in header fields. Those of certificates count only from trusted proxies."""
        found = [("X-Forwarded-For", self._vouched_address(connection) or STRANGER)]
        trusted = self._from_proxy(connection)
        for name, value in connection.headers.items():
            if name == "authorization" or (name in filtering.credentials and trusted):
                found.append((name.title(), value))
        return Requester(tuple(found), self.client(connection))

    def _vouched_address(self, connection: HTTPConnection) -> str:
        """The client's address, where it is certain that it is the client's; empty where it may be that of a
        proxy, to which a web server opens what it opens to itself."""
        address = self.address(connection)
        if address is None or address.is_loopback or address.is_unspecified or not self._proxies:
            return ""
        if _inside(address, self._proxies) or (forwarded(connection) and not self._from_proxy(connection)):
            return ""
        return str(address)

    def _from_proxy(self, connection: HTTPConnection) -> bool:
        peer = _address(connection.client.host if connection.client else "")
        return peer is not None and _inside(peer, self._proxies)

    def client(self, connection: HTTPConnection) -> str:
        """By what requests of one client are counted: its address, or its network; empty if that is unknown,
        as behind a proxy on this machine that is not trusted."""
        address = self.address(connection)
        if address is None or address.is_loopback or _inside(address, self._proxies):
            return ""
        if isinstance(address, ipaddress.IPv6Address):
            return str(ipaddress.ip_network((address, 64), strict=False))
        return str(address)

    def address(self, connection: HTTPConnection) -> Address | None:
        """Where a request comes from, as `client_address` says."""
        return client_address(connection, self._proxies)


def client_address(connection: HTTPConnection, proxies: Iterable[Network]) -> Address | None:
    """Where a request comes from; forwarded addresses count as far as trusted proxies vouch for them.

    All lines of X-Forwarded-For are one list. Each proxy appends whom it was asked by, so it is read from the
    right; what stands left of the first address that is no trusted proxy, anybody may have written.
    """
    proxies = tuple(proxies)
    address = _address(connection.client.host if connection.client else "")
    hops = [hop.strip() for hop in ",".join(connection.headers.getlist("x-forwarded-for")).split(",")]
    while address is not None and hops and hops[-1] and _inside(address, proxies):
        address = _address(hops.pop())
    return address


def forwarded(connection: HTTPConnection) -> bool:
    """Whether a proxy says that it passed a request on."""
    names = ("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded", "x-real-ip", "via")
    return any(name in connection.headers for name in names)


def _lock(access: Access, where: str) -> _Lock:
    return _Lock(access_networks(access, where), tuple(token.encode() for token in access.tokens))


def _opens(lock: _Lock, address: Address | None, token: bytes) -> bool:
    # Every token is compared, whichever fits: time tells nothing.
    known = [hmac.compare_digest(token, one) for one in lock.tokens]
    return any(known) or (address is not None and _inside(address, lock.networks))


def bearer_token(headers: Headers) -> bytes:
    """The bearer token that was sent; empty if none was."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip().encode("latin-1") if scheme.lower() == "bearer" else b""


def _address(text: str) -> Address | None:
    host = text.strip().strip('"')
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _inside(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def access_networks(access: Access, where: str) -> tuple[Network, ...]:
    if any(not token.strip() for token in access.tokens):
        raise SettingsError(f"{where}: access.tokens holds an empty token; remove it")
    return blocks(access.networks, f"{where}: access.networks")


def trusted_proxies(settings: Settings) -> tuple[Network, ...]:
    return blocks(settings.serve.trusted_proxies, "serve.trusted_proxies")


def blocks(networks: Iterable[str], where: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(network, strict=False) for network in networks)
    except ValueError as e:
        raise SettingsError(f"{where}: {e}; write blocks such as '192.0.2.0/24'") from e
