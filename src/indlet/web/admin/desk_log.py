"""Who did what at the desk: the latest acts in the store, and a line of the node's log for each.

The table is bounded: who must keep every act keeps the node's log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from indlet import logs
from indlet.store import Store, TableReader, kept_tables
from indlet.web.auth import Session

KEPT: Final = 2000  # acts
_LONGEST: Final = 300  # characters of what was said


class LoggedAct(NamedTuple):
    at: float
    user: str
    role: str
    client: str
    act: str
    what: str  # the source, or what else it was done to
    outcome: str  # "done", or why it could not be


class DeskLog:
    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    def add(self, act: str, session: Session, client: str, what: str = "", outcome: str = "done") -> None:
        what, outcome = what[:_LONGEST], outcome[:_LONGEST]
        entry = LoggedAct(self._clock(), session.user, session.role, client, act, what, outcome)
        logs.event(
            "desk", logging.INFO, act=act, user=session.user, role=session.role, client=client, what=what,
            outcome=outcome,
        )  # fmt: skip
        with self._store.write() as tx:
            kept = [row.number for row in tx.select(kept_tables.DESK_LOG)]
            for number in kept[: -KEPT + 1]:
                tx.remove(kept_tables.DESK_LOG, number=number)
            tx.upsert(kept_tables.DESK_LOG, [kept_tables.StoredAct(max(kept, default=0) + 1, *entry)])

    def entries(self, limit: int = KEPT) -> list[LoggedAct]:
        """The latest acts, newest first."""
        with self._store.read() as view:
            return entries_of(view, limit)


def entries_of(view: TableReader, limit: int = KEPT) -> list[LoggedAct]:
    return [LoggedAct(*row[1:]) for row in view.select(kept_tables.DESK_LOG)[::-1][:limit]]
