"""Deletions that a harvest brings wait until its list has ended: then it is known how many they are.

They are kept in the store with the page that brought them, so a run that is killed loses none. In all
decisions between copies a deletion that waits counts as done; only what is shown lags behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson

from indlet.model import Packed, Record
from indlet.service.harvest.cache import Placed
from indlet.settings import Harvest
from indlet.store import Store, Transaction, View, withheld

Kept = dict[str, Record | Packed]  # what stands of each identifier, the last word on it


class DeletionGuard:
    """Of one run: takes deletions of live records out of what is written, and carries them out at the end."""

    def __init__(self, store: Store, harvest: Harvest) -> None:
        self._store, self._harvest = store, harvest
        self._touched = set[str]()  # names of the sources whose records this run deletes
        self.reviewing = ""  # name of the source, if it has reviewed the deletions that it lists

    def write(self, tx: Transaction, view: View, name: str, origin: int, came: Kept) -> list[Record | Packed]:
        """Make deletions of live records wait; the rest, to be put."""
        deleted = [identifier for identifier, record in came.items() if record.deleted]
        live = view.live(origin, deleted) if deleted else set()
        if live:
            self._touched.add(name)
            reviewed = {withheld.REVIEWED: True} if name == self.reviewing else {}
            tx.withhold(origin, {i: _detail(record) | reviewed for i, record in came.items() if i in live})
        elif not view.withheld_counts().get(origin):
            return list(came.values())
        back = [identifier for identifier in came if identifier not in live]
        tx.drop_withheld(origin, back)
        return [came[identifier] for identifier in back]

    def settle(self, own: str) -> tuple[int, int]:
        """At the end of a list: (deletions carried out, deletions that wait for an operator)."""
        done = waiting = 0
        with self._store.read() as view:
            origins = [o for o in view.origins("source") if o.name in {own, *self._touched}]
        for origin in origins:
            if adopted := origin.state.get("adopted"):  # this node speaks for the source's records
                with self._store.write() as tx:
                    tx.keep_withheld(origin.id, adopted["by"])
                continue
            carried, held = withheld.settle(
                self._store, origin, self._harvest.withhold_share, self._harvest.withhold_records
            )
            done, waiting = done + carried, waiting + held
        self._touched.clear()
        return done, waiting


def latest(records: Sequence[Record | Packed]) -> Kept:
    """The last of each identifier, in the order in which these came."""
    found: Kept = {record.identifier: record for record in records}
    if len(found) == len(records):
        return found
    found.clear()
    for record in records:
        found.pop(record.identifier, None)
        found[record.identifier] = record
    return found


def by_source(placed: Iterable[Placed]) -> dict[tuple[str, str], Kept]:
    """What was decided, by the name and URL of the origin."""
    found: dict[tuple[str, str], list[Record]] = {}
    for name, url, record in placed:
        found.setdefault((name, url), []).append(record)
    return {key: latest(records) for key, records in found.items()}


def _detail(record: Record | Packed) -> dict[str, object]:
    if isinstance(record, Packed):
        return {"sets": record.sets.split(), "properties": orjson.loads(record.properties or b"{}")}
    return {"sets": list(record.sets), "properties": dict(record.properties)}
