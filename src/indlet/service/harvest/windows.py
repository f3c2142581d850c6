"""The ways through a harvest's row of date windows: in parts, on to the next, to the end. No I/O."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from indlet import datestamps as dates
from indlet.service.harvest.run_state import (
    Action,
    Ask,
    Cursor,
    ListState,
    Overview,
    RunState,
    SourceTraits,
    Stop,
    Window,
)

# Windows split, less windows done since, at most.
SPLITS: Final = 64
# Pages in a row that bring nothing new: a list with more of them goes in circles.
STALE_PAGES: Final = 3
# Windows of a historical run.
MOST: Final = 1000


def first_page(overview: Overview, window: Window | None = None, restarts: int = 0) -> ListState:
    """At the beginning of the first window's list; with another window in its place, if one is given."""
    if window is not None:
        overview = replace(overview, windows=(window, *overview.windows[1:]))
    return ListState(overview, Cursor(restarts=restarts))


def history(
    whole: Window, earliest: str, now: datetime, length: timedelta, seconds: bool
) -> tuple[Window, ...]:
    """A window in parts of a length, the oldest first.

    Open ends stay open, for neither the earliest datestamp nor our clock can be relied on. There are about
    MOST parts at most, whatever a source calls its earliest datestamp.
    """
    granule = timedelta(seconds=1) if seconds else timedelta(days=1)
    since, until = whole.since, whole.until
    begin = dates.parse(since or earliest)
    end = min(dates.parse(until) or now, now)
    if begin is None or begin >= end:
        return (whole,)
    step = max(length // granule, (end - begin) // granule // MOST, 1) * granule
    found = list[Window]()
    while begin + step < end:
        begin += step
        found.append(Window(since, dates.write(begin - granule, seconds)))
        since = dates.write(begin, seconds)
    return (*found, Window(since, until))


def split(overview: Overview, parts: tuple[Window, ...]) -> tuple[RunState, Action]:
    """The first window is to be listed again in these parts."""
    windows = (*parts, *overview.windows[1:])
    return ListState(replace(overview, windows=windows, splits=overview.splits + 1, parted=True)), Ask()


def halves(overview: Overview, traits: SourceTraits) -> tuple[Window, Window] | None:
    """The first window's earlier and later half; none where it cannot be split, or not once more."""
    if overview.unbounded or overview.splits >= SPLITS:
        return None
    window = overview.windows[0]
    until = window.until or overview.first_response or dates.END
    since = window.since or traits.earliest or dates.BEGINNING
    if not window.until and not dates.before(since, until):
        until = dates.END  # the source's clock is behind its records, or these are of the future
    if not window.since and not dates.before(since, until):
        since = dates.BEGINNING
    # Days where the window has them, and seconds where a day is all it is.
    seconds = traits.seconds and (
        len(window.since or window.until) != 10 or dates.day(since) == dates.day(until)
    )
    if seconds and len(until) == 10:
        until = f"{until}T23:59:59Z"
    since, until = dates.like(since, seconds), dates.like(until, seconds)
    middle = dates.middle(since, until)
    if middle is None:
        return None
    # Open ends stay open: neither the earliest datestamp nor the date of an answer can be relied on.
    return Window(window.since and since, middle[0]), Window(middle[1], window.until and until)


def done(overview: Overview) -> tuple[RunState, Action]:
    """On to the next window: as far as can be told, the first is complete."""
    return _next_window(replace(overview, splits=max(overview.splits - 1, 0)))


def gap(overview: Overview, reason: str) -> tuple[RunState, Action]:
    """On to the next window, though the first could not be harvested."""
    return _next_window(replace(overview, gaps=(*overview.gaps, f"{overview.windows[0]}: {reason}")))


def end(overview: Overview) -> tuple[RunState, Action]:
    """The run is over, and complete unless windows were left out."""
    if overview.gaps:
        return ListState(overview), Stop(False, "could not be harvested: " + "; ".join(overview.gaps))
    return ListState(overview), Stop(True)


def _next_window(overview: Overview) -> tuple[RunState, Action]:
    overview = replace(overview, windows=overview.windows[1:])
    return (ListState(overview), Ask()) if overview.windows else end(overview)
