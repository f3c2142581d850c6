"""Who speaks for a record: its originator, who may mark it deleted, or the node that adopted its source."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from indlet.errors import StoreError
from indlet.model import JsonObject, Record, Stored
from indlet.oai.dates import written
from indlet.oai.provenance import version_of
from indlet.store import Origin, Store, kept_tables


class Adoption(NamedTuple):
    """A source whose records this node has adopted: `confirmed` is when its origin last gave them."""

    source: str
    by: str
    at: str
    confirmed: str


def adopt(store: Store, source: str, by: str) -> Adoption:
    """Keep a source's records for good, whatever becomes of their origin, and speak for them."""
    adopted = {"by": by, "at": written(int(time.time()))}
    with _not_harvested(store, source) as origin, store.write() as tx:
        tx.state(origin.id, {**origin.state, "adopted": adopted})
        tx.keep_withheld(origin.id, by)
        for kind in ("deletions", "silent"):
            tx.resolve_alerts(kind, source, [""])
    return Adoption(source, by, adopted["at"], confirmed(store, origin))


def give_back(store: Store, source: str) -> None:
    """The origin of a source is there again, and speaks for its records."""
    with _not_harvested(store, source) as origin:
        if "adopted" not in origin.state:
            raise StoreError(f"the source {source!r} is not adopted; see  indlet sources")
        with store.write() as tx:
            tx.state(origin.id, {key: value for key, value in origin.state.items() if key != "adopted"})


def confirmed(store: Store, origin: Origin) -> str:
    """When the records of a source were last confirmed: its last complete harvest, or that of the node which
    passes them on; empty if never."""
    by = origin
    if "confirmed" not in by.state and (way := origin.settings.get("learned_from")):
        with store.read() as view:
            by = view.origin("source", str(way)) or origin
    return str(by.state.get("confirmed", ""))


def withdraw(store: Store, identifier: str, by: str) -> str:
    """Mark a record as deleted that is this node's own, or that it has adopted; the name of its origin.

    A file that still holds it does not bring it back.
    """
    stored, origin = _live(store, identifier)
    if origin.kind == "source" and "adopted" not in origin.state:
        raise StoreError(
            f"{identifier} is of {origin.name}, which alone deletes it; if that is gone for good, "
            f"adopt its records first:  indlet adopt {origin.name}"
        )
    properties = orjson.loads(stored.properties or b"{}")
    now = written(int(time.time()))
    with store.write() as tx:
        if origin.kind == "source":
            # A later epoch: everybody else who has the record takes it for the later word.
            version = [version_of(properties).epoch + 1, now, True, 0]
            gone = Record(
                identifier, sets=tuple(stored.sets.split()), deleted=True, properties={"version": version}
            )
            tx.put(origin.id, [gone])
        else:
            path = str(properties.get("path", ""))
            tx.upsert(
                kept_tables.WITHDRAWN, [kept_tables.WithdrawnMark(origin.id, identifier, by, now, path)]
            )
            tx.delete(origin.id, [identifier])
    return origin.name


def restore(store: Store, identifier: str) -> str:
    """Take the mark off a record of this node's own; the next crawl brings it back."""
    with store.read() as view:
        for origin in view.origins("hierarchy"):
            if marks := view.select(kept_tables.WITHDRAWN, origin=origin.id, identifier=identifier):
                break
        else:
            raise StoreError(f"{identifier!r} is not marked as deleted here; nothing was changed")
    with store.write() as tx:
        tx.remove(kept_tables.WITHDRAWN, origin=origin.id, identifier=identifier)
        tx.drop_files(origin.id, [mark.path for mark in marks])  # so that it is read again
    return origin.name


def marked(store: Store) -> list[JsonObject]:
    """The records of this node's own that are marked as deleted, the latest first."""
    with store.read() as view:
        found = [
            {"by": mark.marked_by, "at": mark.at, "path": mark.path, "identifier": mark.identifier}
            for origin in view.origins("hierarchy")
            for mark in view.select(kept_tables.WITHDRAWN, origin=origin.id)
        ]
    return sorted(found, key=lambda mark: str(mark["at"]), reverse=True)


@contextlib.contextmanager
def _not_harvested(store: Store, name: str) -> Iterator[Origin]:
    """A source as it is now, and while no run is at it: that would write the state that it began with over
    ours at its next commit."""
    with store.job(f"harvest-{_source(store, name).id}"):
        yield _source(store, name)


def _live(store: Store, identifier: str) -> tuple[Stored, Origin]:
    with store.read() as view:
        origins = {o.id: o for o in view.origins()}
        stored = view.get(identifier)
    if stored is None or stored.deleted:
        raise StoreError(f"there is no live record {identifier!r} here; search for its identifier")
    return stored, origins[stored.origin]


def _source(store: Store, name: str) -> Origin:
    with store.read() as view:
        origin = view.origin("source", name)
    if origin is None:
        raise StoreError(f"there is no source {name!r}; see  indlet sources")
    return origin
