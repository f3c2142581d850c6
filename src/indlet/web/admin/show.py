"""The numbers of the desk's pages, as the templates take them."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indlet.extension import extensions
from indlet.model import JsonObject
from indlet.node.schedule import Job, Schedule
from indlet.service.index import follow
from indlet.service.search.library import Library
from indlet.settings import Settings
from indlet.store import Origin, RunEntry, Store, StoredFailure
from indlet.web.i18n import Strings
from indlet.web.svg import PlotLine, line

RAW: Final = 4000  # bytes of a failure's raw form that a page shows
GROUPS: Final = 50  # reasons that a page shows
EXAMPLES: Final = 10  # failures of each
MOST_FAILURES: Final = 50_000  # that are counted
MOST_RETRIED: Final = 1000  # at a time
_NUMBERS: Final = re.compile(r"\b(?:line|column|byte|offset) \d+|:\d+:\d+")  # places within a response
RUNS: Final = 200


def jobs(schedule: Schedule, library: Library) -> list[Job]:
    """This node's, and those of the workers where it leaves its jobs to them."""
    if library.settings.node.jobs:
        return schedule.jobs()
    others = (extension.other_jobs(library.store, library.settings) for extension in extensions())
    return [*schedule.jobs(), *(job for found in others for job in found)]


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


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures with one reason; the first of them in full."""

    stage: str
    reason: str
    count: int
    owed: int  # of these, the ones that are asked for again
    examples: list[JsonObject]

    @property
    def key(self) -> str:
        """Names the group in a form."""
        return f"{self.stage}: {self.reason}"


def failure_groups(failures: Iterable[StoredFailure]) -> list[FailureGroup]:
    """Failures by reason, the most frequent first. What a reason says of its own record does not count."""
    counts, owed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    examples = dict[tuple[str, str], list[JsonObject]]()
    for one in itertools.islice(failures, MOST_FAILURES):
        key = (one.stage, _common_reason(one))
        counts[key] += 1
        owed[key] += one.due is not None
        if len(shown := examples.setdefault(key, [])) < EXAMPLES:
            shown.append(failure(one))
    return [FailureGroup(*key, count, owed[key], examples[key]) for key, count in counts.most_common(GROUPS)]


def failed_records(failures: Iterable[StoredFailure], group: str) -> list[str]:
    """The records of a group that are asked for again."""
    wanted = (f for f in failures if f.due is not None and f"{f.stage}: {_common_reason(f)}" == group)
    return [one.where for one in itertools.islice(wanted, MOST_RETRIED)]


def _common_reason(one: StoredFailure) -> str:
    return _NUMBERS.sub("…", one.reason.replace(one.where, "…")) if one.where else one.reason


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
                    "groups": failure_groups(failed),
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
