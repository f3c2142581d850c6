"""A record as it will stand in the store, and the digest that tells whether it is there already."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b, sha256

import orjson

from indlet.model import Packed, Record, TermVector

_EMPTY = sha256()


def resource_hash(resource: str) -> int:
    """A resource's key as a signed 64-bit number, never 0; 0 for no key."""
    if not resource:
        return 0
    return int.from_bytes(blake2b(resource.encode(), digest_size=8).digest(), "big", signed=True) or 1


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
    digest = fingerprint(sets, language, length, resource, metadata, properties, raw, terms, positions)
    return Packed(
        identifier, 0, sets, language, length, resource, digest, metadata, properties, raw, terms, positions
    )


def fingerprint(
    sets: str, language: str, length: int, resource: int,
    metadata: bytes, properties: bytes, raw: bytes, terms: bytes | None, positions: bytes | None,
) -> bytes:  # fmt: skip
    """What tells whether a record is the one that is there already."""
    vector, places = b"-" if terms is None else terms, b"-" if positions is None else positions
    head = (
        f"{sets}|{language}|{length} {resource} {len(metadata)} {len(properties)} {len(raw)} {len(vector)}|"
    )
    # SHA-256, because processors have it built in. Part by part: for two kilobytes and more at once, hashlib
    # releases the GIL, which a thread that commits then takes for a while.
    made = _EMPTY.copy()  # sooner had than a new one
    made.update(head.encode())
    for part in (metadata, properties, raw, vector, places):
        made.update(part)
    return made.digest()[:12]
