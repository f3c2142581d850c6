"""Which run is next: so many sources at once, none twice at a time, and none waits for a dead one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from indlet.service.harvest.progress import Progress

# A source from which nothing has come for so long does not count among those that are harvested at once.
STILL_SECONDS: Final = 2.0
# But no more than this many times that number are waited for.
WAITED_FOR: Final = 8


class RunQueue:
    """The runs that are to be done, by their progress. Workers take them; `more_workers`: when to add one."""

    def __init__(self, runs: Sequence[Progress], at_once: int, clock: Callable[[], float]) -> None:
        self._runs = runs
        self._at_once = max(at_once, 1)
        self._clock = clock
        self._waiting = list(range(len(runs)))
        self._under_way: dict[int, tuple[tuple[object, ...], float]] = {}
        self._guard = threading.Lock()

    def take(self) -> int | None:
        """The number of a run for a worker to do; None if there is none for it."""
        with self._guard:
            busy = {self._runs[number].source for number in self._under_way}
            for number in self._waiting:
                if self._runs[number].source not in busy:
                    self._waiting.remove(number)
                    self._under_way[number] = (), self._clock()
                    return number
            return None

    def done(self, number: int) -> None:
        with self._guard:
            del self._under_way[number]

    def more_workers(self) -> bool:
        """Whether another worker would find something to do, and no more than it should."""
        now = self._clock()
        with self._guard:
            moving = 0
            for number, (last, since) in self._under_way.items():
                run = self._runs[number]
                sign = (run.phase, run.requests, run.pages, run.records, run.deleted, run.failed)
                if sign != last:
                    since = now
                    self._under_way[number] = sign, now
                moving += now - since < STILL_SECONDS
            busy = {self._runs[number].source for number in self._under_way}
            return (
                moving < self._at_once
                and len(self._under_way) < WAITED_FOR * self._at_once
                and any(self._runs[number].source not in busy for number in self._waiting)
            )


__all__ = ["RunQueue"]
