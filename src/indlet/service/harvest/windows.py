"""The ways through a harvest's row of date windows: by pages, in parts, on to the next, to the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from indlet.service.harvest import dates
from indlet.service.harvest.run_state import Action, Ask, Course, Listed, Source, Stop, Window

# Windows split, less windows done since, at most.
SPLITS: Final = 64
# Pages in a row that bring nothing new: a list with more of them goes in circles.
STALE_PAGES: Final = 3


def turned(course: Course, page: Listed) -> Course:
    """Behind a page that has come."""
    return replace(course, token=page.token or "", spelling=0, attempt=0, pages=course.pages + 1)


def fresh(course: Course, windows: tuple[Window, ...], restarts: int = 0) -> Course:
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


def split(course: Course, parts: tuple[Window, ...]) -> tuple[Course, Action]:
    """The first window is to be listed again in these parts."""
    begun = fresh(course, (*parts, *course.windows[1:]))
    return replace(begun, splits=course.splits + 1, parted=True), Ask()


def halves(course: Course, source: Source) -> tuple[Window, Window] | None:
    """The first window's earlier and later half; none where it cannot be split, or not once more."""
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


def done(course: Course) -> tuple[Course, Action]:
    """On to the next window: as far as can be told, the first is had."""
    return _advance(replace(course, splits=max(course.splits - 1, 0)))


def gap(course: Course, reason: str) -> tuple[Course, Action]:
    """On to the next window, though the first is not to be had."""
    return _advance(replace(course, gaps=(*course.gaps, f"{course.windows[0]}: {reason}")))


def end(course: Course) -> tuple[Course, Action]:
    """The run is over, and complete unless windows were left out."""
    if course.gaps:
        return course, Stop(False, "not to be had: " + "; ".join(course.gaps))
    return course, Stop(True)


def _advance(course: Course) -> tuple[Course, Action]:
    course = fresh(course, course.windows[1:])
    return (course, Ask()) if course.windows else end(course)
