"""How far the documents of a source are: counts by way and reason, rate, and what is left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from indlet.model import JsonMapping
from indlet.sidecar.links import Reason
from indlet.sidecar.work import SourceFacts, facts_key
from indlet.store import Store
from indlet.wording import amount

RECENT_HOURS: Final = 6
# How the desk calls the reasons.
WORDS: Final = {
    Reason.NO_LINK: "without an address",
    Reason.LANDING_PAGE: "landing page only",
    Reason.LOGIN: "behind a login",
    Reason.REQUEST: "on request",
    Reason.EMBARGO: "under embargo",
    Reason.CAPTCHA: "behind a CAPTCHA",
    Reason.RESTRICTED: "restricted",
    Reason.LICENCE: "under another licence",
    Reason.DISGUISED: "a page instead of the document",
    Reason.ROBOTS: "disallowed by robots.txt",
    Reason.TOO_LARGE: "too large",
    Reason.UNREADABLE: "unreadable",
    Reason.NO_TEXT: "without text",
    Reason.GONE: "gone",
    Reason.UNREACHABLE: "unreachable",
}


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """How far the documents of a source are, for the desk and the command line."""

    records: int = 0
    read: int = 0
    waiting: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    ways: Mapping[str, int] = field(default_factory=dict)
    requests: int = 0
    bytes: int = 0
    per_hour: float = 0.0  # visits
    seconds_left: float | None = None
    held_up: str = ""
    sample: JsonMapping = field(default_factory=dict)


def status_of(store: Store, origin: int, now: float | None = None) -> SourceStatus:
    with store.read() as view:
        counts = view.document_counts(origin)
        facts = SourceFacts.read(view.meta(facts_key(origin)))
    reasons: dict[str, int] = {}
    ways: dict[str, int] = {}
    for count in counts:
        if count.state == "none":
            reasons[count.reason] = reasons.get(count.reason, 0) + count.records
        elif count.state == "read":
            ways[count.way] = ways.get(count.way, 0) + count.records
    waiting = sum(count.records for count in counts if count.state == "waiting")
    hour = int((time.time() if now is None else now) // 3600)
    recent = [values[0] for name, values in facts.hours.items() if hour - int(name) <= 6]
    rate = sum(recent) / len(recent) if recent else 0.0
    return SourceStatus(
        sum(count.records for count in counts), sum(ways.values()), waiting, reasons, ways,
        sum(count.requests for count in counts), sum(count.bytes for count in counts), rate,
        waiting / rate * 3600 if rate and waiting else None, facts.held_up, facts.sample,
    )  # fmt: skip


def describe(status: SourceStatus) -> str:
    """The status in a line: "3,412 of 5,020 with full text; 1,201 landing page only; 407 restricted"."""
    if not status.records:
        return status.held_up
    parts = [f"{status.read:,} of {status.records:,} with full text"]
    reasons = sorted(status.reasons.items(), key=lambda one: -one[1])
    parts += [f"{count:,} {WORDS.get(Reason(reason), reason)}" for reason, count in reasons]
    if status.waiting:
        parts.append(f"{status.waiting:,} waiting")
    if status.per_hour and status.waiting:
        parts.append(f"{status.per_hour:,.0f} an hour")
    if status.seconds_left is not None:
        parts.append(f"about {duration(status.seconds_left)} left")
    if status.held_up:
        parts.append(f"held up: {status.held_up}")
    return "; ".join(parts)


def duration(seconds: float) -> str:
    """A length of time as people say it."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return amount(round(seconds / length), unit)
    return amount(max(round(seconds), 1), "second")
