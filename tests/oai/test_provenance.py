"""Provenance and versions, written and read back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from indlet.oai.provenance import Hop, Stated, Version, read, write, write_version

WORD = st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=12)
HOPS = st.lists(st.builds(Hop, WORD, WORD, WORD, WORD, WORD, st.booleans()), min_size=1, max_size=5)
STATED = st.builds(
    Stated,
    WORD,
    st.builds(Version, st.integers(0, 99), WORD, st.booleans(), st.integers(0, 99)),
    st.lists(WORD, max_size=3).map(tuple),
)


@given(HOPS, STATED)
def test_what_is_written_is_read(hops: list[Hop], stated: Stated) -> None:
    assert read([write(hops), write_version(stated)]) == (tuple(hops), stated)


@given(HOPS)
def test_without_a_version_the_origin_is_the_innermost_hop(hops: list[Hop]) -> None:
    _, stated = read([write(hops)])
    assert stated == Stated(hops[-1].base_url, Version(0, hops[-1].datestamp), ())


def test_what_cannot_be_read_is_absent() -> None:
    wrong = b'<version xmlns="urn:indlet:version:1.0" origin="x" datestamp="y" epoch="-1"/>'
    assert read([b"<a", b"<a/>", wrong]) == ((), None)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_a_fault(container: bytes) -> None:
    read([container, b"<provenance xmlns='http://www.openarchives.org/OAI/2.0/provenance'>" + container])
