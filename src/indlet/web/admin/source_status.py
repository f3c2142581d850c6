"""How the sources are: one row each, those that need somebody first; filters, search and pages over them."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from indlet.model import JsonMapping
from indlet.service.harvest.progress import Phase, Progress, RunOutcome
from indlet.settings import Source
from indlet.store import Origin, RunEntry, Store, View
from indlet.web.svg import Ticks, ticks

TICKS: Final = 30  # runs that a row shows
PER_PAGE: Final = 20


class Health(StrEnum):
    """What a source needs, in the order of the list: what needs somebody comes first."""

    FAILING = "failing"
    WARNING = "warning"  # complete, but with far fewer records than before
    INCOMPLETE = "incomplete"
    RUNNING = "running"
    WAITING = "waiting"  # its harvest has been started, and waits for a slot
    NEW = "new"
    PAUSED = "paused"
    HEALTHY = "healthy"


_HEALTH: Final = {"failed": Health.FAILING, "complete": Health.HEALTHY, "new": Health.NEW}
_TONES: Final = {
    Health.FAILING: "bad", Health.WARNING: "restricted", Health.INCOMPLETE: "restricted",
    Health.RUNNING: "busy", Health.HEALTHY: "good",
}  # fmt: skip
_ADDRESS: Final = re.compile(r"\Ahttps?://\S+:\s+")
_TICK_TONES: Final = {"complete": "good", "failed": "bad"}
_ORDER: Final = {health: place for place, health in enumerate(Health)}


@dataclass(frozen=True, slots=True)
class SourceRow:
    name: str
    url: str
    health: Health
    state: str  # "running", "waiting", "paused", "complete", "incomplete", "failed", "interrupted", "new"
    owed: int  # records that a complete run still has to get
    reason: str
    records: int
    deleted: int
    failures: int
    repairs: int
    form: str
    policy: str
    losses: tuple[str, ...]
    last: float | None
    due: float | None
    progress: JsonMapping | None
    outcomes: tuple[str, ...]  # of the last runs, oldest first

    @property
    def ticks(self) -> Ticks:
        return ticks([_TICK_TONES.get(outcome, "part") for outcome in self.outcomes], TICKS)

    @property
    def short_reason(self) -> str:
        """The reason without the address that was asked, which its row names by the source."""
        return _ADDRESS.sub("", self.reason)

    @property
    def tone(self) -> str:
        return _TONES.get(self.health, "")


class Totals:
    """Records and deletions by origin. Counting walks through the table: once in a few seconds."""

    def __init__(self, store: Store, patience: float = 5.0) -> None:
        self._store, self._patience = store, patience
        self._at, self._seq, self._found = 0.0, -1, dict[int, tuple[int, int]]()
        self._shared: list[tuple[str, str, int, str]] = []

    def get(self) -> dict[int, tuple[int, int]]:
        with self._store.read() as view:
            seq = view.last_seq()
            if seq != self._seq and time.monotonic() - self._at > self._patience:
                self._found = view.totals()
                names = {origin.id: origin.name for origin in view.origins()}
                self._shared = [
                    (names[s.first], names[s.second], s.identifiers, s.example)
                    for s in view.shared_identifiers()
                ]
                self._seq, self._at = seq, time.monotonic()
        return self._found

    def shared(self) -> list[tuple[str, str, int, str]]:
        """Pairs of origins with different records under the same identifiers, how many, and one of these."""
        self.get()
        return self._shared


@dataclass(frozen=True, slots=True)
class LiveState:
    """What is known of sources besides the store: next runs, runs that are on, records and deletions."""

    next_runs: Mapping[str, float]
    running: Mapping[str, Progress]
    totals: Mapping[int, tuple[int, int]]


def source_rows(store: Store, sources: Mapping[str, Source], live: LiveState) -> list[SourceRow]:
    """A row for each source, those that need somebody first."""
    with store.read() as view:
        table = _Table(store, view, live)
        rows = [table.row(name, source) for name, source in sources.items()]
    return sorted(rows, key=lambda row: (_ORDER[row.health], row.name.casefold()))


class _Table:
    def __init__(self, store: Store, view: View, live: LiveState) -> None:
        self._store, self._live = store, live
        self._origins = {origin.name: origin for origin in view.origins("source")}
        self._failures = view.failure_counts()
        self._runs = view.recent_runs([origin.id for origin in self._origins.values()], TICKS)

    def row(self, name: str, source: Source) -> SourceRow:
        origin = self._origins.get(name)
        number = origin.id if origin else -1
        state = origin.state if origin else {}
        runs = self._runs.get(number, [])
        records, deleted = self._live.totals.get(number, (0, 0))
        last = runs[0].detail if runs else {}
        progress = self._progress(name, origin, runs)
        kind = _state(source, runs, progress)
        owed = int(last.get("owed", 0)) if kind == "complete" else 0
        warning = str(last.get("warning", "")) if kind == "complete" else ""
        return SourceRow(
            name=name,
            url=str(state.get("url") or source.url or (origin.settings if origin else {}).get("url", "")),
            health=_health(kind, owed=bool(owed), warning=bool(warning)),
            state=kind,
            owed=owed,
            reason=warning or (str(last.get("reason", "")) if progress is None else ""),
            records=records,
            deleted=deleted,
            failures=self._failures.get(number, 0),
            repairs=sum(int(n) for n in state.get("repairs", {}).values()),
            form=str(state.get("format", "")),
            policy=str(state.get("reconciliation", "")),
            losses=tuple(map(str, state.get("loss") or ())),
            last=(runs[0].finished or runs[0].started) if runs else None,
            due=self._live.next_runs.get(name),
            progress=progress,
            outcomes=tuple(run.outcome for run in reversed(runs)),
        )

    def _progress(self, name: str, origin: Origin | None, runs: Sequence[RunEntry]) -> JsonMapping | None:
        """How far a run is: of this process at first hand, of another one as its journal says."""
        here = self._live.running.get(name)
        if here is not None:
            done = here.records + here.deleted
            return {"done": done, "size": here.size, "rate": here.rate, "phase": here.phase}
        # The journal alone would not tell a crash from a run.
        if origin is None or not runs or runs[0].outcome != RunOutcome.RUNNING:
            return None
        if not self._store.busy(f"harvest-{origin.id}"):
            return None
        detail = runs[0].detail
        done = int(detail.get("records", 0)) + int(detail.get("deleted", 0))
        seconds = float(detail.get("seconds", 0)) or 1.0
        return {"done": done, "size": None, "rate": done / seconds, "phase": Phase.HARVESTING}


def _state(source: Source, runs: Sequence[RunEntry], progress: JsonMapping | None) -> str:
    if progress is not None:
        return "waiting" if progress["phase"] == Phase.WAITING else "running"
    if source.paused:
        return "paused"
    outcome = runs[0].outcome if runs else "new"
    return RunOutcome.INTERRUPTED if outcome == RunOutcome.RUNNING else outcome


def _health(state: str, *, owed: bool, warning: bool) -> Health:
    if state in (Health.RUNNING, Health.WAITING, Health.PAUSED):
        return Health(state)
    if warning:
        return Health.WARNING
    return Health.INCOMPLETE if owed else _HEALTH.get(state, Health.INCOMPLETE)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which sources a page lists: of one health (empty: all), with some words in name, address or reason."""

    show: str = ""
    words: str = ""
    page: int = 1

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Choice:
        show, number = given.get("show", ""), given.get("page", "")
        return cls(
            show if show in tuple(Health) else "",
            given.get("q", "").strip()[:200],
            max(1, int(number)) if number.isascii() and number.isdecimal() and len(number) < 7 else 1,
        )

    def address(self, **changes: str | int) -> str:
        """The page with this choice, or with a part of it changed; a change leads to the first page."""
        wanted = {"show": self.show, "q": self.words, **changes}
        query = urlencode({key: value for key, value in wanted.items() if value not in ("", 1)})
        return f"/admin?{query}" if query else "/admin"

    def select(self, rows: Iterable[SourceRow]) -> list[SourceRow]:
        words = self.words.casefold().split()
        return [
            row
            for row in rows
            if self.show in ("", row.health)
            and all(word in f"{row.name} {row.url} {row.reason}".casefold() for word in words)
        ]


@dataclass(frozen=True, slots=True)
class StatusPage:
    """A page of the list, and how many sources there are of each health."""

    rows: list[SourceRow]
    listed: int  # on all pages
    counts: list[tuple[Health, int]]
    page: int
    pages: int


def status_page(rows: Sequence[SourceRow], choice: Choice) -> StatusPage:
    found = choice.select(rows)
    counts = Counter(row.health for row in rows)
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(choice.page, pages)
    part = found[(page - 1) * PER_PAGE : page * PER_PAGE]
    return StatusPage(part, len(found), [(h, counts[h]) for h in Health if counts[h]], page, pages)
