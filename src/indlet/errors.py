"""Every error of ours, by what its reader can do about it.

IndletError
├── SettingsError        correct the settings file or the command line
├── MissingExtra         install the named extra
├── StoreError           repair, migrate or unlock the store
│   ├── StoreUnavailable the store does not answer now: try again, or start its server
│   ├── StoreFull        the disk has no room: make some
│   ├── IndexBusy        another process is writing the index: let it
│   └── IndexDamaged     the index is derived: rebuild it
├── RemoteError          retry, or talk to the remote's operator
│   ├── Unreachable      no answer, or an answer that says "later"
│   ├── Refused          an answer that says "no" (403, 401, 404 …)
│   └── BadResponse      an answer that cannot be used
├── HierarchyError       a storage tree cannot be reached or read
├── ExtractionError      a file yields no document; becomes a Failure
│   └── LimitExceeded    it would cost more than the settings allow
├── QueryError           correct the query; knows the place of the fault
├── UnknownRecord        ask for a record that is here
│   └── AmbiguousRecord  several sources have one of that identifier: name the source
└── ProtocolError        an OAI-PMH error condition, with its wire code
    ├── BadVerb, BadArgument, BadResumptionToken, CannotDisseminateFormat, IdDoesNotExist
    └── NoRecordsMatch, NoIndexFormats, NoSetHierarchy
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class IndletError(Exception):
    """The root. A message names the thing, the problem and the remedy."""


class SettingsError(IndletError):
    pass


class MissingExtra(IndletError):
    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional part: install it with  pip install 'indlet[{extra}]'")


class StoreError(IndletError):
    pass


class StoreUnavailable(StoreError):
    pass


class StoreFull(StoreError):
    pass


class IndexBusy(StoreError):
    pass


class IndexDamaged(StoreError):
    pass


class RemoteError(IndletError):
    pass


class Unreachable(RemoteError):
    pass


class Refused(RemoteError):
    pass


class BadResponse(RemoteError):
    pass


class HierarchyError(IndletError):
    pass


class ExtractionError(IndletError):
    pass


class LimitExceeded(ExtractionError):
    pass


class QueryError(IndletError):
    """A query that cannot be understood; `position` counts characters from 0."""

    def __init__(self, problem: str, query: str, position: int) -> None:
        super().__init__(f"{problem}\n  {query}\n  {' ' * position}^")
        self.problem = problem
        self.query = query
        self.position = position


class UnknownRecord(IndletError):
    pass


class AmbiguousRecord(UnknownRecord):
    """Several sources have different records under one identifier: say whose is meant."""

    def __init__(self, identifier: str, sources: Sequence[str]) -> None:
        names = ", ".join(sources)
        super().__init__(f"record {identifier!r} is in several sources ({names}); say in which with source")
        self.sources = tuple(sources)


class ProtocolError(IndletError):
    code: ClassVar[str]


class BadVerb(ProtocolError):
    code = "badVerb"


class BadArgument(ProtocolError):
    code = "badArgument"


class BadResumptionToken(ProtocolError):
    code = "badResumptionToken"


class CannotDisseminateFormat(ProtocolError):
    code = "cannotDisseminateFormat"


class IdDoesNotExist(ProtocolError):
    code = "idDoesNotExist"


class NoRecordsMatch(ProtocolError):
    code = "noRecordsMatch"


class NoIndexFormats(ProtocolError):
    code = "noIndexFormats"


class NoSetHierarchy(ProtocolError):
    code = "noSetHierarchy"
