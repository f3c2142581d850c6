"""A record as it will stand in the store, and the digest that tells whether it is there already."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import orjson

from indlet import _core
from indlet._core import resource_hash
from indlet.model import Packed, Record, TermVector


def packed(record: Record | Packed) -> Packed:
    """The record as it will stand in the store."""
    if isinstance(record, Packed):
        return record
    if record.deleted:
        properties = orjson.dumps(record.properties)
        # What a deletion says beside its being one (its origin's version of it) makes it another deletion.
        digest = sha256(properties).digest()[:12] if record.properties else b""
        sets = " ".join(record.sets)
        return Packed(record.identifier, 1, sets, "", 0, 0, digest, b"{}", properties, b"", None, None)
    return packed_parts(
        record.identifier, record.sets, record.vector, resource_hash(record.resource),
        orjson.dumps(record.metadata), orjson.dumps(record.properties), record.raw,
    )  # fmt: skip


def packed_parts(
    identifier: str, specs: Sequence[str], vector: TermVector | None, resource: int,
    metadata: bytes, properties: bytes, raw: bytes,
) -> Packed:  # fmt: skip
    """The same for a record in its parts, its metadata and properties as JSON."""
    sets = " ".join(specs)
    terms, positions, length, language = (
        (vector.packed, vector.positions, vector.length, vector.language) if vector else (None, None, 0, "")
    )
    parts = metadata, properties, raw, terms, positions
    digest = _core.record_digest((sets, language, length, resource), parts)
    return Packed(identifier, 0, sets, language, length, resource, digest, *parts)


def sets_with_parents(specs: str) -> list[str]:
    """The sets of a record and all sets above them, each once."""
    found: dict[str, None] = {}
    for spec in specs.split():
        parts = spec.split(":")
        found.update(dict.fromkeys(":".join(parts[: depth + 1]) for depth in range(len(parts))))
    return list(found)
