"""One run over one source: fetch, normalise, commit, decide, until complete or given up.

Records and the state that says they were harvested commit in one transaction, a few pages at a time.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from indlet import datestamps as dates
from indlet.errors import IndletError, RemoteError, SettingsError, Unreachable
from indlet.extension import extensions
from indlet.formats.registry import ROOTS, Roots
from indlet.net.client import Client, NoAnswer, spellings
from indlet.net.reach import origin_of
from indlet.oai.names import FT_PATH
from indlet.service.harvest import decide, early_end, owed, sets, shortfall
from indlet.service.harvest.cache import Cache, address_of
from indlet.service.harvest.commit import Committer
from indlet.service.harvest.fetch_page import Interrupted, PageFetcher
from indlet.service.harvest.listing import ListedPages
from indlet.service.harvest.negotiate import Agreement, negotiate
from indlet.service.harvest.one_origin import claim, keeper
from indlet.service.harvest.progress import Phase, Progress, RunOutcome
from indlet.service.harvest.public_hosts import known_public
from indlet.service.harvest.reconcile import CannotReconcile, applies, compare, due, whole_list
from indlet.service.harvest.record_intake import RecordIntake
from indlet.service.harvest.run_state import (
    PASSING,
    Action,
    Ask,
    Checked,
    CheckState,
    Compare,
    Failed,
    Fetch,
    ListState,
    Overview,
    ProbeState,
    Rules,
    RunState,
    SourceTraits,
    Stop,
    Window,
)
from indlet.service.harvest.source_shape import Shape
from indlet.service.harvest.source_state import KeptRun, SourceState
from indlet.service.harvest.windows import history
from indlet.service.harvest.withhold import DeletionGuard
from indlet.service.records.normalise import Normaliser
from indlet.service.records.stored_policy import remember
from indlet.settings import Harvest, Source, seconds
from indlet.store import Origin, Store, Transaction, kept_tables
from indlet.text import Analyzer, Policy
from indlet.wording import amount

POLICY_CHANGES: Final = 3  # in one run: more, and the source does not know what it wants
FEED: Final = "feed"  # what a source's `metadata` says where it is one


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is asked of a run beyond the source's settings."""

    full: bool = False
    since: str = ""
    until: str = ""
    reconcile: bool = False
    historical: bool = False  # everything, in date windows; one that was interrupted goes on
    only: tuple[str, ...] = ()  # ask for these records that failed, and for nothing else


class PolicyChanged(Exception):
    """The source states another analysis policy than at the beginning of the run."""


class LessonRequest(NamedTuple):
    """What an extension needs to ask a source for more than records."""

    store: Store
    fetcher: PageFetcher
    source: str  # its name
    url: str  # its extended endpoint
    own: str  # the key of this node
    known: dict[str, str]  # what the last answer said to ask with
    now: datetime


@dataclass(slots=True)
class ListEvidence:
    """What the lists of a run have shown of the source."""

    listed: bool = False  # a list named a record
    timed: bool = False  # a datestamp was finer than a day
    records_listed: bool = False  # a ListRecords request was answered
    list_error: Failed | None = None  # of the last ListRecords request that failed
    broken_lists: str = ""  # why the run is not complete, though all listed records are held
    # Of the lists of identifiers that were compared with the store:
    compared: int = 0  # identifiers, in all
    named: set[str] = field(default_factory=set)  # in the last list
    middle: str = ""  # a datestamp in the last list


class Run:
    """A run over one source; `go` does it."""

    def __init__(
        self,
        store: Store,
        source: Source,
        name: str,
        analyzer: Analyzer,
        harvest: Harvest,
        progress: Progress,
        *,
        options: RunOptions | None = None,
        halt: threading.Event | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        own: str = "",
        exchange: bool = False,
        ranks: Mapping[str, int] | None = None,
        roots: Roots = ROOTS,
    ) -> None:
        """`own`: the key of this node; `exchange`: take the decisions about duplicates of nodes like it.

        `ranks`: the sources that are harvested by themselves (`source_ranks`); `roots`: the formats that are
        known.
        """
        self.name, self.own, self.exchange = name, own, exchange and source.republish
        self.store, self.roots = store, roots
        self.source, self.analyzer, self.harvest = source, analyzer, harvest
        self.progress = progress
        self.options = options or RunOptions()
        self.halt = halt or threading.Event()
        self.now = now
        self.rules = Rules(
            harvest.retries,
            harvest.backoff_seconds,
            harvest.backoff_limit_seconds,
            harvest.retry_after_limit_seconds,
            harvest.pages,
        )
        delay = source.delay_seconds if source.delay_seconds >= 0 else harvest.delay_seconds
        claim(store, name, source.url)
        with store.read() as view:
            known = view.origin("source", name)
        with store.write() as tx:
            # A new one with its address at once, for another run may look for sources that have the same.
            self.origin = tx.origin("source", name, source.public() if known is None else None)
        self.kept_as = keeper(store, name, source, ranks or {})
        with store.write() as tx:
            user, password = _credentials(tx, self.origin, source, known)
        self.requester = _digest(store, source.token, user, password)
        client = Client(
            harvest, token=source.token, user=user, password=password, delay_seconds=delay,
            known_public=known_public(store), sleep=self._sleep,
        )  # fmt: skip
        self.fetcher = PageFetcher(
            client, self.rules, self._sleep, self.halt, self._report_trouble, self._announce
        )
        self.resumed = False  # an earlier run was interrupted, and this one goes on from there
        self.said = ""  # by the last request that brought nothing
        self.seen = ListEvidence()

    @property
    def state(self) -> SourceState:
        """What is remembered of the source; committed with its records."""
        return self.committer.state

    def _remember(self, **changes: Any) -> None:
        self.committer.state = replace(self.committer.state, **changes)

    # The run

    def go(self) -> Progress:
        """The run, to its end. RemoteError and StoreError become its outcome; interruption goes through."""
        progress = self.progress
        progress.started = time.monotonic()
        with self.store.job(f"harvest-{self.origin}"):
            with self.store.read() as view:
                state = SourceState.from_json(view.state(self.origin))
                failures = list(view.open_failures(self.origin))
                self.held_before = next(iter(view.identifiers(self.origin)), None) is not None
            with self.store.write() as tx:
                run = tx.start_run(self.origin, "harvest")
            guard = DeletionGuard(self.store, self.harvest)
            self.committer = Committer(
                self.store, self.origin, run, state, failures, progress, self.now, guard
            )
            self.committer.document_policy = self.analyzer.policy.digest if self.source.fulltext else ""
            self.owed = owed.due_now(failures, int(self.now().timestamp()))
            try:
                if self.kept_as != self.name:
                    self._end(RunOutcome.COMPLETE, f"not harvested: {self.kept_as} has the same address")
                else:
                    self._harvest()
            except (RemoteError, SettingsError) as e:
                self._end(RunOutcome.FAILED, str(e))
            except (KeyboardInterrupt, Interrupted):
                self._end(RunOutcome.INTERRUPTED, "interrupted; the next run goes on from here")
                if not self.halt.is_set():
                    raise
            except IndletError as e:
                progress.fail(str(e))
                raise
            finally:
                progress.ended = time.monotonic()
                self.fetcher.close()
        return progress

    def _read_feed(self) -> None:
        """A source that is a feed: one answer brings all that it shows."""
        from indlet.service.harvest import feed

        self.progress.phase, self.progress.form = Phase.HARVESTING, FEED
        remember(self.store, self.analyzer.policy)
        known = {} if self.options.full else dict(self.state.other.get("feed", {}))
        try:
            answer, given = self.fetcher.retried(
                lambda: feed.ask(self.fetcher.client, self.source.url, self.harvest.response_bytes, known),
                self.rules.retries + 1,
            )
        except NoAnswer as e:
            raise Unreachable(str(e)) from e
        self.progress.pages += 1
        if answer is not None:
            named, guids = set[str](), set[str]()
            for record, guid in feed.records(answer, self.source.url, self.analyzer):
                self.committer.add(record)
                named.add(record.identifier)
                guids |= {guid, feed.absolute_link(answer.url, guid)}
            self.committer.commit(None)
            self._drop_former(guids - named)
        self._remember(url=self.source.url, format=FEED, other={**self.state.other, "feed": given})
        self.committer.settle_deletions()
        self._end(RunOutcome.COMPLETE, "")

    def _drop_former(self, guids: set[str]) -> None:
        """Entries whose guid is no URI were kept under it by earlier versions; now they have a URI."""
        with self.store.read() as view:
            live = view.live(self.origin, sorted(guids))
        if live:
            with self.store.write() as tx:
                tx.delete(self.origin, live)

    def _harvest(self) -> None:
        if self.source.metadata == FEED:
            self._read_feed()
            return
        for _ in range(POLICY_CHANGES):
            try:
                self._harvest_by(self._negotiate())
                return
            except PolicyChanged:
                self.progress.repairs["runs begun again: the source changed its analysis policy"] += 1
                self.committer.commit(None)
        self._end(
            RunOutcome.INCOMPLETE,
            f"its analysis policy changed {POLICY_CHANGES} times while it was harvested",
        )

    def _negotiate(self) -> Agreement:
        self.progress.phase = Phase.NEGOTIATING
        known = self.state.url if self.state.identified else ""
        return negotiate(self.fetcher, self.source, self.analyzer.policy.positions, known)

    def _notice(self, policies: frozenset[str]) -> None:
        """Index parts name these policies, and not the one that was agreed on. PolicyChanged if the source
        states another one now; otherwise its records are still of several, and come again when they change.
        """
        if policies <= self.policies_noticed:
            return
        self.policies_noticed |= policies
        stated = self._negotiate().policy
        if stated is not None and stated.digest != self.fetcher.policy:
            raise PolicyChanged
        self.progress.phase = Phase.HARVESTING
        self.progress.repairs["index parts of another policy than the source states"] += 1

    def _harvest_by(self, agreement: Agreement) -> None:
        progress = self.progress
        progress.form = agreement.form
        before = Policy.read(self.state.policy)
        policies = [p for p in (before, agreement.policy, self.analyzer.policy) if p is not None]
        self.policies_noticed = frozenset[str]()
        self.fetcher.policy = agreement.policy.digest if agreement.policy else ""
        normaliser = Normaliser(
            self.analyzer,
            agreement.index_prefix,
            agreement.bundle_prefix,
            agreement.policy,
            self.roots,
            {policy.digest: policy for policy in policies},
        )
        url = address_of(self.store, self.name, agreement.identity.base_url, agreement.url)
        cache = Cache(
            self.store, self.name, url, self.own, self.source.republish, self.source.set, self.source.access
        )
        self.committer.cache = cache
        self.committer.guard.reviewing = self.name if agreement.identity.reviews_deletions else ""
        self.intake = RecordIntake(
            self.fetcher, agreement, normaliser, self.committer, self.halt, cache, self.source.republish
        )
        self.agreement = agreement
        self.traits = SourceTraits(
            agreement.identity.earliest if dates.parse(agreement.identity.earliest) else "", agreement.seconds
        )
        for note in agreement.notes:
            progress.repairs[note] += 1
        if self.options.only:
            self._retry(self.options.only)
            return
        self.listing = ListedPages(self.traits.seconds, progress)
        state = self._begin(agreement, normaliser)
        progress.phase = Phase.HARVESTING
        state, stop = self._follow(state)
        self.committer.settle()
        if self.owed and not stop.resumable:
            progress.phase = Phase.RETRYING
            self.intake.owed(self.owed, partial(self.committer.commit_if_due, state))
        if stop.complete:
            self._name_sets()
            self._learn_more()
        self._finish(state, stop)
        if stop.complete and (self._reconcile_due() or self._compare_after_full()):
            self._reconcile()

    def _retry(self, identifiers: tuple[str, ...]) -> None:
        """Ask for records that failed. The journal tells of lists: it keeps the outcome of the last one."""
        progress = self.progress
        progress.phase = Phase.RETRYING
        self.intake.owed(identifiers, lambda: self.committer.commit(None))
        self._count()
        self.committer.commit(None)
        with self.store.write() as tx:
            tx.drop_run(self.committer.run)
        left = [identifier for identifier in identifiers if identifier in self.committer.failures]
        progress.owed = len(left)
        progress.outcome = RunOutcome.INCOMPLETE if left else RunOutcome.COMPLETE
        progress.reason = f"{left[0]}: still fails" if left else ""

    def _name_sets(self) -> None:
        asked, trouble = sets.learn(
            self.store, self.origin, self.fetcher, self.agreement.url, self.state.sets, self.now()
        )
        self._remember(sets=asked)
        if trouble:
            self.progress.repairs["set names are not to be had"] += 1

    def _learn_more(self) -> None:
        """What a node like this one gives out besides records."""
        if not self.exchange or not self.agreement.url.endswith(FT_PATH):
            return
        for key, learn in ((k, one) for extension in extensions() for k, one in extension.lessons.items()):
            known = dict(self.state.other.get(key, {}))
            request = LessonRequest(
                self.store, self.fetcher, self.name, self.agreement.url, self.own, known, self.now()
            )
            given, trouble = learn(request)
            self._remember(other={**self.state.other, key: given})
            if trouble:
                self.progress.repairs[f"{key} of other nodes are not to be had"] += 1

    def _has_changed(self, shape: Shape) -> bool:
        """Whether everything must be listed again, because it is harvested in another way than before."""
        before = self.state.shape or shape
        if before.fulltext and not shape.fulltext:  # vectors of documents go with the list that is read again
            with self.store.write() as tx:
                tx.drop_documents(self.origin)
        elif not before.fulltext:  # documents are fetched apart from the list
            before = before._replace(fulltext=shape.fulltext)
        return before != shape

    def _begin(self, agreement: Agreement, normaliser: Normaliser) -> RunState:
        """Where to start: where the last run was interrupted, at its high-water mark, or anew."""
        shape = Shape(
            agreement.url, agreement.metadata_prefix, agreement.index_prefix,
            agreement.policy.digest if agreement.policy else "", self.analyzer.policy.digest,
            self.source.fulltext,
        )  # fmt: skip
        key = (
            self.source.set, self.options.since or self.source.from_, self.options.until or self.source.until
        )  # fmt: skip
        kept, historical = self.state.run, self.options.historical or self.source.mode == "historical"
        begun_before = kept is not None and (kept.everything or kept.historical) and kept.key == key
        anew = self.options.full or (historical and not begun_before)
        if anew or self._has_changed(shape):
            self._remember(run=None, marks={})
        stated = agreement.identity.store or self.state.store
        if self.state.store not in ("", stated) or self.state.requester not in ("", self.requester):
            # Its store went back to an earlier state, or is a new one, or other credentials show other
            # records of it: dates from before say nothing.
            self._remember(run=None, marks=dict.fromkeys(self.state.marks, ""), restored=True)
        indexed = normaliser.has_index
        self._remember(
            url=agreement.url,
            shape=shape,
            format=agreement.form,
            identified=agreement.identity.base_url != "",
            name=agreement.identity.name,
            store=stated,
            requester=self.requester,
            deleted_record=agreement.identity.deleted,
            granularity="second" if agreement.seconds else "day",
            policy=agreement.policy.to_json() if agreement.policy else None,
            loss=(*normaliser.reconciliation.losses, *agreement.losses) if indexed else (),
            reconciliation=normaliser.reconciliation.kind if indexed else "own analysis",
        )
        remember(self.store, self.analyzer.policy)
        since, until = self._bounds(agreement)
        kept = self.state.run
        self.resumed = kept is not None and kept.key == key
        if kept is None or not self.resumed:
            windows: tuple[Window, ...] = (Window(since, until),)
            if historical:
                windows = history(
                    windows[0], self.traits.earliest, self.now(), self._window, agreement.seconds
                )
            kept = KeptRun(
                key,
                dates.write(self.now(), True),
                ListState(Overview(windows, parted=len(windows) > 1)),
                everything=not (since or until),
                historical=historical,
            )
            self._remember(run=kept)
        self.committer.commit(kept.state)
        return kept.state

    def _bounds(self, agreement: Agreement) -> tuple[str, str]:
        """The dates between which records are listed in this run."""
        since, until = self.options.since, self.options.until
        mark = self.state.marks.get(self.source.set, "")
        if mark and not since:
            overlap = self.harvest.overlap_seconds + self.state.vague
            since = max(dates.earlier(mark, agreement.seconds, overlap), self.source.from_)
        return self._limits(agreement, since, until)

    def _limits(self, agreement: Agreement, since: str = "", until: str = "") -> tuple[str, str]:
        """The dates given, or those of the settings, as the source takes them."""
        since, until = since or self.source.from_, until or self.source.until
        for bound in (since, until):
            if bound and dates.parse(bound) is None:
                raise SettingsError(f"{bound!r} is not a date; write 2024-05-01 or 2024-05-01T12:00:00Z")
        if not agreement.seconds:
            return dates.day(since), dates.day(until)
        if since and until and len(since) != len(until):  # both bounds must have one granularity
            since = dates.like(since, True)
            until = until if len(until) > 10 else f"{until}T23:59:59Z"
        return since, until

    @property
    def _window(self) -> timedelta:
        """The length of a historical run's windows."""
        length = self.source.window or self.harvest.window
        found = seconds(length)
        if found is None or not 0 < found < 1e10:
            raise SettingsError(f"{self.name}: window is {length!r}; write one such as '90d'")
        return timedelta(seconds=found)

    def _follow(self, state: RunState) -> tuple[RunState, Stop]:
        """Do what is decided, and decide what is next, until the run ends."""
        state, action = decide.resume(state)
        missing = list[str]()
        while True:
            if self.halt.is_set():
                self.committer.commit(state)  # the next run goes on at this page, not at the last commit
                raise Interrupted
            match action:
                case Stop():
                    self.committer.commit(state)
                    return state, action
                case Ask() if self._room_is_taken():
                    action = Stop(False, self._no_room(), resumable=True)
                case Ask(wait):
                    if wait:
                        self._report_trouble(f"{self.said}; again in {wait:.3g} s")
                        self._sleep(wait)
                    state, action = self._ask(state)
                case Compare():
                    self.committer.commit(state)
                    missing, checked = self._compare(state)
                    state, action = decide.step(state, checked, self.traits, self.rules)
                case Fetch():
                    said = self.intake.missing(missing, partial(self.committer.commit_if_due, state))
                    if said:
                        action = Stop(False, said, resumable=True)
                    else:
                        state, action = decide.window_done(state)
            self.committer.commit_if_due(state)

    def _compare(self, state: RunState) -> tuple[list[str], Checked]:
        """The identifiers of a check's list that are missing, and what matters of them for a decision."""
        missing = self.listing.missing(self.store, self.origin, self.committer.failed_now)
        window = state.overview.windows[0]
        bound = window.since or window.until
        middle, alike = self.listing.middle(not self.traits.seconds or len(bound) == 10)
        self.seen.middle = middle or self.seen.middle
        self.seen.named = {identifier for identifier, _, _ in self.listing.identifiers}
        self.seen.compared += len(self.seen.named)
        self.listing.identifiers.clear()
        return missing, Checked(len(missing), middle, alike)

    def _ask(self, state: RunState) -> tuple[RunState, Action]:
        """Request the next page, take what it brings, and decide."""
        cursor = state.cursor
        if not cursor.pages and not cursor.token:
            self.listing = ListedPages(self.traits.seconds, self.progress)
        arguments = decide.arguments(state, self.agreement.selection(self.source.set))
        try:
            page = self.fetcher.page(self.agreement.url, arguments, cursor.spelling)
        except NoAnswer as e:
            return self._no_page(state, e)
        self._count()
        self._notice(page.policies)
        self.seen.listed = self.seen.listed or bool(page.items or page.problems)
        self.seen.timed = self.seen.timed or any(dates.timed(item.datestamp) for item in page.items)
        listing = isinstance(state, ListState)
        self.seen.records_listed = self.seen.records_listed or listing
        if self.resumed and listing:
            self.listing.compare(page.items, self.store, self.origin)
        listed, again = self.listing.add_page(page, state)
        if listing and not again:
            self.intake.page(page)
        if isinstance(state, ProbeState):
            listed = replace(listed, new=sum(i.identifier not in self.seen.named for i in page.items))
        elif not self.resumed and early_end.may_be_cut(page, state):
            ask = partial(self.fetcher.page, self.agreement.url)
            about = self.listing, state, self.agreement.selection(self.source.set), self.traits.seconds
            listed = replace(listed, cut=early_end.parts_name_more(page, *about, ask))
        after, action = decide.step(state, listed, self.traits, self.rules)
        if cursor.spelling:
            self.progress.repairs["token respelt"] += 1
        if listing and isinstance(after, CheckState):
            self.progress.repairs[listed.doubt or "lists that ended early or in circles"] += 1
        return after, action

    def _no_page(self, state: RunState, error: NoAnswer) -> tuple[RunState, Action]:
        """Count what went wrong, and decide."""
        self._count()
        self.said = str(error)
        trouble, token = error.failed.trouble, state.cursor.token
        if isinstance(state, ListState):
            self.seen.list_error = error.failed
            self.seen.records_listed = self.seen.records_listed or trouble == "nothing"
        if trouble == "silent":
            self._report_trouble(self.said)
        if trouble not in ("nothing", "token"):
            self.progress.repairs[f"retried: {trouble}"] += 1
        elif trouble == "nothing" and token:
            self.progress.repairs["lists that ended early or in circles"] += isinstance(state, ListState)
        event = replace(error.failed, spellings=len(spellings(token)) if token else 1)
        return decide.step(state, event, self.traits, self.rules)

    def _finish(self, state: RunState, stop: Stop) -> None:
        overview, run = state.overview, self.state.run
        if stop.complete:
            self._judge_lists()
        selective = bool(self.options.since or self.options.until or self.source.until)
        if overview.size_lies:
            self.progress.repairs["sizes that were wrong"] += 1
            self._remember(size_lies=True)
        if overview.unconfirmed:
            self.progress.repairs["sizes that could not be confirmed"] += overview.unconfirmed
        if stop.complete and run is not None and not selective:
            self._forget_what_is_gone(run)
            if not (self.resumed or self.source.republish):
                counted = self.progress.records + self.progress.deleted + self.progress.failed
                listed = max(counted, self.seen.compared)  # a check names records that need not come again
                with self.store.read() as view:
                    warning = shortfall.shortfall(view, self.origin, listed, everything=run.everything)
                shortfall.report(self.store, self.name, warning)
                self.progress.warning = warning or self.progress.warning
            # Where nothing came, the old mark asks for no more than a new one would, and misses nothing
            # that a source had for the moment lost sight of: an index that is made anew is empty at first.
            if self.seen.listed or self.resumed:
                self._advance_mark(overview.first_response, run.asked)
        if stop.complete or not stop.resumable:
            self._remember(run=None)
            self.committer.settle_deletions()
        self._end(RunOutcome.COMPLETE if stop.complete else RunOutcome.INCOMPLETE, stop.reason)

    def _judge_lists(self) -> None:
        """Find out why every ListRecords request of a complete run failed, if they did.

        All that ListIdentifiers names is held then, fetched one by one, and the mark advances; but the source
        is out of order, and the run ends incomplete. Long lists alone may fail: a list of one datestamp
        decides. A source that says it has no such list is complete, with a warning.
        """
        error = self.seen.list_error
        if error is None or self.seen.records_listed or self.resumed:
            return
        reason = f"ListRecords fails: {error.reason}"
        datestamp = self.seen.middle or self._bounds(self.agreement)[0] or self.traits.earliest
        if error.trouble not in PASSING or not datestamp:
            self.progress.warning = reason
        elif not self._lists_records_of(dates.like(datestamp, self.traits.seconds)):
            fetched = amount(self.progress.records + self.progress.deleted, "record")
            self.seen.broken_lists = f"{reason}; {fetched} fetched one by one"

    def _lists_records_of(self, datestamp: str) -> bool:
        arguments = {
            "verb": "ListRecords", **self.agreement.selection(self.source.set),
            "from": datestamp, "until": datestamp,
        }  # fmt: skip
        try:
            self.fetcher.page_retried(self.agreement.url, arguments, attempts=2)
        except NoAnswer as e:
            return e.failed.trouble == "nothing"
        return True

    def _forget_what_is_gone(self, run: KeptRun) -> None:
        """After a list of everything: what failed before it, and is not in it, is no longer owed."""
        asked = dates.parse(run.asked)
        if asked and run.everything and not set(self.state.marks) - {self.source.set}:
            self.committer.forget_failures(int(asked.timestamp()))

    def _advance_mark(self, first_response: str, asked: str) -> None:
        """The next run starts where this one's first page was answered, by the source's clock or by ours:
        whichever is earlier. A source without a sound responseDate is given a day of overlap, and so is one
        that dates its records by the day, though it promises seconds: what changes later on the day of the
        mark is dated before it."""
        remote = dates.parse(first_response)
        ours = dates.parse(asked) or self.now()
        # noRecordsMatch brings no date: our own clock, less the doubt about theirs.
        mark = min(remote, ours) if remote else ours - timedelta(days=1)
        sound = dates.well_formed(first_response) or not remote
        fine = self.seen.timed or not self.traits.seconds
        self._remember(
            marks={**self.state.marks, self.source.set: dates.write(mark, True)},
            vague=0 if sound and fine else 86400,
        )

    def _end(self, outcome: RunOutcome, reason: str) -> None:
        self._count()
        if outcome is RunOutcome.COMPLETE and self.seen.broken_lists:
            outcome, reason = RunOutcome.INCOMPLETE, self.seen.broken_lists
        self.committer.end(outcome, reason)

    # Reconciliation

    def _reconcile_due(self) -> bool:
        if self.options.reconcile or self.state.restored:
            return True
        every = self.source.reconcile or self.harvest.reconcile
        if not self.state.reconciled and applies(self.state, self.source.set, every):
            # The first harvest has just listed everything.
            self._remember(reconciled=dates.write(self.now(), True))
            self.committer.save()
        return due(self.state, self.source.set, every, self.now())

    def _compare_after_full(self) -> bool:
        """After a new list of everything, what it does not name must go as well."""
        options = self.options
        return options.full and self.held_before and not (options.since or options.until)

    def _reconcile(self) -> None:
        """Delete what the source no longer lists; nothing at all unless its whole list could be read."""
        self.progress.phase = Phase.RECONCILING
        self.committer.settle()
        self.committer.guard.reviewing = ""  # nobody has reviewed what is merely not listed
        lists = partial(
            whole_list, self.fetcher, self.agreement, traits=self.traits, rules=self.rules, sleep=self._sleep,
            window=Window(*self._limits(self.agreement)), size_counts=not self.state.size_lies,
        )  # fmt: skip
        specs = list(self.state.marks) or [self.source.set]
        try:
            found = compare(self.store, self.origin, specs, lists, self.intake.one)
        except CannotReconcile as e:
            if self._reconcile_due():
                self._end(RunOutcome.INCOMPLETE, f"reconciliation {e}; nothing was deleted")
            else:  # nobody asked for it in so many words, and all that is listed has come
                self.progress.repairs["lists that could not be compared"] += 1
                self._end(RunOutcome.COMPLETE, "")
            return
        if found.left_out:
            self.progress.repairs["records that a list left out"] += found.left_out
        with self.store.read() as view:
            waiting = {row.identifier for row in view.withheld(self.origin)}
        listed = waiting.difference(found.gone, found.out_of_set)
        if listed:  # the deletions of these wait, and the source has them
            with self.store.write() as tx:
                tx.drop_withheld(self.origin, listed)
        self._remember(reconciled=dates.write(self.now(), True), restored=False)
        removed = found.out_of_set  # here alone: for other nodes that is no word of the origin
        if self.source.republish:
            self.intake.deleted(found.gone, dates.write(self.now(), True))
        else:
            removed = [*found.gone, *removed]
        with self.store.write() as tx:
            tx.withhold(self.origin, {identifier: {} for identifier in removed})
        done = self.committer.settle_deletions()
        counted = len(found.gone) if self.source.republish else 0  # as they were handed in
        self.progress.deleted += max(done - counted, 0)
        back = self._not_held(i for i in found.back if i not in self.committer.failures)
        said = self._bring_back(back) if back else ""
        self._end(RunOutcome.INCOMPLETE if said else RunOutcome.COMPLETE, said)

    def _not_held(self, identifiers: Iterable[str]) -> list[str]:
        """Of what the source lists, the records that are not held under their origin either: a node that
        passes on records lists those of others, and ours."""
        if not self.source.republish:
            return list(identifiers)
        with self.store.read() as view:
            others = [origin.id for origin in view.origins() if origin.id != self.origin]
            return [identifier for identifier in identifiers if view.get(identifier, others) is None]

    def _bring_back(self, identifiers: list[str]) -> str:
        """Take what the source lists and we do not hold; why that cannot be done now, if it cannot."""
        if len(identifiers) <= decide.ONE_BY_ONE:
            return self.intake.missing(identifiers, lambda: None)
        self._remember(marks={})
        missing = amount(len(identifiers), "record")
        return f"{missing} of the list never came; the next run lists everything again"

    # What the source may take of the disk

    def _room_is_taken(self) -> bool:
        """Whether the source has all the room that it may have. Counted as it comes, and then exactly."""
        if self.committer.stored_bytes <= self._room:
            return False
        self.committer.count_bytes()
        return self.committer.stored_bytes > self._room

    @property
    def _room(self) -> int:
        return self.source.disk_bytes or self.harvest.disk_bytes

    def _no_room(self) -> str:
        return (
            f"its records take {self.committer.stored_bytes:,} bytes of the store, "
            f"and may take {self._room:,}; what has come is kept. "
            "Raise  disk_bytes  of the source or of [harvest] to go on"
        )

    # The edges

    def _count(self) -> None:
        self.progress.requests, self.progress.bytes = self.fetcher.client.requests, self.fetcher.client.wire

    def _announce(self, size: int) -> None:
        self.progress.size = size

    def _report_trouble(self, trouble: str) -> None:
        self.progress.trouble = trouble

    def _sleep(self, seconds: float) -> None:
        if self.halt.wait(seconds):
            raise Interrupted


def _digest(store: Store, *credentials: str) -> str:
    """What tells whether a source is asked with the same credentials; nothing can be learned from it."""
    return hmac.digest(store.secret("identity"), repr(credentials).encode(), "sha256").hex()[:16]


def _credentials(tx: Transaction, origin: int, source: Source, known: Origin | None) -> tuple[str, str]:
    """User and password of a source: those given, or those given before for the same scheme, host and port.

    `known`: the source as it was harvested before. Earlier versions stored no server with credentials.
    """
    server = origin_of(source.url)
    if source.user or source.password:
        tx.upsert(
            kept_tables.CREDENTIALS, [kept_tables.Credentials(origin, source.user, source.password, server)]
        )
        return source.user, source.password
    (kept,) = tx.select(kept_tables.CREDENTIALS, origin=origin) or [
        kept_tables.Credentials(origin, "", "", "")
    ]
    harvested = origin_of(str(known.settings.get("url", ""))) if known is not None else ""
    if server != (kept.server or harvested):
        return "", ""
    return kept.username, kept.password


__all__ = ["Interrupted", "Run", "RunOptions"]
