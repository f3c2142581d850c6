"""A process that brings the index up to the store, while another process may be filling the store.

Indexing is nearly half of the work of a harvest, and threads of one interpreter do not share that out well:
so it goes on in an interpreter of its own, which knows of the store and of nothing else. It ends when nothing
has come for a while, or when its standard input does, that is, with whoever started it; before that it brings
the index up to the store. A harvest from the command line starts it by `Indexer`, a node by its index job.
Started with the argument `AHEAD`, it loads what it needs before it is told its task, if it ever is.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from indlet import process
from indlet.errors import IndexBusy, IndletError
from indlet.service.index import follow
from indlet.service.index.engines import DEFAULT, index_of
from indlet.settings import IndexEngine
from indlet.store import Store, open_store
from indlet.text import Analyzer, Policy

# Changes that are worth a process; and how many must be expected for one to get ready before they are there.
CHANGES: Final = 2_000
LARGE: Final = 4_000
AHEAD: Final = "ahead"
BUSY: Final = 75  # the exit status (EX_TEMPFAIL) where another process is indexing


@dataclass(frozen=True, slots=True)
class IndexTask:
    """What the process is to do. `idle`: the seconds without a change after which it ends."""

    store: str  # its URL
    folder: Path  # the store's local folder
    policy: Policy
    engine: IndexEngine
    rebuild: bool = False
    idle: float = float("inf")


class Indexer:
    """Such a process beside a harvest, from when it is first worth while to the end of the block."""

    def __init__(
        self,
        store: Store,
        policy: Policy,
        ahead: subprocess.Popen[bytes] | None = None,
        engine: IndexEngine = DEFAULT,
    ) -> None:
        """`ahead`: a process that was started before, and waits for its task."""
        self._store, self._engine = store, engine
        self._policy = policy
        self._ahead = ahead
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Indexer:
        return self

    def look(self, expected: int = 0) -> None:
        """Start the process if the index is far enough behind, or will be by what is expected."""
        if self._process is None:
            newest, position = follow.lag(self._store, self._engine)
            if expected >= LARGE or newest - position >= CHANGES:
                self._process = self._ahead or process.start(
                    __name__, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
                )  # what is wrong is said by whoever tries again
                process.send_task(self._process, self._task())

    def _task(self) -> IndexTask:
        return IndexTask(self._store.url, self._store.local_folder.absolute(), self._policy, self._engine)

    def __exit__(self, *_: object) -> None:
        """Waits until the index is up to the store."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._store.settle()
            self._process.wait()


@contextlib.contextmanager
def collector_resting() -> Iterator[None]:
    """Ingest makes many objects and no cycles; the cyclic collector would look at them in vain."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


class _Ending:
    """Whether there is nothing more to wait for: standard input has ended, or no change came for a while."""

    def __init__(self, store: Store, idle: float) -> None:
        self._store, self._idle = store, idle
        self._newest, self._since = -1, time.monotonic()

    def __call__(self, seconds: float) -> bool:
        with self._store.read() as view:
            newest = view.last_seq()
        if newest != self._newest:
            self._newest, self._since = newest, time.monotonic()
        if time.monotonic() - self._since >= self._idle:
            return True
        return bool(select.select([sys.stdin], [], [], seconds)[0])


def _work(task: IndexTask) -> follow.CaughtUp:
    analyzer = Analyzer(task.policy)
    with collector_resting(), open_store(task.store, create=False, local_folder=task.folder) as store:
        if task.rebuild:
            return follow.rebuild(store, analyzer=analyzer, engine=task.engine)
        before = max(follow.lag(store, task.engine)[1], 0)
        follow.pursue(store, _Ending(store, task.idle), analyzer, engine=task.engine)
        index_of(store, task.engine).settle()
        position = follow.lag(store, task.engine)[1]
        return follow.CaughtUp(max(position - before, 0), position)


def main() -> int:
    signal.signal(signal.SIGTERM, _stopped)
    process.share_memory()
    task: IndexTask = process.receive_task()
    status, said = 0, b""
    try:
        said = orjson.dumps(astuple(_work(task)))
    except IndexBusy as e:
        status, said = BUSY, str(e).encode()
    except IndletError as e:
        status, said = 1, str(e).encode()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(said + b"\n")
        sys.stdout.buffer.flush()
    return status


def _stopped(*_: Any) -> None:
    """The last commit stands; what came after it is indexed by the next one."""
    sys.exit(1)


if __name__ == "__main__":
    os._exit(main())  # at once: all is on the disk, and whoever waits need not wait for what goes with us
