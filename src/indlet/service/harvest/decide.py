"""What to do next in a harvest: state and event go in, state and action come out. No I/O, no clock.

A harvest is a row of date windows, nearly always one. Each window is listed by ListRecords. Where that fails
for good, the window is *checked*: ListIdentifiers says what should have come, and the few that did not are
fetched one by one. Where that fails too, or too many are missing, the window is split. A window that can be
neither listed, checked nor split is a gap: the run goes on, ends incomplete, and its high-water mark stays.

Where both lists end, and it is in doubt whether they name all, the window is *probed* (`probing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from indlet.service.harvest import decide_failures, decide_pages, probing
from indlet.service.harvest.run_state import (
    Action,
    Ask,
    Checked,
    CheckState,
    Event,
    Failed,
    Fetch,
    Listed,
    ListState,
    ProbeState,
    Rules,
    RunState,
    SourceTraits,
)
from indlet.service.harvest.transitions import check, window_done
from indlet.service.harvest.windows import end, halves, split

# Fewer missing records than this are fetched one by one; more, and the window is listed again in two halves.
ONE_BY_ONE: Final = 300


def step(state: RunState, event: Event, traits: SourceTraits, rules: Rules) -> tuple[RunState, Action]:
    """The state of the run after an event, and what to do next."""
    if not state.overview.windows:
        return end(state.overview)
    match event, state:
        case Checked(), CheckState():
            return _compared(state, event, traits)
        case Listed(), ProbeState():
            return probing.listed(state, event, rules)
        case Failed(), ProbeState():
            return probing.failed(state, event, rules)
        case Listed(), ListState() | CheckState():
            return decide_pages.listed(state, event, traits, rules)
        case Failed(), ListState() | CheckState():
            return decide_failures.failed(state, event, traits, rules)
    raise ValueError(f"{type(event).__name__} cannot happen in {type(state).__name__}")


def _compared(state: CheckState, event: Checked, traits: SourceTraits) -> tuple[RunState, Action]:
    state = replace(state, middle=event.middle, alike=event.alike)
    if event.missing > ONE_BY_ONE and (parts := halves(state.overview, traits)):
        return split(state.overview, parts)
    return state, Fetch()


def resume(state: RunState) -> tuple[RunState, Action]:
    """What to do first, wherever the last run was interrupted."""
    if not state.overview.windows:
        return end(state.overview)
    # What a check and a probe compare with is not kept.
    return (state, Ask()) if isinstance(state, ListState) else check(state.overview)


def arguments(state: RunState, selection: Mapping[str, str]) -> dict[str, str]:
    """The OAI-PMH arguments of the next request; `selection` holds the prefixes and the set."""
    verb = "ListRecords" if isinstance(state, ListState) else "ListIdentifiers"
    if state.cursor.token:
        return {"verb": verb, "resumptionToken": state.cursor.token}
    window = state.parts[state.number] if isinstance(state, ProbeState) else state.overview.windows[0]
    found = {"verb": verb, **selection}
    if window.since:
        found["from"] = window.since
    if window.until:
        found["until"] = window.until
    return found


__all__ = ["ONE_BY_ONE", "arguments", "resume", "step", "window_done"]
