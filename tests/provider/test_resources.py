"""Manifestations, identifiers and records, whatever a name holds."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indlet.model import TermVector
from indlet.provider.hierarchy import Entry, named, shown
from indlet.provider.resources import Place, Resource, group, records, split_name
from indlet.provider.workers import Analysed
from indlet.settings import Crawl, Hierarchy

if TYPE_CHECKING:
    from tests.provider.conftest import Bench

PLACE = Place("docs", "example.org", "http://example.org/docs/", "", False, "Documents", "p")
# https://www.openarchives.org/OAI/2.0/oai-identifier.xsd
VALID = re.compile(
    r"oai:[a-zA-Z][a-zA-Z0-9\-]*(\.[a-zA-Z][a-zA-Z0-9\-]*)+:[a-zA-Z0-9\-_\.!~\*'\(\);/\?:@&=\+$,%]+"
)
VALID_SET = re.compile(r"([A-Za-z0-9\-_.!~*'()])+(:[A-Za-z0-9\-_.!~*'()]+)*")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("report.pdf", ("report", "pdf")),
        ("Report.PDF", ("Report", "pdf")),
        ("a.b.pdf", ("a.b", "pdf")),
        ("x.tar.gz", ("x", "tar.gz")),
        ("reut2-000.sgm.gz", ("reut2-000", "sgm.gz")),
        ("x.gz", ("x", "gz")),
        ("x.1.gz", ("x.1", "gz")),
        ("README", ("README", "")),
        (".profile", (".profile", "")),
        (".a.txt", (".a", "txt")),
        ("ends.", ("ends.", "")),
        ("ls.1", ("ls.1", "")),
        ("v1.2", ("v1.2", "")),
        ("song.mp3", ("song", "mp3")),
        ("pack.7z", ("pack", "7z")),
        ("What is this. And that", ("What is this. And that", "")),
        ("..pdf", ("..pdf", "")),
        (".tar.gz", (".tar", "gz")),
    ],
)
def test_stems(name: str, expected: tuple[str, str]) -> None:
    assert split_name(name) == expected


def test_the_order_of_formats_chooses_the_primary() -> None:
    files = [
        Entry(f"f/{name}", 1, 1)
        for name in ("r.txt", "r.zzz", "r.html", "r.pdf.gz", "r.pdf", "r.aaa", "s.txt", "r")
    ]
    found = {r.stem: [e.name for e in r.files] for r in group("f", files, Crawl().order)}
    assert found == {"r": ["r.pdf", "r.pdf.gz", "r.html", "r.txt", "r", "r.aaa", "r.zzz"], "s": ["s.txt"]}
    found = {r.stem: [e.name for e in r.files] for r in group("f", files, ("txt",))}
    assert found["r"] == ["r.txt", "r", "r.aaa", "r.html", "r.pdf", "r.pdf.gz", "r.zzz"]


def test_a_better_manifestation_changes_the_resource(bench: Bench) -> None:
    bench.write("report.txt", "words of text")
    bench.crawl()
    before = bench.seqs()
    bench.write("report.html", "<html><title>Report</title><body>words of hypertext</body></html>")
    summary = bench.crawl()
    assert (summary.records, summary.deleted) == (1, 0)
    record = bench.records()["report"]
    assert bench.terms("report")["hypertext"] == 1
    assert record.metadata["relation"] == ["http://127.0.0.1:8080/content/docs/report.txt"]
    assert [(m["path"], m["primary"]) for m in record.properties["manifestations"]] == [
        ("report.html", True),
        ("report.txt", False),
    ]
    assert bench.seqs()["report"] > before["report"]
    assert {path: file.state for path, file in bench.files().items()} == {
        "report.html": "primary",
        "report.txt": "other",
    }
    assert bench.crawl().unchanged == 2


def test_the_primary_goes_and_the_resource_stays(bench: Bench) -> None:
    bench.write("report.txt", "words of text")
    bench.write("report.html", "<html><body>words of hypertext</body></html>")
    bench.crawl()
    (bench.root / "report.html").unlink()
    summary = bench.crawl()
    assert (summary.records, summary.deleted) == (1, 0)
    assert bench.deleted() == set()
    assert "hypertext" not in bench.terms("report")
    assert "relation" not in bench.records()["report"].metadata
    assert set(bench.files()) == {"report.txt"}
    (bench.root / "report.txt").unlink()
    assert bench.crawl().deleted == 1


def test_another_order_chooses_another_primary(bench: Bench) -> None:
    bench.write("report.txt", "words of text")
    bench.write("report.html", "<html><body>words of hypertext</body></html>")
    bench.write("single.txt")
    bench.crawl()
    order = ("txt", *bench.settings.crawl.order)
    bench.settings = replace(bench.settings, crawl=replace(bench.settings.crawl, order=order))
    summary = bench.crawl()
    assert (summary.read, summary.unchanged, summary.records) == (1, 1, 1)
    assert bench.records()["report"].properties["path"] == "report.txt"
    assert bench.crawl().unchanged == 3


def test_a_secondary_that_is_touched_changes_nothing(bench: Bench) -> None:
    bench.write("report.txt", "words of text")
    bench.write("report.html", "<html><body>words of hypertext</body></html>")
    bench.crawl()
    before = bench.seqs()
    os.utime(bench.root / "report.txt", (1_600_000_000, 1_600_000_000))
    summary = bench.crawl()
    assert (summary.read, summary.records) == (0, 0)
    assert bench.seqs() == before


def test_a_broken_primary_falls_back(bench: Bench) -> None:
    bench.write("report.pdf", b"%PDF-1.7 broken")
    bench.write("report.txt", "words of text")
    summary = bench.crawl()
    assert (summary.records, summary.failures, summary.status) == (1, 1, 3)
    assert bench.records()["report"].properties["path"] == "report.txt"
    assert set(bench.failures()) == {"report.pdf"}
    assert bench.crawl().read == 0
    bench.write("report.pdf", "a text called pdf", at=1_600_000_000)
    assert bench.crawl().status == 0
    assert bench.records()["report"].properties["path"] == "report.pdf"
    assert bench.failures() == {}


def test_a_file_of_documents_gives_a_record_for_each(bench: Bench) -> None:
    def trec(*numbers: int) -> str:
        return "\n".join(
            f"<DOC>\n<DOCNO> FT-{n} </DOCNO>\n<TEXT>\nstory number{n}\n</TEXT>\n</DOC>" for n in numbers
        )

    bench.write("ft.sgml", trec(1, 2, 3))
    bench.write("ft/x.txt", "beside it")
    bench.crawl()
    assert set(bench.records()) == {"ft;FT-1", "ft;FT-2", "ft;FT-3", "ft/x"}
    assert len({record.metadata["identifier"][0] for record in bench.records().values()}) == 4
    before = bench.seqs()
    bench.write("ft.sgml", trec(1, 3, 4, 3), at=1_600_000_000)
    summary = bench.crawl()
    assert summary.deleted == 1
    assert bench.deleted() == {"ft;FT-2"}
    assert set(bench.records()) == {"ft;FT-1", "ft;FT-3", "ft;FT-4", "ft;FT-3~2", "ft/x"}
    assert bench.seqs()["ft/x"] == before["ft/x"]
    (bench.root / "ft.sgml").unlink()
    bench.crawl()
    assert set(bench.records()) == {"ft/x"}


def analysed(key: str = "", **metadata: list[str]) -> Analysed:
    return Analysed(key, metadata, "text/plain", TermVector.of({"wing": 1}), "")


def made(name: str, *documents: Analysed) -> list[str]:
    stem, _ = split_name(name.rpartition("/")[2])
    entry = Entry(name, 1, 1)
    resource = Resource(name.rpartition("/")[0], stem, (entry,))
    return [record.identifier for record in records(PLACE, resource, entry, documents)]


def test_repeated_keys_are_told_apart_the_same_way_each_time() -> None:
    keys = ["a", "a", "a~2", "", "", "a"]
    found = made("x.sgm", *map(analysed, keys))
    assert len(set(found)) == len(keys)
    assert found == made("x.sgm", *map(analysed, keys))


def test_metadata_is_kept_within_bounds() -> None:
    entry = Entry("x.txt", 1, -1)
    document = analysed(title=["  a\x00b\ud800  ", "x" * 50_000], subject=[str(n) for n in range(5000)])
    (record,) = records(PLACE, Resource("", "x", (entry,)), entry, [document])
    assert record.metadata["title"][0] == "a\ufffdb\ufffd"
    assert len(record.metadata["title"][1]) == 10_000
    assert len(record.metadata["subject"]) == 500
    assert "date" not in record.metadata
    assert b"\x00" not in record.raw


# What a file system gives for any bytes that are a legal name.
names = (
    st.binary(min_size=1, max_size=40)
    .filter(lambda b: b"/" not in b and b"\0" not in b and b not in (b".", b".."))
    .map(os.fsdecode)
)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)


@given(paths, st.text(max_size=20))
def test_identifiers_and_sets_are_valid_for_any_name(path: str, key: str) -> None:
    (found,) = made(path, analysed(key))
    assert VALID.fullmatch(found)
    for spec, name in PLACE.sets(path.rpartition("/")[0]):
        assert VALID_SET.fullmatch(spec)
        name.encode()
    url = PLACE.address(path)
    assert os.fsdecode(unquote_to_bytes(urlsplit(url).path)) == f"/docs/{path}"
    shown(path).encode()


@given(st.lists(paths, min_size=2, max_size=2, unique=True))
def test_different_paths_have_different_names(two: list[str]) -> None:
    one, other = two
    assert shown(one) != shown(other)
    assert PLACE.address(one) != PLACE.address(other)
    resources = [(p.rpartition("/")[0], split_name(p.rpartition("/")[2])[0]) for p in two]
    if resources[0] != resources[1]:
        assert made(one, analysed()) != made(other, analysed())
    assert made(one, analysed("k")) != made(other, analysed())


AWKWARD = [
    "colon: a?b#c%d&e=f+g;h.txt",
    "new\nline.txt",
    "back\\slash.txt",
    "quote\"'<>.txt",
    unicodedata.normalize("NFC", "é.txt"),
    unicodedata.normalize("NFD", "é.txt"),
    "日本語/資料.txt",
    " spaces / both .txt",
    "n" * 250 + ".txt",
    "%41.txt",
    "A.txt",
    "-rf.txt",
    "*.txt",
]


def test_awkward_names_are_crawled_and_stay(bench: Bench) -> None:
    for name in AWKWARD:
        bench.write(name, "some wing")
    raw = os.fsencode(bench.root) + b"/latin\xe9\xff.txt"
    with open(raw, "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(b"some wing")
    os.utime(raw, (1_500_000_000, 1_500_000_000))
    summary = bench.crawl()
    assert (summary.records, summary.failures) == (len(AWKWARD) + 1, 0)
    for name in bench.records():
        assert VALID.fullmatch(f"oai:localhost.localdomain:docs/{name}")
    assert "latin%E9%FF" in bench.records()
    assert "latin\\xe9\\xff.txt" in bench.files()
    assert bench.records()["latin%E9%FF"].metadata["title"] == ["some wing"]
    summary = bench.crawl()
    assert (summary.unchanged, summary.deleted, summary.read) == (len(AWKWARD) + 1, 0, 0)
    os.unlink(raw)  # noqa: PTH108
    assert bench.crawl().deleted == 1


def test_deep_paths(bench: Bench) -> None:
    deep = "/".join(["folder" * 5] * 60)
    bench.write(f"{deep}/a.txt")
    assert bench.crawl().records == 1
    assert bench.crawl().unchanged == 1


def test_names_of_hierarchies() -> None:
    roots = [
        "/srv/docs",
        "/home/docs/",
        "ftp://host/a/b",
        "https://example.org",
        "zip::s3://b/papers.zip",
        "x.tar.gz",
    ]
    assert [h.name for h in named([Hierarchy(r) for r in roots])] == [
        "docs",
        "docs-2",
        "b",
        "example.org",
        "papers",
        "x",
    ]
    assert [h.name for h in named([Hierarchy("/a/x"), Hierarchy("/b/x", name="x")])] == ["x-2", "x"]
