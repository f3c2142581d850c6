"""What was decided of sources outside the settings file, at the desk or by  indlet harvest URL.

It outlives a restart.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace

import orjson

from indlet.model import JsonMapping, JsonObject
from indlet.settings import Access, Source
from indlet.store.contract import TableReader, Transaction, View
from indlet.store.kept_tables import SOURCE_DECISIONS, SourceDecision


def read(tables: TableReader) -> JsonObject:
    """By name: sources that were `added`, which ones are `paused`, and what was `changed` of the file's.

    Changes are kept under the name that the file has; a new name is one of them, and so is `removed`.
    """
    found: JsonObject = {"added": {}, "paused": {}, "changed": {}}
    for row in tables.select(SOURCE_DECISIONS):
        found[row.kind][row.name] = orjson.loads(row.detail)
    return found


def keep(tx: Transaction, desk: JsonMapping) -> None:
    """Store what differs from what is stored."""
    rows = {
        SourceDecision(kind, name, orjson.dumps(detail).decode())
        for kind, sources in desk.items()
        for name, detail in sources.items()
    }
    known = set(tx.select(SOURCE_DECISIONS))
    for row in known - rows:
        tx.remove(SOURCE_DECISIONS, kind=row.kind, name=row.name)
    tx.upsert(SOURCE_DECISIONS, rows - known)


def name_in_file(desk: JsonObject, name: str) -> str:
    """The name that the settings file has for the source that is called `name` here."""
    renamed = (
        key
        for key, change in desk["changed"].items()
        if change.get("name") == name and not change.get("removed")
    )
    return next(renamed, name)


def added(view: View) -> dict[str, Source]:
    """The sources that are on the schedule without being in the settings file, by name."""
    return {name: source_from(raw) for name, raw in read(view)["added"].items()}


def source_from(raw: JsonMapping) -> Source:
    """A source from what is stored of it; fields of other versions are ignored."""
    known = {f.name for f in fields(Source)} - {"access"}
    source = Source(**{name: value for name, value in raw.items() if name in known})
    rules = raw.get("access") or {}
    tokens = rules.get("tokens") or ()  # a number where only the rules' kind is stored
    access = Access(tuple(rules.get("networks") or ()), () if isinstance(tokens, int) else tuple(tokens))
    return replace(source, access=access)


def add(tx: Transaction, name: str, source: Source) -> None:
    """Put a source on the schedule that a command has harvested; one that is there gets credentials only."""
    desk = read(tx)
    kept = desk["added"].setdefault(name, asdict(source))
    kept.update({k: v for k in ("token", "user", "password") if (v := getattr(source, k))})
    keep(tx, desk)
