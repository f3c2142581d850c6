# ruff: noqa: E501 - inputs are read more easily unbroken
"""Whole inputs of every kind, made here, and the words that mean something in them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib

import brotli  # type: ignore[import-untyped]
import zstandard

from bench import shapes
from indlet.formats import INDEX
from indlet.formats.metadata import oai_dc
from indlet.model import Record
from indlet.oai import frames
from indlet.text import Analyzer

XML_WORDS = (
    b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?xml version='1.0'?>", b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&amp;",
    b"&a;", b"&#0;", b"&#x10ffff;", b"&nbsp;", b"<record>", b"</record>", b"<metadata>", b"<header status='deleted'>",
    b"<setSpec>", b"xmlns=''", b" xmlns:a='b'", b"xsi:nil='true'", b"<dc:title xml:lang='de'>", b"encoding='utf-16'",
    b"<a:b>", b"/>", b"<about>", b"\xef\xbb\xbf", b"<script>", b"<resumptionToken>",
)  # fmt: skip
RTF_WORDS = (
    b"{\\*\\", b"\\bin99999 ", b"\\u-3913?", b"\\'ff", b"\\uc9", b"\\ansicpg65001", b"{\\info{\\title ", b"}" * 20,
    b"{" * 20, b"\\upr", b"\\ud", b"\\yr99999\\mo99\\dy99", b"\\fldinst", b"\\fcharset128 ",
)  # fmt: skip
MAIL_WORDS = (
    b"\nFrom x Thu Jan  1 00:00:00 1970\n", b"Content-Type: multipart/mixed; boundary=b\n\n--b\n", b"--b--", b"--b\n",
    b"Content-Transfer-Encoding: base64\n", b"=?utf-8?b?w6k=?=", b"=?x?q?=ff?=", b"charset=utf-7", b"charset=\"\xff\"",
    b"Content-Type: message/rfc822\n\n", b"Date: Thu, 99 Foo 99999 99:99:99 +9999\n", b"filename*=utf-8''%FF",
)  # fmt: skip
SGML_WORDS = (
    b"<DOC>", b"</DOC>", b"<DOCNO>", b"<REUTERS NEWID=\"1\">", b"</REUTERS>", b"<TOPICS><D>", b"<BODY>", b"&lt;",
    b"<!--", b"<TITLE>", b"<DATE>99-FOO-9999", b"<D></D>",
)  # fmt: skip
QUERY_WORDS = (
    b" AND ", b" OR ", b" NOT ", b"(", b")", b"\"", b"*", b"title:", b"date:1950..", b"-", b"+", b"source:air",
    b"doi:10.1/", b"~2", b"^3", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"language:", b"set:", b"id:",
)  # fmt: skip
OAI_WORDS = (
    b"verb=", b"ListRecords", b"ListIdentifiers", b"GetRecord", b"ListSets", b"&metadataPrefix=oai_dc",
    b"&indexPrefix=tf_compact", b"&from=2023-01-01", b"&until=9999-99-99T99:99:99Z", b"&set=a:b", b"%00", b"%FF",
    b"&identifier=oai:x:1", b"&resumptionToken=", b"ListIndexFormats", b"Identify",
)  # fmt: skip
TOML_WORDS = (
    b"[[hierarchy]]\n", b"[[source]]\n", b"[node]\n", b"port = ", b"99999999999999999999", b"nan", b"-inf", b"[]",
    b"{}", b"'''", b"url = \"http://a:b@c\"\n", b"every = \"", b"1e999", b"1979-05-27T07:32:00Z", b"\\u0000",
)  # fmt: skip


def records(analyzer: Analyzer) -> list[Record]:
    found: list[Record] = []
    for work in shapes.works(12):
        metadata = {"title": [work.title], "language": [work.language], "date": ["1950"], "type": ["Text"]}
        found.append(Record(f"oai:x:{len(found)}", metadata, analyzer.vector(work.title), ("a:b",)))
    return found


def pages() -> list[bytes]:
    """Pages in the shapes of real systems, and one of our own with index parts."""
    found = [shapes.page(shape, list(shapes.works(3)), "next", 9, 0) for shape in shapes.SHAPES]
    analyzer, body = Analyzer(), []
    for number, record in enumerate(records(analyzer)[:4]):
        assert record.vector is not None
        body.append(b"<record>" + frames.header(record.identifier, 1_700_000_000, number == 3, "a a:b"))
        if number < 3:
            index = INDEX["tf_compact"].write(record.vector)
            body.append(
                b"<metadata>" + oai_dc.write(record.metadata) + b"</metadata><index>" + index + b"</index>"
            )
        body.append(b"</record>")
    return [*found, _page(body), *swelling_pages()]


def _page(body: list[bytes]) -> bytes:
    endpoint = frames.Endpoint.at("http://x.org", True)
    return endpoint.answer(1_700_000_000, {"verb": "ListRecords"}, "ListRecords", body)


def swelling_pages(records: int = 20) -> list[bytes]:
    """Pages of which more is written than they hold: a value with a long normal form in each record,
    datestamps that consist of escapes, a long namespace that the canonical form repeats in each element.
    """

    def page(status: str, stamp: str, metadata: str = "", uri: str = "") -> bytes:
        body = "".join(
            f"<record><header{status}><identifier>oai:x:{n}</identifier><datestamp>{stamp}</datestamp></header>"
            f"{metadata}</record>"
            for n in range(records)
        )
        made = _page([body.encode()])
        return made.replace(b"<ListRecords>", f'<ListRecords xmlns:x="{uri}">'.encode()) if uri else made

    def metadata(inside: str) -> str:
        return f"<metadata>{oai_dc.write({'title': ['T']}).decode().replace('</oai_dc:dc>', inside)}</oai_dc:dc></metadata>"

    return [
        page("", "2024-01-01", metadata("<dc:format>docx</dc:format>")),
        *(page(' status="deleted"', sign * 999) for sign in ('"', "\\")),
        page("", "2024-01-01", metadata("<x:a/>" * 10 * records), "urn:x:" + "y" * 1000),
        page("", "2024-01-01", metadata("<dc:title>" * 50 + "words " * 50 + "</dc:title>" * 50)),
    ]


def catalogues() -> list[bytes]:
    marc = b"00120nam a2200061 i 4500001000500000008000600005245001600011\x1e1234\x1eabcde\x1e10\x1faA title\x1fbmore\x1e\x1d"
    xml = (
        b'<collection xmlns="http://www.loc.gov/MARC21/slim"><record><leader>00000nam a2200000 i 4500</leader>'
        b'<controlfield tag="001">1</controlfield><datafield tag="245" ind1="1" ind2="0"><subfield code="a">T'
        b"</subfield></datafield></record></collection>"
    )
    tagged = b"BIB-VERSION:: CS-TR-v2.1\nID:: X//1\nENTRY:: March 3, 1999\nTITLE:: On wings\nAUTHOR:: A, B\nEND:: X//1\n"
    return [marc, marc * 3, xml, tagged, *(_mods(), _dcterms())]


def _mods() -> bytes:
    return (
        b'<mods xmlns="http://www.loc.gov/mods/v3"><titleInfo><title>T</title></titleInfo><name type="personal">'
        b'<namePart>A</namePart></name><originInfo><dateIssued encoding="w3cdtf">1999</dateIssued></originInfo></mods>'
    )


def _dcterms() -> bytes:
    return (
        b'<qualifieddc xmlns:dcterms="http://purl.org/dc/terms/" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        b"<dc:title>T</dc:title><dcterms:issued>1999</dcterms:issued></qualifieddc>"
    )


def rtf() -> list[bytes]:
    return [
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset204 A;}}{\info{\title The \'dcber}{\creatim\yr2012\mo12\dy30}}"
        rb"\f0 text\par \u246?x {\*\hidden no}{\pict\bin4 abcd} {\field{\*\fldinst x}{\fldrslt link}} \{\}\~}",
        rb"{\rtf1 {\shp{\*\shpinst{\sp{\sn x}{\sv y}}{\shptxt boxed}}} a\tab b\uc2\u8364??c}",
    ]


def mail() -> list[bytes]:
    return [
        b"From a@b Thu Jan  1 00:00:00 1970\nFrom: =?utf-8?b?w4Q=?= <a@b>\nTo: c@d\nSubject: =?iso-8859-1?q?=FC?= x\n"
        b"Date: Thu, 01 Jan 1970 00:00:00 +0000\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
        b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\na =C3=BC b\n--b\n"
        b"Content-Type: text/html\n\n<p>hello</p>\n--b\nContent-Type: application/octet-stream\n"
        b"Content-Disposition: attachment; filename=x.txt\nContent-Transfer-Encoding: base64\n\nYWJj\n--b--\n\n"
        b"From x@y Thu Jan  1 00:00:01 1970\nSubject: two\n\n>From here\n",
    ]


def sgml() -> list[bytes]:
    return [
        b'<!DOCTYPE lewis SYSTEM "lewis.dtd"><REUTERS TOPICS="YES" NEWID="1"><DATE>26-FEB-1987 15:01:01.79</DATE>'
        b"<TOPICS><D>cocoa</D></TOPICS><TEXT>&#2;<TITLE>BAHIA</TITLE><AUTHOR>by X Y</AUTHOR><BODY>Showers &lt;x>"
        b'</BODY></TEXT></REUTERS><REUTERS NEWID="2"><TEXT>two</TEXT></REUTERS>',
        b"<DOC><DOCNO> FT1-1 </DOCNO><HEADLINE>h</HEADLINE><TEXT>one &amp; two</TEXT></DOC><DOC><DOCNO>2</DOCNO></DOC>",
    ]


def html() -> list[bytes]:
    return [
        b"<!doctype html><html lang=de><head><title>T</title><meta name='DC.creator' content='A'><meta charset=utf-8>"
        b"</head><body><h1>x</h1><script>no()</script><p>a<b>b</b>&nbsp;&#246;<table><tr><td>c</table></body></html>"
    ]


def _zip(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/"), content)
    return out.getvalue()


def _tar(mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as file:  # type: ignore[call-overload]
        for name, kind in (("a/b.txt", tarfile.REGTYPE), ("l", tarfile.SYMTYPE), ("d", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, "a/b.txt", 5 if kind == tarfile.REGTYPE else 0
            file.addfile(info, io.BytesIO(b"words"))
    return out.getvalue()


def archives() -> list[bytes]:
    return [_zip(a__b=b"words" * 9, c=b"x"), _tar("w"), _tar("w:gz")]


def _office() -> list[bytes]:
    w = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    base = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = b'<Types><Override PartName="/x" ContentType="' + base + b'"/></Types>'
    body = b"<w:document " + w + b"><w:p><w:r><w:t>word</w:t><w:tab/></w:r></w:p></w:document>"
    docx = _zip(**{"[Content_Types].xml": types, "word__document.xml": body})
    o = b"urn:oasis:names:tc:opendocument:xmlns:"
    text = (
        b'<x xmlns:office="'
        + o
        + b'office:1.0" xmlns:t="'
        + o
        + b'text:1.0"><office:body><t:p>a<t:s/>b</t:p>'
    )
    odt = _zip(
        mimetype=b"application/vnd.oasis.opendocument.text", **{"content.xml": text + b"</office:body></x>"}
    )
    container = b'<container><rootfiles><rootfile full-path="o.opf"/></rootfiles></container>'
    opf = b'<package><manifest><item id="a" href="a.html" media-type="text/html"/></manifest><spine><itemref idref="a"/>'
    epub = _zip(
        mimetype=b"application/epub+zip",
        **{"META-INF__container.xml": container, "o.opf": opf + b"</spine></package>", "a.html": html()[0]},
    )
    return [docx, odt, epub]


def all_files() -> list[bytes]:
    plain = [
        b"---\ntitle: x\n---\n# A\n\nwords *here*\n",
        b"\\title{A}\\author{B}\\begin{document}",
        b"\x1f\x9d\x90a\xc2",
    ]
    packed = [
        gzip.compress(plain[0]),
        bz2.compress(plain[0]),
        lzma.compress(plain[0]),
        gzip.compress(gzip.compress(b"x")),
    ]
    return plain + packed + _office() + rtf() + mail() + sgml() + html() + catalogues() + feeds()


def queries() -> list[bytes]:
    return [
        b'title:wing AND (heat OR "boundary layer") NOT creator:lees', b"flow* +wind -sea date:1950..1960-06",
        'source:air set:a:b language:de Strömung "情報 x"'.encode(), b"*", b"doi:10.1000/182 heat-transfer",
    ]  # fmt: skip


def requests() -> list[bytes]:
    return [
        b"verb=Identify", b"verb=ListRecords&metadataPrefix=oai_dc&from=2023-01-01&until=2024-01-01T00:00:00Z&set=a",
        b"verb=GetRecord&identifier=oai:x:1&metadataPrefix=oai_dc&indexPrefix=tf_basic", b"verb=ListSets",
        b"verb=ListMetadataFormats&identifier=oai:x:2", b"verb=ListIdentifiers&metadataPrefix=marc21",
    ]  # fmt: skip


def configurations() -> list[bytes]:
    return [
        b'data = "d"\n[node]\nport = 8080\nadmin_email = ["a@b.org"]\n[[hierarchy]]\nroot = "f"\nname = "n"\n'
        b'base_url = "http://x"\n[[source]]\nurl = "http://u:p@h/oai"\nevery = "1h"\n[analysis]\nlanguage = "en"\n'
        b'[crawl]\nevery = "10m"\nworkers = 2\n[harvest]\ntimeout_seconds = 30\n[serve]\nrecords_per_page = 9\n',
        b'[[library]]\nread = "a"\nname = "l"\n[[write]]\nfolder = "b"\n[[site]]\nroot = "r"\nurl = "http://x"\n',
    ]


def feeds() -> list[bytes]:
    return [
        b'<rss version="2.0"><channel><title>T</title><item><title>A &amp; b</title><guid>g1</guid><link>/a</link>'
        b"<description>&lt;p&gt;x&lt;/p&gt;</description><pubDate>Thu, 01 Jan 1970 00:00:00 GMT</pubDate></item></channel></rss>",
        b'<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>T</title><entry><id>urn:1</id><title type="html">'
        b'&lt;b&gt;x</title><link href="b"/><updated>2003-12-13T18:30:02Z</updated><content type="xhtml"><div>c</div></content>'
        b'</entry><at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="urn:2" when="2005"/></feed>',
        b'{"version":"https://jsonfeed.org/version/1.1","title":"T","language":"en","items":[{"id":"1","url":"/x",'
        b'"content_html":"<p>a","date_published":"2010-02-07T14:04:00-05:00","authors":[{"name":"A"}],"tags":["t"]}]}',
    ]


def compressed() -> list[bytes]:
    text = b"<OAI-PMH>" + b"words " * 50 + b"</OAI-PMH>"
    made = [gzip.compress(text), zlib.compress(text), brotli.compress(text), zstandard.compress(text)]
    return [bytes([n]) + data for n, data in enumerate(made)] + [
        b"\x05" + made[0],
        b"\x04" + zstandard.compress(made[0]),
    ]


def didl() -> list[bytes]:
    return [
        b'<didl:DIDL xmlns:didl="urn:mpeg:mpeg21:2002:02-DIDL-NS"><didl:Item><didl:Component><didl:Resource'
        b' mimeType="text/html" ref="http://x.org/a%2f..%2f../b%00?c=d/../e"/><didl:Resource encoding="base64">YWJj'
        b"</didl:Resource></didl:Component></didl:Item></didl:DIDL>",
        b'<didl:DIDL xmlns:didl="urn:mpeg:mpeg21:2002:02-DIDL-NS"><didl:Item><didl:Component><didl:Resource'
        b' mimeType="a/b" ref="https://[::1]:99999/%2e%2e/"/></didl:Component></didl:Item></didl:DIDL>',
    ]
