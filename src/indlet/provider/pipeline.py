"""The provider's stages in their order: crawl -> extract -> analyse -> store. No other file knows it.

A crawl that ends early, for whatever reason, has lost its last batch at most; the next crawl does the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from indlet import __version__
from indlet.errors import HierarchyError, MissingExtra, SettingsError
from indlet.extension import extensions
from indlet.model import WARNING, Failure, JsonMapping
from indlet.provider.batches import Batches
from indlet.provider.crawl import Signature, Survey, Work, settle, survey, vanished
from indlet.provider.hierarchy import Tree, shown
from indlet.provider.identity import identified
from indlet.provider.reading import Reading
from indlet.provider.set_rules import SetRules
from indlet.provider.source import CrawlTarget, crawl_targets
from indlet.provider.summary import Report, Summary, keep_left_out
from indlet.provider.workers import Workers
from indlet.settings import Settings
from indlet.store import Store, withheld
from indlet.text import Policy, policy_of

# How many resources may wait to be read, so that the progress has an end in sight.
FORESEEN = 200_000


def crawl(
    store: Store,
    settings: Settings,
    *,
    report: Report = lambda summary: None,
    stop: threading.Event | None = None,
    accept_empty: bool = False,
    clock: Callable[[], float] = time.time,
    workers: Workers | None = None,
    only: Collection[str] | None = None,
) -> list[Summary]:
    """Bring the store to what the hierarchies hold now, one after the other; a summary for each.

    `workers` that exist already are used and left running; they must have been made under the same policy.
    `only`: the names of those that are read.
    """
    stop = stop or threading.Event()
    policy = policy_of(settings.analysis)
    settings = identified(store, settings)
    for extension in extensions():
        extension.before_crawl(store, settings)
    found = []
    with contextlib.ExitStack() as stack:
        if workers is None:
            workers = stack.enter_context(Workers(settings.crawl.workers, settings.crawl.limits, policy))
        for target in crawl_targets(settings):
            if only is not None and target.name not in only:
                continue
            with contextlib.ExitStack() as permits:
                for permit in _permits(target, settings):
                    permits.enter_context(store.job(permit))
                run = _Run(store, settings, target, policy, workers, report, stop, clock)
                run.accept_empty = accept_empty
                run.run()
            found.append(run.summary)
            if stop.is_set():
                break
        if any(summary.records or summary.deleted for summary in found):
            with store.write() as tx:
                tx.sweep()
    return found


class CrawlGroup(NamedTuple):
    """Hierarchies that are read one after the other, at the same times."""

    names: tuple[str, ...]
    every: str
    lane: str  # groups of one lane take turns: those of this machine's disk; a remote hierarchy has its own
    library: bool = False  # export folders of catalogues: the first step of a round


def crawl_groups(settings: Settings) -> list[CrawlGroup]:
    """What is read when, and beside what: a slow server holds up no other hierarchy than its own.

    Export folders come first: the rest of a round waits for them.
    """
    found: dict[tuple[str, str, bool], list[str]] = {}
    for target in sorted(crawl_targets(settings), key=lambda one: not one.first):
        every = target.every or settings.crawl.every
        apart = _remote(target.root) and settings.crawl.side_by_side
        lane = _own_permit(target.name) if apart else ""
        found.setdefault((every, lane, target.first), []).append(target.name)
    return [CrawlGroup(tuple(names), *key) for key, names in found.items()]


def _remote(root: str) -> bool:
    return "://" in root and "file://" not in root


def _permits(target: CrawlTarget, settings: Settings) -> list[str]:
    """The permits of the store that a crawl needs: a remote hierarchy's own, or this machine's disk's."""
    if not _remote(target.root):
        return ["crawl"]
    own = _own_permit(target.name)
    return [own] if settings.crawl.side_by_side else ["crawl", own]


def _own_permit(name: str) -> str:
    return f"crawl-{hashlib.blake2b(name.encode(), digest_size=6).hexdigest()}"


def all_permits(name: str) -> list[str]:
    """The permits under which a hierarchy of that name may be read."""
    return ["crawl", _own_permit(name)]


class _Run:
    """One crawl of one record source."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        target: CrawlTarget,
        policy: Policy,
        workers: Workers,
        report: Report,
        stop: threading.Event,
        clock: Callable[[], float],
    ) -> None:
        self.accept_empty = False
        self._store, self._settings, self._target = store, settings, target
        self._workers, self._report, self._stop, self._clock = workers, report, stop, clock
        source = self._source = target.source(policy.digest)
        self._policy = policy.digest
        limits = settings.crawl.limits
        self._rules = SetRules(settings.set_)
        made = f"{source.made}{self._rules.digest}"
        if limits.ocr_pages:
            made += f" ocr {limits.ocr_pages} {limits.ocr_languages}"
        # What failed is tried again when one of these has changed.
        means = repr((limits, __version__, shutil.which("soffice"), shutil.which("tesseract")))
        self._signature = Signature(made, f"{made} {hashlib.sha256(means.encode()).hexdigest()[:12]}")
        self.summary = Summary(target.name, target.root)
        self._found = Survey()
        self._transient: dict[tuple[str, str], Failure] = {}  # of listing and fetching
        self._batches: Batches

    def run(self) -> None:
        begun = time.monotonic()
        self._begin()
        try:
            outcome = self._crawl()
        except (HierarchyError, MissingExtra, SettingsError) as e:
            outcome, self.summary.reason = "unreachable", str(e)
            self._transient["/", "list"] = Failure("/", "list", str(e))
            with self._store.write() as tx:
                remedy = "make the folder, or correct the settings; its records stay as they are"
                tx.alert("folder", self._target.name, "", str(e), remedy)
        except BaseException:
            # Ctrl-C, a full disk, a mistake of ours: what can be kept is kept, and the error told.
            with contextlib.suppress(Exception):
                self._end("interrupted", time.monotonic() - begun)
            raise
        self._end(outcome, time.monotonic() - begun)

    def _begin(self) -> None:
        with self._store.write() as tx:
            told = self._target.settings
            self._origin = tx.origin("hierarchy", self._target.name, told)
            name = self._target.guarded
            guarded = tx.origin("hierarchy", name, {**told, "guarded": True}) if name else None
        self._batches = Batches(self._store, self._origin, self._source, self._rules, guarded)
        with self._store.read() as view:
            self._earlier = [run for run in view.runs(self._origin, 2) if run.kind == "crawl"]
        with self._store.write() as tx:
            for run in self._earlier:
                if run.outcome == "running":  # ours is the only crawl, so that one was killed
                    tx.note_run(run.id, run.detail, "interrupted")
            self._run_id = tx.start_run(self._origin, "crawl")

    def _end(self, outcome: str, seconds: float) -> None:
        """The last batch, the failures that stand, the journal's entry."""
        self._batches.flush()
        self._tell()
        self.summary.end(outcome, seconds)
        with self._store.read() as view:
            standing = [f for f in view.failures(self._origin) if f.stage in ("list", "fetch")]
        with self._store.write() as tx:
            if outcome in ("complete", "partial"):
                tx.resolve_alerts("folder", self._target.name, [""])
                tx.forgive(
                    self._origin, [f.where for f in standing if (f.where, f.stage) not in self._transient]
                )
                keep_left_out(tx, self._origin, self._found)
            for failure in self._transient.values():
                tx.fail(self._origin, failure)
        with self._store.read() as view:
            self.summary.warnings = sum(f.stage == WARNING for f in view.failures(self._origin))
            self.summary.failures = view.failure_counts().get(self._origin, 0) - self.summary.warnings
        with self._store.write() as tx:
            tx.note_run(self._run_id, asdict(self.summary), outcome)
            # A node that looks every minute would fill the journal with nothing: the last of these stands.
            if self.summary.idle and self._earlier and self._earlier[0].detail.get("idle"):
                tx.drop_run(self._earlier[0].id)
        self._report(self.summary)

    def _crawl(self) -> str:
        settings = self._settings.crawl
        with (
            contextlib.closing(
                self._source.open((self._store.local_folder,), self._found.known_etag)
            ) as tree,
            _scratch(self._store.local_folder, self._target.name) as scratch,
        ):
            with self._store.read() as view:
                self._found.remember(view.files(self._origin))
                state = view.state(self._origin)
            known = bool(self._found.unmet)
            works: Iterable[Work] = survey(
                tree, self._source, self._signature, settings.settle_seconds, self._found, self._clock
            )  # fmt: skip
            reading = Reading(
                tree, self._source, self._signature, self._found, self.summary, self._workers, self._batches,
                scratch, settings.limits.file_bytes, self._stop, self._tell,
            )  # fmt: skip
            reading.transient = self._transient
            if tree.local:
                # Walking is quick here: done beforehand, it tells how much there is to do.
                rest = self._until_stopped(works)
                works = sorted(itertools.islice(rest, FORESEEN), key=self._date)
                if len(works) < FORESEEN:
                    self.summary.total = len(works) + len(self._found.fresh)
                works = itertools.chain(works, rest)
            reading.process(works)
            reading.process(settle(tree, self._found, settings.settle_seconds, self._stop.wait, self._clock))
            self._batches.flush()
            if self._stop.is_set():
                return "interrupted"
            return self._finish(tree, state, known)

    def _date(self, work: Work) -> int:
        return self._source.datestamp(work.resource) or 0

    def _until_stopped(self, works: Iterable[Work]) -> Iterator[Work]:
        for work in works:
            if self._stop.is_set():
                return
            yield work

    def _finish(self, tree: Tree, state: JsonMapping, known: bool) -> str:
        """After a walk to the end: what has gone is deleted, unless the whole tree seems to be elsewhere."""
        identity = tree.identity()
        if known and not self._found.entries and not self.accept_empty:
            moved = identity != state.get("identity", identity) if tree.local else True
            if moved:
                raise HierarchyError(
                    f"{self.summary.root}: is empty now, as if not mounted or not reachable; nothing was "
                    "deleted. If it is meant to be empty, run  indlet crawl --accept-empty"
                )
        for folder, reason in self._found.unread.items():
            place = f"{shown(folder)}/"
            self._transient[place, "list"] = Failure(place, "list", reason)
        waiting = self._batches.finish(vanished(self._found), self._found.moved, self._may_go)
        self.summary.withheld = waiting
        with self._store.read() as view:
            live = view.totals().get(self._origin, (0, 0))[0] if waiting else 0
        with self._store.write() as tx:
            if waiting:
                withheld.raise_alert(tx, self._target.name, waiting, live)
            else:
                tx.resolve_alerts(withheld.ALERT, self._target.name, [""])
            tx.state(self._origin, {**state, **tree.facts(), "identity": identity, "policy": self._policy})
        return "partial" if self._found.unread else "complete"

    def _may_go(self, gone: int, live: int) -> bool:
        rules = self._settings.crawl
        most = rules.withhold_share, rules.withhold_records
        return self.accept_empty or not withheld.too_many(gone, live, *most)

    def _tell(self) -> None:
        self.summary.take(self._found)
        self.summary.records, self.summary.deleted = self._batches.written, self._batches.deleted
        self.summary.echoes = self._batches.echoes
        self._report(self.summary)


@contextlib.contextmanager
def _scratch(data: Path, name: str) -> Iterator[Path]:
    """A folder for fetched files, beside the data: what a killed crawl left in it is found and removed."""
    folder = data / "scratch" / _own_permit(name)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    for left in folder.parent.iterdir():
        # Other crawls that go on have folders of the same form.
        if left == folder or not left.name.startswith("crawl-"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        # The folder above stays: another crawl may be about to create its own there.
        shutil.rmtree(folder, ignore_errors=True)
