"""What to do next in a harvest: state and event go in, state and action come out. No I/O, no clock.

A harvest is a row of date windows, nearly always one. Each window is listed by ListRecords. Where that fails
for good, the window is *checked*: ListIdentifiers says what should have come, and the few that did not are
fetched one by one. Where that fails too, or too many are missing, the window is split. A window that can be
neither listed, checked nor split is a gap: the run goes on, ends incomplete, and its high-water mark stays.

Where both lists end in due form, but short of the size that they state, one of the two is wrong. So the
window is *probed*: its identifiers are listed in two parts. A list that was cut at some length names more in
parts, and is split; one whose size merely lies does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from indlet.service.harvest import dates
from indlet.service.harvest.course import (
    PASSING,
    Action,
    Ask,
    Checked,
    Compare,
    Course,
    Event,
    Failed,
    Fetch,
    Listed,
    Rules,
    Source,
    Stop,
    Trouble,
    Window,
)

# Fewer missing records than this are fetched one by one; more, and the window is listed again in two halves.
ONE_BY_ONE: Final = 300
SPLITS: Final = 64
# Lists and checks that failed in a row without a single page between them: the source is not to be had now.
FRUITLESS: Final = 24
# The same with windows between them that hold nothing: twice the halvings from a century to a second.
BARREN: Final = 64
# Silence costs its full time each time: a request that meets it is repeated this often at most.
SILENCES: Final = 2
STALE_PAGES: Final = 3
# Ways to refuse a token. Some walls between us and a source take offence at them.
_TOKENS: Final = ("token", "argument", "unsuitable", "refused")
EMPTY_PAGES: Final = 20


def step(course: Course, event: Event, source: Source, rules: Rules) -> tuple[Course, Action]:
    """Where the run stands after an event, and what to do next."""
    if not course.windows:
        return _end(course)
    match event:
        case Listed():
            if course.phase == "probe":
                return _probed(course, event, rules)
            return _listed(course, event, source, rules)
        case Checked(missing, middle, alike):
            course = replace(course, middle=middle, alike=alike)
            if missing > ONE_BY_ONE and (halves := _halves(course, source)):
                return _split(course, halves)
            return course, Fetch()
        case Failed():
            if course.phase == "probe":
                return _probe_failed(course, event, rules)
            return _failed(course, event, source, rules)


def resume(course: Course) -> tuple[Course, Action]:
    """What to do first, wherever the last run was interrupted."""
    if not course.windows:
        return _end(course)
    # What a check and a probe compare with is not kept.
    return (course, Ask()) if course.phase == "list" else _check(course)


def window_done(course: Course) -> tuple[Course, Action]:
    """All that the first window's lists name is had: on to the next, unless they are in doubt."""
    if course.phase == "check" and (course.odd or (_short(course) and not course.size_lies)):
        if parts := _parts(course.windows[0], course.middle, course.alike):
            probe = replace(_fresh(course, course.windows), phase="probe", probes=parts, alike=course.alike)
            return replace(probe, odd=course.odd), Ask()
        return _doubted(course)
    return _advance(_done(course))


def arguments(course: Course, selection: Mapping[str, str]) -> dict[str, str]:
    """The OAI-PMH arguments of the next request; `selection` holds the prefixes and the set."""
    verb = "ListRecords" if course.phase == "list" else "ListIdentifiers"
    if course.token:
        return {"verb": verb, "resumptionToken": course.token}
    window = course.probes[course.probing] if course.phase == "probe" else course.windows[0]
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
        again=course.again or bool(sent and course.attempt),
        constant=course.constant or bool(sent and page.token == sent and not page.seen),
        pages=course.pages + 1,
        listed=course.listed + (0 if page.seen else page.records) - page.repeats,
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
        barren=0,
    )
    if course.pages == 1 and (page.size or page.records) < course.owed:
        return _check_whole(course)
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
            return _ended_oddly(course, "nothing")  # it goes in circles, but all of it may have come
        return _give_up_listing(course, source, "its tokens go in circles")
    if page.token is None and not page.records:  # where it should say noRecordsMatch
        return _ended_oddly(course, "nothing" if sent else "")
    short = _short(course)
    # The last page of a list in pages must carry an empty token (OAI-PMH 2.0, section 3.5). One without, and
    # as full as those before it, looks like a list that was cut between two pages.
    cut = bool(sent) and page.token is None and (short or 0 < page.records == course.full_page)
    # Where the source minds how far it is, a page that got lost on its way does not come again.
    slipped = course.again and course.constant
    if course.phase == "check":
        if cut:
            return _give_up_listing(course, source, "its lists end early")
        return _ended_oddly(course, "nothing") if slipped else (course, Compare())
    doubtful = short or slipped or bool(page.doubt) or (cut and course.size is None)
    return _check(course) if doubtful else _list_ended(course)


def _ended_oddly(course: Course, how: str) -> tuple[Course, Action]:
    """A token that brings nothing or is not accepted is an odd way to say that a list is over. If the size
    does not tell that it is, a check does; where that ends in the same way, its parts must."""
    course = replace(course, token="", attempt=0)
    if course.listed and course.listed == course.size:
        return _list_ended(course)
    if how and _short(course):
        how = "refused"  # the size and the token agree that there is more
    return (replace(course, odd=how), Compare()) if course.phase == "check" else _check(course)


def _done(course: Course) -> Course:
    return replace(course, splits=max(course.splits - 1, 0))


def _short(course: Course) -> bool:
    return course.size is not None and course.listed < course.size


def _list_ended(course: Course) -> tuple[Course, Action]:
    if course.phase == "check":
        return course, Compare()
    return window_done(course)


def _failed(course: Course, event: Failed, source: Source, rules: Rules) -> tuple[Course, Action]:
    trouble = event.trouble
    if not course.first_response and dates.parse(event.response_date):
        course = replace(course, first_response=event.response_date)
    if trouble == "nothing":
        course = replace(course, fruitless=0)
        if course.owed and not course.pages:
            return _check_whole(course)
        if course.token:
            return _ended_oddly(course, "nothing")
        return _list_ended(replace(course, attempt=0))
    if trouble in PASSING:
        return _transient(course, event, source, rules)
    if trouble == "token" or (course.token and trouble in _TOKENS):
        return _token_refused(course, event, source)
    if trouble == "argument" or trouble == "unsuitable":
        return _arguments_refused(course, event, source)
    # It may not know one of the two verbs; what it says to the first question for both, it means.
    first = course.phase == "check" and course.fruitless and not (course.first_response or course.splits)
    if trouble == "large" or (trouble == "fatal" and not first):
        return _give_up_listing(course, source, event.reason)
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
        return _arguments_refused(course, event, source)
    if course.spelling + 1 < event.spellings:
        return replace(course, spelling=course.spelling + 1), Ask()
    if course.listed and course.listed == course.size:
        return _list_ended(replace(course, token="", attempt=0))
    if course.restarts >= 2 or (course.restarts == 1 and course.pages <= 1):
        if course.phase == "check":
            return _ended_oddly(course, "refused")
        return _give_up_listing(course, source, f"it does not accept its own tokens: {event.reason}")
    window = course.windows[0]
    if course.ordered and course.size and course.newest > window.since and course.phase == "list":
        # So far it came in the order of datestamps. If all of it does, what is missing lies at or after the
        # newest one; the size of that list will tell.
        since = dates.like(course.newest, source.seconds)
        later = _fresh(course, (replace(window, since=since), *course.windows[1:]))
        owed = max(course.size - course.listed, 0) + course.at_newest
        whole = course.whole if course.owed else window.since
        return replace(later, owed=owed, whole=whole, parted=True), Ask()
    return replace(_fresh(course, course.windows, course.restarts + 1), phase=course.phase), Ask()


def _arguments_refused(course: Course, event: Failed, source: Source) -> tuple[Course, Action]:
    window = course.windows[0]
    coarse = Window(dates.day(window.since), dates.day(window.until))
    if coarse != window and coarse.since != coarse.until:
        # It promised seconds, and takes days only.
        return replace(_fresh(course, (coarse, *course.windows[1:])), phase=course.phase), Ask()
    if course.parted and (halves := _halves(course, source)):
        return _split(course, halves)  # still too long for it
    if course.phase == "check" or course.parted:
        return _give_up_listing(course, source, event.reason)
    if window.since and not window.until:
        return replace(_fresh(course, (Window(), *course.windows[1:])), parted=True), Ask()
    if halves := _halves(course, source):
        return _split(course, halves)  # it refuses long lists
    return course, Stop(False, event.reason)


def _give_up_listing(course: Course, source: Source, reason: str) -> tuple[Course, Action]:
    """The list cannot be had: check; where that fails too, split; where that cannot be done, a gap."""
    if course.pages == 0 and not course.token:
        course = replace(course, fruitless=course.fruitless + 1, barren=course.barren + 1)
        if course.fruitless >= FRUITLESS or course.barren >= BARREN:
            return course, Stop(False, reason)
    if course.phase == "list":
        return _check(course)
    window = course.windows[0]
    if window.since and not window.until and not course.pages and not course.parted:
        # Perhaps it cannot bear a `from`.
        return replace(_fresh(course, (Window(), *course.windows[1:])), parted=True), Ask()
    if halves := _halves(course, source):
        return _split(course, halves)
    return _gap(course, reason)


def _gap(course: Course, reason: str) -> tuple[Course, Action]:
    return _advance(replace(course, gaps=(*course.gaps, f"{course.windows[0]}: {reason}")))


# Probing a list whose size is in doubt


def _parts(window: Window, middle: str, alike: bool) -> tuple[Window, ...]:
    """The window before a datestamp and from it on; where all have that one, also what is after it."""
    bound = window.since or window.until
    if bound and middle:
        middle = dates.like(middle, len(bound) > 10)
    before, after = dates.beside(middle)
    if not before:
        return ()
    parts = [Window(window.since, before), Window(middle, window.until)]
    if alike:
        parts[1:] = [Window(middle, middle), Window(after, window.until)]
    return tuple(w for w in parts if not (w.since and w.until) or w.since <= w.until)


def _probed(course: Course, page: Listed, rules: Rules) -> tuple[Course, Action]:
    course = replace(
        course,
        token=page.token or "",
        spelling=0,
        attempt=0,
        pages=course.pages + 1,
        stale=course.stale + 1 if page.seen or not page.records else 0,
        revealed=course.revealed + page.new,
    )
    if page.token and course.stale <= STALE_PAGES and course.pages <= rules.pages:
        return course, Ask()
    return _part_ended(course)


def _part_ended(course: Course) -> tuple[Course, Action]:
    if course.revealed:
        course = replace(course, capped=True)
        if course.splits >= SPLITS:
            return _doubted(course)
        return _split(course, course.probes)
    if course.probing + 1 < len(course.probes):
        onward = replace(_fresh(course, course.windows), phase="probe", probes=course.probes, odd=course.odd)
        return replace(onward, alike=course.alike, probing=course.probing + 1), Ask()
    if course.alike:
        return _doubted(course)
    return _advance(replace(_done(course), size_lies=course.size_lies or not course.odd))


def _doubted(course: Course, reason: str = "") -> tuple[Course, Action]:
    """The size could not be put to the test: a gap if others were right, else a doubt that is told."""
    if course.odd == "refused":
        return _gap(course, "its tokens lead nowhere")
    if course.capped:
        return _gap(course, f"its lists end before their size{reason and ': '}{reason}")
    return _advance(replace(_done(course), unconfirmed=course.unconfirmed + 1))


def _probe_failed(course: Course, event: Failed, rules: Rules) -> tuple[Course, Action]:
    """A probe that cannot be carried out leaves the size in doubt, and costs nothing else."""
    if event.trouble == "nothing":
        return _part_ended(course)
    attempt = course.attempt + 1
    bearable = (event.retry_after or 0.0) <= rules.retry_after_limit_seconds
    if event.trouble in PASSING and bearable and attempt <= min(rules.retries, 2):
        return replace(course, attempt=attempt), Ask(_pause(attempt, event.retry_after, rules))
    if event.trouble in _TOKENS and course.token and course.spelling + 1 < event.spellings:
        return replace(course, spelling=course.spelling + 1), Ask()
    if event.trouble in _TOKENS and course.pages and (course.revealed or course.odd == "refused"):
        return _part_ended(course)  # as the whole list did
    return _doubted(course, event.reason)


def _check_whole(course: Course) -> tuple[Course, Action]:
    """Fewer came than must: the list was not in the order of datestamps after all."""
    first, *others = course.windows
    return _check(replace(course, windows=(replace(first, since=course.whole), *others)))


def _check(course: Course) -> tuple[Course, Action]:
    return replace(_fresh(course, course.windows), phase="check"), Ask()


def _split(course: Course, halves: tuple[Window, ...]) -> tuple[Course, Action]:
    parts = _fresh(course, (*halves, *course.windows[1:]))
    return replace(parts, splits=course.splits + 1, parted=True), Ask()


def _halves(course: Course, source: Source) -> tuple[Window, Window] | None:
    if course.unbounded or course.splits >= SPLITS:
        return None
    window = course.windows[0]
    until = window.until or course.first_response or dates.END
    since = window.since or source.earliest or dates.BEGINNING
    if not window.until and not dates.before(since, until):
        until = dates.END  # the source's clock is behind its records, or these are of the future
    if not window.since and not dates.before(since, until):
        since = dates.BEGINNING
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
    # Open ends stay open: neither the earliest datestamp nor the date of an answer is to be relied on.
    return Window(window.since and since, middle[0]), Window(middle[1], window.until and until)


def _fresh(course: Course, windows: tuple[Window, ...], restarts: int = 0) -> Course:
    """At the first page of the first window."""
    return Course(
        windows,
        first_response=course.first_response,
        splits=course.splits,
        parted=course.parted,
        capped=course.capped,
        size_lies=course.size_lies,
        unconfirmed=course.unconfirmed,
        unbounded=course.unbounded,
        gaps=course.gaps,
        restarts=restarts,
        fruitless=course.fruitless,
        barren=course.barren,
    )


def _advance(course: Course) -> tuple[Course, Action]:
    course = _fresh(course, course.windows[1:])
    return (course, Ask()) if course.windows else _end(course)


def _end(course: Course) -> tuple[Course, Action]:
    if course.gaps:
        return course, Stop(False, "not to be had: " + "; ".join(course.gaps))
    return course, Stop(True)


__all__ = [
    "PASSING",
    "Action",
    "Ask",
    "Checked",
    "Compare",
    "Course",
    "Event",
    "Failed",
    "Fetch",
    "Listed",
    "Rules",
    "Source",
    "Stop",
    "Trouble",
    "Window",
    "arguments",
    "resume",
    "step",
    "window_done",
]
