"""What came of resources, put into the store in batches: each is one transaction, all of it or none."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from indlet.model import Failure, Record
from indlet.provider.crawl import Work
from indlet.provider.set_rules import SetRules
from indlet.provider.source import RecordSource
from indlet.store import FileState, Store, Transaction

BATCH_RESOURCES = 500
BATCH_RECORDS = 5000
BATCH_SECONDS = 2.0


@dataclass
class Result:
    """What a transaction makes of a resource."""

    work: Work
    records: list[Record]
    rows: list[FileState]
    failures: list[Failure]
    forgiven: list[str]
    keep: bool = False  # the records stay; only the state of the files is brought up to date


class Batches:
    """Collects results and commits them; counts the records that were written and deleted."""

    def __init__(self, store: Store, origin: int, source: RecordSource, rules: SetRules) -> None:
        self._store, self._origin, self._source, self._rules = store, origin, source, rules
        self._batch: list[Result] = []
        self._records = 0
        self._flushed = time.monotonic()
        self._sets: set[str] = set()
        self._named: dict[str, str] = {}  # sets by rules, not named in the store yet
        self.written = 0
        self.deleted = 0

    def add(self, result: Result) -> None:
        if self._rules.rules:
            result.records = [self._in_sets(record) for record in result.records]
        self._batch.append(result)
        self._records += len(result.records)

    def _in_sets(self, record: Record) -> Record:
        found = dict(self._rules.of(record.metadata))
        self._named.update(found)
        # Who is in a set is in those above it: only the narrowest are stated.
        narrow = [spec for spec in found if not any(other.startswith(f"{spec}:") for other in found)]
        return replace(record, sets=tuple(dict.fromkeys((*record.sets, *narrow))))

    def flush_if_due(self) -> None:
        if (
            len(self._batch) >= BATCH_RESOURCES
            or self._records >= BATCH_RECORDS
            or time.monotonic() - self._flushed > BATCH_SECONDS
        ):
            self.flush()

    def flush(self) -> None:
        self._flushed = time.monotonic()
        if not self._batch:
            return
        batch, self._batch, self._records = self._batch, [], 0
        stale: list[str] = []
        with self._store.read() as view:
            for result in batch:
                if result.work.known and not result.keep:
                    made = {record.identifier for record in result.records}
                    mine = view.documents(self._origin, result.work.identifier)
                    stale += [identifier for identifier in mine if identifier not in made]
        with self._store.write() as tx:
            written = tx.put(self._origin, [record for result in batch for record in result.records])
            self._name_sets(tx, batch)
            deleted = tx.delete(self._origin, stale)
            for result in batch:
                tx.drop_files(self._origin, result.work.gone)
                tx.forgive(self._origin, result.forgiven)
                for failure in result.failures:
                    tx.fail(self._origin, failure)
            tx.put_files(self._origin, [row for result in batch for row in result.rows])
        self.written += written
        self.deleted += deleted

    def _name_sets(self, tx: Transaction, batch: list[Result]) -> None:
        found = dict(self._named)
        self._named.clear()
        for result in batch:
            if result.records:
                found.update(self._source.sets(result.work.resource))
        for spec, name in found.items():
            if spec not in self._sets:
                self._sets.add(spec)
                tx.name_set(self._origin, spec, name)

    def delete(self, gone: Mapping[str, list[str]], moved: set[str]) -> None:
        """Delete resources and the state of their files; `moved` files belong to another resource now."""
        resources = list(gone.items())
        for start in range(0, len(resources), BATCH_RESOURCES):
            chunk = resources[start : start + BATCH_RESOURCES]
            with self._store.read() as view:
                stale = [i for name, _ in chunk for i in view.documents(self._origin, name)]
            paths = [path for _, found in chunk for path in found if path not in moved]
            with self._store.write() as tx:
                self.deleted += tx.delete(self._origin, stale)
                tx.drop_files(self._origin, paths)
                tx.forgive(self._origin, paths)
