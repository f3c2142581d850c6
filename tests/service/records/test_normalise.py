"""Normalising: metadata in one form, vectors under our policy, one key for one resource."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from indlet.errors import BadResponse
from indlet.model import TermVector
from indlet.oai.names import FT_NAMESPACE
from indlet.oai.read import Item, read
from indlet.service.records.normalise import Normaliser, cleaned, resource_key
from indlet.store import Store
from indlet.text import Analyzer, Policy

DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"'


@pytest.mark.parametrize(
    ("element", "value", "meant"),
    [
        ("title", "  Two\n  lines ", "Two lines"),
        ("title", "soft\u00adhyphen", "softhyphen"),
        ("date", "20010203", "2001-02-03"),
        ("date", "May 5, 1998", "1998-05-05"),
        ("date", "no date", "no date"),
        ("language", "eng", "en"),
        ("language", "German", "de"),
        ("language", "en-US", "en"),
        ("language", "Klingonish tongue", "Klingonish tongue"),
        ("type", "text", "Text"),
        ("type", "http://purl.org/dc/dcmitype/StillImage", "StillImage"),
        ("type", "Still Image", "StillImage"),
        ("type", "info:eu-repo/semantics/article", "info:eu-repo/semantics/article"),
        ("format", "PDF", "application/pdf"),
        ("format", "Text/HTML; charset=utf-8", "text/html"),
        ("format", "12 pages", "12 pages"),
    ],
)
def test_values_in_one_form(element: str, value: str, meant: str) -> None:
    assert cleaned([(element, value)]) == {element: [meant]}


def test_order_repetition_and_emptiness() -> None:
    pairs = [("date", "2001"), ("title", "A"), ("title", " A "), ("creator", ""), ("nonsense", "x")]
    assert cleaned(pairs) == {"title": ["A"], "date": ["2001"]}
    assert list(cleaned(pairs)) == ["title", "date"]


@pytest.mark.parametrize(
    ("identifiers", "key"),
    [
        ([], "oai:x:1"),
        (["https://www.example.org/a/b/"], "http://example.org/a/b"),
        (["http://example.org:8080/a?x=1#part"], "http://example.org:8080/a?x=1#part"),
        (["local 17", "http://example.org/a"], "http://example.org/a"),
        (["https://doi.org/10.1000/ABC.1"], "doi:10.1000/abc.1"),
        (["http://example.org/a", "doi:10.1000/abc.1."], "doi:10.1000/abc.1"),
        (["http://[bad"], "http://[bad"),
        (["https://www.example.org/", "http://example.org/a"], "oai:x:1"),
        (["http://example.org:8080//"], "oai:x:1"),
        (["http://example.org/?id=7"], "http://example.org/?id=7"),
    ],
)
def test_one_key_for_one_resource(identifiers: list[str], key: str) -> None:
    assert resource_key("oai:x:1", {"identifier": identifiers}) == key


def listed(*records: str) -> list[Item]:
    """The items of a list of records: what each has beside its header."""
    header = "<header><identifier>oai:x:1</identifier><datestamp>2024-01-01</datestamp></header>"
    inner = "".join(f"<record>{header}{record}</record>" for record in records)
    page = read(f"<OAI-PMH xmlns='{FT_NAMESPACE}'><ListRecords>{inner}</ListRecords></OAI-PMH>".encode())
    if page.problems:
        raise BadResponse(page.problems[0].reason)
    return page.items


def item(inner: str, more: str = "") -> Item:
    return listed(f"<metadata><dc {DC}>{inner}</dc></metadata>{more}")[0]


def test_a_plain_record_is_searched_by_its_description(tmp_path: Path) -> None:
    analyzer = Analyzer(Policy())
    made = Normaliser(analyzer).record(
        item(
            "<dc:title>On the flutter of wings</dc:title>"
            "<dcterms:abstract>Heated wings flutter.</dcterms:abstract>"
            "<dc:creator>Garrick</dc:creator><dc:identifier>http://x.org/1</dc:identifier>"
            "<dc:format>application/pdf</dc:format><dc:language>English</dc:language>"
        )
    )
    assert made.vector is None  # it follows from the metadata
    with Store.open(tmp_path) as store:
        with store.write() as tx:
            tx.put(tx.origin("source", "x"), [made])
        with store.read() as view:
            (stored,) = view.changes()
    completed = analyzer.completed(stored)
    assert completed.record.vector is not None
    assert completed.record.vector.frequencies() == {"flutter": 2, "wing": 2, "heat": 1, "garrick": 1}
    assert (completed.length, completed.language) == (6, "en")
    assert made.metadata["description"] == ["Heated wings flutter."]
    assert made.properties == {
        "source_datestamp": "2024-01-01",
        "url": "http://x.org/1",
        "media_type": "application/pdf",
    }
    assert etree.fromstring(made.raw).findtext("{*}title") == "On the flutter of wings"


def test_deleted_and_empty_records() -> None:
    normaliser = Normaliser(Analyzer(Policy()))
    gone = normaliser.record(Item("oai:x:1", "", ("a",), True))
    assert (gone.deleted, gone.sets, gone.vector) == (True, ("a",), None)
    with pytest.raises(BadResponse, match="without metadata"):
        normaliser.record(Item("oai:x:1", ""))


def test_an_unknown_policy_is_told_and_its_terms_are_analysed() -> None:
    normaliser = Normaliser(Analyzer(Policy()), "tf_basic", policy=None)
    assert normaliser.reconciliation.kind == "foreign"
    index = (
        '<index><terms xmlns="urn:indlet:tf:1.0" lang="en"><term name="Wings" freq="2"/>'
        '<term name="the" freq="9"/></terms></index>'
    )
    made = normaliser.record(item("<dc:title>x</dc:title>", index))
    assert made.vector is not None
    assert made.vector.frequencies() == {"wing": 2}
    assert made.properties["policy"] == "unknown"


def test_nothing_is_cut() -> None:
    authors = [("creator", f"Author {number}") for number in range(3000)]
    long = "word " * 50_000
    metadata = cleaned([*authors, ("description", long)])
    assert len(metadata["creator"]) == 3000
    assert metadata["description"] == [long.strip()]


MARC = (
    '<record xmlns="http://www.loc.gov/MARC21/slim"><leader>00000cam a2200000 a 4500</leader>'
    '<datafield tag="100" ind1="1" ind2=" "><subfield code="a">Garrick, I. E.,</subfield></datafield>'
    '<datafield tag="245" ind1="1" ind2="0"><subfield code="a">On flutter /</subfield></datafield></record>'
)


def test_a_record_in_marc_is_mapped_and_kept_as_it_came() -> None:
    (marc,) = listed(f"<metadata>{MARC}</metadata>")
    made = Normaliser(Analyzer(Policy())).record(marc)
    assert made.metadata == {"title": ["On flutter"], "creator": ["Garrick, I. E."], "type": ["Text"]}
    assert made.raw == etree.tostring(etree.fromstring(MARC), method="c14n")


def test_a_record_of_which_nothing_can_be_mapped_is_a_failure() -> None:
    (dean,) = listed('<metadata><thesis xmlns="urn:x"><dean>A. B.</dean></thesis></metadata>')
    with pytest.raises(BadResponse, match="nothing of it could be mapped"):
        Normaliser(Analyzer(Policy())).record(dean)


def test_values_within_values_have_a_limit() -> None:
    deep = "<dc:title>" * 200 + "words " * 20_000 + "</dc:title>" * 200
    with pytest.raises(BadResponse, match="bytes would come of one response"):
        item(deep)


def vector_of(prefix: str, inside: str, policy: Policy | None) -> TermVector | None:
    index = f'<index><terms xmlns="urn:indlet:tf:1.0"{inside}</terms></index>'
    normaliser = Normaliser(Analyzer(Policy()), index_prefix=prefix, policy=policy)
    return normaliser.record(item("<dc:title>T</dc:title>", index)).vector


PRUNED = Policy(prune=0.1)


@pytest.mark.parametrize(
    ("prefix", "term", "policy", "lengths"),
    [
        ("tf_basic", '<term name="wing" freq="3"/>', Policy(), (3, 7, 106)),
        ("tf_compact", '<t f="3">wing</t>', Policy(), (3, 7, 106)),
        ("tf_positions", '<term name="wing" freq="2" at="1 9"/>', Policy(), (2, 104)),
        ("tf_boolean", '<term name="wing"/>', Policy(), (1, 5000)),
        ("tf_basic", '<term name="wing" freq="3"/>', PRUNED, (3, 9000)),
        ("tf_basic", '<term name="wing" freq="3"/>', None, (3, 9000)),
        ("tf_basic", '<term name="wing" freq="30000"/>', PRUNED, (30_000,)),
    ],
)
def test_a_length_that_contradicts_its_vector_is_refused(
    prefix: str, term: str, policy: Policy | None, lengths: tuple[int, ...]
) -> None:
    for length in lengths:
        made = vector_of(prefix, f' length="{length}">{term}', policy)
        assert made is not None
        assert made.length == length
    for length in (2**31 - 1, 40_000):
        with pytest.raises(BadResponse, match=f"a length of {length} contradicts its vector"):
            vector_of(prefix, f' length="{length}">{term}', policy)


@pytest.mark.parametrize(
    ("prefix", "form"),
    [("tf_basic", '<term name="w{0}" freq="{1}"/>'), ("tf_compact", '<t f="{1}">w{0}</t>')],
)
def test_frequencies_that_no_document_has_are_refused(prefix: str, form: str) -> None:
    """Consistent or not: the length of one document must not move the average of all."""
    for terms, each, taken in (
        (1, 100_000, True),
        (1, 100_001, False),
        (1, 2**31 - 1, False),
        (20, 10_000, True),
    ):
        index = "".join(form.format(number, each) for number in range(terms))
        stated = f' length="{terms * each}">{index}'
        if taken:
            made = vector_of(prefix, stated, Policy())
            assert made is not None
            assert made.length == terms * each
        else:
            with pytest.raises(BadResponse, match="is not that of a document"):
                vector_of(prefix, stated, Policy())


def test_a_record_whose_length_contradicts_its_vector_fails_alone() -> None:
    index = '<index><terms xmlns="urn:indlet:tf:1.0" length="%d"><t f="1">wing</t></terms></index>'
    metadata = f"<metadata><a {DC}><dc:title>T</dc:title></a></metadata>"
    made = Normaliser(Analyzer(Policy()), "tf_compact", "", Policy()).records(
        listed(*(metadata + index % length for length in (1, 999_999_999)))
    )
    assert [isinstance(one, BadResponse) for one in made] == [False, True]
