"""Probing a window whose lists are in doubt: do they name all, or were they cut? No I/O, no clock.

Where both lists end in due form, but short of the size that they state, one of the two is wrong; where they
end in another way, nothing says that they are over. So the window's identifiers are listed in parts. A list
that was cut at some length names more in parts, and is split; one whose size merely lies does not.
"""

from __future__ import annotations

from dataclasses import replace

from indlet import datestamps as dates
from indlet.service.harvest.run_state import (
    PASSING,
    TOKENS,
    Action,
    Ask,
    CheckState,
    Cursor,
    Ending,
    Failed,
    Listed,
    Overview,
    ProbeState,
    Rules,
    RunState,
    Window,
)
from indlet.service.harvest.windows import SPLITS, STALE_PAGES, done, gap, split


def begin(state: CheckState) -> tuple[RunState, Action]:
    """The first window's identifiers are to be listed in parts, if its datestamps tell where to part it."""
    if parts := parts_of(state.overview.windows[0], state.middle, state.alike):
        return ProbeState(state.overview, parts=parts, ended=state.ended, alike=state.alike), Ask()
    return _doubted(state.overview, state.ended)


def listed(state: ProbeState, page: Listed, rules: Rules) -> tuple[RunState, Action]:
    """The state after a page of a part, and what to do next."""
    state = replace(
        state,
        cursor=state.cursor.turned(page),
        stale=state.stale + 1 if page.seen or not page.records else 0,
        revealed=state.revealed + page.new,
    )
    if page.token and state.stale <= STALE_PAGES and state.cursor.pages <= rules.pages:
        return state, Ask()
    return _part_ended(state)


def failed(state: ProbeState, event: Failed, rules: Rules) -> tuple[RunState, Action]:
    """A probe that cannot be carried out leaves the size in doubt, and costs nothing else."""
    if event.trouble == "nothing":
        return _part_ended(state)
    cursor = state.cursor
    attempt = cursor.attempt + 1
    bearable = (event.retry_after or 0.0) <= rules.retry_after_limit_seconds
    if event.trouble in PASSING and bearable and attempt <= min(rules.retries, 2):
        return replace(state, cursor=replace(cursor, attempt=attempt)), Ask(
            rules.pause(attempt, event.retry_after)
        )
    if event.trouble in TOKENS:
        if cursor.token and cursor.spelling + 1 < event.spellings:
            return replace(state, cursor=replace(cursor, spelling=cursor.spelling + 1)), Ask()
        if cursor.pages and (state.revealed or state.ended == "refused"):
            return _part_ended(state)  # as the whole list did
    return _doubted(state.overview, state.ended, event.reason)


def parts_of(window: Window, middle: str, alike: bool) -> tuple[Window, ...]:
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


def _part_ended(state: ProbeState) -> tuple[RunState, Action]:
    overview = state.overview
    if state.revealed:
        overview = replace(overview, capped=True)
        if overview.splits >= SPLITS:
            return _doubted(overview, state.ended)
        return split(overview, state.parts)
    if state.number + 1 < len(state.parts):
        return replace(state, cursor=Cursor(), number=state.number + 1, stale=0), Ask()
    if state.alike:
        return _doubted(overview, state.ended)
    return done(replace(overview, size_lies=overview.size_lies or not state.ended))


def _doubted(overview: Overview, ended: Ending, reason: str = "") -> tuple[RunState, Action]:
    """The size could not be put to the test: a gap if others were right, else a doubt that is told."""
    if ended == "refused":
        return gap(overview, "its tokens lead nowhere")
    if overview.capped:
        return gap(overview, f"its lists end before their size{reason and ': '}{reason}")
    return done(replace(overview, unconfirmed=overview.unconfirmed + 1))
