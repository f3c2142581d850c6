"""What was harvested, by whom: counted by day in bounded memory, for the operations desk."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, NamedTuple

from indlet.oai.dates import written
from indlet.provider.serve.repository import Answer

_MOST: Final = 5000
_AGENT: Final = 120


class Kind(NamedTuple):
    day: str
    endpoint: str
    verb: str  # empty for requests that were refused as illegal
    prefix: str
    agent: str


class Count(NamedTuple):
    requests: int = 0
    records: int = 0
    bytes: int = 0


class Usage:
    """Counts of requests; when there are too many kinds of them, the longest unseen is forgotten."""

    def __init__(self) -> None:
        self._counts: OrderedDict[Kind, Count] = OrderedDict()
        self._guard = threading.Lock()

    def count(self, now: float, extended: bool, answer: Answer, size: int, agent: str) -> None:
        day, endpoint = written(int(now))[:10], "/ft-oai" if extended else "/oai"
        kind = Kind(day, endpoint, answer.verb, answer.prefix, agent[:_AGENT])
        with self._guard:
            old = self._counts.pop(kind, Count())
            self._counts[kind] = Count(old.requests + 1, old.records + answer.records, old.bytes + size)
            if len(self._counts) > _MOST:
                self._counts.popitem(last=False)

    def counts(self) -> list[tuple[Kind, Count]]:
        """Every kind with its counts, the latest first."""
        with self._guard:
            return list(reversed(self._counts.items()))
