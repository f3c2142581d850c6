"""Reading answers: repaired where nothing is lost, refused where something is missing."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from indlet.errors import BadResponse
from indlet.formats.metadata import oai_dc
from indlet.oai.answers import identity, index_formats, metadata_formats, set_names
from indlet.oai.read import Page, Truncated, parsed, read

OAI = 'xmlns="http://www.openarchives.org/OAI/2.0/"'


def page(*records: str, root: str = OAI, tail: str = "") -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH {root}>'
        "<responseDate>2024-01-01T00:00:00Z</responseDate>"
        f"<request>http://x.org/</request><ListRecords>{''.join(records)}{tail}</ListRecords></OAI-PMH>"
    ).encode()


def record(name: str, title: str = "wing", extra: str = "", prefixes: str = "") -> str:
    return (
        f"<record><header{extra}><identifier>{name}</identifier><datestamp>2024-01-01</datestamp></header>"
        f'<metadata><oai_dc:dc xmlns:oai_dc="{oai_dc.NAMESPACE}" xmlns:dc="{oai_dc.DC_NAMESPACE}"{prefixes}>'
        f"<dc:title>{title}</dc:title></oai_dc:dc></metadata></record>"
    )


def titles(found: Page) -> dict[str, str]:
    return {
        i.identifier: "".join(parsed(i.packed.raw).itertext())  # type: ignore[union-attr, arg-type]
        for i in found.items
        if i.packed is not None
    }


def test_a_sound_page() -> None:
    tail = '<resumptionToken completeListSize="7" cursor="2"> a+b&amp;c </resumptionToken>'
    found = read(page(record("a"), record("b", extra=' status="deleted"'), tail=tail))
    assert [(i.identifier, i.datestamp, i.deleted) for i in found.items] == [
        ("a", "2024-01-01", False),
        ("b", "2024-01-01", True),
    ]
    assert (found.token, found.size, found.cursor) == ("a+b&c", 7, 2)
    assert (found.response_date, found.verb, found.repairs) == ("2024-01-01T00:00:00Z", "ListRecords", {})
    assert read(page(record("a"), tail="<resumptionToken/>")).token == ""
    assert read(page(record("a"))).token is None
    for two in (f"{tail}<resumptionToken/>", f"<resumptionToken/>{tail}"):
        found = read(page(record("a"), tail=two))
        assert (found.token, found.size, found.cursor) == ("a+b&c", 7, 2)


@pytest.mark.parametrize(
    ("broken", "title", "repair"),
    [
        (lambda b: b.replace(b"wing", b"w\x00i\x0bng"), "wing", "control characters"),
        (lambda b: b.replace(b"wing", b"wing&#x1F;&#0;"), "wing", "control characters"),
        (lambda b: b.replace(b"wing", b"wing\xef\xbf\xbf"), "wing", "control characters"),
        (lambda b: b.replace(b"wing", b"A&B &c; R&D"), "A&B &c; R&D", "bare ampersands"),
        (lambda b: b.replace(b"wing", b"AT&T & co"), "AT&T & co", "bare ampersands"),
        (lambda b: b.replace(b"wing", b"a&nbsp;b &alpha;"), "a\xa0b α", "undeclared entities"),
        (lambda b: b.replace(b"wing", b"p < 0.05"), "p < 0.05", "bare less-than signs"),
        (lambda b: b.replace(b"wing", b"\xfcber"), "über", "invalid UTF-8"),
        (lambda b: b.replace(b"wing", b"\x93quoted\x94"), "“quoted”", "invalid UTF-8"),
        (lambda b: b.replace(b"UTF-8", b"iso-8859-1").replace(b"wing", b"\xfcber"), "über", ""),
        (
            lambda b: b.replace(b"UTF-8", b"latin1").replace(b"wing", "über".encode()),
            "über",
            "wrong encoding",
        ),
        (lambda b: b.decode().replace("UTF-8", "UTF-16").encode("utf-16"), "wing", "wrong encoding"),
        (lambda b: b.decode().replace("UTF-8", "UTF-16").encode("utf-16-be"), "wing", "wrong encoding"),
        (lambda b: b.decode().replace("UTF-8", "UTF-16").encode("utf-16-le"), "wing", "wrong encoding"),
        (lambda b: b"\xef\xbb\xbf" + b, "wing", ""),
        (lambda b: b"\n\n " + b, "wing", "white space before the declaration"),
        (lambda b: b"Warning: x in line 3\n" + b, "wing", "noise before the document"),
        (lambda b: b + b"<OAI-PMH/>trailing", "wing", "garbage after the document"),
        (lambda b: re.sub(rb' xmlns(:\w+)?="[^"]*"', b"", b), "wing", "missing namespaces"),
        (lambda b: b.replace(b"ListRecords", b"listrecords").replace(b"header", b"Header"), "wing", ""),
        (lambda b: b.replace(b"wing", b"<![CDATA[R&D \x01 <b>]]>"), "R&D  <b>", "control characters"),
    ],
)
def test_repairs_lose_nothing_and_are_told(broken: Callable[[bytes], bytes], title: str, repair: str) -> None:
    found = read(broken(page(record("a"), record("b", "other"))))
    assert titles(found) == {"a": title, "b": "other"}
    assert not found.problems
    if repair:
        assert found.repairs[repair] >= 1
    assert "wing" not in repr(found.repairs)


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        (b"", BadResponse, "empty"),
        (b"  \n", BadResponse, "empty"),
        (b"<!DOCTYPE html><html><body>down</body></html>", BadResponse, "HTML"),
        (b"<html>", BadResponse, "HTML"),
        (b"Service unavailable", BadResponse, "not XML"),
        (b"<rss version='2.0'></rss>", BadResponse, "not an OAI-PMH response"),
        (page(record("a"))[:-12], Truncated, "stops before its end"),
        (page(record("a"), record("b"))[:300], Truncated, "stops before its end"),
    ],
)
def test_what_is_no_page_is_refused(body: bytes, error: type[BadResponse], said: str) -> None:
    with pytest.raises(error, match=said):
        read(body)


def test_a_malformed_record_costs_that_record_and_keeps_its_bytes() -> None:
    bad = record("b", "<i>never closed")
    found = read(page(record("a"), bad, record("c"), tail="<resumptionToken>t</resumptionToken>"))
    assert [i.identifier for i in found.items] == ["a", "c"]
    assert [(p.where, p.raw) for p in found.problems] == [("b", bad.encode())]
    assert "not well-formed" in found.problems[0].reason
    assert found.token == "t"


def test_no_entity_is_expanded_and_no_file_is_read() -> None:
    bomb = '<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/hostname">'
    body = page(record("a", "&b;"), record("b", "&c;"), record("c"), record("d", "x", prefixes=' q="&b;"'))
    body = body.replace(b"?>\n", f"?>\n<!DOCTYPE OAI-PMH [{bomb}]>".encode(), 1)
    found = read(body)
    assert titles(found) == {"c": "wing"}
    assert sorted(p.where for p in found.problems) == ["a", "b", "d"]
    assert found.repairs["document type removed"] == 1


def test_an_entity_of_plain_characters_is_what_it_stands_for() -> None:
    subset = (
        """<!-- "]> --><!ENTITY org "acme"><!ENTITY odd 'b]>r'><!ENTITY far SYSTEM "x"><!ELEMENT a ANY>"""
    )
    body = page(record("a", "&org; &odd;"), record("b", "&far;")).replace(
        b"?>\n", f"?>\n<!DOCTYPE OAI-PMH [{subset}]>\n".encode(), 1
    )
    found = read(body)
    assert titles(found) == {"a": "acme b]>r"}
    assert [p.where for p in found.problems] == ["b"]
    assert found.repairs["entities expanded"] == 1


def test_a_text_of_many_megabytes_and_a_deep_tree() -> None:
    assert len(titles(read(page(record("a", "air " * 3_000_000))))["a"]) == 12_000_000
    deep = read(page(record("a", "<b>" * 5000 + "</b>" * 5000), record("b")))
    assert [i.identifier for i in deep.items][-1] == "b"


def test_the_verbs_that_are_asked_once() -> None:
    frame = f"<OAI-PMH {OAI}><responseDate>d</responseDate>%s</OAI-PMH>"
    told = identity(read((frame % (
        "<Identify><repositoryName>R</repositoryName><baseURL>http://x/</baseURL>"
        "<earliestDatestamp>1999-01-01</earliestDatestamp><deletedRecord>Persistent</deletedRecord>"
        '<granularity>YYYY-MM-DD</granularity><description><policy digest="x">{"stem": true}</policy>'
        "</description></Identify>"
    )).encode()))  # fmt: skip
    assert (told.name, told.earliest, told.deleted, told.granularity) == (
        "R",
        "1999-01-01",
        "persistent",
        "YYYY-MM-DD",
    )
    assert told.policy == '{"stem": true}'
    formats = "<metadataFormat><metadataPrefix>oai_dc</metadataPrefix></metadataFormat>"
    assert metadata_formats(
        read((frame % f"<ListMetadataFormats>{formats}</ListMetadataFormats>").encode())
    ) == ["oai_dc"]
    index = "<indexFormat><indexPrefix>tf_basic</indexPrefix><policy>{}</policy></indexFormat>"
    assert index_formats(read((frame % f"<ListIndexFormats>{index}</ListIndexFormats>").encode())) == {
        "tf_basic": "{}"
    }
    sets = "<set><setSpec>a:b</setSpec><setName>The B</setName></set>"
    assert set_names(read((frame % f"<ListSets>{sets}</ListSets>").encode())) == [("a:b", "The B")]
    assert read((frame % '<error code="badVerb">no</error>').encode()).errors == [("badVerb", "no")]
