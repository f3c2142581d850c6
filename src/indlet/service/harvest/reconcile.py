"""Deletions of a source that keeps none: what its whole list of identifiers no longer names has gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from indlet.oai.read import Item
from indlet.service.harvest import dates, decide
from indlet.service.harvest.client import NoAnswer, spellings
from indlet.service.harvest.fetch_page import PageFetcher
from indlet.service.harvest.negotiate import Agreement
from indlet.service.harvest.record_intake import IN_A_ROW, UnusableRecord
from indlet.service.harvest.run_state import PASSING, Ask, CheckState, Compare, Listed, Rules, SourceTraits
from indlet.service.harvest.source_state import SourceState
from indlet.settings import seconds as interval
from indlet.store import Store

# So many records that a list does not name are asked for one by one.
FEW: Final = 200


def due(state: SourceState, every: str, now: datetime) -> bool:
    """Whether a source must be compared in full again, by its own state and the schedule for it."""
    if state.deleted_record == "persistent" or every == "never":
        return False
    last = dates.parse(state.reconciled)
    pause = interval(every)
    return last is not None and pause is not None and (now - last).total_seconds() >= pause


def whole_list(
    fetcher: PageFetcher,
    agreement: Agreement,
    set_spec: str,
    traits: SourceTraits,
    rules: Rules,
    sleep: Callable[[float], None],
    *,
    size_counts: bool = True,
) -> set[str] | None:
    """Every live identifier of a set (empty: of all); None unless the whole list could be read in one go.

    An empty list counts as none: a source that has lost its records for a day must not cost them here.
    """
    listed: set[str] = set()
    pages: set[int] = set()
    state, action = decide.resume(CheckState())
    selection = agreement.selection(set_spec)
    while isinstance(action, Ask):
        if action.wait:
            sleep(action.wait)
        if not isinstance(state, CheckState) or state.overview.splits:
            return None
        cursor = state.cursor
        try:
            page = fetcher.page(agreement.url, decide.arguments(state, selection), cursor.spelling)
        except NoAnswer as e:
            if cursor.restarts:
                return None
            count = len(spellings(cursor.token)) if cursor.token else 1
            state, action = decide.step(state, replace(e.failed, spellings=count), traits, rules)
            continue
        if not cursor.token and not cursor.pages:
            listed.clear()
        listed.update(i.identifier for i in page.items if not i.deleted)
        key = hash(tuple(i.identifier for i in page.items))
        event = Listed(len(page.items), page.token, page.size, key in pages, page.response_date)
        pages.add(key)
        state, action = decide.step(state, event, traits, rules)
    if not isinstance(action, Compare) or not isinstance(state, CheckState):
        return None
    return listed if listed and not (size_counts and state.tally.short) else None


class CannotReconcile(Exception):
    """It cannot be found out now which records have gone."""


def vanished(
    store: Store,
    origin: int,
    specs: Sequence[str],
    lists: Callable[[str], set[str] | None],
    one: Callable[[str], Item | None],
) -> tuple[list[str], int, list[str]]:
    """The records held that a source has no more, how many its list left out though it has them, and those
    that it lists and that are not held: they have come back, with the datestamps that they had."""
    listed = _union(specs, lists)
    with store.read() as view:
        held = set(view.identifiers(origin))
    gone = sorted(held - listed)
    alive = still_there(gone, one)
    if alive is None:  # it gives no single records: two lists must agree
        alive = _union(specs, lists)
    left_out = [identifier for identifier in gone if identifier in alive]
    if left_out and len(gone) > FEW:
        raise CannotReconcile(f"found that the list leaves out records that are still there ({left_out[0]})")
    return (
        [identifier for identifier in gone if identifier not in alive],
        len(left_out),
        sorted(listed - held),
    )


def _union(specs: Sequence[str], lists: Callable[[str], set[str] | None]) -> set[str]:
    listed: set[str] = set()
    for spec in specs:
        found = lists(spec)
        if found is None:
            raise CannotReconcile("could not read the whole list")
        listed |= found
    return listed


def still_there(gone: Sequence[str], one: Callable[[str], Item | None]) -> set[str] | None:
    """Of records that a list does not name, those that the source gives all the same; None if it gives none
    at all for now. A few are asked for one by one, of many a sample.

    A list that changes while it is read may leave a record out, and one that is cut leaves out many.
    """
    alive: set[str] = set()
    silent = answers = 0
    for identifier in gone[:: max(1, len(gone) // FEW)]:
        try:
            item = one(identifier)
        except UnusableRecord:
            alive.add(identifier)
            answers += 1
            silent = 0
            continue
        except NoAnswer as e:
            if e.failed.trouble in PASSING:
                alive.add(identifier)  # not to be decided now
                silent += 1
                if silent >= IN_A_ROW:
                    return None
            else:
                answers += 1
                silent = 0
            continue
        answers += 1
        silent = 0
        if item is not None and not item.deleted:
            alive.add(identifier)
    return alive if answers or not alive else None
