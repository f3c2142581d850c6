"""The digest that tells whether a record is stored already: stores keep it, so it never changes."""

from __future__ import annotations

from hashlib import sha256

import pytest

from indlet.model import Packed, Record, TermVector
from indlet.oai.read import read
from indlet.store import packed

PAGE = (
    b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords><record><header>'
    b"<identifier>oai:x:1</identifier><datestamp>2024-01-01</datestamp><setSpec>a</setSpec>"
    b"<setSpec>b:c</setSpec></header><metadata><dc><title>Air</title></dc></metadata>%b</record>"
    b"</ListRecords></OAI-PMH>"
)
INDEX = b'<index><terms xmlns="urn:indlet:tf:1.0" length="3" lang="en"><t f="3">air</t></terms></index>'


def expected(made: Packed) -> bytes:
    vector = b"-" if made.vector is None else made.vector
    positions = b"-" if made.positions is None else made.positions
    parts = made.metadata, made.properties, made.raw, vector
    sizes = " ".join(str(len(part)) for part in parts)
    head = f"{made.sets}|{made.language}|{made.length} {made.resource} {sizes}|".encode()
    return sha256(b"".join((head, *parts, positions))).digest()[:12]


@pytest.mark.parametrize("index", [b"", INDEX])
def test_the_reader_of_pages_makes_the_digest_that_stores_hold(index: bytes) -> None:
    (item,) = read(PAGE % index).items
    assert item.packed is not None
    assert item.packed.digest == expected(item.packed)
    assert (item.packed.vector is None) == (index == b"")


@pytest.mark.parametrize("vector", [None, TermVector(b"1 air", 1, b"\x00", "en")])
def test_a_record_has_the_same_digest_however_it_was_made(vector: TermVector | None) -> None:
    made = packed(
        Record("oai:x:1", {"title": ["Air"]}, vector, ("a", "b"), raw=b"<dc/>", resource="doi:10.1/x")
    )
    assert made.digest == expected(made)
