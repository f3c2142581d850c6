"""Records that failed are owed: when each is asked for again, and which in one run. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from indlet.store import OpenFailure

# A record is asked for again after half the time for which it has been owed: hours at first where a source is
# harvested by the hour, days where by the day; never less often than this.
LONGEST_PAUSE: Final = 30 * 86400
SHORTEST_PAUSE: Final = 60  # seconds: less is no pause
# In one run: requests in all, and requests in vain.
REQUESTS: Final = 1000
IN_VAIN: Final = 100
# Requests in vain in a row: then it is the source, and not the record.
IN_A_ROW: Final = 20


def next_try(first: int, now: int) -> int:
    """When to ask again for a record that first failed then, and failed again now."""
    pause = (now - first) // 2
    return now if pause < SHORTEST_PAUSE else now + min(pause, LONGEST_PAUSE)


def due_now(failures: Iterable[OpenFailure], now: int) -> list[str]:
    """The identifiers to ask for in this run, the longest due first."""
    # A time further ahead than any pause was set by a clock that was wrong.
    due = [f for f in failures if f.due is not None and not now < f.due <= now + LONGEST_PAUSE]
    due.sort(key=lambda f: f.due or 0)
    return [f.where for f in due[:REQUESTS]]
