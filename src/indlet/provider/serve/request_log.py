"""A line of the log for each request: who asked for what, and what came of it. Not its query."""

from __future__ import annotations

import logging
import time
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indlet import logs
from indlet.provider.serve.access import client_address, trusted_proxies
from indlet.settings import Settings

_LONGEST: Final = 300  # characters of a path or of the name of a program
_QUIET: Final = ("/healthz", "/metrics")  # asked every few seconds, by machines


class RequestLog:
    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._proxies = tuple(trusted_proxies(settings))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not logs.is_enabled(logging.INFO):
            await self._app(scope, receive, send)
            return
        status, size, started = 500, 0, time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            connection = HTTPConnection(scope)
            quiet = scope["path"] in _QUIET and status < 400
            logs.event(
                "request",
                logging.DEBUG if quiet else logging.ERROR if status >= 500 else logging.INFO,
                method=scope["method"][:20],
                path=scope["path"][:_LONGEST],
                status=status,
                bytes=size,
                ms=round((time.perf_counter() - started) * 1000, 1),
                client=str(client_address(connection, self._proxies) or ""),
                agent=connection.headers.get("user-agent", "")[:_LONGEST],
            )
