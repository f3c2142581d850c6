"""What people decided of pairs of records: kept with the store, and reversible.

A decision belongs to two OAI identifiers, whichever comes first. The latest one counts; earlier ones stay
readable. "open" takes a decision back. No record is changed or deleted by any of them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

from indlet.errors import SettingsError, UnknownRecord
from indlet.store import Meta, Readable, Store

CHOICES: Final = ("same", "different", "later", "open")
KEY: Final = "duplicates"
_HISTORY: Final = 20  # decisions of one pair that are kept


@dataclass(frozen=True, slots=True)
class PairDecision:
    decision: str  # one of CHOICES
    at: str
    by: str = ""


History = dict[tuple[str, str], list[PairDecision]]


def pair_of(one: str, other: str) -> tuple[str, str]:
    """Two identifiers in the order in which a pair is kept."""
    return (one, other) if one < other else (other, one)


def decide(
    store: Store, one: str, other: str, decision: str, *, by: str = "", now: datetime | None = None
) -> None:
    """Keep a decision about two records, after those that were made before."""
    if decision not in CHOICES:
        raise SettingsError(f"{decision}: no decision about duplicates; use one of {', '.join(CHOICES)}")
    if one == other:
        raise SettingsError(f"{one}: a record is no duplicate of itself; name two records")
    with store.read() as view:
        for identifier in (one, other):
            if view.get(identifier) is None:
                raise UnknownRecord(f"{identifier}: no record of this store; indlet duplicates lists pairs")
    made = PairDecision(decision, (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"), by[:200])
    with store.write() as tx:
        kept = _read(tx.meta_value(KEY, b""))
        pair = pair_of(one, other)
        kept[pair] = [*kept.get(pair, []), made][-_HISTORY:]
        tx.meta(KEY, _written(kept))


def decisions(store: Readable) -> History:
    """Every pair that was decided on, with its decisions, the one that counts last."""
    with store.read() as view:
        return decisions_in(view)


def decisions_in(view: Meta) -> History:
    return _read(view.meta(KEY))


def current(history: History, one: str, other: str) -> PairDecision | None:
    """The decision that counts; None if there is none or it was taken back."""
    made = history.get(pair_of(one, other))
    return made[-1] if made and made[-1].decision != "open" else None


def _read(form: bytes | str | None) -> History:
    return {
        (one, other): [PairDecision(**each) for each in made]
        for one, other, made in orjson.loads(form or b"[]")
    }


def _written(kept: History) -> bytes:
    return orjson.dumps([[*pair, [asdict(each) for each in made]] for pair, made in sorted(kept.items())])
