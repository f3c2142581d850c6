# ruff: noqa: E501 - mark-up is read more easily unbroken
"""Word, PowerPoint, Excel, OpenDocument, EPUB and RTF, in files made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from indlet.errors import ExtractionError
from indlet.model import Document

Read = Callable[..., Document]
Zipped = Callable[[Mapping[str, str | bytes]], bytes]

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
CORE = """<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">
 <dc:title>{title}</dc:title><dc:creator>Ada Example</dc:creator><cp:keywords>looms; engines</cp:keywords>
 <dcterms:created>2001-02-03T04:05:06Z</dcterms:created></cp:coreProperties>"""


def types(kind: str) -> str:
    base = "application/vnd.openxmlformats-officedocument."
    return f'<Types><Override PartName="/x" ContentType="{base}{kind}.main+xml"/></Types>'


def test_word_text_and_properties(read: Read, zipped: Zipped) -> None:
    body = f"""<w:document {W}><w:body>
      <w:p><w:r><w:t>Ana</w:t></w:r><w:r><w:t>lytical</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>
      <w:p><w:r><w:t>left</w:t><w:tab/><w:t>right</w:t></w:r></w:p>
      <mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">
        <mc:Choice><w:p><w:r><w:t>boxed</w:t></w:r></w:p></mc:Choice>
        <mc:Fallback><w:p><w:r><w:t>boxed</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent>
      <w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:body></w:document>"""
    document = read(
        zipped(
            {
                "[Content_Types].xml": types("wordprocessingml.document"),
                "word/document.xml": body,
                "word/footnotes.xml": f"<w:footnotes {W}><w:p><w:r><w:t>footed</w:t></w:r></w:p></w:footnotes>",
                "docProps/core.xml": CORE.format(title="Notes on the Engine"),
            }
        ),
        "wrong.pdf",
    )
    assert document.media_type.endswith("wordprocessingml.document")
    assert document.text.split() == ["Analytical", "left", "right", "boxed", "cell", "footed"]
    assert document.metadata["title"] == ["Notes on the Engine"]
    assert document.metadata["creator"] == ["Ada Example"]
    assert document.metadata["subject"] == ["looms", "engines"]
    assert document.metadata["date"] == ["2001-02-03"]


def test_word_title_from_its_title_style_when_properties_have_none(read: Read, zipped: Zipped) -> None:
    body = f"""<w:document {W}><w:body><w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>On Looms</w:t></w:r></w:p>
      </w:body></w:document>"""
    document = read(
        zipped(
            {
                "[Content_Types].xml": types("wordprocessingml.document"),
                "word/document.xml": body,
                "docProps/core.xml": CORE.format(title="Document1"),
            }
        ),
        "x.docx",
    )
    assert document.metadata["title"] == ["On Looms"]


@pytest.mark.parametrize("folder", ["(", "a+)+b", "[^/]*", "(a|a)*b", "\\Z", "word.", "." * 200])
def test_the_place_of_the_main_part_is_a_name_and_no_pattern(read: Read, zipped: Zipped, folder: str) -> None:
    """The relationships of a package say where its main part is, in whatever characters their author likes."""
    run = "<w:document {0}><w:p><w:r><w:t>{1}</w:t></w:r></w:p></w:document>"
    relations = '<Relationships><Relationship Type="x/officeDocument" Target="/{}/main.xml"/></Relationships>'
    document = read(
        zipped(
            {
                "[Content_Types].xml": types("wordprocessingml.document"),
                "_rels/.rels": relations.format(folder),
                f"{folder}/main.xml": run.format(W, "body"),
                f"{folder}/footnotes.xml": run.format(W, "footed"),
                f"{'a' * 60}/footnotes.xml": run.format(W, "elsewhere"),
                "words/footnotes.xml": run.format(W, "elsewhere"),
            }
        ),
        "x.docx",
    )
    assert document.text.split() == ["body", "footed"]


def test_slides_with_notes_in_the_order_of_their_numbers(read: Read, zipped: Zipped) -> None:
    def slide(title: str) -> str:
        return f"""<p:sld {P} {A}><p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr>
          <p:txBody><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:txBody></p:sp></p:sld>"""

    members = {f"ppt/slides/slide{n}.xml": slide(f"slide{n}") for n in (10, 2, 1)}
    members["[Content_Types].xml"] = types("presentationml.presentation")
    members["ppt/notesSlides/notesSlide1.xml"] = (
        f"<p:notes {P} {A}><a:p><a:r><a:t>whispered</a:t></a:r></a:p></p:notes>"
    )
    document = read(zipped(members), "x.pptx")
    assert document.text.split() == ["slide1", "slide2", "slide10", "whispered"]
    assert document.metadata["title"] == ["slide1"]


def test_cells_shared_inline_and_numeric(read: Read, zipped: Zipped) -> None:
    sheet = f"""<worksheet {S}><sheetData><row><c t="s"><v>1</v></c><c t="s"><v>0</v></c><c t="s"><v>99</v></c>
      <c t="inlineStr"><is><t>inline</t></is></c><c><v>1987</v></c><c t="b"><v>1</v></c></row></sheetData></worksheet>"""
    document = read(
        zipped(
            {
                "[Content_Types].xml": types("spreadsheetml.sheet"),
                "xl/workbook.xml": f'<workbook {S}><sheets><sheet name="Ledger"/></sheets></workbook>',
                "xl/sharedStrings.xml": f"<sst {S}><si><t>zero</t></si><si><r><t>o</t></r><r><t>ne</t></r></si></sst>",
                "xl/worksheets/sheet1.xml": sheet,
            }
        )
    )
    assert document.text.split() == ["Ledger", "one", "zero", "inline", "1987"]


OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"


def odt(zipped: Zipped, **members: str) -> bytes:
    content = f"""<office:document-content xmlns:office="{OFFICE}office:1.0" xmlns:text="{OFFICE}text:1.0"><office:body>
      <text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>
      <text:p>un<text:span>broken</text:span> word<text:tab/>tabbed</text:p><text:h>Head</text:h><text:p>next</text:p>
      </office:body></office:document-content>"""
    meta = f"""<office:document-meta xmlns:office="{OFFICE}office:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"
      xmlns:meta="{OFFICE}meta:1.0"><office:meta><dc:title>Of Threads</dc:title><dc:creator>Last Saver</dc:creator>
      <meta:initial-creator>First Author</meta:initial-creator><meta:keyword>warp</meta:keyword></office:meta>
      </office:document-meta>"""
    kind = "application/vnd.oasis.opendocument.text"
    return zipped({"mimetype": kind, "content.xml": content, "meta.xml": meta, **members})


def test_open_document(read: Read, zipped: Zipped) -> None:
    document = read(odt(zipped), "x.odt")
    assert document.text.split() == ["unbroken", "word", "tabbed", "Head", "next"]
    assert document.metadata["title"] == ["Of Threads"]
    assert document.metadata["creator"] == ["First Author"]
    assert document.metadata["subject"] == ["warp"]


def test_encrypted_open_document_is_named(read: Read, zipped: Zipped) -> None:
    manifest = '<m:manifest xmlns:m="urn:x"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>'
    with pytest.raises(ExtractionError, match="encrypted OpenDocument"):
        read(odt(zipped, **{"META-INF/manifest.xml": manifest}))


def test_epub_reads_its_spine_in_order(read: Read, zipped: Zipped) -> None:
    opf = """<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
      <dc:title>A Book</dc:title><dc:creator>Some One</dc:creator><dc:language>de-AT</dc:language></metadata>
      <manifest><item id="a" href="text/a%20b.xhtml"/><item id="b" href="text/b.xhtml"/><item id="c" href="gone.xhtml"/>
      </manifest><spine><itemref idref="b"/><itemref idref="a"/><itemref idref="c"/></spine></package>"""
    container = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    document = read(
        zipped(
            {
                "mimetype": "application/epub+zip",
                "META-INF/container.xml": container,
                "OEBPS/book.opf": opf,
                "OEBPS/text/a b.xhtml": "<html><body><p>second</p></body></html>",
                "OEBPS/text/b.xhtml": "<html><head><title>no</title></head><body><p>first</p></body></html>",
            }
        )
    )
    assert document.text.split() == ["first", "second"]
    assert document.language == "de"
    assert document.metadata["title"] == ["A Book"]


@pytest.mark.parametrize(
    ("rtf", "words"),
    [
        (r"{\rtf1\ansi plain\par next}", "plain next"),
        (r"{\rtf1\ansi\ansicpg1252 caf\'e9}", "café"),
        (r"{\rtf1{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f1 \'cc\'e8\'f0 \f0 \'e9}", "Мир é"),
        (r"{\rtf1{\fonttbl{\f0\fcharset128 A;}}\f0 \'83e\'83X\'83g}", "テスト"),
        (r"{\rtf1\uc1 \u-10240?\u-8398?}", "\U00010332"),
        (r"{\rtf1\uc2 \u233 xy\'41}", "éA"),
        (r"{\rtf1 super{\*\annotation note}b}", "superb note"),
        (r"{\rtf1{\*\unknown hidden}{\pict 00ff}{\stylesheet Normal;}shown}", "shown"),
        (r"{\rtf1 a{\field{\*\fldinst HYPERLINK x}{\fldrslt link}}}", "alink"),
        (r"{\rtf1 \{braces\} \\}after", "{braces} \\"),
        (r"{\rtf1 {\shp{\*\shpinst{\sp{\sn x}{\sv y}}{\shptxt boxed}}}", "boxed"),
        (r"{\rtf1 unclosed {group", "unclosed group"),
    ],
)
def test_rtf_text(read: Read, rtf: str, words: str) -> None:
    assert " ".join(read(rtf.encode("latin-1")).text.split()) == words


def test_rtf_skips_binary_data_even_with_braces_in_it(read: Read) -> None:
    assert read(rb"{\rtf1 before {\pict\bin6 }}{\\\}after}").text.split() == ["before", "after"]


def test_rtf_info(read: Read) -> None:
    metadata = read(
        rb"{\rtf1\ansi{\info{\title The \'dcbersicht}{\upr{\author D?rfler}{\*\ud{\author D\u246?rfler}}}"
        rb"{\creatim\yr2012\mo12\dy30\hr1}}text}"
    ).metadata
    assert metadata == {"title": ["The Übersicht"], "creator": ["Dörfler"], "date": ["2012-12-30"]}


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        ("WordDocument", "legacy Word"),
        ("PowerPoint Document", "legacy PowerPoint"),
        ("EncryptedPackage", "encrypted Office"),
    ],
)
def test_legacy_office_is_refused_by_name(read: Read, stream: str, reason: str) -> None:
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + stream.encode("utf-16-le") + bytes(100)
    with pytest.raises(ExtractionError, match=reason):
        read(data, "x.docx")


def test_truncated_office_file(read: Read, zipped: Zipped) -> None:
    whole: Any = odt(zipped)
    with pytest.raises(ExtractionError, match="not a readable zip archive"):
        read(whole[: len(whole) // 2], "x.odt")
