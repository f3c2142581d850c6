"""A file that cannot be read, or not whole, deletes and changes nothing of what it held before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from indlet.formats.iso2709 import Marc, write_iso2709
from indlet.formats.metadata import marc21
from indlet.formats.record import Broken, Field
from indlet.provider.pipeline import crawl
from indlet.provider.summary import Summary
from indlet.settings import Crawl, Hierarchy, LibraryFolder, Settings
from indlet.store import Store, open_store

COUNT = 20


def catalogued(number: int, title: str = "Flutter of swept wings") -> Marc:
    return Marc(
        "00000cam a2200000 a 4500",
        (
            Field("001", f"x{number}"),
            Field("008", "000313s2000    enk           000 0 eng d"),
            Field("245", "", "10", (("a", f"{title}, part {number}"),)),
            Field("520", "", "  ", (("a", "An abstract that is not short. " * 5),)),
            Field("852", "", "0 ", (("b", "stacks"),)),
        ),
    )


ISO = b"".join(write_iso2709(catalogued(number)) for number in range(COUNT))
XML = (
    b'<collection xmlns="http://www.loc.gov/MARC21/slim">'
    + b"".join(marc21.write_xml(one.leader, one.fields) for one in map(catalogued, range(COUNT)))
    + b"</collection>"
)


MAILBOX = b"".join(
    b"From ada@example.org Thu Mar 13 10:00:00 2025\n"
    b"Message-ID: <%d@example.org>\nSubject: Flutter, part %d\nMIME-Version: 1.0\n"
    b"Content-Type: multipart/mixed; boundary=next\n\n--next\n\nOn wings, at length.\n--next--\n\n"
    % (number, number)
    for number in range(COUNT)
)
TREC = b"".join(
    b"<DOC>\n<DOCNO>T%d</DOCNO>\n<TEXT>\nOn swept wings.\n</TEXT>\n</DOC>\n" % number
    for number in range(COUNT)
)
ERROR_PAGE = b"<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>"


class Export:
    def __init__(self, folder: Path, format: str = "marc21", mapping: str = "", plain: bool = False) -> None:
        (folder / "export").mkdir(exist_ok=True)
        self.file = folder / "export" / "all.mrc"
        self.store: Store = open_store(folder / "data")
        root = str(folder / "export")
        library = LibraryFolder("larc", root, format=format, mapping=mapping)
        self.settings = Settings(
            data=folder / "data",
            library=() if plain else (library,),
            hierarchy=(Hierarchy(root, "larc"),) if plain else (),
            crawl=Crawl(settle_seconds=0.0, workers=1),
        )

    def read(self, data: bytes) -> Summary:
        self.file.write_bytes(data)
        (summary,) = crawl(self.store, self.settings)
        return summary

    def records(self) -> dict[str, tuple[int, bytes]]:
        with self.store.read() as view:
            return {s.identifier: (s.datestamp, s.raw) for s in view.changes() if not s.deleted}


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return Export(tmp_path)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(XML[: len(XML) * 88 // 100], id="MARCXML cut in a record"),
        pytest.param(XML[: XML.rindex(b"</record>") + 9], id="MARCXML cut between records"),
        pytest.param(ISO[: len(ISO) * 88 // 100], id="ISO 2709 cut in a record"),
        pytest.param(ISO[: ISO.rindex(b"stacks")], id="ISO 2709 cut in its last field"),
        pytest.param(ISO[: ISO.rindex(b"\x1d", 0, -1) + 20], id="ISO 2709 cut in a leader"),
        pytest.param(ERROR_PAGE, id="error page"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\n \n", id="blank"),
        pytest.param(b"<collection/>", id="no records"),
        pytest.param(b"\x00" * 4096, id="zeros"),
    ],
)
def test_an_export_that_cannot_be_read_deletes_nothing(export: Export, data: bytes) -> None:
    export.read(XML if data.startswith(XML[:20]) else ISO)
    before = export.records()
    assert len(before) == COUNT
    summary = export.read(data)
    assert (summary.deleted, summary.withheld, summary.status) == (0, 0, 3)
    assert export.records() == before
    again = export.read(data)  # nor later
    assert (again.deleted, again.status) == (0, 3)
    repaired = export.read(ISO[: ISO.index(b"\x1d", len(ISO) * 9 // 10) + 1])
    assert (repaired.deleted, repaired.status) == (COUNT - len(export.records()), 0)
    assert repaired.deleted > 0


@pytest.mark.parametrize(
    ("whole", "damaged"),
    [
        pytest.param(XML, XML[: len(XML) * 88 // 100], id="MARCXML cut in a record"),
        pytest.param(ISO, ISO[: len(ISO) * 88 // 100], id="ISO 2709 cut in a record"),
        pytest.param(ISO, ERROR_PAGE, id="error page for ISO 2709"),
        pytest.param(XML, ERROR_PAGE, id="error page for MARCXML"),
        pytest.param(XML, b"<collection/>", id="no records"),
        pytest.param(ISO, b"", id="empty"),
        pytest.param(ISO, b"\x00" * 4096, id="zeros"),
        pytest.param(MAILBOX, MAILBOX[: len(MAILBOX) * 88 // 100], id="mailbox cut in a message"),
        pytest.param(MAILBOX, ERROR_PAGE, id="error page for a mailbox"),
        pytest.param(TREC, TREC[: len(TREC) * 88 // 100], id="SGML cut in a document"),
    ],
)
def test_a_damaged_file_of_a_hierarchy_deletes_nothing(tmp_path: Path, whole: bytes, damaged: bytes) -> None:
    export = Export(tmp_path, plain=True)
    export.read(whole)
    before = {name: raw for name, (_, raw) in export.records().items()}
    assert len(before) == COUNT
    for later in (b"", b"\n"):  # another change of the damaged file does not make it whole
        summary = export.read(damaged + later)
        assert (summary.deleted, summary.withheld, summary.status) == (0, 0, 3)
        assert {name: raw for name, (_, raw) in export.records().items()} == before
    assert export.read(whole).status == 0
    export.file.unlink()
    (gone,) = crawl(export.store, export.settings)
    assert (gone.deleted, gone.status) == (COUNT, 0)


def test_a_damaged_file_beside_a_collection_does_not_keep_its_records(tmp_path: Path) -> None:
    export = Export(tmp_path, plain=True)
    (tmp_path / "export" / "all.pdf").write_bytes(b"%PDF-1.7 broken")
    export.read(ISO)
    summary = export.read(ISO[: ISO.index(b"\x1d", len(ISO) * 9 // 10) + 1])
    assert summary.deleted == COUNT - len(export.records()) > 0


def test_what_can_be_read_of_a_cut_export_is_taken(export: Export) -> None:
    export.read(ISO)
    corrected = write_iso2709(catalogued(0, "Flutter of straight wings"))
    summary = export.read(corrected + ISO[ISO.index(b"\x1d") + 1 : -30])
    assert (summary.records, summary.deleted, summary.failures) == (1, 0, 1)
    assert sum(b"straight" in raw for _, raw in export.records().values()) == 1


def test_a_mistake_in_a_table_deletes_nothing(tmp_path: Path) -> None:
    table = tmp_path / "ours.tsv"
    table.write_text("245\ta\t\ttitle\t\tin\tours\n")
    export = Export(tmp_path, mapping=str(table))
    export.read(ISO)
    before = export.records()
    for mistake in ("245\ta\t\ttitel\t\tin\tours\n", "245 a title\n"):
        table.write_text(mistake)
        summary = export.read(ISO)
        assert (summary.deleted, summary.status) == (0, 1)
        assert "ours.tsv, line 1" in summary.reason
        assert export.records() == before
    table.unlink()
    assert "ours.tsv" in export.read(ISO).reason
    table.write_text("245\ta\t\ttitle\t\tin\tours\n")
    assert export.read(ISO).status == 0
    assert export.records() == before


def test_a_mistake_in_one_library_stops_no_other(tmp_path: Path) -> None:
    export = Export(tmp_path)
    wrong = LibraryFolder("wrong", str(tmp_path / "export"), format="no-such-format")
    export.settings = replace(export.settings, library=(wrong, *export.settings.library))
    export.file.write_bytes(ISO)
    bad, good = crawl(export.store, export.settings)
    assert (bad.status, good.status, good.records) == (1, 0, COUNT)
    assert "no format 'no-such-format'" in bad.reason


def test_the_table_of_a_format_is_read_again_when_it_changes(tmp_path: Path) -> None:
    table = tmp_path / "fields.tsv"
    table.write_text("!form\ttagged\nTI\t\t\ttitle\t\tboth\tt\nAU\t\t\tcontributor\t\tboth\ta\n")
    export = Export(tmp_path, format=f"table:{table}")
    export.read(b"TI: Flutter\nAU: Wells, Ada\n")
    table.write_text("!form\ttagged\nTI\t\t\ttitle\t\tboth\tt\nAU\t\t\tcreator\t\tboth\ta\n")
    assert export.read(b"TI: Flutter\nAU: Wells, Ada\n").records == 1


def whole() -> bytes:
    return write_iso2709(catalogued(7))


@pytest.mark.parametrize("length", [10, 24, 40, 60, 85, 86, 100, 150, len(whole()) - 3, len(whole()) - 2])
def test_a_cut_record_is_broken_and_not_a_shorter_one(length: int) -> None:
    for end in (b"", b"\x1d"):
        data = write_iso2709(catalogued(1)) + whole()[:length] + end
        found = list(marc21.load(data))
        assert [isinstance(one, Broken) for one in found] == [False, True]


def test_a_record_that_lost_only_its_terminator_is_read() -> None:
    (found,) = marc21.load(whole()[:-1])
    assert not isinstance(found, Broken)
    assert marc21.marc(found).fields == catalogued(7).fields


@pytest.mark.parametrize(
    "directory",
    [
        lambda d: b"x" * len(d),
        lambda d: d[1:],
        lambda d: d[:-12],
        lambda d: b"   " + d[3:],
        lambda d: d.replace(b"0", b"\xff"),
        lambda d: d + d[-12:],
    ],
)
def test_a_destroyed_directory_is_a_failure(directory: object) -> None:
    leader, rest = whole()[:24], whole()[24:]
    before, mark, body = rest.partition(b"\x1e")
    assert callable(directory)
    (found,) = marc21.load(leader + directory(before) + mark + body)
    assert isinstance(found, Broken)


def test_one_torn_element_costs_its_record_and_no_other() -> None:
    torn = XML.replace(b"part 3</subfield></datafield>", b"part 3</subfield>", 1)
    found = list(marc21.load(torn))
    titles = [str(one) for one in found if not isinstance(one, Broken)]
    assert any(isinstance(one, Broken) for one in found)
    assert not any("part 3'" in title for title in titles)
    assert sum("part 2'" in title or "part 4'" in title or "part 19'" in title for title in titles) == 3


def test_a_forbidden_character_costs_itself_and_is_told() -> None:
    found = list(marc21.load(XML.replace(b"part 3<", b"part \x033<", 1)))
    assert [isinstance(one, Broken) for one in found] == [False] * COUNT + [True]


def test_a_column_that_no_row_knows_is_a_warning_and_costs_no_record(tmp_path: Path) -> None:
    table = tmp_path / "columns.tsv"
    table.write_text("!form\tdelimited\nTitle\t\t\ttitle\t\tboth\tt\nKey\t\t\tidentifier\t\tboth\tk\n")
    export = Export(tmp_path, format=f"table:{table}")
    export.read(b"Title,Key\nFlutter,k1\nWakes,k2\n")
    before = export.records().keys()
    summary = export.read(b"Title,Key,Shelf\nFlutter,k1,A 1\nWakes,k2,A 2\n")
    assert (summary.failed, summary.failures, summary.warnings, summary.status) == (0, 0, 1, 0)
    with export.store.read() as view:
        (warning,) = view.failures()
    assert (warning.where, warning.stage) == ("all.mrc", "warning")
    assert "'Shelf'" in warning.reason
    assert export.records().keys() == before
    # The warning keeps no record that the export has dropped, and goes with the column.
    summary = export.read(b"Title,Key,Shelf\nFlutter,k1,A 1\nGusts,k3,A 2\n")
    assert (summary.deleted, summary.warnings) == (1, 1)
    assert export.read(b"Title,Key\nFlutter,k1\nGusts,k3\n").warnings == 0


def test_an_unknown_column_changes_no_identifier(tmp_path: Path) -> None:
    table = tmp_path / "columns.tsv"
    table.write_text("!form\tdelimited\nTitle\t\t\ttitle\t\tboth\tt\n")
    export = Export(tmp_path, format=f"table:{table}")
    export.read(b"Title\nFlutter\n")
    before = export.records().keys()
    assert export.read(b"Title,Shelf\nFlutter,A 1\n").warnings == 1
    assert export.records().keys() == before
