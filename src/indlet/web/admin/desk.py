"""Who may enter the desk, and its pages. Every act is a POST with the session's CSRF token; see acts.py."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urlencode

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from indlet import logs
from indlet.errors import IndletError
from indlet.node.jobs import Jobs
from indlet.provider.serve.http import TooMuch, posted
from indlet.provider.serve.usage import Usage
from indlet.web.admin import show, source_status
from indlet.web.admin.acts import Acts, Form
from indlet.web.admin.desk_log import DeskLog
from indlet.web.admin.desk_part import DeskPage
from indlet.web.admin.own_records import find_own
from indlet.web.admin.sign_ins import SignIns
from indlet.web.admin.source_pages import SourcePages
from indlet.web.admin.statistics import StatisticsPage
from indlet.web.auth import ADMIN, COOKIE, DEVICE, Gate, Session, address_of, over_https
from indlet.web.i18n import Strings
from indlet.web.portal import Portal
from indlet.web.reader_statistics import ReaderStatistics

_DEVICE_SECONDS: Final = 365 * 86400
_TABS: Final = ("provider", "statistics", "store", "jobs", "log")  # after those of extensions
_LOGGED: Final = 200  # acts that the log shows
Page = Callable[[Request, Strings, Session], Response]


class Desk:
    def __init__(
        self, portal: Portal, gate: Gate, usage: Usage, jobs: Jobs, readers: ReaderStatistics
    ) -> None:
        self.portal = portal
        self.settings = portal.library.settings
        self.gate, self.usage = gate, usage
        self.totals = source_status.Totals(portal.store)
        self.schedule, self.harvests = jobs.schedule, jobs.harvests
        self._sign_ins = SignIns(gate)
        self._probing = anyio.CapacityLimiter(2)  # each takes a process
        self.log = DeskLog(portal.store)
        self._statistics = StatisticsPage(portal.store, readers)
        self.acts = Acts(portal.library, jobs, self.log)
        self._more = [page for part in self.acts.parts for page in part.pages]
        self._tabs = ("overview", *(page.name for page in self._more), *_TABS)
        self.sources = SourcePages(portal, jobs, self.acts, self.totals, self._render)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/admin", self._page(self.sources.overview)),
            Route("/admin/add", self._page(self.add)),
            Route("/admin/source", self._page(self.sources.source)),
            Route("/admin/provider", self._page(self.provider)),
            Route("/admin/statistics", self._page(self.statistics)),
            Route("/admin/statistics.csv", self._page(lambda request, t, session: self._statistics.csv())),
            Route("/admin/statistics.json", self._page(lambda request, t, session: self._statistics.json())),
            Route("/admin/store", self._page(self.upkeep)),
            Route("/admin/jobs", self._page(self.jobs)),
            Route("/admin/log", self._page(self.logged)),
            Route("/admin/jobs.json", self._page(lambda request, t, session: self.acts.jobs.json())),
            *(route for page in self._more for route in self._routes_of(page)),
            Route("/admin/test", self.act, methods=["POST"]),
            Route("/admin/act", self.act, methods=["POST"]),
            Route("/admin/sign-in", self.sign_in, methods=["GET", "POST"]),
            Route("/admin/sign-out", self.sign_out, methods=["POST"]),
        ]

    def _routes_of(self, page: DeskPage) -> Iterator[BaseRoute]:
        """The addresses of an extension's page."""
        address, json, feed = f"/admin/{page.name}", page.json, page.feed

        def shown(request: Request, t: Strings, session: Session) -> Response:
            return self._render(
                request, session, page.name, page.template, **page.context(request.query_params)
            )

        yield Route(address, self._page(shown))
        if json is not None:
            yield Route(f"{address}.json", self._page(lambda request, t, session: json()))
        if feed is not None:

            def fed(request: Request) -> Response:
                t = self.portal.pages.strings(request)
                return self._shut(request, t) or feed(request)

            yield Route(f"{address}.atom", fed)

    # The door

    def _page(self, page: Page) -> Callable[[Request], Response]:
        def guarded(request: Request) -> Response:
            t = self.portal.pages.strings(request)
            if (shut := self._shut(request, t)) is not None:
                return shut
            session = self.gate.session(request)
            if session is None:
                place = request.url.path + (f"?{request.url.query}" if request.url.query else "")
                return RedirectResponse(f"/admin/sign-in?{urlencode({'next': place})}", 303)
            response = page(request, t, session)
            response.headers["Cache-Control"] = "no-store"
            return response

        return guarded

    def _shut(self, request: Request, t: Strings) -> Response | None:
        """Why the desk stays shut to this client; None if it does not."""
        if not self.gate.admits(request):
            # To strangers the desk does not exist.
            return self.portal.pages.message(request, 404, t("error.not_found"), t("desk.elsewhere"))
        if not self.gate.opens():
            return self.portal.pages.message(
                request, 403, t("desk.no_password"), t("desk.no_password_how"), t("desk.no_password_env"),
                tone="warn", command="indlet init --ask-password",
            )  # fmt: skip
        if not self.gate.asks() and self.gate.session(request) is None:
            return self.portal.pages.message(
                request, 403, t("desk.not_a_user"), t("desk.not_a_user_how"), tone="warn"
            )
        return None

    async def sign_in(self, request: Request) -> Response:
        t = self.portal.pages.strings(request)
        if (shut := self._shut(request, t)) is not None:
            return shut
        place = _within_desk(request.query_params.get("next", ""))
        problem, status = "", 200
        if request.method == "POST":
            if not _same_origin(request):
                return self._foreign(request, t)
            try:
                form = await _form(request)
            except TooMuch as e:
                return _refused(e)
            place = _within_desk(form.get("next", ""))
            guesser = self.gate.guesser(request, address_of(request, self.settings))
            if not self._sign_ins.has_room(guesser):
                problem, status = t("desk.busy"), 429
            elif await self._sign_ins.password_fits(guesser, form.get("password", ""), user := _user(form)):
                return await anyio.to_thread.run_sync(self._signed_in, request, place, user)
            else:
                logs.event(
                    "desk", logging.WARNING, act="sign-in", user=user, outcome="wrong password",
                    client=address_of(request, self.settings),
                )  # fmt: skip
                problem, status = t("desk.wrong_named" if self.settings.user else "desk.wrong"), 403
        headers = {"Cache-Control": "no-store"} | ({"Retry-After": "5"} if status == 429 else {})
        return self.portal.pages.render(
            request,
            "admin/sign_in.html",
            status,
            headers,
            here="desk",
            problem=problem,
            place=place,
            named=bool(self.settings.user),
            user=request.query_params.get("user", "")[:100],
        )

    def _signed_in(self, request: Request, place: str, user: str) -> Response:
        cookie, session = self.gate.open(user)
        self.log.add("sign-in", session, address_of(request, self.settings))
        response = RedirectResponse(place, 303, {"Cache-Control": "no-store"})
        secure, hours = over_https(request, self.settings), self.settings.admin.session_hours
        for name, value, seconds in (
            (COOKIE, cookie, int(hours * 3600)),
            (DEVICE, self.gate.new_device(), _DEVICE_SECONDS),
        ):
            response.set_cookie(
                name, value, max_age=seconds, path="/admin", httponly=True, samesite="strict", secure=secure
            )
        return response

    async def sign_out(self, request: Request) -> Response:
        session = self.gate.session(request)
        if session is not None and not session.by_proxy:
            try:
                form = await _form(request)
            except TooMuch as e:
                return _refused(e)
            if self.gate.csrf_matches(session, form.get("csrf", "")):
                await anyio.to_thread.run_sync(self.gate.end, session)
                await anyio.to_thread.run_sync(
                    self.log.add, "sign-out", session, address_of(request, self.settings)
                )
        response = RedirectResponse("/", 303)
        response.delete_cookie(COOKIE, path="/admin")
        return response

    def _foreign(self, request: Request, t: Strings) -> Response:
        return self.portal.pages.message(
            request, 403, t("desk.foreign"), t("desk.again"), tone="bad", action=(t("menu.desk"), "/admin")
        )

    # Pages

    def _render(
        self, request: Request, session: Session, tab: str, template: str, status: int = 200, **context: Any
    ) -> Response:
        return self.portal.pages.render(
            request, template, status, here="desk", tab=tab, tabs=self._tabs, csrf=session.csrf,
            session=session, done=request.query_params.get("done", "")[:500], **context,
        )  # fmt: skip

    def add(self, request: Request, t: Strings, session: Session) -> Response:
        if not session.may(self.acts.roles()["add"]):
            return self._not_allowed(request, t, self.acts.roles()["add"])
        return self.sources.add(request, session)

    def provider(self, request: Request, t: Strings, session: Session) -> Response:
        words = request.query_params.get("q", "")
        found, problem = find_own(self.portal.library, words)
        more = {name: one for part in self.acts.parts for name, one in part.about_own_records().items()}
        return self._render(
            request, session, "provider", "admin/provider.html", words=words, found=found, problem=problem,
            hierarchies=show.hierarchies(self.portal.store, self.settings, self.totals.get()),
            usage=self.usage.counts()[:100], **more,
        )  # fmt: skip

    def upkeep(self, request: Request, t: Strings, session: Session) -> Response:
        return self._render(
            request, session, "store", "admin/store.html", state=show.index_state(self.portal.library),
            upkeep=self.acts.upkeep.said(), busy=self.acts.upkeep.busy(),
        )  # fmt: skip

    def statistics(self, request: Request, t: Strings, session: Session) -> Response:
        context = self._statistics.context()
        return self._render(request, session, "statistics", "admin/statistics.html", **context)

    def jobs(self, request: Request, t: Strings, session: Session) -> Response:
        return self._render(request, session, "jobs", "admin/jobs.html", **self.acts.jobs.context())

    def logged(self, request: Request, t: Strings, session: Session) -> Response:
        return self._render(request, session, "log", "admin/log.html", entries=self.log.entries(_LOGGED))

    # Acts

    async def act(self, request: Request) -> Response:
        """An act, or a test of a source: the session is checked before the body is read."""
        t = self.portal.pages.strings(request)
        if (shut := self._shut(request, t)) is not None:
            return shut
        session = self.gate.session(request)
        if session is None:
            return RedirectResponse("/admin/sign-in", 303)
        if not _same_origin(request):
            return self._foreign(request, t)
        try:
            form = await _form(request)
        except TooMuch as e:
            return _refused(e)
        if not self.gate.csrf_matches(session, form.get("csrf", "")):
            return self._foreign(request, t)
        if request.url.path == "/admin/test":
            if not session.may(self.acts.roles()["add"]):
                return self._not_allowed(request, t, self.acts.roles()["add"])
            response = await anyio.to_thread.run_sync(
                self.sources.test, request, session, form, limiter=self._probing
            )
        else:
            # Adding may ask the source for its name, in a process.
            limiter = self._probing if form.get("action") == "add" else None
            response = await anyio.to_thread.run_sync(self._act, request, session, t, form, limiter=limiter)
        response.headers["Cache-Control"] = "no-store"
        return response

    def _act(self, request: Request, session: Session, t: Strings, form: Form) -> Response:
        act = self.acts.find(form.get("action", ""))
        if act is None:
            return self.portal.pages.message(request, 400, t("error.bad"), action=(t("menu.desk"), "/admin"))
        if not session.may(act.role):
            return self._not_allowed(request, t, act.role)
        try:
            back, count = self.acts.do(act, form, session, address_of(request, self.settings))
        except IndletError as e:
            if act.name == "add":
                return self.sources.test(request, session, form, str(e))
            if act.name == "edit" and (
                answer := self.sources.found_source(request, t, session, 400, str(e), form)
            ):
                return answer
            return self.portal.pages.message(
                request, 409, t("desk.not_done"), str(e), tone="warn", action=(t("menu.desk"), "/admin")
            )
        joint = "&" if "?" in back else "?"
        numbers = {} if count is None else {"n": count}
        return RedirectResponse(
            f"{back}{joint}{urlencode({'done': t(f'desk.done.{act.name}', **numbers)})}", 303
        )

    def _not_allowed(self, request: Request, t: Strings, role: str) -> Response:
        return self.portal.pages.message(
            request, 403, t("desk.not_allowed"), t("desk.needs_role", role=t(f"role.{role}")), tone="warn",
            action=(t("menu.desk"), "/admin"),
        )  # fmt: skip


async def _form(request: Request) -> Form:
    """The fields of a posted form; TooMuch if it is too large or does not come in time."""
    return dict(await posted(request))


def _user(form: Form) -> str:
    return form.get("user", "").strip()[:100] or ADMIN


def _refused(error: TooMuch) -> Response:
    return PlainTextResponse(f"{error}\n", error.status, {"Cache-Control": "no-store"})


def _within_desk(place: str) -> str:
    return place if place == "/admin" or place.startswith(("/admin/", "/admin?")) else "/admin"


def _same_origin(request: Request) -> bool:
    """Whether a post comes from one of our own pages, as far as the browser tells."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")
