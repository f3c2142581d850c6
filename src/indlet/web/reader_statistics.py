"""What readers do, counted without cookies or personal data: searches, record pages, clicks to the owner.

Only numbers are kept: for each day of the whole portal, for each month of each source. The rules are those of
the COUNTER Code of Practice (release 5.1) where they apply: robots do not count, the same action of the same
reader within 30 seconds counts once, and turning the pages of a result, or sorting it, is no new search.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from indlet.errors import IndletError
from indlet.provider.serve.http import TooMuch, posted
from indlet.provider.serve.usage import Count, Usage, UsageKind
from indlet.settings import Counting
from indlet.store import Store
from indlet.web.auth import address_of
from indlet.web.portal import Portal

NAME: Final = "readers.json"
MOST: Final = 50_000  # numbers that are kept
DOUBLE_CLICK: Final = 30.0  # seconds, COUNTER 7.2
REMEMBERED: Final = 10_000  # actions of the last 30 seconds
ROBOTS: Final = re.compile(
    r"bot|crawl|spider|slurp|archiver|scan|monitor|preview|fetch|curl|wget|python|java/|perl|ruby|go-http|okhttp"
    r"|httpx|headless|libwww|feed|harvest|indexer|validator|^$",
    re.IGNORECASE,
)


class Metric(StrEnum):
    """Names of COUNTER, and our own where it has none."""

    SEARCHES = "Searches_Platform"
    ZERO_HITS = "Zero_Hit_Searches"
    INVESTIGATIONS = "Total_Item_Investigations"
    CLICKS = "Owner_Clicks"
    HARVESTED = "Records_Harvested"
    FAILED = "Records_Failed"


class StatisticRow(NamedTuple):
    period: str  # a day of the whole node, or a month of a source
    source: str  # empty for the whole node
    metric: str
    number: int


class ReaderStatistics:
    def __init__(self, store: Store, settings: Counting, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._clock = settings, clock
        kept = store if store.shared else store.local_folder
        self._usage = Usage(kept, MOST, NAME, self.oldest)
        self._guard = threading.Lock()
        # Whose actions these are cannot be found out: the key is of this process and never written.
        self._salt = secrets.token_bytes(32)
        self._recent: OrderedDict[bytes, float] = OrderedDict()

    def oldest(self) -> str:
        """The day before which nothing is kept."""
        day = datetime.fromtimestamp(self._clock(), UTC) - timedelta(days=self._settings.keep_days)
        return f"{day:%Y-%m-%d}"

    def note(self, request: Request, client: str, metric: Metric, source: str = "", what: str = "") -> bool:
        """Count an action of a reader, unless a robot did it or it is a double click; whether it counted."""
        agent = request.headers.get("user-agent", "")
        if not self._settings.count or ROBOTS.search(agent):
            return False
        if self._is_repeated(f"{client}\0{agent}\0{metric}\0{source}\0{what}"):
            return False
        self.add(metric, source)
        return True

    def add(self, metric: Metric, source: str = "") -> None:
        now = self._clock()
        day = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}"
        self._usage.add(now, UsageKind(day, "", metric, "", ""), Count(1))
        if source:
            self._usage.add(now, UsageKind(day[:7], "", metric, source, ""), Count(1))

    def rows(self) -> list[StatisticRow]:
        """Every number that is kept, oldest first."""
        oldest = self.oldest()
        kept = ((kind, count) for kind, count in self._usage.counts() if kind.day >= oldest[: len(kind.day)])
        return sorted(StatisticRow(kind.day, kind.prefix, kind.verb, count.requests) for kind, count in kept)

    def save(self) -> None:
        self._usage.save()

    def _is_repeated(self, action: str) -> bool:
        key = blake2b(action.encode("utf-8", "replace"), digest_size=16, key=self._salt).digest()
        now = time.monotonic()
        with self._guard:
            last = self._recent.pop(key, None)
            self._recent[key] = now
            while self._recent and (
                len(self._recent) > REMEMBERED or now - next(iter(self._recent.values())) > DOUBLE_CLICK
            ):
                self._recent.popitem(last=False)
        return last is not None and now - last < DOUBLE_CLICK


Handler = Callable[[Request], Response]


class ReaderCounts:
    """Handlers of the portal, with what readers do by them counted."""

    def __init__(self, portal: Portal, statistics: ReaderStatistics) -> None:
        self._portal, self._statistics = portal, statistics

    def searches(self, handler: Handler) -> Handler:
        def counted(request: Request) -> Response:
            response = handler(request)
            total = getattr(request.state, "total", None)
            if total is not None and not request.query_params.keys() & {"page", "sort"}:
                note = partial(self._note, request, what=request.url.query)
                if note(Metric.SEARCHES) and not total:
                    self._statistics.add(Metric.ZERO_HITS)
            return response

        return counted

    def investigations(self, handler: Handler) -> Handler:
        def counted(request: Request) -> Response:
            response = handler(request)
            source = getattr(request.state, "source", None)
            if source is not None:
                self._note(request, Metric.INVESTIGATIONS, source, f"{request.url.path}?{request.url.query}")
            return response

        return counted

    async def click(self, request: Request) -> Response:
        """A reader of a record page goes to the owner: the page's script tells which record that is."""
        if request.headers.get("sec-fetch-site", "same-origin") == "same-origin":
            try:
                form = dict(await posted(request))
            except TooMuch as e:
                return PlainTextResponse(f"{e}\n", e.status)
            await anyio.to_thread.run_sync(self._clicked, request, form.get("page", "")[:2000])
        return Response(status_code=204)

    def _clicked(self, request: Request, page: str) -> None:
        parts = urlsplit(page)
        path = parts.path.removeprefix(self._portal.library.settings.mount())
        query = dict(parse_qsl(parts.query))
        identifier = query.get("id", "") or unquote(path.removeprefix("/record/"))
        with contextlib.suppress(IndletError):  # a record that is gone, or never was
            stored = self._portal.library.stored(identifier, query.get("source", ""))
            with self._portal.store.read() as view:
                names = {origin.id: origin.name for origin in view.origins()}
            self._note(request, Metric.CLICKS, names.get(stored.origin, ""), stored.identifier)

    def _note(self, request: Request, metric: Metric, source: str = "", what: str = "") -> bool:
        client = address_of(request, self._portal.library.settings)
        return self._statistics.note(request, client, metric, source, what)
