"""Records of any well-formed page: canonical as lxml writes them, the same however the page is written."""

from __future__ import annotations

import pytest
from bench.fuzz.seeds import swelling_pages
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from indlet import _core
from indlet.model import TermVector
from indlet.oai.read import Item, read
from indlet.service.records.page import last_token

SPACES = st.sampled_from(["", "", "\n", "\r\n  ", "\t"])
REFERENCES = {"&": ["&amp;", "&#38;"], "<": ["&lt;", "&#x3c;"], ">": ["&gt;", "&#62;"], "ü": ["ü", "&#xFC;"]}
BETWEEN = ["<!-- <a> & -->", "<![CDATA[<b> & ] ]]>", "\r\n", "&#13;", "\r", "<?a b?>", "]]&gt;"]
PARTS = (
    '<m:mods xmlns:m="http://www.loc.gov/mods/v3" ID="x"><m:titleInfo><m:title>{}</m:title></m:titleInfo>'
    '<m:subject><m:title lang="e&quot;n">a <m:creator>b</m:creator> c</m:title></m:subject></m:mods>',
    '<dc xmlns="urn:x:y" xmlns:b="urn:b" xmlns:a="urn:a"><title b:z="1" a:y="2" x="3&#10;&lt;>">{}</title>'
    "</dc>",
    '<dc><Title>{}</Title><t:abstract xmlns:t="http://purl.org/dc/terms/">{}</t:abstract></dc>',
    '<dc xmlns=""><title>{}</title><a xmlns="urn:a"><b xmlns=""><c/><d xmlns="urn:a"/></b></a></dc>',
    '<q:dc xmlns:q="urn:q"><q:title xmlns:q="urn:q">{}</q:title><date xmlns="urn:other">1999</date></q:dc>',
    '<dc:dc><dc:title xml:lang="de" >{}</dc:title><dc:date/><dc:type></dc:type ><dc:creator\n>{}</dc:creator>'
    "</dc:dc>",
    '<x:y xmlns:x="urn:x"><none/><z xmlns="urn:z"><none/><w xmlns="urn:w" x:v="1"/></z>{}'
    "<dc:rights>{}</dc:rights></x:y>",
)
CONTROLS = "".join(map(chr, [*range(32), 127])) + "\ufffe\uffff"
CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters=CONTROLS)


@st.composite
def spelt(draw: st.DrawFn) -> str:
    """A text, its characters written in one of the ways that XML has, with other mark-up in between."""
    out = []
    for character in draw(st.text(CHARACTERS | st.sampled_from("ab <>&ü\u00a0\u200b\u00ad\t"), max_size=12)):
        out.append(draw(st.sampled_from(REFERENCES.get(character, [character, f"&#{ord(character)};"]))))
        if draw(st.integers(0, 15)) == 0:
            out.append(draw(st.sampled_from(BETWEEN)))
    return "".join(out)


@st.composite
def pages(draw: st.DrawFn) -> bytes:
    o = draw(st.sampled_from(["", "oai:", "o-1:"]))
    scope = draw(st.sampled_from(['xmlns:dc="http://purl.org/dc/elements/1.1/"', 'xmlns:dc="urn:dc"']))
    root = f'xmlns{":" + o[:-1] if o else ""}="http://www.openarchives.org/OAI/2.0/" {scope}'
    out = []
    for number in range(draw(st.integers(1, 4))):
        gap, quote = draw(SPACES), draw(st.sampled_from("'\""))
        part = draw(st.sampled_from(PARTS)).replace("{}", draw(spelt()))
        sets = "".join(
            f"<{o}setSpec>{s}</{o}setSpec>" for s in draw(st.lists(st.sampled_from(["a", " b:c ", ""])))
        )
        out.append(
            f"<{o}record><{o}header>{gap}<{o}identifier>{draw(spelt())}{number}</{o}identifier >"
            f"<{o}datestamp>2024</{o}datestamp>{sets}</{o}header>{gap}<{o}metadata>{part}</{o}metadata>"
            f'<{o}about><p xmlns="urn:p" a={quote}{number}{quote}>{draw(spelt())}</p></{o}about></{o}record>'
        )
    return (
        f"<{o}OAI-PMH {root}><{o}responseDate>2024-01-01T00:00:00Z</{o}responseDate><{o}ListRecords>"
        f"{''.join(out)}</{o}ListRecords></{o}OAI-PMH>"
    ).encode()


def said(item: Item) -> tuple[object, ...]:
    return item.identifier, item.datestamp, item.sets, item.deleted, item.packed, item.about


@settings(max_examples=300, deadline=None)
@given(pages())
def test_a_page_is_read_as_it_is_and_its_parts_are_canonical(body: bytes) -> None:
    page = read(body)
    assert not page.is_repaired
    assert page.root is not None
    parts = [node[0] for node in page.root.iter("{*}metadata", "{*}about")]
    expected = [
        etree.tostring(n, method="c14n", exclusive=True, with_comments=False, with_tail=False) for n in parts
    ]
    assert [raw for i in page.items if i.packed is not None for raw in (i.packed.raw, *i.about)] == expected
    again = read(etree.tostring(page.root, encoding="utf-8"))
    assert [said(item) for item in again.items] == [said(item) for item in page.items]


def page_of(record: str, around: str = "{}") -> bytes:
    header = "<header><identifier>oai:x:1</identifier><datestamp>2024-01-01</datestamp></header>"
    inside = around.format(f"<record>{header}{record}</record>")
    return f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>{inside}</ListRecords></OAI-PMH>'.encode()


@pytest.mark.parametrize(
    ("metadata", "raw", "repair"),
    [
        ("<metadata><a/><b/></metadata>", b"<metadata", "metadata without an element around them"),
        ("<metadata>&lt;a>b&lt;/a></metadata>", b"<a>b</a>", "metadata written as text"),
        ("<metadata><![CDATA[<a>b</a>]]></metadata>", b"<a>b</a>", "metadata written as text"),
        ("<metadata><a xmlns='u:a'/></metadata><metadata><b/></metadata>", b'<a xmlns="u:a"></a>',
         "records with metadata twice: the first taken"),
        ("<metadata/><metadata><a xmlns=''/></metadata>", b"<a></a>", ""),
    ],
)  # fmt: skip
def test_metadata_are_taken_as_they_are_meant(metadata: str, raw: bytes, repair: str) -> None:
    page = read(page_of(metadata))
    (item,) = page.items
    assert item.packed is not None
    assert item.packed.raw.startswith(raw)
    assert page.repairs == ({repair: 1} if repair else {})


@pytest.mark.parametrize(
    ("terms", "vector"),
    [
        ('length="9" lang="en"><t f="1">&amp; a</t><t f="3">d</t>', TermVector(b"1 & a\n3 d", 9, None, "en")),
        ('length="2"><t f="1">a</t><t f="3">d</t>', TermVector(b"1 a\n3 d", 4)),
        ('length="4"><term name="a" freq="1"/><term name="d" freq="3"/>', TermVector(b"1 a\n3 d", 4)),
        ('length="4"><t f="1">b a</t>', None),
        ('length="4"><t f="1">a</t><t f="2">a</t>', None),
        ('length="4"><t f="2">a</t><t f="1">b</t>', None),
        ('length="99999999999"><t f="2">a</t>', None),
        ('length="4"><term name="a" freq="1" at="3"/>', None),
    ],
)  # fmt: skip
def test_vectors_in_canonical_form_are_read_others_are_left_to_their_format(
    terms: str, vector: TermVector | None
) -> None:
    index = f'<index policy="p"><terms xmlns="urn:indlet:tf:1.0" {terms}</terms></index>'
    (item,) = read(page_of(f"<metadata><a/></metadata>{index}")).items
    assert item.vector == vector
    assert (item.index_part is None) == (vector is not None)
    assert item.policy == "p"


@pytest.mark.parametrize(
    "bad",
    ["<a b='1' b='2'/>", "<a", "<a></b>", "<a:b/>", "&eacute;", "&#0;", "]]>", "<!-- -- -->", "<a b=1/>",
     "<a b='<'/>", "<a xmlns:xml='u:x'/>", "<a xmlns:b=''/>", "<a xmlns='http://a b'/>", "<:a/>", "\x01",
     "<?xml a?>", "<!DOCTYPE a>"],
)  # fmt: skip
def test_what_is_not_well_formed_is_left_to_be_repaired(bad: str) -> None:
    assert _core.read_page(page_of("<metadata><a></a></metadata>"), 1 << 20) is not None
    assert _core.read_page(page_of(f"<metadata><a>{bad}</a></metadata>"), 1 << 20) is None


@pytest.mark.parametrize("body", swelling_pages(2000))
def test_what_is_derived_of_a_page_is_charged_to_its_budget(body: bytes) -> None:
    page = read(body)
    assert len(page.items) + len(page.problems) == 2000
    derived = sum(len(i.packed.raw) + len(i.packed.metadata) for i in page.items if i.packed is not None)
    assert derived <= page.budget.total - page.budget.left <= page.budget.total


def test_a_record_that_nests_too_deep_fails_alone() -> None:
    page = read(page_of(f"<metadata>{'<a>' * 5000}{'</a>' * 5000}</metadata>"))
    assert [problem.where for problem in page.problems] == ["oai:x:1"]


@pytest.mark.parametrize(
    ("tail", "token"),
    [
        (b'<resumptionToken cursor="0"> a&amp;b </resumptionToken>\n</ListRecords></OAI-PMH>\n', "a&b"),
        (b"<resumptionToken/></ListRecords></OAI-PMH>", ""),
        (b"<resumptionToken></resumptionToken></ListRecords></OAI-PMH>", ""),
        (b"</ListRecords></OAI-PMH>", ""),
        (b"<resumptionToken>a</resumptionToken></ListRecords></OAI-PM", ""),
        (b"<resumptionToken>a</resumptionToken><record/></ListRecords></OAI-PMH>", ""),
        (b"<resumptionToken>a\xe9</resumptionToken></ListRecords></OAI-PMH>", "a\ufffd"),
    ],
)
def test_the_token_at_the_end_of_a_page(tail: bytes, token: str) -> None:
    assert last_token(b"<x/>" * 5000 + tail) == token
