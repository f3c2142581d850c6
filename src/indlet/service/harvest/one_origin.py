"""An origin has one name here, however many sources have its address: its records are kept once.

An origin is identified by its key (`mesh.origin_key`). One that was met through other nodes takes the name
under which it becomes a source; one that was harvested under another name takes the name that the settings
give it. Of two republished sources with one address, one keeps the records, and is harvested; of two others,
an alert says that their records are held twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import islice
from typing import Final

import orjson

from indlet.model import JsonObject, Stored
from indlet.oai.identifier import set_spec
from indlet.oai.provenance import FROM, version_of
from indlet.service.harvest.cache import KEPT_AS, digest_of, form_of, held_copy, permit_to_decide
from indlet.service.harvest.mesh import Taken, origin_key, passed_on
from indlet.service.harvest.negotiate import source_name
from indlet.settings import Settings, Source
from indlet.store import Origin, Store, Transaction, View, desk_sources, withheld

TWICE: Final = "twice"  # alerts about an origin under two names
SILENT: Final = "silent"  # alerts about a source that no longer answers
_BATCH: Final = 500
# Sources that differ in one of these do not bring the same records.
_PARTS: Final = ("set", "from_", "until")
_SELECTION: Final = (*((part, "") for part in _PARTS), ("metadata", "oai_dc"))


def claim(store: Store, name: str, url: str) -> None:
    """Give the origin that was met through other nodes the name under which it is a source from now on.

    It is told by its key. Without this its records would be held twice, under two names.
    """
    key = origin_key(url)

    def met(view: View) -> Origin | None:
        known = [o for o in view.origins("source") if origin_key(str(o.settings.get("url", ""))) == key]
        return None if any(o.name == name for o in known) else next(iter(known), None)

    with store.read() as view:
        if view.origin("source", name) is not None:
            return  # as at every run but the first
        if (found := met(view)) is None or "learned_from" not in found.settings:
            return
    with permit_to_decide(store), store.read() as view, store.write() as tx:
        if (origin := met(view)) is not None:
            rename_source(view, tx, origin, name)


def sources_in_file(settings: Settings, desk: JsonObject) -> dict[str, Source]:
    """The sources of the settings file, as it describes them, by the names that they have here.

    The desk (`desk_sources.read`) can rename and remove them. A name that the file gives to another source
    is that one's.
    """
    in_file = {source_name(source): source for source in settings.source}
    found = {}
    for name, source in in_file.items():
        change = desk["changed"].get(name, {})
        wanted = str(change.get("name") or name)
        if not change.get("removed"):
            renamed = wanted != name and wanted not in in_file
            found[wanted if renamed else name] = replace(source, name=wanted) if renamed else source
    return found


def configured_sources(store: Store, settings: Settings) -> dict[str, Source]:
    """The sources of the settings file (`sources_in_file`), with what the desk of a store decided."""
    with store.read() as view:
        return sources_in_file(settings, desk_sources.read(view))


def keep_renamed(store: Store, settings: Settings) -> None:
    """Let sources that the settings call by a new name keep the records, state and pauses of the old name.

    A source is renamed if its name is new here, and an origin that the settings do not name has its address
    and brings the same records: one of an earlier version of the settings, one harvested by a command, or one
    added at the desk.
    """
    with store.read() as view:
        desk = desk_sources.read(view)
        if not list(_new_names(view, sources_in_file(settings, desk), desk)):
            return
    with permit_to_decide(store), store.read() as view, store.write() as tx:
        desk = desk_sources.read(tx)
        for origin, name in list(_new_names(view, sources_in_file(settings, desk), desk)):
            if not rename_source(view, tx, origin, name):
                continue
            desk["added"].pop(origin.name, None)
            if (paused := desk["paused"].pop(origin.name, None)) is not None:
                desk["paused"].setdefault(name, paused)
            changed = desk["changed"].pop(desk_sources.name_in_file(desk, origin.name), None)
            if changed is not None:
                changed.pop("name", None)  # the file has the last word
                desk["changed"].setdefault(name, changed)
        desk_sources.keep(tx, desk)


def _new_names(view: View, named: Mapping[str, Source], desk: JsonObject) -> Iterator[tuple[Origin, str]]:
    origins = view.origins("source")
    known = {origin.name for origin in origins}
    left = [
        origin
        for origin in origins
        if origin.name not in named
        and "learned_from" not in origin.settings
        and KEPT_AS not in origin.settings
    ]

    def brings(origin: Origin, source: Source) -> bool:
        changed = desk["changed"].get(desk_sources.name_in_file(desk, origin.name), {})
        as_harvested = desk_sources.source_from({**asdict(source), **changed})
        return brings_same(origin, source) or brings_same(origin, as_harvested)

    for name, source in named.items():
        found = None if name in known else next((o for o in left if brings(o, source)), None)
        if found is not None:
            left.remove(found)
            yield found, name


def rename_source(view: View, tx: Transaction, origin: Origin, name: str) -> bool:
    """Give a source another name, with its records and alerts; False if the name is or was another's."""
    if not tx.rename_origin("source", origin.name, name):
        return False
    before = set_spec((FROM, origin.name))
    copies = (s for s in view.changes() if s.origin == origin.id and before in s.sets.split())
    tx.name_set(origin.id, set_spec((FROM, name)), name)
    _put_under(tx, origin.id, name, origin.name, copies)
    for kind in (SILENT, TWICE, withheld.ALERT):  # which name the source
        tx.resolve_alerts(kind, origin.name, [""])
    if gone := view.withheld_counts().get(origin.id, (0, 0))[0]:
        withheld.raise_alert(tx, name, gone, view.totals().get(origin.id, (0, 0))[0])
    return True


def brings_same(origin: Origin, source: Source) -> bool:
    """Whether an origin has the address of a source, and was asked for the same records."""
    url, about = str(origin.settings.get("url", "")), source.public()
    return (
        origin_key(url) == origin_key(source.url)
        and url.partition("?")[2] == source.url.partition("?")[2]
        and all(origin.settings.get(part, usual) == about[part] for part, usual in _SELECTION)
    )


def same_source(view: View, name: str, source: Source) -> Origin | None:
    """An earlier source under another name that holds the same records, which are then held twice.

    A copy to republish next to one that is only searched is deliberate.
    """
    mine = view.origin("source", name)
    totals = view.totals()
    for origin in view.origins("source"):
        if origin.name == name or "learned_from" in origin.settings or KEPT_AS in origin.settings:
            continue
        if bool(origin.settings.get("republish")) != source.republish:
            continue
        earlier = mine is None or origin.id < mine.id
        if earlier and totals.get(origin.id, (0, 0))[0] and brings_same(origin, source):
            return origin
    return None


def source_ranks(store: Store, settings: Settings) -> dict[str, int]:
    """The sources that are harvested by themselves: 0 for one of the settings, 1 for one added at the desk.

    A paused one is not among them.
    """
    with store.read() as view:
        kept = desk_sources.read(view)
    found = {name: (1, bool(raw.get("paused"))) for name, raw in kept["added"].items()}
    found |= {name: (0, source.paused) for name, source in sources_in_file(settings, kept).items()}
    return {name: rank for name, (rank, paused) in found.items() if not kept["paused"].get(name, paused)}


def keeper(store: Store, name: str, source: Source, ranks: Mapping[str, int]) -> str:
    """The name under which the records of a republished source are kept.

    That is its own, unless another source has its address and brings the same records: then that of the one
    with the least rank (`source_ranks`), of these the one that was first. One that was removed, or only met
    through other nodes, comes last, for nobody harvests it. Copies under other names (of a source that is no
    more, say) are brought together there.
    """
    with store.read() as view:
        same = _same(view, name, source, ranks) if source.republish else []
        counts = view.totals() if len(same) > 1 else {}
        twin = None if source.republish else same_source(view, name, source)
        raised = any(alert.kind == TWICE and alert.source == name for alert in view.alerts(acknowledged=True))

    def order(origin: Origin) -> tuple[int, int]:
        unasked = origin.name != name and ("learned_from" in origin.settings or "removed" in origin.state)
        return ranks.get(origin.name, 3 if unasked else 2), origin.id

    kept = min(same, key=order).name if same else name
    for other in same:
        if other.name != kept and (KEPT_AS not in other.settings or counts.get(other.id, (0,))[0]):
            _bring_together(store, other, next(o for o in same if o.name == kept))
    with store.read() as view:
        mine = view.origin("source", name)
    with store.write() as tx:
        if kept != name:
            tx.origin("source", name, {**source.public(), "republish": False, KEPT_AS: kept})
            if not raised:
                tx.alert(
                    TWICE, name, "", f"the source {kept} has the same address, and keeps the records of both",
                    "keep one of the two in the settings; remove the other at the desk",
                )  # fmt: skip
            return kept
        tx.origin("source", name, source.public())
        if twin is not None:
            tx.alert(
                TWICE, name, "", f"the source {twin.name} has the same address: their records are held twice",
                "keep one of the two in the settings; remove the other at the desk, with its records",
            )  # fmt: skip
        elif raised:
            tx.resolve_alerts(TWICE, name, [""])
        if mine is not None and (KEPT_AS in mine.settings or (name in ranks and "removed" in mine.state)):
            # The other one is gone, or this one is back: all is harvested anew.
            left = {k: v for k, v in mine.state.items() if k not in ("marks", "run", "removed")}
            tx.state(mine.id, left)
    return kept


def _same(view: View, name: str, source: Source, ranks: Mapping[str, int]) -> list[Origin]:
    """The origin of a republished source, and those that bring the same records.

    A source that brings all records takes over those of a set that nobody harvests any more.
    """
    key, about = origin_key(source.url), source.public()
    whole = name in ranks and not any(about[part] for part in _PARTS)

    def alike(origin: Origin) -> bool:
        apart = [part for part, usual in _SELECTION if origin.settings.get(part, usual) != about[part]]
        return not apart or (whole and origin.name not in ranks and "metadata" not in apart)

    return [
        origin
        for origin in view.origins("source")
        if origin.name == name
        or (
            (origin.settings.get("republish") or KEPT_AS in origin.settings)
            and origin_key(str(origin.settings.get("url", ""))) == key
            and alike(origin)
        )
    ]


def _bring_together(store: Store, other: Origin, kept: Origin) -> None:
    """The newest copy of each record under one name; the other serves no record from then on."""
    with permit_to_decide(store), store.read() as view, store.write() as tx:
        tx.origin("source", other.name, {**other.settings, "republish": False, KEPT_AS: kept.name})
        if "adopted" in other.state:  # this node speaks for the records, whatever they are kept as
            tx.state(kept.id, {**kept.state, "adopted": other.state["adopted"]})
            tx.state(other.id, {k: v for k, v in other.state.items() if k != "adopted"})
        theirs = (stored for stored in view.changes() if stored.origin == other.id)
        newer = (stored for stored in theirs if _newer(view, kept, stored))
        _put_under(tx, kept.id, kept.name, other.name, newer)
        if not view.withheld(kept.id):  # what an operator keeps stays, whatever its origin says
            rows = [row for row in view.withheld(other.id) if row.kept_by]
            for by in {row.kept_by for row in rows}:
                tx.withhold(kept.id, {row.identifier: row.detail for row in rows if row.kept_by == by})
                tx.keep_withheld(kept.id, by)
        tx.forget(other.id)
        tx.resolve_alerts(withheld.ALERT, other.name, [""])


def _newer(view: View, kept: Origin, stored: Stored) -> bool:
    """Whether a copy is to take the place of the one that is kept, if there is one."""
    properties: JsonObject = orjson.loads(stored.properties or b"{}")
    held = held_copy(view, kept.id, stored.identifier)
    form = form_of(stored, properties)
    return passed_on(held, version_of(properties), digest_of(stored), form) is Taken.KEEP


def _put_under(tx: Transaction, origin: int, name: str, before: str, copies: Iterable[Stored]) -> None:
    """Keep copies under an origin, in its set instead of that of the name before."""
    old, new = set_spec((FROM, before)), set_spec((FROM, name))
    records = (
        replace(stored.record, sets=tuple(new if spec == old else spec for spec in stored.sets.split()))
        for stored in copies
    )
    while batch := list(islice(records, _BATCH)):
        tx.put(origin, batch)
