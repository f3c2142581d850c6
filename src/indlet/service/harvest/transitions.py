"""From one state of a run to the next: a list ends or is given up, a check or a probe begins. No I/O."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from indlet.service.harvest import probing
from indlet.service.harvest.run_state import (
    Action,
    Ask,
    CheckState,
    Compare,
    Ending,
    ListState,
    Overview,
    RunState,
    SourceTraits,
    Stop,
    Window,
)
from indlet.service.harvest.windows import done, first_page, gap, halves, split

# Lists and checks that failed in a row without a single page between them: then the source is given up.
FRUITLESS: Final = 24
# The same with windows between them that hold nothing: twice the halvings from a century to a second.
BARREN: Final = 64


def check(overview: Overview) -> tuple[RunState, Action]:
    """List the first window's identifiers, from the beginning."""
    return CheckState(overview), Ask()


def check_whole(state: ListState) -> tuple[RunState, Action]:
    """Fewer came than must: the list was not in the order of datestamps after all."""
    first, *others = state.overview.windows
    return check(replace(state.overview, windows=(replace(first, since=state.whole_since), *others)))


def list_ended(state: ListState | CheckState) -> tuple[RunState, Action]:
    return (state, Compare()) if isinstance(state, CheckState) else window_done(state)


def window_done(state: RunState) -> tuple[RunState, Action]:
    """All that the first window's lists name has come: on to the next, unless they are in doubt."""
    if isinstance(state, CheckState):
        doubtful = state.tally.short and not state.overview.size_lies
        if state.ended or doubtful:
            return probing.begin(state)
    return done(state.overview)


def ended_oddly(state: ListState | CheckState, how: Ending) -> tuple[RunState, Action]:
    """A token that brings nothing or is not accepted is an odd way to say that a list is over. If the size
    does not tell that it is, a check does; where that ends in the same way, its parts must."""
    state = replace(state, cursor=replace(state.cursor, token="", attempt=0))
    if state.tally.full:
        return list_ended(state)
    if isinstance(state, ListState):
        return check(state.overview)
    if how and state.tally.short:
        how = "refused"  # the size and the token agree that there is more
    return replace(state, ended=how), Compare()


def give_up_listing(
    state: ListState | CheckState, traits: SourceTraits, reason: str
) -> tuple[RunState, Action]:
    """The list cannot be read: check; where that fails too, split; where that cannot be done, a gap."""
    overview, begun = state.overview, bool(state.cursor.pages or state.cursor.token)
    if not begun:
        overview = replace(overview, fruitless=overview.fruitless + 1, barren=overview.barren + 1)
        if overview.fruitless >= FRUITLESS or overview.barren >= BARREN:
            return replace(state, overview=overview), Stop(False, reason)
    if isinstance(state, ListState):
        return check(overview)
    window = overview.windows[0]
    if window.since and not window.until and not state.cursor.pages and not overview.parted:
        # Perhaps it cannot bear a `from`.
        return first_page(replace(overview, parted=True), Window()), Ask()
    if parts := halves(overview, traits):
        return split(overview, parts)
    return gap(overview, reason)
