"""One run over one source: ask, normalise, commit, decide, until the source is had or cannot be.

Records and the state that says they were harvested commit in one transaction, a few pages at a time.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from indlet.errors import IndletError, RemoteError, SettingsError
from indlet.model import Failure
from indlet.service.harvest import dates, owed, sets
from indlet.service.harvest import decide as d
from indlet.service.harvest.cache import Cache
from indlet.service.harvest.client import Client, NoAnswer, spellings
from indlet.service.harvest.commit import Writer
from indlet.service.harvest.fetch_page import Interrupted, PageFetcher
from indlet.service.harvest.listing import Listing
from indlet.service.harvest.negotiate import Agreement, negotiate
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.reconcile import CannotTell, due, vanished, whole_list
from indlet.service.harvest.record_intake import Intake
from indlet.service.records.normalise import Normaliser
from indlet.service.records.stored_policy import remember
from indlet.settings import Harvest, Source
from indlet.store import Store, Transaction
from indlet.text import Analyzer

Extract = Callable[[bytes, str, str], str]  # content, URL, media type -> text


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is asked of a run beyond the source's settings."""

    full: bool = False
    since: str = ""
    until: str = ""
    reconcile: bool = False


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
        wish: RunOptions | None = None,
        extract: Extract | None = None,
        halt: threading.Event | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        own: str = "",
    ) -> None:
        self.name, self.own = name, own
        self.store = store
        self.source = source
        self.analyzer = analyzer
        self.harvest = harvest
        self.progress = progress
        self.wish = wish or RunOptions()
        self.extract = extract
        self.halt = halt or threading.Event()
        self.now = now
        self.rules = d.Rules(
            harvest.retries,
            harvest.backoff_seconds,
            harvest.backoff_limit_seconds,
            harvest.retry_after_limit_seconds,
            harvest.pages,
        )
        delay = source.delay_seconds if source.delay_seconds >= 0 else harvest.delay_seconds
        with store.write() as tx:
            self.origin = tx.origin("source", name, source.public())
            user, password = _credentials(tx, self.origin, source)
        client = Client(
            harvest, token=source.token, user=user, password=password, delay_seconds=delay, sleep=self._sleep
        )
        self.asker = PageFetcher(client, self.rules, self._sleep, self.halt, self._tell, self._announce)
        self.resumed = False  # an earlier run was interrupted, and this one goes on from there
        self.said = ""  # by the last request that brought nothing
        self.named: set[str] = set()  # by the last list of identifiers that was compared

    # The run

    def go(self) -> Progress:
        """The run, to its end. RemoteError and StoreError become its outcome; interruption goes through."""
        progress = self.progress
        progress.started = time.monotonic()
        with self.store.job(f"harvest-{self.origin}"):
            with self.store.read() as view:
                self.state = view.state(self.origin)
                failures = list(view.open_failures(self.origin))
            with self.store.write() as tx:
                run = tx.start_run(self.origin, "harvest")
            self.writer = Writer(self.store, self.origin, run, self.state, failures, progress, self.now)
            self.owed = owed.due_now(failures, int(self.now().timestamp()))
            try:
                self._harvest()
            except (RemoteError, SettingsError) as e:
                self._end("failed", str(e))
            except (KeyboardInterrupt, Interrupted):
                self._end("interrupted", "interrupted; the next run goes on from here")
                if not self.halt.is_set():
                    raise
            except IndletError as e:
                progress.outcome, progress.reason = "failed", str(e)
                raise
            finally:
                progress.ended = time.monotonic()
                self.asker.close()
        return progress

    def _harvest(self) -> None:
        progress = self.progress
        progress.phase = "negotiating"
        known = self.state.get("url", "") if self.state.get("identified") else ""
        terms = negotiate(self.asker, self.source, self.analyzer.policy.positions, known)
        progress.form = terms.form
        full_text = self._full_text if self.source.fulltext == "fetch" and self.extract else None
        normaliser = Normaliser(
            self.analyzer, terms.index_prefix, terms.bundle_prefix, terms.policy, full_text
        )
        self.writer.cache = Cache(self.store, self.name, terms.identity.base_url or terms.url, self.own)
        self.intake = Intake(
            self.asker, terms, normaliser, self.writer, self.halt, self.writer.cache, self.source.republish
        )
        self.terms = terms
        self.remote = d.Source(
            terms.identity.earliest if dates.parse(terms.identity.earliest) else "", terms.seconds
        )
        for note in terms.notes:
            progress.repairs[note] += 1
        self.listing = Listing(self.remote.seconds, progress)
        course = self._begin(terms, normaliser)
        progress.phase = "harvesting"
        course, stop = self._follow(course)
        self.writer.settle()
        if self.owed and not stop.resumable:
            progress.phase = "retrying"
            self.intake.owed(self.owed, partial(self.writer.commit_if_due, course))
        if stop.complete and sets.learn(
            self.store, self.origin, self.asker, terms.url, self.state, self.now()
        ):
            progress.repairs["set names are not to be had"] += 1
        self._finish(course, stop)
        if stop.complete and self._reconcile_due():
            self._reconcile()

    def _begin(self, terms: Agreement, normaliser: Normaliser) -> d.Course:
        """Where to start: where the last run was interrupted, at its high-water mark, or anew."""
        shape = [
            terms.url, terms.metadata_prefix, terms.index_prefix, terms.policy.digest if terms.policy else "",
            self.analyzer.policy.digest, self.source.fulltext,
        ]  # fmt: skip
        if self.wish.full or self.state.get("shape", shape) != shape:
            self.state.pop("run", None)
            self.state["marks"] = {}
        self.state.update(
            url=terms.url,
            shape=shape,
            format=terms.form,
            identified=terms.identity.base_url != "",
            name=terms.identity.name,
            deleted_record=terms.identity.deleted,
            granularity="second" if terms.seconds else "day",
            policy=terms.policy.to_json() if terms.policy else None,
            loss=[*normaliser.reconciliation.losses, *terms.losses] if normaliser.has_index else [],
            reconciliation=normaliser.reconciliation.kind if normaliser.has_index else "own analysis",
        )
        remember(self.store, self.analyzer.policy)
        since, until = self._bounds(terms)
        key = [self.source.set, self.wish.since or self.source.from_, self.wish.until or self.source.until]
        kept = self.state.get("run")
        if kept and kept["key"] == key:
            course = d.Course.from_json(kept["course"])
            self.resumed = True
        else:
            course = d.Course((d.Window(since, until),))
            self.state["run"] = {
                "key": key,
                "asked": dates.write(self.now(), True),
                "everything": not (since or until),
                "course": course.to_json(),
            }
        self.writer.commit(course)
        return course

    def _bounds(self, terms: Agreement) -> tuple[str, str]:
        since, until = self.wish.since or self.source.from_, self.wish.until or self.source.until
        for bound in (since, until):
            if bound and dates.parse(bound) is None:
                raise SettingsError(f"{bound!r} is not a date; write 2024-05-01 or 2024-05-01T12:00:00Z")
        mark = self.state.get("marks", {}).get(self.source.set, "")
        if mark and not self.wish.since:
            overlap = self.harvest.overlap_seconds + self.state.get("vague", 0)
            since = max(dates.earlier(mark, terms.seconds, overlap), since)
        if not terms.seconds:
            return dates.day(since), dates.day(until)
        if since and until and len(since) != len(until):  # both bounds must have one granularity
            since = dates.like(since, True)
            until = until if len(until) > 10 else f"{until}T23:59:59Z"
        return since, until

    def _follow(self, course: d.Course) -> tuple[d.Course, d.Stop]:
        course, action = d.resume(course)
        missing = list[str]()
        while True:
            if self.halt.is_set():
                raise Interrupted
            match action:
                case d.Stop():
                    self.writer.commit(course)
                    return course, action
                case d.Ask() if self._room_is_taken():
                    action = d.Stop(False, self._no_room(), resumable=True)
                case d.Ask(wait):
                    if wait:
                        self.writer.commit(course)  # a long wait should not hold back what has come
                        self._tell(f"{self.said}; again in {wait:.3g} s")
                        self._sleep(wait)
                    course, action = self._ask(course)
                case d.Compare():
                    self.writer.commit(course)
                    missing = self.listing.missing(self.store, self.origin, self.writer.failed_now)
                    bound = course.windows[0].since or course.windows[0].until
                    middle, alike = self.listing.middle(not self.remote.seconds or len(bound) == 10)
                    self.named = {identifier for identifier, _, _ in self.listing.identifiers}
                    self.listing.identifiers.clear()
                    checked = d.Checked(len(missing), middle, alike)
                    course, action = d.step(course, checked, self.remote, self.rules)
                case d.Fetch():
                    said = self.intake.missing(missing, partial(self.writer.commit_if_due, course))
                    course, action = (
                        (course, d.Stop(False, said, resumable=True)) if said else d.window_done(course)
                    )
            self.writer.commit_if_due(course)

    def _ask(self, course: d.Course) -> tuple[d.Course, d.Action]:
        if course.pages == 0 and not course.token:
            self.listing = Listing(self.remote.seconds, self.progress)
        arguments = d.arguments(course, self.terms.selection(self.source.set))
        try:
            page = self.asker.page(self.terms.url, arguments, course.spelling)
        except NoAnswer as e:
            self._count()
            self.said = str(e)
            if e.failed.trouble == "silent":
                self._tell(self.said)
            if e.failed.trouble not in ("nothing", "token"):
                self.progress.repairs[f"retried: {e.failed.trouble}"] += 1
            elif e.failed.trouble == "nothing" and course.token:
                self.progress.repairs["lists that ended early or in circles"] += course.phase == "list"
            event = replace(e.failed, spellings=len(spellings(course.token)) if course.token else 1)
            return d.step(course, event, self.remote, self.rules)
        self._count()
        if self.resumed and course.phase == "list":
            self.listing.compare(page.items, self.store, self.origin)
        listed, again = self.listing.took(page, course)
        if course.phase == "list" and not again:
            self.intake.page(page)
        if course.phase == "probe":
            listed = replace(listed, new=sum(i.identifier not in self.named for i in page.items))
        before = course
        course, action = d.step(course, listed, self.remote, self.rules)
        if before.spelling:
            self.progress.repairs["token respelt"] += 1
        if before.phase == "list" and course.phase == "check":
            kind = listed.doubt or "lists that ended early or in circles"
            self.progress.repairs[kind] += 1
        return course, action

    def _finish(self, course: d.Course, stop: d.Stop) -> None:
        run = self.state.get("run") or {}
        selective = bool(self.wish.since or self.wish.until or self.source.until)
        if course.size_lies:
            self.progress.repairs["sizes that were wrong"] += 1
            self.state["size_lies"] = True
        if course.unconfirmed:
            self.progress.repairs["sizes that could not be confirmed"] += course.unconfirmed
        if stop.complete:
            if not selective:
                self._forget_what_is_gone(run)
                self._advance_mark(course.first_response, run.get("asked", ""))
            self.state.pop("run", None)
            self._end("complete", "")
            return
        if not stop.resumable:
            self.state.pop("run", None)
        self._end("incomplete", stop.reason)

    def _forget_what_is_gone(self, run: Mapping[str, Any]) -> None:
        """After a list of everything: what failed before it, and is not in it, is no longer owed."""
        asked = dates.parse(run.get("asked", ""))
        if asked and run.get("everything") and not set(self.state.get("marks") or {}) - {self.source.set}:
            self.writer.forget_failures(int(asked.timestamp()))

    def _advance_mark(self, first_response: str, asked: str) -> None:
        """The next run starts where this one's first page was answered, by the source's clock or by ours:
        whichever is earlier. A source without a sound responseDate is given a day of overlap."""
        remote = dates.parse(first_response)
        ours = dates.parse(asked) or self.now()
        # noRecordsMatch brings no date: our own clock, less the doubt about theirs.
        mark = min(remote, ours) if remote else ours - timedelta(days=1)
        self.state.setdefault("marks", {})[self.source.set] = dates.write(mark, True)
        self.state["vague"] = 0 if dates.well_formed(first_response) or not remote else 86400

    def _end(self, outcome: str, reason: str) -> None:
        self._count()
        self.writer.end(outcome, reason)

    # Reconciliation

    def _reconcile_due(self) -> bool:
        if self.wish.reconcile:
            return True
        every = self.source.reconcile or self.harvest.reconcile
        if (
            not self.state.get("reconciled")
            and every != "never"
            and self.state["deleted_record"] != "persistent"
        ):
            # The first harvest has just listed everything.
            self.state["reconciled"] = dates.write(self.now(), True)
            self.writer.save()
        return due(self.state, every, self.now())

    def _reconcile(self) -> None:
        """Delete what the source no longer lists; nothing at all unless its whole list could be read."""
        self.progress.phase = "reconciling"
        self.writer.settle()
        lists = partial(
            whole_list, self.asker, self.terms, remote=self.remote, rules=self.rules, sleep=self._sleep,
            size_counts=not self.state.get("size_lies"),
        )  # fmt: skip
        specs = list(self.state.get("marks") or [self.source.set])
        try:
            gone, left_out, back = vanished(self.store, self.origin, specs, lists, self.intake.one)
        except CannotTell as e:
            self._end("incomplete", f"reconciliation {e}; nothing was deleted")
            return
        if left_out:
            self.progress.repairs["records that a list left out"] += left_out
        if self.source.republish:
            self.intake.deleted(gone, dates.write(self.now(), True))
            self.writer.commit(None)
            gone = []
        with self.store.write() as tx:
            self.progress.deleted += tx.delete(self.origin, gone)
            self.state["reconciled"] = dates.write(self.now(), True)
            tx.state(self.origin, self.state)
        back = [identifier for identifier in back if identifier not in self.writer.failures]
        said = self._bring_back(back) if back else ""
        self._end("incomplete" if said else "complete", said)

    def _bring_back(self, identifiers: list[str]) -> str:
        """Take what the source lists and we do not hold; why that cannot be done now, if it cannot."""
        if len(identifiers) <= d.ONE_BY_ONE:
            return self.intake.missing(identifiers, lambda: None)
        self.state["marks"] = {}
        return f"{len(identifiers)} records are listed that never came; the next run lists everything anew"

    # What the source may take of the disk

    def _room_is_taken(self) -> bool:
        """Whether the source has all the room that it may have. Counted as it comes, and then exactly."""
        if self.writer.stored_bytes <= self._room:
            return False
        self.writer.count_bytes()
        return self.writer.stored_bytes > self._room

    @property
    def _room(self) -> int:
        return self.source.disk_bytes or self.harvest.disk_bytes

    def _no_room(self) -> str:
        return (
            f"its records take {self.writer.stored_bytes:,} bytes of the store, and may take {self._room:,}; "
            "what has come is kept. Raise  disk_bytes  of the source or of [harvest] to go on"
        )

    # The edges

    def _count(self) -> None:
        self.progress.requests, self.progress.bytes = self.asker.client.requests, self.asker.client.wire

    def _announce(self, size: int) -> None:
        self.progress.size = size

    def _tell(self, trouble: str) -> None:
        self.progress.trouble = trouble

    def _sleep(self, seconds: float) -> None:
        if self.halt.wait(seconds):
            raise Interrupted

    def _full_text(self, identifier: str, url: str) -> str:
        """The text of a linked document: fetched, extracted, analysed by the caller, and dropped."""
        assert self.extract is not None
        try:
            answer = self.asker.document(url, self.harvest.fetch_bytes)
            return self.extract(answer.body, answer.url, answer.content_type)
        except (NoAnswer, IndletError) as e:
            self.writer.fail(Failure(identifier, "fetch", str(e)))
            return ""


def _credentials(tx: Transaction, origin: int, source: Source) -> tuple[str, str]:
    """User and password of a source: those given, or those with which it was harvested before."""
    key = f"credentials:{origin}"
    if source.user or source.password:
        tx.meta(key, json.dumps([source.user, source.password]))
        return source.user, source.password
    user, password = json.loads(tx.meta_value(key, '["", ""]'))
    return str(user), str(password)


__all__ = ["Extract", "Interrupted", "Run", "RunOptions"]
