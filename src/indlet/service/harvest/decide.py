"""What to do next in a harvest: state and event go in, state and action come out. No I/O, no clock.

A harvest is a row of date windows, nearly always one. Each window is listed by ListRecords. Where that fails
for good, the window is *checked*: ListIdentifiers says what should have come, and the few that did not are
fetched one by one. Where that fails too, or too many are missing, the window is split. A window that can be
neither listed, checked nor split is a gap: the run goes on, ends incomplete, and its high-water mark stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from indlet.service.harvest import dates

Trouble = Literal[
    "unreachable",  # no connection
    "silent",  # no connection, no byte, or next to none for too long
    "interrupted",  # reset or cut off
    "later",  # 429 or 503: the remote asks for time
    "broken",  # another 5xx, or a body that cannot be used
    "unsuitable",  # 400, 413, 414, 422: not like this
    "refused",  # 401, 403, 404 …
    "token",  # badResumptionToken
    "argument",  # badArgument
    "nothing",  # noRecordsMatch
    "fatal",  # another OAI-PMH error
]

# Troubles that may be over when the same is asked again.
PASSING: Final = ("unreachable", "silent", "interrupted", "later", "broken")
# Fewer missing records than this are fetched one by one; more, and the window is listed again in two halves.
ONE_BY_ONE: Final = 300
SPLITS: Final = 64
# Lists and checks that failed in a row without a single page between them: the source is not to be had now.
FRUITLESS: Final = 24
# Silence costs its full time each time: a request that meets it is repeated this often at most.
SILENCES: Final = 2
STALE_PAGES: Final = 3
EMPTY_PAGES: Final = 20


@dataclass(frozen=True, slots=True)
class Rules:
    """The part of the settings that decisions depend on."""

    retries: int = 6
    backoff_seconds: float = 0.5
    backoff_limit_seconds: float = 300.0
    retry_after_limit_seconds: float = 600.0
    pages: int = 1_000_000


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
    phase: Literal["list", "check"] = "list"
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
    fruitless: int = 0  # lists and checks in a row that brought not one page
    unbounded: bool = False  # the source ignores `until`: splitting is useless
    gaps: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Course:
        known = {k: v for k, v in data.items() if k in cls.__slots__}
        known["windows"] = tuple(Window(**w) for w in known.get("windows", ()))
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
    """The window's identifiers were compared with what is held: so many are missing."""

    missing: int


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


def step(course: Course, event: Event, source: Source, rules: Rules) -> tuple[Course, Action]:
    """Where the run stands after an event, and what to do next."""
    if not course.windows:
        return _end(course)
    match event:
        case Listed():
            return _listed(course, event, source, rules)
        case Checked(missing):
            if missing > ONE_BY_ONE and (halves := _halves(course, source)):
                return _split(course, halves)
            return course, Fetch()
        case Failed():
            return _failed(course, event, source, rules)


def resume(course: Course) -> tuple[Course, Action]:
    """What to do first, wherever the last run was interrupted."""
    return (course, Ask()) if course.windows else _end(course)


def window_done(course: Course) -> tuple[Course, Action]:
    """The first window is had in full: on to the next."""
    return _advance(replace(course, splits=max(course.splits - 1, 0)))


def arguments(course: Course, selection: Mapping[str, str]) -> dict[str, str]:
    """The OAI-PMH arguments of the next request; `selection` holds the prefixes and the set."""
    verb = "ListRecords" if course.phase == "list" else "ListIdentifiers"
    if course.token:
        return {"verb": verb, "resumptionToken": course.token}
    window = course.windows[0]
    found = {"verb": verb, **selection}
    if window.since:
        found["from"] = window.since
    if window.until:
        found["until"] = window.until
    return found


def _listed(course: Course, page: Listed, source: Source, rules: Rules) -> tuple[Course, Action]:
    window = course.windows[0]
    beyond = bool(window.until and page.highest and dates.day(page.highest) > dates.next_day(window.until))
    sent = course.token
    course = replace(
        course,
        token=page.token or "",
        spelling=0,
        attempt=0,
        pages=course.pages + 1,
        listed=course.listed + (0 if page.seen else page.records),
        size=max(filter(None, (course.size, page.size)), default=None),
        stale=course.stale + 1 if page.seen and page.records else 0,
        empty=0 if page.records else course.empty + 1,
        ordered=course.ordered and page.ordered and (not page.lowest or page.lowest >= course.newest),
        newest=max(course.newest, page.highest),
        at_newest=page.at_highest + (course.at_newest if page.highest == course.newest else 0)
        if page.highest >= course.newest
        else course.at_newest,
        full_page=max(course.full_page, page.records),
        first_response=course.first_response or page.response_date,
        unbounded=course.unbounded or beyond,
        fruitless=0,
    )
    if course.pages == 1 and (page.size or page.records) < course.owed:
        # Fewer than must come: it was not in the order of datestamps after all.
        return _check(replace(course, windows=(replace(window, since=course.whole), *course.windows[1:])))
    if page.token:
        looping = (
            course.stale > STALE_PAGES
            or (page.seen and page.token == sent)
            or course.empty > EMPTY_PAGES
            or course.pages > rules.pages
        )
        if not looping:
            return course, Ask()
        if course.size is not None and course.listed >= course.size:
            return _list_ended(course)  # it goes in circles, but all of it has come
        return _give_up_listing(course, source, "its tokens go in circles")
    short = course.size is not None and course.listed < course.size
    # The last page of a list in pages must carry an empty token (OAI-PMH 2.0, section 3.5). One without, and
    # as full as those before it, looks like a list that was cut between two pages.
    cut = bool(sent) and page.token is None and (short or 0 < page.records == course.full_page)
    if course.phase == "check":
        # Two lists that both end in due form, and short of what they say, have a size that is wrong.
        return _give_up_listing(course, source, "its lists end early") if cut else (course, Compare())
    return _check(course) if short or (cut and course.size is None) else _list_ended(course)


def _list_ended(course: Course) -> tuple[Course, Action]:
    if course.phase == "check":
        return course, Compare()
    return window_done(course)


def _failed(course: Course, event: Failed, source: Source, rules: Rules) -> tuple[Course, Action]:
    trouble = event.trouble
    course = replace(course, first_response=course.first_response or event.response_date)
    if trouble == "nothing":
        course = replace(course, fruitless=0)
        # Within a list it is an odd way to say that the list is over; a check settles whether it is.
        if course.token and course.phase == "list":
            return _check(replace(course, token=""))
        return _list_ended(replace(course, token="", attempt=0))
    if trouble in PASSING:
        return _transient(course, event, source, rules)
    if trouble == "token" or (course.token and trouble in ("argument", "unsuitable")):
        return _token_refused(course, event, source)
    if trouble == "argument" or trouble == "unsuitable":
        return _arguments_refused(course, event, source)
    if course.phase == "check" and trouble == "fatal":
        return _give_up_listing(course, source, event.reason)  # it may not know ListIdentifiers at all
    return course, Stop(False, event.reason)


def _transient(course: Course, event: Failed, source: Source, rules: Rules) -> tuple[Course, Action]:
    attempt = course.attempt + 1
    # In a window that is already the product of trouble, a few attempts tell as much as many.
    plain = not course.splits and course.phase == "list"
    allowed = rules.retries if plain else min(rules.retries, 1 if course.fruitless > 2 else 2)
    if event.trouble == "silent":
        allowed = min(allowed, SILENCES) if plain else 0
    if event.retry_after is not None and event.retry_after > rules.retry_after_limit_seconds:
        reason = f"{event.reason}; it asks to come back in {event.retry_after:.0f} s"
        return replace(course, attempt=0), Stop(False, reason, resumable=True)
    if attempt <= allowed or (event.trouble == "later" and attempt <= rules.retries):
        return replace(course, attempt=attempt), Ask(_pause(attempt, event.retry_after, rules))
    mute = event.trouble == "silent" and course.phase == "check" and not course.pages
    if event.trouble in ("unreachable", "later") or mute:
        return replace(course, attempt=0), Stop(False, event.reason, resumable=True)
    return _give_up_listing(course, source, event.reason)


def _pause(attempt: int, retry_after: float | None, rules: Rules) -> float:
    if retry_after is not None:
        return max(0.0, retry_after)
    return min(rules.backoff_limit_seconds, rules.backoff_seconds * 2.0 ** (attempt - 1))


def _token_refused(course: Course, event: Failed, source: Source) -> tuple[Course, Action]:
    if not course.token:
        return course, Stop(False, event.reason)
    if course.spelling + 1 < event.spellings:
        return replace(course, spelling=course.spelling + 1), Ask()
    if course.restarts >= 2 or (course.restarts == 1 and course.pages <= 1):
        return _give_up_listing(course, source, f"it does not accept its own tokens: {event.reason}")
    window = course.windows[0]
    if course.ordered and course.size and course.newest > window.since and course.phase == "list":
        # So far it came in the order of datestamps. If all of it does, what is missing lies at or after the
        # newest one; the size of that list will tell.
        since = dates.like(course.newest, source.seconds)
        later = _fresh(course, (replace(window, since=since), *course.windows[1:]))
        owed = max(course.size - course.listed, 0) + course.at_newest
        return replace(later, owed=owed, whole=course.whole if course.owed else window.since), Ask()
    return _fresh(course, course.windows, restarts=course.restarts + 1), Ask()


def _arguments_refused(course: Course, event: Failed, source: Source) -> tuple[Course, Action]:
    window = course.windows[0]
    coarse = Window(dates.day(window.since), dates.day(window.until))
    if coarse != window and coarse.since != coarse.until:
        # It promised seconds, and takes days only.
        return replace(_fresh(course, (coarse, *course.windows[1:])), phase=course.phase), Ask()
    if course.splits and (halves := _halves(course, source)):
        return _split(course, halves)  # still too long for it
    if course.phase == "check" or course.splits:
        return _give_up_listing(course, source, event.reason)
    if window.since and not window.until:
        return _fresh(course, (Window("", ""), *course.windows[1:])), Ask()
    if halves := _halves(course, source):
        return _split(course, halves)  # it refuses long lists
    return course, Stop(False, event.reason)


def _give_up_listing(course: Course, source: Source, reason: str) -> tuple[Course, Action]:
    """The list cannot be had: check; where that fails too, split; where that cannot be done, a gap."""
    if course.pages == 0 and not course.token:
        course = replace(course, fruitless=course.fruitless + 1)
        if course.fruitless >= FRUITLESS:
            return course, Stop(False, reason)
    if course.phase == "list":
        return _check(course)
    if halves := _halves(course, source):
        return _split(course, halves)
    gaps = (*course.gaps, f"{course.windows[0]}: {reason}")
    return _advance(replace(course, gaps=gaps))


def _check(course: Course) -> tuple[Course, Action]:
    return replace(_fresh(course, course.windows), phase="check"), Ask()


def _split(course: Course, halves: tuple[Window, Window]) -> tuple[Course, Action]:
    return replace(_fresh(course, (*halves, *course.windows[1:])), splits=course.splits + 1), Ask()


def _halves(course: Course, source: Source) -> tuple[Window, Window] | None:
    if course.unbounded or course.splits >= SPLITS:
        return None
    window = course.windows[0]
    since = window.since or source.earliest or dates.BEGINNING
    until = window.until or course.first_response or dates.END
    # Days where the window has them, and seconds where a day is all it is.
    seconds = source.seconds and (
        len(window.since or window.until) != 10 or dates.day(since) == dates.day(until)
    )
    if seconds and len(until) == 10:
        until = f"{until}T23:59:59Z"
    since, until = dates.like(since, seconds), dates.like(until, seconds)
    middle = dates.middle(since, until)
    if middle is None:
        return None
    return Window(window.since and since, middle[0]), Window(middle[1], until)


def _fresh(course: Course, windows: tuple[Window, ...], restarts: int = 0) -> Course:
    """At the first page of the first window."""
    return Course(
        windows,
        first_response=course.first_response,
        splits=course.splits,
        unbounded=course.unbounded,
        gaps=course.gaps,
        restarts=restarts,
        fruitless=course.fruitless,
    )


def _advance(course: Course) -> tuple[Course, Action]:
    course = _fresh(course, course.windows[1:])
    return (course, Ask()) if course.windows else _end(course)


def _end(course: Course) -> tuple[Course, Action]:
    if course.gaps:
        return course, Stop(False, "not to be had: " + "; ".join(course.gaps))
    return course, Stop(True)
