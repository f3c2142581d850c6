"""As a guest: one request at a time to a host, pauses that it asks for, hours, and a budget for the day.

`Hosts` is shared by all sources of a run, so that two sources on one host keep its pace together. A host that
fails again and again is left alone for growing pauses; what waits for it is put off, not tried.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from indlet.errors import SettingsError
from indlet.net.client import USER_AGENT, Client, HttpAnswer, NoAnswer
from indlet.net.settings import Harvest
from indlet.settings import Sidecar, Source
from indlet.sidecar.robots import ALLOW_ALL, RobotRules, parse_robots
from indlet.sidecar.robots import ROBOTS_BYTES as _ROBOTS_BYTES

FAILURES: Final = 3  # in a row, after which a host is left alone for a while
REFUSALS: Final = 20  # in a row (403): the host bars us, and more requests make it worse
FIRST_PAUSE: Final = 300.0
LONGEST_PAUSE: Final = 86_400.0
ROBOTS_SECONDS: Final = 86_400.0  # RFC 9309, section 2.4
_PASSING: Final = ("unreachable", "silent", "interrupted", "broken")
_HOURS = re.compile(r"([01]\d|2[0-4]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)")


class HostPaused(Exception):
    """A host is left alone until a time, in seconds since 1970."""

    def __init__(self, host: str, until: float, reason: str) -> None:
        super().__init__(reason)
        self.host, self.until = host, until


class Disallowed(Exception):
    """robots.txt asks not to fetch this."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url}: robots.txt of {host_of(url)} disallows it")
        self.url = url


class BudgetSpent(Exception):
    """A source has had its requests or bytes of the day."""


class Stopped(Exception):
    """Somebody asked the run to stop."""


@dataclass(slots=True)
class HostState:
    lock: threading.Lock = field(default_factory=threading.Lock)
    free_at: float = 0.0  # by the monotonic clock
    failures: int = 0
    refusals: int = 0
    pauses: int = 0
    paused_until: float = 0.0  # by the wall clock
    reason: str = ""
    robots: RobotRules | None = None
    robots_until: float = 0.0


class Hosts:
    """The pace of every host. Threads share it."""

    def __init__(
        self,
        sidecar: Sidecar,
        clock: Callable[[], float] = time.time,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sidecar, self.clock, self.tick = sidecar, clock, tick
        self._states: dict[str, HostState] = {}
        self._guard = threading.Lock()

    def state(self, host: str) -> HostState:
        with self._guard:
            return self._states.setdefault(host, HostState())

    def paused_hosts(self) -> dict[str, float]:
        """The hosts that are left alone now, and until when."""
        now = self.clock()
        with self._guard:
            return {host: s.paused_until for host, s in self._states.items() if s.paused_until > now}

    def slowest_delay(self) -> float:
        """The longest pause that a robots.txt asked for so far."""
        with self._guard:
            return max((s.robots.delay for s in self._states.values() if s.robots), default=0.0)

    def restore(self, paused: Mapping[str, float]) -> None:
        """Leave hosts alone that an earlier process had reason to."""
        for host, until in paused.items():
            self.state(host).paused_until = min(float(until), self.clock() + LONGEST_PAUSE)

    def note_success(self, host: str) -> None:
        state = self.state(host)
        state.failures = state.refusals = state.pauses = 0

    def note_refusal(self, host: str, reason: str) -> None:
        state = self.state(host)
        state.refusals += 1
        if state.refusals >= REFUSALS:
            self._pause(host, state, None, reason)

    def note_failure(self, host: str, reason: str, retry_after: float | None, *, asked: bool) -> None:
        """A request failed in a way that may pass; `asked`: the host itself asks for time (429, 503)."""
        state = self.state(host)
        state.failures += 1
        if asked or state.failures >= FAILURES:
            self._pause(host, state, retry_after, reason)

    def _pause(self, host: str, state: HostState, retry_after: float | None, reason: str) -> None:
        growing = min(FIRST_PAUSE * 2**state.pauses, LONGEST_PAUSE)
        seconds = min(retry_after, LONGEST_PAUSE) if retry_after is not None else growing
        state.pauses += 1
        state.failures = state.refusals = 0
        state.paused_until, state.reason = self.clock() + seconds, reason
        raise HostPaused(host, state.paused_until, reason)


@dataclass(slots=True)
class DayBudget:
    """What a source has had today. A day is one of UTC."""

    day: str = ""
    requests: int = 0
    bytes: int = 0

    def charge(self, today: str, requests: int, size: int) -> None:
        self._turn(today)
        self.requests += requests
        self.bytes += size

    def require(self, sidecar: Sidecar, today: str) -> None:
        self._turn(today)
        if sidecar.requests_per_day and self.requests >= sidecar.requests_per_day:
            raise BudgetSpent(f"{self.requests:,} requests today (sidecar.requests_per_day)")
        if sidecar.bytes_per_day and self.bytes >= sidecar.bytes_per_day:
            raise BudgetSpent(f"{self.bytes:,} bytes today (sidecar.bytes_per_day)")

    def _turn(self, today: str) -> None:
        if self.day != today:
            self.day, self.requests, self.bytes = today, 0, 0


class PacedClient:
    """The client of one source, at the pace of the hosts that it asks."""

    def __init__(
        self, hosts: Hosts, harvest: Harvest, source: Source, budget: DayBudget, halt: threading.Event
    ) -> None:
        self._hosts, self._sidecar, self._budget, self._halt = hosts, hosts.sidecar, budget, halt
        self.agent = user_agent(harvest)
        self._oai = source.url
        self._asked = ""  # the host of the last request, which a redirect may have led to
        self._client = Client(
            replace(harvest, user_agent=self.agent),
            token=source.token,
            user=source.user,
            password=source.password,
            home=source.url,
            around=self._around,
        )

    def close(self) -> None:
        self._client.close()

    @property
    def requests(self) -> int:
        return self._client.requests

    @property
    def bytes(self) -> int:
        return self._client.wire

    def get(
        self, url: str, limit: int, media: str = "", conditions: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """The response to a GET; otherwise NoAnswer, HostPaused, Disallowed, BudgetSpent or Stopped."""
        self._budget.require(self._sidecar, self._today())
        asked, wire = self._client.requests, self._client.wire
        try:
            answer = self._client.get(url, limit, media, conditions or {})
        except NoAnswer as e:
            failed = e.failed
            if failed.trouble in _PASSING or failed.trouble == "later":
                wanted = failed.trouble == "later"
                self._hosts.note_failure(self._asked, str(e), failed.retry_after, asked=wanted)
            raise
        finally:
            self._budget.charge(self._today(), self._client.requests - asked, self._client.wire - wire)
        host, trouble = host_of(answer.url), answer.trouble
        if answer.status == 403:
            self._hosts.note_refusal(host, str(trouble))
        elif answer.status in (429, 503) or answer.status >= 500:
            wait = trouble.failed.retry_after if trouble else None
            self._hosts.note_failure(host, str(trouble), wait, asked=answer.status in (429, 503))
        else:
            self._hosts.note_success(host)
        return answer

    @contextlib.contextmanager
    def _around(self, url: str) -> Iterator[None]:
        """Waits for the turn of a URL's host, and keeps the turn while the request runs."""
        host = host_of(url)
        state = self._hosts.state(host)
        if state.paused_until > self._hosts.clock():
            raise HostPaused(host, state.paused_until, state.reason)
        delay = self._sidecar.delay_seconds
        if not self._is_exempt(url):
            rules = self._robots(url, state)
            if not rules.allows(url):
                raise Disallowed(url)
            delay = max(delay, rules.delay)
        elif state.robots is not None:
            delay = max(delay, state.robots.delay)
        while not state.lock.acquire(timeout=0.2):
            if self._halt.is_set():
                raise Stopped
        try:
            self._sleep(state.free_at - self._hosts.tick())
            self._asked = host
            begun = self._hosts.tick()
            try:
                yield
            finally:
                now = self._hosts.tick()
                # A host that is slow to answer rests for as long as it worked.
                state.free_at = now + max(delay, min(now - begun, 60.0) if delay else 0.0)
        finally:
            state.lock.release()

    def _is_exempt(self, url: str) -> bool:
        """robots.txt itself, and the OAI-PMH endpoint, which is there for programs."""
        return not self._sidecar.robots or urlsplit(url).path == "/robots.txt" or url.startswith(self._oai)

    def _robots(self, url: str, state: HostState) -> RobotRules:
        now = self._hosts.clock()
        if state.robots is None or now > state.robots_until:
            state.robots_until = now + ROBOTS_SECONDS
            state.robots = self._ask_robots(url, state)
        return state.robots

    def _ask_robots(self, url: str, state: HostState) -> RobotRules:
        """Section 2.3.1: a client error allows everything; after a server error the host is left alone."""
        parts = urlsplit(url)
        try:
            answer = self._client.get(f"{parts.scheme}://{parts.netloc}/robots.txt", _ROBOTS_BYTES)
        except NoAnswer as e:
            state.robots = None
            if e.failed.trouble in _PASSING:
                raise
            return ALLOW_ALL
        if answer.status >= 500 or answer.status == 429:
            state.robots = None
            wait = answer.trouble.failed.retry_after if answer.trouble else None
            self._hosts.note_failure(host_of(url), str(answer.trouble), wait, asked=True)
        return parse_robots(answer.body, self.agent) if answer.status == 200 else ALLOW_ALL

    def _sleep(self, seconds: float) -> None:
        if self._halt.wait(max(seconds, 0.0)) if seconds > 0 else self._halt.is_set():
            raise Stopped

    def _today(self) -> str:
        return datetime.fromtimestamp(self._hosts.clock(), UTC).strftime("%Y-%m-%d")


def host_of(url: str) -> str:
    """Host and port: what keeps a pace."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""


def user_agent(harvest: Harvest) -> str:
    """How requests for documents name us: with an address to complain to, if there is one."""
    if harvest.user_agent or not harvest.from_email:
        return harvest.user_agent or f"{USER_AGENT} (documents of OAI-PMH records)"
    return f"{USER_AGENT} (documents of OAI-PMH records; mailto:{harvest.from_email})"


def opening(hours: str, now: float) -> float:
    """When documents may be fetched next, in seconds since 1970: `now` if they may be now."""
    if not hours:
        return now
    windows = [_HOURS.fullmatch(part.strip()) for part in hours.split(",")]
    if not all(windows):
        raise SettingsError(
            f"sidecar.hours is {hours!r}; write hours such as '20:00-06:00', separated by commas"
        )
    moment = datetime.fromtimestamp(now, UTC)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    openings = []
    for found in filter(None, windows):
        first, last = (int(found[i]) * 60 + int(found[i + 1]) for i in (1, 3))
        length = timedelta(minutes=(last - first) % 1440 or 1440)
        for day in (-1, 0, 1):
            begin = midnight + timedelta(days=day, minutes=first)
            if begin + length > moment:
                openings.append(max(begin, moment))
    return min(openings).timestamp()
