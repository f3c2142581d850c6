"""Keeps the index in step with the store while a node serves, without holding up a page.

Harvests index for themselves, in their own processes (web/apart.py); crawls, restored stores and whatever a
harvest left are what remains. A few changes are applied here, which takes milliseconds. More of them would
keep the interpreter from the requests for seconds: those are applied by a process of lower priority.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import subprocess
import sys
import threading
from dataclasses import astuple, replace
from typing import Final

import orjson

from indlet.errors import IndexBusy, IndletError, StoreError
from indlet.service.index import follow
from indlet.service.records.stored_policy import policy_for
from indlet.settings import Settings
from indlet.store import Store
from indlet.text import Analyzer
from indlet.web.harvest_process import begun

EVERY: Final = 3.0  # seconds between looks, when nobody wakes the keeper
FEW: Final = 300  # changes that take this process less than the 50 ms that a page may take
_BUSY: Final = 75  # EX_TEMPFAIL: the child found another process at work

_log = logging.getLogger("indlet.web")


class Keeper:
    """A thread that looks now and then, or when woken, whether the index is behind the store."""

    def __init__(
        self, store: Store, settings: Settings, analyzer: Analyzer, *, every: float = EVERY, few: int = FEW
    ) -> None:
        self._store = store
        self._settings = replace(settings, data=store.folder)
        self._analyzer = analyzer
        self._every, self._few = every, few
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="index-keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        """Ends the thread, and its child after the commit that it is at."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Brings the index up to the store, here or in another process; IndexBusy if one is at it."""
        newest, position = follow.lag(self._store)
        if newest == position:
            return
        if position >= 0 and 0 <= newest - position <= self._few:
            follow.catch_up(self._store, analyzer=self._analyzer)
        else:
            index_apart(self._settings, self._stop)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.look()
            except IndexBusy:
                pass  # another process is at it
            except IndletError as e:
                _log.info("index: %s", e)  # the disk may be full: the next look tries again
            except Exception:
                _log.exception("index")  # whatever it was, the node serves on
            self._wake.wait(self._every)
            self._wake.clear()


def index_apart(
    settings: Settings, halt: threading.Event | None = None, *, anew: bool = False
) -> follow.Progress | None:
    """Brings the index of the settings' data folder up to its store in a process of its own, or makes it
    anew; None if `halt` cut that short.

    IndexBusy if another process is at it, StoreError for what the child says.
    """
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(pickle.dumps((settings, anew)))
            child.stdin.flush()
        while child.poll() is None:
            if halt is not None and halt.is_set():
                child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(0.1)
        said = child.stdout.read(4000).decode(errors="replace").strip()
    if child.returncode == _BUSY:
        raise IndexBusy(said)
    if child.returncode == 0 and said:
        return follow.Progress(*orjson.loads(said))
    if halt is not None and halt.is_set():
        return None
    raise StoreError(said or f"the indexing process ended with status {child.returncode}; see the log")


class _Halted(Exception):
    pass


def main() -> int:
    """The child: its end of the pipe tells what to do, and by closing that the parent has gone."""
    (settings, anew), halt = begun()

    def between(applied: int) -> None:
        if halt.is_set():
            raise _Halted

    try:
        with Store.open(settings.data) as store:
            work = follow.rebuild if anew else follow.catch_up
            done = work(store, between, analyzer=Analyzer(policy_for(store, settings.analysis)))
            print(orjson.dumps(astuple(done)).decode())
    except _Halted:
        return 1
    except IndexBusy as e:
        print(e)
        return _BUSY
    except IndletError as e:
        print(e)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
