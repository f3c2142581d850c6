"""A record as it will stand in the store, and the digest that tells whether it is there already."""

from __future__ import annotations

from hashlib import blake2b, sha256

import orjson

from indlet.model import Packed, Record


def resource_hash(resource: str) -> int:
    """A resource's key as a signed 64-bit number, never 0; 0 for no key."""
    if not resource:
        return 0
    return int.from_bytes(blake2b(resource.encode(), digest_size=8).digest(), "big", signed=True) or 1


def packed(record: Record) -> Packed:
    """The record as it will stand in the store."""
    sets = " ".join(record.sets)
    if record.deleted:
        properties = orjson.dumps(record.properties)
        # What a deletion says beside its being one (its origin's version of it) makes it another deletion.
        digest = sha256(properties).digest()[:12] if record.properties else b""
        return Packed(record.identifier, 1, sets, "", 0, 0, digest, b"{}", properties, b"", None, None)
    vector = record.vector
    metadata, properties = orjson.dumps(record.metadata), orjson.dumps(record.properties)
    terms, positions, length, language = (
        (vector.packed, vector.positions, vector.length, vector.language) if vector else (None, None, 0, "")
    )
    resource = resource_hash(record.resource)
    digest = fingerprint(sets, language, length, resource, metadata, properties, record.raw, terms, positions)
    return Packed(
        record.identifier, 0, sets, language, length, resource, digest,
        metadata, properties, record.raw, terms, positions,
    )  # fmt: skip


def fingerprint(
    sets: str, language: str, length: int, resource: int,
    metadata: bytes, properties: bytes, raw: bytes, terms: bytes | None, positions: bytes | None,
) -> bytes:  # fmt: skip
    """What tells whether a record is the one that is there already."""
    vector, places = b"-" if terms is None else terms, b"-" if positions is None else positions
    head = (
        f"{sets}|{language}|{length} {resource} {len(metadata)} {len(properties)} {len(raw)} {len(vector)}|"
    )
    # SHA-256, because processors have it built in.
    return sha256(b"".join((head.encode(), metadata, properties, raw, vector, places))).digest()[:12]
