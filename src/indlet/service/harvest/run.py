"""One run over one source: ask, normalise, commit, decide, until the source is had or cannot be.

Records and the state that says they were harvested commit in one transaction, a few pages at a time.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from lxml import etree

from indlet.errors import BadResponse, IndletError, RemoteError, SettingsError
from indlet.model import Failure
from indlet.oai.read import Item, Page
from indlet.service.harvest import dates
from indlet.service.harvest import decide as d
from indlet.service.harvest.asking import Asker, Interrupted
from indlet.service.harvest.circles import Circles
from indlet.service.harvest.client import Client, NoAnswer, spellings
from indlet.service.harvest.negotiate import Terms, negotiate
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.reconcile import whole_list
from indlet.service.harvest.writing import Aside, Pending
from indlet.service.normalise import Normaliser
from indlet.settings import Harvest, Source
from indlet.settings import seconds as interval
from indlet.store import Store
from indlet.text import Analyzer

# Pages are committed together until there are this many records, or this much time has gone by.
BATCH: Final = 4000
BATCH_SECONDS: Final = 1.0
RAW_BYTES: Final = 1 << 20
# Broken records of a list that are asked for once more, alone, in one run.
SECOND_LOOKS: Final = 100
# Single records in a row that the source could not give: then it is the source, and not the record.
IN_A_ROW: Final = 3
# The stage of failures that may pass, though the record will not be listed again.
OWED: Final = "get"

Extract = Callable[[bytes, str, str], str]  # content, URL, media type -> text


@dataclass(frozen=True, slots=True)
class Wish:
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
        wish: Wish | None = None,
        extract: Extract | None = None,
        halt: threading.Event | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.store = store
        self.source = source
        self.analyzer = analyzer
        self.harvest = harvest
        self.progress = progress
        self.wish = wish or Wish()
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
        client = Client(harvest, token=source.token, delay_seconds=delay, sleep=self._sleep)
        self.asker = Asker(client, self.rules, self._sleep, self.halt, self._tell)
        with store.write() as tx:
            self.origin = tx.origin("source", name, {k: v for k, v in asdict(source).items() if k != "token"})
        self.state: dict[str, Any] = {}
        self.run_id = 0
        self.pending = Pending()
        self.writing: Aside | None = None
        self.seen: set[bytes] = set()
        self.circles = Circles()
        self.listed_ids: list[tuple[str, str, bool]] = []
        self.failed_places: set[str] = set()
        self.failed_now: set[str] = set()
        self.owed: list[str] = []
        self.second_looks = 0
        self.said = ""  # by the last request that brought nothing

    # The run

    def go(self) -> Progress:
        """The run, to its end. RemoteError and StoreError become its outcome; interruption goes through."""
        progress = self.progress
        progress.started = time.monotonic()
        with self.store.job(f"harvest-{self.origin}"):
            with self.store.read() as view:
                self.state = view.state(self.origin)
                known = list(view.failures(self.origin))
                self.failed_places = {f.where for f in known}
                self.owed = [f.where for f in known if f.stage == OWED]
            with self.store.write() as tx:
                self.run_id = tx.start_run(self.origin, "harvest")
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
        self.normaliser = Normaliser(
            self.analyzer, terms.index_prefix, terms.bundle_prefix, terms.policy, full_text
        )
        self.terms = terms
        self.remote = d.Source(
            terms.identity.earliest if dates.parse(terms.identity.earliest) else "", terms.seconds
        )
        for note in terms.notes:
            progress.repairs[note] += 1
        course = self._begin(terms)
        progress.phase = "harvesting"
        course, stop = self._follow(course)
        if stop.complete:
            self._ask_for_owed()
        self._finish(course, stop)
        if stop.complete and self._reconcile_due():
            self._reconcile()

    def _begin(self, terms: Terms) -> d.Course:
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
            loss=list(self.normaliser.reconciliation.losses) if self.normaliser.has_index else [],
            reconciliation=self.normaliser.reconciliation.kind
            if self.normaliser.has_index
            else "own analysis",
        )
        since, until = self._bounds(terms)
        key = [self.source.set, self.wish.since or self.source.from_, self.wish.until or self.source.until]
        kept = self.state.get("run")
        if kept and kept["key"] == key:
            course = d.Course.from_json(kept["course"])
        else:
            course = d.Course((d.Window(since, until),))
            self.state["run"] = {
                "key": key,
                "asked": dates.write(self.now(), True),
                "course": course.to_json(),
            }
        self._commit(course)
        return course

    def _bounds(self, terms: Terms) -> tuple[str, str]:
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
        action: d.Action = d.Ask()
        while True:
            if self.halt.is_set():
                raise Interrupted
            match action:
                case d.Stop():
                    self._commit(course)
                    return course, action
                case d.Ask(wait):
                    if wait:
                        self._commit(course)  # a long wait should not hold back what has come
                        self._tell(f"{self.said}; again in {wait:.3g} s")
                        self._sleep(wait)
                    course, action = self._ask(course)
                case d.Compare():
                    self._commit(course)
                    self.missing = self._compare()
                    course, action = d.step(course, d.Checked(len(self.missing)), self.remote, self.rules)
                case d.Fetch():
                    course, action = self._fetch(course)
            self._commit_if_due(course)

    def _ask(self, course: d.Course) -> tuple[d.Course, d.Action]:
        if course.pages == 0 and not course.token:
            self.seen.clear()
            self.circles = Circles()
            self.listed_ids.clear()
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
            event = replace(e.failed, spellings=len(spellings(course.token)) if course.token else 1)
            return d.step(course, event, self.remote, self.rules)
        self._count()
        event_listed = self._took(page, course)
        before = course
        course, action = d.step(course, event_listed, self.remote, self.rules)
        if before.spelling:
            self.progress.repairs["token respelt"] += 1
        if before.phase == "list" and course.phase == "check":
            self.progress.repairs["lists that ended early or in circles"] += 1
        return course, action

    def _took(self, page: Page, course: d.Course) -> d.Listed:
        """Make records of a page and tell what matters of it for the next decision."""
        progress = self.progress
        progress.pages += 1
        progress.trouble = ""
        progress.repairs += page.repairs
        if page.size is not None:
            progress.size = page.size
        digest = blake2b(digest_size=8)
        digest.update("\n".join([f"{i.identifier} {i.datestamp}" for i in page.items]).encode())
        digest.update("\n".join(p.where for p in page.problems).encode())
        seen = digest.digest() in self.seen
        self.seen.add(digest.digest())
        circle = self.circles.meets(i.identifier for i in page.items)
        stamps = [i.datestamp for i in page.items]
        sound = self._sound(stamps, page.response_date)
        if course.phase == "check":
            self.listed_ids += [(i.identifier, i.datestamp, i.deleted) for i in page.items]
        elif seen:
            progress.repairs["pages that came twice"] += bool(page.items)
        else:
            self._records(page.items)
            for problem in page.problems:
                self._problem(problem.where, problem.reason, problem.raw)
        return d.Listed(
            len(page.items) + len(page.problems),
            page.token,
            page.size,
            seen or circle,
            page.response_date if course.first_response or dates.parse(page.response_date) else "",
            min(stamps, default="") if sound else "",
            max(stamps, default="") if sound else "",
            sound and stamps == sorted(stamps),
            stamps.count(max(stamps)) if stamps else 0,
        )

    def _sound(self, stamps: list[str], response_date: str) -> bool:
        """Whether the datestamps can be relied on for resuming; what is wrong with them is counted."""
        length = 20 if self.remote.seconds else 10
        bad = future = 0
        limit = dates.next_day(response_date) if dates.parse(response_date) else dates.END
        for stamp in set(stamps):
            if not dates.well_formed(stamp):
                bad += 1
            elif len(stamp) != length:
                self.progress.repairs["datestamps of another granularity"] += 1
                bad += 1
            elif stamp > limit:
                future += 1
        if future:
            self.progress.repairs["datestamps in the future"] += future
        malformed = sum(not dates.well_formed(s) for s in set(stamps))
        if malformed:
            self.progress.repairs["malformed datestamps"] += malformed
        return not bad and not future

    def _records(self, items: Sequence[Item]) -> None:
        progress, keep = self.progress, self.pending.records.append
        for item, made in zip(items, self.normaliser.records(items), strict=True):
            if isinstance(made, BadResponse):
                self._problem(item.identifier, str(made), _raw(item))
                continue
            keep(made)
            if item.deleted:
                progress.deleted += 1
            else:
                progress.records += 1

    def _problem(self, where: str, reason: str, raw: bytes) -> None:
        """A record of a list that cannot be used: asked for alone, and if that is no better, a failure."""
        if where and self.second_looks < SECOND_LOOKS:
            self.second_looks += 1
            try:
                found = self._one(where)
            except NoAnswer:
                found = None
            if found is not None:
                try:
                    record = self.normaliser.record(found)
                except BadResponse:
                    pass
                else:
                    self.progress.repairs["records fetched alone"] += 1
                    self.pending.records.append(record)
                    self.progress.records += not record.deleted
                    self.progress.deleted += record.deleted
                    return
        self.progress.failed += 1
        self.pending.failures.append(
            Failure(where or f"a record of {self.terms.url}", "harvest", reason, raw[:RAW_BYTES])
        )

    def _one(self, identifier: str) -> Item | None:
        arguments = {"verb": "GetRecord", "identifier": identifier, **self.terms.selection("")}
        page = self.asker.patiently(self.terms.url, arguments, attempts=2)
        self._count()
        self.progress.repairs += page.repairs
        return next((i for i in page.items if i.identifier == identifier), None)

    def _ask_for_owed(self) -> None:
        """Records that an earlier run was refused for the moment, asked for once more."""
        if not self.owed:
            return
        self._settle()
        for identifier in self.owed[:SECOND_LOOKS]:
            if identifier not in self.failed_places or identifier in self.failed_now:
                continue  # it has come, or was asked for already
            if self.halt.is_set():
                raise Interrupted
            try:
                item = self._one(identifier)
            except NoAnswer as e:
                if "idDoesNotExist" in str(e):
                    continue
                self._failure(identifier, str(e), OWED if e.failed.trouble in d.PASSING else "harvest")
                if e.failed.trouble in ("unreachable", "silent", "later"):
                    return
            else:
                if item is not None:
                    self._records([item])

    # Checking a window

    def _compare(self) -> list[str]:
        """The identifiers of the check's list that are not held as listed."""
        listed = {identifier: (stamp, deleted) for identifier, stamp, deleted in self.listed_ids}
        missing = list[str]()
        failed = {f.where for f in self.pending.failures}
        with self.store.read() as view:
            failed |= {f.where for f in view.failures(self.origin)}
            for identifier, (stamp, deleted) in listed.items():
                held = view.get(identifier, [self.origin])
                if (
                    held is None
                    or bool(held.deleted) != deleted
                    or (not deleted and held.record.properties.get("source_datestamp") != stamp)
                ):
                    missing.append(identifier)
        self.listed_ids.clear()
        return [i for i in missing if i not in failed]

    def _fetch(self, course: d.Course) -> tuple[d.Course, d.Action]:
        """Get what is missing one by one. What cannot be had now is owed, and asked for next time."""
        unreachable = 0
        for identifier in self.missing:
            if self.halt.is_set():
                raise Interrupted
            try:
                item = self._one(identifier)
            except NoAnswer as e:
                passing = e.failed.trouble in d.PASSING
                unreachable += passing
                if unreachable >= IN_A_ROW:
                    return course, d.Stop(False, str(e), resumable=True)
                if "idDoesNotExist" not in str(e):
                    self._failure(identifier, str(e), OWED if passing else "harvest")
                continue
            unreachable = 0
            if item is None:
                self._failure(identifier, "GetRecord answers with another record")
            else:
                self.progress.repairs["records fetched alone"] += 1
                self._records([item])
            self._commit_if_due(course)
        return d.window_done(course)

    def _failure(self, where: str, reason: str, stage: str = "harvest") -> None:
        self.progress.failed += 1
        self.failed_now.add(where)
        self.pending.failures.append(Failure(where, stage, reason))

    # Commit

    def _commit_if_due(self, course: d.Course) -> None:
        pending = self.pending
        if len(pending.records) >= BATCH or time.monotonic() - pending.since > BATCH_SECONDS:
            self._commit(course, wait=False)

    def _commit(self, course: d.Course | None, outcome: str = "running", wait: bool = True) -> None:
        """Records, failures, state and journal, all or nothing; aside from the next page unless `wait`."""
        if course is not None and self.state.get("run"):
            self.state["run"]["course"] = course.to_json()
        if outcome != "running":
            self._conclude(outcome)
        pending, self.pending = self.pending, Pending()
        self._settle()
        state = json.dumps(self.state)
        write = Aside(self._write, pending, state, outcome)
        if wait:
            write.join()
        else:
            self.writing = write

    def _settle(self) -> None:
        """Wait for the commit that is under way; what went wrong with it is raised here."""
        writing, self.writing = self.writing, None
        if writing is not None:
            writing.join()

    def _write(self, pending: Pending, state: str, outcome: str) -> None:
        progress = self.progress
        with self.store.write() as tx:
            if pending.records:
                progress.changed += tx.put(self.origin, pending.records)
                if self.failed_places:
                    done = self.failed_places & {r.identifier for r in pending.records}
                    tx.forgive(self.origin, done)
                    self.failed_places -= done
            for failure in pending.failures:
                tx.fail(self.origin, failure)
                self.failed_places.add(failure.where)
            tx.state(self.origin, json.loads(state))
            tx.note_run(self.run_id, progress.to_json(), outcome)

    def _conclude(self, outcome: str) -> None:
        progress = self.progress
        progress.ended = time.monotonic()
        totals = self.state.setdefault("repairs", {})
        for kind, count in progress.repairs.items():
            totals[kind] = totals.get(kind, 0) + count
        self.state["last"] = {
            "at": dates.write(self.now(), True), "outcome": outcome, "reason": progress.reason,
            "records": progress.records, "deleted": progress.deleted, "failed": progress.failed,
        }  # fmt: skip

    def _finish(self, course: d.Course, stop: d.Stop) -> None:
        run = self.state.get("run") or {}
        selective = bool(self.wish.since or self.wish.until or self.source.until)
        if stop.complete:
            if not selective:
                self._advance_mark(course.first_response, run.get("asked", ""))
            self.state.pop("run", None)
            self._end("complete", "")
            return
        if not stop.resumable:
            self.state.pop("run", None)
        self._end("incomplete", stop.reason)

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
        self.progress.outcome, self.progress.reason, self.progress.phase = outcome, reason, outcome
        self._commit(None, outcome)

    # Reconciliation

    def _reconcile_due(self) -> bool:
        if self.state.get("deleted_record") == "persistent" and not self.wish.reconcile:
            return False
        if self.wish.reconcile:
            return True
        every = self.source.reconcile or self.harvest.reconcile
        last = dates.parse(self.state.get("reconciled", ""))
        if every == "never":
            return False
        if last is None:  # the first harvest has just listed everything
            self.state["reconciled"] = dates.write(self.now(), True)
            with self.store.write() as tx:
                tx.state(self.origin, self.state)
            return False
        pause = interval(every)
        return pause is not None and (self.now() - last).total_seconds() >= pause

    def _reconcile(self) -> None:
        """Delete what the source no longer lists; nothing at all unless its whole list could be read."""
        self.progress.phase = "reconciling"
        self._settle()
        listed: set[str] = set()
        for set_spec in self.state.get("marks") or [self.source.set]:
            found = whole_list(self.asker, self.terms, set_spec, self.remote, self.rules, self._sleep)
            if found is None:
                self._end("incomplete", "reconciliation could not read the whole list; nothing was deleted")
                return
            listed |= found
        with self.store.read() as view:
            gone = [i for i in view.identifiers(self.origin) if i not in listed]
        with self.store.write() as tx:
            self.progress.deleted += tx.delete(self.origin, gone)
            self.state["reconciled"] = dates.write(self.now(), True)
            tx.state(self.origin, self.state)
        self._end("complete", "")

    # The edges

    def _count(self) -> None:
        self.progress.requests, self.progress.bytes = self.asker.client.requests, self.asker.client.wire

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
            self.progress.failed += 1
            self.pending.failures.append(Failure(identifier, "fetch", str(e)))
            return ""


def _raw(item: Item) -> bytes:
    part = item.metadata
    if part is None or isinstance(part, bytes):
        return part or b""
    return etree.tostring(part, with_tail=False)


__all__ = ["Extract", "Interrupted", "Run", "Wish"]
