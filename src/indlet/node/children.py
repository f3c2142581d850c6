"""The supervisor of a node's child processes: hands over a task, hears of progress, sees to the end."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import orjson

from indlet import process
from indlet.errors import IndletError, StoreUnavailable
from indlet.limits import MEMORY_SPENT

PATIENCE: Final = 20.0  # seconds from SIGTERM to SIGKILL: a child commits what it has first
LINE: Final = 1 << 20  # bytes that a line may have
_UNAVAILABLE: Final = 75  # the status of a child whose store did not answer (EX_TEMPFAIL of sysexits.h)
_LOOK: Final = 0.1


class TookTooLong(Exception):
    """A child was ended because its time was up."""


def run(
    module: str,
    task: object,
    hear: Callable[[bytes], None],
    stop: threading.Event | None = None,
    *,
    seconds: float = float("inf"),
    patience: float = PATIENCE,
) -> int:
    """Runs a module of ours in a child of lower priority until it ends; its exit status. `hear` is given its
    lines.

    `stop` ends it by SIGTERM and, where that is not heard, by SIGKILL; so do the `seconds` that it may take,
    after which TookTooLong is raised.
    """
    deadline = time.monotonic() + seconds
    with process.start(module, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        process.lower_priority(child.pid)
        watch = _Watch(child, stop or threading.Event(), deadline, patience)
        watch.start()
        try:
            process.send_task(child, task)
            assert child.stdout is not None
            while line := child.stdout.readline(LINE):
                hear(line)
        except BaseException:
            child.kill()
            raise
        finally:
            child.wait()
            watch.join()
    if watch.late:
        raise TookTooLong
    return child.returncode


def store_lost(status: int) -> bool:
    """Whether a child ended because its store did not answer: the same task may succeed later."""
    return status == _UNAVAILABLE


def tell(what: object) -> None:
    """In the child: a line of JSON for the parent's `hear`. The parent may have gone: the run is stopped."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(orjson.dumps(what) + b"\n")
        sys.stdout.buffer.flush()


@contextlib.contextmanager
def ending(tell: Callable[[str], None] = tell) -> Iterator[None]:
    """In the child: an error of ours is told to the parent and ends the child with a status of its kind."""
    try:
        yield
    except IndletError as e:
        tell(str(e))
        sys.exit(_UNAVAILABLE if isinstance(e, StoreUnavailable) else 1)
    except MemoryError:
        tell(MEMORY_SPENT)
        sys.exit(1)


class _Watch(threading.Thread):
    def __init__(
        self, child: subprocess.Popen[bytes], stop: threading.Event, deadline: float, patience: float
    ) -> None:
        super().__init__(name=f"watch-{child.pid}", daemon=True)
        self.late = False
        self._child, self._stop_asked, self._deadline, self._patience = child, stop, deadline, patience

    def run(self) -> None:
        while self._child.poll() is None:
            self.late = time.monotonic() > self._deadline
            if self.late or self._stop_asked.wait(_LOOK):
                self._child.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(self._patience)
                    return
                self._child.kill()
                return
