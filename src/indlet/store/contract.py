"""What a store gives and takes: the contract that every implementation keeps, part by part.

A consumer names the smallest part that it needs. `View` and `Transaction` are all parts together; `Store`
hands them out. tests/store/contract holds every implementation to what is written here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, Self

from indlet.model import Failure, JsonMapping, JsonObject, Packed, Record, Stored, TermVector
from indlet.store.kept_tables import KeptTable, R

Clock = Callable[[], float]
COPYING: Final = "copying"  # a key of `meta`: the identity of the store that is being copied into this one
NO_LIMIT: Final = 2**62
# The heavy columns of a record, which a reader may leave out.
PARTS: Final = ("metadata", "properties", "raw", "vector", "positions")


class Audience(Enum):
    """Whom the records of an origin are for."""

    PUBLIC = "public"  # everybody
    RESTRICTED = "restricted"  # those whom rules of access let in
    FILTERED = "filtered"  # everybody to whom a record filter does not refuse them
    SELECTIVE = "selective"  # the same, where a rule may refuse records to some clients
    GUARDED = "guarded"  # those to whom a record filter shows them, one by one
    OPERATIONAL = "operational"  # nobody: a folder that is written to, whose name is a path of this machine


@dataclass(frozen=True)
class Origin:
    """Where records come from. Every search asks for names alone: JSON is read where it is looked at."""

    id: int
    kind: str
    name: str
    settings_text: str
    state_text: str

    @cached_property
    def settings(self) -> JsonObject:
        return dict(json.loads(self.settings_text))

    @cached_property
    def state(self) -> JsonObject:
        return dict(json.loads(self.state_text))

    @property
    def audience(self) -> Audience:
        """Whom its records are for, as its settings said when it was last crawled."""
        rules = self.settings.get("access") or {}
        if self.kind == "write":
            return Audience.OPERATIONAL
        if self.settings.get("guarded"):
            return Audience.GUARDED
        if rules.get("networks") or rules.get("tokens"):
            return Audience.RESTRICTED
        if self.kind != "hierarchy" or not self.settings.get("url"):
            return Audience.PUBLIC
        # Before its first complete crawl nobody knows the rules.
        is_selective = self.state.get("selective", "rules" not in self.state)
        return Audience.SELECTIVE if is_selective else Audience.FILTERED


class FileState(NamedTuple):
    """A file as the crawler last saw it. `state`: "primary", "other", or "failed".

    The media type of a failed file is the one that it had when it gave records, or empty if it never did.
    """

    path: str
    resource: str
    size: int
    modified: int  # nanoseconds since 1970; -1 if the storage does not tell
    etag: str
    digest: str
    media_type: str
    state: str
    policy: str


class StoredFailure(NamedTuple):
    origin: int
    where: str
    stage: str
    reason: str
    raw: bytes
    at: int  # the last time
    first: int = 0
    attempts: int = 1
    due: int | None = None  # when it is asked for again; None: it is not, by itself


class OpenFailure(NamedTuple):
    """A failure without its reason and bytes: what is needed to decide when to retry."""

    where: str
    stage: str
    first: int
    due: int | None


class RunEntry(NamedTuple):
    id: int
    origin: int
    kind: str
    started: float
    finished: float | None
    outcome: str
    detail: JsonObject


class Withheld(NamedTuple):
    """A deletion that waits for an operator: the record is still shown. `kept_by`: who decided to keep it."""

    origin: int
    identifier: str
    at: int
    detail: JsonMapping  # what becomes of the record if the deletion is released
    kept_by: str


class StoredAlert(NamedTuple):
    """Something that somebody has to see to; of one kind, source and record there is one."""

    id: int
    kind: str
    source: str  # the source, hierarchy or folder that it is about
    record: str  # empty: it is about the whole source
    reason: str
    remedy: str
    first: int
    at: int  # the last time that it was said
    acknowledged: int | None
    acknowledged_by: str


class Shared(NamedTuple):
    """Two origins with different records under the same identifiers."""

    first: int
    second: int
    identifiers: int
    example: str


class Grant(NamedTuple):
    """That an origin is shown at an endpoint (`path`) to the requesters that a `key` stands for."""

    id: int
    path: str
    origin: int
    key: str
    shows: str  # `ALL` of the origin; a description of the sets that are shown; empty: it is closed
    base: int  # the last change before it was opened; `UNCHANGED` if it was never anything else
    followed: int  # the last change of records that it was brought up to


ALL: Final = "*"
UNCHANGED: Final = -1
Takes = Callable[[Sequence[str]], bool]  # whether a grant shows a record of these sets


class DocumentState(NamedTuple):
    """What is known of the document of a record that came without an index part."""

    origin: int
    identifier: str
    state: str  # "waiting"; "read": the record's vector is the document's; "none"
    reason: str  # why there is none
    note: str  # the same for people, with the address that it is about
    way: str  # how the document was found
    host: str  # that is asked first
    priority: int  # 0: new; 1: changed; 2: to be tried or looked at again
    due: int | None
    attempts: int  # in a row that brought no answer
    seq: int  # the place of the record's metadata in the change feed when this was last decided
    policy: str  # digest of the policy by which it was analysed
    files: str  # JSON: address, validators, digest, type and size of each file that was read
    requests: int
    bytes: int
    at: int  # the last attempt; 0: none yet


class DocumentCount(NamedTuple):
    """How many records of a source stand alike, and what they took."""

    state: str
    reason: str
    way: str
    records: int
    requests: int
    bytes: int


class GrantMode(Enum):
    OPEN = "open"
    CLOSED = "closed"  # what it has shown is deleted
    REPLACED = "replaced"  # another shows its origin; what was deleted before that is still told


class GrantView(NamedTuple):
    """What a list takes from a grant. `base`: of the grant that is open."""

    id: int
    origin: int
    base: int
    mode: GrantMode


# Reading: parts of a snapshot


class ChangeFeed(Protocol):
    """Every change has a number, `seq`; the order of numbers is the order of commits."""

    def changes(
        self, after: int = 0, limit: int = NO_LIMIT, *, parts: Iterable[str] = PARTS
    ) -> Iterator[Stored]:
        """Every record whose last change comes after `after`, in the order of changes, deleted ones too."""

    def last_seq(self) -> int:
        """The seq of the newest change; 0 for an empty store."""


class RecordLists(Protocol):
    """Lists in feed order, read in pages: the next page starts after the seq of the last record.

    With `metadata_only` a list tells of metadata: seq and datestamp of each record are those of the last
    change that its metadata took part in. A change of the index part alone moves nothing there.

    Origins that `grants` show come beside `origins`, each record where its grant places it.
    """

    def page(
        self,
        limit: int,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
        parts: Iterable[str] = PARTS,
        metadata_only: bool = False,
        grants: Sequence[GrantView] = (),
        identifier: str | None = None,
    ) -> list[Stored]:
        """The next records of a list. Datestamps in seconds, both bounds inclusive. `identifier`: of this
        one only.

        Of the heavy columns only those in `parts` are read; the others come empty. Metadata stand in for raw
        ones, and for a vector, where there is none.
        """

    def headers(
        self,
        limit: int,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
        metadata_only: bool = False,
        grants: Sequence[GrantView] = (),
    ) -> list[tuple[int, str, int, int, str]]:
        """(seq, identifier, datestamp, deleted, sets) of the records that `page` would give."""

    def originals(
        self,
        limit: int,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
        metadata_only: bool = False,
        grants: Sequence[GrantView] = (),
    ) -> Iterator[tuple[int, str, int, str, bytes | None]]:
        """(seq, identifier, datestamp, sets, raw metadata or None if deleted) of the records that `page`
        would give, one after another.
        """

    def count(
        self,
        *,
        after: int = 0,
        since: int | None = None,
        until: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
        metadata_only: bool = False,
        grants: Sequence[GrantView] = (),
    ) -> int:
        """How many records such a list has."""

    def newest(
        self,
        limit: int,
        *,
        before: int | None = None,
        set_spec: str | None = None,
        origins: Iterable[int] | None = None,
    ) -> list[Stored]:
        """The latest changes of metadata, newest first, from below a seq, deleted records among them: what a
        feed shows."""

    def latest_ids(
        self, limit: int, *, before: int | None = None, origins: Iterable[int] | None = None
    ) -> list[tuple[int, int]]:
        """(id, seq) of the latest changes of metadata that left a live record, newest first, from below a
        seq."""

    def addresses(
        self, limit: int, *, after: int = 0, origins: Iterable[int] | None = None
    ) -> list[tuple[int, int, str | None]]:
        """(seq, datestamp, URL) of live records in a list of metadata; None where a record has no URL."""


class RecordLookup(Protocol):
    def get(
        self, identifier: str, origins: Sequence[int] | None = None, *, metadata_only: bool = False
    ) -> Stored | None:
        """The record of that identifier; the most recently changed where several origins have one.

        `metadata_only`: with seq and datestamp of its metadata (see `RecordLists`).
        """

    def live(self, origin: int, identifiers: Sequence[str]) -> set[str]:
        """Those of the identifiers of which an origin has a record that is not deleted."""

    def by_id(
        self, ids: Sequence[int], *, parts: Iterable[str] = PARTS, metadata_only: bool = False
    ) -> dict[int, Stored]:
        """Records by their numbers; those that are not there are left out. `parts`: as for `page`;
        `metadata_only`: as for `get`.
        """

    def same_resource(self, stored: Stored) -> list[Stored]:
        """The other live records that stand for a record's resource (see `Stored.resource`).

        What several records of one origin share (the address of their repository, say) tells no resource.
        """

    def identifiers(self, origin: int, *, live: bool = True) -> Iterator[str]: ...

    def shared_identifiers(self) -> list[Shared]:
        """Pairs of origins that have live records of the same identifiers, unless these are one resource."""

    def documents(self, origin: int, identifier: str) -> list[str]:
        """The live records of one resource: its own, and those of its documents (`identifier;key`)."""

    def withdrawn(self, origin: int, limit: int) -> list[tuple[str, int]]:
        """(identifier, datestamp) of an origin's latest deletions, newest first."""


class RecordCounts(Protocol):
    def totals(self) -> dict[int, tuple[int, int]]:
        """For each origin: live records, deleted records."""

    def stored_bytes(self, origin: int) -> int:
        """What the records and failures of an origin take, less what the database adds."""

    def datestamps(self) -> tuple[int, int] | None:
        """The earliest and the latest datestamp; None for an empty store."""

    def latest(self, origins: Iterable[int] | None = None) -> int | None:
        """The datestamp of the newest change of metadata, in these origins or in all; None for no record."""

    def failure_counts(self) -> dict[int, int]: ...


class SetList(Protocol):
    def sets(self, origins: Iterable[int] | None = None) -> list[tuple[str, str]]:
        """(setSpec, name) of every set, in order of setSpec."""

    def set_names(self, origins: Iterable[int] | None = None) -> list[tuple[int, str, str]]:
        """(origin, setSpec, name) of every set that has a name."""


class Journal(Protocol):
    def origins(self, kind: str | None = None) -> list[Origin]: ...

    def origin(self, kind: str, name: str) -> Origin | None: ...

    def state(self, origin: int) -> JsonObject: ...

    def runs(self, origin: int | None = None, limit: int = 50, outcome: str | None = None) -> list[RunEntry]:
        """The journal, newest first: all of it, or the runs of one origin or with one outcome."""

    def recent_runs(self, origins: Sequence[int], limit: int) -> dict[int, list[RunEntry]]:
        """The last `limit` runs of each origin, newest first; origins without runs are left out."""

    def failures(self, origin: int | None = None) -> Iterator[StoredFailure]:
        """In the order of origin, place and stage."""

    def open_failures(self, origin: int) -> Iterator[OpenFailure]:
        """The failures of an origin, those due first at the beginning; one entry a place."""


class CrawledFiles(Protocol):
    def files(self, origin: int) -> Iterator[FileState]:
        """Every file that the crawler knows, in order of path."""

    def file(self, origin: int, path: str) -> FileState | None:
        """One file as the crawler knows it."""


class WaitingList(Protocol):
    """What waits for an operator."""

    def withheld(self, origin: int, identifiers: Sequence[str] | None = None) -> list[Withheld]:
        """The deletions of an origin's records that are withheld: all, or those of some identifiers."""

    def withheld_counts(self) -> dict[int, tuple[int, int]]:
        """For each origin that has any: deletions that wait, deletions of records that are to be kept."""

    def alerts(self, *, acknowledged: bool = False) -> list[StoredAlert]:
        """Oldest first; those that somebody has acknowledged only if asked for."""


class DocumentQueue(Protocol):
    """The documents of records: which were read, which wait, and why others cannot be had."""

    def document_states(self, origin: int, identifiers: Sequence[str]) -> dict[str, DocumentState]:
        """What is known of the documents of these records, by identifier."""

    def due_documents(
        self, origin: int, now: int, limit: int, without_hosts: Sequence[str] = ()
    ) -> list[DocumentState]:
        """The next documents of an origin that are due, by priority, then longest due first."""

    def next_document_due(self, origin: int) -> int | None:
        """When the next document of an origin is due."""

    def document_counts(self, origin: int) -> list[DocumentCount]: ...


class GrantList(Protocol):
    def grants(self, path: str) -> list[Grant]:
        """The grants at an endpoint of origins of which any grant has changed, or is for some sets only."""

    def all_grants(self, path: str) -> list[Grant]: ...

    def granted_places(self, seqs: Sequence[int]) -> set[int]:
        """Those of the places in lists that grants gave."""


class TableReader(Protocol):
    def select(self, table: KeptTable[R], **equal: int | str) -> list[R]:
        """The rows of a table, in the order of its key; those whose columns equal these values."""


class Meta(Protocol):
    def meta(self, key: str) -> Any:
        """A single value (a number, text or bytes) that was kept under a key; None if none was."""


class View(
    ChangeFeed, RecordLists, RecordLookup, RecordCounts, SetList, Journal, CrawledFiles, WaitingList,
    DocumentQueue, GrantList, TableReader, Meta, Protocol,
):  # fmt: skip
    """A snapshot: what was committed when it was taken, and nothing later."""


# Writing: parts of a transaction


class RecordWriter(Protocol):
    def put(self, origin: int, records: Iterable[Record | Packed]) -> int:
        """How many of the records were new or different; the others were left as they are.

        Where an identifier comes more than once, the last record stands.
        """

    def put_dated(self, records: Sequence[tuple[int, int, Record | Packed]]) -> int:
        """Put (origin, datestamp in seconds, record); how many records were new or different.

        A datestamp is kept if nothing later was given out: no record has a later one, and no list was
        answered since (`Store.note_answer`) which ought to have shown it. The other records get the time of
        the commit. So lists stay in the order of datestamps, and no harvester misses one.
        """

    def delete(self, origin: int, identifiers: Iterable[str]) -> int:
        """Turn records into deleted ones, which persist and keep their sets; how many there were."""

    def forget(self, origin: int) -> int:
        """Delete all records of an origin (as deletions that persist), its files and failures."""

    def name_set(self, origin: int, spec: str, name: str) -> None: ...

    def sweep(self) -> None:
        """Drop memberships of states that records have left."""


class JournalWriter(Protocol):
    def origin(self, kind: str, name: str, settings: JsonMapping | None = None) -> int:
        """The number of an origin, entered if new; its settings are brought up to date."""

    def rename_origin(self, kind: str, name: str, wanted: str) -> bool:
        """Give an origin another name; false, and nothing is done, if one has that name already."""

    def state(self, origin: int, state: JsonMapping) -> None: ...

    def start_run(self, origin: int, kind: str) -> int: ...

    def note_run(self, run: int, detail: JsonMapping, outcome: str = "running") -> None:
        """Record a run's progress; any outcome other than "running" ends it."""

    def drop_run(self, run: int) -> None: ...


class FailureWriter(Protocol):
    def fail(
        self, origin: int, failure: Failure, *, due: int | None = None, new_attempt: bool = True
    ) -> None:
        """Enter a failure, or one more attempt at what has failed before; `due`: when to retry.

        The time of the first failure stays, and so do the bytes of an attempt that brought some. What is due
        is one entry, whatever the stage at which it failed last.
        """

    def forgive(self, origin: int, places: Iterable[str]) -> None:
        """Drop the failures at these places: what failed there has succeeded, or has gone."""

    def forget_failures(self, origin: int, before: int) -> None:
        """Drop the failures of an origin that have not occurred again since then."""


class FileWriter(Protocol):
    def put_files(self, origin: int, files: Iterable[FileState]) -> None: ...

    def drop_files(self, origin: int, paths: Iterable[str]) -> None: ...


class WaitingListWriter(Protocol):
    def withhold(self, origin: int, deletions: Mapping[str, JsonMapping]) -> None:
        """Make deletions wait, by identifier; whether the record is to be kept stays as decided."""

    def drop_withheld(self, origin: int, identifiers: Iterable[str]) -> None:
        """These deletions no longer wait: they were carried out, or the records came back."""

    def keep_withheld(self, origin: int, by: str) -> None:
        """An operator keeps all records of an origin whose deletions wait."""

    def alert(self, kind: str, source: str, record: str, reason: str, remedy: str) -> None:
        """Raise an alert, or say it again; with another reason it is open again though acknowledged."""

    def resolve_alerts(self, kind: str, source: str, records: Iterable[str]) -> None:
        """Drop alerts whose cause has gone."""

    def acknowledge(self, alert: int, by: str) -> bool:
        """Somebody has seen to it; false if there is no such open alert."""


class DocumentWriter(Protocol):
    def put_documents(self, documents: Iterable[DocumentState]) -> None: ...

    def drop_documents(self, origin: int, identifiers: Iterable[str] | None = None) -> None:
        """Forget what is known of the documents of these records, or of all of an origin."""

    def replace_vectors(self, origin: int, vectors: Mapping[str, TermVector | None]) -> int:
        """Give live records another index part, or none; the remaining parts stay as they are now.

        How many records were different.
        """

    def keep_vectors(
        self, origin: int, records: Sequence[Record | Packed], policy: str
    ) -> Sequence[Record | Packed]:
        """Records with the vector of their document where one was read under this policy: what is harvested
        again must not undo what was fetched.
        """


class GrantWriter(Protocol):
    """`takes` is None where a grant shows all of its origin, or nothing."""

    def all_grants(self, path: str) -> list[Grant]: ...

    def new_grant(self, path: str, origin: int, key: str, shows: str, takes: Takes | None) -> None:
        """Enter a grant that was in force before anybody asked: nobody has to be told of its records."""

    def open_grant(self, path: str, origin: int, key: str, shows: str, takes: Takes | None) -> None:
        """Enter a grant of an origin that this key did not open so far: its records appear."""

    def change_grant(self, grant: Grant, shows: str, takes: Takes | None) -> None:
        """Open, close, widen or narrow a grant: records appear in it, or leave it as deleted ones."""

    def follow_grant(self, grant: Grant, takes: Takes) -> None:
        """Bring a grant for some sets up to the records that have changed: they may have left these sets."""


class TableWriter(TableReader, Protocol):
    def upsert(self, table: KeptTable[R], rows: Iterable[R]) -> None:
        """Enter rows; they replace those of the same key."""

    def count_up(self, name: str) -> None:
        """Add 1 to a counter (`COUNTERS`)."""

    def remove(self, table: KeptTable[R], **equal: int | str) -> None:
        """Remove the rows whose columns equal these values."""


class MetaWriter(Protocol):
    def meta(self, key: str, value: float | str | bytes) -> None: ...

    def meta_value(self, key: str, default: Any) -> Any: ...

    def meta_default(self, key: str, value: bytes) -> bytes:
        """The value that a key has; the given one if it had none."""


class Transaction(
    RecordWriter,
    JournalWriter,
    FailureWriter,
    FileWriter,
    WaitingListWriter,
    DocumentWriter,
    GrantWriter,
    TableWriter,
    MetaWriter,
    Protocol,
):
    """All of it becomes visible at once, or none of it. One transaction writes at a time.

    Datestamps are those of the second in which the transaction became visible, and never decrease with seq.
    They are never earlier than an answer that did not show the transaction, also after a clock was set back.
    Of a record whose index part alone is another one, the metadata keeps its seq and datestamp.
    """

    def become_only_writer(self) -> None:
        """Return once no other transaction writes: what is read from here on stays true until the commit.

        Every other method that writes does this first.
        """


# The store


class Readable(Protocol):
    def read(self) -> AbstractContextManager[View]:
        """A snapshot for as long as the block lasts."""


class Writable(Protocol):
    def write(self) -> AbstractContextManager[Transaction]:
        """A transaction: committed at the end of the block, undone if the block raises."""


class JobLocks(Protocol):
    def job(self, name: str) -> AbstractContextManager[None]:
        """The store's only permit for a kind of job: StoreError if another has it.

        It ends with the block, or with the process, however that ends.
        """

    def busy(self, name: str) -> bool:
        """Whether somebody has that permit now."""


class Secrets(Protocol):
    def secret(self, name: str) -> bytes:
        """A random key that is made once and kept: what resumption tokens and sessions are signed with."""


class StoreUpkeep(Protocol):
    @property
    def location(self) -> str:
        """Where the store is, for people: a file, or an address without its password."""

    def size(self) -> int:
        """Bytes that it occupies."""

    def check(self) -> list[str]:
        """What its own integrity check finds wrong; nothing if all is well."""

    def back_up(self, path: Path) -> None:
        """Write all that is committed now to a file, while others write on.

        StoreError that names the tool to use where a database has one of its own for that.
        """


class Store(Readable, Writable, JobLocks, Secrets, StoreUpkeep, Protocol):
    """The system of record. Open one with `open_store`."""

    writable: bool  # whether this process may write
    local_folder: Path  # where this machine keeps what is derived from the store: index, scratch, usage
    shared: bool  # whether several machines may use it

    def now(self) -> float:
        """The time by the clock that datestamps are given by, in seconds since 1970."""

    def note_answer(self, second: int) -> None:
        """Remember that a list is answered in this second. To be called before the list's snapshot is taken:
        no later commit is dated earlier. Where this process may not write, nothing is remembered."""

    def last_answer(self) -> int:
        """The last second that `note_answer` remembers; 0 if there is none."""

    @property
    def url(self) -> str:
        """What `open_store` opens the same store by. It may hold a password."""

    @staticmethod
    def open(
        url: Path | str, *, create: bool = True, clock: Clock | None = None, local_folder: Path | None = None
    ) -> Store:
        """`indlet.store.open_store`."""
        from indlet.store import open_store

        return open_store(url, create=create, clock=clock, local_folder=local_folder)

    def epoch(self) -> str:
        """Names the store and its history: another one once the store went back to an earlier state."""

    def settle(self) -> None:
        """Does now, while there is time for it, what closing would have to do."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class OpenStore(Protocol):
    """Opens a kind of store by its URL."""

    def __call__(
        self, url: Path | str, *, create: bool, clock: Clock | None, local_folder: Path | None
    ) -> Store: ...
