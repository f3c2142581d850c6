"""What the store keeps of jobs for all machines: when each ended, what was asked for at a desk, the pause.

A web node that leaves its jobs to workers asks for a harvest, a rebuild or a removal by an entry here; the
entry goes in the transaction that notes the end of the job, so a worker that is killed leaves it to another.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from indlet.errors import SettingsError
from indlet.store import Store, TableReader, kept_tables

_PAUSED: Final = "workers paused"
_MOST: Final = 1000  # requests, and identifiers of one, that wait


@dataclass(frozen=True, slots=True)
class EndedJob:
    """What the store keeps of a job. Times are the store's, seconds since 1970."""

    ended: float
    error: str
    worker: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What the desk wants of a job. `only`: the records to ask for, of a retry."""

    asked: float
    full: bool = False
    only: tuple[str, ...] = ()


def last_runs(store: Store) -> dict[str, EndedJob]:
    with store.read() as view:
        return {row.job: EndedJob(*row[1:]) for row in view.select(kept_tables.JOB_ENDS)}


def requests(store: Store) -> dict[str, JobRequest]:
    """What was asked for and has not ended, by the name of the job."""
    with store.read() as view:
        return _requests(view)


def ask(store: Store, job: str, *, full: bool = False, only: Sequence[str] = ()) -> None:
    """Let the next worker with room do a job, before what is due by the clock."""
    now = store.now()

    with store.write() as tx:
        kept = _requests(tx)
        before = kept.get(job)
        if len(kept) >= _MOST or (before and len(before.only) >= _MOST):
            raise SettingsError("too much waits for the workers; see to it that one runs (indlet worker)")
        if before and not only:
            raise SettingsError(f"{job} is asked for already; a worker takes it up (indlet worker --status)")
        records = list(dict.fromkeys((*(before.only if before else ()), *only)))
        tx.upsert(
            kept_tables.JOB_REQUESTS, [kept_tables.StoredRequest(job, now, int(full), json.dumps(records))]
        )


def withdraw(store: Store, job: str) -> None:
    """Take back what was asked for; a run that is on is stopped by its worker."""
    if job in requests(store):
        with store.write() as tx:
            tx.remove(kept_tables.JOB_REQUESTS, job=job)


def note_end(store: Store, job: str, end: EndedJob, request: JobRequest | None = None) -> None:
    """A job ended, and so did the request that it carried out, unless it was changed meanwhile."""
    with store.write() as tx:
        tx.upsert(kept_tables.JOB_ENDS, [kept_tables.JobEnd(job, end.ended, end.error, end.worker, end.said)])
        if request is not None and _requests(tx).get(job) == request:
            tx.remove(kept_tables.JOB_REQUESTS, job=job)


def pause(store: Store, on: bool) -> None:
    """No worker of the store begins a job until this is taken back; what is on goes on."""
    with store.write() as tx:
        tx.meta(_PAUSED, int(on))


def paused(store: Store) -> bool:
    with store.read() as view:
        return bool(view.meta(_PAUSED))


def permit(kind: str, name: str) -> str:
    """The store's permit for a job, or for asking a host."""
    return f"{kind}-{blake2b(name.encode(), digest_size=8).hexdigest()}"


def _requests(tables: TableReader) -> dict[str, JobRequest]:
    return {
        row.job: JobRequest(row.asked, bool(row.whole), tuple(json.loads(row.records)))
        for row in tables.select(kept_tables.JOB_REQUESTS)
    }
