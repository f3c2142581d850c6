"""What a browser may do with a response: nothing, unless it is a page of ours.

Harvested metadata goes out unchanged, and XML may contain scripts. If a browser showed such a response as an
ordinary document of this node, its scripts could act with the session of whoever is signed in at the desk. So
every response is locked by default, and only an `OwnPage` has a policy of its own. Bytes from elsewhere are
`ForeignBytes`, which an `OwnPage` does not accept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCKED: Final = "default-src 'none'; sandbox"
# Files are shown with the styles inside them; neither lets a script run or anything be fetched.
LOCKED_FILE: Final = f"{LOCKED}; style-src 'unsafe-inline'; img-src data:"
# A browser plays audio and video by asking for the file once more, which needs the origin; still no scripts.
LOCKED_MEDIA: Final = f"{LOCKED} allow-same-origin; media-src 'self'; style-src 'unsafe-inline'"
_POLICY: Final = "indlet.policy"  # key of the ASGI message that starts a response with a policy of its own
_HEADERS: Final = {
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class ForeignBytes:
    """A body with parts that a source wrote and nobody escaped, such as metadata in its original XML."""

    data: bytes


class OwnPage(HTMLResponse):
    """A page made by a template or stylesheet of this package, with the policy that it needs."""

    def __init__(self, body: bytes, policy: str, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(body, status, headers)
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, receive, with_policy(self._policy, send))


class ForeignResponse(Response):
    """A response that carries foreign bytes: locked, or as a file of its kind is locked."""

    def __init__(
        self,
        body: ForeignBytes,
        status: int,
        headers: Mapping[str, str],
        media_type: str | None = None,
        policy: str = LOCKED,
    ) -> None:
        assert policy.startswith(LOCKED), policy
        super().__init__(body.data, status, headers, media_type)
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, receive, with_policy(self._policy, send))


def locked_file(media_type: str) -> str:
    """The policy of a file of this type."""
    return LOCKED_MEDIA if media_type.startswith(("audio/", "video/")) else LOCKED_FILE


def with_policy(policy: str, send: Send) -> Send:
    """Marks a response as one that has this policy instead of the default."""

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            message[_POLICY] = policy
        await send(message)

    return marked


class Locked:
    """Gives every response of an application its policy, whoever made it, and the other security headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, _locked(send) if scope["type"] == "http" else send)


class LockedApplication(Starlette):
    """Starlette, with `Locked` outside its middleware: the handler of unforeseen errors stands there too."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, receive, _locked(send) if scope["type"] == "http" else send)


def _locked(send: Send) -> Send:
    async def locked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Content-Security-Policy"] = message.get(_POLICY, LOCKED)
            headers["X-Content-Type-Options"] = "nosniff"
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return locked
