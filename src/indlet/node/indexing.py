"""The index job: keeps the index in step with the store while a node serves, without holding up a page.

A few changes are applied here, which takes milliseconds. More of them would keep the interpreter from the
requests for seconds: those are applied by a process of lower priority, which stays as long as changes come,
such as those of a harvest. Merges are always that process's work, for they may be of any size.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Final

import orjson

from indlet.errors import IndexBusy, StoreError
from indlet.node import children
from indlet.service.index import follow, indexer
from indlet.service.records.stored_policy import policy_for
from indlet.settings import Settings
from indlet.store import Store
from indlet.text import Analyzer

EVERY: Final = "3s"  # between looks, when nobody wakes the job
FEW: Final = 300  # changes that take this process less than the 50 ms that a page may take
HERE: Final = 8  # times that changes are applied here before the process joins their segments
IDLE: Final = 15.0  # seconds without a change after which the process ends: it takes 0.5 s to start another


class IndexJob:
    """Work for the schedule: brings the index up to the store, here or in another process."""

    def __init__(self, store: Store, settings: Settings, *, few: int = FEW, idle: float = IDLE) -> None:
        self._store, self._settings = store, settings
        self._few, self._idle = few, idle
        self._here = 0

    def __call__(self, stop: threading.Event) -> None:
        newest, position = follow.lag(self._store, self._settings.index)
        if newest == position:
            return
        try:
            if position >= 0 and 0 <= newest - position <= self._few and self._here < HERE:
                self._here += 1
                follow.catch_up(
                    self._store, analyzer=self._analyzer, merges=False, engine=self._settings.index
                )
            else:
                self._here = 0
                # An index that is made anew is seen when its process ends: that must not wait for quiet.
                idle = self._idle if position >= 0 else 0.0
                index_in_child(self._store, self._settings, stop, idle=idle)
        except IndexBusy:
            pass  # another process is at it

    @cached_property
    def _analyzer(self) -> Analyzer:
        return Analyzer(policy_for(self._store, self._settings.analysis))


def index_in_child(
    store: Store,
    settings: Settings,
    stop: threading.Event | None = None,
    *,
    rebuild: bool = False,
    idle: float = 0.0,
) -> follow.CaughtUp | None:
    """Brings the index up to the store in a process of its own, or makes it anew; None if `stop` ended that.

    IndexBusy if another process is indexing, StoreError for what the child says.
    """
    said: list[bytes] = []
    policy = policy_for(store, settings.analysis)
    task = indexer.IndexTask(store.url, store.local_folder.absolute(), policy, settings.index, rebuild, idle)
    status = children.run(indexer.__name__, task, said.append, stop)
    words = b"".join(said).decode(errors="replace").strip()[:4000]
    if status == indexer.BUSY:
        raise IndexBusy(words)
    if status == 0 and words:
        return follow.CaughtUp(*orjson.loads(words))
    if stop is not None and stop.is_set():
        return None
    raise StoreError(words or f"the indexing process ended with status {status}; see the log")
