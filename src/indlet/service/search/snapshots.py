"""The snapshot that questions are answered from: the newest one that is ready.

A commit may bring a merged segment of a hundred megabytes. To open and check it, and to find out which of all
records stand for one resource, takes a good part of a second on a busy machine, and each question that came
meanwhile would do it over again. So one thread does it beside the questions, which are answered from the
snapshot before until the new one is ready.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait

from indlet.service.index import Index, Searcher


class Snapshots:
    """Hands out searchers. `prepare` does to a new one what every question would have to do otherwise.

    With `patience`, whoever comes upon a commit waits so many seconds at most, which is enough for a small
    index, and is then answered from the snapshot before. With None questions wait, and see the last commit.
    """

    def __init__(
        self, index: Index, prepare: Callable[[Searcher], object], patience: float | None = None
    ) -> None:
        self._index = index
        self._prepare = prepare
        self._patience = patience
        self._guard, self._making = threading.Lock(), threading.Lock()
        self._held: tuple[Hashable, Searcher] | None = None
        self._renewal: Future[Searcher] | None = None

    def newest(self) -> Searcher:
        """The newest snapshot, or the one before while that is being made ready; IndexDamaged if there is
        none to be had.
        """
        held = self._held
        if held is not None and held[0] == self._index.version():
            return held[1]
        if held is None or self._patience is None:
            return self._renewed()
        with self._guard:
            renewal = self._renewal
            begun = renewal is None
            if renewal is None:
                renewal = Future()
                threading.Thread(target=self._renew, args=(renewal,), name="snapshot", daemon=True).start()
                self._renewal = renewal  # not before its thread is there, or nobody would ever end it
        if begun:  # whoever comes upon a change waits a little; the others need not
            wait([renewal], self._patience)
        if not renewal.done():
            return held[1]
        self._over(renewal)
        return renewal.result()  # or what went wrong, which may be a TimeoutError of the disk or the network

    def close(self) -> None:
        with self._making:
            self._index.close()

    def _over(self, renewal: Future[Searcher]) -> None:
        with self._guard:
            if self._renewal is renewal:
                self._renewal = None

    def _renew(self, renewal: Future[Searcher]) -> None:
        try:
            found = self._renewed()
        except BaseException as e:  # the next question is told
            renewal.set_exception(e)
        else:
            renewal.set_result(found)

    def _renewed(self) -> Searcher:
        with self._making:
            version, held = self._index.version(), self._held
            if held is not None and held[0] == version:
                return held[1]
            searcher = self._index.searcher()
            self._prepare(searcher)
            self._held = version, searcher
            return searcher
