"""What translations make of single values: nothing twice, nothing in a field of another meaning."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest
from lxml import etree

from indlet.exchange.subject_translation import SubjectTranslation, mark_inferred
from indlet.formats import METADATA, CommonRecord, in_format
from indlet.formats.iso2709 import Marc, write_iso2709
from indlet.formats.metadata import marc21
from indlet.formats.record import Broken, Field, Statement
from indlet.formats.subjects import SubjectClassifier, SubjectTable, read_table
from indlet.model import Stored
from indlet.oai.xml import element
from indlet.provider.pipeline import crawl
from indlet.settings import Crawl, LibraryFolder, Settings
from indlet.store import open_store

REPORT = Marc(
    "00000cam a2200000 a 4500",
    (
        Field("001", "x1"),
        Field("008", "000313s2000    enk           000 0 eng d"),
        Field("088", "", "  ", (("a", "NASA-TM-4711"),)),
        Field("090", "", "  ", (("a", "LOCAL-7"),)),
        Field("100", "", "1 ", (("a", "Wells, Ada"),)),
        Field("245", "", "10", (("a", "Flutter :"), ("b", "a study /"), ("n", "Flutter of wings"))),
        Field("520", "", "  ", (("a", "An abstract."), ("b", "More of it."))),
        Field("700", "", "1 ", (("a", "Nuñez, Berta"),)),
        Field("710", "", "2 ", (("a", "Office of Aeronautics"),)),
    ),
)


def stored(raw: bytes, **metadata: list[str]) -> Stored:
    said = orjson.dumps(metadata)
    return Stored(1, 1, 1, "oai:x.org:1", 0, 0, "", "", 0, 0, said, b"{}", raw, None, None, b"")


def of_library(tmp_path: Path, mapping: str) -> Stored:
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "a.mrc").write_bytes(write_iso2709(REPORT))
    library = LibraryFolder("larc", str(tmp_path / "export"), mapping=mapping)
    settings = Settings(
        data=tmp_path / "data", library=(library,), crawl=Crawl(settle_seconds=0.0, workers=1)
    )
    with open_store(tmp_path / "data") as store:
        crawl(store, settings)
        with store.read() as view:
            (found,) = view.changes()
    return found


def test_a_librarys_table_counts_in_every_format(tmp_path: Path) -> None:
    table = tmp_path / "ours.tsv"
    table.write_text(
        "245\tn\t\ttitle\t\tin\tours\n520\tb\t\tdescription\t\tin\tours\n"
        "+520\ta\t\tdescription.abstract\t\tin\tours\n+090\ta\t\tidentifier[report]\t\tin\tours\n"
    )
    found = of_library(tmp_path, str(table))
    qualified = METADATA["dcterms"].fields(element(in_format(found, METADATA["dcterms"])))
    by_tag: dict[str, list[str]] = {}
    for field in qualified:
        by_tag.setdefault(field.tag, []).append(field.value)
    assert by_tag["title"] == orjson.loads(found.metadata)["title"] == ["Flutter of wings"]
    assert by_tag["abstract"] == ["An abstract."] and by_tag["description"] == ["More of it."]
    assert Field("identifier", "LOCAL-7", "", (("@scheme", "report"),)) in qualified
    for prefix in ("cosati", "rfc1807", "mods", "oai_dc"):
        text = in_format(found, METADATA[prefix]).decode()
        assert text.count("Flutter") == 1, prefix
        assert text.count("An abstract.") == 1, prefix
        assert text.count("LOCAL-7") == 1, prefix


@pytest.mark.parametrize("prefix", ["dcterms", "mods", "cosati", "rfc1807"])
def test_a_value_that_a_harvest_brought_into_form_is_not_written_twice(prefix: str) -> None:
    raw = marc21.write_xml(REPORT.leader, REPORT.fields)
    text = in_format(stored(raw, title=["Flutter"], type=["Text"]), METADATA[prefix]).decode()
    assert len(re.findall(r">text<", text, re.IGNORECASE)) == 1


def test_report_numbers_are_in_dublin_core() -> None:
    assert marc21.dublin_core(REPORT)["identifier"] == ["NASA-TM-4711"]


def test_a_co_author_is_no_monitoring_agency() -> None:
    raw = marc21.write_xml(REPORT.leader, REPORT.fields)
    fields = METADATA["cosati"].fields(element(in_format(stored(raw), METADATA["cosati"])))
    assert [f.value for f in fields if f.tag == "10"] == ["Wells, Ada", "Nuñez, Berta"]
    assert [f.value for f in fields if f.tag == "18"] == ["Office of Aeronautics"]


def test_rfc_1807_carries_report_numbers() -> None:
    record = CommonRecord(
        (
            Statement("title", "Flutter"),
            Statement("identifier", "NASA-TM-4711", "", "report"),
            Statement("identifier", "AD-17"),
            Statement("identifier", "http://example.org/1", "", "URI"),
        ),
        "x1",
    )
    format = METADATA["rfc1807"]
    packed = format.pack(format.crosswalk(()).write(record))
    (fields,) = format.load(packed)
    assert not isinstance(fields, Broken)
    assert set(format.crosswalk(fields).read(fields).statements) == set(record.statements)


def test_marc_made_from_dublin_core_has_its_fixed_field() -> None:
    said = {"title": ["Flutter"], "date": ["2004-05-06"], "language": ["de", "en"]}
    (made,) = METADATA["marc21"].load(marc21.pack(marc21.crosswalk(()).write(CommonRecord.of(said, "x1"))))
    assert not isinstance(made, Broken)
    fixed = marc21.marc(made).control("008")
    assert (len(fixed), fixed[6], fixed[7:11], fixed[35:38]) == (40, "s", "2004", "ger")
    assert marc21.crosswalk(made).read(made).simple() == said
    bare = etree.fromstring(marc21.FORMAT.write(CommonRecord.of({"title": ["Flutter"]}, "x1")))
    assert len(marc21.read_xml(bare).control("008")) == 40
    assert marc21.FORMAT.read(bare).simple() == {"title": ["Flutter"]}


def test_codes_have_their_scheme_and_learned_ones_are_marked(tmp_path: Path) -> None:
    (tmp_path / "codes.tsv").write_text("!scheme\tnasascg\nWings\t02\n")
    table = read_table(tmp_path / "codes.tsv")
    record = SubjectTranslation(table).translated(CommonRecord((Statement("subject", "Wings", "", "LCSH"),)))
    assert record.statements == (Statement("subject", "02", "", "nasascg"),)
    written = marc21.crosswalk(()).write(record)
    assert Field("650", "", " 7", (("a", "02"), ("2", "nasascg"))) in written
    assert marc21.crosswalk(written).read(written).statements == record.statements
    mods = METADATA["mods"].write(record)
    assert b'authority="nasascg"' in mods
    assert METADATA["mods"].read(element(mods)).statements == record.statements
    learned = SubjectClassifier(least=1)
    learned.learn([({"wing": 3}, ["02"]), ({"ice": 3}, ["47"]), ({"wing": 1}, ["02"]), ({"snow": 1}, ["47"])])
    for scheme, expected in (("", "inferred"), ("nasascg", "nasascg-inferred")):
        translation = SubjectTranslation(SubjectTable({}, scheme=scheme), learned=learned)
        (code,) = translation.translated(CommonRecord(), {"wing": 4}).statements
        assert (code.value, code.scheme) == ("02", expected)
        for prefix in METADATA:  # the mark is in every format, with the scheme or in the value
            if METADATA[prefix].served and prefix not in ("http_header", "oai_didl"):
                table_out = METADATA[prefix].crosswalk(())
                record = mark_inferred(CommonRecord((code,), "oai:x:1"), table_out)
                assert b"inferred" in METADATA[prefix].xml(table_out.write(record)), prefix
