"""What came of resources, put into the store in batches: each is one transaction, all of it or none."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from indlet.model import Failure, Record
from indlet.provider.answered import ANSWERED
from indlet.provider.crawl import Work
from indlet.provider.set_rules import SetRules
from indlet.provider.source import RecordSource
from indlet.store import FileState, Store, Transaction

BATCH_RESOURCES = 500
BATCH_RECORDS = 5000
BATCH_SECONDS = 2.0
# Results that may wait for an earlier one.
HELD_BACK = 4 * BATCH_RESOURCES


@dataclass
class ResourceResult:
    """What a transaction makes of a resource."""

    work: Work
    records: list[Record]
    rows: list[FileState]
    failures: list[Failure]
    forgiven: list[str]
    keep: bool = False  # the records stay; only the state of the files is brought up to date


class Batches:
    """Collects results and commits them; counts the records that were written and deleted."""

    def __init__(
        self, store: Store, origin: int, source: RecordSource, rules: SetRules, guarded: int | None = None
    ) -> None:
        """`guarded` is the origin of records that are not for everybody, where there can be any."""
        self._store, self._origin, self._source, self._rules = store, origin, source, rules
        self._guarded = origin if guarded is None else guarded
        self._origins = (origin,) if guarded is None else (origin, guarded)
        self._batch: list[ResourceResult] = []
        self._records = 0
        self._flushed = time.monotonic()
        self._sets: set[tuple[int, str]] = set()
        self.written = 0
        self.deleted = 0

    def add(self, result: ResourceResult) -> None:
        if self._rules.rules:
            result.records = [self._in_sets(record) for record in result.records]
        self._batch.append(result)
        self._records += len(result.records)

    def _in_sets(self, record: Record) -> Record:
        found = dict(self._rules.of(record.metadata))
        # Who is in a set is in those above it: only the narrowest are stated.
        narrow = [spec for spec in found if not any(other.startswith(f"{spec}:") for other in found)]
        return replace(record, sets=tuple(dict.fromkeys((*record.sets, *narrow))))

    def flush_if_due(self, under_way: Iterable[int] = ()) -> None:
        """Flush from time to time. `under_way` are the datestamps of what is still being read."""
        if (
            len(self._batch) >= BATCH_RESOURCES
            or self._records >= BATCH_RECORDS
            or time.monotonic() - self._flushed > BATCH_SECONDS
        ):
            first = min(under_way, default=None)
            # What comes after something slow waits for it, or the slow one would lose its datestamp.
            late = [] if first is None else [r for r in self._batch if (self._date(r) or first) > first]
            if len(late) > HELD_BACK:
                late = []
            held = set(map(id, late))
            self._batch = [result for result in self._batch if id(result) not in held]
            self.flush()
            self._batch = late
            self._records = sum(len(result.records) for result in late)

    def flush(self) -> None:
        self._flushed = time.monotonic()
        if not self._batch:
            return
        batch, self._batch, self._records = self._batch, [], 0
        stale: dict[int, list[str]] = {origin: [] for origin in self._origins}
        with self._store.read() as view:
            for result in batch:
                if result.work.known and not result.keep:
                    made = {record.identifier for record in result.records}
                    for origin in self._origins:
                        kept = made if origin == self._home(result.work) else ()
                        mine = view.documents(origin, result.work.identifier)
                        stale[origin] += [identifier for identifier in mine if identifier not in kept]
        with self._store.write() as tx:
            written = self._put(tx, batch)
            self._name_sets(tx, batch)
            deleted = sum(tx.delete(origin, names) for origin, names in stale.items())
            for result in batch:
                tx.drop_files(self._origin, result.work.gone)
                tx.forgive(self._origin, result.forgiven)
                for failure in result.failures:
                    tx.fail(self._origin, failure)
            tx.put_files(self._origin, [row for result in batch for row in result.rows])
        self.written += written
        self.deleted += deleted

    def _put(self, tx: Transaction, batch: list[ResourceResult]) -> int:
        dated, others = [], []
        for result in batch:
            date = self._date(result)
            for record in result.records:
                if date is None:
                    others.append(record)
                else:
                    dated.append((self._home(result.work), date, record))
        return tx.put_dated(dated, tx.meta_value(ANSWERED, 0)) + tx.put(self._origin, others)

    def _date(self, result: ResourceResult) -> int | None:
        return self._source.datestamp(result.work.resource)

    def _home(self, work: Work) -> int:
        """The origin that a resource's records belong to."""
        guarded = any(entry.served is not None and entry.served.guarded for entry in work.resource.files)
        return self._guarded if guarded else self._origin

    def _name_sets(self, tx: Transaction, batch: list[ResourceResult]) -> None:
        for result in batch:
            found = dict(self._source.sets(result.work.resource)) if result.records else {}
            for record in result.records:
                found.update(self._rules.of(record.metadata))
            origin = self._home(result.work)
            for spec, name in found.items():
                if (origin, spec) not in self._sets:
                    self._sets.add((origin, spec))
                    tx.name_set(origin, spec, name)

    def delete(self, gone: Mapping[str, list[str]], moved: set[str]) -> None:
        """Delete resources and the state of their files; `moved` files belong to another resource now."""
        resources = list(gone.items())
        for start in range(0, len(resources), BATCH_RESOURCES):
            chunk = resources[start : start + BATCH_RESOURCES]
            with self._store.read() as view:
                stale = {
                    origin: [i for name, _ in chunk for i in view.documents(origin, name)]
                    for origin in self._origins
                }
            paths = [path for _, found in chunk for path in found if path not in moved]
            with self._store.write() as tx:
                self._put(tx, [])
                self.deleted += sum(tx.delete(origin, names) for origin, names in stale.items())
                tx.drop_files(self._origin, paths)
                tx.forgive(self._origin, paths)
