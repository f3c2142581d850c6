"""Searches that people follow by e-mail: the form, the confirmation, the end, and the digests."""

from __future__ import annotations

import logging
import smtplib
import time
from email.message import EmailMessage
from typing import Final
from urllib.parse import parse_qs, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from indlet.errors import RemoteError
from indlet.net.mail import send_mail, sender
from indlet.service.search.saved_searches import PERIODS, SavedSearch, SavedSearches, SearchDigest
from indlet.web.citation import record_path
from indlet.web.i18n import Strings, strings
from indlet.web.math_text import readable
from indlet.web.portal import Portal
from indlet.web.search_url import State

_log = logging.getLogger("indlet.web")
LISTED: Final = 20  # records of a digest
_BODY: Final = 10_000  # bytes of a form


class Following:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal
        self._searches = SavedSearches(portal.store)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/follow", self.form, methods=["GET"]),
            Route("/follow", self.ask, methods=["POST"]),
            Route("/follow/confirm", self.show, methods=["GET"], name="confirm"),
            Route("/follow/confirm", self.confirm, methods=["POST"]),
            Route("/follow/stop", self.show, methods=["GET"], name="stop"),
            Route("/follow/stop", self.stop, methods=["POST"]),
        ]

    def form(self, request: Request) -> Response:
        state = self.portal.state(request)
        return self._render(request, state, "form")

    async def ask(self, request: Request) -> Response:
        """Sends a mail that asks for confirmation. The answer does not say whether one was sent: nobody
        learns which addresses are known.
        """
        t = self.portal.pages.strings(request)
        given = await _form(request)
        if given is None or not _own(request):
            return self.portal.pages.message(request, 400, t("error.bad"), tone="warn")
        state = self.portal.state(request)
        wanted = SavedSearch(
            id="", email=given.get("email", "").strip()[:254], query=state.q, filters=state.chosen(),
            page=state.link(), every=given.get("every", ""), language=t.code,
        )  # fmt: skip
        await run_in_threadpool(self._ask, wanted)
        return self._render(request, state, "asked", email=wanted.email)

    def _ask(self, wanted: SavedSearch) -> None:
        added = self._searches.add(wanted, time.time())
        if added is None:
            return
        t, link = strings(added.language), self._link("confirm", added)
        message = self._message(added, t("follow.confirm_subject", name=self.portal.pages.name))
        # Not the query, which somebody else may have written.
        message.set_content(t("follow.confirm_mail", name=self.portal.pages.name, link=link))
        try:
            send_mail(self.portal.library.settings.notify, message)
        except (OSError, smtplib.SMTPException) as e:
            _log.error("saved searches: the mail server takes no message: %s", e or type(e).__name__)

    def show(self, request: Request) -> Response:
        """A link in a mail opens a page with a button: what only looks at links changes nothing."""
        token = request.query_params.get("token", "")[:200]
        found = self._searches.find(token)
        if found is None:
            return self._gone(request)
        kind = "stop" if request.url.path.endswith("stop") else "confirm"
        return self._render(request, _state(found), kind, token=token, email=found.email, every=found.every)

    def confirm(self, request: Request) -> Response:
        found = self._searches.confirm(request.query_params.get("token", "")[:200], time.time())
        return self._render(request, _state(found), "confirmed") if found else self._gone(request)

    def stop(self, request: Request) -> Response:
        """Also what a mail program does with one click (RFC 8058)."""
        found = self._searches.stop(request.query_params.get("token", "")[:200])
        return self._render(request, _state(found), "stopped") if found else self._gone(request)

    def digest(self, digest: SearchDigest, names: dict[int, str]) -> EmailMessage:
        search, t = digest.search, strings(digest.search.language)
        about = search.query or t("search.browse")
        message = self._message(search, t("follow.subject", n=digest.total, query=about[:100]))
        lines = []
        for stored in digest.records:
            record, source = stored.record, names.get(stored.origin, "")
            title = readable(next(iter(record.metadata.get("title", ())), "")) or t("record.untitled")
            by = "; ".join(record.metadata.get("creator", ())[:3])
            page = self.portal.root + record_path(stored.identifier, source)
            lines.append(f"{_line(title)}\n{_line(f'{by}  ({source})')}\n{page}\n")
        more = digest.total - len(digest.records)
        if more > 0:
            lines.append(t("follow.more", n=more))
        end = t("follow.end", page=self.portal.root + search.page, stop=self._link("stop", search))
        message.set_content("\n".join([*lines, "-- ", end]))
        message["List-Unsubscribe"] = f"<{self._link('stop', search)}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        return message

    def _message(self, search: SavedSearch, subject: str) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = _line(subject)
        message["From"] = sender(self.portal.library.settings.notify)
        message["To"] = search.email
        message["Auto-Submitted"] = "auto-generated"
        return message

    def _link(self, what: str, search: SavedSearch) -> str:
        return f"{self.portal.root}/follow/{what}?token={self._searches.token(search)}"

    def _render(self, request: Request, state: State, step: str, **more: str) -> Response:
        return self.portal.pages.render(
            request, "follow.html", here="search", state=state, step=step, periods=tuple(PERIODS),
            set_names=self.portal.set_names(), given=more,
        )  # fmt: skip

    def _gone(self, request: Request) -> Response:
        t: Strings = self.portal.pages.strings(request)
        return self.portal.pages.message(request, 404, t("follow.gone"), t("follow.gone_text"), search=True)


def send_digests(portal: Portal) -> None:
    """Sends what saved searches have found; RemoteError if the mail server takes none of it."""
    following, searches = Following(portal), SavedSearches(portal.store)
    with portal.store.read() as view:
        names = {origin.id: origin.name for origin in view.origins()}
    problems = []
    for digest in searches.due(portal.library, time.time(), LISTED):
        try:
            send_mail(portal.library.settings.notify, following.digest(digest, names))
        except (OSError, smtplib.SMTPException) as e:
            problems.append(str(e) or type(e).__name__)
    if problems:
        raise RemoteError(
            f"saved searches: {len(problems)} mails were not taken ({problems[0]}); see [notify] smtp"
        )


def _state(search: SavedSearch) -> State:
    return State.of(QueryParams(urlsplit(search.page).query), (), "bm25")


async def _form(request: Request) -> dict[str, str] | None:
    """The fields of a form; None if it is too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _BODY:
            return None
    given = parse_qs(body.decode("utf-8", "replace"), max_num_fields=20)
    return {name: values[0] for name, values in given.items()}


def _own(request: Request) -> bool:
    """Whether a form comes from one of our own pages."""
    site, origin = request.headers.get("sec-fetch-site", ""), request.headers.get("origin", "")
    if site not in ("", "same-origin", "none"):
        return False
    return not origin or urlsplit(origin).netloc == request.headers.get("host")


def _line(text: str) -> str:
    """One line of it: what others wrote goes into headers and mails."""
    return " ".join(text.split())[:300]
