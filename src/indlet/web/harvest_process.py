"""A harvest in a process of its own, so that reading XML and indexing never hold up a page.

The parent hands over what to do, pickled, on stdin; the child tells how far it is, a line of JSON at a time.
SIGTERM and the end of the parent cut it short; what it had is committed, and the next run goes on there.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson

from indlet.errors import IndletError
from indlet.node.fetched import extractor
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import RunOptions
from indlet.service.index.follow import Follower, catch_up
from indlet.service.pipeline import harvest_all
from indlet.settings import Settings, Source
from indlet.store import Store
from indlet.text import Analyzer, policy_of

_EVERY = 0.25  # seconds between lines
_SHOWN = (
    "phase",
    "records",
    "deleted",
    "changed",
    "failed",
    "owed",
    "pages",
    "requests",
    "bytes",
    "size",
    "form",
)


def harvest_apart(
    settings: Settings,
    source: Source,
    progress: Progress,
    wish: RunOptions | None = None,
    halt: threading.Event | None = None,
) -> None:
    """Harvest a source into the settings' data folder and its index; `progress` follows the child."""
    halt = halt or threading.Event()
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(pickle.dumps((settings, replace(source, paused=False), wish)))
            child.stdin.flush()
        over = threading.Event()
        threading.Thread(target=_end_when, args=(halt, over, child), daemon=True).start()
        try:
            for line in child.stdout:
                told = orjson.loads(line)
                progress.repairs.clear()
                progress.repairs.update(told.pop("repairs", {}))
                for name, value in told.items():
                    setattr(progress, name, value)
        finally:
            over.set()
        child.wait()
    progress.ended = time.monotonic()
    if not progress.outcome:
        progress.outcome = "interrupted" if halt.is_set() else "failed"
        progress.reason = progress.reason or f"the harvesting process ended with status {child.returncode}"


def _end_when(halt: threading.Event, over: threading.Event, child: subprocess.Popen[bytes]) -> None:
    while not over.wait(0.1):
        if halt.is_set():
            child.terminate()
            return


def begun() -> tuple[Any, threading.Event]:
    """In a child that a node starts: what its parent wrote for it to do, and when to stop doing it."""
    halt = threading.Event()
    step_back()
    signal.signal(signal.SIGTERM, lambda *_: halt.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    told = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own parent wrote it
    threading.Thread(target=_orphaned, args=(halt,), daemon=True).start()
    return told, halt


def main() -> None:
    """The child: reads what to do, does it, tells about it."""
    (settings, source, wish), halt = begun()
    with Store.open(settings.data) as store, _telling() as started:
        # Indexing as it goes is work that the serving process is spared.
        analyzer = Analyzer(policy_of(settings.analysis))
        follower = Follower(store, 1.0, None, analyzer)
        follower.start()
        try:
            harvest_all(
                store,
                settings,
                [source],
                wish=wish,
                extract=extractor(settings.crawl.limits),
                index=False,
                halt=halt,
                started=started.extend,
            )
        except IndletError as e:
            for progress in started:
                progress.outcome, progress.reason = progress.outcome or "failed", progress.reason or str(e)
        finally:
            follower.stop()
            with contextlib.suppress(IndletError):  # whoever holds the index brings it up
                catch_up(store, analyzer=analyzer)


def step_back() -> None:
    """Lets people who wait for a page come first: this process gets a tenth of a core that they want too."""
    os.nice(10)
    if hasattr(os, "SCHED_BATCH"):  # and does not take one from them at the moment it wakes up
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _orphaned(halt: threading.Event) -> None:
    """The parent's end of the pipe closes when it ends, however it ends."""
    os.read(sys.stdin.fileno(), 1)  # the buffered reader's lock would be held at the interpreter's end
    halt.set()


@contextlib.contextmanager
def _telling() -> Iterator[list[Progress]]:
    started: list[Progress] = []
    over = threading.Event()

    def tell(last: bool) -> None:
        for progress in started:
            told = {name: getattr(progress, name) for name in _SHOWN} | {"repairs": dict(progress.repairs)}
            if last:
                told |= {"outcome": progress.outcome or "failed", "reason": progress.reason}
            sys.stdout.buffer.write(orjson.dumps(told) + b"\n")
            sys.stdout.buffer.flush()

    def keep_telling() -> None:
        with contextlib.suppress(BrokenPipeError):  # the parent has gone: `_orphaned` ends the run
            while not over.wait(_EVERY):
                tell(False)

    teller = threading.Thread(target=keep_telling, daemon=True)
    teller.start()
    try:
        yield started
    finally:
        over.set()
        teller.join()
        with contextlib.suppress(BrokenPipeError):
            tell(True)


if __name__ == "__main__":
    main()
