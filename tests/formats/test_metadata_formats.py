"""The contract of every metadata format in the registry: a format that is added there is tested here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from indlet.errors import BadResponse
from indlet.formats import METADATA, CommonRecord, MetadataFormat, common_record, pairs, root_name
from indlet.formats.crosswalk import Crosswalk, Lost, Rule, apply_readers
from indlet.formats.record import Broken, Field, Statement
from indlet.model import DUBLIN_CORE
from indlet.oai.xml import FORBIDDEN, element

FORMATS = [pytest.param(f, id=f.prefix) for f in METADATA.values()]
WRITTEN = [pytest.param(f, id=f.prefix) for f in METADATA.values() if f.served]
DOCS = Path(__file__).parents[2] / "docs"

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40).map(
    lambda v: " ".join(FORBIDDEN.sub("", v).split())
)
metadata = st.dictionaries(
    st.sampled_from(DUBLIN_CORE), st.lists(texts.filter(bool), min_size=1, max_size=3, unique=True)
)
REPORT = {
    "title": ["Wings & <air>: a study", "Second title"],
    "creator": ["Newman, Ann", "Laboratory for Flight"],
    "contributor": ["Helper, Bob"],
    "subject": ["Aerodynamics", "Wings--Design"],
    "description": ["On the flow of air around wings."],
    "publisher": ["Institute of Flight"],
    "date": ["2004-05-06"],
    "type": ["Text"],
    "format": ["application/pdf"],
    "identifier": ["http://example.org/1?a=b&c=d", "TR-17"],
    "language": ["en"],
    "relation": ["http://example.org/2"],
    "coverage": ["Vienna"],
    "source": ["Journal of Flight"],
    "rights": ["Free."],
}


def reversible(crosswalk: Crosswalk) -> list[Rule]:
    return [r for r in crosswalk.rules if r.direction == "both" and r.element != "record"]


@pytest.mark.parametrize("format_", WRITTEN)
def test_what_is_written_is_well_formed_and_says_which_format_it_is(format_: MetadataFormat) -> None:
    raw = format_.write(CommonRecord.of(REPORT, "oai:x.org:1", "2024-01-02T03:04:05Z"))
    root = element(raw)
    assert root.tag in format_.roots
    assert root.tag == f"{{{format_.namespace}}}{etree.QName(root).localname}"
    assert root_name(raw) == root.tag
    assert format_.read(root).simple()["title"] == REPORT["title"]


def test_an_address_is_written_where_catalogues_have_it() -> None:
    raw = METADATA["marc21"].write(CommonRecord.of(REPORT))
    assert b'<datafield tag="856" ind1="4" ind2="0"><subfield code="u">http://example.org/1?' in raw
    assert b'<datafield tag="024" ind1="8" ind2=" "><subfield code="a">TR-17<' in raw


@pytest.mark.parametrize("format_", WRITTEN)
@given(described=st.dictionaries(st.sampled_from(DUBLIN_CORE), st.lists(st.text(max_size=40), max_size=3)))
def test_whatever_is_described_is_written_and_read(
    format_: MetadataFormat, described: dict[str, list[str]]
) -> None:
    record = CommonRecord.of(described, "oai:x.org:1", "2024-01-02T03:04:05Z")
    format_.read(element(format_.write(record)))


@pytest.mark.parametrize("format_", WRITTEN)
def test_every_row_that_goes_both_ways_brings_its_value_back(format_: MetadataFormat) -> None:
    crosswalk = format_.crosswalk(())
    rows = reversible(crosswalk)
    assert rows

    @given(rule=st.sampled_from(rows), data=st.data())
    def law(rule: Rule, data: st.DataObject) -> None:
        value = data.draw(_values(rule))
        # A value that the row would not give to the common record is none that it has to bring back.
        if apply_readers(rule, [crosswalk_value(rule, value)], plain=True) != [value]:
            return
        statement = Statement(rule.element, value, rule.refinement, rule.scheme)
        lost: list[Lost] = []
        fields = crosswalk.write(CommonRecord((statement,), "oai:x.org:1"), lost)
        assert not lost
        again = format_.read(element(format_.xml(fields)))
        assert statement in again.statements

    law()


def crosswalk_value(rule: Rule, value: str) -> str:
    for step in reversed(rule.steps):
        if step.write is not None:
            value = step.write(value)
    return value


def _values(rule: Rule) -> st.SearchStrategy[str]:
    patterns = [c.value for c in rule.conditions if c.name == "value" and c.operator == "~"]
    if not patterns:
        return texts.filter(bool)
    made = st.from_regex(re.compile(patterns[0], re.ASCII), fullmatch=True)
    return made.filter(lambda v: v == " ".join(FORBIDDEN.sub("", v).split()) and v != "")


@pytest.mark.parametrize("format_", WRITTEN)
def test_a_file_that_is_written_is_read_record_by_record(format_: MetadataFormat) -> None:
    crosswalk = format_.crosswalk(())
    records = [CommonRecord.of({"title": [f"Title {n}"]}, f"id{n}") for n in range(3)]
    head, tail = format_.around
    data = head + b"".join(format_.pack(crosswalk.write(record)) for record in records) + tail
    again = list(format_.load(data))
    assert [crosswalk.read(fields).simple() for fields in again if not isinstance(fields, Broken)] == [
        {"title": [f"Title {n}"]} for n in range(3)
    ]


@pytest.mark.parametrize("format_", FORMATS)
@given(data=st.binary(max_size=300))
def test_hostile_bytes_are_broken_records_and_no_crash(format_: MetadataFormat, data: bytes) -> None:
    for record in format_.load(data):
        if isinstance(record, Broken):
            assert record.reason
        else:
            format_.crosswalk(record).read(record, [])


@pytest.mark.parametrize("format_", FORMATS)
def test_hostile_xml_is_read_or_refused(format_: MetadataFormat) -> None:
    name = next(iter(sorted(format_.roots)))
    space, _, local = name[1:].partition("}")
    deep = "<a>" * 200 + "x" + "</a>" * 200
    for inside in ("", deep, "<b/>" * 1000, "text", "<!-- x --><?y z?>"):
        root = element(f'<{local} xmlns="{space}">{inside}</{local}>'.encode())
        try:
            assert format_.read(root) is not None
        except ValueError as error:
            assert str(error)


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_and_its_table_is_documented(format_: MetadataFormat) -> None:
    assert f"| `{format_.prefix}` |" in (DOCS / "formats.md").read_text(encoding="utf-8")


def test_a_record_of_which_nothing_can_be_mapped_is_refused() -> None:
    with pytest.raises(BadResponse, match="nothing of it could be mapped"):
        pairs(element(b'<etd xmlns="urn:x"><dean>A. B.</dean></etd>'))
    with pytest.raises(BadResponse, match="without fields"):
        pairs(element(b'<record xmlns="http://www.loc.gov/MARC21/slim"><leader>x</leader></record>'))
    with pytest.raises(BadResponse, match="record of Dublin Core with text, but without any element"):
        pairs(element(b'<dc xmlns="http://www.openarchives.org/OAI/2.0/oai_dc/"><dean>A. B.</dean></dc>'))
    assert pairs(element(b"<dc/>")) == []


def test_the_original_is_told_in_full_and_with_what_the_store_adds() -> None:
    marc = METADATA["marc21"]
    raw = marc.xml([Field("245", "", "00", (("a", "Wings"),)), Field("300", "", "  ", (("a", "17 pages."),))])
    record = CommonRecord.of({"title": ["Wings"], "rights": ["Free."]}, "oai:x.org:1", "2024-01-02")
    full = common_record(raw, record)
    assert Statement("format", "17 pages", "extent") in full.statements
    assert Statement("rights", "Free.") in full.statements
    assert [s for s in full.statements if s.element == "title"] == [Statement("title", "Wings")]
    assert full.identifier == "oai:x.org:1"
    assert common_record(b"<broken", record) == record
