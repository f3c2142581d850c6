"""Records that a source's whole list of identifiers no longer names: deleted, or no longer in the set.

A source that keeps no deletions says so in no other way, and few sources say that a record has left a set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from indlet import datestamps as dates
from indlet.net.client import NoAnswer, spellings
from indlet.oai.provenance import own_sets
from indlet.oai.read import Item
from indlet.service.harvest import decide
from indlet.service.harvest.cache import in_set
from indlet.service.harvest.fetch_page import PageFetcher
from indlet.service.harvest.negotiate import Agreement
from indlet.service.harvest.record_intake import IN_A_ROW, UnusableRecord
from indlet.service.harvest.run_state import (
    PASSING,
    Ask,
    CheckState,
    Compare,
    Listed,
    Overview,
    Rules,
    SourceTraits,
    Window,
)
from indlet.service.harvest.source_state import SourceState
from indlet.settings import seconds as interval
from indlet.store import Store

# So many records that a list does not name are asked for one by one.
FEW: Final = 200


def applies(state: SourceState, set_spec: str, every: str) -> bool:
    """Whether identifiers are compared on a schedule: a source that keeps all deletions need not be, unless
    it is harvested by a set, which a record may leave without being deleted."""
    return every != "never" and (bool(set_spec) or state.deleted_record != "persistent")


def due(state: SourceState, set_spec: str, every: str, now: datetime) -> bool:
    """Whether a source must be compared in full again, by its own state and the schedule for it."""
    if not applies(state, set_spec, every):
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
    window: Window,
    size_counts: bool = True,
) -> set[str] | None:
    """Every live identifier of a set (empty: of all); None unless the whole list could be read in one go.

    A set may well be empty. A repository without any records is not believed: it may have lost them for a
    day, which must not cost them here.
    """
    listed: set[str] = set()
    pages: set[int] = set()
    state, action = decide.resume(CheckState(Overview((window,))))
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
    if not (listed or set_spec) or (size_counts and state.tally.short):
        return None
    return listed


class CannotReconcile(Exception):
    """It cannot be found out now which records have gone."""


@dataclass(frozen=True, slots=True)
class ListComparison:
    """A source's whole list, compared with the records that are held."""

    gone: list[str]  # held, and no longer at the source
    out_of_set: list[str]  # held, and no longer in the set; the source may still have them
    left_out: int  # held and not listed, though the source has them
    back: list[str]  # listed and not held: they have come back, with the datestamps that they had


def compare(
    store: Store,
    origin: int,
    specs: Sequence[str],
    lists: Callable[[str], set[str] | None],
    one: Callable[[str], Item | None],
) -> ListComparison:
    """Compare what is held with the lists of these sets (empty: of everything).

    CannotReconcile if that cannot be done now, or the lists cannot be relied on.
    """
    listed = _union(specs, lists)
    sets = () if "" in specs else tuple(specs)
    with store.read() as view:
        held = set(view.identifiers(origin))
    unlisted = sorted(held - listed)
    found = _look_up(unlisted, one)
    if found is None:  # it gives no single records: two lists must agree
        if not listed:
            raise CannotReconcile(
                "found no record in the set, and can request no single record to confirm it"
            )
        listed |= _union(specs, lists)
        found = {}
    alive = {identifier for identifier, item in found.items() if item is None or not item.deleted}
    if sets:
        alive -= _out_of_sets(store, origin, sets, found, lists)
    left_out = [identifier for identifier in unlisted if identifier in alive]
    if left_out and len(unlisted) > FEW:
        raise CannotReconcile(f"found that the list leaves out records that are still there ({left_out[0]})")
    unlisted = [identifier for identifier in unlisted if identifier not in alive | listed]
    if not sets:
        return ListComparison(unlisted, [], len(left_out), sorted(listed - held))
    dead = {identifier for identifier, item in found.items() if item is not None and item.deleted}
    passed_on = _passed_on(store, origin, unlisted)
    return ListComparison(
        [identifier for identifier in unlisted if identifier in dead],
        [identifier for identifier in unlisted if identifier not in dead | passed_on],
        len(left_out),
        sorted(listed - held),
    )


def _out_of_sets(
    store: Store,
    origin: int,
    specs: Sequence[str],
    found: Mapping[str, Item | None],
    lists: Callable[[str], set[str] | None],
) -> set[str]:
    """Of records that came alone, those that have left the sets, by their headers. Where headers name no
    sets, neither now nor before, a second list must agree with the first."""
    items = {identifier: item for identifier, item in found.items() if item is not None and not item.deleted}
    with store.read() as view:
        stated = {
            i for i in items if (held := view.get(i, [origin])) is not None and own_sets(held.sets.split())
        }
    out = {i for i, item in items.items() if not any(in_set(spec, item.sets) for spec in specs)}
    unclear = {i for i in out if not items[i].sets and i not in stated}
    return out - (unclear & _union(specs, lists) if unclear else set())


def _passed_on(store: Store, origin: int, identifiers: Sequence[str]) -> set[str]:
    """Of these, the records that came by way of another node, which need not be in the set."""
    with store.read() as view:
        rows = ((identifier, view.get(identifier, [origin])) for identifier in identifiers)
        return {identifier for identifier, row in rows if row is not None and b'"via":' in row.properties}


def _union(specs: Sequence[str], lists: Callable[[str], set[str] | None]) -> set[str]:
    listed: set[str] = set()
    for spec in specs:
        found = lists(spec)
        if found is None:
            raise CannotReconcile("could not read the whole list")
        listed |= found
    return listed


def _look_up(identifiers: Sequence[str], one: Callable[[str], Item | None]) -> dict[str, Item | None] | None:
    """Records that a list does not name, requested one by one: a few all, of many a sample. None if the
    source gives no single record at all for now.

    The item of a record that the source no longer has is a deleted one; None stands for a record that it may
    have. A list that changes while it is read may leave a record out, and one that is cut leaves out many.
    """
    found: dict[str, Item | None] = {}
    silent = answers = 0
    for identifier in identifiers[:: max(1, len(identifiers) // FEW)]:
        try:
            item = one(identifier)
        except UnusableRecord:
            found[identifier] = None
        except NoAnswer as e:
            if e.failed.trouble in PASSING:
                found[identifier] = None  # not to be decided now
                silent += 1
                if silent >= IN_A_ROW:
                    return None
                continue
            found[identifier] = Item(identifier, "", deleted=True)
        else:
            found[identifier] = item or Item(identifier, "", deleted=True)
        answers += 1
        silent = 0
    return found if answers or not found else None
