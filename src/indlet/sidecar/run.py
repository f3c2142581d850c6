"""The documents of all sources that want full text: a thread for each source, one pace for each host."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from indlet.errors import SettingsError
from indlet.service.harvest.negotiate import source_name
from indlet.service.harvest.source_state import SourceState
from indlet.settings import Settings, Sidecar, Source
from indlet.sidecar.cache import FOLDER, DocumentCache
from indlet.sidecar.extraction import Extract, extractor
from indlet.sidecar.pace import Hosts
from indlet.sidecar.visit import Visit
from indlet.sidecar.work import SourceTask, SourceWork
from indlet.store import Store

JOB = "documents"  # the permit: one process at a time fetches documents into a store

Report = Callable[[str, Visit], None]  # hears the name of a source, and a visit


def wanted_tasks(store: Store, sources: Sequence[Source]) -> list[SourceTask]:
    """The sources whose documents are to be fetched: harvested before, and without an index of their own."""
    found = []
    with store.read() as view:
        for source in sources:
            origin = view.origin("source", source_name(source))
            if not source.fulltext or source.paused or origin is None:
                continue
            shape = SourceState.from_json(origin.state).shape
            if shape is None or not shape.index_prefix:
                found.append(SourceTask(source, origin.id))
    return found


def fetch_documents(
    store: Store,
    settings: Settings,
    sources: Sequence[Source],
    *,
    extract: Extract | None = None,
    halt: threading.Event | None = None,
    report: Report = lambda name, visit: None,
) -> dict[str, str]:
    """Fetch what is due of these sources; by name, how each ended: "done", or what holds it up.

    StoreError if another process is at it.
    """
    tasks = wanted_tasks(store, sources)
    waiting: SimpleQueue[SourceTask] = SimpleQueue()
    for task in tasks:
        waiting.put(task)
    stop, hosts = halt or threading.Event(), Hosts(settings.sidecar)
    read = extract or extractor(settings.crawl.limits)
    ended: dict[str, str] = {}
    cache: DocumentCache | None = None
    broken = list[BaseException]()

    def work() -> None:
        while not stop.is_set():
            try:
                task = waiting.get_nowait()
            except Empty:
                return
            name = source_name(task.source)
            try:
                source_work = SourceWork(store, settings, task, hosts, read, stop)
                source_work.fetcher.cache = cache
                ended[name] = source_work.run(
                    lambda visit, name=name: report(name, visit)  # type: ignore[misc]
                )
            except BaseException as e:
                broken.append(e)
                stop.set()

    with store.job(JOB):
        cache = _open_cache(store, settings.sidecar)
        threads = [
            threading.Thread(target=work, name=f"documents-{number}", daemon=True)
            for number in range(min(len(tasks), max(settings.sidecar.at_once, 1)))
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)  # with a timeout, so that Ctrl-C gets through
        except KeyboardInterrupt:
            stop.set()
            for thread in threads:
                thread.join()
            raise
    if broken:
        raise broken[0]
    return ended


def _open_cache(store: Store, sidecar: Sidecar) -> DocumentCache | None:
    """The cache of the settings; what a cache has kept is deleted when it is switched off."""
    folder = (Path(sidecar.cache_folder) if sidecar.cache_folder else store.local_folder) / FOLDER
    try:
        if sidecar.cache_bytes or folder.exists():
            cache = DocumentCache(folder, sidecar.cache_bytes)
        return cache if sidecar.cache_bytes else None
    except OSError as e:
        raise SettingsError(
            f"the document cache {folder} cannot be used: {e}; see sidecar.cache_folder"
        ) from e
