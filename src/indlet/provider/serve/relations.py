"""From which networks a node is used: by people who search, harvesters, native systems, repository visitors.

Each route belongs to one of these four relations, or to none (style sheets, schemas, /healthz). A relation
whose networks the settings name is closed to all others, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Receive, Scope, Send

from indlet.provider.serve.access import Network, blocks, client_address, trusted_proxies
from indlet.settings import Settings

Relation = Literal["search", "harvest", "native", "repository"]


class Relations:
    def __init__(self, settings: Settings) -> None:
        self._proxies = trusted_proxies(settings)
        named = settings.networks
        self._networks: dict[Relation, tuple[Network, ...]] = {
            "search": blocks(named.search, "networks.search"),
            "harvest": blocks(named.harvest, "networks.harvest"),
            "native": blocks(named.native, "networks.native"),
            "repository": blocks(named.repository, "networks.repository"),
        }

    def only(self, relation: Relation, routes: Iterable[BaseRoute]) -> list[BaseRoute]:
        """The routes, for requests from the networks of a relation; as they are where none are named."""
        networks = self._networks[relation]
        if not networks:
            return list(routes)
        return [_RestrictedRoute(route, relation, networks, self._proxies) for route in routes]


class _RestrictedRoute(BaseRoute):
    """A route that answers 403 to requests from elsewhere, and lets no shared cache keep its answers."""

    def __init__(
        self,
        route: BaseRoute,
        relation: Relation,
        networks: tuple[Network, ...],
        proxies: tuple[Network, ...],
    ) -> None:
        self._route, self._relation = route, relation
        self._networks, self._proxies = networks, proxies

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return self._route.matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = client_address(HTTPConnection(scope), self._proxies)
        if address is not None and any(address in network for network in self._networks):
            await self._route.handle(scope, receive, _kept_private(send))
            return
        refused = PlainTextResponse(
            f"{address or 'Your address'} is outside the networks that may use this part of the node "
            f"(networks.{self._relation}). Its operator can add yours.\n",
            403,
            {"Cache-Control": "no-store"},
        )
        await refused(scope, receive, send)


def _kept_private(send: Send) -> Send:
    async def careful(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            said = headers.get("cache-control", "")
            if "private" not in said and "no-store" not in said:
                headers["Cache-Control"] = "private, no-cache"
        await send(message)

    return careful
