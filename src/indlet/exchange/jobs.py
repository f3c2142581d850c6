"""What exchange does by the clock: writes for catalogues, raises and sends alerts, looks for duplicates."""

from __future__ import annotations

import threading
from functools import partial

from indlet.errors import StoreError
from indlet.exchange.duplicates.job import duplicates_job
from indlet.exchange.notify import tell, watch
from indlet.exchange.write_out import WriteTask
from indlet.extension import JobEntry, Step
from indlet.formats.registry import known_roots
from indlet.settings import Settings
from indlet.store import Store, configured_for


def jobs(store: Store, settings: Settings) -> list[JobEntry]:
    found = [
        JobEntry(
            f"write {write.folder}",
            write.every,
            partial(_write, WriteTask(store, write, known_roots(settings))),
            Step.WRITE,
            priority=3,
            after_changes=True,
        )
        for write in settings.write
    ]
    if _has_alerts(store, settings):
        failures = bool(settings.notify.failed_runs)
        work = partial(_see_to_alerts, store, settings)
        found.append(JobEntry("alerts", settings.notify.every, work, priority=4, after_failures=failures))
    if every := settings.duplicates.every:
        work = partial(duplicates_job, configured_for(store, settings))
        found.append(JobEntry("duplicates", every, work, priority=4))
    return found


def _has_alerts(store: Store, settings: Settings) -> bool:
    notify = settings.notify
    if settings.source or settings.write or notify.webhook or notify.email or notify.failed_runs:
        return True
    with store.read() as view:
        return bool(view.origins("source"))


def _write(task: WriteTask, stop: threading.Event) -> None:
    """A task that stopped before its end has failed."""
    if reason := task.run(stop).reason:
        raise StoreError(reason)


def _see_to_alerts(store: Store, settings: Settings, stop: threading.Event) -> None:
    """Silent sources raise an alert, and alerts go out."""
    watch(store, settings)
    tell(store, settings)
