"""What to do after a page of a list or of a check. No I/O, no clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from indlet import datestamps as dates
from indlet.service.harvest.run_state import (
    Action,
    Ask,
    CheckState,
    Compare,
    Cursor,
    Listed,
    ListState,
    Overview,
    Rules,
    RunState,
    SourceTraits,
)
from indlet.service.harvest.transitions import (
    check,
    check_whole,
    ended_oddly,
    give_up_listing,
    list_ended,
)
from indlet.service.harvest.windows import STALE_PAGES

EMPTY_PAGES: Final = 20


def listed(
    state: ListState | CheckState, page: Listed, traits: SourceTraits, rules: Rules
) -> tuple[RunState, Action]:
    """The state after a page, and what to do next."""
    sent = state.cursor.token
    state = replace(
        state,
        overview=_seen(state.overview, page),
        cursor=state.cursor.turned(page),
        tally=state.tally.with_page(page, state.cursor),
    )
    if isinstance(state, ListState) and _begins_short(state, page):
        return check_whole(state)
    if page.token:
        return _go_on(state, page, sent, traits, rules)
    if page.token is None and not page.records:  # where it should say noRecordsMatch
        return ended_oddly(state, "nothing" if sent else "")
    return _last_page(state, page, bool(sent), traits)


def _begins_short(state: ListState, page: Listed) -> bool:
    """Whether the first page of a list that was begun again says that fewer come than must."""
    return state.cursor.pages == 1 and (page.size or page.records) < state.expected


def _seen(overview: Overview, page: Listed) -> Overview:
    until = overview.windows[0].until
    beyond = bool(until and page.highest and dates.day(page.highest) > dates.next_day(until))
    return replace(
        overview,
        first_response=overview.first_response or page.response_date,
        unbounded=overview.unbounded or beyond,
        capped=overview.capped or page.cut,
        fruitless=0,
        barren=0,
    )


def _go_on(
    state: ListState | CheckState, page: Listed, sent: str, traits: SourceTraits, rules: Rules
) -> tuple[RunState, Action]:
    """A page with a token: ask for the next, unless the list goes in circles."""
    if not _loops(
        state.cursor, state.tally.stale, state.tally.empty, page.seen and page.token == sent, rules
    ):
        return state, Ask()
    if state.tally.size is not None and not state.tally.short:
        return ended_oddly(state, "nothing")  # it goes in circles, but all of it may have come
    return give_up_listing(state, traits, "its tokens go in circles")


def _loops(cursor: Cursor, stale: int, empty: int, same: bool, rules: Rules) -> bool:
    return same or stale > STALE_PAGES or empty > EMPTY_PAGES or cursor.pages > rules.pages


def _last_page(
    state: ListState | CheckState, page: Listed, in_pages: bool, traits: SourceTraits
) -> tuple[RunState, Action]:
    """A page without a token: the list is over, unless something speaks against it."""
    tally = state.tally
    # The last page of a list in pages must carry an empty token (OAI-PMH 2.0, section 3.5). One without, and
    # as full as those before it, looks like a list that was cut between two pages.
    cut = in_pages and page.token is None and (tally.short or 0 < page.records == tally.full_page)
    cut = cut or page.cut
    # If the source keeps the cursor on its side, a page that got lost on its way does not come again.
    slipped = tally.retried and tally.one_token
    if isinstance(state, CheckState):
        if cut:
            return give_up_listing(state, traits, "its lists end early")
        return ended_oddly(state, "nothing") if slipped else (state, Compare())
    doubtful = tally.short or slipped or bool(page.doubt) or page.cut or (cut and tally.size is None)
    return check(state.overview) if doubtful else list_ended(state)
