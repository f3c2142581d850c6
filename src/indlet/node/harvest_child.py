"""A harvest in a process of its own, so that reading XML never holds up a page.

The parent hands over settings, source and options, and is told how far the run is, a line of JSON at a time.
SIGTERM and the end of the parent stop it; what it had is committed, and the next run goes on there.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import orjson

from indlet import process
from indlet.errors import IndletError, StoreUnavailable
from indlet.node import children
from indlet.service.harvest.progress import Phase, Progress, RunOutcome
from indlet.service.harvest.run import RunOptions
from indlet.service.pipeline import harvest_all
from indlet.settings import Settings, Source
from indlet.store import open_configured

_EVERY: Final = 0.25  # seconds between lines
_SHOWN: Final = (
    "phase", "records", "deleted", "changed", "failed", "owed", "withheld", "pages", "requests", "bytes",
    "size", "form",
)  # fmt: skip


def harvest_in_child(
    settings: Settings,
    source: Source,
    progress: Progress,
    options: RunOptions | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Harvest a source into the store of the settings' data folder; `progress` follows the child."""
    stop = stop or threading.Event()

    def hear(line: bytes) -> None:
        told = orjson.loads(line)
        progress.repairs.clear()
        progress.repairs.update(told.pop("repairs", {}))
        if told.get("outcome"):
            progress.outcome = RunOutcome(told.pop("outcome"))
        phase = Phase(told.pop("phase", Phase.WAITING))
        if phase is not Phase.WAITING:  # the child's run waits for nobody
            progress.phase = phase
        for name, value in told.items():
            setattr(progress, name, value)

    status = children.run(__name__, (settings, replace(source, paused=False), options), hear, stop)
    progress.ended = time.monotonic()
    if not progress.outcome:
        progress.outcome = RunOutcome.INTERRUPTED if stop.is_set() else RunOutcome.FAILED
        progress.reason = progress.reason or f"the harvesting process ended with status {status}"
    progress.store_lost = children.store_lost(status)


def main() -> None:
    """The child. Indexing is another process's work: it follows the store."""
    settings, source, options = process.receive_task()
    stop = process.stop_event()
    started: list[Progress] = []

    def tell(problem: str) -> None:
        if not started:  # otherwise each run has told its own
            children.tell({"reason": problem})

    with children.ending(tell), open_configured(settings) as store:
        with _telling(started):
            harvest_all(
                store,
                settings,
                [source],
                options=options,
                index=False,
                halt=stop,
                started=started.extend,
            )
        for run in started:
            if run.store_lost:
                raise StoreUnavailable(run.reason)


@contextlib.contextmanager
def _telling(started: list[Progress]) -> Iterator[None]:
    over = threading.Event()

    def tell(last: bool) -> None:
        for progress in started:
            told = {name: getattr(progress, name) for name in _SHOWN} | {"repairs": dict(progress.repairs)}
            if last:
                told |= {"outcome": progress.outcome or RunOutcome.FAILED, "reason": progress.reason}
            children.tell(told)

    def keep_telling() -> None:
        while not over.wait(_EVERY):
            tell(False)

    teller = threading.Thread(target=keep_telling, daemon=True)
    teller.start()
    try:
        yield
    except IndletError as e:
        for progress in started:
            progress.outcome = progress.outcome or RunOutcome.FAILED
            progress.reason = progress.reason or str(e)
        raise
    finally:
        over.set()
        teller.join()
        tell(True)


if __name__ == "__main__":
    main()
