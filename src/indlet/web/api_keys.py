"""Who may ask the JSON API how often: programs with a key of the settings, and everybody else by address.

Requests are counted in the memory of this process, by the hour of the clock.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Receive, Scope, Send

from indlet.provider.serve.access import client_address, trusted_proxies
from indlet.settings import Settings

HEADER: Final = "x-api-key"
HOUR: Final = 3600
CLIENTS: Final = 10_000  # that are counted at a time


class Allowance(NamedTuple):
    """What a requester has left of an hour's requests; `limit` below 0 is no limit."""

    limit: int
    left: int
    reset: int  # seconds until the hour ends

    @property
    def headers(self) -> dict[str, str]:
        if self.limit < 0:
            return {}
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(max(0, self.left)),
            "RateLimit-Reset": str(self.reset),
        }


class ApiKeys:
    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._keys = {one.key.encode(): (one.name, one.per_hour) for one in settings.api_key}
        self._anonymous = settings.api.anonymous_per_hour
        self._proxies = trusted_proxies(settings)
        self._clock = clock
        self._guard = threading.Lock()
        self._hour, self._counts = 0, OrderedDict[str, int]()

    def only(self, routes: Iterable[BaseRoute]) -> list[BaseRoute]:
        """The routes within the quotas; as they are where the settings have none."""
        if not self._keys and self._anonymous < 0:
            return list(routes)
        return [_CountedRoute(route, self) for route in routes]

    def refusal(self, scope: Scope) -> tuple[Response | None, Allowance]:
        """Why a request is refused, or None; and what its requester has left."""
        key = Headers(scope=scope).get(HEADER, "")
        if key:
            known = [who for one, who in self._keys.items() if hmac.compare_digest(one, key.encode())]
            if not known:
                return _problem(401, "X-API-Key is no key of this node; ask its operator for one"), _FREE
            name, limit = f"key {known[0][0]}", known[0][1]
        else:
            name, limit = str(client_address(HTTPConnection(scope), self._proxies)), self._anonymous
            if limit == 0:
                return _problem(401, "this API needs a key in X-API-Key; ask the operator for one"), _FREE
        allowance = self._take(name, limit)
        if limit >= 0 and allowance.left < 0:
            said = f"more than {limit:,} requests in an hour; go on in {allowance.reset:,} seconds"
            return _problem(429, said, {"Retry-After": str(allowance.reset)}), allowance
        return None, allowance

    def _take(self, name: str, limit: int) -> Allowance:
        """One request of an hour's number."""
        now = int(self._clock())
        with self._guard:
            if self._hour != now // HOUR:
                self._hour = now // HOUR
                self._counts.clear()
            taken = self._counts.pop(name, 0) + 1
            self._counts[name] = taken
            if len(self._counts) > CLIENTS:
                self._counts.popitem(last=False)
        return Allowance(limit, limit - taken, HOUR - now % HOUR)


_FREE: Final = Allowance(-1, 0, 0)


class _CountedRoute(BaseRoute):
    def __init__(self, route: BaseRoute, keys: ApiKeys) -> None:
        self._route, self._keys = route, keys

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return self._route.matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":  # a browser asks whether it may ask
            await self._route.handle(scope, receive, send)
            return
        refused, allowance = self._keys.refusal(scope)

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(allowance.headers)
            await send(message)

        if refused is not None:
            await refused(scope, receive, told)
        else:
            await self._route.handle(scope, receive, told)


def _problem(status: int, said: str, headers: dict[str, str] | None = None) -> Response:
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": said}
    named = {"Cache-Control": "no-store", **(headers or {})}
    return JSONResponse(body, status, named, media_type="application/problem+json")
