"""The numbers of the desk's pages, as the templates take them."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indlet.cluster import worker
from indlet.model import JsonMapping, JsonObject
from indlet.node.schedule import Job, Schedule
from indlet.service.harvest.progress import Progress
from indlet.service.index import follow
from indlet.service.search.library import Library
from indlet.settings import Settings, Source
from indlet.store import Origin, RunEntry, Store, StoredFailure
from indlet.web.i18n import Strings
from indlet.web.svg import PlotLine, line

RAW: Final = 4000  # bytes of a failure's raw form that a page shows
FAILURES: Final = 100
RUNS: Final = 200
_TONES: Final = {"running": "busy", "complete": "good", "failed": "bad", "incomplete": "restricted"}


@dataclass(frozen=True, slots=True)
class SourceRow:
    name: str
    url: str
    state: str  # "running", "paused", "complete", "incomplete", "failed", "interrupted", "new"
    tone: str
    owed: int  # records that a complete run still has to get
    reason: str
    records: int
    deleted: int
    failures: int
    repairs: int
    bytes: int
    form: str
    policy: str
    losses: tuple[str, ...]
    last: float | None
    due: float | None
    progress: JsonMapping | None


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


def source_rows(
    store: Store,
    sources: Mapping[str, Source],
    next_runs: Mapping[str, float],
    running: Mapping[str, Progress],
    totals: Mapping[int, tuple[int, int]],
) -> list[SourceRow]:
    with store.read() as view:
        origins = {o.name: o for o in view.origins("source")}
        failures = view.failure_counts()
        runs = {o.name: view.runs(o.id, RUNS) for o in origins.values()}
    rows = []
    for name, source in sources.items():
        origin = origins.get(name)
        journal = runs.get(name, [])
        live, gone = totals.get(origin.id, (0, 0)) if origin else (0, 0)
        state = origin.state if origin else {}
        at_work = origin is not None and _held(store, origin.id)
        progress = _progress(running.get(name), journal if at_work else ())
        kind = _state(source, journal, progress)
        last = journal[0] if journal else None
        owed = int(last.detail.get("owed", 0)) if last and kind == "complete" else 0
        rows.append(
            SourceRow(
                name=name,
                url=str(
                    state.get("url")
                    or (source.url if source else "")
                    or (origin.settings if origin else {}).get("url", "")
                ),
                state=kind,
                tone="restricted" if owed else _TONES.get(kind, ""),
                owed=owed,
                reason=str(last.detail.get("reason", "")) if last and kind != "running" else "",
                records=live,
                deleted=gone,
                failures=failures.get(origin.id, 0) if origin else 0,
                repairs=sum(int(n) for n in state.get("repairs", {}).values()),
                bytes=sum(int(run.detail.get("bytes", 0)) for run in journal),
                form=str(state.get("format", "")),
                policy=str(state.get("reconciliation", "")),
                losses=tuple(map(str, state.get("loss") or ())),
                last=(last.finished or last.started) if last else None,
                due=next_runs.get(name),
                progress=progress,
            )
        )
    return rows


def jobs(schedule: Schedule, library: Library) -> list[Job]:
    """This node's, and those of the workers where it leaves its jobs to them."""
    by_workers = not library.settings.node.jobs
    return [*schedule.jobs(), *(worker.table(library.store, library.settings) if by_workers else [])]


def _progress(live: Progress | None, journal: Sequence[RunEntry]) -> JsonMapping | None:
    """How far a run is: of this process at first hand, of another one as its journal says."""
    if live is not None:
        done = live.records + live.deleted
        return {"done": done, "size": live.size, "rate": live.rate, "phase": live.phase, "bytes": live.bytes}
    if journal and journal[0].outcome == "running":
        detail = journal[0].detail
        done = int(detail.get("records", 0)) + int(detail.get("deleted", 0))
        seconds = float(detail.get("seconds", 0)) or 1.0
        return {
            "done": done, "size": None, "rate": done / seconds, "phase": "harvesting",
            "bytes": int(detail.get("bytes", 0)),
        }  # fmt: skip
    return None


def _held(store: Store, origin: int) -> bool:
    """Whether some process harvests this origin now: its journal alone would not tell a crash from a run."""
    return store.busy(f"harvest-{origin}")


def _state(source: Source, journal: Sequence[RunEntry], progress: JsonMapping | None) -> str:
    if progress is not None:
        return "running"
    if source.paused:
        return "paused"
    outcome = journal[0].outcome if journal else "new"
    return "interrupted" if outcome == "running" else outcome


@dataclass(frozen=True, slots=True)
class Plot:
    key: str
    now: str
    line: PlotLine
    first: str
    last: str


def plots(t: Strings, runs: Sequence[RunEntry]) -> list[Plot]:
    """A source over time, from its journal: records, bytes and rate of each run, age of the copy."""
    ended = sorted((run for run in runs if run.finished), key=lambda run: run.started)
    if not ended:
        return []
    records = [
        (run.started, float(run.detail.get("records", 0) + run.detail.get("deleted", 0))) for run in ended
    ]
    moved = [(run.started, float(run.detail.get("bytes", 0))) for run in ended]
    rate = [
        (at, count / max(float(run.detail.get("seconds", 0)), 0.001))
        for run, (at, count) in zip(ended, records, strict=True)
    ]
    whole = [run for run in ended if run.outcome == "complete"]
    age = [
        (later.started, later.started - (earlier.finished or earlier.started))
        for earlier, later in itertools.pairwise(whole)
    ]
    found = []
    for key, values, show in (
        ("records", records, lambda v: t.number(int(v))),
        ("bytes", moved, t.size),
        ("rate", rate, lambda v: t("desk.per_second", n=t.number(int(v)))),
        ("freshness", age, t.ago),
    ):
        drawn = line(values)
        if drawn is not None:
            ends = values[0][0], values[-1][0]
            one_day = len(set(map(t.day, ends))) == 1
            found.append(Plot(key, show(drawn.last), drawn, *map(t.stamp if one_day else t.day, ends)))
    return found


def failure(stored: StoredFailure) -> JsonObject:
    """A failure with its raw bytes as text, or as hexadecimal where they are not text."""
    raw = stored.raw[:RAW]
    try:
        shown = raw.decode() if len(stored.raw) <= RAW else raw.decode(errors="ignore")
        if any(c < " " and c not in "\t\r\n" for c in shown):
            raise ValueError("control characters")
    except ValueError:
        shown = hexadecimal(raw)
    return {
        "where": stored.where,
        "stage": stored.stage,
        "reason": stored.reason,
        "at": stored.at,
        "owed": stored.due is not None,
        "attempts": stored.attempts,
        "raw": shown,
        "size": len(stored.raw),
        "cut": len(stored.raw) > RAW,
    }


def hexadecimal(raw: bytes) -> str:
    """A hex dump: offset, sixteen bytes, and what of them is printable."""
    lines = []
    for at in range(0, len(raw), 16):
        row = raw[at : at + 16]
        text = "".join(chr(b) if 32 <= b < 127 else "·" for b in row)
        lines.append(f"{at:06x}  {row.hex(' '):<47}  {text}")
    return "\n".join(lines)


def deletions(store: Store, origin: Origin, limit: int = 50) -> list[JsonObject]:
    """The records that a source withdrew last: what a library that holds a copy has to look after."""
    with store.read() as view:
        return [{"identifier": name, "at": at} for name, at in view.withdrawn(origin.id, limit)]


def hierarchies(store: Store, settings: Settings, totals: Mapping[int, tuple[int, int]]) -> list[JsonObject]:
    """Each hierarchy: what it holds, its last crawl, and its failures by format."""
    with store.read() as view:
        rows = []
        for origin in view.origins("hierarchy"):
            runs = view.runs(origin.id, RUNS)
            failed = list(view.failures(origin.id))
            live, gone = totals.get(origin.id, (0, 0))
            last = runs[0] if runs else None
            rows.append(
                {
                    "name": origin.name,
                    "root": str(origin.settings.get("root", "")),
                    "records": live,
                    "deleted": gone,
                    "failures": len(failed),
                    "by_format": Counter(_suffix(f.where) for f in failed).most_common(),
                    "examples": [failure(f) for f in failed[:FAILURES]],
                    "last": (last.finished or last.started) if last else None,
                    "outcome": last.outcome if last else "new",
                    "detail": last.detail if last else {},
                }
            )
    return rows


def _suffix(where: str) -> str:
    name = where.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return suffix.lower() if dot and stem and len(suffix) <= 8 else "–"


def index_state(library: Library) -> JsonObject:
    store = library.store
    newest, position = follow.lag(store, library.settings.index)
    counted = library.whole().stats(everything=False)
    return {
        "store_bytes": store.size(),
        "path": str(store.local_folder),
        "position": newest,
        "index_position": position,
        "lag": max(newest - position, 0),
        "documents": counted.documents,
        "terms": counted.terms,
        "postings": counted.postings,
        "index_bytes": counted.bytes,
        "segments": counted.segments,
        "removed": counted.deleted,
    }
