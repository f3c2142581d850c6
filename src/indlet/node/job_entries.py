"""What the store keeps of jobs for all machines: when each ended, what was asked for at a desk, the pause.

A web node that leaves its jobs to workers asks for a harvest, a rebuild or a removal by an entry here; the
entry goes in the transaction that notes the end of the job, so a worker that is killed leaves it to another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Final

import orjson

from indlet.errors import SettingsError
from indlet.model import JsonObject
from indlet.store import Store

_ENDED: Final = "worker jobs"
_ASKED: Final = "jobs asked for"
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
        return {name: EndedJob(*told) for name, told in _object(view.meta(_ENDED)).items()}


def requests(store: Store) -> dict[str, JobRequest]:
    """What was asked for and has not ended, by the name of the job."""
    with store.read() as view:
        return _requests(view.meta(_ASKED))


def ask(store: Store, job: str, *, full: bool = False, only: Sequence[str] = ()) -> None:
    """Let the next worker with room do a job, before what is due by the clock."""
    now = store.now()

    def add(kept: dict[str, JobRequest]) -> None:
        before = kept.get(job)
        if len(kept) >= _MOST or (before and len(before.only) >= _MOST):
            raise SettingsError("too much waits for the workers; see to it that one runs (indlet worker)")
        if before and not only:
            raise SettingsError(f"{job} is asked for already; a worker takes it up (indlet worker --status)")
        kept[job] = JobRequest(now, full, tuple(dict.fromkeys((*(before.only if before else ()), *only))))

    _change_requests(store, add)


def withdraw(store: Store, job: str) -> None:
    """Take back what was asked for; a run that is on is stopped by its worker."""
    if job in requests(store):
        _change_requests(store, lambda kept: kept.pop(job, None))


def note_end(store: Store, job: str, end: EndedJob, request: JobRequest | None = None) -> None:
    """A job ended, and so did the request that it carried out, unless it was changed meanwhile."""
    with store.write() as tx:
        ended = _object(tx.meta_value(_ENDED, None)) | {job: list(asdict(end).values())}
        tx.meta(_ENDED, orjson.dumps(ended))
        if request is not None:
            kept = _requests(tx.meta_value(_ASKED, None))
            if kept.get(job) == request:
                del kept[job]
                tx.meta(_ASKED, _written(kept))


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


def _change_requests(store: Store, change: Callable[[dict[str, JobRequest]], object]) -> None:
    with store.write() as tx:
        kept = _requests(tx.meta_value(_ASKED, None))
        change(kept)
        tx.meta(_ASKED, _written(kept))


def _written(kept: dict[str, JobRequest]) -> bytes:
    return orjson.dumps({name: asdict(request) for name, request in kept.items()})


def _requests(raw: bytes | None) -> dict[str, JobRequest]:
    kept = _object(raw)
    return {n: JobRequest(told["asked"], told["full"], tuple(told["only"])) for n, told in kept.items()}


def _object(raw: bytes | None) -> JsonObject:
    return orjson.loads(raw) if raw else {}
