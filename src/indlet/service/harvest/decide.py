"""What to do next in a harvest: state and event go in, state and action come out. No I/O, no clock.

A harvest is a row of date windows, nearly always one. Each window is listed by ListRecords. Where that fails
for good, the window is *checked*: ListIdentifiers says what should have come, and the few that did not are
fetched one by one. Where that fails too, or too many are missing, the window is split. A window that can be
neither listed, checked nor split is a gap: the run goes on, ends incomplete, and its high-water mark stays.

Where both lists end, and it is in doubt whether they name all, the window is *probed* (`probing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from indlet.service.harvest import dates, probing
from indlet.service.harvest.run_state import (
    PASSING,
    TOKENS,
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
from indlet.service.harvest.windows import STALE_PAGES, done, end, fresh, gap, halves, split, turned

# Fewer missing records than this are fetched one by one; more, and the window is listed again in two halves.
ONE_BY_ONE: Final = 300
# Lists and checks that failed in a row without a single page between them: the source is not to be had now.
FRUITLESS: Final = 24
# The same with windows between them that hold nothing: twice the halvings from a century to a second.
BARREN: Final = 64
# Silence costs its full time each time: a request that meets it is repeated this often at most.
SILENCES: Final = 2
EMPTY_PAGES: Final = 20


def step(course: Course, event: Event, source: Source, rules: Rules) -> tuple[Course, Action]:
    """Where the run stands after an event, and what to do next."""
    if not course.windows:
        return end(course)
    match event:
        case Listed():
            if course.phase == "probe":
                return probing.listed(course, event, rules)
            return _listed(course, event, source, rules)
        case Checked(missing, middle, alike):
            course = replace(course, middle=middle, alike=alike)
            if missing > ONE_BY_ONE and (parts := halves(course, source)):
                return split(course, parts)
            return course, Fetch()
        case Failed():
            if course.phase == "probe":
                return probing.failed(course, event, rules)
            return _failed(course, event, source, rules)


def resume(course: Course) -> tuple[Course, Action]:
    """What to do first, wherever the last run was interrupted."""
    if not course.windows:
        return end(course)
    # What a check and a probe compare with is not kept.
    return (course, Ask()) if course.phase == "list" else _check(course)


def window_done(course: Course) -> tuple[Course, Action]:
    """All that the first window's lists name is had: on to the next, unless they are in doubt."""
    if course.phase == "check" and (course.odd or (_short(course) and not course.size_lies)):
        return probing.begin(course)
    return done(course)


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
        turned(course, page),
        again=course.again or bool(sent and course.attempt),
        constant=course.constant or bool(sent and page.token == sent and not page.seen),
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
    if trouble == "token" or (course.token and trouble in TOKENS):
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
        return replace(course, attempt=attempt), Ask(rules.pause(attempt, event.retry_after))
    mute = event.trouble == "silent" and course.phase == "check" and not course.pages
    if event.trouble in ("unreachable", "later") or mute:
        return replace(course, attempt=0), Stop(False, event.reason, resumable=True)
    return _give_up_listing(course, source, event.reason)


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
        later = fresh(course, (replace(window, since=since), *course.windows[1:]))
        owed = max(course.size - course.listed, 0) + course.at_newest
        whole = course.whole if course.owed else window.since
        return replace(later, owed=owed, whole=whole, parted=True), Ask()
    return replace(fresh(course, course.windows, course.restarts + 1), phase=course.phase), Ask()


def _arguments_refused(course: Course, event: Failed, source: Source) -> tuple[Course, Action]:
    window = course.windows[0]
    coarse = Window(dates.day(window.since), dates.day(window.until))
    if coarse != window and coarse.since != coarse.until:
        # It promised seconds, and takes days only.
        return replace(fresh(course, (coarse, *course.windows[1:])), phase=course.phase), Ask()
    if course.parted and (parts := halves(course, source)):
        return split(course, parts)  # still too long for it
    if course.phase == "check" or course.parted:
        return _give_up_listing(course, source, event.reason)
    if window.since and not window.until:
        return replace(fresh(course, (Window(), *course.windows[1:])), parted=True), Ask()
    if parts := halves(course, source):
        return split(course, parts)  # it refuses long lists
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
        return replace(fresh(course, (Window(), *course.windows[1:])), parted=True), Ask()
    if parts := halves(course, source):
        return split(course, parts)
    return gap(course, reason)


def _check_whole(course: Course) -> tuple[Course, Action]:
    """Fewer came than must: the list was not in the order of datestamps after all."""
    first, *others = course.windows
    return _check(replace(course, windows=(replace(first, since=course.whole), *others)))


def _check(course: Course) -> tuple[Course, Action]:
    return replace(fresh(course, course.windows), phase="check"), Ask()


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
