"""What the sidecar adds: a command, a job that fetches documents, and their state at the desk."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from indlet.extension import CommandEntry, Extension, FollowUp, JobEntry

if TYPE_CHECKING:
    from indlet.settings import Settings, Source
    from indlet.store import Store

JOB: Final = "documents"
EVERY: Final = "1m"


def _jobs(store: Store, settings: Settings) -> Sequence[JobEntry]:
    """Always: the desk may switch full text on while the node runs. Without it the job does nothing."""

    def work(stop: threading.Event) -> None:
        from indlet.sidecar.job import documents_job

        documents_job(store, settings, stop)

    return (JobEntry(JOB, EVERY, work, after_changes=True),)


def _after_harvest(store: Store, settings: Settings, sources: Sequence[Source]) -> FollowUp:
    if not any(source.fulltext for source in sources):
        return FollowUp()
    from indlet.sidecar.job import fetch_after_harvest

    return fetch_after_harvest(store, settings, sources)


def _source_status(store: Store, origin: int) -> str:
    from indlet.sidecar.status import describe, status_of

    return describe(status_of(store, origin))


EXTENSION: Final = Extension(
    name="sidecar",
    commands={
        "sidecar": CommandEntry(
            "indlet.sidecar.command", "Serve the full-text statistics of a repository beside it."
        )
    },
    jobs=_jobs,
    after_harvest=_after_harvest,
    source_status=_source_status,
)
