"""Files become analysed documents in worker processes, each within limits of time and memory.

A parser that hangs, crashes or eats memory takes its process with it and nothing else: the process is
replaced and the file becomes a Failure. Jobs go out in batches sized by how long they take, so that thousands
of small files a second cost little talk; at most two batches wait at each worker, however many jobs come.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import orjson

from indlet.errors import IndletError
from indlet.model import Failure, JsonObject, Metadata, TermVector
from indlet.provider.extract.file import FileReader
from indlet.provider.process import Process, death
from indlet.settings import Limits
from indlet.text import Policy

STAGE: Final = "extract"
BATCH: Final = 64
BATCH_NAMES: Final = (
    16_384  # characters; two batches must fit a socket's buffer, for nobody reads it meanwhile
)
BATCH_SECONDS: Final = 0.1  # how long a batch should keep a worker busy
COLLECT_SECONDS: Final = 0.02  # how long to wait for a slow source of jobs before sending what there is
START_SECONDS: Final = 120.0
GRACE_SECONDS: Final = 2.0
STARTS: Final = 3
ANSWER_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class ReadingJob:
    """A local file to be read. `tag` comes back with the outcome and never leaves this process."""

    tag: object
    path: Path
    name: str
    reader: FileReader | None = None  # None: by what the file is


@dataclass(frozen=True, slots=True)
class Analysed:
    """A document after analysis. `language` is the declared one, else that of the vector."""

    key: str
    metadata: Metadata
    media_type: str
    vector: TermVector
    language: str
    no_text: str = ""  # what it is, where it has no text: an image, scanned pages …
    raw: bytes = b""
    statements: Sequence[Sequence[str | bool]] = ()  # see `Document`


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job: documents, or the `failure` of the whole file. `failures` are those of its parts.

    `digest` is the SHA-256 of the file's bytes; empty where they could not be read or were too many.
    """

    tag: object
    digest: str
    documents: tuple[Analysed, ...] = ()
    failure: Failure | None = None
    failures: tuple[Failure, ...] = ()
    size: int = 0


@dataclass(slots=True)
class _Ticket:
    """A job on its way. One that may have brought a worker down is tried once more, alone."""

    number: int
    job: ReadingJob
    alone: bool = False


@dataclass(slots=True)
class _Worker:
    process: Process
    deadline: float
    ready: bool = False
    answered: int = 0
    batches: deque[list[_Ticket]] = field(default_factory=deque)
    begun: float = 0.0


class Workers:
    """A context manager over `processes` worker processes; they start when there is work for them."""

    def __init__(self, processes: int, limits: Limits, policy: Policy) -> None:
        self._processes = max(1, processes or os.cpu_count() or 1)
        self._limits = limits
        self._greeting = pickle.dumps((limits, policy))
        self._workers: list[_Worker] = []
        self._retries: deque[_Ticket] = deque()
        self._pace = BATCH_SECONDS / 4  # seconds a job, a running mean
        self._numbers = 0
        self._false_starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every worker: an idle one by closing its socket, a busy one by force."""
        for worker in self._workers:
            worker.process.hang_up()
            if worker.batches:
                worker.process.kill()
        for worker in self._workers:
            worker.process.ended()
        self._workers.clear()

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(worker.process.pid for worker in self._workers)

    def map(self, jobs: Iterable[ReadingJob]) -> Iterator[Outcome]:
        """An outcome for each job, in the order in which they are ready. One `map` runs at a time."""
        source = iter(jobs)
        open_source = True
        try:
            while True:
                if open_source:
                    open_source = self._feed(source)
                else:
                    self._feed(iter(()))
                if not any(worker.batches for worker in self._workers):
                    if not open_source and not self._retries:
                        return
                    continue
                yield from self._listen()
        finally:
            # A consumer that stops early, or Ctrl-C: what is under way is given up, with its processes.
            self._retries.clear()
            for worker in [worker for worker in self._workers if worker.batches]:
                self._remove(worker, kill=True)

    # Sending

    def _feed(self, source: Iterator[ReadingJob]) -> bool:
        """Gives every worker enough to do; false when the source has no more jobs."""
        while True:
            free = [
                w for w in self._workers if len(w.batches) < 2 and not (w.batches and w.batches[0][0].alone)
            ]
            idle = next((worker for worker in free if not worker.batches), None)
            may_start = len(self._workers) < self._processes
            if self._retries:
                if idle is None and not may_start:
                    return True  # a suspect waits for a worker of its own
                self._send(idle or self._started(), [self._retries.popleft()])
                continue
            if not free and not may_start:
                return True
            batch, more = self._collect(source)
            if batch:
                self._send(idle or (self._started() if may_start else free[0]), batch)
            if not more:
                return False

    def _collect(self, source: Iterator[ReadingJob]) -> tuple[list[_Ticket], bool]:
        size = max(1, min(BATCH, int(BATCH_SECONDS / max(self._pace, 1e-6))))
        until = time.monotonic() + COLLECT_SECONDS
        batch: list[_Ticket] = []
        names = 0
        for job in source:
            self._numbers += 1
            batch.append(_Ticket(self._numbers, job))
            names += len(str(job.path)) + len(job.name)
            if len(batch) >= size or names > BATCH_NAMES or time.monotonic() > until:
                return batch, True
        return batch, False

    def _send(self, worker: _Worker, batch: list[_Ticket]) -> None:
        if not worker.batches:
            worker.begun = time.monotonic()
            worker.deadline = worker.begun + self._patience(worker)
        worker.batches.append(batch)
        lines = [
            (t.number, os.fsencode(t.job.path), t.job.name.encode("utf-8", "replace").decode(), t.job.reader)
            for t in batch
        ]
        worker.process.send(pickle.dumps(lines))

    def _patience(self, worker: _Worker) -> float:
        return self._limits.seconds + (GRACE_SECONDS if worker.ready else START_SECONDS)

    # Listening

    def _listen(self) -> Iterator[Outcome]:
        """Outcomes of whatever has arrived; workers that died or overran are replaced."""
        busy = [worker for worker in self._workers if worker.batches]
        soonest = min(worker.deadline for worker in busy)
        readable = wait([worker.process.connection for worker in busy], max(0.0, soonest - time.monotonic()))
        for worker in busy:
            if worker.process.connection in readable:
                try:
                    message = worker.process.connection.recv_bytes(ANSWER_BYTES)
                except (EOFError, OSError):
                    yield from self._died(worker)
                    continue
                yield from self._heard(worker, message)
        now = time.monotonic()
        for worker in busy:
            # Whoever had something to say was heard above: silence past the deadline is a hanging parser.
            if (
                worker in self._workers
                and worker.batches
                and now > worker.deadline
                and not worker.process.connection.poll()
            ):
                yield from self._overran(worker)

    def _heard(self, worker: _Worker, message: bytes) -> Iterator[Outcome]:
        now = time.monotonic()
        if not worker.ready:
            worker.ready = True
            self._false_starts = 0
            worker.begun = now
            worker.process.hush()
        else:
            lines = message.split(b"\n")
            self._pace += 0.2 * ((now - worker.begun) / len(lines) - self._pace)
            worker.begun = now
            for line in lines:
                try:
                    ticket = worker.batches[0][0]
                    answer = orjson.loads(line)
                    if answer["job"] != ticket.number:
                        raise ValueError("an answer to another question")
                    outcome = _outcome(ticket.job, answer)
                except (ValueError, TypeError, LookupError, AttributeError):
                    self._remove(worker, kill=True)
                    yield from self._blamed(
                        worker, "its parser led the worker to a senseless answer", final=False
                    )
                    return
                self._answered(worker)
                if answer["tired"] == "memory" and worker.answered > 1 and not ticket.alone:
                    ticket.alone = True  # its predecessors may have left too little room: once more, alone
                    self._retries.append(ticket)
                else:
                    yield outcome
                if answer["tired"]:
                    self._requeue(worker)
                    self._remove(worker)
                    return
        # Counted from here: whoever takes the outcomes may have taken long.
        worker.deadline = time.monotonic() + self._patience(worker)

    def _answered(self, worker: _Worker) -> None:
        batch = worker.batches[0]
        batch.pop(0)
        if not batch:
            worker.batches.popleft()
        worker.answered += 1

    def _died(self, worker: _Worker) -> Iterator[Outcome]:
        code, words = self._remove(worker)
        if not worker.ready:
            self._false_starts += 1
            if self._false_starts >= STARTS:
                raise IndletError(
                    f"extraction workers cannot start (exit status {code}): {words or 'no message'}"
                    " — is limits.memory_mb too small, or the installation incomplete?"
                )
            self._requeue(worker)
            return
        yield from self._blamed(worker, death(code, self._limits.seconds), final=False)

    def _overran(self, worker: _Worker) -> Iterator[Outcome]:
        self._remove(worker, kill=True)
        reason = f"it took longer than {self._limits.seconds:g} seconds (limits.seconds)"
        yield from self._blamed(worker, reason, final=True)

    def _blamed(self, worker: _Worker, reason: str, final: bool) -> Iterator[Outcome]:
        """Blames a job that was alone (for the second time, unless `final`); others are tried again."""
        if not worker.batches:
            return
        batch = worker.batches[0]
        if len(batch) == 1 and (final or batch[0].alone):
            worker.batches.popleft()
            job = batch[0].job
            yield Outcome(job.tag, _digest(job.path, self._limits), failure=Failure(job.name, STAGE, reason))
        else:
            # Any job of the batch under way may be the culprit; those behind it never began.
            for ticket in batch:
                ticket.alone = True
        self._requeue(worker)

    def _requeue(self, worker: _Worker) -> None:
        for batch in worker.batches:
            self._retries.extend(batch)
        worker.batches.clear()

    # Processes

    def _started(self) -> _Worker:
        worker = _Worker(Process.start(self._greeting), time.monotonic() + START_SECONDS)
        self._workers.append(worker)
        return worker

    def _remove(self, worker: _Worker, kill: bool = False) -> tuple[int, str]:
        self._workers.remove(worker)
        if kill:
            worker.process.kill()
        return worker.process.ended()


def _digest(path: Path, limits: Limits) -> str:
    try:
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size > limits.file_bytes:
                return ""
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def _outcome(job: ReadingJob, answer: JsonObject) -> Outcome:
    found = answer["documents"]
    documents = tuple(
        Analysed(
            key,
            metadata,
            media_type,
            TermVector(
                packed.encode(), length, None if places is None else places.encode("latin-1"), made_in
            ),
            language,
            no_text,
            raw.encode(),
            statements,
        )
        for (
            key,
            metadata,
            media_type,
            language,
            packed,
            length,
            places,
            made_in,
            no_text,
            raw,
            statements,
        ) in found
    )
    failures = tuple(
        Failure(where, stage, reason, raw.encode("latin-1"))
        for where, stage, reason, raw in answer["failures"]
    )
    failure = Failure(job.name, STAGE, answer["failure"]) if answer["failure"] else None
    return Outcome(job.tag, answer["digest"], documents, failure, failures, answer["size"])
