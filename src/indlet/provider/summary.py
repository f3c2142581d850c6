"""What came of crawling one hierarchy: shown while it runs, journalled when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from indlet.provider.crawl import NAMED, Survey
from indlet.provider.hierarchy import shown
from indlet.store import Transaction, View, kept_tables


@dataclass
class Summary:
    """`outcome`: running, then complete, partial, unreachable or interrupted."""

    hierarchy: str
    root: str
    outcome: str = "running"
    reason: str = ""
    files: int = 0
    unchanged: int = 0
    touched: int = 0  # read and found equal
    read: int = 0
    records: int = 0  # new or changed
    deleted: int = 0
    echoes: int = 0  # records of others that a catalogue exports again: left out
    withheld: int = 0  # deletions that wait for an operator
    failed: int = 0  # in this run
    failures: int = 0  # all that stand
    warnings: int = 0  # of files that were read all the same; all that stand
    skipped: dict[str, int] = field(default_factory=dict)  # reason -> how many
    named: list[tuple[str, str]] = field(default_factory=list)  # the first of them: path, reason
    unread: dict[str, str] = field(default_factory=dict)  # folder -> why it could not be listed
    bytes: int = 0
    seconds: float = 0.0
    total: int | None = None  # resources to be looked into, as far as that is known
    done: int = 0
    idle: bool = False  # complete, and nothing was done

    @property
    def status(self) -> int:
        """The exit status for it: 0 full success, 3 with failures, 1 where the hierarchy was not read."""
        if self.outcome in ("unreachable", "interrupted"):
            return 1
        return 3 if self.unread or self.failures or self.withheld else 0

    def take(self, found: Survey) -> None:
        """Bring the numbers of the walk up to date."""
        self.files, self.unchanged = found.files, found.unchanged
        self.skipped, self.named = dict(found.skipped), found.left_out[:NAMED]
        self.unread = {shown(folder) or "/": reason for folder, reason in found.unread.items()}

    def end(self, outcome: str, seconds: float) -> None:
        self.outcome, self.seconds = outcome, seconds
        done = self.records or self.deleted or self.withheld or self.failed or self.touched
        self.idle = outcome == "complete" and not done


def keep_left_out(tx: Transaction, origin: int, found: Survey) -> None:
    """Note in the store what a crawl left out, and why."""
    rows = [kept_tables.LeftOut(origin, n, path, why) for n, (path, why) in enumerate(sorted(found.left_out))]
    known = tx.select(kept_tables.LEFT_OUT, origin=origin)
    tx.upsert(kept_tables.LEFT_OUT, set(rows) - set(known))
    for row in known[len(rows) :]:
        tx.remove(kept_tables.LEFT_OUT, origin=origin, number=row.number)


def left_out_of(view: View, origin: int) -> list[tuple[str, str]]:
    """(path, reason) of what the last crawl left out."""
    return [(row.path, row.reason) for row in view.select(kept_tables.LEFT_OUT, origin=origin)]


Report = Callable[[Summary], None]
