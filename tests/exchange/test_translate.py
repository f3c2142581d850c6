"""`indlet translate`, as it is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from indlet.cli import cli
from indlet.errors import SettingsError
from indlet.formats import METADATA, CommonRecord
from indlet.formats.record import Broken, Field
from indlet.oai.xml import element

BOOK = [
    Field("001", "x17"),
    Field("100", "", "1 ", (("a", "Austen, Jane,"), ("d", "1775-1817"))),
    Field("245", "", "10", (("a", "Wings :"), ("b", "a study /"), ("c", "by Jane Austen."))),
    Field("300", "", "  ", (("a", "17 pages ;"), ("c", "24 cm"))),
    Field("088", "", "  ", (("a", "TR-17"),)),
    Field("520", "", "  ", (("a", "On flow."), ("b", "More of it."))),
]


@pytest.fixture
def books(tmp_path: Path) -> Path:
    path = tmp_path / "books.mrc"
    packed = METADATA["marc21"].pack(BOOK)
    path.write_bytes(packed + b"00026cam a2200025 a 4500 garbage\x1d" + packed)
    return path


def run(*arguments: str) -> tuple[int, bytes, str]:
    done = CliRunner().invoke(cli, ["translate", *arguments])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout_bytes, done.stderr


def test_a_broken_record_is_named_and_the_others_are_translated(books: Path) -> None:
    status, out, err = run("--from", "marc21", "--to", "oai_dc", str(books))
    assert status == 3
    assert f"{books}#2: broken MARC record" in err
    records = element(out)
    assert len(records) == 2
    read = METADATA["oai_dc"].read(records[0]).simple()
    assert read["title"] == ["Wings : a study"]
    assert "format" not in read  # only qualified Dublin Core has the extent


def test_the_report_tells_what_is_lost_by_field(books: Path) -> None:
    status, out, _ = run("--from", "marc21", "--to", "oai_dc", "--report", str(books))
    assert status == 3
    lines = [line.split() for line in out.decode().splitlines()]
    assert " ".join(lines[0]) == "2 records translated, 1 failed"
    lost = {(line[0], int(line[1])) for line in lines[2:]}
    assert ("245$c", 2) in lost
    assert ("300$c", 2) in lost
    assert ("format.extent", 2) in lost


def test_a_site_s_own_table_stands_on_top(books: Path) -> None:
    _, out, _ = run("--from", "marc21", "--to", "rfc1807", "--mapping", "larc", str(books))
    text = out.decode()
    assert "NOTES:: More of it.\n" in text
    assert "ABSTRACT:: On flow.\n" in text
    assert "AUTHOR:: Austen, Jane, 1775-1817\n" in text
    assert text.count("END::") == 2


def test_text_that_a_table_alone_describes(tmp_path: Path) -> None:
    table = tmp_path / "reports.tsv"
    table.write_text("!form\tdelimited\nTitle\t\t\ttitle\t\tboth\t\nAuthors\t\t\tcreator\t\tboth\t\n")
    source = tmp_path / "reports.csv"
    source.write_text('Title,Authors\n"Wings, a study","Austen, Jane; Laboratory"\nx,y,z\nAir,\n')
    status, out, err = run("--from", f"table:{table}", "--to", "cosati", str(source))
    assert status == 3
    assert "record 2, line 3: more cells than columns" in err
    assert out.decode() == "6  Wings, a study\n10  Austen, Jane\n10  Laboratory\n//\n6  Air\n//\n"
    (tmp_path / "reports.txt").write_bytes(out)
    _, back, _ = run("--from", "cosati", "--to", f"table:{table}", str(tmp_path / "reports.txt"))
    assert back.decode() == 'Title,Authors\n"Wings, a study","Austen, Jane; Laboratory"\nAir,\n'


def test_a_table_of_another_format_is_no_mapping_for_marc(books: Path) -> None:
    with pytest.raises(SettingsError, match=r'RECORD is no field of MARC.*format = "table:sandia"'):
        run("--from", "marc21", "--to", "marc21", "--to-mapping", "sandia", str(books))


def test_what_a_table_says_of_every_record_is_said_once(books: Path, tmp_path: Path) -> None:
    _, plain, _ = run("--from", "marc21", "--to", "oai_dc", str(books))
    (tmp_path / "books.xml").write_bytes(plain)
    _, out, _ = run("--from", "oai_dc", "--to", "marcxml", str(tmp_path / "books.xml"))
    assert out.count(b'tag="042"') == out.count(b"<record") == 2


def test_marc_stays_whole_as_marc(tmp_path: Path) -> None:
    source, own, subjects = tmp_path / "a.mrc", tmp_path / "own.tsv", tmp_path / "codes.tsv"
    book = [
        Field("LDR", "00000cas a2200000 a 4500"),
        *BOOK,
        Field("852", "", "0 ", (("h", "PR 17"), ("j", "3"))),
    ]
    book.insert(-1, Field("650", "", " 4", (("a", "wings"),)))
    source.write_bytes(METADATA["marc21"].pack(book))
    status, out, err = run("--from", "marc21", "--to", "marc21", str(source))
    assert (status, out, err) == (0, source.read_bytes(), "")
    _, report, _ = run("--from", "marc21", "--to", "marcxml", "--report", str(source))
    assert report.decode().splitlines() == ["1 record translated, 0 failed", "nothing was lost"]
    own.write_text("852\ta\t\tsubject\t\tout\t\n")
    subjects.write_text("wings\t629.1\tWings\n")
    more = ("--to-mapping", str(own), "--subjects", str(subjects))
    _, out, _ = run("--from", "marc21", "--to", "marcxml", *more, str(source))
    assert b"PR 17" not in out
    assert b'<datafield tag="852" ind1=" " ind2=" "><subfield code="a">629.1</subfield></datafield>' in out
    _, report, _ = run("--from", "marc21", "--to", "marcxml", *more, "--report", str(source))
    assert report.decode().splitlines()[2].split()[:2] == ["852", "1"]


def test_a_record_of_holdings_alone_stays_whole_too(tmp_path: Path) -> None:
    source = tmp_path / "a.mrc"
    shelf = [Field("LDR", "00000nx  a22000001n 4500"), Field("852", "", "0 ", (("h", "PR 17"),))]
    source.write_bytes(METADATA["marc21"].pack(shelf))
    status, out, _ = run("--from", "marc21", "--to", "marcxml", str(source))
    assert status == 0 and b"PR 17" in out
    status, _, err = run("--from", "marc21", "--to", "mods", str(source))
    assert status == 3 and "nothing of it could be mapped" in err


def test_marc_that_is_too_long_is_translated_and_that_is_told(tmp_path: Path) -> None:
    source = tmp_path / "a.xml"
    items = [Field("952", "", "  ", (("a", "x" * 5000),)) for _ in range(25)]
    source.write_bytes(METADATA["marc21"].xml([*BOOK, *items]))
    status, out, err = run("--from", "marcxml", "--to", "marc21", str(source))
    assert status == 0
    assert f"{source}#1: record 1 is translated, not written whole: a record of" in err
    (fields,) = METADATA["marc21"].load(out)
    assert not isinstance(fields, Broken)
    assert METADATA["marc21"].crosswalk(fields).read(fields).simple()["title"] == ["Wings : a study"]


def test_sandia_s_fields(books: Path) -> None:
    _, out, _ = run("--from", "marc21", "--to", "table:sandia", str(books))
    assert "REPORT-NUMBER: TR-17\n" in out.decode()
    assert "EXTENT: 17 pages\n" in out.decode()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--from", "nonsense", "--to", "oai_dc"], "no format 'nonsense'"),
        (["--from", "marc21", "--to", "table:nowhere"], "nowhere"),
        (["--from", "marc21", "--to", "oai_dc", "--mapping", "nowhere"], "no table 'nowhere'"),
    ],
)
def test_what_is_not_there_is_named(arguments: list[str], problem: str, books: Path) -> None:
    with pytest.raises(SettingsError, match=problem):
        run(*arguments, str(books))


def test_a_table_that_is_wrong_names_its_line(tmp_path: Path, books: Path) -> None:
    table = tmp_path / "own.tsv"
    for row, problem in {
        "245\ta\t\theadline\t\tin\t": "not of Dublin Core",
        "245\ta\t\ttitle\tshout\tin\t": "transformation 'shout'",
        "245\ta\tcolour=red\ttitle\t\tin\t": "condition 'colour=red'",
        "245\ta\t\ttitle\t\tsideways\t": "direction 'sideways'",
        "245\ta": "columns",
    }.items():
        table.write_text(f"# a comment\n{row}\n")
        with pytest.raises(SettingsError, match=rf"line 2: .*{problem}"):
            run("--from", "marc21", "--to", "oai_dc", "--mapping", str(table), str(books))


def test_every_pair_of_formats(tmp_path: Path) -> None:
    record = CommonRecord.of({"title": ["Wings"], "creator": ["Austen, Jane"]}, "x17", "2024-01-02")
    written = [f for f in METADATA.values() if f.served]
    for one in written:
        path = tmp_path / one.prefix
        path.write_bytes(one.around[0] + one.pack(one.crosswalk(()).write(record)) + one.around[1])
        for other in written:
            status, out, err = run("--from", one.prefix, "--to", other.prefix, str(path))
            assert (status, err) == (0, ""), (one.prefix, other.prefix)
            (again,) = other.load(out)
            assert not isinstance(again, Broken)
            said = other.crosswalk(again).read(again).simple()
            assert said == {"title": ["Wings"], "creator": ["Austen, Jane"]}


def test_subjects_by_tables(tmp_path: Path) -> None:
    record = METADATA["oai_dc"].crosswalk(()).write(CommonRecord.of({"title": ["A"], "subject": ["UC-414"]}))
    path, table = tmp_path / "a.xml", tmp_path / "uc.tsv"
    path.write_bytes(METADATA["oai_dc"].pack(record))
    table.write_text("UC-414\t77\tHigh energy physics\n")
    for more, subject in ([], "77"), (["--words"], "High energy physics"):
        asked = ("--from", "oai_dc", "--to", "oai_dc", "--subjects", str(table), *more, str(path))
        status, out, _ = run(*asked)
        assert status == 0 and f">{subject}<".encode() in out
