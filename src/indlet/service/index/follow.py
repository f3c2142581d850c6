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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from queue import Empty, Full, Queue
from typing import Final

from indlet.errors import IndexBusy, IndexDamaged, StoreError
from indlet.model import Stored
from indlet.service.index import Index, IndexState, IndexWriter, Prepared, inference, keys
from indlet.service.index.engines import DEFAULT, folder, identity, index_of
from indlet.service.records import stored_policy
from indlet.settings import IndexEngine
from indlet.store import Store
from indlet.text import Analyzer, Policy

# Changes that are applied from one snapshot of the store and committed together: large, for each commit is a
# segment; bounded, for a snapshot keeps the store's journal from being emptied and a crash loses what it had.
CHUNK: Final = 200_000
# The same while the store is being filled: smaller, so that little is left to do when it is full.
EVERY: Final = 15_000
FRESH: Final = 2.0  # seconds after which few changes are committed too
AHEAD: Final = 2  # blocks that wait to be indexed, in memory
BLOCK: Final = 1000  # changes whose metadata is analysed together
_PARTS: Final = ("metadata", "vector", "positions")  # of a record, that the index takes
PATIENCE: Final = (
    10.0  # seconds that a search waits for another process that is bringing the index up to date
)


# Changes, and the store's newest change if these were all that there was.
_Block = tuple[Prepared, int | None]


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """What catching up came to: changes applied, where the index stands, and why it was rebuilt, if so."""

    applied: int
    position: int
    rebuilt: str = ""
    learned: Mapping[str, inference.Learned] = field(default_factory=dict)  # of elements that are inferred


def lag(store: Store, engine: IndexEngine = DEFAULT) -> tuple[int, int]:
    """The newest change of the store, and the one up to which the index stands (-1: it cannot be read)."""
    try:
        state = index_of(store, engine).state()
    except IndexDamaged:
        state = None
    with store.read() as view:  # after the state: the index may go on, but not past what is read now
        newest, policy = view.last_seq(), stored_policy.kept_in(view)
    if state is None or state.about.get("store", identity(store)) != identity(store):
        return newest, -1
    return newest, -1 if _otherwise(store, engine, policy, state) else state.position


def catch_up(
    store: Store,
    report: Callable[[int], None] | None = None,
    chunk: int = CHUNK,
    analyzer: Analyzer | None = None,
    merges: bool = True,
    engine: IndexEngine = DEFAULT,
) -> CaughtUp:
    """Bring the index up to the store. `report` hears how many changes were applied so far.

    `analyzer` makes the field terms. What merges have become due are done before this returns, but others may
    commit meanwhile; without `merges` they are left to whoever indexes next.
    StoreError if another process is bringing the index up to date.
    """
    newest, position = lag(store, engine)
    if position == newest:
        return CaughtUp(0, position)
    with _explained(store):
        index, analyzer = index_of(store, engine), _ruling(store, analyzer)
        writer, reason = _opened(store, engine, index, analyzer)
        with writer:
            applied = _follow(store, writer, analyzer, report, chunk, engine)
            progress = CaughtUp(applied, writer.position, reason)
        if merges:
            index.settle()
        return progress


def pursue(
    store: Store,
    ended: Callable[[float], bool],
    analyzer: Analyzer,
    every: int = EVERY,
    pause: float = 0.05,
    engine: IndexEngine = DEFAULT,
) -> None:
    """Index a store while another process fills it, until that has `ended` and the index is up to it.

    What comes is taken at once, and committed after `every` changes or a few seconds: when the last has come,
    little is left to do. `ended` is asked with the seconds that it may take to answer. Changes are analysed
    while others are indexed, for kernels release the GIL.
    """
    index, analyzer = index_of(store, engine), _ruling(store, analyzer)
    about, inferred = _about(store, engine, analyzer), inference.inference_of(store, engine)

    def prepare(changes: list[Stored]) -> Prepared:
        return writer.prepare(changes if inferred is None else inferred.marked(changes, analyzer))

    with (
        _explained(store),
        contextlib.closing(index.upkeep()) as upkeep,
        _opened(store, engine, index, analyzer)[0] as writer,
        _ahead(store, writer.applied, prepare, partial(ended, pause)) as blocks,
    ):
        waiting, reached = 0, None
        last = time.monotonic()
        for block, reached in blocks:
            waiting += writer.apply(block)
            due = waiting >= every or (waiting and time.monotonic() - last > FRESH)
            if due and not writer.anew:  # half of a new index takes nobody's place
                writer.commit(reached, about)
                waiting, last = 0, time.monotonic()
                upkeep.wake()
        writer.commit(reached, about)


@contextlib.contextmanager
def _ahead(
    store: Store, after: int, prepare: Callable[[list[Stored]], Prepared], ended: Callable[[], bool]
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
                    put((prepare(taken), newest if len(taken) < BLOCK else None))
                elif over:
                    put((Prepared(()), newest))
                    break
                else:
                    over = ended()
            put(None)
        except BaseException as e:
            put(e)

    def taken() -> Iterator[_Block]:
        while True:
            try:
                item = blocks.get(timeout=FRESH)
            except Empty:
                item = Prepared(()), None
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
    engine: IndexEngine = DEFAULT,
) -> CaughtUp:
    """Make the index anew from the store, as one segment if it fits."""
    with _explained(store):
        index, analyzer = index_of(store, engine), _ruling(store, analyzer)
        misleading = _misleading(store, index)
        if misleading:
            index.erase()
        learned = inference.learn(store, analyzer, engine)
        with index.writer(analyzer, anew=not misleading) as writer:
            applied = _follow(store, writer, analyzer, report, chunk, engine)
            progress = CaughtUp(applied, writer.position, "asked for", learned)
        index.settle(everything=True)
        return progress


def catch_up_or_wait(
    store: Store,
    patience: float = PATIENCE,
    analyzer: Analyzer | None = None,
    engine: IndexEngine = DEFAULT,
) -> tuple[CaughtUp, int]:
    """Bring the index up to the store, or let a process that is at it do so; then how far it is behind."""
    until = time.monotonic() + patience
    while True:
        try:
            return catch_up(store, analyzer=analyzer, engine=engine), 0
        except IndexBusy:
            newest, position = lag(store, engine)
            if position >= newest or time.monotonic() > until:
                return CaughtUp(0, position), max(newest - position, 0)
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
    writer: IndexWriter,
    analyzer: Analyzer,
    report: Callable[[int], None] | None,
    chunk: int,
    engine: IndexEngine,
) -> int:
    applied = 0
    about, inferred = _about(store, engine, analyzer), inference.inference_of(store, engine)
    while True:
        with store.read() as view:
            changes = view.changes(writer.applied, chunk, parts=_PARTS)
            count = 0
            while block := list(islice(changes, BLOCK)):
                if inferred is not None:
                    block = inferred.marked(block, analyzer)
                count += writer.apply(writer.prepare(block))
            newest = view.last_seq()
        # A store whose newest changes were overtaken within the snapshot has nothing between here and there.
        if count < chunk:
            writer.commit(newest, about)
        elif not writer.anew:  # half of a new index takes nobody's place
            writer.commit(about=about)
        applied += count
        if report is not None:
            report(applied)
        if count < chunk:
            return applied


def _opened(store: Store, engine: IndexEngine, index: Index, analyzer: Analyzer) -> tuple[IndexWriter, str]:
    """The index for writing; and why it has to be made anew, if so."""
    reason = _misleading(store, index)
    if reason:
        index.erase()
    try:
        if not reason and _otherwise(store, engine, stored_policy.kept(store), index.state()):
            return index.writer(analyzer, anew=True), "it was made under another policy"
        return index.writer(analyzer), reason
    except IndexDamaged as e:
        return index.writer(analyzer, anew=True), str(e).partition(";")[0]


def _misleading(store: Store, index: Index) -> str:
    """Why the index speaks of other records than the store holds; empty if it does not, or is damaged."""
    try:
        state = index.state()
    except IndexDamaged:
        return ""
    if state.about.get("store", identity(store)) != identity(store):
        return "it was made from another store"
    # A standby of the database may be behind; the index that all share is not its to erase.
    if state.position > _newest(store) and (store.writable or not store.shared):
        return "it is ahead of its store, which was put back to an earlier state"
    return ""


def _ruling(store: Store, analyzer: Analyzer | None) -> Analyzer:
    """Whoever makes an index makes it by the policy of the data; by their own where the data has none."""
    policy = stored_policy.kept(store)
    if policy is None:
        return analyzer or Analyzer(Policy())
    return analyzer if analyzer is not None and analyzer.policy == policy else Analyzer(policy)


def _about(store: Store, engine: IndexEngine, analyzer: Analyzer) -> dict[str, str]:
    """What an index says of itself."""
    about = {"store": identity(store), "policy": analyzer.policy.digest, "keys": str(keys.VERSION)}
    told = {"prune": engine.pruning, "infer": inference.identity(store, engine)}
    return about | {name: value for name, value in told.items() if value}


def _otherwise(store: Store, engine: IndexEngine, policy: Policy | None, state: IndexState) -> bool:
    """Whether an index was made under another policy than the data's, with other keys than today's, pruned
    otherwise, or with other inferences.
    """
    about = state.about
    if about and about.get("prune", "") != engine.pruning:
        return True
    if about and about.get("infer", "") != inference.identity(store, engine):
        return True
    if about and about.get("keys", "") != str(keys.VERSION):
        return True
    return policy is not None and about.get("policy", policy.digest) != policy.digest


def _newest(store: Store) -> int:
    with store.read() as view:
        return view.last_seq()
