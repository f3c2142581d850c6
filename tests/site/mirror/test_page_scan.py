"""A page that is read without a parser says what the tolerant reader finds in it, or is left to that."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from indlet.errors import BadResponse
from indlet.net.client import HttpAnswer
from indlet.oai import frames
from indlet.site import http_header, oai_didl
from indlet.site.mirror.page_scan import ListedRecord, scanned
from indlet.site.mirror.pages import parsed_page

SCHEMA = "http://h/schema/http_header.xsd"
HEAD = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<?xml-stylesheet type="text/xsl" href="oai.xsl"?>\n'
    b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" '
    b'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n'
    b"<responseDate>2026-01-02T03:04:05Z</responseDate>\n"
    b'<request verb="ListRecords" metadataPrefix="oai_didl">http://h/oai</request>\n<ListRecords>\n'
)
TAIL = b'<resumptionToken cursor="0">next</resumptionToken>\n</ListRecords>\n</OAI-PMH>\n'


def record(url: str, content: bytes | None, *fields: tuple[str, str], didl: bool = True) -> bytes:
    header = http_header.write(fields, "ab" * 32, SCHEMA)
    metadata = oai_didl.write(url, "text/html", header, content) if didl else header
    row = 1, url, 1_700_000_000, "mime:text:html site:a", metadata
    return b"".join(frames.records([row]))


DELETED = (
    b'<record><header status="deleted"><identifier>http://h/gone</identifier>'
    b"<datestamp>2026-01-01T00:00:00Z</datestamp></header></record>\n"
)
FIELDS = (("Content-Length", "3"), ("ETag", '"3c30-207e"'), ("X-Name", "Müller; q='1'"))
PAGES = {
    "files": [record("http://h/a", b"abc", *FIELDS), DELETED, record("http://h/ü", b"", *FIELDS)],
    "by reference": [record("http://h/a", None, *FIELDS), record("http://h/b", b"\0\xff" * 50)],
    "headers": [record("http://h/a", None, *FIELDS, didl=False), DELETED],
}


def tolerant(body: bytes) -> tuple[str, str, list[ListedRecord]]:
    page = parsed_page(HttpAnswer(body))
    if page.errors or page.problems:
        raise BadResponse("not a sound list")
    return page.response_date, page.token, list(page.records)


def read_fast(body: bytes) -> tuple[str, str, list[ListedRecord]] | None:
    """Files decoded, as the tolerant reader gives them."""
    if (page := scanned(body)) is None:
        return None
    records = []
    for one in page.records:
        files = [
            replace(
                file, content=None if file.encoded is None else oai_didl.decoded(file.encoded), encoded=None
            )
            for file in one.components or ()
        ]
        records.append(one._replace(components=files or None))
    return page.response_date, page.token, records


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_ours_is_read_without_a_parser(name: str) -> None:
    body = HEAD + b"".join(PAGES[name]) + TAIL
    assert read_fast(body) == tolerant(body)


@pytest.mark.parametrize(
    "odd",
    [
        record("http://h/a?b=1&c=2", b"abc"),
        record("http://h/a", b"abc", ("X-Name", "a & b")),
        record("http://h/a", b"abc", ("X-Name", "two\nlines")),
        record("http://h/a", b"abc").replace(b"</metadata>", b"</metadata><about><x/></about>"),
        record("http://h/a", b"abc").replace(b"<didl:Item>", b"<didl:Item><!-- -->"),
        record("http://h/a", b"abc").replace(b"http://h/a", b"http://h/\xff"),
        record("http://h/a", b"abc").replace(b"<setSpec>", b"<setSpec>\xff", 1),
        record("http://h/a", b"abc").replace(b"http://h/a", "http://h/\uffff".encode()),
        record("http://h/a", b"abc").replace(b"http://h/a", "http://h/a\xa0".encode()),
        record("http://h/a", b"abc").replace(b'ref="', 'ref="\u2003'.encode()),
        record("http://h/a", b"abc").replace(b'"text/html" ref', b'"" ref'),
        record("http://h/a", b"abc").replace(b">YWJj<", b">YW&#10;Jj<"),
        record("http://h/a", None, *[("X-Name", "1")] * 1001, didl=False),
        b"",
    ],
)
def test_a_page_that_is_written_otherwise_is_left_to_the_parser(odd: bytes) -> None:
    assert scanned(HEAD + odd + TAIL) is None


def test_a_damaged_page_is_read_as_the_parser_reads_it_or_left_to_it() -> None:
    dice, taken = random.Random(1), 0
    for _ in range(600):
        body = bytearray(HEAD + b"".join(PAGES[dice.choice(sorted(PAGES))]) + TAIL)
        at = dice.randrange(len(body))
        change = dice.choice((b"", b"<", b">", b'"', b"'", b"&", b" ", b"/", b"\0", b"\xff", b"x", b"]]>"))
        body[at : at + dice.randrange(2)] = change
        found = read_fast(bytes(body))
        if found is None:
            continue
        taken += 1
        date, token, records = tolerant(bytes(body))
        assert (found[0], found[1]) == (date, token)
        assert found[2] == records
    assert taken > 20
