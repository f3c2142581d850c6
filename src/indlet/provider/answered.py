"""The store's note of when lists were last answered: a record dated earlier would be missed from then on.

The note is made before the answer reads the store, and under the store's write lock: a commit either knows of
the answer, or is seen by it. One answer a second writes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from indlet.store import Store

ANSWERED: Final = "answered"  # the last second in which a list may have been answered


class Answered:
    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        self._until = 0
        self._guard = threading.Lock()

    def note(self) -> None:
        """To be called before a list is read. StoreError where the store may not be written."""
        with self._guard:
            now = int(self._clock())
            if now > self._until:
                with self._store.write() as tx:
                    tx.meta(ANSWERED, max(now, tx.meta_value(ANSWERED, 0)))
                self._until = now
