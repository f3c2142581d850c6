"""What a run has done so far: written by its thread, read by whoever shows it, kept in the journal."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from indlet.model import JsonObject


class RunOutcome(StrEnum):
    """How a run ended; the values are those of the journal and of JSON."""

    RUNNING = "running"  # in the journal: it has not ended, or was killed
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class Phase(StrEnum):
    """What a run is doing until it has an outcome."""

    WAITING = "waiting"  # for a slot
    STARTING = "starting"
    NEGOTIATING = "negotiating"
    HARVESTING = "harvesting"
    RETRYING = "retrying"
    RECONCILING = "reconciling"


@dataclass(slots=True)
class Progress:
    """The counts of one run over one source."""

    source: str
    phase: Phase = Phase.WAITING
    records: int = 0
    deleted: int = 0
    changed: int = 0
    failed: int = 0
    owed: int = 0  # records that failed, in this run or before, and are still to come
    withheld: int = 0  # deletions that wait for an operator
    pages: int = 0
    requests: int = 0
    bytes: int = 0
    size: int | None = None  # what the list holds, as the source says
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    repairs: Counter[str] = field(default_factory=Counter)
    outcome: RunOutcome | None = None  # None: it has not ended
    reason: str = ""
    warning: str = ""  # what is suspicious about a run that is complete
    store_lost: bool = False  # the store did not answer: the run can go on as soon as it does
    form: str = ""
    trouble: str = ""  # what the run waits for, until the next page comes

    @property
    def repaired(self) -> int:
        return sum(self.repairs.values())

    @property
    def seconds(self) -> float:
        return max((self.ended or time.monotonic()) - self.started, 1e-9)

    @property
    def rate(self) -> float:
        return (self.records + self.deleted) / self.seconds

    @property
    def remaining(self) -> int | None:
        return None if self.size is None else max(self.size - self.records - self.deleted, 0)

    @property
    def ok(self) -> bool:
        """Whether the run was a full success: the lists were read to their end, no record is owed, and no
        deletion waits for an operator."""
        return self.outcome is RunOutcome.COMPLETE and not (self.failed or self.owed or self.withheld)

    def fail(self, reason: str) -> None:
        self.outcome, self.reason = RunOutcome.FAILED, reason

    def to_json(self) -> JsonObject:
        return {
            "source": self.source,
            "outcome": self.outcome or "",
            "reason": self.reason,
            "warning": self.warning,
            "format": self.form,
            "records": self.records,
            "deleted": self.deleted,
            "changed": self.changed,
            "failed": self.failed,
            "owed": self.owed,
            "withheld": self.withheld,
            "repairs": dict(self.repairs),
            "pages": self.pages,
            "requests": self.requests,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 3),
        }
