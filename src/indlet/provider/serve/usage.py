"""What was harvested, by whom: counted by day for the operations desk, in bounded memory and a small file.

Counts go to the file now and then and when the node ends; what a crash takes with it is a minute of them.
Several processes may count into one file: each adds what it has counted since it last did. Where several
machines use a store, an entry of the store takes the place of the file.
"""

from __future__ import annotations

import fcntl
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from indlet.durable import open_private, write_whole
from indlet.errors import StoreError
from indlet.oai.dates import written
from indlet.provider.serve.repository import OaiAnswer
from indlet.store import Store

NAME: Final = "usage.json"  # without its ending the key of the entry in a store
EVERY: Final = (
    60.0  # seconds between two times that the counts are written, while there is something to count
)
MOST: Final = 5000  # kinds of requests
_AGENT: Final = 120
_LARGEST: Final = 16 << 20  # bytes of a file that may be ours: 5000 lines are far less

_log = logging.getLogger("indlet.provider")


class UsageKind(NamedTuple):
    day: str
    endpoint: str
    verb: str  # empty for requests that were refused as illegal
    prefix: str
    agent: str


class Count(NamedTuple):
    requests: int = 0
    records: int = 0
    bytes: int = 0

    def plus(self, other: Count) -> Count:
        return Count(self.requests + other.requests, self.records + other.records, self.bytes + other.bytes)


Counts = OrderedDict[UsageKind, Count]


class Usage:
    """Counts of requests; when there are too many kinds of them, the longest unseen is forgotten.

    With a folder or a store, the counts of earlier and other processes are there too.
    """

    def __init__(
        self,
        kept: Path | Store | None = None,
        most: int = MOST,
        name: str = NAME,
        oldest: Callable[[], str] = lambda: "",
    ) -> None:
        """`oldest` gives the day before which counts are dropped when they are written; empty: none are."""
        self._most, self._oldest = most, oldest
        self._place: _File | _Entry | None = None
        if kept is not None:
            self._place = (
                _File(kept / name) if isinstance(kept, Path) else _Entry(kept, name.removesuffix(".json"))
            )
        self._guard, self._saving = threading.Lock(), threading.Lock()
        self._new: Counts = OrderedDict()  # since the file was last written
        self._old: Counts = OrderedDict() if self._place is None else self._place.read(most)
        self._due: float | None = None

    def count(self, now: float, extended: bool, answer: OaiAnswer, size: int, agent: str) -> None:
        day, endpoint = written(int(now))[:10], "/ft-oai" if extended else "/oai"
        kind = UsageKind(day, endpoint, answer.verb, answer.prefix, agent[:_AGENT])
        self.add(now, kind, Count(1, answer.records, size))

    def add(self, now: float, kind: UsageKind, count: Count) -> None:
        with self._guard:
            _add(self._new, [(kind, count)], self._most)
            if self._place is None:
                return
            if self._due is None:
                self._due = now + EVERY
            if now < self._due:
                return
            self._due = None
        threading.Thread(target=self.save, name="usage", daemon=True).start()

    def counts(self) -> list[tuple[UsageKind, Count]]:
        """Every kind with its counts, the latest first."""
        with self._guard:
            every = self._old.copy()
            _add(every, self._new.items(), self._most)
        return list(reversed(every.items()))

    def save(self) -> None:
        """Adds what was counted to the file; a file that cannot be written is left for another time."""
        if self._place is None:
            return
        with self._saving:
            with self._guard:
                if not self._new:
                    return
                fresh, self._new = self._new, OrderedDict()
            try:
                every = self._place.add(fresh, self._most, self._oldest())
            except (OSError, StoreError) as e:
                said = e.strerror if isinstance(e, OSError) else str(e)
                _log.warning("%s cannot be written: %s; counts are kept in memory", self._place, said)
                with self._guard:
                    later, self._new = self._new, fresh
                    _add(self._new, later.items(), self._most)
                return
            with self._guard:
                self._old = every


def _add(counts: Counts, more: Iterable[tuple[UsageKind, Count]], most: int) -> None:
    for kind, count in more:
        counts[kind] = counts.pop(kind, Count()).plus(count)
        if len(counts) > most:
            counts.popitem(last=False)


def _since(oldest: str, counts: Counts) -> Counts:
    """The counts that are not older than a day; those of a month go with its last day."""
    return OrderedDict((kind, n) for kind, n in counts.items() if kind.day >= oldest[: len(kind.day)])


class _File:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def add(self, fresh: Counts, most: int, oldest: str) -> Counts:
        """Adds counts to those of the file, which is replaced as a whole; gives all of them."""
        with open_private(self._path.with_suffix(".lock"), "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            every = _since(oldest, self.read(most))
            _add(every, fresh.items(), most)
            write_whole(self._path, _packed(every))
        return every

    def read(self, most: int) -> Counts:
        """The counts of the file; none if there is no such file, or it is not ours."""
        try:
            if self._path.stat().st_size > _LARGEST:
                raise ValueError("it is too large")
            return _unpacked(self._path.read_bytes(), most)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError) as e:
            _log.warning("%s cannot be read: %s; counting begins anew", self._path, e)
        return OrderedDict()


class _Entry:
    """Counts in a store, in one transaction each time."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key

    def __str__(self) -> str:
        return self._store.location

    def add(self, fresh: Counts, most: int, oldest: str) -> Counts:
        with self._store.write() as tx:
            raw = tx.meta_value(self._key, None)
            every = _since(oldest, _unpacked(raw, most)) if raw else OrderedDict()
            _add(every, fresh.items(), most)
            tx.meta(self._key, _packed(every))
        return every

    def read(self, most: int) -> Counts:
        with self._store.read() as view:
            raw = view.meta(self._key)
        return _unpacked(raw, most) if raw else OrderedDict()


def usage_of(store: Store) -> Usage:
    """The counts of a node: in the store where machines share one, else in its folder."""
    return Usage(store if store.shared else store.local_folder)


def _packed(counts: Counts) -> bytes:
    return orjson.dumps([[*kind, *count] for kind, count in counts.items()])


def _unpacked(raw: bytes, most: int) -> Counts:
    counts: Counts = OrderedDict()
    _add(counts, _rows(orjson.loads(raw)), most)
    return counts


def _rows(value: Any) -> Iterator[tuple[UsageKind, Count]]:
    for row in value:
        texts, numbers = row[:5], row[5:]
        if len(row) != 8 or not all(isinstance(text, str) for text in texts):
            raise ValueError("it holds something else")
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError("it holds something else")
        yield UsageKind(*texts), Count(*numbers)
