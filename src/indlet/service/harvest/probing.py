"""Probing a window whose lists are in doubt: do they name all, or were they cut? No I/O, no clock.

Where both lists end in due form, but short of the size that they state, one of the two is wrong; where they
end in another way, nothing says that they are over. So the window's identifiers are listed in parts. A list
that was cut at some length names more in parts, and is split; one whose size merely lies does not.
"""

from __future__ import annotations

from dataclasses import replace

from indlet.service.harvest import dates
from indlet.service.harvest.run_state import (
    PASSING,
    TOKENS,
    Action,
    Ask,
    Course,
    Failed,
    Listed,
    Rules,
    Window,
)
from indlet.service.harvest.windows import SPLITS, STALE_PAGES, done, fresh, gap, split, turned


def begin(course: Course) -> tuple[Course, Action]:
    """The first window's identifiers are to be listed in parts, if its datestamps tell where to part it."""
    if parts := _parts(course.windows[0], course.middle, course.alike):
        return _list_part(course, parts, 0)
    return _doubted(course)


def listed(course: Course, page: Listed, rules: Rules) -> tuple[Course, Action]:
    """Where the run stands after a page of a part, and what to do next."""
    course = replace(
        turned(course, page),
        stale=course.stale + 1 if page.seen or not page.records else 0,
        revealed=course.revealed + page.new,
    )
    if page.token and course.stale <= STALE_PAGES and course.pages <= rules.pages:
        return course, Ask()
    return _part_ended(course)


def failed(course: Course, event: Failed, rules: Rules) -> tuple[Course, Action]:
    """A probe that cannot be carried out leaves the size in doubt, and costs nothing else."""
    if event.trouble == "nothing":
        return _part_ended(course)
    attempt = course.attempt + 1
    bearable = (event.retry_after or 0.0) <= rules.retry_after_limit_seconds
    if event.trouble in PASSING and bearable and attempt <= min(rules.retries, 2):
        return replace(course, attempt=attempt), Ask(rules.pause(attempt, event.retry_after))
    if event.trouble in TOKENS and course.token and course.spelling + 1 < event.spellings:
        return replace(course, spelling=course.spelling + 1), Ask()
    if event.trouble in TOKENS and course.pages and (course.revealed or course.odd == "refused"):
        return _part_ended(course)  # as the whole list did
    return _doubted(course, event.reason)


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


def _list_part(course: Course, parts: tuple[Window, ...], number: int) -> tuple[Course, Action]:
    part = replace(fresh(course, course.windows), phase="probe", probes=parts, probing=number)
    return replace(part, alike=course.alike, odd=course.odd), Ask()


def _part_ended(course: Course) -> tuple[Course, Action]:
    if course.revealed:
        course = replace(course, capped=True)
        if course.splits >= SPLITS:
            return _doubted(course)
        return split(course, course.probes)
    if course.probing + 1 < len(course.probes):
        return _list_part(course, course.probes, course.probing + 1)
    if course.alike:
        return _doubted(course)
    return done(replace(course, size_lies=course.size_lies or not course.odd))


def _doubted(course: Course, reason: str = "") -> tuple[Course, Action]:
    """The size could not be put to the test: a gap if others were right, else a doubt that is told."""
    if course.odd == "refused":
        return gap(course, "its tokens lead nowhere")
    if course.capped:
        return gap(course, f"its lists end before their size{reason and ': '}{reason}")
    return done(replace(course, unconfirmed=course.unconfirmed + 1))
