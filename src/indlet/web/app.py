"""The whole node as one web application: provider, JSON API, portal, operations desk, feeds."""

from __future__ import annotations

import contextlib
import gc
import logging
import mimetypes
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import cache, partial
from importlib.resources import files
from typing import Final
from urllib.parse import quote

from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from indlet import process
from indlet.errors import IndletError
from indlet.node.jobs import Jobs
from indlet.oai.names import OAI_PATH
from indlet.provider import serve
from indlet.provider.serve.access import access_rules
from indlet.provider.serve.http import health_slots
from indlet.provider.serve.relations import Relations
from indlet.provider.serve.responses import LockedApplication
from indlet.provider.serve.usage import Usage, usage_of
from indlet.provider.source import crawl_targets
from indlet.service.api import routes as api
from indlet.service.search.library import Library
from indlet.settings import HIERARCHY, Settings
from indlet.store import Store
from indlet.web.admin import Desk
from indlet.web.advanced import Advanced
from indlet.web.api_keys import ApiKeys
from indlet.web.auth import Gate, ended_sessions, keep_ended_sessions
from indlet.web.browse import Browsing
from indlet.web.compare import Comparing
from indlet.web.embed import Embedding
from indlet.web.explain import Explaining
from indlet.web.feed_routes import Current
from indlet.web.follow import Following, send_digests
from indlet.web.metrics import Meter, Metrics
from indlet.web.page import Pages, packed, static_version
from indlet.web.portal import Portal
from indlet.web.profile import Profiles
from indlet.web.reader_statistics import ReaderCounts, ReaderStatistics
from indlet.web.record import Records
from indlet.web.result_export import KINDS, ResultExport
from indlet.web.sitemap import PortalSitemap

_log = logging.getLogger("indlet.web")
# Requests that are answered at once where the index is here. They share one interpreter, so more are not done
# sooner; and each thread more has a connection to the store, with its files and memory.
_THREADS: Final = 12
SAVED_SEARCHES: Final = "saved searches"
_PATIENCE: Final = 0.02  # seconds that a request waits for a new snapshot, and is answered from the old then


def application(
    store: Store,
    settings: Settings,
    *,
    library: Library | None = None,
    follow: bool = True,
    jobs: Jobs | None = None,
) -> Starlette:
    """Everything that a node shows. Jobs that are given run already; otherwise, with `follow`, its own do."""
    restricted = {(HIERARCHY, one.guarded): True for one in crawl_targets(settings) if one.guarded}
    restricted |= {key: access.is_restricted for key, access in access_rules(settings).items()}
    library = library or Library(
        store, settings, follow=False, restricted=restricted, patience=_PATIENCE if follow else None
    )
    pages = Pages.of(settings)
    portal = Portal(library, pages, settings.base_url())
    usage, meter = usage_of(store), Meter()
    readers = ReaderStatistics(store, settings.statistics)
    own = jobs is None
    jobs = jobs or Jobs(store, settings)
    if settings.portal.alerts:
        jobs.schedule.add(SAVED_SEARCHES, "1h", partial(send_digests, portal))
    desk = Desk(portal, _gate(store, settings), usage, jobs, readers)
    metrics = Metrics(library, meter, portal.visible, desk.totals.get, settings.admin.metrics_token)
    provides = settings.provides()
    sitemap = PortalSitemap(portal)
    searched: list[BaseRoute] = [
        *_portal_routes(portal, ReaderCounts(portal, readers)),
        Route("/portal-sitemap.xml", sitemap.index),
        Route("/portal-sitemap/{number}.xml", sitemap.part),
        *ApiKeys(settings).only(api.routes(library)),
    ]
    if not provides:
        searched.append(Route("/sitemap.xml", sitemap.index))
    relations = Relations(settings)
    routes: list[BaseRoute] = [
        Route("/logo", portal.logo),
        Route("/favicon.ico", _favicon),
        Route("/colours.css", portal.colours),
        Route("/robots.txt", _robots(settings)),
        Route("/static/{name}", _static),
        *relations.only("search", searched),
        *relations.only("native", [Route("/metrics", metrics.text), *desk.routes()]),
    ]
    if provides:
        routes += serve.routes(store, settings, landing="/about", usage=usage)
    else:
        routes.append(Route("/healthz", _healthy(store, settings)))

    not_found, broken = partial(_not_found, pages), partial(_broken, pages)
    app = LockedApplication(
        routes=routes,
        lifespan=lambda app: _lifespan(library, (usage, readers), jobs if own else None, follow),
        exception_handlers={HTTPException: not_found, IndletError: broken, Exception: broken},
        middleware=[Middleware(_metered, meter=meter)],
    )
    app.router.redirect_slashes = False
    app.state.library, app.state.desk = library, desk
    return app


def _gate(store: Store, settings: Settings) -> Gate:
    ended = partial(ended_sessions, store)
    keep, others = partial(keep_ended_sessions, store), ended if store.shared else None
    return Gate(store.secret("sessions"), settings, ended=ended(), keep=keep, others=others)


@contextlib.asynccontextmanager
async def _lifespan(
    library: Library, counts: Iterable[Usage | ReaderStatistics], own: Jobs | None, follow: bool
) -> AsyncIterator[None]:
    process.switch_quickly()
    if library.settings.index.is_embedded:
        current_default_thread_limiter().total_tokens = _THREADS
    if follow:
        threading.Thread(target=_warm_up, name="warming", daemon=True).start()
        if own:
            own.begin()
    try:
        yield
    finally:
        for counted in counts:
            counted.save()
        if own:
            own.schedule.close()


def _portal_routes(portal: Portal, counts: ReaderCounts) -> list[BaseRoute]:
    """What readers see: search, records, lists, exports, feeds."""
    browsing, results, records = Browsing(portal), ResultExport(portal), Records(portal)
    routes: list[BaseRoute] = [
        Route("/", counts.searches(portal.search)),
        Route("/clicks", counts.click, methods=["POST"]),
        Route("/search", _to_search),
        Route("/values/{name}", portal.values),
        Route("/advanced", Advanced(portal).page),
        Route("/browse", browsing.overview),
        Route("/browse/{kind}", browsing.page),
        Route("/about/{kind}", Profiles(portal).page),
        Route("/embed", Embedding(portal).page),
        *(Following(portal).routes() if portal.pages.settings.portal.alerts else ()),
        Route("/marked", portal.marked),
        Route("/marked.{kind:str}", results.marked, methods=["POST"]),
        Route("/information", portal.information),
        Route("/record", counts.investigations(records.page)),
        Route("/record/{identifier:path}", counts.investigations(records.page)),
        Route("/export/{name}", records.export),
        Route("/unapi", records.unapi),
        Route("/suggest", portal.suggest),
        Route("/answers", portal.answers),
        Route("/explain", Explaining(portal).page),
        Route("/help", portal.help),
        Route("/preferences", portal.preferences),
        Route("/opensearch.xml", portal.description),
        Route("/results.{kind:str}", _only(results.file, "kind", tuple(KINDS))),
        Route("/feed.{kind:str}", Current(portal).feed),
        Route("/api/", portal.api),
        Route("/api", portal.api),
    ]
    if portal.pages.models:
        routes.append(Route("/compare", Comparing(portal).compare))
    return routes


def _not_found(pages: Pages, request: Request, error: Exception) -> Response:
    # Not by the router, which would put the Host header into the answer.
    path = request.url.path
    if path.endswith("/") and path.strip("/") and request.method in ("GET", "HEAD"):
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/{quote(path.strip('/'))}{query}", 307)
    t = pages.strings(request)
    status = error.status_code if isinstance(error, HTTPException) else 404
    if status != 404:
        return pages.message(request, status, t("error.bad"), str(getattr(error, "detail", "")), tone="warn")
    title, text = t("error.not_found"), t("error.not_found_text")
    return pages.message(request, 404, title, text, search=True)


def _broken(pages: Pages, request: Request, error: Exception) -> Response:
    t = pages.strings(request)
    if not isinstance(error, IndletError):
        return pages.message(request, 500, t("error.internal"), t("error.internal_text"), tone="bad")
    _log.error("%s: %s", request.url.path, error)
    title, text, later = t("error.busy"), t("error.internal_text"), {"Retry-After": "5"}
    return pages.message(request, 503, title, text, tone="bad", headers=later)


def _warm_up() -> None:
    """Does at the start what a reader would have to wait for later."""
    # Looking for garbage among what modules hold for good took 100 ms each time.
    gc.collect()
    gc.freeze()


class _metered:
    def __init__(self, app: ASGIApp, meter: Meter) -> None:
        self._app = meter.around(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


@cache
def _file(name: str) -> bytes | None:
    folder = files("indlet.web").joinpath("static")
    known = {entry.name for entry in folder.iterdir() if entry.is_file()}
    return folder.joinpath(name).read_bytes() if name in known else None


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    body = _file(name)
    if body is None:
        raise HTTPException(404)
    kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "text/plain"
    fixed = request.url.query == static_version()
    lasting = "public, max-age=31536000, immutable" if fixed else "public, max-age=300"
    content, coding = packed(request, body) if kind.startswith(("text/", "image/svg")) else (body, {})
    headers = {"Cache-Control": lasting, "Vary": "Accept-Encoding", **coding}
    return Response(content, media_type=kind, headers=headers)


async def _favicon(request: Request) -> Response:
    """For those who ask without reading the page, which names its own."""
    headers = {"Cache-Control": "public, max-age=86400"}
    return Response(_file("mark.png") or b"", media_type="image/png", headers=headers)


def _only(
    endpoint: Callable[[Request], Response], name: str, known: tuple[str, ...]
) -> Callable[[Request], Response]:
    def checked(request: Request) -> Response:
        if request.path_params[name] not in known:
            raise HTTPException(404)
        return endpoint(request)

    return checked


def _to_search(request: Request) -> Response:
    return RedirectResponse(f"/?{request.url.query}" if request.url.query else "/", 301)


def _healthy(store: Store, settings: Settings) -> Callable[[Request], Awaitable[Response]]:
    slots = health_slots(settings.serve)

    def read() -> Response:
        with store.read() as view:
            view.last_seq()
        return PlainTextResponse("ok\n")

    async def answer(request: Request) -> Response:
        return await slots.serve(read)

    return answer


def _robots(settings: Settings) -> Callable[[Request], Response]:
    root, mount = settings.base_url(), settings.mount()
    closed = "".join(
        f"Disallow: {mount}/{path}\n" for path in ("admin", "export", "compare", "explain", "marked")
    )
    own = f"Sitemap: {root}/sitemap.xml\nOAIPMHbaseURL: {root}{OAI_PATH}\n" if settings.provides() else ""

    def answer(request: Request) -> Response:
        return PlainTextResponse(f"User-agent: *\n{closed}\nSitemap: {root}/portal-sitemap.xml\n{own}")

    return answer
