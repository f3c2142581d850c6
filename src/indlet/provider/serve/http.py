"""Between ASGI and the repository: arguments in, coded and conditional responses out, never a pile-up."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from email.utils import formatdate, parsedate_to_datetime
from hashlib import blake2b
from typing import Final, TypeVar
from urllib.parse import parse_qsl

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from indlet.provider.serve.coding import CODERS, SMALLEST, negotiated
from indlet.provider.serve.responses import ForeignBytes, ForeignResponse, OwnPage
from indlet.settings import Serve

# A resumption token is a few hundred bytes; nothing legal comes near this.
_LARGEST_BODY: Final = 65536
_BODY_SECONDS: Final = 20
_MOST_ARGUMENTS: Final = 64
_HEALTH_CHECKS: Final = 4
T = TypeVar("T")


class TooMuch(Exception):
    """A request that is refused before it is looked into."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


async def arguments(request: Request) -> list[tuple[str, str]]:
    """The arguments of a GET or POST, repeated ones too, in order."""
    pairs = _parsed(request.scope["query_string"])
    if request.method == "POST":
        pairs += await posted(request)
    return pairs


async def posted(request: Request) -> list[tuple[str, str]]:
    """The fields of a posted form, within bounds of size, number and time."""
    body = await received(request)
    kind = request.headers.get("content-type", "application/x-www-form-urlencoded").partition(";")[0]
    if body and kind.strip().lower() != "application/x-www-form-urlencoded":
        raise TooMuch(415, "send arguments as application/x-www-form-urlencoded")
    return _parsed(body)


async def received(request: Request, most: int = _LARGEST_BODY) -> bytes:
    """The body of a request, within bounds of size and time."""
    body = bytearray()
    try:
        with anyio.fail_after(_BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise TooMuch(413, f"the body is larger than {most} bytes")
    except TimeoutError:
        raise TooMuch(408, f"the body took longer than {_BODY_SECONDS} seconds") from None
    except ClientDisconnect:
        raise TooMuch(400, "the body did not arrive") from None
    return bytes(body)


def _parsed(query: bytes) -> list[tuple[str, str]]:
    if query.count(b"&") >= _MOST_ARGUMENTS:
        raise TooMuch(400, f"more than {_MOST_ARGUMENTS} arguments")
    return parse_qsl(query.decode("utf-8", "replace"), keep_blank_values=True, errors="replace")


class RequestSlots:
    """Answers as many requests at once as the settings allow, and tells the others to come back.

    One client gets half of the slots at most, so that it cannot close the node to all others.
    """

    def __init__(self, settings: Serve) -> None:
        self._settings = settings
        self._room = max(1, settings.requests_at_once)
        self._limiter: anyio.CapacityLimiter | None = None
        self._busy = 0
        self._clients: Counter[str] = Counter()

    async def serve(self, build: Callable[[], T], client: str = "") -> T | Response:
        """What `build` gives, made in a thread; or a 503, immediately, where there is no room.

        `client`: who asks; empty if that is not known.
        """
        if self._busy >= self._room or (client and self._clients[client] >= max(1, self._room // 2)):
            return PlainTextResponse(
                "Busy: please repeat the request after the time in Retry-After.\n",
                503,
                {"Retry-After": str(self._settings.retry_after_seconds)},
            )
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._room)
        self._busy += 1
        self._clients[client] += 1
        try:
            return await anyio.to_thread.run_sync(build, limiter=self._limiter)
        finally:
            self._busy -= 1
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]


def health_slots(settings: Serve) -> RequestSlots:
    """Places of their own for those who ask whether the node lives: a busy one must not be taken for dead."""
    return RequestSlots(replace(settings, requests_at_once=_HEALTH_CHECKS))


@dataclass(frozen=True, slots=True)
class Validators:
    """What a client may ask with whether its copy is still good, and what else the answer depends on."""

    etag: str = ""
    modified: float | None = None
    vary: str = "Accept-Encoding"


def coded(
    request: Request,
    body: bytes | ForeignBytes,
    media_type: str,
    offered: Iterable[str],
    validators: Validators,
    headers: Mapping[str, str],
) -> Response:
    """A response in the best coding that the client accepts, or 304 if its copy is still good."""
    foreign = body if isinstance(body, ForeignBytes) else ForeignBytes(body)
    content, out = _encode(request, foreign.data, offered, validators)
    status = 304 if content is None else 200
    return ForeignResponse(ForeignBytes(content or b""), status, {**headers, **out}, media_type)


def coded_page(
    request: Request,
    body: bytes,
    policy: str,
    offered: Iterable[str],
    validators: Validators,
    headers: Mapping[str, str],
) -> Response:
    """The same for a page of ours, with its policy."""
    content, out = _encode(request, body, offered, validators)
    return OwnPage(content or b"", policy, 304 if content is None else 200, {**headers, **out})


def _encode(
    request: Request, body: bytes, offered: Iterable[str], validators: Validators
) -> tuple[bytes | None, dict[str, str]]:
    """The body to send, None for a 304, and the header fields that say what it is."""
    etag, modified = validators.etag, validators.modified
    out = {"Vary": validators.vary}
    if etag:
        out["ETag"] = f'W/"{etag}"'
    if modified is not None:
        out["Last-Modified"] = formatdate(modified, usegmt=True)
    if unchanged(request, etag, modified, time.time()):
        return None, out
    coding = (
        negotiated(request.headers.get("accept-encoding"), offered) if len(body) >= SMALLEST else "identity"
    )
    if coding != "identity":
        body = CODERS[coding](body)
        out["Content-Encoding"] = coding
    return body, out


def unchanged(request: Request, etag: str, modified: float | None, now: float = math.inf) -> bool:
    """Whether the requester's copy is still good (RFC 9110, section 13): by tag, or else by time.

    A second that is not over at `now` may still bring changes with the same date: its date proves nothing.
    """
    if request.method not in ("GET", "HEAD"):
        return False
    if known := request.headers.get("if-none-match"):
        tags = [tag.strip().removeprefix("W/").strip('"') for tag in known.split(",")]
        return bool(etag) and (etag in tags or "*" in tags)
    since = request.headers.get("if-modified-since")
    if since and modified is not None and modified < now - 2:
        try:
            return int(modified) <= parsedate_to_datetime(since).timestamp()
        except (ValueError, OverflowError):
            return False
    return False


def tag(*parts: bytes | str) -> str:
    digest = blake2b(digest_size=12)
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
        digest.update(b"\0")
    return digest.hexdigest()


def wants_page(request: Request) -> bool:
    """Whether a person's browser asks, and not a harvester.

    Browsers name both text/html and application/xhtml+xml, and XML only at a lower weight; no harvester does.
    """
    accept = request.headers.get("accept", "").lower()
    plain = {item.strip() for item in accept.split(",")}
    return {"text/html", "application/xhtml+xml"} <= plain and not plain & {"text/xml", "application/xml"}
