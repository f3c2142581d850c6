"""Whether a list of one page, without a token, is whole, or was cut where its first page ends.

Nothing in the list itself tells. But most pages have a round number of records, and the parts of a list that
was cut name more than the whole. A list of so many records that is whole costs two requests, or three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from indlet.oai.read import Page
from indlet.service.harvest import decide, probing
from indlet.service.harvest.client import NoAnswer
from indlet.service.harvest.listing import middle_of
from indlet.service.harvest.run_state import PASSING, ProbeState, RunState


def may_be_cut(page: Page, state: RunState) -> bool:
    """Whether a page is the first of its list, the last too as it seems, and as full as pages are."""
    count = len(page.items)
    alone = page.token is None and not state.cursor.pages and not state.cursor.token
    return alone and not page.extended and count > 0 and (count % 10 == 0 or count % 25 == 0)


def parts_name_more(
    page: Page,
    state: RunState,
    selection: Mapping[str, str],
    seconds: bool,
    ask: Callable[[Mapping[str, str]], Page],
) -> bool:
    """Whether the identifiers before some datestamp in the midst of a list, or from it on, are not all in it.

    What cannot be asked for speaks neither for the list nor against it.
    """
    window = state.overview.windows[0]
    days = not seconds or len(window.since or window.until) == 10
    named = {item.identifier for item in page.items}
    parts = probing.parts_of(window, *middle_of([item.datestamp for item in page.items], days))
    for number in range(len(parts)):
        try:
            part = ask(decide.arguments(ProbeState(state.overview, parts=parts, number=number), selection))
        except NoAnswer as e:
            if e.failed.trouble in PASSING:
                return False  # a source in trouble is not asked for a mere opinion
            continue
        if any(item.identifier not in named and not item.deleted for item in part.items):
            return True
    return False
