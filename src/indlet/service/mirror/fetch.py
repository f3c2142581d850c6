"""A file by reference, written as it comes: bounded in bytes, time and reach."""

from __future__ import annotations

import socket
import time
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx

from indlet.service.harvest.client import USER_AGENT
from indlet.service.harvest.reach import is_public

REDIRECTS: Final = 5


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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._authorization = authorization
        self._trusted = {origin_of(url) for url in (source, *trusted)}
        self._limit, self._seconds = limit, seconds
        # Records of a public repository must not lead into our network.
        self._public = _all_public(source)
        self._http = httpx.Client(
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            timeout=30.0,
            follow_redirects=False,
            transport=transport,
        )
        self.requests = 0
        self.bytes = 0

    def close(self) -> None:
        self._http.close()

    def fetch(self, url: str, target: Path) -> Fetched:
        """The file's bytes in `target`. A redirect is followed within its origin."""
        first = origin_of(url)
        for _ in range(REDIRECTS + 1):
            if urlsplit(url).scheme not in ("http", "https") or origin_of(url) != first:
                raise NotFetched(f"{url}: leads to another server; not followed")
            if self._public and not _all_public(url):
                raise NotFetched(f"{url}: leads into a private network")
            headers = {"Authorization": self._authorization} if first in self._trusted else {}
            headers = {name: value for name, value in headers.items() if value}
            try:
                with self._http.stream("GET", url, headers=headers) as response:
                    self.requests += 1
                    if response.is_redirect and response.headers.get("location"):
                        url = urljoin(url, response.headers["location"])
                        continue
                    if response.status_code != 200:
                        raise NotFetched(f"{url}: the server answers {response.status_code}")
                    return self._written(response, url, target)
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as e:
                raise NotFetched(f"{url}: cannot be fetched: {e or type(e).__name__}") from e
        raise NotFetched(f"{url}: redirects go in circles")

    def _written(self, response: httpx.Response, url: str, target: Path) -> Fetched:
        digest, size, until = sha256(), 0, time.monotonic() + self._seconds
        with target.open("wb") as file:
            for data in response.iter_raw(1 << 18):
                size += len(data)
                self.bytes += len(data)
                if size > self._limit:
                    raise NotFetched(f"{url}: larger than {self._limit:,} bytes")
                if time.monotonic() > until:
                    raise NotFetched(f"{url}: took longer than {self._seconds:g} s")
                digest.update(data)
                file.write(data)
        stated = response.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) != size:
            raise NotFetched(f"{url}: {size:,} bytes came of {int(stated):,}")
        fields = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers.raw)
        return Fetched(size, digest.hexdigest(), fields)


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        port = 0
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"


def _all_public(url: str) -> bool:
    """Whether every address of a URL's host is on the public net; not if it has none."""
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return False
    return all(is_public(str(entry[4][0])) for entry in found)
