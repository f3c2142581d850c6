"""A library's round: what a catalogue exports is served, what others have is written for it to import."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import unicodedata
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pymarc
import pytest

from indlet.errors import SettingsError
from indlet.exchange.alerts import acknowledge, alerts
from indlet.exchange.duplicates.decisions import decide
from indlet.exchange.translate import format_named, on_top
from indlet.exchange.write_out import WriteTask, _replace, write_out
from indlet.formats import METADATA, CommonRecord
from indlet.formats.iso2709 import Marc, write_iso2709
from indlet.formats.metadata import marc21, oai_dc
from indlet.formats.record import Broken, Field
from indlet.formats.registry import known_roots, root_name
from indlet.model import Record, TermVector
from indlet.oai.read import read
from indlet.oai.xml import element
from indlet.provider.pipeline import crawl
from indlet.service.harvest.cache import KEPT_AS
from indlet.service.records.normalise import Normaliser
from indlet.settings import Crawl, LibraryFolder, Settings, Write
from indlet.settings.file import load
from indlet.store import Store, open_store, withheld
from indlet.text import Analyzer, Policy


def marc(number: str, title: str, author: str = "Wells, Ada") -> bytes:
    record: Any = pymarc.Record()
    record.add_field(pymarc.Field("001", data=number))
    record.add_field(
        pymarc.Field("100", pymarc.Indicators("1", " "), [pymarc.Subfield("a", author)]),
        pymarc.Field("245", pymarc.Indicators("1", "0"), [pymarc.Subfield("a", title)]),
    )
    return bytes(record.as_marc())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "data")


def exported(tmp_path: Path, store: Store, **library: Any) -> Settings:
    folder = tmp_path / "export"
    folder.mkdir(exist_ok=True)
    return Settings(
        data=tmp_path / "data",
        library=(LibraryFolder("larc", str(folder), **library),),
        crawl=Crawl(settle_seconds=0.0, workers=1),
    )


def records(store: Store) -> dict[str, Record]:
    with store.read() as view:
        return {s.identifier.rpartition(":")[2]: s.record for s in view.changes() if not s.deleted}


def put(store: Store, source: str, *titles: str, date: str = "1999", subject: str = "") -> None:
    more = {"subject": [subject]} if subject else {}
    with store.write() as tx:
        origin = tx.origin("source", source, {"url": f"http://{source}.example.org"})
        tx.put(origin, [
            Record(f"oai:{source}.example.org:r/{title}", {"title": [title], "date": [date], **more},
                   TermVector.of({"wing": 1}), ("reports",))
            for title in titles
        ])  # fmt: skip


def test_a_record_of_a_table_library_is_written_from_what_it_says(tmp_path: Path, store: Store) -> None:
    table = format_named("table:sandia")
    said = [Field("TITLE", "Arcs"), Field("CATEGORY", "46"), Field("EXTENT", "12 p.")]
    metadata = table.crosswalk(said).read(said).simple()
    with store.write() as tx:
        origin = tx.origin("source", "sandia", {"url": "http://sandia.example.org"})
        tx.put(origin, [Record("oai:sandia.example.org:1", metadata, raw=table.xml(said))])
    folders = [tmp_path / name for name in ("dcterms", "table")]
    for folder in folders:
        folder.mkdir()
    writes = (Write(str(folders[0]), "dcterms"), Write(str(folders[1]), "table:sandia"))
    settings = Settings(data=tmp_path / "data", write=writes)
    assert [(done.files, done.reason) for done in write_out(store, settings)] == [(1, ""), (1, "")]
    qualified, tagged = (next(f.rglob("*.*")).read_text() for f in folders)
    assert "extent>12 p.<" in qualified
    assert "CATEGORY: 46" in tagged and "KEYWORD" not in tagged
    page = read(
        b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><GetRecord><record><header>'
        b"<identifier>oai:sandia.example.org:1</identifier><datestamp>2024-01-01</datestamp></header>"
        b"<metadata>%b</metadata></record></GetRecord></OAI-PMH>" % table.xml(said)
    )
    made = Normaliser(Analyzer(Policy()), roots=known_roots(settings)).record(page.items[0])
    assert made.metadata == metadata  # so it can be harvested in that form, too


def test_what_iso_2709_cannot_hold_can_be_written_as_marcxml(tmp_path: Path, store: Store) -> None:
    put(store, "lanl", "Flutter", subject="x" * 12_000)
    for name in ("iso", "xml"):
        (tmp_path / name).mkdir()
    writes = (Write(str(tmp_path / "iso")), Write(str(tmp_path / "xml"), "marcxml"))
    done = write_out(store, Settings(data=tmp_path / "data", write=writes))
    assert [(one.files, one.failed) for one in done] == [(0, 1), (1, 0)]
    (alert,) = alerts(store)
    assert "12005 bytes; ISO 2709 takes 9999" in alert.reason and "marcxml" in alert.remedy
    (path,) = (tmp_path / "xml").rglob("*.xml")
    (read,) = pymarc.parse_xml_to_array(str(path), strict=True)  # type: ignore[no-untyped-call]
    assert read["245"]["a"] == "Flutter" and len(read["653"]["a"]) == 12_000


# Local read


PERFORMED = Marc(
    "00000cam a2200000 a 4500",
    (
        Field("001", "ocm7"),
        Field("003", "OCoLC"),
        Field("008", "000313s2000    enk           000 0 eng d"),
        Field("245", "", "10", (("6", "880-01"), ("a", "Mahler /"), ("c", "J. Z."))),
        Field("650", "", " 0", (("a", "Symphonies"),)),
        Field("600", "", "10", (("a", "Mahler, Gustav"),)),
        Field("852", "", "0 ", (("b", "stacks"), ("h", " ML410  .M2 "))),
        Field("880", "", "10", (("6", "245-01/$1"), ("a", "馬勒"))),
        Field("999", "", "ff", (("i", "local"),)),
    ),
)
NAMED = Field("035", "", "  ", (("a", "(OAI)oai:lanl.example.org:1"),))


def written_from(tmp_path: Path, store: Store, original: Marc, format: str = "marc21", **task: Any) -> Marc:
    """What is written of a record that was harvested as MARC."""
    raw = marc21.write_xml(original.leader, original.fields)
    with store.write() as tx:
        origin = tx.origin("source", "lanl", {"url": "http://lanl.example.org"})
        tx.put(origin, [Record("oai:lanl.example.org:1", marc21.dublin_core(original), raw=raw)])
    folder = tmp_path / f"import{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    (done,) = write_out(store, Settings(write=(Write(str(folder), format, **task),)))
    assert (done.files, done.reason) == (1, "")
    (data,) = files(folder).values()
    (found,) = METADATA["marc21"].load(data)
    assert not isinstance(found, Broken)
    return marc21.marc(found)


@pytest.mark.parametrize("format", ["marc21", "marcxml", "marc8"])
def test_marc_is_written_as_its_origin_has_it(tmp_path: Path, store: Store, format: str) -> None:
    made = written_from(tmp_path, store, PERFORMED, format, required=("title",))
    sets = [Field("066", "", "  ", (("c", "$1"),))] if format == "marc8" else []
    assert made.fields == (*PERFORMED.fields[:3], NAMED, *sets, *PERFORMED.fields[3:])
    assert made.leader[5:9] == PERFORMED.leader[5:9]
    assert not list(alerts(store))
    known = Marc(PERFORMED.leader, (Field("001", "oai:lanl.example.org:1"), *PERFORMED.fields[3:]))
    again = written_from(tmp_path, store, known, format)
    assert [one for one in again.fields if one not in sets] == [*known.fields]  # it is named by 001


def test_a_table_is_laid_over_the_marc_of_others(tmp_path: Path, store: Store) -> None:
    table, subjects = tmp_path / "own.tsv", tmp_path / "subjects.tsv"
    table.write_text(
        "040\ta\t\trecord\tsay=XYZ\tout\twho catalogues here\n"
        "600\ta\t\ttitle\t\tout\tin place of theirs\n"
        "+650\ta\tvalue~M[0-9]+\tsubject\t\tout\tbeside theirs\n"
        "008/23\t\t\ttitle\tsay=o\tout\tonline\n"
    )
    subjects.write_text("Symphonies\tM1001\n")
    made = written_from(tmp_path, store, PERFORMED, mapping=str(table), subjects=(str(subjects),))
    control = made.control("008")
    assert (control[:23], control[23], control[24:]) == ("000313s2000    enk     ", "o", "     000 0 eng d")
    told = [(field.tag, field.subfields[0][1]) for field in made.fields if field.subfields]
    assert told == [
        ("035", "(OAI)oai:lanl.example.org:1"), ("040", "XYZ"), ("245", "880-01"),
        ("600", "Mahler"), ("600", "馬勒"), ("650", "Symphonies"), ("650", "M1001"),
        ("852", "stacks"), ("880", "245-01/$1"), ("999", "local"),
    ]  # fmt: skip


def test_marc_that_does_not_fit_is_translated_and_that_is_told(tmp_path: Path, store: Store) -> None:
    long = Field("999", "", "ff", (("i", "x" * 12_000),))
    made = written_from(tmp_path, store, Marc(PERFORMED.leader, (*PERFORMED.fields[:-1], long)))
    assert made.control("001") == "oai:lanl.example.org:1"
    assert made.has("245") and not made.has("852", "999")
    (alert,) = alerts(store)
    assert alert.reason.startswith("translated to marc21, not written whole: field 999 has 12005 bytes")
    assert "marcxml" in alert.remedy
    assert written_from(tmp_path, store, Marc(PERFORMED.leader, (long,)), "marcxml").has("999")


def test_unimarc_is_translated(tmp_path: Path, store: Store) -> None:
    title = Field("200", "", "1 ", (("a", "Le titre"),))
    made = written_from(tmp_path, store, Marc(" " * 24, (Field("001", "7"), title)))
    assert made.control("001") == "oai:lanl.example.org:1"
    assert made.has("245") and not made.has("200", "035")


def test_each_record_of_a_file_is_served_in_its_own_format(tmp_path: Path, store: Store) -> None:
    settings = exported(tmp_path, store)
    (tmp_path / "export" / "all.mrc").write_bytes(marc("7", "Flutter") + marc("8", "Shock waves"))
    (summary,) = crawl(store, settings)
    assert (summary.records, summary.failed) == (2, 0)
    found = records(store)
    assert set(found) == {"larc/all.mrc;7", "larc/all.mrc;8"}
    one = found["larc/all.mrc;7"]
    assert one.metadata["title"] == ["Flutter"]
    assert b"<leader>" in one.raw and b'tag="245"' in one.raw
    assert one.vector is not None and "flutter" in one.vector.frequencies()


def test_a_record_without_identifier_keeps_its_name_wherever_it_stands(tmp_path: Path, store: Store) -> None:
    settings = exported(tmp_path, store)
    export = tmp_path / "export" / "all.mrc"

    def crawled(*titles: str, publisher: str = "") -> dict[str, str]:
        made = []
        for title in titles:
            fields = [Field("245", "", "10", (("a", title),))]
            fields += [Field("260", "", "  ", (("b", publisher),))] if publisher else []
            made.append(write_iso2709(Marc("00000cam a2200000 a 4500", tuple(fields))))
        export.write_bytes(b"".join(made))
        crawl(store, settings)
        return {record.metadata["title"][0]: name for name, record in records(store).items()}

    before = crawled("Flutter", "Ice")
    after = crawled("Shock waves", "Flutter", "Ice", publisher="NACA")
    assert {title: after[title] for title in before} == before
    assert len(set(after.values())) == 3
    assert crawled("Flutter", "Flutter", "Ice")["Ice"] == before["Ice"]
    assert len(records(store)) == 3  # two that say the same are still two


def test_a_marc_record_is_kept_with_its_own_scripts_and_in_its_order(tmp_path: Path, store: Store) -> None:
    settings = exported(tmp_path, store)
    record = Marc(
        "00000cam a2200000 a 4500",
        (
            Field("001", "7"),
            Field("245", "", "10", (("6", "880-01"), ("a", "Mahler"))),
            Field("650", "", " 0", (("a", "Symphonies"),)),
            Field("600", "", "10", (("a", "Mahler, Gustav"),)),
            Field("880", "", "10", (("6", "245-01/$1"), ("a", "馬勒"))),
            Field("852", "", "0 ", (("b", "stacks"), ("h", " ML410  .M2 "))),
        ),
    )
    (tmp_path / "export" / "a.mrc").write_bytes(write_iso2709(record))
    crawl(store, settings)
    (kept,) = records(store).values()
    assert marc21.read_xml(element(kept.raw)).fields == record.fields
    assert kept.metadata["title"] == ["Mahler", "馬勒"]


@pytest.mark.parametrize("space", [' xmlns="http://www.loc.gov/mods/v3"', ""])
def test_a_mods_record_is_kept_as_it_was_exported(tmp_path: Path, store: Store, space: str) -> None:
    settings = exported(tmp_path, store, format="mods")
    name = "<namePart>Wells, Ada</namePart><role><roleTerm>author</roleTerm></role>"
    title = '<titleInfo lang="en"><nonSort>The</nonSort><title>Flutter</title></titleInfo>'
    inside = f'{title}<name type="personal">{name}</name>'
    (tmp_path / "export" / "a.xml").write_text(f"<mods{space}>{inside}</mods>")
    crawl(store, settings)
    (kept,) = records(store).values()
    assert root_name(kept.raw) in METADATA["mods"].roots
    assert kept.raw.decode().partition(">")[2] == f"{inside}</mods>"
    assert kept.metadata["title"] == ["The Flutter"]


def test_a_broken_record_costs_itself(tmp_path: Path, store: Store) -> None:
    settings = exported(tmp_path, store)
    broken = marc("9", "Torn")[:-40] + b"\x1d"
    (tmp_path / "export" / "all.mrc").write_bytes(marc("7", "Flutter") + broken + marc("8", "Waves"))
    crawl(store, settings)
    assert {"Flutter", "Waves"} <= {r.metadata["title"][0] for r in records(store).values()}
    with store.read() as view:
        assert all("all.mrc" in f.where for f in view.failures())


def test_a_table_of_the_library_stands_on_top(tmp_path: Path, store: Store) -> None:
    settings = exported(tmp_path, store)
    (tmp_path / "export" / "a.mrc").write_bytes(marc("7", "Flutter"))
    crawl(store, settings)
    assert "Wells, Ada" in records(store)["larc/a.mrc"].metadata["creator"]
    table = tmp_path / "ours.tsv"
    table.write_text("100\ta\t\tcontributor\t\tin\tour own\n")
    settings = replace(settings, library=(replace(settings.library[0], mapping=str(table)),))
    (summary,) = crawl(store, settings)
    assert summary.records == 1  # read anew, for the table is another
    assert "Wells, Ada" in records(store)["larc/a.mrc"].metadata["contributor"]


def test_an_export_that_shrank_or_vanished_waits(tmp_path: Path, store: Store) -> None:
    settings = exported(tmp_path, store)
    settings = replace(settings, crawl=replace(settings.crawl, withhold_records=3))
    export = tmp_path / "export" / "all.mrc"

    def read(*numbers: int, accept_empty: bool = False) -> tuple[int, int, int]:
        export.write_bytes(b"".join(marc(f"{n}", f"Flutter {n}") for n in numbers))
        (summary,) = crawl(store, settings, accept_empty=accept_empty)
        return summary.deleted, summary.withheld, len(records(store))

    assert read(*range(20)) == (0, 0, 20)
    assert read(*range(2, 20)) == (2, 0, 18)
    assert read(19, 20) == (0, 17, 19)  # what is new is taken
    assert read(19, 20, 21) == (0, 17, 20)
    assert [alert.kind for alert in alerts(store)] == ["deletions"]
    assert read(*range(2, 22)) == (0, 0, 20)  # all is back
    assert not list(alerts(store)) and not withheld.waiting_deletions(store)
    assert read(20, 21) == (0, 18, 20)
    assert withheld.release(store, "larc") == 18
    assert read(20, 21) == (0, 0, 2)
    assert read(*range(20, 40)) == (0, 0, 20)
    assert read(30, 31, accept_empty=True) == (18, 0, 2)  # somebody says that it is meant


def test_export_files_that_vanish_wait_and_may_be_kept(tmp_path: Path, store: Store) -> None:
    settings = exported(tmp_path, store)
    settings = replace(settings, crawl=replace(settings.crawl, withhold_records=3))
    for number in range(10):
        (tmp_path / "export" / f"{number}.mrc").write_bytes(marc(f"{number}", f"Flutter {number}"))
    crawl(store, settings)
    for number in range(9):
        (tmp_path / "export" / f"{number}.mrc").unlink()
    (summary,) = crawl(store, settings)
    assert (summary.deleted, summary.withheld, len(records(store))) == (0, 9, 10)
    assert withheld.keep(store, "larc", "Ada Wells") == 9
    (summary,) = crawl(store, settings)
    assert (summary.deleted, summary.withheld, len(records(store))) == (0, 0, 10)
    (tmp_path / "export" / "9.mrc").unlink()
    (tmp_path / "export" / "10.mrc").write_bytes(marc("10", "Flutter"))
    (summary,) = crawl(store, settings)
    assert (summary.deleted, len(records(store))) == (1, 10)


@pytest.mark.parametrize("format", ["marc21", "marcxml", "mods", "rfc1807", "cosati"])
def test_what_a_catalogue_imported_is_not_exported_as_its_own(
    tmp_path: Path, store: Store, format: str
) -> None:
    settings = exported(tmp_path, store, format=format.replace("marcxml", "marc21"))
    put(store, "lanl", "Flutter", "Waves")
    write = Write(str(tmp_path / "export"), format, path="{name}")
    assert [done.files for done in write_out(store, Settings(write=(write,)))] == [2]
    (summary,) = crawl(store, settings)
    assert (summary.records, summary.echoes) == (0, 2)
    with store.write() as tx:  # deleted at its origin, it does not come back as ours
        tx.delete(tx.origin("source", "lanl"), ["oai:lanl.example.org:r/Waves"])
    (path, _) = (tmp_path / "export").iterdir()
    path.rename(path.with_stem("moved"))
    assert [summary.records for summary in crawl(store, settings)] == [0]


@pytest.mark.parametrize("form", ["!form\tdelimited\n", "!form\ttagged\n"])
def test_what_a_catalogue_imported_without_its_identifier_is_known_by_what_it_says(
    tmp_path: Path, store: Store, form: str
) -> None:
    table = tmp_path / "reports.tsv"
    rows = "TI\t\t\ttitle\t\tboth\tt\nAU\t\t\tcreator\t\tboth\ta\nDA\t\t\tdate\t\tboth\td\n"
    table.write_text(form + rows)
    settings = exported(tmp_path, store, format=f"table:{table}")
    with store.write() as tx:
        origin = tx.origin("source", "lanl", {"url": "http://lanl.example.org"})
        about = {"creator": ["Wells, Ada"], "date": ["1999"]}
        for number in range(2):
            title = {"title": [f"Flutter {number}"]}
            tx.put(origin, [Record(f"oai:lanl.example.org:{number}", {**title, **about})])
    write = Write(str(tmp_path / "export"), f"table:{table}", path="{name}")
    assert [done.files for done in write_out(store, Settings(write=(write,)))] == [2]
    (summary,) = crawl(store, settings)
    assert (summary.records, summary.echoes, summary.failures) == (0, 2, 0)
    # What the catalogue has changed is its own, and so is what it has made itself.
    one, _ = sorted((tmp_path / "export").iterdir())
    one.write_bytes(one.read_bytes().replace(b"1999", b"2001"))
    (summary,) = crawl(store, settings)
    assert summary.records == 1


def test_marc_that_was_written_whole_is_known_by_its_035(tmp_path: Path, store: Store) -> None:
    settings = exported(tmp_path, store)
    raw = marc21.write_xml(PERFORMED.leader, PERFORMED.fields)
    with store.write() as tx:
        origin = tx.origin("source", "lanl", {"url": "http://lanl.example.org"})
        tx.put(origin, [Record("oai:lanl.example.org:1", marc21.dublin_core(PERFORMED), raw=raw)])
    write_out(store, Settings(write=(Write(str(tmp_path / "export"), path="{name}"),)))
    assert [(summary.records, summary.echoes) for summary in crawl(store, settings)] == [(0, 1)]


def test_what_a_catalogue_imported_is_known_as_soon_as_its_origin_is_harvested(
    tmp_path: Path, store: Store
) -> None:
    settings = exported(tmp_path, store)
    named = marc("oai:lanl.example.org:r/Flutter", "Flutter")
    (tmp_path / "export" / "all.mrc").write_bytes(named + marc("8", "Waves"))
    assert [summary.records for summary in crawl(store, settings)] == [2]  # nobody else has it
    put(store, "lanl", "Flutter")
    assert [summary.deleted for summary in crawl(store, settings)] == [1]
    assert set(records(store)) == {"r/Flutter", "larc/all.mrc;8"}
    assert [(s.records, s.deleted) for s in crawl(store, settings)] == [(0, 0)]


def test_the_first_example_keeps_subtitles_and_whole_marc(tmp_path: Path, store: Store) -> None:
    text = (Path(__file__).parents[2] / "docs" / "libraries.md").read_text()
    _, example, *_ = text.split("```toml\n")
    (tmp_path / "larc.toml").write_text(dedent(example.partition("```")[0]))
    settings = load(tmp_path / "larc.toml")
    export = Path(settings.library[0].read)
    export.mkdir(parents=True)
    title = (("a", "Flutter :"), ("b", "a survey /"), ("c", "A. Wells"))
    record = Marc("00000cam a2200000 a 4500", (Field("001", "7"), Field("245", "", "10", title)))
    (export / "a.mrc").write_bytes(write_iso2709(record))
    crawl(store, replace(settings, crawl=Crawl(settle_seconds=0.0, workers=1)))
    (found,) = records(store).values()
    assert found.metadata["title"] == ["Flutter : a survey"]
    assert [source.metadata for source in settings.source] == ["marc21"]


# Local write


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "import").mkdir()
    return tmp_path / "import"


def test_what_others_have_is_written_in_the_catalogues_format(store: Store, folder: Path) -> None:
    put(store, "lanl", "Flutter", "Waves")
    put(store, "afrl", "Ice", date="around 2003")
    (done,) = write_out(store, Settings(write=(Write(str(folder)),)))
    assert (done.files, done.reason) == (3, "")
    found = files(folder)
    assert {name.rpartition("/")[0] for name in found} == {"lanl/1999", "afrl/2003"}
    titles = [
        record.title for data in found.values() for record in pymarc.MARCReader(io.BytesIO(data)) if record
    ]
    assert sorted(title.strip(" /.") for title in titles if title) == ["Flutter", "Ice", "Waves"]


def test_each_change_is_written_once(store: Store, folder: Path) -> None:
    settings = Settings(write=(Write(str(folder), format="oai_dc"),))
    put(store, "lanl", "Flutter", "Waves")
    write_out(store, settings)
    before = {name: (folder / name).stat().st_ino for name in files(folder)}
    (again,) = write_out(store, settings)
    assert (again.files, again.unchanged) == (0, 0)
    put(store, "lanl", "Flutter", date="2001")  # another year is another place
    (done,) = write_out(store, settings)
    assert done.files == 1
    after = files(folder)
    assert len(after) == 2 and any(name.startswith("lanl/2001/") for name in after)
    kept = [name for name in after if name in before]
    assert all((folder / name).stat().st_ino == before[name] for name in kept)


def test_killed_before_it_could_say_so_it_rewrites_nothing(store: Store, folder: Path) -> None:
    settings = Settings(write=(Write(str(folder), format="oai_dc"),))
    put(store, "lanl", "Flutter")
    write_out(store, settings)
    (name,) = files(folder)
    inode = (folder / name).stat().st_ino
    with store.read() as view:
        (origin,) = view.origins("write")
    with store.write() as tx:  # as if the commit had never been
        tx.state(origin.id, {})
        tx.drop_files(origin.id, [name])
    (done,) = write_out(store, settings)
    assert (done.files, done.unchanged) == (0, 1) and (folder / name).stat().st_ino == inode
    with store.read() as view:
        rows, state = list(view.files(origin.id)), view.state(origin.id)
    put(store, "lanl", "Flutter", subject="wings")
    write_out(store, settings)
    with store.write() as tx:
        tx.state(origin.id, state)
        tx.put_files(origin.id, rows)
        tx.resolve_alerts("changed", str(folder), [rows[0].resource])
    (done,) = write_out(store, settings)
    assert (done.files, [alert.kind for alert in alerts(store)]) == (0, ["changed"])


def test_a_better_form_of_the_same_version_is_not_called_a_change(store: Store, folder: Path) -> None:
    settings = Settings(write=(Write(str(folder)),))
    said = marc21.dublin_core(PERFORMED)
    whole = marc21.write_xml(PERFORMED.leader, PERFORMED.fields)
    properties = {"version": [0, "2026-01-01T00:00:00Z", True, 0]}

    def put_copy(raw: bytes, **more: object) -> None:
        with store.write() as tx:
            origin = tx.origin("source", "lanl", {"url": "http://lanl.example.org"})
            record = Record("oai:lanl.example.org:1", said, raw=raw, properties={**properties, **more})
            tx.put(origin, [record])
        write_out(store, settings)

    put_copy(oai_dc.write(said), distance=1)
    put_copy(whole)
    (alert,) = alerts(store)
    assert alert.reason.startswith("not changed at its source lanl, but here in a better form")
    properties["version"] = [0, "2026-01-02T00:00:00Z", True, 0]
    put_copy(whole.replace(b"stacks", b"annex"))
    assert [alert.reason[:25] for alert in alerts(store)] == ["changed at its source lan"]


@pytest.mark.parametrize("deletions", ["alert", "file", "remove"])
def test_deletions(store: Store, folder: Path, deletions: str) -> None:
    settings = Settings(write=(Write(str(folder), format="oai_dc", deletions=deletions),))
    put(store, "lanl", "Flutter", "Waves")
    write_out(store, settings)
    with store.write() as tx:
        tx.delete(tx.origin("source", "lanl"), ["oai:lanl.example.org:r/Flutter"])
    (done,) = write_out(store, settings)
    assert done.deleted == 1
    names = sorted(name.rpartition(".")[2] for name in files(folder))
    assert names == {"alert": ["xml", "xml"], "file": ["deleted", "xml", "xml"], "remove": ["xml"]}[deletions]
    waiting = [a.record for a in alerts(store)]
    assert all(a.title == "Flutter" for a in alerts(store))  # though it is deleted
    assert waiting == ([] if deletions == "remove" else ["oai:lanl.example.org:r/Flutter"])
    for record in waiting:
        acknowledge(store, record, "Ada Wells")
    assert not list(alerts(store))
    put(store, "lanl", "Flutter")
    write_out(store, settings)
    assert sorted(name.rpartition(".")[2] for name in files(folder)) == ["xml", "xml"]  # no tombstone


def test_changed_settings_apply_to_records_that_were_written_before(store: Store, folder: Path) -> None:
    put(store, "lanl", "Flutter", "Waves")
    put(store, "afrl", "Ice")
    task = Write(str(folder), "oai_dc", from_=("lanl",))
    write_out(store, Settings(write=(task,)))
    assert len(files(folder)) == 2
    task = replace(task, from_=("lanl", "afrl"))
    (done,) = write_out(store, Settings(write=(task,)))
    assert (done.files, done.unchanged) == (1, 2) and not list(alerts(store))
    task = replace(task, format="marcxml")
    (done,) = write_out(store, Settings(write=(task,)))
    assert done.files == 3 and all(b"<leader>" in data for data in files(folder).values())
    (alert,) = alerts(store)  # one for all of them, and nothing is said to have changed at its source
    assert alert.kind == "rewritten" and "3 files were written again" in alert.reason
    acknowledge(store, alert.source, "Ada Wells")
    task = replace(task, from_=("afrl",))
    (done,) = write_out(store, Settings(write=(task,)))
    (alert,) = alerts(store)
    assert alert.kind == "rewritten" and "2 records are no longer selected" in alert.reason
    assert [(done.files, done.deleted) for done in write_out(store, Settings(write=(task,)))] == [(0, 0)]


def test_a_changed_table_is_a_changed_setting(store: Store, folder: Path) -> None:
    table = folder.parent / "own.tsv"
    table.write_text("246\ta\t\ttitle\t\tout\tours\n")
    put(store, "lanl", "Flutter")
    settings = Settings(write=(Write(str(folder), "marcxml", mapping=str(table)),))
    write_out(store, settings)
    table.write_text("242\ta\t\ttitle\t\tout\tours, too\n")
    on_top.cache_clear()  # as in another process
    (done,) = write_out(store, settings)
    assert (done.files, [alert.kind for alert in alerts(store)]) == (1, ["rewritten"])
    assert all(b'tag="242"' in data for data in files(folder).values())


def test_a_historical_round_opens_no_alert_that_somebody_has_seen_to(store: Store, folder: Path) -> None:
    put(store, "lanl", "Flutter")
    settings = Settings(write=(Write(str(folder), required=("title", "rights")),))
    write_out(store, settings)
    acknowledge(store, "oai:lanl.example.org:r/Flutter", "Ada Wells")
    write_out(store, settings, historical=True)
    assert not list(alerts(store))


@pytest.mark.parametrize("seen_to", [True, False])
def test_a_record_that_returns_is_written_again(store: Store, folder: Path, seen_to: bool) -> None:
    settings = Settings(write=(Write(str(folder), "oai_dc"),))
    put(store, "lanl", "Flutter")
    write_out(store, settings)
    (name,) = files(folder)
    inode = (folder / name).stat().st_ino
    with store.write() as tx:
        tx.delete(tx.origin("source", "lanl"), ["oai:lanl.example.org:r/Flutter"])
    write_out(store, settings)
    if seen_to:  # deleted in the catalogue
        acknowledge(store, "oai:lanl.example.org:r/Flutter", "Ada Wells")
    put(store, "lanl", "Flutter")
    (done,) = write_out(store, settings)
    assert [alert.kind for alert in alerts(store)] == (["returned"] if seen_to else [])
    assert (done.files == 1) is seen_to and ((folder / name).stat().st_ino != inode) is seen_to


def test_a_record_that_another_source_also_has_keeps_its_file(store: Store, folder: Path) -> None:
    settings = Settings(write=(Write(str(folder), "oai_dc", from_=("lanl",)),))
    put(store, "lanl", "Flutter")
    write_out(store, settings)
    with store.read() as view, store.write() as tx:
        (copy,) = (stored.record for stored in view.changes())
        tx.put(tx.origin("source", "afrl", {"url": "http://afrl.example.org"}), [copy])
    (done,) = write_out(store, settings)
    assert done.deleted == 0 and not list(alerts(store)) and len(files(folder)) == 1


def test_a_killed_run_leaves_no_draft_behind(store: Store, folder: Path) -> None:
    put(store, "lanl", "Flutter")
    script = (
        "import os, signal, sys\n"
        "from indlet.exchange.write_out import write_out\n"
        "from indlet.settings import Settings, Write\n"
        "from indlet.store import open_store\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "task = Write(sys.argv[2], 'oai_dc', path='{name}')\n"
        "write_out(open_store(sys.argv[1]), Settings(write=(task,)))\n"
    )
    command = [sys.executable, "-c", script, str(folder.parent / "data"), str(folder)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert [path.suffix for path in folder.iterdir()] == [".part"]
    with store.write() as tx:  # the file that was half written is never written
        tx.forget(tx.origin("source", "lanl"))
    write_out(store, Settings(write=(Write(str(folder), "oai_dc", path="{name}"),)))
    assert not files(folder)


def test_a_run_may_write_one_file(store: Store, folder: Path) -> None:
    settings = Settings(write=(Write(str(folder), "marc21", path="{name}", files="run"),))
    put(store, "lanl", "Flutter", "Waves")
    assert [done.files for done in write_out(store, settings)] == [1]
    (name,) = files(folder)
    found = [record.title for record in pymarc.MARCReader(io.BytesIO(files(folder)[name])) if record]
    assert sorted(filter(None, found)) == ["Flutter", "Waves"]
    assert [(done.files, done.unchanged) for done in write_out(store, settings, historical=True)] == [(0, 2)]
    put(store, "lanl", "Waves", date="2001")
    put(store, "lanl", "Ice")
    write_out(store, settings)
    assert sorted(files(folder)) == ["run-000001.mrc", "run-000002.mrc"]  # what changed, and nothing else
    second = files(folder)["run-000002.mrc"]
    assert len(list(pymarc.MARCReader(io.BytesIO(second)))) == 2
    (alert,) = alerts(store)
    assert alert.kind == "changed" and "run-000002.mrc was written again" in alert.reason
    with store.write() as tx:
        tx.delete(tx.origin("source", "lanl"), ["oai:lanl.example.org:r/Ice"])
    write_out(store, settings)
    assert sorted(alert.kind for alert in alerts(store)) == ["changed", "deleted"]
    assert len(files(folder)) == 2
    with pytest.raises(SettingsError, match="deletions"):
        WriteTask(store, Write(str(folder), files="run", deletions="remove"))


def test_one_file_of_a_table_has_one_head(store: Store, folder: Path) -> None:
    table = folder.parent / "ours.tsv"
    table.write_text("!form\tdelimited\n!delimiter\t,\nTITLE\t\t\ttitle\t\tboth\t\n")
    put(store, "lanl", "Flutter", "Waves")
    write_out(store, Settings(write=(Write(str(folder), f"table:{table}", path="{name}", files="run"),)))
    (data,) = files(folder).values()
    assert data.decode().split() == ["TITLE", "Flutter", "Waves"]


def test_what_was_called_the_same_as_ours_may_be_skipped(store: Store, folder: Path) -> None:
    put(store, "lanl", "Flutter", "Waves")
    with store.write() as tx:
        tx.put(tx.origin("hierarchy", "larc"), [Record("oai:larc:1", {"title": ["Flutter"]})])
    decide(store, "oai:larc:1", "oai:lanl.example.org:r/Flutter", "same", by="Ada Wells")
    task = Write(str(folder), "oai_dc", duplicates="skip")
    (done,) = write_out(store, Settings(write=(task,)))
    assert done.files == 1 and not list(alerts(store))
    decide(store, "oai:larc:1", "oai:lanl.example.org:r/Flutter", "different", by="Ada Wells")
    (done,) = write_out(store, Settings(write=(task,)))
    assert (done.files, done.unchanged) == (1, 1)
    decide(store, "oai:larc:1", "oai:lanl.example.org:r/Flutter", "same", by="Ada Wells")
    (done,) = write_out(store, Settings(write=(task,)))
    assert done.deleted == 1 and [alert.kind for alert in alerts(store)] == ["rewritten"]


def test_only_what_is_asked_for(store: Store, folder: Path) -> None:
    put(store, "lanl", "Flutter")
    put(store, "afrl", "Ice")
    with store.write() as tx:
        tx.put(tx.origin("source", "afrl"), [Record("oai:afrl:memo", {"title": ["Memo"]}, None, ("memos",))])
    write_out(store, Settings(write=(Write(str(folder), "oai_dc", from_=("afrl:reports",)),)))
    assert [name.split("/")[0] for name in files(folder)] == ["afrl"]


def test_a_source_is_written_by_whatever_name_its_records_are_kept(store: Store, folder: Path) -> None:
    settings = Settings(write=(Write(str(folder), from_=("larc",), path="{name}"),))
    put(store, "larc", "Flutter")
    (done,) = write_out(store, settings)
    assert (done.files, done.deleted) == (1, 0)
    with store.read() as view, store.write() as tx:  # as another source of its address takes the records over
        moved = [stored.record for stored in view.changes()]
        tx.put(tx.origin("source", "again", {"url": "http://larc.example.org"}), moved)
        tx.forget(tx.origin("source", "larc", {KEPT_AS: "again"}))
    (done,) = write_out(store, settings)
    assert (done.files, done.unchanged, done.deleted) == (0, 1, 0)
    assert len(files(folder)) == 1 and not list(alerts(store))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_loses_nothing(store: Store, folder: Path) -> None:
    folder.chmod(0o500)
    put(store, "lanl", "Flutter")
    (done,) = write_out(store, Settings(write=(Write(str(folder), "oai_dc"),)))
    assert "ermission" in done.reason


def test_a_missing_folder_stops_its_task_alone(store: Store, folder: Path, tmp_path: Path) -> None:
    put(store, "lanl", "Flutter")
    missing = tmp_path / "gone"
    settings = Settings(write=(Write(str(missing), "oai_dc"), Write(str(folder), "oai_dc")))
    first, second = write_out(store, settings)
    assert "no such folder" in first.reason and second.files == 1
    assert [a.record for a in alerts(store)] == [str(missing)]
    missing.mkdir()
    first, _ = write_out(store, settings)
    assert first.files == 1 and not list(alerts(store))


def test_no_identifier_leads_out_of_the_folder(store: Store, folder: Path, tmp_path: Path) -> None:
    with store.write() as tx:
        evil = ["../../up", "/etc/passwd", "..", "a/../../b", "x" * 500, "\x00\n", ".hidden", "con\u202etxt"]
        origin = tx.origin("source", "../evil", {"url": "http://evil.example.org"})
        tx.put(origin, [Record(f"oai:e:{name}", {"title": ["t"]}) for name in evil])
    (done,) = write_out(store, Settings(write=(Write(str(folder), "oai_dc", path="{source}/{name}"),)))
    assert done.files == 8 and len(files(folder)) == 8
    assert not [p for p in tmp_path.rglob("*.xml") if folder not in p.parents]


def test_stopped_it_goes_on(store: Store, folder: Path) -> None:
    put(store, "lanl", *(f"t{n}" for n in range(5)))
    stop = threading.Event()
    stop.set()
    task = WriteTask(store, Write(str(folder), "oai_dc"))
    assert task.run(stop).files == 0
    assert task.run(threading.Event()).files == 5


def test_every_written_format_is_read_back(store: Store, folder: Path, tmp_path: Path) -> None:
    put(store, "lanl", "Flutter of wings")
    for prefix, metadata in METADATA.items():
        if not metadata.served or prefix in ("http_header", "oai_didl"):
            continue
        place = tmp_path / prefix
        place.mkdir()
        (done,) = write_out(store, Settings(write=(Write(str(place), prefix),)))
        assert done.files == 1, prefix
        (data,) = files(place).values()
        (fields,) = metadata.load(data)
        assert not hasattr(fields, "reason")
        said: CommonRecord = metadata.crosswalk(fields).read(fields)
        assert any("Flutter of wings" in s.value for s in said.statements), prefix


@pytest.mark.skipif(shutil.which("yaz-marcdump") is None, reason="yaz is not installed")
@pytest.mark.parametrize(("format", "coding"), [("marc21", "utf-8"), ("marc8", "marc-8")])
def test_yaz_reads_the_marc_that_we_write(store: Store, folder: Path, format: str, coding: str) -> None:
    titles = ["Flutter", "Über die Strömung", "Крыло", "翼"]
    put(store, "lanl", *titles)
    write_out(store, Settings(write=(Write(str(folder), format),)))
    told = ""
    for path in folder.rglob("*.mrc"):
        command = ["yaz-marcdump", "-f", coding, "-t", "utf-8", str(path)]
        done = subprocess.run(command, capture_output=True, check=True)
        assert not done.stderr
        told += unicodedata.normalize("NFC", done.stdout.decode())
    assert all(f"$a {title}" in told for title in titles)


def test_a_historical_round_looks_at_every_file_and_writes_what_is_missing(
    store: Store, folder: Path
) -> None:
    settings = Settings(write=(Write(str(folder), "oai_dc"),))
    put(store, "lanl", "Flutter", "Waves", "Ice")
    write_out(store, settings)
    lost, *kept = sorted(files(folder))
    (folder / lost).unlink()
    inodes = [(folder / name).stat().st_ino for name in kept]
    assert [done.files for done in write_out(store, settings)] == [0]
    (done,) = write_out(store, settings, historical=True)
    assert (done.files, done.unchanged, list(alerts(store))) == (1, 2, [])
    assert sorted(files(folder)) == sorted([lost, *kept])
    assert [(folder / name).stat().st_ino for name in kept] == inodes


def subjects_written(store: Store, folder: Path, *tables: str, method: str = "codes") -> dict[str, list[str]]:
    settings = Settings(write=(Write(str(folder), "oai_dc", subjects=tables, subject_method=method),))
    (done,) = write_out(store, settings, historical=True)
    assert done.reason == "" and done.failed == 0
    records = [METADATA["oai_dc"].read(element(data)).simple() for data in files(folder).values()]
    return {record["title"][0]: record.get("subject", []) for record in records}


def test_subjects_are_written_in_our_scheme(store: Store, folder: Path, tmp_path: Path) -> None:
    put(store, "lanl", "Flutter", subject="UC-414")
    put(store, "afrl", "Wings over wheat", subject="UC-0")
    pairs, common, ours = (tmp_path / name for name in ("pairs.tsv", "common.tsv", "ours.tsv"))
    pairs.write_text("UC-414\t77\tHigh energy physics\nUC-414\t73\n")
    common.write_text("UC-414\t430100\n")
    ours.write_text("430100\t78\n")
    other = {"Wings over wheat": ["UC-0"]}  # no table knows it
    assert subjects_written(store, folder, str(pairs)) == {"Flutter": ["77", "73"], **other}
    assert subjects_written(store, folder, str(common), str(ours)) == {"Flutter": ["78"], **other}
    words = subjects_written(store, folder, str(pairs), method="words")
    assert words == {"Flutter": ["High energy physics"], **other}
    with store.write() as tx:
        own = tx.origin("library", "larc")
        texts = [("wings of planes", "aero"), ("barley and oats", "agri")] * 6
        tx.put(own, [
            Record(f"oai:larc:{n}", {"title": [f"{text} {n}"], "subject": [code]})
            for n, (text, code) in enumerate(texts)
        ])  # fmt: skip
    learned = subjects_written(store, folder, str(pairs), method="learned")
    assert learned == {"Flutter": ["77", "73"], "Wings over wheat": ["UC-0", "aero (inferred)"]}
    assert subjects_written(store, folder, method="learned")["Flutter"] == ["UC-414", "aero (inferred)"]


def test_tables_of_subjects_that_do_not_fit_are_refused(store: Store, folder: Path) -> None:
    wrong: list[tuple[tuple[str, ...], str, str]] = [
        ((), "guess", "one of codes, words, learned"),
        ((), "words", "names no table"),
        (("a", "b", "c"), "codes", "more than two"),
        (("none.tsv",), "codes", "none.tsv"),
    ]
    for tables, method, said in wrong:
        with pytest.raises(SettingsError, match=said):
            WriteTask(store, Write(str(folder), subjects=tables, subject_method=method))


def test_a_translation_that_loses_a_required_field_raises_an_alert(store: Store, folder: Path) -> None:
    put(store, "lanl", "Flutter")
    (done,) = write_out(store, Settings(write=(Write(str(folder), required=("title", "rights")),)))
    (alert,) = alerts(store)
    assert (done.files, alert.kind) == (1, "translation")
    assert alert.reason == "written as marc21 without rights"
    table = folder.parent / "own.tsv"
    table.write_text("245\ta\tvalue~[0-9]+\ttitle\t\tout\tnumbers only\n")
    other = folder.parent / "other"
    other.mkdir()
    write_out(store, Settings(write=(Write(str(other), mapping=str(table)),)))
    assert "written as marc21 without title" in [a.reason for a in alerts(store)]
    with pytest.raises(SettingsError, match="required names colour"):
        write_out(store, Settings(write=(Write(str(folder), required=("colour",)),)))


def test_folders_that_are_made_for_a_file_are_on_the_disk_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("indlet.exchange.write_out.sync", synced.append)
    _replace(tmp_path / "larc" / "1955" / "one.mrc", b"1")
    assert synced == [tmp_path / "larc", tmp_path]
    _replace(tmp_path / "larc" / "1955" / "two.mrc", b"2")
    assert len(synced) == 2
