"""Works become results: manifestations are fetched and read, each in turn until one gives documents."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from indlet.errors import ExtractionError, HierarchyError
from indlet.model import WARNING, Failure
from indlet.provider.batches import Batches, ResourceResult
from indlet.provider.crawl import Signature, Survey, Work, in_order, unchanged
from indlet.provider.hierarchy import Entry, Skip, Tree, explain, printable, shown
from indlet.provider.resources import media_type
from indlet.provider.source import RecordSource
from indlet.provider.summary import Summary
from indlet.provider.workers import Analysed, Outcome, ReadingJob, Workers
from indlet.store import FileState

# Kinds of files that hold many records.
COLLECTIONS = frozenset(("application/marc", "application/marcxml+xml", "message/rfc822"))
# A server that fails this often in a row is taken to be gone.
FETCH_FAILURES = 10


@dataclass
class Task:
    """A resource on its way: which of its manifestations is tried, and which have failed."""

    work: Work
    at: int = 0
    failed: dict[str, tuple[str, Failure]] = field(default_factory=dict)  # shown path -> digest, failure
    fetched: Path | None = None
    coming: tuple[Entry, Future[Path]] | None = None  # its first manifestation, on its way


class Reading:
    """Reads the resources of one tree and hands the results to the batches."""

    def __init__(
        self,
        tree: Tree,
        source: RecordSource,
        signature: Signature,
        found: Survey,
        summary: Summary,
        workers: Workers,
        batches: Batches,
        scratch: Path,
        limit: int,
        stop: threading.Event,
        tell: Callable[[], None],
    ) -> None:
        self._tree, self._source, self._signature, self._found = tree, source, signature, found
        self.summary, self._workers, self._batches = summary, workers, batches
        self._scratch, self._limit, self._stop, self._tell = scratch, limit, stop, tell
        self._again: list[Task] = []
        self._dates: dict[int, int] = {}  # datestamps of the tasks under way, by task
        self._unlucky = 0
        self._lost: HierarchyError | None = None  # the storage went away; what is under way is still taken
        self.transient: dict[tuple[str, str], Failure] = {}  # of fetching: tried again each time

    def process(self, works: Iterable[Work]) -> None:
        tasks: Iterable[Task] = (Task(work) for work in works)
        while True:
            self._again = []
            for outcome in self._workers.map(self._jobs(tasks)):
                self._take(outcome)
                self._keep()
                if self._stop.is_set():
                    return
            if self._lost is not None:
                raise self._lost
            if not self._again:
                return
            tasks = self._again

    def _jobs(self, tasks: Iterable[Task]) -> Iterator[ReadingJob]:
        for task in self._ahead(self._until_lost(tasks)):
            self._keep()
            if not task.failed and self._only_touched(task.work):
                continue
            while (entry := self._candidate(task)) is not None:
                path = self._fetch(task, entry)
                if path is not None:
                    date = self._source.datestamp(task.work.resource)
                    if date is not None:
                        self._dates[id(task)] = date
                    yield ReadingJob(task, path, entry.name, self._source.reader)
                    break
            else:
                self._done(task, None, ())

    def _until_lost(self, tasks: Iterable[Task]) -> Iterator[Task]:
        try:
            for task in tasks:
                if self._stop.is_set():
                    return
                yield task
                if self._lost is not None:
                    return
        except HierarchyError as e:
            self._lost = e

    def _ahead(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """The tasks, with the files of the next few under way where several can be fetched at once."""
        if not self._tree.ahead:
            yield from tasks
            return
        waiting: deque[Task] = deque()
        with ThreadPoolExecutor(self._tree.ahead) as pool:
            for task in tasks:
                entry = self._candidate(task)
                # What is known may turn out to be only touched, and is fetched for that.
                if entry is not None and not task.work.known:
                    task.coming = entry, pool.submit(self._tree.fetch, entry, self._scratch, self._limit)
                waiting.append(task)
                if len(waiting) > self._tree.ahead:
                    yield waiting.popleft()
            yield from waiting

    def _candidate(self, task: Task) -> Entry | None:
        """The next manifestation to try; one that failed before, and has not changed, is not tried again."""
        files = task.work.resource.files
        while task.at < len(files):
            entry = files[task.at]
            if entry.extract and self._failed_before(task.work, entry) is None:
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
        if self._source.touch_matters or not in_order(work.resource.files, work.known):
            return False
        for entry in work.resource.files:
            known = work.known.get(shown(entry.path))
            if known is None or known.size != entry.size or not self._signature.covers(known):
                return False
            if not unchanged(entry, known) and known.state != "other":
                try:
                    path = self._tree.fetch(entry, self._scratch, self._limit)
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
        self.summary.done += 1
        self._batches.add(ResourceResult(work, [], rows, [], [], keep=True))
        return True

    def _fetch(self, task: Task, entry: Entry) -> Path | None:
        """A local file to read; None if there is none now. Then the task stands at its next manifestation."""
        try:
            if task.coming is not None and task.coming[0] is entry:
                path = task.coming[1].result()
            else:
                path = self._tree.fetch(entry, self._scratch, self._limit)
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
            self.transient[place, "fetch"] = Failure(place, "fetch", explain(e))
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

    def _leave(self, task: Task, entry: Entry, reason: str) -> None:
        """Go on without a file that is there but cannot be had. A known resource stays as it is."""
        if reason:
            self._found.skip(Skip(entry.path, reason, held=True))
        work = task.work
        rest = tuple(other for other in work.resource.files if other is not entry) if not work.known else ()
        task.work = work._replace(resource=work.resource._replace(files=rest))

    def _fail(self, task: Task, entry: Entry, digest: str, reason: str) -> None:
        place = shown(entry.path)
        task.failed[place] = (digest, Failure(place, "extract", printable(reason)))
        task.at += 1

    def _take(self, outcome: Outcome) -> None:
        task = outcome.tag
        assert isinstance(task, Task)
        if task.fetched is not None:
            self._remove(task.fetched)
        entry = task.work.resource.files[task.at]
        self.summary.read += 1
        self.summary.bytes += max(entry.size, 0)
        changed = _change_of_kind(task.work.known.get(shown(entry.path)), outcome)
        if outcome.failure is None and outcome.documents and not changed:
            self._done(task, entry, outcome.documents, outcome)
            return
        now = self._tree.look(entry) if self._tree.local else entry
        if now is None or (now.size, now.modified) != (entry.size, entry.modified):
            self._leave(task, entry, "changed while it was read")
        else:
            reason = outcome.failure.reason if outcome.failure else changed or "holds no document"
            self._fail(task, entry, outcome.digest, reason)
            if self._candidate(task) is None:
                self._done(task, None, ())
                return
        self._again.append(task)

    def _done(
        self,
        task: Task,
        primary: Entry | None,
        documents: tuple[Analysed, ...],
        outcome: Outcome | None = None,
    ) -> None:
        """All that is to be stored of a resource whose manifestations have been tried."""
        work = task.work
        self.summary.done += 1
        self._dates.pop(id(task), None)
        if not work.resource.files:
            return
        rows, failures = [], [failure for _, failure in task.failed.values()]
        standing = {failure.where for failure in failures}
        warnings: list[Failure] = []
        chosen = keep = False
        for entry in work.resource.files:
            place = shown(entry.path)
            facts = (place, work.identifier, entry.size, entry.modified, entry.etag)
            # What comes after the primary is not read, so whether it would fail is not known.
            before = None if chosen else self._failed_before(work, entry)
            if entry is primary and outcome is not None:
                chosen = True
                kind = documents[0].media_type
                rows.append(FileState(*facts, outcome.digest, kind, "primary", self._signature.made))
                if lost := [failure for failure in outcome.failures if failure.stage != WARNING]:
                    failures.append(_parts(place, lost))
                    keep = True
                warnings += [
                    replace(failure, where=place, reason=printable(failure.reason))
                    for failure in outcome.failures
                    if failure.stage == WARNING
                ]
            elif place in task.failed:
                digest = task.failed[place][0]
                kind = _kind_of_records(work.known.get(place))
                rows.append(FileState(*facts, digest, kind, "failed", self._signature.failed))
            elif before is not None:
                rows.append(before)
                standing.add(place)
            else:
                kind = media_type(entry.name)
                rows.append(FileState(*facts, "", kind, "other", self._signature.made))
        self.summary.failed += len(failures)
        made = list(self._source.records(work.resource, primary, documents))
        places = {row.path for row in rows} | set(work.known)
        # A damaged file must not look like one whose records were deleted.
        keep = keep or any(row.state == "failed" and row.media_type for row in rows)
        self._batches.add(
            ResourceResult(work, made, rows, failures + warnings, sorted(places - standing), keep)
        )

    def _keep(self) -> None:
        self._batches.flush_if_due(self._dates.values())
        self._tell()

    def _remove(self, path: Path) -> None:
        if path.is_relative_to(self._scratch):
            path.unlink(missing_ok=True)


def _kind_of_records(known: FileState | None) -> str:
    """The media type that a file had when it last gave records; empty if it never did."""
    return known.media_type if known is not None and known.state in ("primary", "failed") else ""


def _change_of_kind(known: FileState | None, outcome: Outcome) -> str:
    """Why a file is not what it was: a collection of records, and now, say, the error page of a server."""
    before = _kind_of_records(known)
    now = outcome.documents[0].media_type if outcome.documents else ""
    if before not in COLLECTIONS or not now or now in COLLECTIONS:
        return ""
    return (
        f"it held records ({before}) and is {now} now; its records stay: restore the file, or remove it "
        "and crawl once if they are to go"
    )


def _parts(place: str, failures: Sequence[Failure]) -> Failure:
    """The failures of single documents in a file that otherwise could be read, as one."""
    shown_parts = printable("; ".join(f"{failure.where}: {failure.reason}" for failure in failures[:20]))
    more = f"; and {len(failures) - 20} more" if len(failures) > 20 else ""
    return Failure(
        place, "document", f"{len(failures)} of its documents could not be read: {shown_parts}{more}"
    )
