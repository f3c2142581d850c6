"""A file by reference, written as it comes: bounded in bytes, time and reach."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from indlet.net.client import HEAD_PATIENCE, USER_AGENT
from indlet.net.connection import (
    AnswerBounds,
    Connections,
    NotConnected,
    Reply,
    Transport,
    request_to,
)
from indlet.net.reach import KnownPublic, OutOfReach, Reach, Resolve, addresses, origin_of

REDIRECTS: Final = 5
TIMEOUT: Final = 30.0


class Fetched(NamedTuple):
    size: int
    sha256: str
    headers: tuple[tuple[str, str], ...]


class NotFetched(Exception):
    """A file cannot be had; the reason says why."""


class Fetcher:
    """GETs to the servers that records name. Credentials go to `trusted` origins only."""

    def __init__(
        self,
        source: str,
        authorization: str,
        trusted: tuple[str, ...],
        limit: int,
        seconds: float,
        transport: Transport | None = None,
        resolve: Resolve = addresses,
        certificate: str = "",
        known_public: KnownPublic | None = None,
    ) -> None:
        self._authorization = authorization
        self._trusted = {origin_of(url) for url in (source, *trusted)}
        self._limit = limit
        # Records of a public repository must not lead into our network.
        self._reach = Reach(True, False, resolve, time.monotonic, known_public)
        self._reach.begin(source)
        self._certificate = certificate
        self._connections = Connections(TIMEOUT, TIMEOUT)  # neither HTTP_PROXY nor .netrc counts
        self._bounds = AnswerBounds(min(seconds, HEAD_PATIENCE * TIMEOUT), seconds, limit)
        self._send = transport or self._connections
        self.requests = 0
        self.bytes = 0

    def close(self) -> None:
        self._connections.close()

    def fetch(self, url: str, target: Path) -> Fetched:
        """The file's bytes in `target`. A redirect is followed within its origin."""
        first = origin_of(url)
        for _ in range(REDIRECTS + 1):
            if urlsplit(url).scheme not in ("http", "https") or origin_of(url) != first:
                raise NotFetched(f"{url}: leads to another server; not followed")
            with closing(self._answer(url)) as reply:
                if reply.onward:
                    url = urljoin(url, reply.onward)
                    continue
                if reply.status != 200:
                    raise NotFetched(f"{url}: the server answers {reply.status}")
                try:
                    return self._written(reply, url, target)
                except OSError as e:
                    raise NotFetched(f"{url}: cannot be fetched: {e or type(e).__name__}") from e
        raise NotFetched(f"{url}: redirects go in circles")

    def _answer(self, url: str) -> Reply:
        """The answer of the first of a host's addresses that can be connected to, with its body to come."""
        trusted = origin_of(url) in self._trusted
        try:
            *others, last = self._reach.addresses(url)
            for address in others:
                with suppress(NotConnected):
                    return self._sent(url, address, trusted)
            return self._sent(url, last, trusted)
        except OutOfReach as e:
            raise NotFetched(str(e)) from None
        except (OSError, ValueError) as e:
            raise NotFetched(f"{url}: cannot be fetched: {e or type(e).__name__}") from e

    def _sent(self, url: str, address: str, trusted: bool) -> Reply:
        fields = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "identity"}
        if trusted and self._authorization:
            fields["Authorization"] = self._authorization
        reply = self._send(
            request_to(url, address, fields, self._bounds, self._certificate if trusted else "")
        )
        self.requests += 1
        return reply

    def _written(self, reply: Reply, url: str, target: Path) -> Fetched:
        digest, size = sha256(), 0
        with target.open("wb") as file:
            for data in reply.pieces:
                size += len(data)
                self.bytes += len(data)
                if size > self._limit:
                    raise NotFetched(f"{url}: larger than {self._limit:,} bytes")
                digest.update(data)
                file.write(data)
        return Fetched(size, digest.hexdigest(), reply.fields)
