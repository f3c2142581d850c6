"""Who may see records about which the settings alone do not decide: the seam for extensions that ask others.

Rules of access (`access.py`) and virtual repositories (`scope.py`) choose origins. A filter chooses among the
records of its own origins, for one requester and one snapshot of the store, and may offer formats for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from indlet.extension import extensions
from indlet.model import Stored
from indlet.settings import Settings
from indlet.store import Origin, View

# An address of documentation (RFC 5737) that nobody has: rules for addresses treat it as a stranger's.
STRANGER: Final = "192.0.2.1"


class Requester(NamedTuple):
    """Who asks, in the header fields that a filter passes on."""

    headers: tuple[tuple[str, str], ...] = (("X-Forwarded-For", STRANGER),)
    client: str = ""  # whose slots its requests take; not passed on

    @property
    def digest(self) -> str:
        """Of the credentials that were given; empty if none were. An address may change on the way."""
        given = [pair for pair in self.headers if pair[0] != "X-Forwarded-For"]
        return blake2b(repr(given).encode(), digest_size=6).hexdigest() if given else ""

    def elsewhere(self) -> Requester:
        """The same credentials at a stranger's address."""
        given = tuple(pair for pair in self.headers if pair[0] != "X-Forwarded-For")
        return self._replace(headers=(*ANYBODY.headers, *given))

    @property
    def is_stranger(self) -> bool:
        return self.headers == ANYBODY.headers


ANYBODY: Final = Requester()


class NamedRecord(NamedTuple):
    """A record that a response would name. `guarded`: it is of an origin that is not for everybody."""

    identifier: str
    deleted: bool
    guarded: bool = False


class VisibleRecords(Protocol):
    """What one requester sees in one snapshot of the store."""

    public: list[int]  # origins that everybody may see
    guarded: list[int]  # origins of which this requester may see some records
    stopped_after: int | None  # the place in a list where the filter ended it early

    @property
    def origins(self) -> list[int]: ...

    @property
    def exhausted(self) -> bool:
        """Whether this response has cost as much as it may."""

    @property
    def is_exact(self) -> bool:
        """Whether the number of public records is the same for everybody."""

    def renew(self) -> None:
        """Allow the response to go on: it has nothing to show yet."""

    def shows(self, records: Sequence[NamedRecord]) -> list[bool]:
        """Whether each of the records is shown."""

    def guarded_places(self, limit: int, **window: object) -> set[int]:
        """The places in a list that hold guarded records, as far as its next `limit` records go."""

    def sets(self, after: str = "") -> Iterator[tuple[str, str]]:
        """(setSpec, name) of the sets that the requester may know of, in order, from behind a setSpec."""

    def as_shown(self, stored: Stored) -> Stored:
        """A record as this requester gets it."""

    def write(self, prefix: str, stored: Stored) -> list[bytes]:
        """The pieces of a record's metadata in a format of the filter's own."""


class RecordFilter(Protocol):
    @property
    def credentials(self) -> frozenset[str]:
        """The names of header fields, in lower case, by which requesters identify themselves."""

    @property
    def formats(self) -> Mapping[str, tuple[str, str]]:
        """Metadata formats that only its records have: schema and namespace by prefix."""

    def origins(self, view: View) -> set[int]:
        """The origins about whose records it decides."""

    def has_formats(self, stored: Stored) -> bool:
        """Whether a live record can be had in the filter's own formats."""

    def visible(
        self, view: View, requester: Requester, public: list[int], includes: Callable[[Origin], bool]
    ) -> VisibleRecords:
        """What a requester sees, besides the `public` origins. `includes`: whether the repository that is
        asked includes an origin."""


def record_filter(settings: Settings, clock: Callable[[], float]) -> RecordFilter | None:
    """The filter that the settings call for; None where these alone decide who sees what."""
    found = [made for one in extensions() if (made := one.record_filter(settings, clock)) is not None]
    assert len(found) <= 1, "one filter decides about a record"
    return found[0] if found else None
