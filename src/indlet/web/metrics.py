"""Numbers for Prometheus: what is held, how fresh it is, and how requests fare. Text format 0.0.4."""

from __future__ import annotations

import hmac
import shutil
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, Self

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indlet.provider.serve.access import bearer_token
from indlet.service.index import follow
from indlet.service.search.library import Library
from indlet.store import Origin, RunEntry, View

_RECENT: Final = 10  # runs: one is on, and those before may have been killed
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
    """Everything for whoever has the token of the settings; for others the origins that everybody may see.

    Whether something is hidden makes no difference: sizes and positions, in which every record counts, need
    the token on every node.
    """

    def __init__(
        self,
        library: Library,
        meter: Meter,
        visible: Callable[[View], list[int]],
        totals: Callable[[], dict[int, tuple[int, int]]],
        token: str = "",
    ) -> None:
        self._totals = totals
        self.library = library
        self.meter = meter
        self._visible = visible
        self._token = token

    def text(self, request: Request) -> Response:
        store = self.library.store
        with store.read() as view:
            known, shown = view.origins(), set(self._visible(view))
            whole = self._proves(request)
            origins = [o for o in known if whole or o.id in shown]
            failures = view.failure_counts()
            runs = {o.id: _OriginRuns.read(view, o.id) for o in origins}
        lines = self._of_origins(origins, failures, runs)
        if whole:
            lines += self._of_node()
        headers = {"Cache-Control": "no-store", "Vary": "Authorization"}
        return Response(
            "\n".join(lines) + "\n", media_type="text/plain; version=0.0.4; charset=utf-8", headers=headers
        )

    def _proves(self, request: Request) -> bool:
        expected = self._token.encode()
        return bool(expected) and hmac.compare_digest(bearer_token(request.headers), expected)

    def _of_origins(
        self, origins: list[Origin], failures: dict[int, int], runs: dict[int, _OriginRuns]
    ) -> list[str]:
        totals = self._totals()
        labels = {o.id: f'{{kind="{o.kind}",origin="{_label(o.name)}"}}' for o in origins}
        return [
            *_gauge("records", "Live records.", [(of, totals.get(i, (0, 0))[0]) for i, of in labels.items()]),
            *_gauge(
                "deleted_records",
                "Deleted records.",
                [(of, totals.get(i, (0, 0))[1]) for i, of in labels.items()],
            ),
            *_gauge(
                "failures", "Failures that stand.", [(of, failures.get(i, 0)) for i, of in labels.items()]
            ),
            *_gauge(
                "last_run_timestamp_seconds",
                "When the last run ended, or started if it is running.",
                [(labels[i], run.finished or run.started) for i, of in runs.items() if (run := of.last)],
            ),
            *_gauge(
                "last_run_ok",
                "1 if the last run that ended succeeded, and owes no record.",
                [
                    (labels[i], float(run.outcome == "complete" and not run.detail.get("owed")))
                    for i, of in runs.items()
                    if (run := of.ended)
                ],
            ),
            *_gauge(
                "last_complete_run_timestamp_seconds",
                "When the last run ended that read everything.",
                [(labels[i], run.finished or run.started) for i, of in runs.items() if (run := of.complete)],
            ),
        ]

    def _of_node(self) -> list[str]:
        store = self.library.store
        newest, position = follow.lag(store, self.library.settings.index)
        free = shutil.disk_usage(store.local_folder).free
        with self.meter._guard:
            requests = dict(self.meter.requests)
            times = {k: (list(b), s) for k, (b, s) in self.meter.times.items()}
        lines = [
            *_gauge("store_bytes", "Size of the store.", [("", store.size())]),
            *_gauge("disk_free_bytes", "Room left where the data folder is.", [("", free)]),
            *_gauge("change_feed_position", "Newest change in the store.", [("", newest)]),
            *_gauge("index_position", "Change up to which the index stands.", [("", position)]),
            *_gauge(
                "index_lag", "Changes that the index has still to apply.", [("", max(newest - position, 0))]
            ),
            *_gauge(
                "http_requests_total",
                "Requests answered.",
                [
                    (f'{{area="{area}",status="{status}"}}', n)
                    for (area, status), n in sorted(requests.items())
                ],
                "counter",
            ),
        ]
        name = "indlet_http_request_duration_seconds"
        lines.append(f"# HELP {name} Time to answer a request.")
        lines.append(f"# TYPE {name} histogram")
        for where, (buckets, total) in sorted(times.items()):
            running = 0
            for bound, count in zip((*map(str, _BOUNDS), "+Inf"), buckets, strict=True):
                running += count
                lines.append(f'{name}_bucket{{area="{where}",le="{bound}"}} {running}')
            lines.append(f'{name}_sum{{area="{where}"}} {total:.6f}')
            lines.append(f'{name}_count{{area="{where}"}} {running}')
        return lines


class _OriginRuns(NamedTuple):
    """The runs of an origin that metrics tell of: the last, the last that ended, the last complete one."""

    last: RunEntry | None
    ended: RunEntry | None
    complete: RunEntry | None

    @classmethod
    def read(cls, view: View, origin: int) -> Self:
        recent = view.runs(origin, _RECENT)
        return cls(
            next(iter(recent), None),
            next((run for run in recent if run.outcome != "running"), None),
            next(iter(view.runs(origin, 1, "complete")), None),
        )


def _gauge(
    name: str, help_text: str, samples: Iterable[tuple[str, float]], kind: str = "gauge"
) -> Iterator[str]:
    yield f"# HELP indlet_{name} {help_text}"
    yield f"# TYPE indlet_{name} {kind}"
    for labels, value in samples:
        # Not in an exponent's few digits: positions and bytes are exact.
        yield f"indlet_{name}{labels} {int(value) if value == int(value) else value!r}"


def _label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
