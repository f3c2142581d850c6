"""The documents of one source, over weeks: what is new or due is visited, what came of it is committed.

All that must outlive the process is in the store: the queue (`documents`), and the facts about the source,
one JSON value. A visit's vector, its row and the facts commit together, so that a killed process repeats at
most the visits that it had not committed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple
from zlib import crc32

import orjson

from indlet.model import JsonObject, Stored, TermVector
from indlet.net.client import NoAnswer, oai_url
from indlet.oai.read import local_name, parsed, text_of
from indlet.settings import Settings, Source, seconds
from indlet.sidecar.extraction import Extract
from indlet.sidecar.fetch import CHANGED, FEED, DocumentFetcher
from indlet.sidecar.formats import PREFIXES, files_in
from indlet.sidecar.links import Reason
from indlet.sidecar.locate import Ways, files_in_dublin_core
from indlet.sidecar.pace import (
    BudgetSpent,
    DayBudget,
    HostPaused,
    Hosts,
    PacedClient,
    Stopped,
    host_of,
    opening,
)
from indlet.sidecar.visit import Visit
from indlet.store import DocumentState, Store
from indlet.text import Analyzer

log = logging.getLogger("indlet.sidecar")

SAMPLE: Final = 10
SAMPLE_FOUND: Final = 8  # of these: `fulltext = "auto"` goes on
BATCH: Final = 20  # visits that are committed together, at most
COMMIT_SECONDS: Final = 1.0
FOLLOW: Final = 500  # records that are queued in one transaction
FOLLOW_SECONDS: Final = 60.0  # between two looks for new records
FORMATS_SECONDS: Final = 7 * 86_400
FIRST_RETRY: Final = 3600
LONGEST_RETRY: Final = 14 * 86_400
HOURS_KEPT: Final = 48
NEW, AGAIN = 0, 2  # priorities; CHANGED is between them


@dataclass(slots=True)
class SourceFacts:
    """What was learned about a source and outlives a process."""

    position: int = 0  # in the list of its records, by the place of their metadata
    policy: str = ""  # digest of the policy by which its documents are analysed
    formats: tuple[str, ...] = ()
    formats_at: int = 0
    ways: JsonObject = field(default_factory=dict)
    budget: JsonObject = field(default_factory=dict)
    hours: JsonObject = field(default_factory=dict)  # hour since 1970 -> [visits, documents, requests, bytes]
    paused: JsonObject = field(default_factory=dict)  # host -> until when
    sample: JsonObject = field(default_factory=dict)  # {"at", "found", "of"} of `fulltext = "auto"`
    held_up: str = ""  # why nothing is fetched now

    @classmethod
    def read(cls, raw: object) -> SourceFacts:
        data = orjson.loads(raw) if isinstance(raw, bytes | str) else {}
        known = {name: value for name, value in data.items() if name in cls.__slots__}
        return cls(**{**known, "formats": tuple(known.get("formats", ()))})

    def write(self) -> bytes:
        return orjson.dumps(asdict(self))

    def note(self, now: float, visit: Visit) -> None:
        hour = str(int(now // 3600))
        counts = self.hours.setdefault(hour, [0, 0, 0, 0])
        for place, count in enumerate((1, visit.vector is not None, visit.requests, visit.bytes)):
            counts[place] += int(count)
        for old in sorted(self.hours, key=int)[:-HOURS_KEPT]:
            del self.hours[old]

    @property
    def is_declined(self) -> bool:
        """Whether a sample found too few documents for `fulltext = "auto"`."""
        return bool(self.sample) and self.sample["found"] < min(SAMPLE_FOUND, self.sample["of"])


def facts_key(origin: int) -> str:
    return f"sidecar:{origin}"


class SourceTask(NamedTuple):
    """A source whose documents are wanted, and its number in the store."""

    source: Source
    origin: int


class SourceWork:
    """The work on one source. `halt` ends it; what was visited is committed."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        task: SourceTask,
        hosts: Hosts,
        extract: Extract,
        halt: threading.Event | None = None,
    ) -> None:
        self._store, self._settings, (self._source, self._origin) = store, settings, task
        self._hosts, self._halt = hosts, halt or threading.Event()
        self._analyzer = _analyzer_of(store, settings)
        with store.read() as view:
            self.facts = SourceFacts.read(view.meta(facts_key(task.origin)))
            found = view.origins("source")
        state = next((one.state for one in found if one.id == task.origin), {})
        if self.facts.policy != self._analyzer.policy.digest:  # what was read has to be read again
            self.facts.position, self.facts.policy = 0, self._analyzer.policy.digest
        hosts.restore({host: float(until) for host, until in self.facts.paused.items()})
        self._budget = DayBudget(**self.facts.budget)
        self._client = PacedClient(hosts, settings.harvest, task.source, self._budget, self._halt)
        self._base_url = str(state.get("url") or task.source.url)
        self.fetcher = DocumentFetcher(
            self._client, self._base_url, settings.sidecar, self._analyzer, extract
        )
        self.fetcher.ways = Ways.from_json(self.facts.ways)
        self.fetcher.largest = settings.harvest.fetch_bytes
        self.fetcher.pages_are_documents = task.source.metadata == FEED
        self._done: list[tuple[DocumentState, Visit]] = []
        self._since = hosts.tick()

    def close(self) -> None:
        self._client.close()

    def run(self, report: Callable[[Visit], None] = lambda visit: None) -> str:
        """Visit all that is due; why it ended: "done", "stopped", or what holds the work up."""
        try:
            self.facts.held_up = self._work_through(report)
        except BudgetSpent as e:
            self.facts.held_up = str(e)
        except Stopped:
            self.facts.held_up = "stopped"
        finally:
            self._commit()
            self.close()
        return self.facts.held_up or "done"

    def _work_through(self, report: Callable[[Visit], None]) -> str:
        self.learn_formats()
        if self._source.fulltext == "auto" and not self._sample(report):
            found, of = self.facts.sample["found"], self.facts.sample["of"]
            return f"documents were found for {found} of {of} sampled records"
        followed = -FOLLOW_SECONDS
        while not self._halt.is_set():
            now = self._hosts.clock()
            if opening(self._settings.sidecar.hours, now) > now:
                return f"outside of the hours {self._settings.sidecar.hours} (sidecar.hours)"
            if self._hosts.tick() - followed >= FOLLOW_SECONDS:
                self.follow()
                followed = self._hosts.tick()
            with self._store.read() as view:
                due = view.due_documents(self._origin, int(now), BATCH, tuple(self._hosts.paused_hosts()))
            if not due:
                return ""
            for document in due:
                self._visit(document, report)
            self._commit()
        return "stopped"

    def learn_formats(self) -> None:
        """Ask the source once a week which metadata formats it offers that name files."""
        now = int(self._hosts.clock())
        if now - self.facts.formats_at > FORMATS_SECONDS and self._source.metadata != FEED:
            self.facts.formats = self._list_formats()
            self.facts.formats_at = now
        self.fetcher.formats = self.facts.formats

    def _list_formats(self) -> tuple[str, ...]:
        try:
            answer = self._client.get(oai_url(self._base_url, {"verb": "ListMetadataFormats"}), 1 << 20)
        except (NoAnswer, HostPaused):
            return ()
        root = parsed(answer.body)
        named = () if root is None else root.iter("{*}metadataPrefix")
        offered = {text_of(node) for node in named if local_name(node) == "metadataPrefix"}
        return tuple(prefix for prefix in PREFIXES if prefix in offered)

    # The queue

    def follow(self) -> int:
        """Queue the records that are new or have changed; how many."""
        count = 0
        while True:
            with self._store.read() as view:
                page = view.page(
                    FOLLOW, after=self.facts.position, origins=[self._origin], parts=("metadata", "raw"),
                    metadata_only=True,
                )  # fmt: skip
                known = view.document_states(self._origin, [stored.identifier for stored in page])
            if not page:
                return count
            for stored in page:
                if stored.deleted and stored.identifier in known:
                    self.fetcher.forget(known[stored.identifier])
            queued = [
                self._queue_entry(stored, known.get(stored.identifier))
                for stored in page
                if not stored.deleted
            ]
            self.facts.position = page[-1].seq
            with self._store.write() as tx:
                tx.drop_documents(self._origin, [stored.identifier for stored in page if stored.deleted])
                tx.put_documents([document for document in queued if document is not None])
                tx.meta(facts_key(self._origin), self.facts.write())
            count += sum(document is not None for document in queued)

    def _queue_entry(self, stored: Stored, known: DocumentState | None) -> DocumentState | None:
        now = int(self._hosts.clock())
        if known is not None:
            outdated = known.state == "read" and known.policy != self._analyzer.policy.digest
            if known.seq >= stored.seq and not outdated:
                return None
            priority = CHANGED if known.seq < stored.seq else AGAIN
            return known._replace(priority=priority, due=now, attempts=0, seq=stored.seq)
        return DocumentState(
            self._origin, stored.identifier, "waiting", "", "", "", self._first_host(stored), NEW, now, 0,
            stored.seq, "", "[]", 0, 0, 0,
        )  # fmt: skip

    def _first_host(self, stored: Stored) -> str:
        """The host of the first request for a record's document."""
        links = files_in_dublin_core(orjson.loads(stored.metadata or b"{}"), self._base_url)
        named = files_in(stored.raw)
        urls = [link.url for link in (*(named.files if named else ()), *links.files)]
        return next((host for url in (*urls, *links.pages) if (host := host_of(url))), "")

    # Visits

    def _visit(self, document: DocumentState, report: Callable[[Visit], None]) -> None:
        if self._halt.is_set():
            raise Stopped
        if self._hosts.paused_hosts().get(document.host):
            return
        with self._store.read() as view:
            stored = view.get(document.identifier, [self._origin], metadata_only=True)
        if stored is None or stored.deleted:
            self.fetcher.forget(document)
            with self._store.write() as tx:
                tx.drop_documents(self._origin, [document.identifier])
            return
        try:
            visit = self.fetcher.visit(stored.record, document)
        except HostPaused as e:
            log.info("%s: %s is left alone: %s", document.identifier, e.host, e)
            visit = Visit(Reason.UNREACHABLE, str(e))
            self._done.append((_defer(document, int(e.until)), visit))
            self.facts.paused = dict(self._hosts.paused_hosts())
            return
        except (BudgetSpent, Stopped):
            raise
        except Exception as e:  # met by a strange page or file: named, and the run goes on
            log.exception("%s: its document cannot be looked for", document.identifier)
            visit = Visit(Reason.UNREADABLE, f"{type(e).__name__}: {e}")
        self._take(document, visit, stored.seq)
        report(visit)

    def _take(self, document: DocumentState, visit: Visit, seq: int) -> None:
        now = self._hosts.clock()
        self.facts.note(now, visit)
        self._done.append((self._outcome(document, visit, int(now))._replace(seq=seq), visit))
        if len(self._done) >= BATCH or self._hosts.tick() - self._since >= COMMIT_SECONDS:
            self._commit()

    def _outcome(self, document: DocumentState, visit: Visit, now: int) -> DocumentState:
        document = document._replace(
            requests=document.requests + visit.requests, bytes=document.bytes + visit.bytes, at=now
        )
        again = now + self._recheck_seconds(document.identifier)
        if visit.reason is None:
            return document._replace(
                state="read", reason="", note="", way=visit.way, priority=AGAIN, due=again, attempts=0,
                policy=self._analyzer.policy.digest, files=orjson.dumps(visit.files).decode(),
            )  # fmt: skip
        if visit.reason is Reason.UNREACHABLE:
            pause = min(FIRST_RETRY * 2**document.attempts, LONGEST_RETRY)
            return document._replace(
                state=document.state if document.state == "read" else "waiting",
                reason=visit.reason, note=visit.note[:500], priority=AGAIN, due=now + pause,
                attempts=document.attempts + 1,
            )  # fmt: skip
        self.fetcher.forget(document)
        if (ends := _moment(visit.until)) > now:
            again = min(again, ends)
        return document._replace(
            state="none", reason=visit.reason, note=visit.note[:500], way="", priority=AGAIN, due=again,
            attempts=0, policy="", files="[]",
        )  # fmt: skip

    def _recheck_seconds(self, identifier: str = "") -> int:
        """When to look again; what was read in one day is not all due in one."""
        interval = seconds(self._settings.sidecar.recheck) or 180 * 86_400
        return int(interval * (1 + crc32(identifier.encode()) % 1000 / 10_000))

    def _commit(self) -> None:
        done, self._done, self._since = self._done, [], self._hosts.tick()
        self.facts.ways = dict(self.fetcher.ways.to_json())
        self.facts.budget = asdict(self._budget)
        self.facts.paused = dict(self._hosts.paused_hosts())
        vectors: dict[str, TermVector | None] = {}
        for document, visit in done:
            if visit.vector is not None:
                vectors[document.identifier] = visit.vector
            elif document.state == "none":
                vectors[document.identifier] = None
        with self._store.write() as tx:
            if vectors:
                tx.replace_vectors(self._origin, vectors)
            tx.put_documents([document for document, _ in done])
            tx.meta(facts_key(self._origin), self.facts.write())

    # A sample

    def sample(self, report: Callable[[Visit], None] = lambda visit: None) -> list[tuple[Stored, Visit]]:
        """Visit a few records from all over the source; what is found is kept."""
        chosen = self._choose_sample()
        found = list[tuple[Stored, Visit]]()
        for stored in chosen:
            try:
                visit = self.fetcher.visit(stored.record)
            except HostPaused as e:
                visit = Visit(Reason.UNREACHABLE, str(e))
            found.append((stored, visit))
            document = self._queue_entry(stored, None)
            assert document is not None
            self._take(document, visit, stored.seq)
            report(visit)
        documents = sum(visit.reason is None for _, visit in found)
        at = int(self._hosts.clock())
        self.facts.sample = {"at": at, "found": documents, "of": len(found)}
        self._commit()
        return found

    def _choose_sample(self) -> list[Stored]:
        """Live records at even distances."""
        with self._store.read() as view:
            headers = [
                (seq, identifier)
                for seq, identifier, _, deleted, _ in view.headers(
                    100_000, origins=[self._origin], metadata_only=True
                )
                if not deleted
            ]
            step = max(len(headers) // SAMPLE, 1)
            names = [identifier for _, identifier in headers[::step][:SAMPLE]]
            stored = [view.get(name, [self._origin], metadata_only=True) for name in names]
        return [one for one in stored if one is not None]

    def _sample(self, report: Callable[[Visit], None]) -> bool:
        """Whether `fulltext = "auto"` goes on; a sample that found too little is taken again later."""
        taken = self.facts.sample
        if not taken or (
            self.facts.is_declined and self._hosts.clock() - taken["at"] > self._recheck_seconds()
        ):
            self.sample(report)
        return not self.facts.is_declined and bool(self.facts.sample["of"])


def _defer(document: DocumentState, until: int) -> DocumentState:
    """Put off without having been tried: the host is left alone."""
    return document._replace(
        due=until, reason=Reason.UNREACHABLE, note=f"{document.host} is left alone for now"
    )


def _analyzer_of(store: Store, settings: Settings) -> Analyzer:
    from indlet.service.records.stored_policy import policy_for

    return Analyzer(policy_for(store, settings.analysis))


def _moment(date: str) -> int:
    try:
        return int(datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return 0
