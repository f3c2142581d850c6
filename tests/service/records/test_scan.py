"""The scanner gives what the tolerant reader gives, or nothing; and its records are those of the slow way."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from bench.fuzz.seeds import swelling_pages
from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.errors import BadResponse
from indlet.formats import INDEX, dublin
from indlet.formats.metadata import oai_dc
from indlet.kernels import scan as kernels
from indlet.kernels.jit import Kernel
from indlet.kernels.term_hash import SEED
from indlet.kernels.utf8 import is_utf8
from indlet.kernels.vector_check import totals
from indlet.model import DUBLIN_CORE, Packed, TermVector
from indlet.oai import frames
from indlet.oai.read import Item, read
from indlet.service.records import normalise
from indlet.service.records.normalise import Normaliser
from indlet.service.records.page import last_token
from indlet.service.records.scan import scan
from indlet.service.records.tags import TagTable
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


def stored(items: Sequence[Item], prefix: str, policy: Policy | None = None) -> list[Packed | str]:
    """What items are to the store, digest and raw bytes included, or what is wrong with them."""
    rules = policy or Policy()
    normaliser = Normaliser(Analyzer(rules), prefix, "", rules if prefix else None)
    return [
        str(made) if isinstance(made, BadResponse) else packed(made) for made in normaliser.records(items)
    ]


def alike(body: bytes, prefix: str, policy: Policy | None = None, charset: str = "") -> bool:
    """Whether the fast reader agrees with the tolerant one; False if it leaves the page to that one."""
    quick = scan(body, charset)
    if quick is None:
        return False
    slow = read(body, charset)
    assert stored(quick.items, prefix, policy) == stored(slow.items, prefix, policy)
    assert [(i.identifier, i.datestamp, i.about) for i in quick.items] == [
        (i.identifier, i.datestamp, i.about) for i in slow.items
    ]
    assert not slow.problems
    assert not slow.errors
    for name in ("response_date", "verb", "token", "size", "cursor", "extended", "repairs"):
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
        assert quick.items[0].vector == vector


@pytest.mark.parametrize(
    "odd",
    ["&amp;", "&#13;", "<b>c</b>", "  ", " \n\t ", "\u00a0", "é", "ш", "𝔞", "\x7f", "\ufffd",
     "<![CDATA[<&>]]>", "<!-- no -->", '"', "\\", "\\376\\377", "þÿ", ""],
)  # fmt: skip
def test_what_is_odd_may_stand_anywhere_in_a_value(odd: str) -> None:
    """Text is copied eight bytes at a time, so each place within a word and at its borders is tried."""
    said = [
        f"<dc:title>{'abcdefghijklmnopqrst'[:before]}{odd}{'uvwxyzABCDE'[:after]}</dc:title>"
        for before in range(18)
        for after in (0, 1, 7, 8, 9)
    ]
    plain = written([("oai:x.org:1", False, "", {"title": ["@"]}, None)], "tf_compact")
    page = plain.replace(b"<dc:title>@</dc:title>", "".join(said).encode())
    # A title that begins with a mark of PDF is the tolerant reader's.
    assert alike(page, "tf_compact") is not odd.startswith(("\\376", "þÿ"))
    assert alike(page.replace(b"dc:title>", b"dc:creator>"), "tf_compact")


def test_both_readers_agree_on_the_order_of_tags() -> None:
    """The kernel guesses that a tag comes after the one that it came after before."""
    names = ["title", "creator", "creator", "date", "title", "type", "creator", "title"]
    for turn in range(len(names)):
        some = "".join(f"<dc:{name}>{i}</dc:{name}><dc:{name}/>" for i, name in enumerate(names[turn:]))
        plain = written([("oai:x.org:1", False, "a", {"title": ["@"]}, None)] * 2, "tf_compact")
        assert alike(plain.replace(b"<dc:title>@</dc:title>", some.encode(), 1 + turn % 2), "tf_compact")


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
    if sound.problems:
        assert scan(bytes(body)) is None
    else:
        alike(bytes(body), prefix)


@pytest.mark.parametrize("behind", [b"<!-- -->", b"garbage"])
def test_what_comes_behind_a_damaged_page_is_counted_either_way(behind: bytes) -> None:
    page = written([("oai:x.org:1", False, "", {"title": ["@"]}, None)], "tf_compact")
    assert alike(page.replace(b"@", b"a \x01 b & c"), "tf_compact")
    assert not alike(page.replace(b"@", b"a \x01 b & c") + behind, "tf_compact")


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


def test_words_that_are_made_to_meet_in_the_table_cost_little() -> None:
    """A look for each would take the square of their number: the vector is left to the tolerant reader."""
    letters, hashed = np.arange(97, 123, dtype=np.uint64), np.zeros(1, np.uint64)
    for place in range(4):
        hashed = (hashed[:, None] | letters << np.uint64(8 * place)).ravel()
    # As `spelling` has it for four bytes; nobody outside knows the seed.
    hashed = (hashed ^ np.uint64(SEED)) * np.uint64(0x9E3779B97F4A7C15)
    hashed = (hashed ^ hashed >> np.uint64(32)) * np.uint64(0xD6E8FEB86659FD93)
    hashed = (hashed ^ hashed >> np.uint64(29) ^ np.uint64(4)) * np.uint64(0xBF58476D1CE4E5B9)
    hashed ^= hashed >> np.uint64(32)
    numbers = np.flatnonzero(hashed & np.uint64(1023) == 7)[:200].tolist()
    meeting = [bytes(97 + number // 26**place % 26 for place in (3, 2, 1, 0)) for number in numbers]
    others = [b"%04d" % number for number in range(200)]
    made = [b"1 " + b" ".join(words) for words in (meeting, others)]
    assert [total(vector) for vector in made] == [200, 200]
    ends = np.cumsum([len(vector) for vector in made])
    assert totals(np.frombuffer(b"".join(made), np.uint8), ends).tolist() == [-1, 200]


# Bytes that are UTF-8, or nearly


def decodable(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


edges = st.sampled_from([
    b"\xc0\x80", b"\xc1\xbf", b"\xc2\x80", b"\xdf\xbf", b"\xe0\x9f\xbf", b"\xe0\xa0\x80", b"\xec\xbf\xbf",
    b"\xed\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xee\x80\x80", b"\xef\xbf\xbf", b"\xf0\x8f\xbf\xbf",
    b"\xf0\x90\x80\x80", b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\x80",
    b"\xff", b"\xe2\x82", b"\xf0\x9f\x98", b"plain ASCII, more than eight",
])  # fmt: skip


@given(
    st.lists(edges | st.binary(max_size=4) | st.text(max_size=9).map(lambda t: t.encode("utf-8", "replace")))
)
def test_what_is_utf8_is_told_as_by_python(parts: list[bytes]) -> None:
    data = b"".join(parts)
    assert is_utf8(np.frombuffer(data, np.uint8)) == decodable(data)


def test_every_beginning_of_a_character_is_told_as_by_python() -> None:
    for first in range(0x80, 0x100):
        for second in range(0x100):
            for rest in (b"", b"\x80", b"\xbf\x80", b"a", b"\x80\xc0"):
                data = bytes([97, first, second]) + rest
                assert is_utf8(np.frombuffer(data, np.uint8)) == decodable(data), data


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
    assert alike(body, prefix, policy) or not entries


# Pages as anybody may write them

PREFIXES = st.sampled_from(["", "oai:", "o-1:"])
REFERENCES = {
    "&": ["&amp;", "&#38;"],
    "<": ["&lt;", "&#x3c;"],
    ">": ["&gt;", "&#62;"],
    "ü": ["ü", "&#252;", "&#xFC;"],
}
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


BETWEEN = ["<!-- <a> & -->", "<![CDATA[<b> & ] ]]>", "\r\n", "&#13;", "\r", "]]", "]]&gt;", "]]&#62;"]


@st.composite
def spelt(draw: st.DrawFn, text: st.SearchStrategy[str]) -> str:
    """A text, its characters written in one of the ways that XML has, comments and CDATA sections in it."""
    out = []
    for character in draw(text):
        ways = REFERENCES.get(character, [character, character, character, f"&#{ord(character)};"])
        out.append(draw(st.sampled_from(ways)))
        if draw(st.integers(0, 15)) == 0:
            out.append(
                draw(st.sampled_from(["<!-- <a> & -->", "<![CDATA[<b> & ] ]]>", "\r\n", "&#13;", "\r"]))
            )
    return "".join(out).replace("]]>", "]]&gt;") if "CDATA" not in "".join(out) else "".join(out)


@st.composite
def pages(draw: st.DrawFn) -> bytes:
    characters = st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters=CONTROLS)
    said = spelt(st.text(characters | st.sampled_from("ab <>&ü\u00a0\u200b\u00ad\t"), max_size=12))
    o = draw(PREFIXES)
    scope = draw(st.sampled_from(['xmlns:dc="http://purl.org/dc/elements/1.1/"', 'xmlns:dc="urn:dc"']))
    root = f'xmlns{":" + o[:-1] if o else ""}="http://www.openarchives.org/OAI/2.0/" {scope}'
    out = []
    for number in range(draw(st.integers(1, 4))):
        gap, quote = draw(SPACES), draw(st.sampled_from("'\""))
        gone = draw(st.integers(0, 4)) == 0
        status = f" status = {quote}deleted{quote}" if gone else ""
        head = (
            f"{gap}<{o}identifier>{draw(said)}{number}</{o}identifier >{gap}<{o}datestamp>2024</{o}datestamp>"
        )
        for spec in draw(st.lists(st.sampled_from(["a", " a:b ", "&#99;", "", "<![CDATA[d]]>"]), max_size=3)):
            head += f"<{o}setSpec>{spec}</{o}setSpec>{gap}"
        part = draw(st.sampled_from(PARTS))
        part = part.format(draw(said), draw(said)) if part.count("{}") == 2 else part.format(draw(said))
        body = f"<{o}metadata>{gap}{part}{gap}</{o}metadata>" if not gone or draw(st.booleans()) else ""
        about = "".join(
            f'<{o}about{draw(SPACES)}><p xmlns="urn:p" a={quote}{number}{quote}>{draw(said)}</p></{o}about>'
            for _ in range(draw(st.integers(0, 2)))
        )
        other = draw(st.sampled_from(["", "<other><a b='c'/></other>", "text"]))
        out.append(f"<{o}record><{o}header{status}>{head}</{o}header>{body}{about}{other}</{o}record>{gap}")
    return (
        f"<{o}OAI-PMH {root}><{o}responseDate>2024-01-01T00:00:00Z</{o}responseDate><{o}ListRecords>"
        f"{''.join(out)}</{o}ListRecords></{o}OAI-PMH>"
    ).encode()


CONTROLS = "".join(map(chr, [*range(32), 127])) + "\ufffe\uffff"


@settings(max_examples=400, deadline=None)
@given(pages())
def test_any_well_formed_page_is_read_fast_and_means_the_same(body: bytes) -> None:
    assert alike(body, "")


def test_moments_become_days_either_way() -> None:
    said = (
        "2014-03-05", "2014-03-05T", "2014-03-05T10:00:00Z", "2014-03-05Tnoon", "2014-13-05T10:00:00Z",
        "2014-03-00T00:00:00Z", "0000-03-05T10:00:00Z", "2014/03/05T10:00Z", "12345678901T", "2014-3-5T1",
    )  # fmt: skip
    assert alike(foreign(lambda _: "", [("oai:x.org:1", False, "", [("date", d) for d in said], None)]), "")


DATED = st.from_regex(r"[0-9]{3,5}([-/.][0-9]{1,3}){0,3}[TZ ]?[0-9:Z]{0,3}", fullmatch=True)
SIZED = st.from_regex(
    r"[0-9]{0,2} ?(bytes|PDF|pdf|text/html|Text/Plain; a|application/[0-9])", fullmatch=True
)
FORMED = st.tuples(
    st.sampled_from(["date", "format", "language", "type"]),
    DATED
    | SIZED
    | st.text("0123456789-T .:/\u0664", max_size=12)
    | st.sampled_from(["en_US", "ENG", "Text"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(FORMED, max_size=8), min_size=1, max_size=3))
def test_values_have_one_form_either_way(said: list[list[tuple[str, str]]]) -> None:
    entries = [(f"oai:x.org:{i}", False, "", pairs, None) for i, pairs in enumerate(said)]
    assert alike(foreign(lambda _: "", entries), "")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(st.sampled_from(
    ["<setSpec>a</setSpec>", "<setSpec>a:b</setSpec>", "<setSpec>a:b</setSpec ><!-- <setSpec>c</setSpec> -->",
     "<o:setSpec xmlns:o='urn:o'>a</o:setSpec>", "<setSpec/>", "<other><setSpec>d</setSpec></other>", " ",
     "<setSpec>a<!-- </setSpec><setSpec> -->b</setSpec>", "<setSpec><![CDATA[a</setSpec>]]></setSpec>"]
), max_size=4), min_size=1, max_size=4))  # fmt: skip
def test_sets_that_come_again_are_the_same(said: list[list[str]]) -> None:
    """They are looked up by all that stands between the first and the last."""
    entries = [(f"oai:x.org:{i}", False, f"mark{i}", [("title", "x")], None) for i in range(len(said))]
    page = foreign(lambda _: "", entries)
    for i, sets in enumerate(said):
        page = page.replace(b"<setSpec>mark%d</setSpec>" % i, "".join(sets).encode())
    for _ in range(2):
        assert alike(page, "")
    quick = scan(page)
    assert quick is not None
    assert [item.sets for item in quick.items] == [item.sets for item in read(page).items]


ENDS = st.sampled_from(
    ["", "/", "//", "/a", "/A/b/", "/ü", "?b", "#c", "/a?b", ":80/a", "/10.1234/x", "/10.pdf"]
)
HOSTS = st.sampled_from(
    ["x.org", "www.x.org", "www.", "X.org", "doi.org", "dx.doi.org", "a_b.org", "", "ü.org"]
)
SITES = st.builds("{}://{}{}".format, st.sampled_from(["http", "https", "HTTP", "ftp"]), HOSTS, ENDS)
DOIS = st.builds(
    "{}{}10.{}{}{}{}".format,
    st.sampled_from(
        ["", "doi:", "DOI: ", "doi:  ", "x", "http://doi.org/", "https://dx.doi.org/", "see doi:"]
    ),
    st.sampled_from(["", "", "1", " "]),
    st.sampled_from(["1234", "123", "123456789", "1234567890", "12a4", "1234.5"]),
    st.sampled_from(["/", "/", "", "//"]),
    st.sampled_from(["AbC", "", " b", ".", "a.,;\"'", "ü", "a b", 'q"\\', "x" * 990, "doi:10.4321/y"]),
    st.sampled_from(["", ".", " doi:10.5555/z", "10.5555/z"]),
)
NAMED = st.lists(
    st.tuples(st.sampled_from(["identifier", "identifier", "format"]), SITES | DOIS | values), max_size=5
)
OAI = st.sampled_from(
    ["oai:x.org:1", "oai:x.org:a&b", "ü", "a ü", " a", "x" * 1001, "10.1234/x", "a\tb", '"']
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(OAI, NAMED), min_size=1, max_size=3), st.sampled_from(["2024-01-01", "", '"', "a&b"])
)
def test_resources_are_the_same_either_way(said: list[tuple[str, list[tuple[str, str]]]], date: str) -> None:
    entries = [(identifier, False, "", pairs, None) for identifier, pairs in said]
    body = foreign(lambda _: "", entries)
    alike(body.replace(b"<datestamp>2024-01-01<", f"<datestamp>{escaped(date)}<".encode()), "")


# What is repaired, and then read fast.
REPAIRED = [
    (b"Report", b"Report &eacute;"),
    (b"Report", b"Report & Sons, AT&T; a < b"),
    (b"Report", b"Report ]]> "),
    (b"Report", b"Report \x0b"),
    (b"Report", b"Report &#11;"),
    (b"Report", b"<!-- -- -->Report"),
    (b"Report", b"<a:b/>Report"),
    (b"xmlns:dc=", b"xmlns:cd="),
]
# What the fast reader leaves to the tolerant one; docs/harvest.md lists the same
LEFT = [
    (b"Report", b"Report <?php ?>"),
    (b"Report", b"Report & <?php ?>"),
    (b"Report", b"<?a '?><dc:date>1950</dc:date>'/>Report"),
    (b"Report", b"<dc:a b='1' b='2'/>Report"),
    (b"Report", b"<a xmlns='relative'/>Report"),
    (b"Report", b"<a xmlns='http://x?a&amp;b'/>Report"),
    (b"Report", b"<a>" * 120 + b"</a>" * 120 + b"Report"),
    (b"</dc:title>", b"</dc:titel>"),
    (b"<header>", b'<header status="Deleted">'),
    (b"<header>", b"<header/><header>"),
    (b"<identifier>", b"<identifier/><identifier>"),
    (b"<identifier>", b"<identifier><b/>"),
    (b"<record>", b'<record status="deleted">'),
    (b"<record>", b"<header/><record>"),
    (b"</metadata>", b"</metadata><metadata><a/></metadata>"),
    (b"<metadata>", b"<metadata><a/>"),
    (b"</header>", b"</header><metadata/>"),
    (b'OAI/2.0/"><resp', b'OAI/1.1/"><resp'),
    (b"<ListRecords>", b'<error code="x"/><ListRecords>'),
    (b"</OAI-PMH>", b""),
    (b"</OAI-PMH>", b"</OAI-\x01PMH>"),
    (b"?>", b"?><!DOCTYPE OAI-PMH>"),
    (b'encoding="utf-8', b'e\x01ncoding="U<TF-8'),
]


@pytest.mark.parametrize(("said", "instead"), REPAIRED)
def test_text_that_is_not_well_formed_is_repaired_and_read_fast(said: bytes, instead: bytes) -> None:
    body = foreign(lambda _: "", [("oai:x.org:1", False, "", [("title", "Report")], None)])
    assert said in body
    damaged = body.replace(said, instead, 1)
    assert read(damaged).repairs
    assert alike(damaged, "")


@pytest.mark.parametrize(("said", "instead"), LEFT)
def test_what_needs_other_repairs_is_left_to_the_tolerant_reader(said: bytes, instead: bytes) -> None:
    body = foreign(lambda _: "", [("oai:x.org:1", False, "", [("title", "Report")], None)])
    assert alike(body, "")
    assert said in body
    assert scan(body.replace(said, instead, 1)) is None


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig", "cp1251"])
def test_other_encodings_are_read_fast(encoding: str) -> None:
    body = foreign(lambda _: "", [("oai:x.org:1", False, "", [("title", "Bericht")], None)]).decode()
    for charset, name in ((encoding, "utf-8"), ("", encoding)):
        page = body.replace("utf-8", name).encode(encoding)
        assert alike(page, "", charset=charset)


def test_a_page_of_tags_that_never_come_back_is_left_to_the_tolerant_reader() -> None:
    pairs = [("title", f'x"></dc:title><dc:title xml:lang="{n}') for n in range(3000)]
    inside = "".join(f'<dc:title id="{n}">x</dc:title>' for n, _ in enumerate(pairs))
    body = foreign(lambda _: "", [("oai:x.org:1", False, "", [("title", "@")], None)])
    assert scan(body.replace(b"<dc:title>@</dc:title>", inside.encode())) is None
    assert alike(body, "")


def test_ampersands_in_cdata_have_room_after_long_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte becomes five, where what came before has taken all that is to spare. Python runs the kernels
    here, for it tells of every place outside of an array.
    """
    monkeypatch.setattr(Kernel, "__call__", Kernel.by_python)
    body = foreign(lambda _: "", [(f"oai:x.org:{n}", False, "", [("title", "@")], None) for n in range(6)])
    body = re.sub(rb"<oai_dc:dc.*?</oai_dc:dc>", b"<m:a>@</m:a>", body, flags=re.DOTALL)
    body = body.replace(b"<ListRecords", b'<ListRecords xmlns:m="urn:%b"' % (b"x" * 2000))
    before, _, after = body.rpartition(b"@")
    for size in (1, 1000, 9000):
        assert alike(b"%b<![CDATA[%b]]>%b" % (before, b"&" * size, after), "")


def test_a_page_of_marc_says_the_same_either_way() -> None:
    marc = (
        b'<record xmlns="http://www.loc.gov/MARC21/slim"><leader>00000cam a2200000 a 4500</leader>'
        b'<datafield tag="245" ind1="1" ind2="0"><subfield code="a">On flutter /</subfield>'
        b"</datafield></record>"
    )
    body = foreign(lambda _: "", [(f"oai:x.org:{n}", False, "", [("title", "@")], None) for n in range(3)])
    body = re.sub(rb"<oai_dc:dc.*?</oai_dc:dc>", marc, body, flags=re.DOTALL)
    assert alike(body, "")
    for row in stored(read(body).items, ""):
        assert isinstance(row, Packed)
        assert b'"title":["On flutter"]' in row.metadata


@pytest.mark.parametrize("table", ["_MEDIA", "_DCMI_TYPES"])
def test_a_new_alias_holds_for_both_readers(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table of the plain way is written down again for the kernels."""
    monkeypatch.setitem(getattr(normalise, table), "vnd.new", "application/new")
    monkeypatch.setitem(dublin._REFINED, "headline", "title")
    remembered = {"format": f"vnd.new ; {table}", "type": "vnd.new"}
    pairs = [("title", "x"), *remembered.items()]
    body = foreign(lambda _: "", [("oai:x.org:1", False, "", pairs, None)]).replace(
        b"dc:title", b"dc:headline"
    )
    assert alike(body, "")
    (row,) = stored(read(body).items, "")
    assert isinstance(row, Packed)
    assert b'"title":["x"]' in row.metadata


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


@pytest.mark.parametrize("body", swelling_pages(2000)[:3])
def test_what_is_written_of_a_page_may_be_longer_than_the_page(body: bytes) -> None:
    """Forms that are longer than their values, in every record, and datestamps of nothing but escapes."""
    assert alike(body, "")


def test_tags_that_are_made_to_meet_in_the_table_are_left_to_the_tolerant_reader() -> None:
    table = TagTable()
    table.begin({})
    for number in range(100):
        assert table.learn(b"a%d" % number, 0, 5)
    page = np.frombuffer(b"a1 a99 ", np.uint8)
    padded = np.concatenate((page, np.zeros(16, np.uint8)))
    assert kernels._find(table.tags, padded, 0, 2, 0, 5) == 1
    assert kernels._find(table.tags, padded, 3, 6, 0, 5) == -2
    assert kernels.tag_hash(padded, 0, 2, 0, table.seed) != kernels.tag_hash(padded, 0, 2, 0, TagTable().seed)
