# ruff: noqa: E501 - mark-up is read more easily unbroken
"""Types by content, encodings, plain text, Markdown, web pages, XML, SGML, PDF, mail."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from indlet.errors import ExtractionError
from indlet.model import Document, Failure
from indlet.provider.extract import EXTRACTORS, extract, title_from_name
from indlet.provider.extract.decode import decode
from indlet.provider.extract.file import File, Part
from indlet.provider.extract.sniff import sniff
from indlet.settings import Limits

Parts = Callable[..., list[Part]]
Read = Callable[..., Document]


def pdf(*lines: str, title: str = "", author: str = "", password: str = "") -> bytes:
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    secret = StandardEncryption(password, canPrint=0) if password else None
    canvas = Canvas(out, encrypt=secret, invariant=True)
    canvas.setTitle(title)
    canvas.setAuthor(author)
    for number, line in enumerate(lines):
        canvas.drawString(72, 700 - 20 * number, line)
    canvas.showPage()
    canvas.save()
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (b"plain words", "x.bin", "text/plain"),
        (b"# Head\n", "x.md", "text/markdown"),
        (b"a,b\n1,2\n", "x.csv", "text/csv"),
        (b"<!DOCTYPE html><p>x", "x.pdf", "text/html"),
        (b"\n\n<html><body>x", "x.txt", "text/html"),
        ("<html><p>x".encode("utf-16"), "x", "text/html"),
        (b'<?xml version="1.0"?><!-- <html> --><doc/>', "x.html", "application/xml"),
        (b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>', "x.xml", "text/html"),
        (b"<collection><record><leader>x</leader></record></collection>", "x.xml", "application/marcxml+xml"),
        (b"<DOC>\n<DOCNO> A-1 </DOCNO>\n</DOC>", "x.txt", "text/sgml"),
        (b'<!DOCTYPE lewis SYSTEM "lewis.dtd">\n<REUTERS NEWID="1">', "x", "text/sgml"),
        (b"{\\rtf1 x}", "x.doc", "application/rtf"),
        (b"From: a@b\r\nTo: c@d\r\nSubject: x\r\n\r\nhi", "x.txt", "message/rfc822"),
        (b"Subject: x\nFrom: y\n\nhi", "x.eml", "message/rfc822"),
        (b"Note: this is\nnot: a mail\n", "x.txt", "text/plain"),
        (b"From a@b Mon Jun 01 10:00:00 2009\nSubject: x\n\nhi\n", "x", "application/mbox"),
        (b"From here to there, says the story of 1999\nand on.", "x", "text/plain"),
        (b"%PDF-1.4\n%%EOF", "x.txt", "application/pdf"),
        (b"\x00\x00junk\n%PDF-1.4\n1 0 obj endobj %%EOF", "x.pdf", "application/pdf"),
    ],
)
def test_type_by_content(data: bytes, name: str, kind: str) -> None:
    assert sniff(File(data, name, Limits())) == kind
    assert kind in EXTRACTORS or kind == "text/csv"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (b" \n\x00", "empty file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "broken PNG image"),
        (b"\x7fELF" + bytes(range(60)), "unsupported: ELF"),
        (bytes(range(256)) * 4, "unsupported: unknown binary data"),
        (b"PK\x03\x04" + b"x" * 100, "not a readable zip archive"),
        (b"%PDF-1.7 and nothing", "broken PDF: truncated"),
        (b"\x1f\x8b\x08\x00\x00\x00", "damaged gzip"),
    ],
)
def test_what_cannot_be_read_is_named(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(ExtractionError, match=reason):
        read(data)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_unicode_with_and_without_a_mark(encoding: str) -> None:
    text = "Grüße an alle, die dies lesen — und an die anderen auch."
    assert decode(text.encode(encoding)).lstrip("\ufeff") == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Вся эта история началась весной, когда снег уже растаял, а дороги ещё не высохли. " * 8, "cp1251"),
        ("Вся эта история началась весной, когда снег уже растаял, а дороги ещё не высохли. " * 8, "koi8-r"),
        ("日本語の文章をここに書いておきます。これは文字コードの判定のためのものです。" * 8, "shift_jis"),
        ("日本語の文章をここに書いておきます。これは文字コードの判定のためのものです。" * 8, "euc_jp"),
        ("Un café très serré, s’il vous plaît.", "cp1252"),
    ],
)
def test_legacy_encodings_are_found(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_utf8_with_a_bad_byte_stays_utf8() -> None:
    data = ("Grüße überall. " * 30).encode()
    assert decode(data[:100] + b"\xff" + data[100:]).count("Grüße") >= 29


def test_declared_encoding_counts_where_utf8_does_not_fit(read: Read) -> None:
    page = '<meta charset="iso-8859-7"><title>Αθήνα</title><p>Καλημέρα'.encode("iso-8859-7")
    document = read(page, "x.html")
    assert document.metadata["title"] == ["Αθήνα"]
    assert document.text.split() == ["Αθήνα", "Καλημέρα"]


def test_nonsense_encodings_are_ignored(read: Read) -> None:
    for name in ("hex", "zip", "nosuch", "utf-7"):
        page = f'<meta charset="{name}"><p>caf'.encode() + b"\xe9"
        assert read(page, "x.html").text.strip() == "café"


def test_name_becomes_a_title() -> None:
    assert title_from_name("annual_report-2019.pdf") == "annual report 2019"
    assert title_from_name("2019-03-01.txt") == "2019-03-01"
    assert title_from_name("a%20b.tar.gz") == "a b"
    assert title_from_name(".profile") == ".profile"


def test_plain_text_is_titled_by_its_first_line_and_freed_of_controls(read: Read) -> None:
    document = read(b"one\x07two\x0cthree co\xc2\xadop", "my_notes.txt")
    assert document.metadata == {"title": ["one two"]}
    assert read(b"words " * 100, "my_notes.txt").metadata == {"title": ["my notes"]}, "no line is a title"
    assert document.text.split() == ["one", "two", "three", "coop"]


def test_markdown_front_matter_and_heading(read: Read) -> None:
    head = b"---\ntitle: 'Weaving'\nauthor:\n  - A. One\n  - B. Two\ntags: [warp, weft]\ndate: 3 May 1999\nlang: de\n---\n"
    document = read(head + b"# Other\nBody", "x.md")
    assert document.metadata == {
        "title": ["Weaving"],
        "creator": ["A. One", "B. Two"],
        "subject": ["warp", "weft"],
        "date": ["1999-05-03"],
        "language": ["de"],
    }
    assert document.language == "de"
    assert document.text.split() == ["#", "Other", "Body"]
    assert read(b"intro\n\n## The *real* [title](x)\n", "x.md").metadata["title"] == ["The real title"]
    assert read(b"Underlined\n==========\n", "x.md").metadata["title"] == ["Underlined"]


def test_web_page(read: Read) -> None:
    page = b"""<html lang="en-GB"><head><title>Site | Page</title>
      <meta name="citation_title" content="The Paper"><meta name="citation_author" content="Doe, Jane">
      <meta name="citation_author" content="Roe, R."><meta name="citation_doi" content="10.1/x">
      <meta name="citation_publication_date" content="2004/05/06"><meta name="DCTERMS.abstract" content="About">
      <meta name="keywords" content="one, two"><meta property="og:title" content="Again"></head>
      <body><script>var hidden</script><p>Read<b>ing</b> is <i>fun</i>.</p><ul><li>a</li><li>b</li></ul>tail</body></html>"""
    document = read(page, "x.html")
    assert document.metadata == {
        "title": ["The Paper"],
        "creator": ["Doe, Jane", "Roe, R."],
        "subject": ["one", "two"],
        "description": ["About"],
        "date": ["2004-05-06"],
        "identifier": ["doi:10.1/x"],
        "language": ["en"],
    }
    assert document.text.split() == ["Site", "|", "Page", "Reading", "is", "fun.", "a", "b", "tail"]
    assert document.language == "en"


def test_web_page_without_a_title_is_known_by_its_heading(read: Read) -> None:
    assert read(b"<h1>Hello <b>you</b></h1>", "x.html").metadata["title"] == ["Hello you"]


def test_xml_joins_running_text_and_separates_data(read: Read) -> None:
    document = read(b"<?xml version='1.0'?><r><a>one</a><b>two</b><p>un<i>brok</i>en <i>x</i></p></r>")
    assert document.text.split() == ["one", "two", "unbroken", "x"]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (
            '<oai_dc:dc xmlns:oai_dc="o" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T</dc:title>'
            "<dc:creator>C</dc:creator></oai_dc:dc>",
            {"title": ["T"], "creator": ["C"]},
        ),
        (
            '<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><titleStmt><title>T</title><author>A</author>'
            "</titleStmt></fileDesc></teiHeader><text>x</text></TEI>",
            {"title": ["T"], "creator": ["A"]},
        ),
        (
            "<article><front><article-meta><title-group><article-title>T <i>x</i></article-title></title-group>"
            "<contrib-group><contrib><name><surname>Doe</surname><given-names>J</given-names></name></contrib>"
            "</contrib-group></article-meta></front></article>",
            {"title": ["T x"], "creator": ["Doe J"]},
        ),
        ("<mods xmlns='m'><titleInfo><title>T</title></titleInfo></mods>", {"title": ["T"]}),
    ],
)
def test_known_vocabularies(read: Read, markup: str, expected: dict[str, list[str]]) -> None:
    assert read(f"<?xml version='1.0'?>{markup}".encode()).metadata == expected


REUTERS = """<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS TOPICS="YES" NEWID="7"><DATE>26-FEB-1987 15:01:01.79</DATE><TOPICS><D>cocoa</D><D>grain</D></TOPICS>
<PLACES><D>usa</D></PLACES><PEOPLE></PEOPLE><TEXT>&#2;<TITLE>BAHIA &lt;COC> REVIEW</TITLE><AUTHOR>    By Jo Doe, Reuters</AUTHOR>
<DATELINE>    SALVADOR, Feb 26 - </DATELINE><BODY>Showers &amp; sun.&#3;</BODY></TEXT></REUTERS>
<REUTERS NEWID="8"><DATE></DATE><TOPICS></TOPICS><TEXT TYPE="UNPROC">no tags here</TEXT></REUTERS>
"""


def test_reuters_stories(parts_of: Parts) -> None:
    first, second = parts_of(REUTERS.encode(), "reut.sgm")
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert (first.key, second.key) == ("7", "8")
    assert first.metadata["title"] == ["BAHIA <COC> REVIEW"]
    assert first.metadata["creator"] == ["Jo Doe"]
    assert first.metadata["date"] == ["1987-02-26"]
    assert first.metadata["subject"] == ["cocoa", "grain"]
    assert first.metadata["coverage"] == ["SALVADOR", "usa"]
    assert first.text.split()[-3:] == ["Showers", "&", "sun."]
    assert second.text.split() == ["no", "tags", "here"]
    assert second.metadata["title"] == ["reut 8"]


def test_trec_documents_even_unclosed(parts_of: Parts) -> None:
    data = b"""<DOC>\n<DOCNO> AP-1 </DOCNO>\n<HEADLINE>Head</HEADLINE><DATE>March 9, 1987</DATE><TEXT>\n<P>Body &amp; soul</P>
    </TEXT>\n</DOC>\n<DOC><DOCNO>AP-2</DOCNO><TEXT>open\n<DOC><DOCNO>AP-1</DOCNO><TEXT>again</TEXT></DOC>"""
    found = [part for part in parts_of(data, "ap.txt") if isinstance(part, Document)]
    assert [document.key for document in found] == ["AP-1", "AP-2", "AP-1~2"]
    assert found[0].metadata["title"] == ["Head"]
    assert found[0].metadata["date"] == ["1987-03-09"]
    assert found[0].metadata["identifier"] == ["AP-1"]
    assert "AP-1" not in found[0].text
    assert found[1].text.split() == ["open"]


def test_a_single_document_has_no_key(read: Read) -> None:
    assert read(b"<DOC><DOCNO>AP-1</DOCNO><TEXT>alone</TEXT></DOC>").key == ""


def test_documents_past_the_limit_are_left_out_and_said(parts_of: Parts) -> None:
    found = parts_of(REUTERS.encode() * 3, documents=3)
    assert len(found) == 4
    assert isinstance(found[3], Failure)
    assert "more than 3 documents" in found[3].reason


def test_pdf(read: Read) -> None:
    document = read(pdf("Hello wor-", "ld of paper", title="On Paper", author="Ann Other"), "x.txt")
    assert document.media_type == "application/pdf"
    assert document.text.split() == ["Hello", "world", "of", "paper"]
    assert document.metadata["title"] == ["On Paper"]
    assert document.metadata["creator"] == ["Ann Other"]
    assert document.metadata["date"]
    assert "description" not in document.metadata  # the program's "(unspecified)" is no subject


def test_pdf_titles_made_by_programs_give_way_to_the_name(read: Read) -> None:
    assert read(pdf("x", title="Microsoft Word - draft.doc"), "nice_name.pdf").metadata["title"] == [
        "nice name"
    ]
    assert read(pdf("x", title="Microsoft Word - The Real One"), "n.pdf").metadata["title"] == [
        "The Real One"
    ]


def test_pdf_of_pictures_is_a_document_without_words(read: Read) -> None:
    document = read(pdf(title="Scanned"), "x.pdf")
    assert document.text.strip() == ""
    assert document.metadata["title"] == ["Scanned"]


def test_encrypted_pdf_is_named(read: Read) -> None:
    with pytest.raises(ExtractionError, match="encrypted PDF"):
        read(pdf("x", password="secret"))


def test_pdf_xmp_is_preferred(read: Read) -> None:
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import DecodedStreamObject, NameObject

    packet = b"""<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
      <rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title><rdf:Alt><rdf:li xml:lang="x-default">Better
      </rdf:li></rdf:Alt></dc:title><dc:creator><rdf:Seq><rdf:li>One</rdf:li><rdf:li>Two</rdf:li></rdf:Seq></dc:creator>
      <dc:format>application/pdf</dc:format></rdf:Description></rdf:RDF></x:xmpmeta>"""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("x", title="Worse"))))
    stream = DecodedStreamObject()
    stream.set_data(packet)
    writer.root_object[NameObject("/Metadata")] = writer._add_object(stream)
    out = io.BytesIO()
    writer.write(out)
    metadata = read(out.getvalue()).metadata
    assert metadata["title"] == ["Better"]
    assert metadata["creator"] == ["One", "Two"]
    assert "format" not in metadata


MAIL = b"""From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>
To: "Doe, Jane" <jane@example.org>, bare@example.org
Subject: =?iso-8859-1?q?Caf=E9?=
Date: Mon, 01 Feb 1999 12:00:00 +0100
Message-ID: <1@example.org>
In-Reply-To: <0@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=B

--B
Content-Type: multipart/alternative; boundary=C

--C
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

na=EFve
--C
Content-Type: text/html

<p>naive twice</p>
--C--
--B
Content-Type: application/octet-stream; name="notes.html"
Content-Disposition: attachment; filename="notes.html"
Content-Transfer-Encoding: base64

PHA+YXR0YWNoZWQ8L3A+
--B--
"""


def test_mail(read: Read) -> None:
    document = read(MAIL, "x.eml")
    assert document.metadata == {
        "title": ["Café"],
        "creator": ["Jürgen"],
        "contributor": ["Doe, Jane", "bare"],
        "date": ["1999-02-01"],
        "identifier": ["mid:1@example.org"],
        "relation": ["mid:0@example.org"],
    }
    assert document.text.split() == ["Café", "naïve", "notes.html", "attached"]
    assert document.key == ""


def test_mailbox(parts_of: Parts) -> None:
    box = (
        b"From x@y Mon Jun 01 10:00:00 2009\n"
        + MAIL
        + b"\nFrom x@y Mon Jun 01 11:00:00 2009\nSubject: two\n\n>From me\n"
    )
    first, second = parts_of(box, "box.mbox")
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert (first.key, second.key) == ("1@example.org", "2")
    assert first.media_type == second.media_type == "message/rfc822"
    assert second.text.split() == ["two", "From", "me"]


@pytest.mark.parametrize("press", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_are_what_they_hold(parts_of: Parts, press: Callable[[bytes], bytes]) -> None:
    found = parts_of(press(press(REUTERS.encode())), "reut.sgm.gz")
    assert [part.key for part in found if isinstance(part, Document)] == ["7", "8"]


def test_extract_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "stored"
    path.write_bytes(REUTERS.encode())
    assert [document.key for document in extract(path, "reut.sgm", Limits())] == ["7", "8"]
    with pytest.raises(ExtractionError, match="more than the limit of 10 "):
        list(extract(path, "reut.sgm", Limits(file_bytes=10)))
    with pytest.raises(ExtractionError, match="cannot be read: No such file"):
        list(extract(tmp_path / "missing", "x", Limits()))
