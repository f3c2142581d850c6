"""Which addresses a source may lead to. What is checked is what is connected to: names are looked up once."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

# A name is looked up again after this time.
LOOKUP_SECONDS: Final = 300.0

# IPv6 addresses whose last 32 bits are an IPv4 address: IPv4-compatible (RFC 4291) and NAT64 (RFC 6052); and
# those of NAT64 within one network (RFC 8215).
_WITH_IPV4: Final = (ipaddress.IPv6Network("::/96"), ipaddress.IPv6Network("64:ff9b::/96"))
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")

Resolve = Callable[[str, int], Sequence[str]]


class OutOfReach(Exception):
    """A URL that may not be asked."""


def addresses(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system resolves its name."""
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@dataclass(frozen=True, slots=True)
class KnownPublic:
    """The hosts of sources that have had a public address, and what remembers another one."""

    hosts: Collection[str] = ()
    remember: Callable[[str], None] = lambda host: None


class Reach:
    """What one source may lead to: neither the redirects of a public one nor the documents that its records
    name may lead into our own network, where it has no business.

    A source is public from the moment its host has one public address, and stays so: whoever controls the
    name could otherwise answer with a private address first, to be trusted, and with a server of theirs next.
    """

    def __init__(
        self,
        allow_private: bool,
        by_proxy: bool,
        resolve: Resolve,
        clock: Callable[[], float],
        known_public: KnownPublic | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._by_proxy = by_proxy
        self._resolve = resolve
        self._clock = clock
        self._known_public = known_public or KnownPublic()
        self._home = ""  # the host of the source: that of the first URL
        self._public: bool | None = None  # whether the source itself is
        self._known: dict[
            tuple[str, int], tuple[tuple[str, ...], float]
        ] = {}  # with the time they hold until

    def addresses(self, url: str) -> tuple[str, ...]:
        """The addresses that a URL's host has now, each of which we may speak to."""
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as e:
            raise OutOfReach(f"{url[:200]}: not a URL that can be fetched: {e}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OutOfReach(f"{url}: only http and https URLs can be harvested")
        found = self._resolved(parts.hostname, port)
        self._judge(parts.hostname.lower().rstrip("."), found)
        if self._allow_private and not self._public:
            return found
        public = tuple(filter(is_public, found))
        if found and (not public or (public != found and not self._allow_private)):
            private = next(address for address in found if not is_public(address))
            raise OutOfReach(
                f"{url} leads into a private network ({private}), where only sources of that network may "
                "lead, and only with  harvest.allow_private = true"
            )
        return public

    def _judge(self, host: str, found: Sequence[str]) -> None:
        """Take note of what the addresses of a host say about the source."""
        self._home = self._home or host
        if self._public or host != self._home or not found:
            return
        # A name with addresses of both kinds must not open our network by the private ones.
        self._public = any(map(is_public, found))
        if host in self._known_public.hosts:
            self._public = True
        elif self._public and host not in found:  # an address stays what it is
            self._known_public.remember(host)

    def begin(self, source: str) -> None:
        """Let the URL of the source itself decide what it may lead to, and no URL that its records name."""
        with suppress(OSError, OutOfReach):
            self.addresses(source)
        if self._public is None:
            self._public = True

    def forget(self) -> None:
        """Look names up again: what they meant does not answer."""
        self._known.clear()

    def _resolved(self, host: str, port: int) -> tuple[str, ...]:
        kept = self._known.get((host, port))
        if kept is not None and self._clock() < kept[1]:
            return kept[0]
        try:
            found = tuple(dict.fromkeys(self._resolve(host, port)))
        except (OSError, UnicodeError) as e:
            if self._by_proxy:
                return ()  # the proxy may know it
            raise OSError(getattr(e, "strerror", None) or str(e)) from None
        self._known[host, port] = found, self._clock() + LOOKUP_SECONDS
        return found


def is_public(address: str) -> bool:
    """Whether an address is one of the public network; one that holds an IPv4 address is what that is."""
    found = ipaddress.ip_address(address.split("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.is_site_local or found in _LOCAL_NAT64:
            return False
        inside = found.ipv4_mapped or found.sixtofour
        if any(found in network for network in _WITH_IPV4):
            inside = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inside is not None:
            return inside.is_global and not inside.is_multicast
    return found.is_global and not found.is_multicast


def origin_of(url: str) -> str:
    """Scheme, host and port: where credentials for a URL may go."""
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        port = 0
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"
