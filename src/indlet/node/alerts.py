"""What waits for somebody: each alert with its record, its source, the time, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from indlet.errors import StoreError
from indlet.oai.dates import written
from indlet.store import Store, StoredAlert

# What there are alerts about, and how people call it.
KINDS: Final = {
    "deleted": "a record that was written out was deleted at its origin",
    "changed": "a record that was written out was changed at its origin",
    "returned": "a record that was deleted is there again",
    "rewritten": "files that were written again because [[write]] changed",
    "translation": "a record that cannot be translated, or lost a required field",
    "duplicates": "records that may be of one work",
    "silent": "a source that was not harvested for longer than its interval",
    "twice": "an origin that is held under two names",
    "folder": "a folder that cannot be read or written",
    "deletions": "deletions that wait for an operator",
}


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that people have to do. `acknowledged_by`: who has seen to it, and when."""

    id: int
    kind: str
    source: str
    record: str
    at: str
    reason: str
    remedy: str
    acknowledged_by: str = ""
    acknowledged: str = ""


def alerts(store: Store, *, acknowledged: bool = False) -> Iterator[Alert]:
    """What waits, oldest first; with `acknowledged` also what somebody has seen to."""
    with store.read() as view:
        found = view.alerts(acknowledged=acknowledged)
    return map(_shown, found)


def acknowledge(store: Store, which: str, by: str) -> int:
    """Somebody has seen to the alerts of a number, or about a record or source; how many there were."""
    if not by.strip():
        raise StoreError("an alert is acknowledged by somebody: give a name")
    with store.write() as tx:
        with store.read() as view:
            mine = [
                a.id
                for a in view.alerts()
                if which in (str(a.id), a.record, a.source if not a.record else "")
            ]
        count = sum(tx.acknowledge(alert, by.strip()) for alert in mine)
    if not count:
        raise StoreError(f"no alert about {which!r} is open; see  indlet alerts")
    return count


def _shown(alert: StoredAlert) -> Alert:
    seen = written(alert.acknowledged) if alert.acknowledged is not None else ""
    return Alert(
        alert.id, alert.kind, alert.source, alert.record or alert.source, written(alert.at), alert.reason,
        alert.remedy, alert.acknowledged_by, seen,
    )  # fmt: skip
