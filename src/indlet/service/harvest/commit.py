"""What has come becomes durable: records, failures, state and journal in one transaction, all or nothing."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final

from indlet import datestamps as dates
from indlet.model import Failure, JsonObject, Packed, Record
from indlet.service.harvest import owed
from indlet.service.harvest.cache import Cache, Placed, RecordCopy
from indlet.service.harvest.progress import Progress, RunOutcome
from indlet.service.harvest.run_state import RunState
from indlet.service.harvest.source_state import LastRun, SourceState
from indlet.service.harvest.withhold import DeletionGuard, by_source, latest
from indlet.store import OpenFailure, Store, Transaction

# Pages are committed together until there are this many records, or this much time has gone by. The first
# batch is smaller, and each twice as large as the one before: so indexing, which follows, begins soon.
BATCH: Final = 4000
FIRST_BATCH: Final = 1000
BATCH_SECONDS: Final = 1.0


@dataclass(slots=True)
class Uncommitted:
    """What has come and is not committed."""

    records: list[Record | Packed] = field(default_factory=list)
    copies: list[RecordCopy] = field(default_factory=list)
    # With the time of the next attempt, and whether this is the first failure of the run.
    failures: list[tuple[Failure, int | None, bool]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    since: float = field(default_factory=time.monotonic)


class BackgroundCall:
    """A call in a thread of its own; `join` raises what it raised."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call,), name="harvest-commit")
        self._thread.start()

    def _run(self, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as e:
            self._error = e

    def join(self) -> None:
        self._thread.join()
        if self._error is not None:
            raise self._error


class Committer:
    """The commits of one run. `state` is the source's: the run replaces it, each commit writes it."""

    def __init__(
        self,
        store: Store,
        origin: int,
        run: int,
        state: SourceState,
        failures: Iterable[OpenFailure],
        progress: Progress,
        now: Callable[[], datetime],
        guard: DeletionGuard,
    ) -> None:
        self.guard = guard
        self.store = store
        self.origin = origin
        self.state = state
        self.progress = progress
        # Of this run and of those before it, less what has come since.
        self.failures = {failure.where: failure for failure in failures}
        self.failed_now: set[str] = set()  # of this run alone
        self.cache: Cache | None = None  # for records that go round among nodes
        self.uncommitted = Uncommitted()
        self.document_policy = ""  # records keep the vectors of documents that were read by this policy
        self.run = run
        self._now = now
        self.stored_bytes = state.stored_bytes  # of the source: never less than it takes
        self._counted: Counter[str] = Counter()  # repairs that the source's state has counted
        self._writing: BackgroundCall | None = None
        self._batch = FIRST_BATCH

    def add(self, record: Record | Packed) -> None:
        """Take a record, to be committed with those around it."""
        self.uncommitted.records.append(record)
        self._count(record)

    def add_copy(self, copy: RecordCopy) -> None:
        """Take a copy that may be older than what is held; that is decided when it is committed."""
        self.uncommitted.copies.append(copy)
        self._count(copy.record)

    def _count(self, record: Record | Packed) -> None:
        self.stored_bytes += _size(record)
        if record.deleted:
            self.progress.deleted += 1
        else:
            self.progress.records += 1

    def fail(self, failure: Failure, *, retry: bool = True) -> None:
        """Enter a failure; what is to be retried is owed until it has come or is known to be gone."""
        self.progress.failed += 1
        self.stored_bytes += len(failure.raw)
        now = int(self._now().timestamp())
        known = self.failures.get(failure.where)
        due = owed.next_try(known.first if known else now, now) if retry else None
        self.uncommitted.failures.append((failure, due, failure.where not in self.failed_now))
        self.failed_now.add(failure.where)

    def gone(self, identifier: str) -> None:
        """The source no longer has a record that is owed."""
        self.uncommitted.gone.add(identifier)

    def commit_if_due(self, state: RunState) -> None:
        batch = self.uncommitted
        full = len(batch.records) + len(batch.copies) >= self._batch
        if full or time.monotonic() - batch.since > BATCH_SECONDS:
            self._batch = min(2 * self._batch, BATCH)
            self.commit(state, wait=False)

    def commit(
        self, state: RunState | None, outcome: RunOutcome = RunOutcome.RUNNING, wait: bool = True
    ) -> None:
        """Records, failures, state and journal; while the next page is read unless `wait`."""
        if state is not None and self.state.run is not None:
            self.state = replace(self.state, run=replace(self.state.run, state=state))
        self.state = replace(self.state, stored_bytes=self.stored_bytes)
        batch, self.uncommitted = self.uncommitted, Uncommitted()
        self.settle()
        # As of now: what comes while the batch is written is not in it, and not in the journal.
        told = self.progress.to_json()
        write = BackgroundCall(partial(self._write, batch, self.state, outcome, told))
        if wait:
            write.join()
        else:
            self._writing = write

    def forget_failures(self, before: int) -> None:
        """Drop the failures that have not occurred again since then, of whatever run."""
        self.commit(None)
        with self.store.write() as tx:
            tx.forget_failures(self.origin, before)
        with self.store.read() as view:
            self.failures = {failure.where: failure for failure in view.open_failures(self.origin)}

    def count_bytes(self) -> None:
        """Find out what the source takes: records that came again, or were replaced, were counted twice."""
        self.commit(None)
        with self.store.read() as view:
            self.stored_bytes = view.stored_bytes(self.origin)

    def settle_deletions(self) -> int:
        """A list has ended: its deletions happen, or are too many and wait for an operator. How many did."""
        self.commit(None)
        done, waiting = self.guard.settle(self.progress.source)
        self.progress.changed += done
        self.progress.withheld = waiting
        return done

    def settle(self) -> None:
        """Wait for the commit that is under way; what went wrong with it is raised here."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.join()

    def save(self) -> None:
        """The state alone, at once."""
        with self.store.write() as tx:
            tx.state(self.origin, self.state.to_json())

    def end(self, outcome: RunOutcome, reason: str) -> None:
        """The run's outcome, in its progress, the source's state and the journal."""
        progress = self.progress
        self.commit(None)
        progress.owed = sum(failure.due is not None for failure in self.failures.values())
        progress.outcome, progress.reason = outcome, reason
        progress.ended = time.monotonic()
        last = LastRun(
            dates.write(self._now(), True), outcome, reason,
            progress.records, progress.deleted, progress.failed, progress.owed, progress.warning,
        )  # fmt: skip
        self.state = replace(self.state.with_repairs(progress.repairs - self._counted), last=last)
        if outcome is RunOutcome.COMPLETE:
            self.state = replace(self.state, confirmed=last.at)
        self._counted = progress.repairs.copy()
        self.commit(None, outcome)

    def _write(self, batch: Uncommitted, state: SourceState, outcome: RunOutcome, told: JsonObject) -> None:
        progress, changed = self.progress, 0
        with contextlib.ExitStack() as stack:
            placed = list[Placed]()
            if batch.copies and self.cache is not None:
                placed = stack.enter_context(self.cache.placed(batch.copies))
            view = stack.enter_context(self.store.read())
            tx = stack.enter_context(self.store.write())
            if batch.records:
                came = latest(batch.records)
                records = self.guard.write(tx, view, progress.source, self.origin, came)
                changed += self._put(tx, self.origin, records)
            if placed and self.cache is not None:
                for (name, url), kept in by_source(placed).items():
                    origin = self.cache.origin(tx, view, name, url)
                    changed += self._put(tx, origin, self.guard.write(tx, view, name, origin, kept))
            done = set(batch.gone)
            if self.failures:
                all_of_it = (*batch.records, *(copy.record for copy in batch.copies))
                done |= self.failures.keys() & {r.identifier for r in all_of_it}
            done -= {failure.where for failure, _, _ in batch.failures}
            tx.forgive(self.origin, done)
            for failure, due, new_attempt in batch.failures:
                tx.fail(self.origin, failure, due=due, new_attempt=new_attempt)
            tx.state(self.origin, state.to_json())
            tx.note_run(self.run, {**told, "changed": progress.changed + changed}, outcome)
        progress.changed += changed
        for identifier in done:
            self.failures.pop(identifier, None)
        for failure, due, _ in batch.failures:
            known = self.failures.get(failure.where)
            first = known.first if known else int(self._now().timestamp())
            self.failures[failure.where] = OpenFailure(failure.where, failure.stage, first, due)

    def _put(self, tx: Transaction, origin: int, records: Sequence[Record | Packed]) -> int:
        if self.document_policy:
            records = tx.keep_vectors(origin, records, self.document_policy)
        return tx.put(origin, records)


def _size(record: Record | Packed) -> int:
    """The bytes that a record takes in the store."""
    if isinstance(record, Packed):
        index = len(record.vector or b"") + len(record.positions or b"")
        return len(record.metadata) + len(record.properties) + len(record.raw) + index
    vector = record.vector
    metadata = sum(len(value) for values in record.metadata.values() for value in values)
    return len(record.raw) + metadata + (len(vector.packed) if vector else 0)
