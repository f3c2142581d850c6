"""Which names a node answers to.

A page in a browser can send requests to a node on the same machine, and by a name that it lets point at
127.0.0.1 it could read the answers. So a node on loopback answers to its own names only (and lets no page of
another origin read it: `Settings.allowed_origins`). A node with a public address is read by everybody anyway.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from indlet.settings import Settings

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def host_of(connection: HTTPConnection) -> str:
    """The name in a request's Host header, without its port."""
    try:
        return (urlsplit(f"//{connection.headers.get('host', '')}").hostname or "").lower()
    except ValueError:
        return ""


class KnownHosts:
    """Refuses requests to a node on loopback that are addressed to a name which is not its own."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        own = (urlsplit(settings.base_url()).hostname or "").lower()
        self._names = LOCAL_NAMES | {own, settings.node.host.lower()} | set(settings.serve.allow_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            if len(hosts) != 1 or host_of(HTTPConnection(scope)) not in self._names:
                refusal = PlainTextResponse(
                    "This node does not answer to that name; serve.allow_hosts may name more.\n", 421
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
