"""Whether a list that ends, in due form as it seems, was cut: behind its first page, or at some length.

Nothing in such a list tells. But lists that are cut mostly have a round number of records, and their parts
name more than the whole. A list of so many records that is whole costs two requests, or three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from indlet.net.client import NoAnswer
from indlet.oai.read import Page
from indlet.service.harvest import decide, probing
from indlet.service.harvest.listing import ListedPages, middle_of
from indlet.service.harvest.run_state import PASSING, CheckState, ListState, ProbeState


def may_be_cut(page: Page, state: ListState | CheckState) -> bool:
    """Whether a list ends with a page at a length at which lists are cut. One that is short of the size that
    it states is in doubt already."""
    if page.token or page.extended or not page.items:
        return False
    count = state.tally.listed + len(page.items)
    sizes = [size for size in (page.size, state.tally.size) if size is not None]
    return (count % 10 == 0 or count % 25 == 0) and count >= max(sizes, default=0)


def parts_name_more(
    page: Page,
    listing: ListedPages,
    state: ListState | CheckState,
    selection: Mapping[str, str],
    seconds: bool,
    ask: Callable[[Mapping[str, str]], Page],
) -> bool:
    """Whether identifiers before some datestamp of a list's last page, or from it on, are not in the list.

    What cannot be asked for speaks neither for the list nor against it.
    """
    window = state.overview.windows[0]
    days = not seconds or len(window.since or window.until) == 10
    parts = probing.parts_of(window, *middle_of([item.datestamp for item in page.items], days))
    for number in range(len(parts)):
        try:
            part = ask(decide.arguments(ProbeState(state.overview, parts=parts, number=number), selection))
        except NoAnswer as e:
            if e.failed.trouble in PASSING:
                return False  # a source in trouble is not asked for a mere opinion
            continue
        if listing.lacks([item.identifier for item in part.items if not item.deleted]):
            return True
    return False
