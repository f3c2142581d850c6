"""What the desk has decided of sources: one entry of the store, which outlives a restart."""

from __future__ import annotations

from typing import Final

import orjson

from indlet.model import JsonObject

KEY: Final = "desk"


def read(raw: bytes | str | None) -> JsonObject:
    """By name: sources that were `added`, which ones are `paused`, and what was `changed` of the file's."""
    kept = orjson.loads(raw) if isinstance(raw, bytes | str) else {}
    return {part: dict(kept.get(part, {})) for part in ("added", "paused", "changed")}
