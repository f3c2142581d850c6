"""The provider's stages in their order: crawl -> extract -> analyse -> store.

Each batch of outcomes is one transaction: records, vectors, failures and the state of the files together. A
crawl that ends early, for whatever reason, has lost its last batch at most, and the next crawl does the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from indlet import __version__
from indlet.errors import ExtractionError, HierarchyError, MissingExtra
from indlet.model import Failure, Record
from indlet.provider.crawl import Signature, Survey, Work, settle, survey, unchanged, vanished
from indlet.provider.hierarchy import Entry, Skip, Tree, explain, named, open_tree, shown, without_password
from indlet.provider.resources import Place, media_type, place_of, records
from indlet.provider.workers import Analysed, Job, Outcome, Workers
from indlet.settings import Hierarchy, Settings
from indlet.store import FileState, Store, Transaction
from indlet.text import Policy

BATCH_RESOURCES = 500
BATCH_RECORDS = 5000
BATCH_SECONDS = 2.0
# A server that fails this often in a row is taken to be gone.
FETCH_FAILURES = 10


@dataclass
class Summary:
    """What came of crawling one hierarchy. `outcome`: complete, partial, unreachable or interrupted."""

    hierarchy: str
    root: str
    outcome: str = "running"
    reason: str = ""
    files: int = 0
    unchanged: int = 0
    touched: int = 0  # read and found equal
    read: int = 0
    records: int = 0  # new or changed
    deleted: int = 0
    failed: int = 0  # in this run
    failures: int = 0  # all that stand
    skipped: dict[str, int] = field(default_factory=dict)  # reason -> how many
    named: list[tuple[str, str]] = field(default_factory=list)  # the first of them: path, reason
    unread: dict[str, str] = field(default_factory=dict)  # folder -> why it could not be listed
    bytes: int = 0
    seconds: float = 0.0
    total: int | None = None  # resources to be looked into, as far as that is known
    done: int = 0
    idle: bool = False  # complete, and nothing was done

    @property
    def status(self) -> int:
        """The exit status for it: 0 full success, 3 with failures, 1 where the hierarchy was not read."""
        if self.outcome in ("unreachable", "interrupted"):
            return 1
        return 3 if self.unread or self.failures else 0


Report = Callable[[Summary], None]


def policy_of(settings: Settings) -> Policy:
    analysis = asdict(settings.analysis)
    return Policy(**{**analysis, "prune": analysis["prune"] or None})


def crawl(
    store: Store,
    settings: Settings,
    *,
    report: Report = lambda summary: None,
    stop: threading.Event | None = None,
    accept_empty: bool = False,
    clock: Callable[[], float] = time.time,
    workers: Workers | None = None,
) -> list[Summary]:
    """Bring the store to what the hierarchies hold now; a summary for each.

    `workers` that exist already are used and left running; they must have been made under the same policy.
    """
    stop = stop or threading.Event()
    policy = policy_of(settings)
    found = []
    with store.job("crawl"), contextlib.ExitStack() as stack:
        if workers is None:
            workers = stack.enter_context(Workers(settings.crawl.workers, settings.crawl.limits, policy))
        for hierarchy in named(settings.hierarchy):
            run = _Run(store, settings, hierarchy, policy, workers, report, stop, clock)
            run.accept_empty = accept_empty
            run.run()
            found.append(run.summary)
            if stop.is_set():
                break
        if any(summary.records or summary.deleted for summary in found):
            with store.write() as tx:
                tx.sweep()
    return found


@dataclass
class _Task:
    """A resource on its way: which of its manifestations is tried, and which have failed."""

    work: Work
    at: int = 0
    failed: dict[str, tuple[str, Failure]] = field(default_factory=dict)  # shown path -> digest, failure
    fetched: Path | None = None
    coming: tuple[Entry, Future[Path]] | None = None  # its first manifestation, on its way


@dataclass
class _Result:
    """What a transaction makes of a resource."""

    work: Work
    records: list[Record]
    rows: list[FileState]
    failures: list[Failure]
    forgiven: list[str]
    keep: bool = False  # the records stay; only the state of the files is brought up to date


class _Run:
    """One crawl of one hierarchy."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        hierarchy: Hierarchy,
        policy: Policy,
        workers: Workers,
        report: Report,
        stop: threading.Event,
        clock: Callable[[], float],
    ) -> None:
        self.accept_empty = False
        self._store, self._settings, self._hierarchy = store, settings, hierarchy
        self._workers, self._report, self._stop, self._clock = workers, report, stop, clock
        self._place: Place = place_of(settings, hierarchy, policy.digest)
        limits = repr((settings.crawl.limits, __version__))
        self._signature = Signature(
            self._place.made,
            f"{self._place.made} {hashlib.sha256(limits.encode()).hexdigest()[:12]}",
        )
        self.summary = Summary(hierarchy.name, without_password(hierarchy.root))
        self._found = Survey()
        self._batch: list[_Result] = []
        self._batch_records = 0
        self._flushed = time.monotonic()
        self._again: list[_Task] = []
        self._transient: dict[tuple[str, str], Failure] = {}  # listing and fetching: tried again each time
        self._sets: set[str] = set()
        self._unlucky = 0
        self._lost: HierarchyError | None = None  # the storage went away; what is under way is still taken
        self._tree: Tree
        self._scratch: Path

    def run(self) -> None:
        begun = time.monotonic()
        with self._store.write() as tx:
            self._origin = tx.origin("hierarchy", self._hierarchy.name, _plain(self._hierarchy))
        with self._store.read() as view:
            self._earlier = [run for run in view.runs(self._origin, 2) if run.kind == "crawl"]
        with self._store.write() as tx:
            for run in self._earlier:
                if run.outcome == "running":  # ours is the only crawl, so that one was killed
                    tx.note_run(run.id, run.detail, "interrupted")
            self._run_id = tx.start_run(self._origin, "crawl")
        summary = self.summary
        try:
            summary.outcome = self._crawl()
        except (HierarchyError, MissingExtra) as e:
            summary.outcome, summary.reason = "unreachable", str(e)
            self._transient["/", "list"] = Failure("/", "list", str(e))
        except BaseException:
            summary.outcome = "interrupted"
            raise
        finally:
            with contextlib.suppress(Exception) if summary.outcome == "interrupted" else _nothing():
                self._flush()
            summary.seconds = time.monotonic() - begun
            summary.idle = summary.outcome == "complete" and not (
                summary.records or summary.deleted or summary.failed or summary.touched
            )
            self._tell()
            self._close()

    def _close(self) -> None:
        """The journal's entry, and the failures that stand."""
        with self._store.read() as view:
            standing = [f for f in view.failures(self._origin) if f.stage in ("list", "fetch")]
        with self._store.write() as tx:
            if self.summary.outcome in ("complete", "partial"):
                tx.forgive(
                    self._origin, [f.where for f in standing if (f.where, f.stage) not in self._transient]
                )
            for failure in self._transient.values():
                tx.fail(self._origin, failure)
        with self._store.read() as view:
            self.summary.failures = view.failure_counts().get(self._origin, 0)
        with self._store.write() as tx:
            tx.note_run(self._run_id, asdict(self.summary), self.summary.outcome)
            # A node that looks every minute would fill the journal with nothing: the last of these stands.
            if self.summary.idle and self._earlier and self._earlier[0].detail.get("idle"):
                tx.drop_run(self._earlier[0].id)

    def _crawl(self) -> str:
        settings = self._settings.crawl
        self._tree = open_tree(self._hierarchy, settings, (self._store.folder,))
        with contextlib.closing(self._tree), tempfile.TemporaryDirectory(prefix="indlet-") as scratch:
            self._scratch = Path(scratch)
            with self._store.read() as view:
                known = list(view.files(self._origin))
                state = view.state(self._origin)
            works: Iterable[Work] = survey(
                self._tree, known, self._place, settings.order, self._signature, settings.settle_seconds,
                self._found, self._clock,
            )  # fmt: skip
            if self._tree.local:
                works = list(self._until_stopped(works))
                self.summary.total = len(works) + len(self._found.fresh)
            self._process(works)
            self._process(
                settle(self._tree, self._found, settings.settle_seconds, self._stop.wait, self._clock)
            )
            self._flush()
            if self._stop.is_set():
                return "interrupted"
            return self._finish(state, bool(known))

    def _until_stopped(self, works: Iterable[Work]) -> Iterator[Work]:
        for work in works:
            if self._stop.is_set():
                return
            yield work

    def _finish(self, state: Mapping[str, Any], known: bool) -> str:
        """After a walk to the end: what has gone is deleted, unless the whole tree seems to be elsewhere."""
        identity = self._tree.identity()
        if known and not self._found.entries and not self.accept_empty:
            moved = identity != state.get("identity", identity) if self._tree.local else True
            if moved:
                raise HierarchyError(
                    f"{self.summary.root}: is empty now, as if not mounted or not reachable; nothing was "
                    "deleted. If it is meant to be empty, run  indlet crawl --accept-empty"
                )
        for folder, reason in self._found.unread.items():
            place = f"{shown(folder)}/"
            self._transient[place, "list"] = Failure(place, "list", reason)
        self._delete(vanished(self._found))
        with self._store.write() as tx:
            tx.state(self._origin, {**state, "identity": identity, "policy": self._place.policy})
        return "partial" if self._found.unread else "complete"

    # Works become jobs, jobs become results.

    def _process(self, works: Iterable[Work]) -> None:
        tasks: Iterable[_Task] = (_Task(work) for work in works)
        while True:
            self._again = []
            for outcome in self._workers.map(self._jobs(tasks)):
                self._take(outcome)
                self._flush_if_due()
                if self._stop.is_set():
                    return
            if self._lost is not None:
                raise self._lost
            if not self._again:
                return
            tasks = self._again

    def _jobs(self, tasks: Iterable[_Task]) -> Iterator[Job]:
        for task in self._ahead(self._until_lost(tasks)):
            self._flush_if_due()
            if not task.failed and self._only_touched(task.work):
                continue
            while (entry := self._candidate(task)) is not None:
                path = self._fetch(task, entry)
                if path is not None:
                    yield Job(task, path, entry.name)
                    break
            else:
                self._done(task, None, ())

    def _until_lost(self, tasks: Iterable[_Task]) -> Iterator[_Task]:
        try:
            for task in tasks:
                if self._stop.is_set():
                    return
                yield task
                if self._lost is not None:
                    return
        except HierarchyError as e:
            self._lost = e

    def _ahead(self, tasks: Iterable[_Task]) -> Iterator[_Task]:
        """The tasks, with the files of the next few under way where several can be fetched at once."""
        if not self._tree.ahead:
            yield from tasks
            return
        limit = self._settings.crawl.limits.file_bytes
        waiting: deque[_Task] = deque()
        with ThreadPoolExecutor(self._tree.ahead) as pool:
            for task in tasks:
                entry = self._candidate(task)
                # What is known may turn out to be only touched, and is fetched for that.
                if entry is not None and not task.work.known:
                    task.coming = entry, pool.submit(self._tree.fetch, entry, self._scratch, limit)
                waiting.append(task)
                if len(waiting) > self._tree.ahead:
                    yield waiting.popleft()
            yield from waiting

    def _candidate(self, task: _Task) -> Entry | None:
        """The next manifestation to try; one that failed before, and has not changed, is not tried again."""
        files = task.work.resource.files
        while task.at < len(files):
            entry = files[task.at]
            if self._failed_before(task.work, entry) is None:
                return entry
            task.at += 1
        return None

    def _failed_before(self, work: Work, entry: Entry) -> FileState | None:
        known = work.known.get(shown(entry.path))
        if (
            known is not None
            and known.state == "failed"
            and unchanged(entry, known)
            and self._signature.covers(known)
        ):
            return known
        return None

    def _only_touched(self, work: Work) -> bool:
        """Whether the files are the known ones, byte by byte; then only their new times are noted."""
        rows = []
        for entry in work.resource.files:
            known = work.known.get(shown(entry.path))
            if known is None or known.size != entry.size or not self._signature.covers(known):
                return False
            if not unchanged(entry, known) and known.state != "other":
                try:
                    path = self._tree.fetch(entry, self._scratch, self._settings.crawl.limits.file_bytes)
                    with path.open("rb") as file:
                        digest = hashlib.file_digest(file, "sha256").hexdigest()
                    self._remove(path)
                except (OSError, ExtractionError):
                    return False
                if digest != known.digest:
                    return False
            rows.append(known._replace(modified=entry.modified, etag=entry.etag))
        if len(rows) != len(work.known):
            return False
        self.summary.touched += len(rows)
        self._add(_Result(work, [], rows, [], [], keep=True))
        return True

    def _fetch(self, task: _Task, entry: Entry) -> Path | None:
        """A local file to read; None if there is none now. Then the task stands at its next manifestation."""
        limit = self._settings.crawl.limits.file_bytes
        try:
            if task.coming is not None and task.coming[0] is entry:
                path = task.coming[1].result()
            else:
                path = self._tree.fetch(entry, self._scratch, limit)
        except ExtractionError as e:
            self._fail(task, entry, "", str(e))
            return None
        except PermissionError as e:
            self._leave(task, entry, f"unreadable: {explain(e)}")
            return None
        except FileNotFoundError:
            self._leave(task, entry, "vanished meanwhile")
            return None
        except Exception as e:
            # Whatever a storage library throws: this file is tried again next time.
            place = shown(entry.path)
            self._transient[place, "fetch"] = Failure(place, "fetch", explain(e))
            self.summary.failed += 1
            self._unlucky += 1
            if self._unlucky >= FETCH_FAILURES:
                self._lost = HierarchyError(
                    f"{self.summary.root}: gave up after {self._unlucky} failures in a row, the last of "
                    f"them {explain(e)}; what was not read stays as it was"
                )
            self._leave(task, entry, "")
            return None
        self._unlucky = 0
        task.fetched = path
        return path

    def _leave(self, task: _Task, entry: Entry, reason: str) -> None:
        """Go on without a file that is there but cannot be had. A known resource stays as it is."""
        if reason:
            self._found.skip(Skip(entry.path, reason, held=True))
        work = task.work
        rest = tuple(other for other in work.resource.files if other is not entry) if not work.known else ()
        task.work = work._replace(resource=work.resource._replace(files=rest))

    def _fail(self, task: _Task, entry: Entry, digest: str, reason: str) -> None:
        place = shown(entry.path)
        task.failed[place] = (digest, Failure(place, "extract", reason))
        task.at += 1

    def _take(self, outcome: Outcome) -> None:
        task = outcome.tag
        assert isinstance(task, _Task)
        if task.fetched is not None:
            self._remove(task.fetched)
        entry = task.work.resource.files[task.at]
        self.summary.read += 1
        self.summary.bytes += max(entry.size, 0)
        if outcome.failure is None and outcome.documents:
            self._done(task, entry, outcome.documents, outcome)
            return
        now = self._tree.look(entry) if self._tree.local else entry
        if now is None or (now.size, now.modified) != (entry.size, entry.modified):
            self._leave(task, entry, "changed while it was read")
        else:
            reason = outcome.failure.reason if outcome.failure else "holds no document"
            self._fail(task, entry, outcome.digest, reason)
        self._again.append(task)

    def _done(
        self,
        task: _Task,
        primary: Entry | None,
        documents: tuple[Analysed, ...],
        outcome: Outcome | None = None,
    ) -> None:
        """All that is to be stored of a resource whose manifestations have been tried."""
        work = task.work
        self.summary.done += 1
        if not work.resource.files:
            return
        rows, failures = [], [failure for _, failure in task.failed.values()]
        standing = {failure.where for failure in failures}
        for entry in work.resource.files:
            place = shown(entry.path)
            facts = (place, work.identifier, entry.size, entry.modified, entry.etag)
            before = self._failed_before(work, entry)
            if entry is primary and outcome is not None:
                kind = documents[0].media_type
                rows.append(FileState(*facts, outcome.digest, kind, "primary", self._signature.made))
                if outcome.failures:
                    failures.append(_parts(place, outcome.failures))
            elif place in task.failed:
                digest = task.failed[place][0]
                kind = media_type(entry.name)
                rows.append(FileState(*facts, digest, kind, "failed", self._signature.failed))
            elif before is not None:
                rows.append(before)
                standing.add(place)
            else:
                kind = media_type(entry.name)
                rows.append(FileState(*facts, "", kind, "other", self._signature.made))
        self.summary.failed += len(failures)
        made = list(records(self._place, work.resource, primary, documents)) if primary else []
        places = {row.path for row in rows} | set(work.known)
        self._add(_Result(work, made, rows, failures, sorted(places - standing)))

    # Results become transactions.

    def _add(self, result: _Result) -> None:
        self._batch.append(result)
        self._batch_records += len(result.records)
        if result.keep:
            self.summary.done += 1

    def _flush_if_due(self) -> None:
        if (
            len(self._batch) >= BATCH_RESOURCES
            or self._batch_records >= BATCH_RECORDS
            or time.monotonic() - self._flushed > BATCH_SECONDS
        ):
            self._flush()
        self._tell()

    def _flush(self) -> None:
        self._flushed = time.monotonic()
        if not self._batch:
            return
        batch, self._batch, self._batch_records = self._batch, [], 0
        stale: list[str] = []
        with self._store.read() as view:
            for result in batch:
                if result.work.known and not result.keep:
                    made = {record.identifier for record in result.records}
                    mine = view.documents(self._origin, result.work.identifier)
                    stale += [identifier for identifier in mine if identifier not in made]
        with self._store.write() as tx:
            made_now = [record for result in batch for record in result.records]
            changed = tx.put(self._origin, made_now)
            self._name_sets(tx, batch)
            deleted = tx.delete(self._origin, stale)
            for result in batch:
                tx.drop_files(self._origin, result.work.gone)
                tx.forgive(self._origin, result.forgiven)
                for failure in result.failures:
                    tx.fail(self._origin, failure)
            tx.put_files(self._origin, [row for result in batch for row in result.rows])
        self.summary.records += changed
        self.summary.deleted += deleted

    def _name_sets(self, tx: Transaction, batch: list[_Result]) -> None:
        for folder in {result.work.resource.folder for result in batch if result.records}:
            for spec, name in self._place.sets(folder):
                if spec not in self._sets:
                    self._sets.add(spec)
                    tx.name_set(self._origin, spec, name)

    def _delete(self, gone: Mapping[str, list[str]]) -> None:
        resources = list(gone.items())
        for start in range(0, len(resources), BATCH_RESOURCES):
            chunk = resources[start : start + BATCH_RESOURCES]
            with self._store.read() as view:
                stale = [i for name, _ in chunk for i in view.documents(self._origin, name)]
            paths = [path for _, found in chunk for path in found if path not in self._found.moved]
            with self._store.write() as tx:
                self.summary.deleted += tx.delete(self._origin, stale)
                tx.drop_files(self._origin, paths)
                tx.forgive(self._origin, paths)

    # Odds and ends

    def _remove(self, path: Path) -> None:
        if not self._tree.local:
            path.unlink(missing_ok=True)

    def _tell(self) -> None:
        found, summary = self._found, self.summary
        summary.files, summary.unchanged = found.files, found.unchanged
        summary.skipped, summary.named = dict(found.skipped), found.named
        summary.unread = {shown(folder) or "/": reason for folder, reason in found.unread.items()}
        self._report(summary)


@contextlib.contextmanager
def _nothing() -> Iterator[None]:
    yield


def _parts(place: str, failures: tuple[Failure, ...]) -> Failure:
    """The failures of single documents in a file that otherwise could be read, as one."""
    shown_parts = "; ".join(f"{failure.where}: {failure.reason}" for failure in failures[:20])
    more = f"; and {len(failures) - 20} more" if len(failures) > 20 else ""
    return Failure(
        place, "document", f"{len(failures)} of its documents could not be read: {shown_parts}{more}"
    )


def _plain(hierarchy: Hierarchy) -> dict[str, Any]:
    """A hierarchy's settings for the store. Storage options stay out: they hold passwords."""
    plain = asdict(hierarchy)
    del plain["options"]
    plain["access"]["tokens"] = len(hierarchy.access.tokens)
    plain["root"] = without_password(hierarchy.root)
    return plain
