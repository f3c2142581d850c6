"""The states of a run, the events that change them, the actions that follow: what decisions are made of.

A run *lists* records, *checks* a list against the identifiers, or *probes* a list in parts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final, Literal

from indlet.model import JsonMapping, JsonObject
from indlet.net.trouble import Failed as Failed
from indlet.net.trouble import Trouble as Trouble

Phase = Literal["list", "check", "probe"]
# How a list ended, if not in due form: its last token brought nothing, or was refused.
Ending = Literal["", "nothing", "refused"]

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
        """The seconds to wait before a request is made again: as many as were asked for, if any were."""
        if retry_after is not None and retry_after > 0:
            return retry_after
        return min(self.backoff_limit_seconds, self.backoff_seconds * 2.0 ** (attempt - 1))


@dataclass(frozen=True, slots=True)
class Window:
    """Datestamps from `since` to `until`, both inclusive and in the source's granularity; empty: open."""

    since: str = ""
    until: str = ""

    def __str__(self) -> str:
        return f"{self.since or 'the beginning'} to {self.until or 'now'}"


@dataclass(frozen=True, slots=True)
class Overview:
    """What holds for the whole run, whatever it does at the moment. The first window is the one at hand."""

    windows: tuple[Window, ...] = (Window(),)
    first_response: str = ""
    splits: int = 0  # windows split, less windows done since
    parted: bool = False  # windows were changed: those that are left are not what was asked for at first
    fruitless: int = 0  # lists and checks in a row that brought no answer
    barren: int = 0  # the same, where answers that there is nothing do not count as fruit
    capped: bool = False  # parts were found to name more than the whole: the source's lists end early
    size_lies: bool = False  # parts were found to name no more than the whole: its sizes are wrong
    unconfirmed: int = 0  # lists short of their size that could not be tested in parts
    unbounded: bool = False  # the source ignores `until`: splitting is useless
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where in a list the next request is."""

    token: str = ""
    spelling: int = 0  # which way of writing the token into a URL is tried
    attempt: int = 0  # failures of the next request so far
    pages: int = 0  # that have come
    restarts: int = 0  # of the list, because its token was not accepted

    def turned(self, page: Listed) -> Cursor:
        """Behind a page that has come."""
        return Cursor(page.token or "", pages=self.pages + 1, restarts=self.restarts)


@dataclass(frozen=True, slots=True)
class Tally:
    """What the pages of a list have brought."""

    listed: int = 0  # records on distinct pages
    size: int | None = None  # what the source says the list holds
    stale: int = 0  # pages in a row that had been seen before
    empty: int = 0  # pages in a row without a record
    full_page: int = 0  # the most records on one page
    ordered: bool = True  # datestamps have never fallen so far
    newest: str = ""
    at_newest: int = 0  # records with that datestamp so far
    retried: bool = False  # a page behind a token was asked for once more …
    one_token: bool = False  # … and the source has but one token, and keeps the cursor on its side

    @property
    def short(self) -> bool:
        """Whether fewer have come than the source says there are."""
        return self.size is not None and self.listed < self.size

    @property
    def full(self) -> bool:
        """Whether just as many have come."""
        return bool(self.listed) and self.listed == self.size

    def with_page(self, page: Listed, cursor: Cursor) -> Tally:
        """The same with the page that the request at a cursor brought."""
        at_newest = self.at_newest
        if page.highest >= self.newest:
            at_newest = page.at_highest + (at_newest if page.highest == self.newest else 0)
        return Tally(
            listed=self.listed + (0 if page.seen else page.records) - page.repeats,
            size=max(filter(None, (self.size, page.size)), default=None),
            stale=self.stale + 1 if page.seen and page.records else 0,
            empty=0 if page.records else self.empty + 1,
            full_page=max(self.full_page, page.records),
            ordered=self.ordered and page.ordered and (not page.lowest or page.lowest >= self.newest),
            newest=max(self.newest, page.highest),
            at_newest=at_newest,
            retried=self.retried or bool(cursor.token and cursor.attempt),
            one_token=self.one_token or bool(cursor.token and page.token == cursor.token and not page.seen),
        )


@dataclass(frozen=True, slots=True)
class ListState:
    """The first window's records are being listed."""

    overview: Overview = Overview()
    cursor: Cursor = Cursor()
    tally: Tally = Tally()
    expected: int = 0  # records that must still come in a window begun again at its newest datestamp …
    whole_since: str = ""  # … and where it began at first


@dataclass(frozen=True, slots=True)
class CheckState:
    """The first window's identifiers are being listed, to be compared with what is held."""

    overview: Overview = Overview()
    cursor: Cursor = Cursor()
    tally: Tally = Tally()
    ended: Ending = ""
    middle: str = ""  # a datestamp in the middle of the list; empty if it has none …
    alike: bool = False  # … or all have this one


@dataclass(frozen=True, slots=True)
class ProbeState:
    """The first window's identifiers are being listed in parts, to test whether a list of all was cut."""

    overview: Overview = Overview()
    cursor: Cursor = Cursor()
    parts: tuple[Window, ...] = ()
    number: int = 0  # of the part at hand
    revealed: int = 0  # identifiers that the list of all did not name
    stale: int = 0  # pages in a row that brought nothing new
    ended: Ending = ""  # how the list of all did
    alike: bool = False  # all records have one datestamp


RunState = ListState | CheckState | ProbeState

_KINDS: Final[dict[str, type[RunState]]] = {"list": ListState, "check": CheckState, "probe": ProbeState}
# Where a field of a run's state stood in the version before: all in one table.
_FORMER: Final = {
    "expected": "owed", "whole_since": "whole", "retried": "again", "one_token": "constant", "ended": "odd",
    "parts": "probes", "number": "probing",
}  # fmt: skip


def phase(state: RunState) -> Phase:
    match state:
        case ListState():
            return "list"
        case CheckState():
            return "check"
        case ProbeState():
            return "probe"


def to_json(state: RunState) -> dict[str, object]:
    return {"phase": phase(state), **asdict(state)}


def from_json(data: JsonMapping) -> RunState:
    """The state of a run as this version kept it, or the one before; ValueError if it cannot be read."""
    flat = {**data, **data.get("overview", {}), **data.get("cursor", {}), **data.get("tally", {})}
    try:
        kind = _KINDS[flat.get("phase", "list")]
        found = JsonObject()
        for part, build in (("overview", Overview), ("cursor", Cursor), ("tally", Tally)):
            if part in kind.__slots__:
                found[part] = build(**_chosen(build, flat))
        own = {k: v for k, v in _chosen(kind, flat).items() if k not in ("overview", "cursor", "tally")}
        return kind(**found, **own)
    except (KeyError, TypeError) as e:
        raise ValueError(f"not the state of a run: {e}") from e


def _chosen(kind: type, flat: JsonMapping) -> JsonObject:
    """The values for the fields of a part, in their types."""
    found = JsonObject()
    for name in kind.__slots__:  # type: ignore[attr-defined]
        if (key := name if name in flat else _FORMER.get(name, name)) in flat:
            found[name] = flat[key]
    for name in ("windows", "parts"):
        if name in found:
            found[name] = tuple(Window(**window) for window in found[name])
    if "gaps" in found:
        found["gaps"] = tuple(found["gaps"])
    return found


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
    cut: bool = False  # its parts were found to name more


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
    """The run ends here. An incomplete one keeps what it got, and resumes from its state."""

    complete: bool
    reason: str = ""
    resumable: bool = False


Event = Listed | Failed | Checked
Action = Ask | Compare | Fetch | Stop


@dataclass(frozen=True, slots=True)
class SourceTraits:
    """What is known of the source that bears on decisions."""

    earliest: str = ""
    seconds: bool = True  # granularity
