"""The index follows the store: it catches up with the change feed, and is made anew where it cannot.

The store is the system of record, the index is derived. An index that is damaged, that was made under another
policy than the data's, that belongs to another store, or that is ahead of its store (which was restored from
a backup) is rebuilt by the same code. A new index is made beside the old one and takes its place when it is
complete: who searches meanwhile has the old one, exact as of its last commit, or is told that it is damaged.
Only an index that would mislead, for it speaks of other records, goes at once.
"""

from __future__ import annotations

import contextlib
import errno
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any, Final

from indlet.errors import IndexBusy, IndexDamaged, StoreError
from indlet.model import Stored
from indlet.service.index import Engine
from indlet.service.index.embedded import manifest as manifests
from indlet.service.index.embedded.analysis import Analyses
from indlet.service.index.embedded.manifest import Manifest
from indlet.service.index.embedded.merge_scheduler import Merger, settle, tidy
from indlet.service.index.embedded.postings import Words
from indlet.service.records import stored_policy
from indlet.store import Store
from indlet.text import Analyzer, Policy

FOLDER: Final = "index"
# Changes that are applied from one snapshot of the store and committed together: large, for each commit is a
# segment; bounded, for a snapshot keeps the store's journal from being emptied and a crash loses what it had.
CHUNK: Final = 200_000
# The same while the store is being filled: smaller, so that little is left to do when it is full.
EVERY: Final = 15_000
FRESH: Final = 2.0  # seconds after which few changes are committed too
AHEAD: Final = 20  # blocks that wait to be indexed
# Changes that are analysed without kernels, which it takes longer to load.
FEW: Final = 250
BLOCK: Final = 500  # changes whose metadata is analysed together
_PARTS: Final = ("metadata", "vector", "positions")  # of a record, that the index takes
PATIENCE: Final = (
    10.0  # seconds that a search waits for another process that is bringing the index up to date
)


# Changes, the words of their metadata, and the store's newest change if these were all that there was.
_Block = tuple[list[Stored], Words | None, int | None]


@dataclass(frozen=True, slots=True)
class Progress:
    """What catching up came to: changes applied, where the index stands, and why it was rebuilt, if so."""

    applied: int
    position: int
    rebuilt: str = ""


def folder(store: Store) -> Path:
    return store.folder / FOLDER


def lag(store: Store) -> tuple[int, int]:
    """The newest change of the store, and the one up to which the index stands (-1: it cannot be read)."""
    try:
        manifest = manifests.read(folder(store))
    except IndexDamaged:
        manifest = None
    with store.read() as view:  # after the manifest: the index may go on, but not past what is read now
        newest, policy = view.last_seq(), stored_policy.kept_in(view)
    if manifest is None or manifest.extra.get("store", _identity(store)) != _identity(store):
        return newest, -1
    return newest, -1 if _otherwise(policy, manifest) else manifest.position


def catch_up(
    store: Store,
    report: Callable[[int], None] | None = None,
    chunk: int = CHUNK,
    analyzer: Analyzer | None = None,
    merger: Merger | None = None,
) -> Progress:
    """Bring the index up to the store. `report` hears how many changes were applied so far.

    `analyzer` makes the field terms. `merger` does the merges that have become due, in its own time; without
    one they are done before this returns, but others may commit meanwhile.
    StoreError if another process is bringing the index up to date.
    """
    newest, position = lag(store)
    if position == newest:
        return Progress(0, position)
    with _explained(store):
        engine, reason = _opened(store)
        with engine:
            applied = _follow(store, engine, report, chunk, analyzer)
            progress = Progress(applied, engine.position, reason)
        if merger is not None:
            merger.wake()
        else:
            settle(folder(store))
        return progress


def pursue(
    store: Store, ended: Callable[[float], bool], analyzer: Analyzer, every: int = EVERY, pause: float = 0.05
) -> None:
    """Index a store while another process fills it, until that has `ended` and the index is up to it.

    What comes is taken at once, and committed after `every` changes or a few seconds: when the last has come,
    little is left to do. `ended` is asked with the seconds that it may take to answer. Changes are analysed
    while others are indexed, for kernels let go of the interpreter.
    """
    analyzer = _ruling(store, analyzer)
    extra = _about(store, analyzer)
    with (
        _explained(store),
        contextlib.closing(Merger(folder(store))) as merger,
        _opened(store)[0] as engine,
        _ahead(store, engine.applied, ended, Analyses(analyzer), pause) as blocks,
    ):
        waiting, reached = 0, None
        last = time.monotonic()
        for block, words, reached in blocks:
            waiting += engine.take(block, words)
            due = waiting >= every or (waiting and time.monotonic() - last > FRESH)
            if due and not engine.anew:  # half of a new index takes nobody's place
                engine.commit(reached, extra)
                waiting, last = 0, time.monotonic()
                merger.wake()
        engine.commit(reached, extra)


@contextlib.contextmanager
def _ahead(
    store: Store, after: int, ended: Callable[[float], bool], analyses: Analyses, pause: float
) -> Iterator[Iterator[_Block]]:
    """The changes of a store that is being filled, analysed in a thread ahead of whoever takes them.

    Where none comes for a while, an empty block does.
    """
    blocks: Queue[_Block | BaseException | None] = Queue(AHEAD)
    halt = threading.Event()

    def put(item: _Block | BaseException | None) -> None:
        while not halt.is_set():
            with contextlib.suppress(Full):
                blocks.put(item, timeout=0.1)
                return

    def run() -> None:
        place, over = after, False
        try:
            while not halt.is_set():
                with store.read() as view:
                    taken = list(view.changes(place, BLOCK, parts=_PARTS))
                    newest = view.last_seq()
                if taken:
                    place = taken[-1].seq
                    # Where changes were overtaken by later ones, nothing is between here and there.
                    put((*_described(taken, analyses), newest if len(taken) < BLOCK else None))
                elif over:
                    put(([], None, newest))
                    break
                else:
                    over = ended(pause)
            put(None)
        except BaseException as e:
            put(e)

    def taken() -> Iterator[_Block]:
        while True:
            try:
                item = blocks.get(timeout=FRESH)
            except Empty:
                item = [], None, None
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    thread = threading.Thread(target=run, name="index-ahead", daemon=True)
    thread.start()
    try:
        yield taken()
    finally:
        halt.set()
        thread.join()


def rebuild(
    store: Store,
    report: Callable[[int], None] | None = None,
    analyzer: Analyzer | None = None,
    chunk: int = CHUNK,
) -> Progress:
    """Make the index anew from the store, as one segment if it fits."""
    with _explained(store):
        misleading = _misleading(store)
        if misleading:
            Engine.erase(folder(store))
        with Engine.open(folder(store), writable=True, anew=not misleading) as engine:
            applied = _follow(store, engine, report, chunk, analyzer)
            progress = Progress(applied, engine.position, "asked for")
        with contextlib.suppress(OSError):  # it is complete, if not yet in one piece
            tidy(folder(store), everything=True)
        return progress


def catch_up_or_wait(
    store: Store, patience: float = PATIENCE, analyzer: Analyzer | None = None
) -> tuple[Progress, int]:
    """Bring the index up to the store, or let a process that is at it do so; then how far it is behind."""
    until = time.monotonic() + patience
    while True:
        try:
            return catch_up(store, analyzer=analyzer), 0
        except IndexBusy:
            newest, position = lag(store)
            if position >= newest or time.monotonic() > until:
                return Progress(0, position), max(newest - position, 0)
            time.sleep(0.05)


@contextlib.contextmanager
def _explained(store: Store) -> Iterator[None]:
    """What the engine and the system say against writing, as errors of ours."""
    try:
        yield
    except OSError as e:
        if e.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            remedy = "who may write there can bring it up to date, with  indlet stats  for one"
        else:
            remedy = "the store has everything, make room and go on"
        raise StoreError(f"{folder(store)}: cannot be written: {e.strerror}; {remedy}") from e


def _follow(
    store: Store,
    engine: Engine,
    report: Callable[[int], None] | None,
    chunk: int,
    analyzer: Analyzer | None,
) -> int:
    analyses = Analyses(_ruling(store, analyzer))
    applied = 0
    extra = _about(store, analyses.analyzer)
    while True:
        with store.read() as view:
            changes = view.changes(engine.applied, chunk, parts=_PARTS)
            count = 0
            while block := list(islice(changes, BLOCK)):
                count += engine.take(*_described(block, analyses))
            newest = view.last_seq()
        # A store whose newest changes were overtaken within the snapshot has nothing between here and there.
        if count < chunk:
            engine.commit(newest, extra)
        elif not engine.anew:  # half of a new index takes nobody's place
            engine.commit(extra=extra)
        applied += count
        if report is not None:
            report(applied)
        if count < chunk:
            return applied


def _opened(store: Store) -> tuple[Engine, str]:
    """The index for writing; and why it has to be made anew, if so."""
    reason = _misleading(store)
    if reason:
        Engine.erase(folder(store))
    try:
        if not reason and _otherwise(stored_policy.kept(store), manifests.read(folder(store))):
            return Engine.open(folder(store), writable=True, anew=True), "it was made under another policy"
        return Engine.open(folder(store), writable=True), reason
    except IndexDamaged as e:
        return Engine.open(folder(store), writable=True, anew=True), str(e).partition(";")[0]


def _described(changes: Sequence[Stored], analyses: Analyses) -> tuple[list[Stored], Words | None]:
    """The changes with what the index takes of their metadata: few one by one, many together."""
    if len(changes) < FEW:
        return analyses.one_by_one(changes), None
    return analyses.together(changes)


def _misleading(store: Store) -> str:
    """Why the index speaks of other records than the store holds; empty if it does not, or is damaged."""
    try:
        manifest = manifests.read(folder(store))
    except IndexDamaged:
        return ""
    if manifest.extra.get("store", _identity(store)) != _identity(store):
        return "it was made from another store"
    if manifest.position > _newest(store):
        return "it is ahead of its store, which was put back to an earlier state"
    return ""


def _ruling(store: Store, analyzer: Analyzer | None) -> Analyzer:
    """Whoever makes an index makes it by the policy of the data; by their own where the data has none."""
    policy = stored_policy.kept(store)
    if policy is None:
        return analyzer or Analyzer(Policy())
    return analyzer if analyzer is not None and analyzer.policy == policy else Analyzer(policy)


def _about(store: Store, analyzer: Analyzer) -> dict[str, Any]:
    """What an index says of itself."""
    return {"store": _identity(store), "policy": analyzer.policy.digest}


def _otherwise(policy: Policy | None, manifest: Manifest) -> bool:
    """Whether an index was made under another policy than the data's."""
    return policy is not None and manifest.extra.get("policy", policy.digest) != policy.digest


def _newest(store: Store) -> int:
    with store.read() as view:
        return view.last_seq()


def _identity(store: Store) -> str:
    return blake2b(store.secret("index"), digest_size=8).hexdigest()
