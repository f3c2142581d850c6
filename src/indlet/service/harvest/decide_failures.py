"""What to do after a request of a list or of a check that brought no page. No I/O, no clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from indlet import datestamps as dates
from indlet.service.harvest.run_state import (
    PASSING,
    TOKENS,
    Action,
    Ask,
    CheckState,
    Cursor,
    Failed,
    ListState,
    Rules,
    RunState,
    SourceTraits,
    Stop,
    Window,
)
from indlet.service.harvest.transitions import check_whole, ended_oddly, give_up_listing, list_ended
from indlet.service.harvest.windows import first_page, halves, split

# Silence costs its full time each time: a request that meets it is repeated this often at most.
SILENCES: Final = 2


def failed(
    state: ListState | CheckState, event: Failed, traits: SourceTraits, rules: Rules
) -> tuple[RunState, Action]:
    """The state after a failure, and what to do next."""
    trouble, overview = event.trouble, state.overview
    if not overview.first_response and dates.parse(event.response_date):
        state = replace(state, overview=replace(overview, first_response=event.response_date))
    if trouble == "nothing":
        return _nothing(state)
    if trouble in PASSING:
        return _transient(state, event, traits, rules)
    if trouble == "token" or (state.cursor.token and trouble in TOKENS):
        return _token_refused(state, event, traits)
    if trouble in ("argument", "unsuitable"):
        return _arguments_refused(state, event, traits)
    if trouble == "large" or (trouble == "fatal" and not _refused_from_the_start(state)):
        return give_up_listing(state, traits, event.reason)
    return state, Stop(False, event.reason)


def _refused_from_the_start(state: ListState | CheckState) -> bool:
    """It may not know one of the two verbs; what it says to the first request for both, it means."""
    overview = state.overview
    begun = overview.first_response or overview.splits
    return isinstance(state, CheckState) and bool(overview.fruitless) and not begun


def _nothing(state: ListState | CheckState) -> tuple[RunState, Action]:
    state = replace(state, overview=replace(state.overview, fruitless=0))
    if isinstance(state, ListState) and state.expected and not state.cursor.pages:
        return check_whole(state)
    if state.cursor.token:
        return ended_oddly(state, "nothing")
    return list_ended(replace(state, cursor=replace(state.cursor, attempt=0)))


def _transient(
    state: ListState | CheckState, event: Failed, traits: SourceTraits, rules: Rules
) -> tuple[RunState, Action]:
    """Ask again after a pause, a few times; then wait for another run, or try another way."""
    attempt, wait = state.cursor.attempt + 1, event.retry_after
    rested = replace(state, cursor=replace(state.cursor, attempt=0))
    if wait is not None and wait > rules.retry_after_limit_seconds:
        reason = f"{event.reason}; it asks to come back in {wait:.0f} s"
        return rested, Stop(False, reason, resumable=True)
    if attempt <= _attempts(state, event, rules):
        return replace(state, cursor=replace(state.cursor, attempt=attempt)), Ask(rules.pause(attempt, wait))
    mute = event.trouble == "silent" and isinstance(state, CheckState) and not state.cursor.pages
    if event.trouble in ("unreachable", "later") or mute:
        return rested, Stop(False, event.reason, resumable=True)
    return give_up_listing(state, traits, event.reason)


def _attempts(state: ListState | CheckState, event: Failed, rules: Rules) -> int:
    """How often a request is repeated."""
    if event.trouble == "later":
        return rules.retries
    # In a window that is already the product of trouble, a few attempts tell as much as many.
    plain = isinstance(state, ListState) and not state.overview.splits
    if event.trouble == "silent":
        return min(rules.retries, SILENCES) if plain else 0
    return rules.retries if plain else min(rules.retries, 1 if state.overview.fruitless > 2 else 2)


def _token_refused(
    state: ListState | CheckState, event: Failed, traits: SourceTraits
) -> tuple[RunState, Action]:
    cursor, tally = state.cursor, state.tally
    if not cursor.token:
        return _arguments_refused(state, event, traits)
    if cursor.spelling + 1 < event.spellings:
        return replace(state, cursor=replace(cursor, spelling=cursor.spelling + 1)), Ask()
    if tally.full:
        return list_ended(replace(state, cursor=replace(cursor, token="", attempt=0)))
    if cursor.restarts >= 2 or (cursor.restarts == 1 and cursor.pages <= 1):
        if isinstance(state, CheckState):
            return ended_oddly(state, "refused")
        return give_up_listing(state, traits, f"it does not accept its own tokens: {event.reason}")
    window = state.overview.windows[0]
    if isinstance(state, ListState) and tally.ordered and tally.size and tally.newest > window.since:
        return _from_newest(state, tally.size, traits), Ask()
    return _again(state, cursor.restarts + 1), Ask()


def _from_newest(state: ListState, size: int, traits: SourceTraits) -> ListState:
    """So far the list came in the order of datestamps. If all of it does, what is missing lies at or after
    the newest one; the size of that list will tell."""
    tally, window = state.tally, state.overview.windows[0]
    begun = first_page(
        replace(state.overview, parted=True), replace(window, since=dates.like(tally.newest, traits.seconds))
    )
    expected = max(size - tally.listed, 0) + tally.at_newest
    return replace(
        begun, expected=expected, whole_since=state.whole_since if state.expected else window.since
    )


def _again(
    state: ListState | CheckState, restarts: int = 0, window: Window | None = None
) -> ListState | CheckState:
    """The list from its beginning, perhaps of another window."""
    begun = first_page(state.overview, window)
    if isinstance(state, CheckState):
        return CheckState(begun.overview, Cursor(restarts=restarts))
    return replace(begun, cursor=Cursor(restarts=restarts))


def _arguments_refused(
    state: ListState | CheckState, event: Failed, traits: SourceTraits
) -> tuple[RunState, Action]:
    overview = state.overview
    window = overview.windows[0]
    coarse = Window(dates.day(window.since), dates.day(window.until))
    if coarse != window and coarse.since != coarse.until:
        return _again(state, window=coarse), Ask()  # it promised seconds, and takes days only
    parts = halves(overview, traits)
    if overview.parted and parts:
        return split(overview, parts)  # still too long for it
    if overview.parted or isinstance(state, CheckState):
        return give_up_listing(state, traits, event.reason)
    if window.since and not window.until:
        return first_page(replace(overview, parted=True), Window()), Ask()
    if parts:
        return split(overview, parts)  # it refuses long lists
    return state, Stop(False, event.reason)
