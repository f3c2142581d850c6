"""How far a run has come, what may happen to it, what it may do: the values that decisions are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

Trouble = Literal[
    "unreachable",  # no connection
    "silent",  # no connection, no byte, or next to none for too long
    "interrupted",  # reset or cut off
    "later",  # 429 or 503: the remote asks for time
    "broken",  # another 5xx, or a body that cannot be used
    "large",  # more than we take: the same again would be no smaller
    "unsuitable",  # 400, 413, 414, 422: not like this
    "refused",  # 401, 403, 404 …
    "token",  # badResumptionToken
    "argument",  # badArgument
    "nothing",  # noRecordsMatch
    "fatal",  # another OAI-PMH error
]

# Troubles that may be over when the same is asked again.
PASSING: Final = ("unreachable", "silent", "interrupted", "later", "broken")
# Ways to refuse a token. Some walls between us and a source take offence at them.
TOKENS: Final = ("token", "argument", "unsuitable", "refused")


@dataclass(frozen=True, slots=True)
class Rules:
    """The part of the settings that decisions depend on."""

    retries: int = 6
    backoff_seconds: float = 0.5
    backoff_limit_seconds: float = 300.0
    retry_after_limit_seconds: float = 600.0
    pages: int = 1_000_000

    def pause(self, attempt: int, retry_after: float | None) -> float:
        """The seconds to wait before a request is made again."""
        if retry_after is not None:
            return max(0.0, retry_after)
        return min(self.backoff_limit_seconds, self.backoff_seconds * 2.0 ** (attempt - 1))


@dataclass(frozen=True, slots=True)
class Window:
    """Datestamps from `since` to `until`, both inclusive and in the source's granularity; empty: open."""

    since: str = ""
    until: str = ""

    def __str__(self) -> str:
        return f"{self.since or 'the beginning'} to {self.until or 'now'}"


@dataclass(frozen=True, slots=True)
class Course:
    """How far a run has come. JSON-ready, kept with the records that brought it here."""

    windows: tuple[Window, ...] = (Window(),)
    phase: Literal["list", "check", "probe"] = "list"
    token: str = ""
    spelling: int = 0  # which way of writing the token into a URL is tried
    attempt: int = 0  # failures of the next request so far
    restarts: int = 0  # of this window, because its token was not accepted
    pages: int = 0  # of this window's list
    listed: int = 0  # records on distinct pages of this window
    size: int | None = None  # what the source says this list holds
    stale: int = 0  # pages in a row that had been seen before
    empty: int = 0  # pages in a row without a record
    ordered: bool = True  # datestamps have never fallen so far
    newest: str = ""
    at_newest: int = 0  # records with that datestamp so far
    owed: int = 0  # records that must still come in a window begun again at its newest datestamp …
    whole: str = ""  # … and where it began at first
    full_page: int = 0  # the most records on one page
    first_response: str = ""
    splits: int = 0  # windows split, less windows done since
    parted: bool = False  # windows were changed: those that are left are not what was asked for at first
    fruitless: int = 0  # lists and checks in a row that brought no answer
    barren: int = 0  # the same, where answers that there is nothing do not count as fruit
    probes: tuple[Window, ...] = ()  # the parts of this window that are listed to test its size …
    probing: int = 0  # … which of them …
    revealed: int = 0  # … and what they name that the whole list does not
    middle: str = ""  # a datestamp in the midst of the list; empty if it has none …
    alike: bool = False  # … or all have this one
    again: bool = False  # a page behind a token was asked for once more …
    constant: bool = False  # … and the source has but one token, and minds itself how far it is
    odd: str = ""  # how the list ended, if not in due form: its last token brought "nothing", was "refused"
    capped: bool = False  # parts were found to name more than the whole: its lists end early
    size_lies: bool = False  # parts were found to name no more than the whole: its sizes are wrong
    unconfirmed: int = 0  # lists short of their size that could not be tested in parts
    unbounded: bool = False  # the source ignores `until`: splitting is useless
    gaps: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Course:
        known = {k: v for k, v in data.items() if k in cls.__slots__}
        known["windows"] = tuple(Window(**w) for w in known.get("windows", ()))
        known["probes"] = tuple(Window(**w) for w in known.get("probes", ()))
        known["gaps"] = tuple(known.get("gaps", ()))
        return cls(**known)


# Events


@dataclass(frozen=True, slots=True)
class Listed:
    """A page has come."""

    records: int
    token: str | None = None
    size: int | None = None
    seen: bool = False  # the same page came before in this list
    response_date: str = ""
    lowest: str = ""
    highest: str = ""
    ordered: bool = True
    at_highest: int = 1  # how many have the highest datestamp
    new: int = 0  # identifiers that the whole list did not have, in a probe
    # At the end of a list: records on distinct pages that came more than once, and what else makes the list
    # doubtful. One that came in two versions means that the list changed under way, and what moved up in it
    # may have been passed over.
    repeats: int = 0
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """A request brought no page."""

    trouble: Trouble
    reason: str = ""
    retry_after: float | None = None
    spellings: int = 1  # in how many ways the token that was sent can be written
    response_date: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """The window's identifiers were compared with what is held: so many are missing.

    `middle` is a datestamp that some of them are before, and some not, unless all are `alike`; empty if they
    cannot be relied on.
    """

    missing: int
    middle: str = ""
    alike: bool = False


# Actions


@dataclass(frozen=True, slots=True)
class Ask:
    """Request the next page, after a pause."""

    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Compare:
    """The check's list has ended: say how many of its identifiers are missing."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Get the missing records one by one; then the window is done."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The run ends here. An incomplete one keeps what it got, and resumes where `course` stands."""

    complete: bool
    reason: str = ""
    resumable: bool = False


Event = Listed | Failed | Checked
Action = Ask | Compare | Fetch | Stop


@dataclass(frozen=True, slots=True)
class Source:
    """What is known of the source that bears on decisions."""

    earliest: str = ""
    seconds: bool = True  # granularity
