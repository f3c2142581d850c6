"""The service's stages in their order: harvest -> normalise -> store -> index. No other file knows it.

`harvest_all` harvests sources side by side, each in a thread of its own, so that a dead one delays no other;
the index then catches up with the store.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from indlet import process
from indlet.errors import IndexBusy, IndletError, StoreUnavailable
from indlet.formats.registry import known_roots
from indlet.limits import MEMORY_SPENT
from indlet.service.harvest.concurrency import RunQueue
from indlet.service.harvest.mesh import origin_key
from indlet.service.harvest.negotiate import source_name
from indlet.service.harvest.one_origin import configured_sources, keep_renamed, source_ranks
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import Run, RunOptions
from indlet.service.index import follow
from indlet.service.index.indexer import Indexer, collector_resting
from indlet.settings import IndexEngine, Settings, Source
from indlet.store import Store
from indlet.text import Analyzer, policy_of


def harvest_all(
    store: Store,
    settings: Settings,
    sources: Sequence[Source] | None = None,
    *,
    options: RunOptions | None = None,
    index: bool = True,
    halt: threading.Event | None = None,
    started: Callable[[list[Progress]], None] | None = None,
    indexer_ahead: subprocess.Popen[bytes] | None = None,
) -> list[Progress]:
    """Harvest sources (those of the settings, unless given), then bring the index up to the store.

    `started` gets the live progress of every source before the first request; `halt` ends all runs, which
    the next ones resume; `indexer_ahead` is for `Indexer`.
    """
    chosen = configured_sources(store, settings).values() if sources is None else sources
    wanted = [source for source in chosen if not source.paused]
    progress = [Progress(source_name(s)) for s in wanted]
    if started is not None:
        started(progress)
    analyzer = Analyzer(policy_of(settings.analysis))
    queue = RunQueue(progress, settings.harvest.at_once, time.monotonic)
    stop, own = halt or threading.Event(), origin_key(settings.base_url())
    keep_renamed(store, settings)
    roots, ranks = known_roots(settings), source_ranks(store, settings)
    broken = list[BaseException]()

    def work() -> None:
        while not stop.is_set() and (number := queue.take()) is not None:
            source, seen = wanted[number], progress[number]
            try:
                Run(
                    store, source, seen.source, analyzer, settings.harvest, seen,
                    options=options, halt=stop, own=own,
                    exchange=settings.duplicates.exchange, ranks=ranks, roots=roots,
                ).go()  # fmt: skip
            except (IndletError, MemoryError) as e:  # a MemoryError says nothing
                seen.fail(str(e) or MEMORY_SPENT)
                seen.store_lost = isinstance(e, StoreUnavailable)
            except BaseException as e:
                seen.fail(f"{type(e).__name__}: {e}")
                broken.append(e)
            finally:
                queue.done(number)

    process.share_memory()  # before there are threads: each would keep a memory of its own
    with collector_resting(), Indexer(store, analyzer.policy, indexer_ahead, settings.index) as indexer:

        def look() -> None:
            if index:
                indexer.look(sum(p.remaining or 0 for p in progress if p.ended is None))

        _in_threads(work, min(len(wanted), max(settings.harvest.at_once, 1)), queue, stop, look)
    if broken:
        raise broken[0]
    if index and wanted:
        bring_up(store, settings.index, analyzer)
    return progress


def _in_threads(
    work: Callable[[], None], at_once: int, queue: RunQueue, stop: threading.Event, look: Callable[[], None]
) -> None:
    """Works until the queue is empty, and looks on meanwhile; Ctrl-C stops all."""
    threads = list[threading.Thread]()

    def begin() -> None:
        threads.append(threading.Thread(target=work, name=f"harvest-{len(threads)}", daemon=True))
        threads[-1].start()

    try:
        for _ in range(at_once):
            begin()
        for thread in threads:  # more may come to them
            while thread.is_alive():
                thread.join(0.05)  # with a timeout, so that Ctrl-C gets through
                if queue.more_workers() and not stop.is_set():
                    begin()
                look()
    except KeyboardInterrupt:
        stop.set()
        for thread in threads:
            thread.join()
        raise


def bring_up(store: Store, engine: IndexEngine, analyzer: Analyzer | None = None) -> None:
    """The index catches up; where another process is at it, that one does the rest. StoreError if the index
    cannot be written."""
    try:
        follow.catch_up(store, analyzer=analyzer, engine=engine)
    except IndexBusy:
        newest, position = follow.lag(store, engine)
        if position < 0 or newest == 0:
            raise
