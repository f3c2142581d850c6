"""Whether a list goes in circles, though no two of its pages are the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# How often, on average, a page's identifiers must come again on later pages. Pages that overlap bring some of
# them twice, and a list that is sorted by sets brings a record once for each of its sets.
ROUNDS: Final = 6


class LoopDetector:
    """One page of a list is kept, a later one at each power of two: in a circle its identifiers come again
    and again. The memory is that of one page, and a circle is found within some ten times its length."""

    def __init__(self) -> None:
        self._pages = 0
        self._kept: frozenset[str] = frozenset()
        self._again = 0

    def add(self, identifiers: Iterable[str]) -> bool:
        """Take the next page; whether the list is known by now to go in circles."""
        page = frozenset(identifiers)
        if not page:
            return False
        self._again += len(self._kept & page)
        if self._kept and self._again >= ROUNDS * len(self._kept):
            return True
        self._pages += 1
        if self._pages & (self._pages - 1) == 0:
            self._kept, self._again = page, 0
        return False
