"""Small typed tables: what a node remembers besides records, one row at a time.

A table is declared once, by the `NamedTuple` of its rows. SQLite and PostgreSQL make it from that; a snapshot
reads it with `select`, a transaction changes it with `upsert` and `remove`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_type_hints

R = TypeVar("R", bound="tuple[Any, ...]")
# Bytes of a text in a key. A row of a PostgreSQL index takes 2,704 bytes; longer ones fit only
# if they happen to compress well.
LONGEST_KEY: Final = 2600


@dataclass(frozen=True)
class KeptTable(Generic[R]):
    name: str
    row: type[R]
    key: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(get_type_hints(self.row))

    def definition(self, types: Mapping[type, str]) -> str:
        """The statement that makes the table, by the database's names of types."""
        columns = [f"{name} {types[kind]} NOT NULL" for name, kind in get_type_hints(self.row).items()]
        return f"CREATE TABLE {self.name} ({', '.join(columns)}, PRIMARY KEY ({', '.join(self.key)}))"


class Counter(NamedTuple):
    name: str
    value: int


class LeftOut(NamedTuple):
    """A file that the last crawl of an origin left out."""

    origin: int
    number: int
    path: str
    reason: str


class WithdrawnMark(NamedTuple):
    """A record that its originator has marked as deleted, though the file that holds it is still there."""

    origin: int
    identifier: str
    marked_by: str
    at: str
    path: str


class EchoClaim(NamedTuple):
    """A record of an export that names another repository's identifier, which no source has brought yet."""

    origin: int
    identifier: str
    claim: str


class WrittenEcho(NamedTuple):
    """A record that was written for a catalogue in a format without a place for its identifier."""

    digest: str  # of its metadata
    identifier: str


class Credentials(NamedTuple):
    """User and password of a source. `server`: what they were given for; empty: not known."""

    origin: int
    username: str
    password: str
    server: str


class PublicHost(NamedTuple):
    """A host that has had a public address."""

    host: str


class SourceDecision(NamedTuple):
    """What was decided of a source outside the settings file; `detail` is JSON."""

    kind: str  # "added", "paused" or "changed"
    name: str
    detail: str


class StoredSearch(NamedTuple):
    id: str
    email: str
    query: str
    filters: str  # JSON
    page: str
    every: str
    language: str
    created: float
    confirmed: int
    sent: float
    seq: int


class StoredAct(NamedTuple):
    """What somebody did at the desk."""

    number: int
    at: float
    account: str
    role: str
    client: str
    act: str
    what: str
    outcome: str


class EndedSession(NamedTuple):
    session: str
    until: float


class JobEnd(NamedTuple):
    job: str
    ended: float
    error: str
    worker: str
    said: str


class StoredRequest(NamedTuple):
    """A job that was requested at a desk. `records`: a JSON list of identifiers."""

    job: str
    asked: float
    whole: int
    records: str


# The last second in which a list was answered: not copied, for it changes while a copy is made.
ANSWERED: Final = KeptTable("answered", Counter, ("name",))
COUNTERS: Final = KeptTable("counters", Counter, ("name",))
LEFT_OUT: Final = KeptTable("left_out", LeftOut, ("origin", "number"))
WITHDRAWN: Final = KeptTable("withdrawn_marks", WithdrawnMark, ("origin", "identifier"))
ECHO_CLAIMS: Final = KeptTable("echo_claims", EchoClaim, ("origin", "identifier"))
WRITTEN_ECHOES: Final = KeptTable("written_echoes", WrittenEcho, ("digest",))
CREDENTIALS: Final = KeptTable("credentials", Credentials, ("origin",))
PUBLIC_HOSTS: Final = KeptTable("public_hosts", PublicHost, ("host",))
SOURCE_DECISIONS: Final = KeptTable("source_decisions", SourceDecision, ("kind", "name"))
SAVED_SEARCHES: Final = KeptTable("saved_searches", StoredSearch, ("id",))
DESK_LOG: Final = KeptTable("desk_log", StoredAct, ("number",))
ENDED_SESSIONS: Final = KeptTable("ended_sessions", EndedSession, ("session",))
JOB_ENDS: Final = KeptTable("job_ends", JobEnd, ("job",))
JOB_REQUESTS: Final = KeptTable("job_requests", StoredRequest, ("job",))

KEPT_TABLES: Final[tuple[KeptTable[Any], ...]] = (
    COUNTERS, LEFT_OUT, WITHDRAWN, ECHO_CLAIMS, WRITTEN_ECHOES, CREDENTIALS, PUBLIC_HOSTS, SOURCE_DECISIONS,
    SAVED_SEARCHES, DESK_LOG, ENDED_SESSIONS, JOB_ENDS, JOB_REQUESTS,
)  # fmt: skip
