"""A source that suddenly lists nothing, or far less than before: its runs are complete, and yet a warning."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from indlet.store import RunEntry, Store, View

ALERT: Final = "fewer"
SHARE: Final = 0.5  # a full list with less than this share of the records held is too short
FEWEST: Final = 10  # records held, below which nothing is too short
EMPTY: Final = 3  # incremental runs in a row that brought nothing
USUAL: Final = 10  # runs before these, nearly all of which brought something
REMEDY: Final = "see whether the source is whole; its records stay until you release their deletion"


def shortfall(view: View, origin: int, listed: int, *, everything: bool) -> str:
    """What is suspicious about a complete run that listed so many records; empty if nothing is.

    `everything`: it listed all records. An incremental list may be empty: it is compared with those before.
    """
    if everything:
        held = view.totals().get(origin, (0, 0))[0]
        if held >= FEWEST and listed < SHARE * held:
            return f"lists {listed:,} of the {held:,} records held from it"
        return ""
    return "" if listed else _unusual_silence(view.runs(origin, EMPTY + USUAL, "complete"))


def _unusual_silence(before: Sequence[RunEntry]) -> str:
    """Whether an empty run ends a row of runs that usually brought something; newest first, without it."""
    brought = [int(run.detail.get("records", 0)) + int(run.detail.get("deleted", 0)) for run in before]
    recent, usual = brought[: EMPTY - 1], brought[EMPTY - 1 : EMPTY - 1 + USUAL]
    if any(recent) or len(usual) < USUAL or sum(map(bool, usual)) < USUAL - 1:
        return ""
    return f"listed nothing in its last {EMPTY} runs; before, usually about {int(median(usual)):,} records"


def report(store: Store, source: str, warning: str) -> None:
    """Raise the alert about a source, or take it back."""
    with store.read() as view:
        raised = any(
            alert.kind == ALERT and alert.source == source for alert in view.alerts(acknowledged=True)
        )
    if warning or raised:
        with store.write() as tx:
            if warning:
                tx.alert(ALERT, source, "", warning, REMEDY)
            else:
                tx.resolve_alerts(ALERT, source, [""])
