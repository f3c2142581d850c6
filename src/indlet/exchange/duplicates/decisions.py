"""What people decided of pairs of records: kept with the store, reversible, and exchanged between nodes.

A decision belongs to two OAI identifiers, whichever comes first. The latest one counts; earlier ones stay
readable. "open" takes a decision back. No record is changed or deleted by any of them.

What other nodes decided is kept beside it, the last decision of each node: `docs/mesh.md` says what counts.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

import orjson

from indlet.errors import SettingsError, UnknownRecord
from indlet.store import Meta, Readable, Store

CHOICES: Final = ("same", "different", "later", "open")
KEY: Final = "duplicates"
ELSEWHERE: Final = "duplicates-elsewhere"
OWN_ID: Final = "duplicates-node"  # what this node is called in its decisions, whatever its address
KEPT: Final = 20_000  # decisions of other nodes that are kept, and decisions that are given out
_HISTORY: Final = 20  # decisions of one pair that are kept
_NODES: Final = 50  # of other nodes about one pair, by way of one source


@dataclass(frozen=True, slots=True)
class PairDecision:
    decision: str  # one of CHOICES
    at: str
    by: str = ""
    node: str = ""  # the base URL of the node where it was made; empty: here
    revision: int = field(default=0, compare=False)  # of those that a node made within one second
    node_id: str = field(default="", compare=False)  # the node by a name that outlives its address
    via: str = field(default="", compare=False)  # the source that told us

    @property
    def order(self) -> tuple[str, int, str, str, str]:
        """Of two decisions that one node made about one pair, the greater is the later one."""
        return self.at, self.revision, self.decision, self.by, self.node

    def same_node(self, other: PairDecision) -> bool:
        """Whether one node made both: by its id or, of a node that gives none, by its address."""
        return (self.node_id or self.node) == (other.node_id or other.node)


Pair = tuple[str, str]
History = dict[Pair, list[PairDecision]]


def pair_of(one: str, other: str) -> Pair:
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
    at = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    with store.write() as tx:
        kept = _read(tx.meta_value(KEY, b""))
        before = kept.get(pair_of(one, other), [])
        revision = 0
        if before and before[-1].at >= at:  # within one second, or after the clock was set back
            at, revision = before[-1].at, before[-1].revision + 1
        tx.meta_default(OWN_ID, secrets.token_hex(8).encode())
        made = PairDecision(decision, at, by[:200], revision=revision)
        kept[pair_of(one, other)] = [*before, made][-_HISTORY:]
        tx.meta(KEY, _written(kept))


def decisions(store: Readable) -> History:
    """Every pair that was decided on here, with its decisions, the one that counts last."""
    with store.read() as view:
        return decisions_in(view)


def decisions_in(view: Meta) -> History:
    return _read(view.meta(KEY))


def own_id(view: Meta) -> str:
    """What this node is called in its decisions; empty as long as it has made none."""
    return bytes(view.meta(OWN_ID) or b"").decode()


def elsewhere_in(view: Meta) -> History:
    """Every pair that was decided on at other nodes, with the last decision of each node."""
    return _read(view.meta(ELSEWHERE))


def take(store: Store, told: Iterable[tuple[Pair, PairDecision]]) -> int:
    """Keep the decisions of other nodes that are later than what is known of them; how many these are."""
    with store.write() as tx:
        kept = _read(tx.meta_value(ELSEWHERE, b""))
        if taken := merge(kept, told):
            tx.meta(ELSEWHERE, _written(kept))
    return taken


def merge(kept: History, told: Iterable[tuple[Pair, PairDecision]]) -> int:
    """Put decisions into what is kept, of each node the latest; how many were new.

    The result does not depend on the order in which they come, as long as there is room. Where there is none,
    a source that has told us more than others makes room for them: its oldest decision goes.
    """
    held = Counter(one.via for made in kept.values() for one in made)
    taken = 0
    for pair, made in told:
        known = kept.get(pair, [])
        before = next((one for one in known if one.same_node(made)), None)
        if before is not None and before.order >= made.order:
            continue
        if before is None:
            if sum(one.via == made.via for one in known) >= _NODES or not _room(kept, held, made.via):
                continue
            held[made.via] += 1
        else:
            made = replace(made, via=before.via)
        rest = [one for one in kept.get(pair, ()) if one is not before]
        kept[pair] = sorted([*rest, made], key=lambda one: (one.node, one.node_id))
        taken += 1
    return taken


def _room(kept: History, held: Counter[str], via: str) -> bool:
    """Whether there is a place for one more decision of a source, after room was made for it."""
    if held.total() < KEPT:
        return True
    [(largest, most)] = held.most_common(1)
    if held[via] + 1 >= most:
        return False
    # Many at once, so that they are seldom looked for.
    of_it = [(one.at, pair, one) for pair, made in kept.items() for one in made if one.via == largest]
    of_it.sort(key=lambda found: found[:2])
    for _, pair, one in of_it[: max(1, (most - held[via]) // 4)]:
        kept[pair] = [other for other in kept[pair] if other is not one]
        if not kept[pair]:
            del kept[pair]
        held[largest] -= 1
    return True


def current(history: History, one: str, other: str) -> PairDecision | None:
    """The decision that counts of those made here; None if there is none or it was taken back."""
    made = history.get(pair_of(one, other))
    return made[-1] if made and made[-1].decision != "open" else None


def counting(own: History, elsewhere: History, one: str, other: str) -> PairDecision | None:
    """The decision that counts: ours if there is one, else that of the other nodes if they agree.

    What was taken back here is open here, whatever others say. "later" holds only where it was said.
    """
    if own.get(pair_of(one, other)):
        return current(own, one, other)
    told = [d for d in elsewhere.get(pair_of(one, other), ()) if d.decision in ("same", "different")]
    agreed = len({made.decision for made in told}) == 1
    return max(told, key=lambda made: (made.at, made.node)) if agreed else None


def _read(form: bytes | str | None) -> History:
    return {
        (one, other): [PairDecision(**each) for each in made]
        for one, other, made in orjson.loads(form or b"[]")
    }


def _written(kept: History) -> bytes:
    return orjson.dumps([[*pair, [asdict(each) for each in made]] for pair, made in sorted(kept.items())])
