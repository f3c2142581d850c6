"""Fetching documents as a job of a node: in a child process, as long as something is due."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from indlet import process
from indlet.errors import IndletError, StoreUnavailable
from indlet.extension import FollowUp
from indlet.node import children
from indlet.service.harvest.negotiate import source_name
from indlet.service.harvest.one_origin import configured_sources
from indlet.settings import Settings, Source
from indlet.sidecar.links import Reason
from indlet.sidecar.pace import opening
from indlet.sidecar.run import JOB, fetch_documents, wanted_tasks
from indlet.sidecar.status import describe, status_of
from indlet.sidecar.work import SourceFacts, SourceTask, facts_key
from indlet.store import Store, configured_for, desk_sources, open_configured


class FetchingFailed(IndletError):
    """The process that fetches documents has ended before its time."""


def documents_job(store: Store, settings: Settings, stop: threading.Event) -> None:
    """Fetch what is due, in a child process, if there is anything."""
    if opening(settings.sidecar.hours, store.now()) > store.now() or store.busy(JOB):
        return
    tasks = [task for task in wanted_tasks(store, known_sources(store, settings)) if _is_due(store, task)]
    if not tasks:
        return
    told: list[bytes] = []
    task = (configured_for(store, settings), [task.source for task in tasks])
    status = children.run("indlet.sidecar.job", task, told.append, stop)
    if status and not stop.is_set():
        reason = told[-1].decode("utf-8", "replace").strip() if told else f"status {status}"
        kind = StoreUnavailable if children.store_lost(status) else FetchingFailed
        raise kind(f"documents could not be fetched: {reason}; they are tried again")


def known_sources(store: Store, settings: Settings) -> list[Source]:
    """The sources of the settings, with what the desk decided, and those that were added there."""
    configured = configured_sources(store, settings)
    with store.read() as view:
        added = desk_sources.added(view)
        paused = desk_sources.read(view)["paused"]
    found = {**{name: replace(source, name=name) for name, source in added.items()}, **configured}
    return [replace(source, paused=paused.get(name, source.paused)) for name, source in found.items()]


def _is_due(store: Store, task: SourceTask) -> bool:
    now = store.now()
    with store.read() as view:
        facts = SourceFacts.read(view.meta(facts_key(task.origin)))
        due = view.next_document_due(task.origin)
        new = view.page(1, after=facts.position, origins=[task.origin], parts=(), metadata_only=True)
    return bool(new) or (due is not None and due <= now)


def fetch_after_harvest(store: Store, settings: Settings, sources: Sequence[Source]) -> FollowUp:
    """For a command: fetch what is due of the sources that it harvested, and say what came of it."""
    from indlet.service.pipeline import bring_up

    fetch_documents(store, settings, sources)
    bring_up(store, settings.index)
    lines, failed = [], False
    for task in wanted_tasks(store, sources):
        status = status_of(store, task.origin)
        lines.append(f"{source_name(task.source)}: {describe(status)}")
        failed = failed or bool(status.waiting) or Reason.GONE in status.reasons
    return FollowUp(tuple(lines), failed)


def main() -> None:
    """The child."""
    settings, sources = process.receive_task()
    stop = process.stop_event()
    with children.ending(), open_configured(settings) as store:
        fetch_documents(store, settings, sources, halt=stop)


if __name__ == "__main__":
    main()
