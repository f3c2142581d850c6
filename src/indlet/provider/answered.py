"""When lists are answered: a record dated earlier than an answer that does not show it would be missed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from indlet.store import Store


class Answered:
    """Notes each second in which lists are answered once (`Store.note_answer`)."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        self._until = 0
        self._guard = threading.Lock()

    def note(self) -> None:
        """To be called before a list is read."""
        with self._guard:
            now = int(self._clock())
            if now > self._until:
                self._store.note_answer(now)
                self._until = now
