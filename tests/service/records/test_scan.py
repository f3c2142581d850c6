"""The scanner gives what the tolerant reader gives, or nothing; and its records are those of the slow way."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from indlet.errors import BadResponse
from indlet.formats import INDEX
from indlet.formats.metadata import oai_dc
from indlet.kernels.vector_check import totals
from indlet.model import DUBLIN_CORE, Packed, Record, TermVector
from indlet.oai import frames
from indlet.oai.read import Item, canonical, read
from indlet.service.records.normalise import Normaliser
from indlet.service.records.scan import last_token, scan
from indlet.store import packed
from indlet.text import Analyzer, Policy

words = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=6)
texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
vectors = st.none() | st.builds(
    lambda frequencies, more: TermVector.of(frequencies, sum(frequencies.values()) + more, "en"),
    st.dictionaries(words | st.sampled_from(["a&b", "x<y", "c>d", 'e"f']), st.integers(1, 300), max_size=12),
    st.integers(0, 3),
)
records = st.tuples(
    st.sampled_from(["oai:x.org:1", "oai:x.org:a&b", "oai:x.org:ü"]),
    st.booleans(),
    st.sampled_from(["", "a", "a a:b"]),
    st.dictionaries(st.sampled_from(DUBLIN_CORE), st.lists(texts, min_size=1, max_size=2), max_size=4),
    vectors,
)


def written(
    entries: list[tuple[str, bool, str, dict[str, list[str]], TermVector | None]], prefix: str
) -> bytes:
    """A page as our own node writes it."""
    body = []
    for identifier, deleted, sets, metadata, vector in entries:
        body.append(b"<record>" + frames.header(identifier, 1_700_000_000, deleted, sets))
        if not deleted:
            body.append(b"<metadata>" + oai_dc.write(metadata) + b"</metadata>")
            if vector is not None:
                body.append(b"<index>" + INDEX[prefix].write(vector) + b"</index>")
        body.append(b"</record>\n")
    body.append(frames.resumption("tok&amp;en", size=10, cursor=0))
    endpoint = frames.Endpoint.at("http://x.org", True)
    return endpoint.answer(1_700_000_000, {"verb": "ListRecords"}, "ListRecords", body)


def seen(item: Item, prefix: str) -> tuple[object, ...]:
    """What an item says, whichever reader made it."""
    metadata: object
    vector = None
    if item.sheet is not None and not item.deleted:
        found = item.sheet.pairs(item.place)
        pairs = [(name, value.strip()) for name, value in found if value.strip()]
        metadata = canonical(etree.fromstring(item.sheet.raw(item.place)))
        vector = item.sheet.vector(item.place)
    elif item.metadata is not None:
        pairs = [
            (etree.QName(c).localname, "".join(map(str, c.itertext())).strip())
            for c in item.metadata
            if "".join(map(str, c.itertext())).strip()
        ]
        metadata = canonical(item.metadata)
    else:
        pairs, metadata = [], None
    if vector is None and item.index is not None:
        vector = INDEX[prefix].read(item.index)
    return item.identifier, item.datestamp, item.sets, item.deleted, pairs, metadata, vector


def alike(body: bytes, prefix: str) -> bool:
    """Whether the fast reader agrees with the tolerant one; False if it leaves the page to that one."""
    quick = scan(body)
    if quick is None:
        return False
    slow = read(body)
    assert [seen(i, prefix) for i in quick.items] == [seen(i, prefix) for i in slow.items]
    assert not slow.problems
    assert not slow.errors
    for name in ("response_date", "verb", "token", "size", "cursor", "extended"):
        assert getattr(quick, name) == getattr(slow, name), name
    return True


@settings(max_examples=150, deadline=None)
@given(st.lists(records, max_size=4), st.sampled_from(["tf_compact", "tf_basic"]))
def test_both_readers_agree_on_what_we_write(
    entries: list[tuple[str, bool, str, dict[str, list[str]], TermVector | None]], prefix: str
) -> None:
    alike(written(entries, prefix), prefix)


def test_what_we_write_is_read_fast() -> None:
    vector = TermVector.of({"acid": 1, "air": 1, "wing": 3}, language="en")
    entries = [
        ("oai:x.org:1", False, "a a:b", {"title": ["Über R&D"], "creator": ["A", "B"]}, vector),
        ("oai:x.org:2", True, "", {}, None),
        ("oai:x.org:3", False, "", {"title": ["x"]}, None),
    ]
    for prefix in ("tf_compact", "tf_basic"):
        assert alike(written(entries, prefix), prefix)
        quick = scan(written(entries, prefix))
        assert quick is not None
        assert quick.items[0].sheet is not None
        assert quick.items[0].sheet.vector(0) == vector


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_both_readers_agree_on_what_was_damaged(data: st.DataObject) -> None:
    entries = data.draw(st.lists(records, min_size=1, max_size=3))
    prefix = data.draw(st.sampled_from(["tf_compact", "tf_basic"]))
    body = bytearray(written(entries, prefix))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        piece = data.draw(
            st.sampled_from([b"", b"<", b">", b"&", b'"', b" ", b"\n", b"\x01", b"\xff", b"<!-- -->", b"0"])
        )
        body[at : at + data.draw(st.integers(0, 2))] = piece
    try:
        sound = read(bytes(body))
    except BadResponse:
        assert scan(bytes(body)) is None
        return
    if sound.repairs or sound.problems:
        assert scan(bytes(body)) is None
    else:
        alike(bytes(body), prefix)


def total(vector: bytes) -> int:
    """The sum of a vector's frequencies, or -1 where it is not in canonical form, written down plainly."""
    last = total = 0
    seen: list[bytes] = []
    for line in vector.split(b"\n") if vector else ():
        number, *words = line.split(b" ")
        if not re.fullmatch(rb"[1-9][0-9]{0,8}", number) or not all(words or [b""]):
            return -1
        if int(number) <= last or words != sorted(words):
            return -1
        last = int(number)
        total += last * len(words)
        seen += words
    return total if len(seen) == len(set(seen)) else -1


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("1 2\n09ab", max_size=14).map(str.encode), max_size=5))
def test_the_compiled_check_of_vectors(vectors: list[bytes]) -> None:
    more = [
        TermVector.of({"b": 1, "a": 2, "ab": 2, "abc": 1}).packed,
        b"1 a\n2 a",
        b"1 b a",
        b"2 a\n1 b",
        b"1 a a",
    ]
    assert list(map(total, more)) == [6, -1, -1, -1, -1]
    ends = np.cumsum([len(v) for v in vectors + more])
    data = np.frombuffer(b"".join(vectors + more), np.uint8)
    assert totals(data, ends).tolist() == list(map(total, vectors + more))


# From a page to the store: by kernels what it is without

values = st.one_of(
    st.sampled_from([
        "Wings and the air that is over them", "wing", "  two  spaces ", "tab\there", "R&D <x> \"q\" '\\' b",
        "Über die Flügel der Vögel", "non\u00a0breaking", "soft\u00adhyphen", "zero\u200bwidth", "été – “là”",
        "\u4e2d\u6587", "ɛ", "a]]b", "http://www.x.org/a/", "https://x.org", "http://X.org/b?c#d",
        "http://x/ü", "",
        "doi:10.1234/AbC.", "https://doi.org/10.1/x", "http://x.org/10.pdf", "ISBN 3", "http://x.org/a&b",
        "1999", "1999-05", "1999-05-31", "1999-13", "0000", "31 May 1999", "1999/5/3", "en", "eng", "English",
        "de-AT", "zz", "application/pdf", "text/pdf", "PDF", "image/jpg", "image/gif", "text/html; charset=x",
        "video/x", "nonsense/x", "Text", "text", "http://purl.org/dc/dcmitype/Text", "Still Image", "article",
    ]),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12),
)  # fmt: skip
described = st.tuples(
    st.sampled_from(["oai:x.org:1", "oai:x.org:a&b", "oai:x.org:ü"]),
    st.booleans(),
    st.sampled_from(["", "a", "a a:b"]),
    st.lists(st.tuples(st.sampled_from(DUBLIN_CORE), values), max_size=10),
    vectors,
)
SPACES = st.sampled_from(["", "", "\n", "\r\n  ", "\t"])


Entry = tuple[str, bool, str, list[tuple[str, str]], object]


def foreign(draw: Callable[[st.SearchStrategy[str]], str], entries: Sequence[Entry]) -> bytes:
    """A page as others write it: indented, with attributes, with empty elements."""
    out = []
    for identifier, deleted, sets, pairs, _ in entries:
        gap = draw(SPACES)
        status = ' status="deleted"' if deleted else ""
        head = [f"<identifier>{escaped(identifier)}</identifier>", "<datestamp>2024-01-01</datestamp>"]
        head += [f"<setSpec>{spec}</setSpec>" for spec in sets.split()]
        parts = [f"<header{status}>{gap}{gap.join(head)}{gap}</header>"]
        if not deleted:
            attribute = draw(st.sampled_from(["", ' xml:lang="en"', ' xsi:type="dcterms:W3CDTF"']))
            inside = [
                f"<dc:{name}{attribute}>{escaped(value)}</dc:{name}>" if value else f"<dc:{name}/>"
                for name, value in pairs
            ]
            parts.append(
                f'<metadata>{gap}<oai_dc:dc xmlns:oai_dc="{oai_dc.NAMESPACE}" '
                f'xmlns:dc="{oai_dc.DC_NAMESPACE}" '
                'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
                f"{gap}{gap.join(inside)}{gap}</oai_dc:dc>{gap}</metadata>"
            )
        out.append(f"<record>{gap}{gap.join(parts)}{gap}</record>")
    return (
        (
            '<?xml version="1.0" encoding="utf-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
            "<responseDate>2024-01-01T00:00:00Z</responseDate>\n<request verb='ListRecords'>http://x.org/</request>"
            f"<ListRecords>{''.join(out)}<resumptionToken/></ListRecords></OAI-PMH>"
        )
        .replace("'ListRecords'", '"ListRecords"')
        .encode()
    )


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def flat(made: Sequence[Record | Packed | BadResponse]) -> list[tuple[object, ...]]:
    """Records as the store would have them; raw metadata by what they say, for their bytes may differ."""
    out: list[tuple[object, ...]] = []
    for each in made:
        assert not isinstance(each, BadResponse)
        row = packed(each) if isinstance(each, Record) else each
        raw = canonical(etree.fromstring(row.raw)) if row.raw else b""
        out.append(row._replace(digest=b"", raw=raw))
    return out


@pytest.mark.parametrize("policy", [Policy(), Policy(positions=True), Policy(language="de", stop=False)])
@settings(max_examples=120, deadline=None)
@given(st.data())
def test_records_are_those_of_the_slow_way(policy: Policy, data: st.DataObject) -> None:
    entries = data.draw(st.lists(described, max_size=4))
    if data.draw(st.booleans()):
        prefix = "tf_compact"
        rows = [
            (name, gone, sets, {e: [v for n, v in pairs if n == e and v] for e, _ in pairs}, vector)
            for name, gone, sets, pairs, vector in entries
        ]
        body = written(rows, prefix)
    else:
        prefix, body = "", foreign(data.draw, entries)
    quick, slow = scan(body), read(body)
    if quick is None:
        return
    normaliser = Normaliser(Analyzer(policy), prefix, "", policy if prefix else None)
    assert flat(normaliser.records(quick.items)) == flat(normaliser.records(slow.items))


def test_the_usual_page_is_scanned_and_packed() -> None:
    """Neither test above can pass by leaving everything to the slow way."""
    pairs = [
        ("title", "Über R&D"), ("creator", "A"), ("creator", "B"), ("date", "1999-05"), ("type", "text"),
        ("format", "PDF"), ("identifier", "https://www.x.org/a/"), ("language", "ger"),
    ]  # fmt: skip
    entries = [(f"oai:x.org:{n}", n == 2, "a a:b", pairs, None) for n in range(4)]
    body = foreign(lambda strategy: "", entries)
    quick = scan(body)
    assert quick is not None
    assert (quick.token, len(quick.items)) == ("", 4)
    made = Normaliser(Analyzer(Policy())).records(quick.items)
    assert all(isinstance(each, Packed) for each in made)
    assert flat(made) == flat(Normaliser(Analyzer(Policy())).records(read(body).items))


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        (b"<dc:title>", b"<dc:title><!-- -->"),
        (b"Report", b"Rep<b/>ort"),
        (b"Report", b"Report &eacute;"),
        (b"Report", b"Report ]]> "),
        (b"Report", b"Report \x0b"),
        (b"</dc:title>", b"</dc:titel>"),
        (b"<dc:title>", b"<dc:titel>"),
        (b"</metadata>", b"</metadata><about/>"),
        (b"<header>", b"<header status='deleted'>"),
        (b"</oai_dc:dc>", b"<dcterms:abstract>x</dcterms:abstract></oai_dc:dc>"),
        (b"xmlns:dc=", b"xmlns:cd="),
        (b'OAI/2.0/"><resp', b'OAI/1.1/"><resp'),
        (b"<ListRecords>", b'<error code="x"/><ListRecords>'),
        (b"</OAI-PMH>", b""),
        (b"utf-8", b"latin1"),
    ],
)
def test_what_is_unusual_is_left_to_the_tolerant_reader(said: bytes, instead: bytes) -> None:
    body = foreign(lambda _: "", [("oai:x.org:1", False, "", [("title", "Report")], None)])
    assert scan(body) is not None
    assert said in body
    assert scan(body.replace(said, instead, 1)) is None


@pytest.mark.parametrize(
    ("tail", "token"),
    [
        (b'<resumptionToken cursor="0"> a&amp;b </resumptionToken>\n</ListRecords></OAI-PMH>\n', "a&b"),
        (b"<resumptionToken/></ListRecords></OAI-PMH>", ""),
        (b"<resumptionToken></resumptionToken></ListRecords></OAI-PMH>", ""),
        (b"</ListRecords></OAI-PMH>", ""),
        (b"<resumptionToken>a</resumptionToken></ListRecords></OAI-PM", ""),
        (b"<resumptionToken>a</resumptionToken><record/></ListRecords></OAI-PMH>", ""),
    ],
)
def test_the_token_at_the_end_of_a_page(tail: bytes, token: str) -> None:
    assert last_token(b"<x/>" * 5000 + tail) == token
