"""Numbers for Prometheus: what is held, how fresh it is, and how requests fare. Text format 0.0.4."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indlet.service.index import follow
from indlet.service.search.library import Library
from indlet.store import View

_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_AREAS: Final = (
    "search",
    "compare",
    "record",
    "export",
    "feed",
    "api",
    "oai",
    "ft-oai",
    "admin",
    "static",
    "other",
)


class Meter:
    """Counts requests by area and status, and how long they took; wraps the application."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self.requests: dict[tuple[str, str], int] = {}
        self.times: dict[str, tuple[list[int], float]] = {}

    def around(self, app: ASGIApp) -> ASGIApp:
        async def metered(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            started, status = self._clock(), 500

            async def noted(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            try:
                await app(scope, receive, noted)
            finally:
                self.count(area(scope["path"]), status, self._clock() - started)

        return metered

    def count(self, where: str, status: int, seconds: float) -> None:
        key = (where, f"{status // 100}xx")
        with self._guard:
            self.requests[key] = self.requests.get(key, 0) + 1
            buckets, total = self.times.get(where, ([0] * (len(_BOUNDS) + 1), 0.0))
            buckets[bisect_left(_BOUNDS, seconds)] += 1
            self.times[where] = (buckets, total + seconds)


def area(path: str) -> str:
    """A label of few values, whatever addresses are asked for."""
    first = path.strip("/").partition("/")[0].partition(".")[0]
    if first == "":
        return "search"
    return first if first in _AREAS else "other"


class Metrics:
    def __init__(
        self,
        library: Library,
        meter: Meter,
        visible: Callable[[View], list[int]],
        totals: Callable[[], dict[int, tuple[int, int]]],
    ) -> None:
        self._totals = totals
        self.library = library
        self.meter = meter
        self._visible = visible

    def text(self, request: Request) -> Response:
        store = self.library.store
        with store.read() as view:
            shown = set(self._visible(view))
            origins = [o for o in view.origins() if o.id in shown]
            failures = view.failure_counts()
            runs = {o.id: next(iter(view.runs(o.id, 1)), None) for o in origins}
        totals = self._totals()
        newest, position = follow.lag(store)
        lines: list[str] = []

        def gauge(
            name: str, help_text: str, samples: Iterable[tuple[str, float]], kind: str = "gauge"
        ) -> None:
            lines.append(f"# HELP indlet_{name} {help_text}")
            lines.append(f"# TYPE indlet_{name} {kind}")
            lines.extend(f"indlet_{name}{labels} {value:g}" for labels, value in samples)

        def of(origin_id: int) -> str:
            origin = next(o for o in origins if o.id == origin_id)
            return f'{{kind="{origin.kind}",origin="{_label(origin.name)}"}}'

        ids = [o.id for o in origins]
        gauge("records", "Live records.", [(of(i), totals.get(i, (0, 0))[0]) for i in ids])
        gauge("deleted_records", "Deleted records.", [(of(i), totals.get(i, (0, 0))[1]) for i in ids])
        gauge("failures", "Failures that stand.", [(of(i), failures.get(i, 0)) for i in ids])
        finished = [(i, run) for i, run in runs.items() if run is not None]
        gauge(
            "last_run_timestamp_seconds",
            "When the last run ended, or started if it is running.",
            [(of(i), run.finished or run.started) for i, run in finished],
        )
        gauge(
            "last_run_ok",
            "1 if the last run succeeded, and owes no record, or is running.",
            [
                (of(i), float(run.outcome in ("running", "complete") and not run.detail.get("owed")))
                for i, run in finished
            ],
        )
        gauge("store_bytes", "Size of the store.", [("", store.size())])
        gauge("change_feed_position", "Newest change in the store.", [("", newest)])
        gauge("index_position", "Change up to which the index stands.", [("", position)])
        gauge("index_lag", "Changes that the index has still to apply.", [("", max(newest - position, 0))])
        with self.meter._guard:
            requests, times = (
                dict(self.meter.requests),
                {k: (list(b), s) for k, (b, s) in self.meter.times.items()},
            )
        gauge(
            "http_requests_total",
            "Requests answered.",
            [(f'{{area="{where}",status="{status}"}}', n) for (where, status), n in sorted(requests.items())],
            "counter",
        )
        lines.append("# HELP indlet_http_request_duration_seconds Time to answer a request.")
        lines.append("# TYPE indlet_http_request_duration_seconds histogram")
        for where, (buckets, total) in sorted(times.items()):
            name, running = "indlet_http_request_duration_seconds", 0
            for bound, count in zip((*map(str, _BOUNDS), "+Inf"), buckets, strict=True):
                running += count
                lines.append(f'{name}_bucket{{area="{where}",le="{bound}"}} {running}')
            lines.append(f'{name}_sum{{area="{where}"}} {total:.6f}')
            lines.append(f'{name}_count{{area="{where}"}} {running}')
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4; charset=utf-8")


def _label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
