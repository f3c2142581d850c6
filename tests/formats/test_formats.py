"""What is written is well-formed and comes back equal; what came damaged is refused, not guessed at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from indlet.errors import BadResponse
from indlet.formats import INDEX, METADATA, CommonRecord, IndexFormat, bundle
from indlet.formats.index import tf_basic, tf_boolean, tf_compact, tf_positions
from indlet.formats.metadata import oai_dc
from indlet.formats.record import Field
from indlet.model import DUBLIN_CORE, TermVector
from indlet.oai.names import TF_NAMESPACE
from indlet.oai.xml import FORBIDDEN, element

# Letters, signs that XML must escape, characters outside the basic plane; no white space, no controls.
words = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=12)
terms = words.map(lambda w: FORBIDDEN.sub("", w)).filter(lambda w: w.split() == [w])
vectors = st.builds(
    lambda f, dropped, language: TermVector.of(f, sum(f.values()) + dropped, language),
    st.dictionaries(terms, st.integers(1, 2000), max_size=20),
    st.integers(0, 50),
    st.sampled_from(["", "en", "de"]),
)
positioned = st.builds(
    lambda p: TermVector.of_positions(p, language="en"),
    st.dictionaries(terms, st.sets(st.integers(0, 2**20), min_size=1, max_size=8).map(sorted), max_size=20),
)
values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(
    lambda v: FORBIDDEN.sub("", v).strip()
)
metadata = st.dictionaries(
    st.sampled_from(DUBLIN_CORE), st.lists(values.filter(bool), min_size=1, max_size=3, unique=True)
)


@given(metadata)
def test_dublin_core_comes_back(described: dict[str, list[str]]) -> None:
    again = oai_dc.FORMAT.read(element(oai_dc.write(described)))
    assert again == CommonRecord.of(described)


@given(st.text())
def test_any_text_becomes_well_formed(value: str) -> None:
    again = oai_dc.FORMAT.read(element(oai_dc.write({"title": [value + "x"]})))
    assert again == CommonRecord.of({"title": [(FORBIDDEN.sub("", value) + "x").strip()]})


def test_dublin_core_declares_what_it_uses() -> None:
    raw = oai_dc.write({"title": ["Wings & <air>"], "rights": ["free"]})
    root = element(raw)
    assert root.tag == "{http://www.openarchives.org/OAI/2.0/oai_dc/}dc"
    assert root.get("{http://www.w3.org/2001/XMLSchema-instance}schemaLocation") == (
        "http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
    )
    assert b"<dc:title>Wings &amp; &lt;air&gt;</dc:title>" in raw


@pytest.mark.parametrize("index", [tf_basic.FORMAT, tf_compact.FORMAT], ids=lambda f: f.prefix)
@given(vector=vectors)
def test_a_vector_comes_back(index: IndexFormat, vector: TermVector) -> None:
    assert index.read(element(index.write(vector))) == vector


@given(positioned)
def test_positions_come_back(vector: TermVector) -> None:
    assert tf_positions.read(element(tf_positions.write(vector))) == vector


@given(vectors)
def test_boolean_keeps_names_and_length_and_tells_no_frequency(vector: TermVector) -> None:
    written = tf_boolean.write(vector)
    again = tf_boolean.read(element(written))
    assert again.frequencies() == dict.fromkeys(vector.frequencies(), 1)
    assert again.length == vector.length
    flat = TermVector(again.packed, vector.length, None, vector.language)
    assert tf_boolean.write(flat) == written


def test_the_forms_on_the_wire() -> None:
    vector = TermVector.of({"opera": 26, "a&b": 1, 'q"t': 1}, language="en")
    start = f'<terms xmlns="{TF_NAMESPACE}" length="28" lang="en">'
    assert tf_basic.write(vector).decode() == (
        start + '<term name="a&amp;b" freq="1"/><term name="q&quot;t" freq="1"/>'
        '<term name="opera" freq="26"/></terms>'
    )
    assert tf_compact.write(vector).decode() == (
        start + '<t f="1">a&amp;b q"t</t><t f="26">opera</t></terms>'
    )
    assert tf_boolean.write(vector).decode() == (
        start + '<term name="a&amp;b"/><term name="opera"/><term name="q&quot;t"/></terms>'
    )
    places = TermVector.of_positions({"opera": [3, 17]}, length=52, language="en")
    assert tf_positions.write(places).decode() == (
        f'<terms xmlns="{TF_NAMESPACE}" length="52" lang="en"><term name="opera" freq="2" at="3 17"/></terms>'
    )


def test_an_empty_vector_is_an_empty_element() -> None:
    for index in INDEX.values():
        assert index.read(element(index.write(TermVector(positions=b"")))).packed == b""


@pytest.mark.parametrize(
    "index", [tf_basic.FORMAT, tf_compact.FORMAT, tf_boolean.FORMAT], ids=lambda f: f.prefix
)
def test_characters_that_xml_cannot_carry_are_left_out(index: IndexFormat) -> None:
    vector = TermVector.of({"wi\x01ng": 1, "wing": 2, "\x02": 4, "air\uffff": 1, "\uff21": 1})
    again = index.read(element(index.write(vector))).frequencies()
    assert set(again) == {"wing", "air", "\uff21"}
    if index is not tf_boolean.FORMAT:
        assert again == {"wing": 3, "air": 1, "\uff21": 1}


def test_what_others_write_is_brought_to_the_canonical_form() -> None:
    loose = f'<x:terms xmlns:x="{TF_NAMESPACE}"><x:t f="2"> wing\n air </x:t><x:t f="1">wing</x:t></x:terms>'
    assert tf_compact.read(element(loose.encode())) == TermVector.of({"wing": 3, "air": 2})
    spaced = f'<terms xmlns="{TF_NAMESPACE}" length="1"><term name="two words" freq="2"/></terms>'
    assert tf_basic.read(element(spaced.encode())) == TermVector.of({"two": 2, "words": 2})


@pytest.mark.parametrize(
    ("prefix", "body"),
    [
        ("tf_basic", '<term name="a" freq="0"/>'),
        ("tf_basic", '<term name="a" freq="-1"/>'),
        ("tf_basic", '<term name="a"/>'),
        ("tf_basic", '<term name="a" freq="99999999999999999999"/>'),
        ("tf_compact", '<t f="x">a</t>'),
        ("tf_compact", "<t>a</t>"),
        ("tf_positions", '<term name="a" freq="2" at="1"/>'),
        ("tf_positions", '<term name="a" freq="2" at="2 1"/>'),
        ("tf_positions", '<term name="a" freq="1" at="-1"/>'),
        ("tf_positions", '<term name="a" freq="1"/>'),
    ],
)
def test_damaged_statistics_are_refused(prefix: str, body: str) -> None:
    with pytest.raises(BadResponse):
        INDEX[prefix].read(element(f'<terms xmlns="{TF_NAMESPACE}">{body}</terms>'.encode()))


@pytest.mark.parametrize("prefix", INDEX)
def test_text_in_the_place_of_terms_is_refused(prefix: str) -> None:
    with pytest.raises(BadResponse, match="text where elements should be"):
        INDEX[prefix].read(element(b'<terms xmlns="urn:indlet:tf:1.0" length="3">database error</terms>'))


def test_foreign_elements_are_refused() -> None:
    with pytest.raises(BadResponse, match="expected an element terms"):
        tf_compact.read(etree.fromstring(b"<terms/>"))
    with pytest.raises(BadResponse, match="not well-formed"):
        element(b"<dc")


def test_entities_are_not_expanded() -> None:
    bomb = b'<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]><d><x>&b;</x></d>'
    assert "aaaa" not in "".join(map(str, element(bomb).itertext()))


@pytest.mark.parametrize("prefix", bundle.INSIDE)
def test_a_bundle_binds_both_parts(prefix: str) -> None:
    raw = oai_dc.write({"title": ["Wings"]})
    vector = TermVector.of_positions({"wing": [0, 4], "air": [2]}, language="en")
    index, start = bundle.INSIDE[prefix], bundle.opening("http://x.org/schema/bundle.xsd", "a1")
    inner, again = bundle.read(element(bundle.write(start, raw, index.write(vector))))
    assert inner is not None
    assert oai_dc.FORMAT.read(inner) == CommonRecord.of({"title": ["Wings"]})
    assert inner.tag == "{http://www.openarchives.org/OAI/2.0/oai_dc/}dc"
    assert again is not None
    assert index.read(again).frequencies().keys() == {"wing", "air"}
    _, without = bundle.read(element(bundle.write(start, raw, b"")))
    assert without is None


@pytest.mark.parametrize(
    "tag", ["00120naor", "a/b", "x#", "%", "-a", "ü", "a\ufeffb", "a b", 'a="b"', "a><b"]
)
def test_a_field_that_no_element_can_be_named_after_is_left_out(tag: str) -> None:
    """Names of fields come from files; whatever they are, what is given out is well-formed."""
    good = {"rfc1807": "title", "dcterms": "title", "mods": "titleInfo/title"}
    for prefix, name in good.items():
        odd = Field(tag, "odd", "", ((f"@{tag}", "v"), (tag, "v"), ("a", "v")))
        written = METADATA[prefix].xml([Field(name, "kept"), odd])
        root = etree.fromstring(written)
        assert "kept" in "".join(map(str, root.itertext()))
        if "/" not in tag:
            assert "odd" not in "".join(map(str, root.itertext()))


def test_positions_of_several_words_have_a_limit() -> None:
    many = range(40_000)
    names, places = " ".join(f"w{n}" for n in many), " ".join(map(str, many))
    part = f'<term name="{names}" freq="40000" at="{places}"/>'
    with pytest.raises(BadResponse, match="20 times its size"):
        tf_positions.read(element(f'<terms xmlns="{TF_NAMESPACE}">{part}</terms>'.encode()))


def test_positions_of_a_term_that_comes_again_add_up() -> None:
    part = "".join(f'<term name="wing" freq="1" at="{n}"/>' for n in reversed(range(20_000)))
    found = tf_positions.read(element(f'<terms xmlns="{TF_NAMESPACE}">{part}</terms>'.encode()))
    assert found == TermVector.of_positions({"wing": range(20_000)})
