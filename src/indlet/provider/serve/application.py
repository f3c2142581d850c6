"""The routes of a provider, and a server for them."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indlet.errors import HierarchyError, StoreError
from indlet.extension import extensions
from indlet.formats.registry import configured_formats
from indlet.oai.names import FT_PATH, OAI_PATH, SCHEMA_PATH, extended_path
from indlet.provider.hierarchy import named
from indlet.provider.identity import identified
from indlet.provider.serve.access import AccessGate, Permit
from indlet.provider.serve.content import Content
from indlet.provider.serve.feeds import ProviderFeeds
from indlet.provider.serve.hosts import KnownHosts
from indlet.provider.serve.http import (
    RequestSlots,
    TooMuch,
    Validators,
    arguments,
    coded,
    coded_page,
    health_slots,
    tag,
    wants_page,
)
from indlet.provider.serve.pages import SCHEMAS, RepositoryPages, as_page, packaged, table_schema
from indlet.provider.serve.patience import Patient
from indlet.provider.serve.record_filter import record_filter
from indlet.provider.serve.relations import Relations
from indlet.provider.serve.repository import Repository
from indlet.provider.serve.request_log import RequestLog
from indlet.provider.serve.responses import Locked, LockedApplication
from indlet.provider.serve.usage import Usage, usage_of
from indlet.settings import Settings, VirtualRepository
from indlet.store import Store
from indlet.text import policy_of

_COOKIE_PATH: Final = re.compile(rb"(; *path=)(/[^;]*)", re.IGNORECASE)
Endpoint = Callable[[Request], Awaitable[Response]]
_log = logging.getLogger("indlet.serve")
_PAGE_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_PAGE_HEADERS: Final = {"Referrer-Policy": "same-origin"}


def application(store: Store, settings: Settings, *, clock: Callable[[], float] | None = None) -> Starlette:
    """A provider alone: all of its routes, with the landing page at /."""
    usage = usage_of(store)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            usage.save()

    app = LockedApplication(
        routes=routes(store, settings, clock=clock, usage=usage, feeds=True), lifespan=lifespan
    )
    app.router.redirect_slashes = False  # it would put the Host header into the answer
    return app


def routes(
    store: Store,
    settings: Settings,
    *,
    landing: str = "/",
    clock: Callable[[], float] | None = None,
    usage: Usage | None = None,
    feeds: bool = False,
) -> list[BaseRoute]:
    """The provider's routes; `landing` is where the landing page stands, empty for nowhere.

    `feeds`: those of a node without a portal, which has its own. `clock`: by which answers are dated; the
    store's if none is named, so that no record is dated before an answer that does not show it.
    """
    clock = clock or store.now
    # Rules of access are found by name: a hierarchy must have here the one that it was crawled under.
    settings = identified(store, replace(settings, hierarchy=named(settings.hierarchy)))
    web, tables = ProviderWeb(store, settings, clock, usage or Usage()), configured_formats(settings).values()
    open_to_all: list[BaseRoute] = [
        Route("/oai.xsl", web.constant(packaged("static/oai.xsl"), "text/xsl")),
        *(
            Route(f"{SCHEMA_PATH}/{name}", web.constant(packaged(f"schema/{name}"), "text/xml"))
            for name in SCHEMAS
        ),
        *(Route(f"{SCHEMA_PATH}/{f.schema}", web.constant(table_schema(f), "text/xml")) for f in tables),
        Route("/robots.txt", web.page(lambda permit: web.pages.robots(), "text/plain")),
        Route("/healthz", web.page(web.pages.health, "application/json", health_slots(settings.serve))),
    ]
    harvested: list[BaseRoute] = [
        Route(OAI_PATH, web.oai(extended=False), methods=["GET", "POST"]),
        Route(FT_PATH, web.oai(extended=True), methods=["GET", "POST"]),
        *(Route(path + "/", web.moved(path)) for path in (OAI_PATH, FT_PATH)),
        *(route for virtual in settings.repository for route in web.virtual(virtual)),
    ]
    visited: list[BaseRoute] = [
        Route("/sitemap.xml", web.page(web.pages.sitemap, "text/xml")),
        Route("/sitemap/{part}.xml", web.part(web.pages.sitemap_part)),
        Route("/content/{path:anything}", Content(store, settings, web.gate, web.desk).respond),
    ]
    for extension in extensions():
        harvested += extension.routes(web, landing)
    if feeds:
        visited.append(Route("/feed.{kind:str}", web.feed(ProviderFeeds(store, settings, web.filter))))
    if landing:
        visited.append(Route(landing, web.page(web.pages.landing, "text/html")))
    relations = Relations(settings)
    # Looked through in this order: harvesters ask most.
    return [
        *relations.only("harvest", harvested), *open_to_all, *relations.only("repository", visited)
    ]  # fmt: skip


def server(app: Starlette, settings: Settings) -> uvicorn.Server:
    """A server for the application, where the settings put it.

    Forwarded addresses are ours to judge (`serve.trusted_proxies`), so uvicorn must not believe them first.
    """
    whole = below(app, settings.mount())
    if settings.on_loopback():
        whole = KnownHosts(whole, settings)
    whole = RequestLog(Locked(whole), settings)
    return uvicorn.Server(
        uvicorn.Config(
            whole,
            http=Patient,
            host=settings.node.host,
            port=settings.node.port,
            proxy_headers=False,
            server_header=False,
            access_log=False,
            log_config=None,  # what uvicorn has to say goes where all else goes
            log_level="warning",
            timeout_graceful_shutdown=10,
            # Harvesters pause between requests; one that comes back should find its connection open.
            timeout_keep_alive=60,
            # Of connections that wait, read slowly or hang: more than these are turned away.
            limit_concurrency=1000,
        )
    )


def below(app: ASGIApp, mount: str) -> ASGIApp:
    """The application mounted below the path of its public root, such as "/search".

    It knows nothing of that path: requests lose it here, and redirects and cookies get it here. Proxies that
    take the path off themselves are served as well.
    """
    if not mount:
        return app
    prefix, raw = unquote(mount), mount.encode()

    def outward(send: Send) -> Send:
        async def mounted(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [(n, _mounted_field(n, v, raw)) for n, v in message["headers"]]
            await send(message)

        return mounted

    async def shifted(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        if f"{scope['path']}/".startswith(f"{prefix}/"):
            rest = (scope.get("raw_path") or b"").removeprefix(raw)
            scope = {**scope, "path": scope["path"].removeprefix(prefix) or "/", "raw_path": rest or b"/"}
        await app(scope, receive, outward(send))

    return shifted


def _mounted_field(name: bytes, value: bytes, mount: bytes) -> bytes:
    """A header field of a response with the mount's path in front of a place within the node."""
    if name == b"location" and value.startswith(b"/"):
        return mount + value
    if name == b"set-cookie":
        return _COOKIE_PATH.sub(
            lambda found: found[1] + mount + (found[2] if found[2] != b"/" else b""), value
        )
    return value


class _Anything(StringConvertor):
    """The rest of a path, line breaks too: file names may hold them."""

    regex = "(?s:.*)"


register_url_convertor("anything", _Anything())


class _LockedRoute(Route):
    """An endpoint of a virtual repository: whatever the method, it is not there for who may not have it."""

    def __init__(self, path: str, endpoint: Endpoint, opens: Callable[[HTTPConnection], bool]) -> None:
        super().__init__(path, endpoint, methods=["GET", "POST"])
        self._opens = opens

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._opens(HTTPConnection(scope)):
            raise HTTPException(404)  # answered like every address that is not there
        await super().handle(scope, receive, send)


class ProviderWeb:
    """How a provider answers: what its routes, and those of extensions, are made of."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float], usage: Usage) -> None:
        self.store, self.settings, self.clock = store, settings, clock
        self._usage = usage
        self.filter = record_filter(settings, clock)
        policy = policy_of(settings.analysis)
        self.repository = Repository(store, settings, clock, policy, filtering=self.filter)
        self.pages = RepositoryPages(store, settings, self.filter)
        self.gate = AccessGate(settings, self.filter)
        self.desk = RequestSlots(settings.serve)
        self._private = {"Cache-Control": "private, no-cache" if self.gate.restricted else "no-cache"}
        self._vary = "Accept-Encoding, Authorization" if self.gate.restricted else "Accept-Encoding"

    def virtual(self, virtual: VirtualRepository) -> list[BaseRoute]:
        """The two endpoints of a virtual repository. Who may not have it does not find it."""
        settings = self.settings
        policy = policy_of(settings.analysis)
        repository = Repository(self.store, settings, self.clock, policy, virtual, self.filter)
        opens = self.gate.lock(virtual.access, f"repository {virtual.path}")
        paths = {False: virtual.path, True: extended_path(virtual.path)}
        return [_LockedRoute(path, self.oai(extended, repository), opens) for extended, path in paths.items()]

    def oai(self, extended: bool, repository: Repository | None = None) -> Endpoint:
        asked = repository or self.repository

        async def answer(request: Request) -> Response:
            try:
                pairs = await arguments(request)
            except TooMuch as e:
                return PlainTextResponse(f"{e}\n", e.status)
            permit = self.gate.permit(request)
            return await self._served(request, lambda: self._answer(request, pairs, permit, extended, asked))

        return answer

    def _answer(
        self,
        request: Request,
        pairs: list[tuple[str, str]],
        permit: Permit,
        extended: bool,
        repository: Repository,
    ) -> Response:
        answer = repository.answer(pairs, permit, extended)
        body, offered = answer.body, self.settings.serve.compression
        validators = Validators(vary=f"{self._vary}, Accept")
        if answer.steady:
            # The responseDate alone does not make an answer another one.
            etag = tag(body.data[body.data.index(b"</responseDate>") :])
            validators = replace(validators, etag=etag, modified=answer.modified)
        if wants_page(request):
            if validators.etag:
                validators = replace(validators, etag=tag(validators.etag, "page"))
            headers = self._private | _PAGE_HEADERS
            response = coded_page(request, as_page(body), _PAGE_POLICY, offered, validators, headers)
        else:
            response = coded(request, body, "text/xml", offered, validators, self._private)
        agent = request.headers.get("user-agent", "")
        self._usage.count(self.clock(), extended, answer, len(response.body), agent)
        return response

    def page(
        self, build: Callable[[Permit], bytes], kind: str, slots: RequestSlots | None = None
    ) -> Endpoint:
        async def answer(request: Request) -> Response:
            permit = self.gate.permit(request)
            return await self._served(request, lambda: self._page(request, build(permit), kind), slots)

        return answer

    def feed(self, feeds: ProviderFeeds) -> Endpoint:
        async def answer(request: Request) -> Response:
            permit = self.gate.permit(request)
            return await self._served(
                request, lambda: feeds.answer(request, permit, self._private, self._vary)
            )

        return answer

    def part(self, build: Callable[[Permit, str], bytes | None]) -> Endpoint:
        """A part of a list, by the name that the list's index gives it."""

        async def answer(request: Request) -> Response:
            permit, name = self.gate.permit(request), request.path_params["part"]

            def built() -> Response:
                body = build(permit, name)
                if body is None:
                    raise HTTPException(404)
                return self._page(request, body, "text/xml")

            return await self._served(request, built)

        return answer

    def constant(self, body: bytes, kind: str) -> Endpoint:
        async def answer(request: Request) -> Response:
            offered = self.settings.serve.compression
            # Schemas are read by validators in browsers too.
            headers = {"Cache-Control": "max-age=3600", "Access-Control-Allow-Origin": "*"}
            return coded(request, body, kind, offered, Validators(tag(body)), headers)

        return answer

    def moved(self, path: str) -> Endpoint:
        """A base URL with a slash too many leads to the right one, arguments and all."""

        async def answer(request: Request) -> Response:
            query = request.scope["query_string"].decode("ascii", "replace")
            return RedirectResponse(self.settings.base_url() + path + (f"?{query}" if query else ""), 308)

        return answer

    def _page(self, request: Request, body: bytes, kind: str) -> Response:
        offered, validators = self.settings.serve.compression, Validators(tag(body), vary=self._vary)
        if kind == "text/html":
            return coded_page(request, body, _PAGE_POLICY, offered, validators, self._private | _PAGE_HEADERS)
        return coded(request, body, kind, offered, validators, self._private)

    async def _served(
        self, request: Request, build: Callable[[], Response], slots: RequestSlots | None = None
    ) -> Response:
        try:
            return await (slots or self.desk).serve(build, "" if slots else self.gate.client(request))
        except (HierarchyError, StoreError) as e:
            _log.error("%s", e)
            retry = {"Retry-After": str(self.settings.serve.retry_after_seconds)}
            return PlainTextResponse("The store cannot be read now; please come back later.\n", 503, retry)
