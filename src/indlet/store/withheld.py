"""Deletions that wait: a source that loses most of its records at once has more likely lost its disk.

What would go is still shown, additions go on, and an operator releases the deletions or keeps the records.
A record that its origin gives again is not deleted, and its deletion is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from indlet.errors import StoreError
from indlet.model import Record
from indlet.store.contract import Origin, Store, Transaction, Withheld

ALERT: Final = "deletions"
# In the detail of a deletion: the source has reviewed it, by its own limits or its operator.
REVIEWED: Final = "reviewed"
_BATCH: Final = 4000
_EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class WaitingDeletions:
    """Of one source or hierarchy: how many deletions wait, of how many records."""

    source: str
    kind: str
    waiting: int
    kept: int
    live: int
    examples: tuple[str, ...]


def too_many(gone: int, live: int, share: float, records: int) -> bool:
    """Whether so many deletions out of so many live records are more than may happen by themselves."""
    return gone > records and gone > share * live


def raise_alert(tx: Transaction, source: str, gone: int, live: int) -> None:
    tx.alert(
        ALERT, source, "",
        f"{gone:,} of {live:,} records are said to be deleted, or are gone; they are still shown",
        f"see whether that is meant:  indlet deletions --release {source}  or  --keep {source}",
    )  # fmt: skip


def settle(store: Store, origin: Origin, share: float, records: int) -> tuple[int, int]:
    """After a run that came to its end: (deletions carried out, deletions that wait for an operator).

    Deletions that the source itself has reviewed do not count, and do not wait.
    """
    with store.read() as view:
        gone = unreviewed = view.withheld_counts().get(origin.id, (0, 0))[0]
        if gone > records:
            rows = [row for row in view.withheld(origin.id) if not row.kept_by]
            unreviewed = sum(not row.detail.get(REVIEWED) for row in rows)
        live = view.totals().get(origin.id, (0, 0))[0] if unreviewed > records else 0
    live -= gone - unreviewed
    if too_many(unreviewed, live, share, records):
        with store.write() as tx:
            raise_alert(tx, origin.name, unreviewed, live)
        return carry_out(store, origin, reviewed_only=True), unreviewed
    with store.write() as tx:
        tx.resolve_alerts(ALERT, origin.name, [""])
    return (carry_out(store, origin) if gone else 0), 0


def carry_out(store: Store, origin: Origin, *, reviewed_only: bool = False) -> int:
    """Delete what waits; how many records there were.

    A harvest may go on beside: what it brings again meanwhile, or somebody decides to keep, is left alone.
    """
    with store.read() as view:
        rows = [row for row in view.withheld(origin.id) if not row.kept_by]
    names = [row.identifier for row in rows if row.detail.get(REVIEWED) or not reviewed_only]
    count = 0
    for start in range(0, len(names), _BATCH):
        with store.write() as tx:
            tx.become_only_writer()
            with store.read() as view:
                waiting = view.withheld(origin.id, names[start : start + _BATCH])
            part = sorted((row for row in waiting if not row.kept_by), key=lambda row: row.identifier)
            # Where nothing is said about the deleted record, it keeps the sets that it had.
            count += tx.put(origin.id, [_tombstone(row) for row in part if row.detail])
            count += tx.delete(origin.id, [row.identifier for row in part if not row.detail])
            tx.drop_withheld(origin.id, [row.identifier for row in part])
    return count


def waiting_deletions(store: Store) -> list[WaitingDeletions]:
    found = []
    with store.read() as view:
        counts = view.withheld_counts()
        totals = view.totals() if counts else {}
        for origin in view.origins():
            if origin.id in counts:
                waiting, kept = counts[origin.id]
                rows = [row.identifier for row in view.withheld(origin.id) if not row.kept_by]
                live = totals.get(origin.id, (0, 0))[0]
                names = tuple(rows[:_EXAMPLES])
                found.append(WaitingDeletions(origin.name, origin.kind, waiting, kept, live, names))
    return found


def release(store: Store, source: str) -> int:
    """An operator lets the deletions of a source happen; how many records are gone."""
    count = sum(carry_out(store, origin) for origin in _origins(store, source))
    with store.write() as tx:
        tx.resolve_alerts(ALERT, source, [""])
    return count


def keep(store: Store, source: str, by: str) -> int:
    """An operator keeps the records of a source whose deletions wait; how many."""
    origins = _origins(store, source)
    with store.read() as view:
        counts = view.withheld_counts()
    with store.write() as tx:
        for origin in origins:
            tx.keep_withheld(origin.id, by)
        tx.resolve_alerts(ALERT, source, [""])
    return sum(counts[origin.id][0] for origin in origins)


def _origins(store: Store, source: str) -> list[Origin]:
    with store.read() as view:
        counts = view.withheld_counts()
        found = [o for o in view.origins() if o.name == source and counts.get(o.id, (0, 0))[0]]
    if not found:
        raise StoreError(f"no deletions of {source!r} wait; see  indlet deletions")
    return found


def _tombstone(row: Withheld) -> Record:
    sets = tuple(row.detail.get("sets", ()))
    return Record(row.identifier, sets=sets, deleted=True, properties=row.detail.get("properties", {}))
