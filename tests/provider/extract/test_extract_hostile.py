# ruff: noqa: E501 - mark-up is read more easily unbroken
"""Bombs and traps: each ends as a named error, in bounded time and memory."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indlet.errors import ExtractionError
from indlet.model import Document
from indlet.provider.extract import extract, parts
from indlet.provider.extract.file import File, Part
from indlet.settings import Limits

Parts = Callable[..., list[Part]]
Read = Callable[..., Document]
Zipped = Callable[[Mapping[str, str | bytes]], bytes]

TYPES = (
    '<Types><Override PartName="/x" ContentType="application/vnd.openxmlformats-officedocument.'
    '{}.main+xml"/></Types>'
)


def test_zip_bomb(read: Read, zipped: Zipped) -> None:
    bomb = zipped(
        {
            "[Content_Types].xml": TYPES.format("wordprocessingml.document"),
            "word/document.xml": b"<d><t>" + b"a" * 30_000_000 + b"</t></d>",
        }
    )
    assert len(bomb) < 100_000
    with pytest.raises(ExtractionError, match="inflates to more than the limit of 1000000 "):
        read(bomb, inflated_bytes=1_000_000)


def test_gzip_bomb(read: Read) -> None:
    with pytest.raises(ExtractionError, match="inflates to more than 1000000 "):
        read(gzip.compress(bytes(30_000_000)), inflated_bytes=1_000_000)


def test_nested_compression(read: Read) -> None:
    data = b"text"
    for _ in range(10):
        data = gzip.compress(data)
    with pytest.raises(ExtractionError, match="nested deeper than 5"):
        read(data)


def test_too_many_members(read: Read) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(20_001):
            archive.writestr(f"{number}", b"")
    with pytest.raises(ExtractionError, match="20001 members"):
        read(out.getvalue())


def test_one_long_cell_shown_a_million_times(read: Read, zipped: Zipped) -> None:
    ns = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    cells = '<row><c t="s"><v>0</v></c></row>' * 1000
    book = zipped(
        {
            "[Content_Types].xml": TYPES.format("spreadsheetml.sheet"),
            "xl/sharedStrings.xml": f"<sst {ns}><si><t>{'x' * 30_000}</t></si></sst>",
            "xl/worksheets/sheet1.xml": f"<worksheet {ns}><sheetData>{cells}</sheetData></worksheet>",
        }
    )
    with pytest.raises(ExtractionError, match="longer than the limit"):
        read(book, inflated_bytes=1_000_000)


def laughs(levels: int) -> bytes:
    entities = '<!ENTITY l0 "lol">' + "".join(
        f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, levels)
    )
    return f"<?xml version='1.0'?><!DOCTYPE r [{entities}]><r a='x'>hello &l{levels - 1}; there</r>".encode()


def test_billion_laughs_are_not_laughed(read: Read) -> None:
    with pytest.raises(ExtractionError, match="XML beyond the bounds: Maximum entity amplification"):
        read(laughs(10), "x.xml")
    assert read(laughs(3), "x.xml").text.count("lol") == 0


def test_laughs_in_an_attribute_are_bounded(parts_of: Parts) -> None:
    bomb = laughs(10).replace(b"a='x'", b"a='&l9;'")
    try:
        found = parts_of(bomb)
    except ExtractionError as error:
        assert "XML" in str(error)
    else:
        assert all(isinstance(part, Document) and len(part.text) < 200 for part in found)


def test_external_entities_are_not_fetched(read: Read, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    for kind in ("SYSTEM", 'PUBLIC "x"'):
        data = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x {kind} "file://{secret}">]><r>a &x; b</r>'
        assert "hunter2" not in read(data.encode()).text
    marc = (
        f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x SYSTEM "file://{secret}">]><collection><record>'
        '<leader>00000cam a2200000 a 4500</leader><datafield tag="245"><subfield code="a">T &x;</subfield></datafield>'
        "</record></collection>"
    )
    document = read(marc.encode())
    assert "hunter2" not in document.text + str(document.metadata)


def test_deeply_nested_xml(read: Read) -> None:
    with pytest.raises(ExtractionError, match="XML beyond the bounds: Excessive depth"):
        read(b"<?xml version='1.0'?>" + b"<a>" * 100_000)


def test_deeply_nested_web_page(read: Read) -> None:
    assert read(b"<html>" + b"<div>" * 20_000 + b"core").text.strip() == "core"


def test_deeply_nested_rtf(read: Read) -> None:
    with pytest.raises(ExtractionError, match="groups inside each other"):
        read(b"{\\rtf1" + b"{" * 100_000)


def test_deeply_nested_mail(parts_of: Parts) -> None:
    data = b"text"
    for number in range(30):
        head = f"From: a@b\nTo: c@d\nSubject: level{number}\nContent-Type: application/x; name=a.eml\n"
        data = head.encode() + b"Content-Disposition: attachment; filename=a.eml\n\n" + data
    [part] = parts_of(data, depth=3)
    assert isinstance(part, Document)
    assert "level26" in part.text
    assert "level25" not in part.text


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(ExtractionError, match="not a regular file"):
        list(extract(tmp_path / "pipe.txt", "pipe.txt", Limits()))


@pytest.mark.parametrize(
    "data",
    [
        b"<" * 2_000_000,
        b"<!--" * 500_000,
        b"<DOC>" * 200_000,
        b"<DOC><DOCNO>" + b"<P " * 500_000,
        b"From: " * 300_000,
        b"From x 10:00 1999\n" * 100_000,
        b"---\n" * 500_000,
        b"[](" * 500_000,
        b"# " + b"*" * 2_000_000,
        b"{\\rtf1" + b"\\'" * 1_000_000,
        b"<html><title>" * 100_000,
        b"<html>" + b"<meta name=keywords content='" + b"a," * 500_000 + b"'>",
        b"<a " + b"b='c' " * 200_000,
        b"\\title{" * 200_000,
    ],
    ids=lambda data: str(data[:12]),
)
@pytest.mark.parametrize("name", ["x", "x.md", "x.tex", "x.html"])
def test_repetition_costs_no_more_than_its_length(data: bytes, name: str) -> None:
    """Nothing here is timed: a quadratic step over two million characters would not end within the suite."""
    try:
        for _ in parts(File(data, name, Limits())):
            pass
    except ExtractionError as error:
        assert str(error)


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    prefix=st.sampled_from(
        [b"", b"%PDF-1.4\n", b"{\\rtf1 ", b"<?xml version='1.0'?><r>", b"<html>", b"<DOC><DOCNO>1</DOCNO>", b"From: a\nTo: b\nDate: c\n\n",
         b"00026cam a2200025 a 4500\x1e\x1f", b"PK\x03\x04", b"\x1f\x8b\x08", b"From a 10:00 1999\nSubject: x\n\n", b"\xff\xfe"]
    ),
    noise=st.binary(max_size=300),
)  # fmt: skip
def test_noise_gives_documents_or_named_errors(prefix: bytes, noise: bytes) -> None:
    try:
        found = list(parts(File(prefix + noise, "noise", Limits(inflated_bytes=10_000_000))))
    except ExtractionError as error:
        assert str(error)
    else:
        assert found
        for part in found:
            if isinstance(part, Document):
                assert part.metadata["title"][0]
                part.text.encode()
                str(part.metadata).encode()


@pytest.mark.parametrize("root", ["qualif00:00:00", "a:b:c", "x xmlns='{{}'", "x xmlns='a}b'"])
def test_xml_whose_names_are_none_is_read_all_the_same(parts_of: Parts, root: str) -> None:
    name = root.split()[0]
    [part] = parts_of(f"<?xml version='1.0'?><{root}><title>T</title><p>words here</p></{name}>".encode())
    assert isinstance(part, Document)
    assert part.text.split() == ["T", "words", "here"]
