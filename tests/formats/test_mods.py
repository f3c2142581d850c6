"""MODS and oai_marc as others write them."""

from __future__ import annotations

import pytest

from indlet.formats import METADATA, CommonRecord, in_format, pairs
from indlet.formats.crosswalk import Lost
from indlet.formats.metadata import marc21
from indlet.formats.record import Field, Statement
from indlet.model import Stored
from indlet.oai.xml import element

MODS = b"""<mods xmlns="http://www.loc.gov/mods/v3" version="3.3">
  <titleInfo><nonSort>The</nonSort><title>Wings</title><subTitle>a study</subTitle></titleInfo>
  <titleInfo type="abbreviated"><title>Wings</title></titleInfo>
  <name type="personal"><namePart type="family">Austen</namePart><namePart type="given">Jane</namePart>
    <namePart type="date">1775-1817</namePart>
    <role><roleTerm type="code" authority="marcrelator">aut</roleTerm></role></name>
  <name><namePart>Helper, Ann</namePart><role><roleTerm type="text">editor</roleTerm></role></name>
  <name><namePart>Institute of Flight</namePart></name>
  <originInfo><place><placeTerm>Oxford</placeTerm></place><publisher>Press</publisher>
    <dateIssued encoding="w3cdtf">2004</dateIssued></originInfo>
  <language><languageTerm type="code" authority="iso639-2b">eng</languageTerm>
    <languageTerm type="text">English</languageTerm></language>
  <subject authority="lcsh"><topic>Wings</topic><topic>Design</topic>
    <geographic>Austria</geographic></subject>
  <classification authority="ddc">629.1</classification>
  <abstract>On <i>flow</i>.</abstract>
  <relatedItem type="host"><titleInfo><title>Journal of Flight</title></titleInfo>
    <name><namePart>Not a creator</namePart></name></relatedItem>
  <identifier type="isbn">0198162065</identifier>
  <location><url>http://example.org/1</url></location>
  <accessCondition>Free.</accessCondition>
  <recordInfo><recordIdentifier>x17</recordIdentifier></recordInfo>
</mods>"""


def test_mods_loses_no_name() -> None:
    record = METADATA["mods"].read(element(MODS))
    assert record.identifier == "x17"
    assert record.simple() == {
        "title": ["The Wings a study", "Wings"],
        "creator": ["Austen, Jane, 1775-1817", "Institute of Flight"],
        "subject": ["Wings--Design", "629.1"],
        "description": ["On flow."],
        "publisher": ["Press"],
        "contributor": ["Helper, Ann"],
        "date": ["2004"],
        "identifier": ["0198162065", "http://example.org/1"],
        "language": ["en"],
        "relation": ["Journal of Flight"],
        "coverage": ["Austria"],
        "rights": ["Free."],
    }
    assert Statement("subject", "Wings--Design", "", "LCSH") in record.statements


def test_what_mods_says_beyond_the_table_is_told() -> None:
    mods = METADATA["mods"]
    fields = mods.fields(element(MODS))
    lost: list[Lost] = []
    mods.crosswalk(fields).read(fields, lost)
    assert {(each.where, each.value) for each in lost} == {
        ("originInfo/place/placeTerm", "Oxford"),
        ("relatedItem/name/namePart", "Not a creator"),
        ("name/role/roleTerm:text", "editor"),
        ("name/role/roleTerm:code", "aut"),
    }


def test_an_identifier_that_was_cancelled_is_none() -> None:
    raw = (
        b'<mods xmlns="http://www.loc.gov/mods/v3"><identifier type="isbn">0198162065</identifier>'
        b'<identifier type="isbn" invalid="yes">0198162066</identifier>'
        b'<identifier type="lccn" invalid="yes">85000001</identifier></mods>'
    )
    assert METADATA["mods"].read(element(raw)).simple() == {"identifier": ["0198162065"]}


@pytest.mark.parametrize(
    ("address", "valid"),
    [
        ("http://example.org:80/a?b=%7E&c#d", True),
        ("urn:nbn:de:101:1-2", True),
        ("http://example.org/100%", False),
        ("http://[example", False),
        ("see: http://example.org/", False),
    ],
)
def test_what_is_no_uri_is_not_written_where_the_schema_wants_one(address: str, valid: bool) -> None:
    record = CommonRecord((Statement("identifier", address, "", "URI"),), "x17")
    root = element(METADATA["mods"].write(record))
    name = "{http://www.loc.gov/mods/v3}"
    assert root.findtext(f"{name}location/{name}url") == (address if valid else None)
    assert METADATA["mods"].read(root).simple() == {"identifier": [address]}


OAI_MARC = b"""<oai_marc xmlns="http://www.openarchives.org/OAI/1.1/oai_marc" status="n" type="a" level="m">
      <fixfield id="1">"x17"</fixfield>
      <fixfield id="8">"000313s2000    enk           000 0 eng d"</fixfield>
      <varfield id="100" i1="1" i2=""><subfield label="a">Austen, Jane,</subfield></varfield>
      <varfield id="245" i1="1" i2="0"><subfield label="a">Wings /</subfield></varfield></oai_marc>"""


def test_oai_marc() -> None:
    assert sorted(pairs(element(OAI_MARC))) == [
        ("creator", "Austen, Jane"), ("date", "2000"), ("language", "en"),
        ("title", "Wings"), ("type", "text"),
    ]  # fmt: skip


def test_oai_marc_and_marc21_are_one_record_in_two_forms() -> None:
    local = b'<varfield id="999" i1="f" i2="f"><subfield label="i"> 17  b</subfield></varfield></oai_marc>'
    raw = OAI_MARC.replace(b"</oai_marc>", local).replace(b'level="m"', b'level="m" encLvl="7" catForm="a"')
    stored = Stored(1, 1, 1, "oai:x.org:1", 0, 0, "", "", 0, 0, b"{}", b"{}", raw, None, None, b"")
    whole = in_format(stored, METADATA["marc21"])
    made = marc21.read_xml(element(whole))
    assert made.leader == "00000nam a22000007a 4500"
    assert made.control("001") == "x17" and made.control("008") == "000313s2000    enk           000 0 eng d"
    assert made.fields[-1] == Field("999", "", "ff", (("i", " 17  b"),))
    back = in_format(stored._replace(raw=whole), METADATA["oai_marc"])
    assert METADATA["oai_marc"].fields(element(back)) == METADATA["oai_marc"].fields(element(raw))
