"""A request and its answer as a page: what failed is put into the words that decisions are made from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Final, TypeVar

from indlet.errors import BadResponse
from indlet.net.client import Client, HttpAnswer, NoAnswer, released, spellings
from indlet.oai.read import Page, Truncated, read
from indlet.service.harvest.run_state import PASSING, Rules, Trouble
from indlet.service.records.page import announced, last_token

T = TypeVar("T")
_TROUBLES: Final[dict[str, Trouble]] = {
    "badresumptiontoken": "token",
    "badargument": "argument",
    "badgranularity": "argument",
    "norecordsmatch": "nothing",
}
# What a source says for good. Other codes are of its own making, and may mean any trouble of the moment.
_FINAL: Final = {
    "badverb", "cannotdisseminateformat", "iddoesnotexist", "nometadataformats", "noindexformats",
    "nosethierarchy",
}  # fmt: skip
_LISTS: Final = ("ListRecords", "ListIdentifiers", "GetRecord")
# Waits before a question that is asked once (Identify and its like) is given up.
_QUICK: Final = 3
HALT_SECONDS: Final = 0.25


class Interrupted(Exception):
    """Somebody asked the run to stop."""


class PageFetcher:
    """Pages from one base URL. The page after the one just given is fetched while that one is worked on.

    `announce` hears the size of a list before its first page is read.
    """

    def __init__(
        self,
        client: Client,
        rules: Rules,
        sleep: Callable[[float], None] = time.sleep,
        halt: threading.Event | None = None,
        tell: Callable[[str], None] = lambda _: None,
        announce: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.client = client
        self._rules = rules
        self._sleep = sleep
        self._halt = halt or threading.Event()
        self._tell = tell
        self._announce = announce
        # A daemon, and not a pool, which would keep a process from ending while a source is silent.
        self._wanted: SimpleQueue[tuple[Future[HttpAnswer], Callable[[], HttpAnswer]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None  # from the first request on
        self._next: tuple[str, str, Future[HttpAnswer]] | None = None
        self._usual = False
        self.policy = ""  # digest of the policy that index parts are expected to name; empty: of any

    def close(self) -> None:
        self._wanted.put(None)
        if self._thread is None:
            self.client.close()

    def page(self, base_url: str, arguments: Mapping[str, str], spelling: int = 0) -> Page:
        """The page that answers a request; NoAnswer says why there is none."""
        try:
            return self._page(base_url, arguments, spelling)
        except NoAnswer as e:
            refused = released(e)
        raise refused

    def _page(self, base_url: str, arguments: Mapping[str, str], spelling: int) -> Page:
        token = arguments.get("resumptionToken", "")
        written = spellings(token)[spelling] if token else None
        verb = arguments["verb"]
        listing = verb in ("ListRecords", "ListIdentifiers")
        answer = self._fetched_ahead(verb, written) if listing else None
        if answer is None:
            answer = self._awaited(self._fetch(base_url, arguments, written))
        if verb == "ListRecords" and not token and (size := announced(answer.body)):
            self._announce(size)
        # A source whose pages are of the usual form is asked for the next one before this one is read.
        if listing and self._usual and (told := last_token(answer.body)):
            self._ask_ahead(base_url, verb, told)
        page = _page(answer, verb)
        self._usual = bool(page.items) and not page.is_repaired
        if self.policy and verb in ("ListRecords", "GetRecord"):
            page.policies = frozenset({item.policy for item in page.items} - {self.policy, ""})
        if page.token and listing:
            self._ask_ahead(base_url, verb, page.token)
        return page

    def _ask_ahead(self, base_url: str, verb: str, token: str) -> None:
        written = spellings(token)[0]
        if self._next is None or self._next[:2] != (verb, written):
            following = {"verb": verb, "resumptionToken": token}
            self._next = (verb, written, self._fetch(base_url, following, written))

    def get(self, url: str, limit: int, media: str, conditions: Mapping[str, str]) -> HttpAnswer:
        """See `Client.get`; in turn with the source's pages: one request at a time holds for all of them."""
        return self._awaited(self._aside(lambda: self.client.get(url, limit, media, conditions)))

    def page_retried(self, base_url: str, arguments: Mapping[str, str], attempts: int = _QUICK + 1) -> Page:
        """A single page, asked for again where the trouble may pass."""
        return self.retried(lambda: self.page(base_url, arguments), attempts)

    def retried(self, ask: Callable[[], T], attempts: int) -> T:
        """What is asked for, with pauses in between, until it is had or has failed so many times."""
        attempt = 0
        while True:
            try:
                return ask()
            except NoAnswer as e:
                attempt += 1
                if attempt >= attempts or e.failed.trouble not in PASSING:
                    raise
                self.pause(e, attempt)

    def pause(self, trouble: NoAnswer, attempt: int = 1) -> None:
        """Wait as a trouble asks, or longer with each attempt; raises it where it asks for too much."""
        asked = trouble.failed.retry_after
        if asked is not None and asked > self._rules.retry_after_limit_seconds:
            raise trouble
        wait = self._rules.pause(attempt, asked)
        self._tell(f"{trouble}; again in {wait:.3g} s")
        self._sleep(wait)

    def _fetch(self, base_url: str, arguments: Mapping[str, str], written: str | None) -> Future[HttpAnswer]:
        return self._aside(lambda: self.client.ask(base_url, arguments, written))

    def _aside(self, call: Callable[[], HttpAnswer]) -> Future[HttpAnswer]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="harvest-fetch", daemon=True)
            self._thread.start()
        future: Future[HttpAnswer] = Future()
        self._wanted.put((future, call))
        return future

    def _fetched_ahead(self, verb: str, written: str | None) -> HttpAnswer | None:
        """What was fetched ahead, if it is what is wanted now."""
        ahead, self._next = self._next, None
        if ahead is None or (verb, written) != ahead[:2]:
            return None
        return self._awaited(ahead[2])

    def _awaited(self, future: Future[HttpAnswer]) -> HttpAnswer:
        """The answer, unless somebody asks to stop: a silent source must not hold up the end."""
        while not self._halt.is_set():
            try:
                return future.result(HALT_SECONDS)
            except TimeoutError:
                if future.done():
                    raise
        raise Interrupted

    def _serve(self) -> None:
        while wanted := self._wanted.get():
            future, call = wanted
            try:
                future.set_result(call())
            except BaseException as e:
                future.set_exception(e)
        self.client.close()


def _page(answer: HttpAnswer, verb: str) -> Page:
    try:
        page = read(answer.body, answer.charset)
    except BadResponse as e:
        if answer.trouble is not None:
            raise answer.trouble from e
        trouble: Trouble = "interrupted" if isinstance(e, Truncated) else "broken"
        raise NoAnswer(trouble, f"{answer.url}: {e}") from e
    page.repairs += answer.repairs
    found = page.items or page.problems or page.token
    if page.errors and not found:
        raise _refusal(page, answer)
    if page.errors:
        page.repairs["errors beside records"] += 1
    if answer.trouble is not None:
        raise answer.trouble
    if page.verb != verb:
        raise NoAnswer("broken", f"{answer.url}: answers {page.verb or 'nothing'} to {verb}")
    if not found and verb in _LISTS:
        page.repairs["empty list instead of noRecordsMatch"] += 1
    if not page.response_date:
        page.response_date = answer.date
        page.repairs["missing responseDate"] += 1
    return page


def _refusal(page: Page, answer: HttpAnswer) -> NoAnswer:
    url = answer.url
    said = "; ".join(f"{code or 'error'}: {text}".strip(": ") for code, text in page.errors)
    for code, _ in page.errors:
        trouble = _TROUBLES.get(code.strip().lower())
        if trouble is None and code.lower().startswith("norecord"):
            trouble = "nothing"
        if trouble is not None:
            return NoAnswer(trouble, f"{url}: {said}", response_date=page.response_date)
    if answer.trouble is not None and answer.trouble.failed.trouble in ("later", "broken"):
        return NoAnswer(answer.trouble.failed.trouble, f"{url}: {said}", answer.trouble.failed.retry_after)
    codes = {code.strip().lower() for code, _ in page.errors}
    return NoAnswer("fatal" if codes & _FINAL else "broken", f"{url}: {said}")
