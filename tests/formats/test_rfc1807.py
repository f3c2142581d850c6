"""RFC 1807 as text: the layout of the RFC's own example, and lines that cannot be taken for fields."""

from __future__ import annotations

from indlet.formats import METADATA, CommonRecord
from indlet.formats.record import Broken, Field
from indlet.oai.xml import element

RFC1807 = METADATA["rfc1807"]
# Tags may be indented, and lines that go on with a field may not be.
RECORDS = b"""
   BIB-VERSION:: CS-TR-v2.1
            ID:: OCEAN//TR-17
         TITLE:: Wings that
                 bend
  OTHER_ACCESS:: url:http://example.org/17
      ABSTRACT::

  On flow around
  std::wing and its
  end

           END:: OCEAN//TR-17
ID:: OCEAN//TR-18
TITLE:: Air
ABSTRACT::
Of what it is.
NOTES::
END:: OCEAN//TR-18
"""


def test_tags_may_be_indented_and_further_lines_need_no_mark() -> None:
    first, second = RFC1807.load(RECORDS)
    assert first == [
        Field("bib-version", "CS-TR-v2.1"),
        Field("id", "OCEAN//TR-17"),
        Field("title", "Wings that bend"),
        Field("other_access", "url:http://example.org/17"),
        Field("abstract", "On flow around"),
        Field("std", "wing and its end"),  # as the RFC has it: a word and two colons begin a field
    ]
    assert second == [
        Field("id", "OCEAN//TR-18"),
        Field("title", "Air"),
        Field("abstract", "Of what it is."),
    ]


def test_what_is_no_field_of_the_rfc_is_not_in_its_xml() -> None:
    fields = next(iter(RFC1807.load(RECORDS)))
    assert not isinstance(fields, Broken)
    tags = [str(node.tag).rpartition("}")[2] for node in element(RFC1807.xml(fields))]
    assert tags == ["bib-version", "id", "entry", "title", "other_access", "abstract"]


def test_an_address_is_told_as_the_rfc_tells_it() -> None:
    table = RFC1807.crosswalk(())
    fields = next(iter(RFC1807.load(RECORDS)))
    assert not isinstance(fields, Broken)
    assert table.read(fields).simple()["identifier"] == ["http://example.org/17"]
    (told,) = table.write(CommonRecord.of({"identifier": ["http://example.org/1"]}))[1:]
    assert told == Field("other_access", "url:http://example.org/1", "  ")


def test_long_lines_are_folded_and_read_back() -> None:
    title = " ".join(["a title in which C++ says std::vector and x :: y"] * 20)
    record = CommonRecord.of({"title": [title], "description": ["d" * 200]}, "oai:x.org:1", "2024-01-02")
    packed = RFC1807.pack(RFC1807.crosswalk(()).write(record))
    lines = packed.decode().splitlines()
    assert lines[-1] == "END:: oai:x.org:1"
    assert len(lines) > 10
    (fields,) = RFC1807.load(packed)
    assert not isinstance(fields, Broken)
    assert RFC1807.crosswalk(()).read(fields) == record


def test_the_day_of_a_record_is_spelled_out() -> None:
    table = RFC1807.crosswalk(())
    fields = table.write(CommonRecord.of({"title": ["Air"]}, "1", "2026-11-05T08:00:00Z"))
    assert [field.value for field in fields if field.tag == "entry"] == ["November 5, 2026"]
    assert table.read(fields).datestamp == "2026-11-05"
    assert table.read([Field("entry", "Spring 1992")]).datestamp == "Spring 1992"
