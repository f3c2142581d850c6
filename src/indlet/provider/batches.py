"""What came of resources, put into the store in batches: each is one transaction, all of it or none."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from indlet.model import Failure, Record
from indlet.provider.crawl import Work
from indlet.provider.echoes import Echoes
from indlet.provider.set_rules import SetRules
from indlet.provider.source import RecordSource
from indlet.store import FileState, Store, Transaction, View, kept_tables

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
    keep: bool = False  # records that are not among these stay


class Departures(NamedTuple):
    """Records that are to leave at the end of a crawl."""

    leave: dict[int, list[str]]  # by origin: their files are gone, or no longer hold them
    refused: list[str]  # public before, refused to strangers now
    public_again: list[str]  # refused before
    waited: set[str]  # whose deletions waited, for another reason
    live: int  # how many records there are


def _count(names: Mapping[int, Sequence[str]]) -> int:
    return sum(map(len, names.values()))


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
        # What changed files no longer hold: it goes when the crawl has come to its end.
        self._stale: dict[int, dict[str, None]] = {origin: {} for origin in self._origins}
        self._echoes = Echoes(store, origin, source.reader is not None)
        # Results whose files are known as read only then, with the records that they leave behind.
        self._late: list[tuple[ResourceResult, set[str]]] = []
        with store.read() as view:
            self._waiting = {origin for origin in self._origins if origin in view.withheld_counts()}
        self.written = 0
        self.deleted = 0

    @property
    def echoes(self) -> int:
        """Records that were left out because they are of others."""
        return self._echoes.count

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
        done = list[ResourceResult]()
        with self._store.read() as view:
            for result in batch:
                result.records = self._echoes.leave_out(view, result.records)
                if left := self._left_behind(view, result):
                    self._late.append((result, left))
                else:
                    done.append(result)
        with self._store.write() as tx:
            # As it is now: somebody may have marked a record while its file was read.
            if marked := {
                mark.identifier
                for origin in self._origins
                for mark in tx.select(kept_tables.WITHDRAWN, origin=origin)
            }:
                for result in batch:
                    result.records = [r for r in result.records if r.identifier not in marked]
            written = self._put(tx, batch)
            self._name_sets(tx, batch)
            for origin in self._waiting:
                made = (r.identifier for x in batch if self._home(x.work) == origin for r in x.records)
                tx.drop_withheld(origin, made)
            self._know_files(tx, done)
        self.written += written

    def _left_behind(self, view: View, result: ResourceResult) -> set[str]:
        """The records that a resource had and no longer has. They are noted."""
        found: set[str] = set()
        if not result.work.known:
            return found
        home = self._home(result.work)
        made = {record.identifier for record in result.records}
        for origin in self._origins:
            if origin == home and result.keep:
                continue
            kept = made if origin == home else ()
            gone = [i for i in view.documents(origin, result.work.identifier) if i not in kept]
            self._stale[origin].update(dict.fromkeys(gone))
            found.update(gone)
        return found

    def _know_files(self, tx: Transaction, results: Iterable[ResourceResult]) -> None:
        for result in results:
            tx.drop_files(self._origin, result.work.gone)
            tx.forgive(self._origin, result.forgiven)
            for failure in result.failures:
                tx.fail(self._origin, failure)
            tx.put_files(self._origin, result.rows)

    def _put(self, tx: Transaction, batch: list[ResourceResult]) -> int:
        dated, others = [], []
        for result in batch:
            date = self._date(result)
            for record in result.records:
                if date is None:
                    others.append(record)
                else:
                    dated.append((self._home(result.work), date, record))
        return tx.put_dated(dated) + tx.put(self._origin, others)

    def _date(self, result: ResourceResult) -> int | None:
        return self._source.datestamp(result.work.resource)

    def _home(self, work: Work) -> int:
        """The origin that a resource's records belong to."""
        guarded = any(entry.guarded for entry in work.resource.files)
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

    def finish(
        self, gone: Mapping[str, list[str]], moved: set[str], allowed: Callable[[int, int], bool]
    ) -> int:
        """After a walk to the end: delete resources that are gone and records that files no longer hold, and
        what is known of their files; `moved` files belong to another resource now.

        `allowed` is asked whether so many of so many live records may go; it is asked apart for those that a
        web server refuses to strangers now. Resources that were renamed go in any case. What may not go is
        kept, its deletion waits, and its files do not count as read: the next crawl finds the same. How many
        deletions wait is returned.
        """
        found = self._departures(gone)
        leave, live = found.leave, found.live
        if self._guarded != self._origin:
            # What became public again does not stay guarded as well.
            copies = [*found.public_again, *self._public_copies(found.waited)]
            self._delete({self._guarded: copies})
        waiting: dict[int, list[str]] = {origin: [] for origin in self._origins}
        if allowed(len(found.refused), live):
            self._delete({self._origin: found.refused})
        else:
            waiting[self._origin] += found.refused
        done = gone
        if not allowed(_count(leave), live):
            done = self._renamed(gone, moved)
            leave = self._delete_renamed(done, leave)
            live -= _count(found.leave) - _count(leave)
        if allowed(_count(leave), live):
            done = gone
            self._delete(leave)
        else:
            for origin, names in leave.items():
                waiting[origin] += names
        paths = [path for known in done.values() for path in known if path not in moved]
        held = {name for names in waiting.values() for name in names}
        with self._store.write() as tx:
            if not held:
                self._echoes.keep(tx)
            self._know_files(tx, (result for result, left in self._late if held.isdisjoint(left)))
            tx.drop_files(self._origin, paths)
            tx.forgive(self._origin, paths)
        self._withhold(waiting)
        return len(held)

    def _departures(self, gone: Iterable[str]) -> Departures:
        """The records of resources that are gone, and those that files no longer hold."""
        with self._store.read() as view:
            self._stale[self._origin].update(dict.fromkeys(self._echoes.found_since(view)))
            for name in gone:
                for origin in self._origins:
                    self._stale[origin].update(dict.fromkeys(view.documents(origin, name)))
            rows = {o: view.withheld(o) for o in self._origins}
            kept = {o: {row.identifier for row in rows[o] if row.kept_by} for o in self._origins}
            elsewhere = {
                o: [i for i in names if self._is_elsewhere(view, o, i)] for o, names in self._stale.items()
            }
            stay = {o: kept[o].union(names) for o, names in elsewhere.items()}
            leave = {o: [i for i in names if i not in stay[o]] for o, names in self._stale.items()}
            refused = [i for i in elsewhere[self._origin] if i not in kept[self._origin]]
            totals = view.totals() if _count(leave) or refused else {}
        live = sum(totals.get(o, (0, 0))[0] for o in self._origins)
        waited = {row.identifier for row in rows[self._origin]}.difference(refused)
        return Departures(leave, refused, elsewhere[self._guarded], waited, live)

    def _public_copies(self, names: Iterable[str]) -> list[str]:
        """Those of the names that are live in both origins: refused for a while, and public all the time."""
        wanted = list(names)
        with self._store.read() as view:
            return sorted(view.live(self._origin, wanted) & view.live(self._guarded, wanted))

    def _delete_renamed(self, renamed: Iterable[str], leave: Mapping[int, list[str]]) -> dict[int, list[str]]:
        """Delete the records of resources that were renamed; the others that are to leave."""
        with self._store.read() as view:
            former = {o: {i for name in renamed for i in view.documents(o, name)} for o in self._origins}
        self._delete({o: [i for i in names if i in former[o]] for o, names in leave.items()})
        return {o: [i for i in names if i not in former[o]] for o, names in leave.items()}

    def _renamed(self, gone: Mapping[str, list[str]], moved: set[str]) -> dict[str, list[str]]:
        """The resources among those that are gone whose contents are at another path now.

        Each file that is there stands for one that is gone at most: of many equal files that vanish, those
        without a counterpart count as lost.
        """
        away = {path for paths in gone.values() for path in paths if path not in moved}
        here, digests = Counter[str](), dict[str, str]()
        with self._store.read() as view:
            for file in view.files(self._origin):
                if file.path not in away:
                    here[file.digest] += 1
                elif file.state == "primary":
                    digests[file.path] = file.digest
        found = dict[str, list[str]]()
        for name, paths in gone.items():
            if all(path in moved for path in paths):
                found[name] = paths
                continue
            for digest in filter(None, (digests.get(path, "") for path in paths)):
                if here[digest]:
                    here[digest] -= 1
                    found[name] = paths
        return found

    def _is_elsewhere(self, view: View, origin: int, name: str) -> bool:
        """Whether a record has gone from one of the origins to the other: public before, guarded now."""
        others = [one for one in self._origins if one != origin]
        found = view.get(name, others) if others else None
        return found is not None and not found.deleted

    def _delete(self, names: Mapping[int, Sequence[str]]) -> None:
        for start in range(0, max(map(len, names.values()), default=0), BATCH_RECORDS):
            with self._store.write() as tx:
                for origin, gone in names.items():
                    self.deleted += tx.delete(origin, gone[start : start + BATCH_RECORDS])

    def _withhold(self, leave: Mapping[int, Sequence[str]]) -> None:
        """These deletions wait, and no others."""
        for origin, names in leave.items():
            with self._store.read() as view:
                before = [row.identifier for row in view.withheld(origin) if not row.kept_by]
            if not before and not names:
                continue
            with self._store.write() as tx:
                tx.drop_withheld(origin, set(before).difference(names))
                tx.withhold(origin, {name: {} for name in names})
