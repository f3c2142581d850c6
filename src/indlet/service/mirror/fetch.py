"""A file by reference, written as it comes: bounded in bytes, time and reach."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx

from indlet.service.harvest.answer_budget import FRAMING, HEAD_BYTES, AnswerBudget, bounded_transport
from indlet.service.harvest.client import USER_AGENT, tls
from indlet.service.harvest.reach import OutOfReach, Reach, Resolve, addresses, request_to

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
        resolve: Resolve = addresses,
    ) -> None:
        self._authorization = authorization
        self._trusted = {origin_of(url) for url in (source, *trusted)}
        self._limit, self._seconds = limit, seconds
        # Records of a public repository must not lead into our network.
        self._reach = Reach(allow_private=True, by_proxy=False, resolve=resolve, clock=time.monotonic)
        self._reach.begin(source)
        self._budget = AnswerBudget()
        self._http = httpx.Client(
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            timeout=30.0,
            follow_redirects=False,
            transport=transport or bounded_transport(self._budget, tls()),
            trust_env=False,  # neither HTTP_PROXY nor .netrc
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
            with closing(self._answer(url)) as response:
                if response.is_redirect and response.headers.get("location"):
                    url = urljoin(url, response.headers["location"])
                    continue
                if response.status_code != 200:
                    raise NotFetched(f"{url}: the server answers {response.status_code}")
                try:
                    return self._written(response, url, target)
                except (httpx.HTTPError, OSError) as e:
                    raise NotFetched(f"{url}: cannot be fetched: {e or type(e).__name__}") from e
        raise NotFetched(f"{url}: redirects go in circles")

    def _answer(self, url: str) -> httpx.Response:
        """The answer of the first of a host's addresses that can be connected to, with its body to come."""
        headers = {"Authorization": self._authorization} if self._authorization else {}
        if origin_of(url) not in self._trusted:
            headers = {}
        try:
            *others, last = self._reach.addresses(url)
            for address in others:
                with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                    return self._sent(url, address, headers)
            return self._sent(url, last, headers)
        except OutOfReach as e:
            raise NotFetched(str(e)) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as e:
            raise NotFetched(f"{url}: cannot be fetched: {e or type(e).__name__}") from e

    def _sent(self, url: str, address: str, headers: dict[str, str]) -> httpx.Response:
        self._budget.begin(self._seconds, HEAD_BYTES + FRAMING * self._limit)
        response = self._http.send(request_to(self._http, url, address, headers), stream=True)
        self.requests += 1
        return response

    def _written(self, response: httpx.Response, url: str, target: Path) -> Fetched:
        digest, size = sha256(), 0
        with target.open("wb") as file:
            for data in response.iter_raw(1 << 18):
                size += len(data)
                self.bytes += len(data)
                if size > self._limit:
                    raise NotFetched(f"{url}: larger than {self._limit:,} bytes")
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
