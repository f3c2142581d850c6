from __future__ import annotations

import pytest
from lxml import etree
from pymarc import Field as PyField
from pymarc import Indicators, Record, Subfield

from indlet.formats import in_format
from indlet.formats.crosswalk import Lost
from indlet.formats.iso2709 import read_iso2709, split_iso2709
from indlet.formats.metadata.marc21 import FORMAT, dublin_core, pack, read_xml, searchable
from indlet.formats.record import Broken, CommonRecord, Field
from indlet.formats.transformations import chop
from indlet.model import Document, Failure, Stored
from indlet.oai.xml import element
from indlet.provider.extract import parts
from indlet.provider.extract.file import File
from indlet.settings import Limits

FIXED = "000313s2000    enk           000 0 eng d"


def data(tag: str, *subfields: str, indicators: str = "  ") -> PyField:
    pairs = [Subfield(code=value[0], value=value[1:]) for value in subfields]
    return PyField(tag=tag, indicators=Indicators(*indicators), subfields=pairs)


def record(*fields: PyField, key: str = "123", leader: str = "00000cam a2200000 a 4500") -> bytes:
    made = Record(leader=leader, force_utf8=leader[9] == "a")
    made.add_field(PyField(tag="001", data=key), PyField(tag="008", data=FIXED), *fields)  # type: ignore[no-untyped-call]
    return bytes(made.as_marc())


BOOK = (
    data("020", "a0198162065"),
    data("100", "aZychowicz, James L.,", "d1950-", "0(DE-588)1", indicators="1 "),
    data("245", "aMahler's Fourth symphony :", "ba study /", "cJames L. Zychowicz.", indicators="10"),
    data("264", "aOxford :", "bOxford University Press,", "c©2000.", indicators=" 1"),
    data("264", "bThe Copier", indicators=" 3"),
    data("500", "aIncludes index."),
    data("506", "aStaff only."),
    data("590", "a17"),
    data("600", "aMahler, Gustav,", "d1860-1911.", "tSymphonies,", "nno. 4.", indicators="10"),
    data("650", "aSymphonies", "zAustria", "xHistory and criticism.", indicators=" 0"),
    data("651", "aVienna (Austria)", "xHistory.", indicators=" 0"),
    data("700", "aHelper, Ann,", "eeditor.", indicators="1 "),
    data("700", "aWriter, Bob,", "eauthor.", indicators="1 "),
    data("720", "aCoder", "4aut"),
    data("856", "uhttp://example.org/1", indicators="40"),
    data("880", "6245-01/$1", "a馬勒", indicators="10"),
)


def test_marc21_in_dublin_core() -> None:
    assert dublin_core(read_iso2709(record(*BOOK))) == {
        "title": ["Mahler's Fourth symphony : a study", "馬勒"],
        "creator": ["Zychowicz, James L., 1950-", "Writer, Bob", "Coder"],
        "subject": [
            "Mahler, Gustav, 1860-1911. Symphonies, no. 4",
            "Symphonies--Austria--History and criticism",
        ],
        "description": ["Includes index."],
        "publisher": ["Oxford : Oxford University Press"],
        "contributor": ["Helper, Ann"],
        "date": ["2000"],
        "type": ["text"],
        "identifier": ["0198162065", "http://example.org/1"],
        "language": ["en"],
        "coverage": ["Vienna (Austria)--History"],
        "rights": ["Staff only."],
    }


def test_words_leave_out_codes_and_links() -> None:
    words = searchable(read_iso2709(record(*BOOK)))
    assert "Mahler's Fourth symphony" in words
    assert "DE-588" not in words
    assert "http" not in words


def test_blanks_are_kept_in_marc_and_told_to_no_other_format() -> None:
    raw = record(data("010", "a   85153773 "), data("245", "aFlutter   of wings /"))
    (fields,) = FORMAT.load(raw)
    assert not isinstance(fields, Broken)
    assert [field.subfields for field in fields[-2:]] == [
        (("a", "   85153773 "),),
        (("a", "Flutter   of wings /"),),
    ]
    assert FORMAT.fields(element(FORMAT.xml(fields))) == fields
    assert FORMAT.crosswalk(fields).read(fields).simple()["title"] == ["Flutter of wings"]
    laid_out = FORMAT.xml(fields).replace(b"   85153773 ", b"\n    85153773\n  ")
    assert FORMAT.fields(element(laid_out))[-2].subfields == (("a", "85153773"),)


def test_marc8_is_decoded() -> None:
    raw = record(data("245", "aZwei B\xe8ucher"), leader="00000cam  2200000 a 4500")
    # pymarc writes UTF-8 where it can; put the MARC-8 umlaut (E8 before its letter) in by hand.
    raw = raw.replace("\xe8".encode(), b"\xe8")
    assert dublin_core(read_iso2709(raw))["title"] == ["Zwei Bücher"]


def test_marc8_that_becomes_xml_no_longer_claims_to_be_marc8() -> None:
    raw = record(data("245", "aZwei"), leader="00000cam  2200000 a 4500").replace(b"Zwei", b"Zw\xe8ei")
    (fields,) = FORMAT.load(raw)
    assert not isinstance(fields, Broken)
    leader, *_ = etree.fromstring(FORMAT.xml(fields))
    assert str(leader.text)[5:12] == "cam a22"


def test_utf8_is_seen_whatever_the_leader_says() -> None:
    raw = record(data("245", "aЛюди")).replace(b"cam a22", b"cam  22")
    assert dublin_core(read_iso2709(raw))["title"] == ["Люди"]


def test_a_wrong_directory_is_survived() -> None:
    raw = record(*BOOK)
    shifted = raw.replace(b"Includes index.", b"Includes a far longer index than the directory says.")
    assert dublin_core(read_iso2709(shifted))["title"][0] == "Mahler's Fourth symphony : a study"


def test_a_directory_whose_entries_share_one_field_is_broken() -> None:
    """Or a record of some kilobytes would become gigabytes."""
    text = b"  \x1fa" + b"x" * 5000
    entries = b"650%04d00000" % (len(text) + 1) * 400
    raw = b"00000cam a2200000 a 4500" + entries + b"\x1e" + text + b"\x1e"
    with pytest.raises(ValueError, match="its directory names 400 fields, 1 are there"):
        read_iso2709(raw)


def test_punctuation_without_end_is_chopped_at_once() -> None:
    assert chop("A title" + " ,:/" * 200_000) == "A title"
    assert chop(" ,:/" * 200_000 + "A title.") == " ,:/" * 200_000 + "A title"
    assert chop("Smith, J.") == "Smith, J." and chop("[1999] ;") == "1999"


def test_authority_records_are_known_by_their_heading() -> None:
    raw = record(data("100", "aTwain, Mark,", "d1835-1910"), leader="00000nz  a2200000n  4500")
    assert dublin_core(read_iso2709(raw))["title"] == ["Twain, Mark, 1835-1910"]


def test_a_subfield_that_repeats_is_several_values() -> None:
    raw = record(
        data("020", "a0877790086 :", "c$16.89"),
        data("050", "aPN3411", "b.P3", "aPR863"),
        data("082", "a823", "a820.9"),
        data("856", "uhttp://example.org/1", "qtext/html", "qapplication/pdf", indicators="40"),
    )
    found = dublin_core(read_iso2709(raw))
    assert found["subject"] == ["PN3411", "PR863", "823", "820.9"]
    assert found["format"] == ["text/html", "application/pdf"]
    assert found["identifier"] == ["0877790086", "http://example.org/1"]  # without what led to the price


def test_a_thing_is_no_image() -> None:
    raw = record(data("245", "aA globe..."), leader="00000crm a2200000 a 4500")
    found = dublin_core(read_iso2709(raw))
    assert "type" not in found
    assert found["title"] == ["A globe..."]


def test_no_title_is_made_of_a_creator() -> None:
    written = FORMAT.write(CommonRecord.of({"creator": ["Austen, Jane"]}, "x17"))
    assert FORMAT.read(etree.fromstring(written)).simple() == {"creator": ["Austen, Jane"]}


def test_control_fields_stand_first_in_xml_wherever_a_record_has_them() -> None:
    fields = [
        Field("LDR", "00000cam a2200000 a 4500"),
        Field("245", "", "00", (("a", "Wings"),)),
        Field("001", "x17"),
        Field("900", "", "  ", (("a", "local"),)),
        Field("005", "20240102030405.0"),
    ]
    root = etree.fromstring(FORMAT.xml(fields))
    assert [node.get("tag") for node in root] == [None, "001", "005", "245", "900"]


def test_what_a_row_leaves_out_is_told_as_lost() -> None:
    fields = [
        Field("LDR", "00000cam a2200000 a 4500"),
        Field("008", FIXED),
        Field("041", "", "0 ", (("a", "mul"),)),
        Field("245", "", "10", (("a", "Wings"),)),
        Field("590", "", "  ", (("a", "17"),)),
    ]
    lost: list[Lost] = []
    assert FORMAT.crosswalk(fields).read(fields, lost).simple()["language"] == ["en"]
    assert [(each.where, each.reason) for each in lost] == [
        ("LDR", "only some positions are read"),
        ("008", "only some positions are read"),
        ("041$a", "no row takes it"),
        ("590$a", "no row takes it"),
    ]


def test_marcxchange_is_given_out_as_the_marcxml_that_is_promised() -> None:
    raw = (
        b'<mx:record xmlns:mx="info:lc/xmlns/marcxchange-v1" format="MARC21">'
        b'<mx:leader>00000cam a2200000 a 4500</mx:leader><mx:controlfield tag="001">x17</mx:controlfield>'
        b'<mx:datafield tag="952" ind1=" " ind2="1"><mx:subfield code="a">local</mx:subfield></mx:datafield>'
        b"</mx:record>"
    )
    stored = Stored(1, 1, 1, "oai:x.org:1", 0, 0, "", "", 0, 0, b"{}", b"{}", raw, None, None, b"")
    root = etree.fromstring(in_format(stored, FORMAT))
    assert root.tag == f"{{{FORMAT.namespace}}}record"
    assert read_xml(root) == read_xml(etree.fromstring(raw))
    own = stored._replace(raw=in_format(stored, FORMAT))
    assert in_format(own, FORMAT) == own.raw


def test_what_no_record_can_hold_breaks_none() -> None:
    """A directory goes by bytes: a tag, an indicator or a code of two would shift all that follows."""
    fields = [
        Field("LDR", "00000cäm a2200000 a 4500"),
        Field("2é5", "", "  ", (("a", "x"),)),
        Field("245", "", "٣0", (("", "Title"), ("é", "part"), ("c", "Ann"))),
        Field("500", "a note"),
    ]
    read = read_iso2709(pack(fields).rstrip(b"\x1d"))
    assert read.fields == (
        Field("245", "", " 0", (("?", "Title"), ("?", "part"), ("c", "Ann"))),
        Field("500", "", "  ", (("a", "a note"),)),
    )
    assert read.leader[5:9] == "cam "


def test_unimarc() -> None:
    fields = (
        data("200", "aLe titre", "esous-titre"),
        data("700", "aHugo", "bVictor", "f1802-1885"),
        data("702", "aMeurice", "bPaul", "4340"),
        data("712", "aFrance", "bMarine", "4340"),
        data("101", "afre"),
        data("210", "cSeuil", "d1862"),
    )
    found = dublin_core(read_iso2709(record(*fields)))
    assert found == {
        "title": ["Le titre sous-titre"],
        "creator": ["Hugo, Victor, 1802-1885"],
        "publisher": ["Seuil"],
        "contributor": ["Meurice, Paul", "France Marine"],
        "date": ["1862"],
        "language": ["fr"],
    }


def test_marcxml_equals_iso2709() -> None:
    from pymarc.marcxml import record_to_xml_node

    [raw] = split_iso2709(record(*BOOK))
    made = Record(data=raw + b"\x1d", force_utf8=True)
    from xml.etree import ElementTree

    text = ElementTree.tostring(record_to_xml_node(made, namespace=True))  # type: ignore[no-untyped-call]
    assert dublin_core(read_xml(etree.fromstring(text))) == dublin_core(read_iso2709(raw))


@pytest.mark.parametrize(
    "broken", [b"00012cam", b"00026cam a2200025 a 4500" + b"x" * 50, b"00026cam a2200025 a 4500\x1e\x1e"]
)
def test_broken_records_are_value_errors(broken: bytes) -> None:
    with pytest.raises(ValueError, match="MARC record"):
        read_iso2709(broken)


def test_a_broken_record_does_not_lose_its_siblings() -> None:
    file = record(*BOOK, key="a") + b"00026cam a2200025 a 4500 garbage\x1d" + record(*BOOK, key="b") + b"\n"
    first, second, third = parts(File(file, "books.mrc", Limits()))
    assert isinstance(first, Document)
    assert isinstance(second, Failure)
    assert isinstance(third, Document)
    assert (first.key, third.key) == ("a", "b")
    assert second.where == "books.mrc#2"
    assert b"garbage" in second.raw
    assert first.language == "en"


def test_marcxml_records_without_a_collection_around_them() -> None:
    one = (
        '<record><leader>00000cam a2200000 a 4500</leader><controlfield tag="001">{}</controlfield>'
        '<datafield tag="245"><subfield code="a">é</subfield></datafield></record>'
    )
    file = f'<?xml version="1.0" encoding="latin-1"?>\n{one.format("a")}\n{one.format("b")}'.encode("latin-1")
    documents = [part for part in parts(File(file, "books.xml", Limits())) if isinstance(part, Document)]
    assert [(document.key, document.metadata["title"]) for document in documents] == [
        ("a", ["é"]),
        ("b", ["é"]),
    ]


def test_a_saved_answer_of_a_repository_holds_its_records_once() -> None:
    one = FORMAT.xml([Field("001", "a"), Field("245", "", "00", (("a", "Wings"),))])
    record = b"<record><header><identifier>x</identifier></header><metadata>%b</metadata></record>" % one
    file = b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>%b</ListRecords></OAI-PMH>'
    first, second = FORMAT.load(file % (record * 2))
    assert not isinstance(first, Broken) and first == second
    assert first[1:] == [Field("001", "a"), Field("245", "", "00", (("a", "Wings"),))]


def test_a_marcxml_file_broken_at_its_end_keeps_its_beginning() -> None:
    one = (
        '<record xmlns="http://www.loc.gov/MARC21/slim"><leader>00000cam a2200000 a 4500</leader>'
        '<controlfield tag="001">{}</controlfield><datafield tag="245" ind1="1" ind2="0">'
        '<subfield code="a">Title {} /</subfield></datafield></record>'
    )
    file = f"<collection>{one.format('a', 1)}{one.format('b', 2)}<record/><record><datafield tag="
    found = list(parts(File(file.encode(), "books.xml", Limits())))
    documents = [part for part in found if isinstance(part, Document)]
    assert [(document.key, document.metadata["title"]) for document in documents] == [
        ("a", ["Title 1"]),
        ("b", ["Title 2"]),
    ]
    assert any(isinstance(part, Failure) for part in found)
