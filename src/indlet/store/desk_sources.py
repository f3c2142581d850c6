"""What was decided of sources outside the settings file, at the desk or by  indlet harvest URL.

It is one entry of the store, which outlives a restart.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Final

import orjson

from indlet.model import JsonMapping, JsonObject
from indlet.settings import Access, Source
from indlet.store.contract import Transaction, View

KEY: Final = "desk"


def read(raw: bytes | str | None) -> JsonObject:
    """By name: sources that were `added`, which ones are `paused`, and what was `changed` of the file's.

    Changes are kept under the name that the file has; a new name is one of them, and so is `removed`.
    """
    kept = orjson.loads(raw) if isinstance(raw, bytes | str) else {}
    return {part: dict(kept.get(part, {})) for part in ("added", "paused", "changed")}


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
    return {name: source_from(raw) for name, raw in read(view.meta(KEY))["added"].items()}


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
    desk = read(tx.meta_value(KEY, None))
    kept = desk["added"].setdefault(name, asdict(source))
    kept.update({k: v for k in ("token", "user", "password") if (v := getattr(source, k))})
    tx.meta(KEY, orjson.dumps(desk))
