"""Every verb, every error, on both endpoints: what is answered, and that it is valid."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest
from lxml import etree

from indlet.formats import INDEX, bundle
from indlet.formats.index.terms import TERMS
from indlet.formats.metadata import oai_dc
from indlet.model import Record, TermVector
from indlet.oai.answers import identity, index_formats
from indlet.oai.identifier import identifier
from indlet.oai.names import FT_NAMESPACE, OAI_NAMESPACE
from indlet.oai.read import read

Provider = Any  # of conftest.py
Check = Callable[[bytes], None]

ONE = "oai:x.org:papers/0001%20a"
GONE = "oai:x.org:papers/0003%20a"

# What is asked, and which errors it gets, in order, at /oai.
REQUESTS: list[tuple[str, list[str]]] = [
    ("verb=Identify", []),
    ("verb=ListMetadataFormats", []),
    (f"verb=ListMetadataFormats&identifier={ONE.replace('%', '%25')}", []),
    ("verb=ListSets", []),
    ("verb=ListRecords&metadataPrefix=oai_dc", []),
    ("verb=ListRecords&metadataPrefix=oai_dc&set=papers:a", []),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=2023-11-14&until=2023-11-14", []),
    ("verb=ListRecords&metadataPrefix=oai_dc_tf", []),
    ("verb=ListRecords&metadataPrefix=oai_dc_tf_basic", []),
    ("verb=ListRecords&metadataPrefix=oai_dc_tf_boolean", []),
    ("verb=ListRecords&metadataPrefix=oai_dc_tf_positions", []),
    ("verb=ListIdentifiers&metadataPrefix=oai_dc", []),
    (f"verb=GetRecord&metadataPrefix=oai_dc&identifier={ONE.replace('%', '%25')}", []),
    (f"verb=GetRecord&metadataPrefix=oai_dc&identifier={GONE.replace('%', '%25')}", []),
    ("", ["badVerb"]),
    ("verb=", ["badVerb"]),
    ("verb=listrecords", ["badVerb"]),
    ("verb=Identify&verb=Identify", ["badVerb"]),
    ("verb=Nonsense&metadataPrefix=%00%01", ["badVerb"]),
    ("verb=Identify&set=papers", ["badArgument"]),
    ("verb=Identify&%3Cx%3E=1", ["badArgument"]),
    ("verb=ListRecords", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&metadataPrefix=oai_dc", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai%20dc", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=yesterday", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=2023-02-30", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=2023", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=2023-01-01T00:00Z", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=2023-01-01T00:00:00.5Z", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=2023-01-01T00:00:00%2B01:00", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=2023-01-01&until=2023-01-01T00:00:00Z", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=2023-01-02&until=2023-01-01", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&set=a%20b", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&set=", ["badArgument"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&resumptionToken=x", ["badArgument"]),
    ("verb=ListRecords&from=x&until=y&color=blue", ["badArgument"] * 4),
    ("verb=GetRecord&identifier=a", ["badArgument"]),
    ("verb=GetRecord&metadataPrefix=oai_dc", ["badArgument"]),
    ("verb=GetRecord&metadataPrefix=oai_dc&identifier=a%20b", ["badArgument"]),
    ("verb=GetRecord&metadataPrefix=oai_dc&identifier=a%25zz", ["badArgument"]),
    ("verb=GetRecord&metadataPrefix=oai_dc&identifier=", ["badArgument"]),
    ("verb=ListRecords&resumptionToken=", ["badResumptionToken"]),
    ("verb=ListRecords&resumptionToken=no%00pe%22%3C", ["badResumptionToken"]),
    ("verb=ListSets&resumptionToken=x", ["badResumptionToken"]),
    ("verb=ListIdentifiers&resumptionToken=AAAA", ["badResumptionToken"]),
    ("verb=ListRecords&metadataPrefix=etdms", ["cannotDisseminateFormat"]),
    ("verb=ListIdentifiers&metadataPrefix=etdms", ["cannotDisseminateFormat"]),
    ("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x.org:none", ["idDoesNotExist"]),
    (
        "verb=GetRecord&metadataPrefix=x&identifier=oai:x.org:%C3%A4",
        ["idDoesNotExist", "cannotDisseminateFormat"],
    ),
    ("verb=ListMetadataFormats&identifier=none", ["idDoesNotExist"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&set=nowhere", ["noRecordsMatch"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=2090-01-01", ["noRecordsMatch"]),
    ("verb=ListIdentifiers&metadataPrefix=oai_dc&until=1990-01-01", ["noRecordsMatch"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=0001-01-01&until=9999-12-31", []),
]
PLAIN_ONLY = [
    ("verb=ListIndexFormats", ["badVerb"]),
    ("verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_basic", ["badArgument"]),
]
EXTENDED_ONLY = [
    ("verb=ListIndexFormats", []),
    (f"verb=ListIndexFormats&identifier={ONE.replace('%', '%25')}", []),
    (f"verb=ListIndexFormats&identifier={GONE.replace('%', '%25')}", []),
    ("verb=ListIndexFormats&identifier=none", ["idDoesNotExist"]),
    ("verb=ListIndexFormats&metadataPrefix=oai_dc", ["badArgument"]),
    ("verb=ListIndexFormats&identifier=a&identifier=b", ["badArgument"]),
    *((f"verb=ListRecords&metadataPrefix=oai_dc&indexPrefix={prefix}", []) for prefix in INDEX),
    ("verb=ListIdentifiers&metadataPrefix=oai_dc&indexPrefix=tf_basic", []),
    (f"verb=GetRecord&metadataPrefix=oai_dc&indexPrefix=tf_compact&identifier={ONE.replace('%', '%25')}", []),
    (
        f"verb=GetRecord&metadataPrefix=oai_dc&indexPrefix=tf_compact&identifier={GONE.replace('%', '%25')}",
        [],
    ),
    ("verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_none", ["cannotDisseminateFormat"]),
    ("verb=ListIdentifiers&metadataPrefix=oai_dc&indexPrefix=tf_none", ["cannotDisseminateFormat"]),
    ("verb=ListRecords&metadataPrefix=x&indexPrefix=y", ["cannotDisseminateFormat"] * 2),
    ("verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=a%20b", ["badArgument"]),
    ("verb=ListRecords&indexPrefix=tf_basic", ["badArgument"]),
    ("verb=ListSets&indexPrefix=tf_basic", ["badArgument"]),
]


@pytest.fixture
def whole(filled: Provider) -> Provider:
    """The filled provider, with positions offered."""
    analysis = replace(filled.settings.analysis, positions=True)
    filled.configure(replace(filled.settings, analysis=analysis))
    return filled


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [("/oai", *case) for case in REQUESTS + PLAIN_ONLY]
    + [("/ft-oai", *case) for case in REQUESTS + EXTENDED_ONLY],
)
def test_every_request_gets_its_answer_and_the_answer_is_valid(
    whole: Provider, valid: Check, path: str, query: str, expected: list[str]
) -> None:
    answer = whole.fetch(f"{path}?{query}")
    assert answer.startswith(b'<?xml version="1.0" encoding="UTF-8"?>')
    valid(answer)
    root = etree.fromstring(answer)
    assert whole.codes(root) == expected
    request = root.find("{*}request")
    assert request is not None
    assert request.text == f"http://x.org{path}"
    if {"badVerb", "badArgument"} & set(expected):
        assert not request.attrib
    else:
        # The element repeats what was asked, but for what XML cannot hold.
        given = {k: v.replace("\0", "") for k, v in parse_qsl(query, keep_blank_values=True)}
        assert {str(k): str(v) for k, v in request.attrib.items()} == given


@pytest.mark.parametrize("path", ["/oai", "/ft-oai"])
@pytest.mark.parametrize("verb", ["ListRecords", "ListIdentifiers", "ListSets"])
def test_every_page_of_a_list_is_valid_and_tells_its_place(
    whole: Provider, valid: Check, path: str, verb: str
) -> None:
    for spec in "cdefgh":
        whole.put([whole.record(100 + ord(spec), (f"papers:{spec}",))])
    query = f"{path}?verb={verb}" + ("" if verb == "ListSets" else "&metadataPrefix=oai_dc")
    cursors, sizes, count = [], set(), 0
    while True:
        answer = whole.fetch(query)
        valid(answer)
        root = etree.fromstring(answer)
        token = root.find(".//{*}resumptionToken")
        assert token is not None
        cursors.append((int(token.get("cursor", "-1")), count))
        sizes.add(token.get("completeListSize"))
        count += len(root.findall(f".//{{*}}{'setSpec' if verb == 'ListSets' else 'datestamp'}"))
        assert (token.get("expirationDate") is None) == (not token.text)
        if not token.text:
            break
        assert re.fullmatch(r"[A-Za-z0-9_-]+", token.text)
        query = f"{path}?verb={verb}&resumptionToken={token.text}"
    assert all(told == true for told, true in cursors)
    assert len(cursors) > 2
    assert sizes == {str(count)}
    assert count == (9 if verb == "ListSets" else 31)


def test_post_is_the_same_as_get(filled: Provider) -> None:
    form = {"verb": "ListRecords", "metadataPrefix": "oai_dc", "set": "papers:b"}
    posted = filled.client.post("/oai", data=form)
    assert posted.content == filled.client.get("/oai", params=form).content
    assert b"<ListRecords>" in posted.content
    token = filled.found(etree.fromstring(posted.content), "resumptionToken")[0]
    second = filled.client.post("/oai", data={"verb": "ListRecords", "resumptionToken": token})
    assert len(filled.found(etree.fromstring(second.content), "identifier")) == 5


@pytest.mark.parametrize("path", ["a b+c/ä&100%.txt", "(1)/x,y"])
@pytest.mark.parametrize("key", ["", "12/7 ü"])
def test_an_identifier_sent_as_it_stands_is_understood(
    filled: Provider, valid: Check, path: str, key: str
) -> None:
    name = identifier("x.org", "papers", path, key)
    filled.put([replace(filled.record(1), identifier=name)])
    for sent in (name, quote(name, safe="")):
        answer = filled.fetch(f"/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier={sent}")
        valid(answer)
        root = etree.fromstring(answer)
        assert filled.found(root, "identifier") == [name]
        request = root.find("{*}request")
        assert request is not None
        assert request.get("identifier") == name


def test_deleted_records_are_headers_alone_in_every_format(filled: Provider) -> None:
    for prefix in ("oai_dc", "oai_dc_tf", "oai_dc_tf_basic"):
        root = filled.ask(
            "/ft-oai", verb="GetRecord", metadataPrefix=prefix, indexPrefix="tf_basic", identifier=GONE
        )
        (record,) = root.iter(f"{{{FT_NAMESPACE}}}record")
        assert [etree.QName(child).localname for child in record] == ["header"]
        assert record[0].get("status") == "deleted"
        assert filled.found(root, "datestamp") == ["2023-11-14T22:16:40Z"]
        assert filled.found(root, "setSpec") == ["papers:a"]


def test_a_set_holds_the_sets_below_it(filled: Provider) -> None:
    def count(spec: str) -> int:
        return len(filled.listed(verb="ListIdentifiers", metadataPrefix="oai_dc", set=spec))

    assert (count("papers"), count("papers:a"), count("papers:b")) == (25, 10, 15)


@pytest.mark.parametrize(
    ("window", "count"),
    [
        ({"from_": "2023-11-14T22:13:20Z", "until": "2023-11-14T22:13:20Z"}, 9),
        ({"from_": "2023-11-14T22:13:21Z"}, 16),
        ({"until": "2023-11-14T22:15:00Z"}, 23),
        ({"from_": "2023-11-14T22:16:40Z"}, 2),
        ({"until": "2023-11-14"}, 25),
        ({"from_": "2023-11-14", "until": "2023-11-14"}, 25),
        ({"from_": "2023-11-14T22:15:00Z", "until": "2023-11-14T22:15:00Z", "set": "papers:b"}, 14),
    ],
)
def test_both_ends_of_a_window_belong_to_it(filled: Provider, window: dict[str, str], count: int) -> None:
    assert len(filled.listed(verb="ListRecords", metadataPrefix="oai_dc", **window)) == count


def test_the_extension_without_its_argument_says_the_same(filled: Provider) -> None:
    for query in ("verb=ListSets", "verb=ListRecords&metadataPrefix=oai_dc&set=papers:a", "verb=Identify"):
        plain, extended = filled.fetch(f"/oai?{query}"), filled.fetch(f"/ft-oai?{query}")
        bodies = [answer.partition(b"</request>")[2] for answer in (plain, extended)]
        assert bodies[0] == bodies[1].replace(b"/ft-oai</baseURL>", b"/oai</baseURL>")


def test_the_index_part_follows_the_metadata(whole: Provider) -> None:
    for prefix, index in INDEX.items():
        root = whole.ask(
            "/ft-oai", verb="GetRecord", metadataPrefix="oai_dc", indexPrefix=prefix, identifier=ONE
        )
        (found,) = root.iter(f"{{{FT_NAMESPACE}}}record")
        assert [etree.QName(child).localname for child in found] == ["header", "metadata", "index"]
        vector = index.read(found[2][0])
        assert set(vector.frequencies()) == {"wing", "air", "term1"}
        assert vector.length == 3
        assert vector.language == "en"
        if index.positions:
            assert vector.places() == {"wing": [0], "air": [1], "term1": [2]}


def test_application_formats_carry_the_same_statistics(whole: Provider) -> None:
    for prefix in bundle.INSIDE:
        root = whole.ask(verb="GetRecord", metadataPrefix=prefix, identifier=ONE)
        metadata = root.find(f".//{{{OAI_NAMESPACE}}}metadata")
        assert metadata is not None
        described, terms = bundle.read(metadata[0])
        assert described is not None
        assert oai_dc.FORMAT.read(described).simple()["title"] == ["Report 1 on <wings> & air"]
        assert terms is not None
        assert set(bundle.INSIDE[prefix].read(terms).frequencies()) == {"wing", "air", "term1"}


def test_positions_are_offered_only_where_they_are_kept(filled: Provider) -> None:
    assert filled.found(filled.ask("/ft-oai", verb="ListIndexFormats"), "indexPrefix") == [
        "tf_compact",
        "tf_basic",
        "tf_boolean",
    ]
    assert "oai_dc_tf_positions" not in filled.found(filled.ask(verb="ListMetadataFormats"), "metadataPrefix")


def test_a_record_without_statistics_has_those_of_its_metadata(filled: Provider, valid: Check) -> None:
    metadata = {"title": ["The flutter of wings"], "creator": ["Garrick"], "publisher": ["A press"]}
    bare = Record("oai:x.org:bare", metadata, sets=("bare",), raw=oai_dc.write(metadata))
    filled.put([bare])
    asked = {"metadataPrefix": "oai_dc", "indexPrefix": "tf_compact"}
    answer = filled.get("/ft-oai", verb="GetRecord", identifier=bare.identifier, **asked)
    valid(answer)
    assert b'length="3" lang="en"><t f="1">flutter garrick wing</t></terms></index>' in answer
    listed = filled.get("/ft-oai", verb="ListRecords", set="bare", **asked)
    assert b"flutter garrick wing" in listed
    answer = filled.get(verb="GetRecord", metadataPrefix="oai_dc_tf", identifier=bare.identifier)
    valid(answer)
    assert etree.fromstring(answer).find(f".//{TERMS}") is not None
    root = filled.ask("/ft-oai", verb="ListIndexFormats", identifier=bare.identifier)
    assert filled.found(root, "indexPrefix") == ["tf_compact", "tf_basic", "tf_boolean"]


def test_an_item_without_positions_is_given_without_an_index_part(whole: Provider, valid: Check) -> None:
    """As docs/protocol.md says: listed and given, for its metadata; `ListIndexFormats` tells what it has."""
    name = whole.name(77)
    whole.put([replace(whole.record(77, ("bare",)), vector=TermVector.of({"wing": 1}, language="en"))])
    asked = {"metadataPrefix": "oai_dc", "indexPrefix": "tf_positions"}
    for answer in (
        whole.get("/ft-oai", verb="GetRecord", identifier=name, **asked),
        whole.get("/ft-oai", verb="ListRecords", set="bare", **asked),
    ):
        valid(answer)
        (found,) = etree.fromstring(answer).iter(f"{{{FT_NAMESPACE}}}record")
        assert [etree.QName(child).localname for child in found] == ["header", "metadata"]
    root = whole.ask("/ft-oai", verb="ListIndexFormats", identifier=name)
    assert whole.found(root, "indexPrefix") == ["tf_compact", "tf_basic", "tf_boolean"]
    unknown = whole.ask("/ft-oai", verb="GetRecord", identifier=name, metadataPrefix="http_header")
    assert whole.codes(unknown) == ["cannotDisseminateFormat"]


def test_identify_describes_the_repository(filled: Provider, valid: Check) -> None:
    node = replace(
        filled.settings.node,
        description="Reports on <wings>",
        rights="https://creativecommons.org/publicdomain/zero/1.0/",
        friends=("http://friend.org/oai",),
    )
    filled.configure(replace(filled.settings, node=node))
    root = filled.ask(verb="Identify")
    assert filled.found(root, "adminEmail") == ["a@x.org", "b@x.org"]
    assert filled.found(root, "earliestDatestamp") == ["2023-11-14T22:13:20Z"]
    assert filled.found(root, "compression") == ["zstd", "br", "gzip"]
    assert filled.found(root, "deletedRecord") == ["persistent"]
    text = " ".join(map(str, root.itertext()))
    assert "Reports on <wings>" in text
    assert "http://friend.org/oai" in text
    assert root.find(".//{*}rightsReference") is not None
    sample = root.findtext(".//{*}sampleIdentifier") or ""
    assert re.fullmatch(r"oai:x\.org:[\w/.-]+", sample)
    assert (
        identity(read(filled.get(verb="Identify"))).policy
        == index_formats(read(filled.get("/ft-oai", verb="ListIndexFormats")))["tf_compact"]
    )


def test_an_empty_repository_is_still_a_repository(provider: Provider, valid: Check) -> None:
    for query, code in [
        ("verb=Identify", []),
        ("verb=ListMetadataFormats", []),
        ("verb=ListSets", ["noSetHierarchy"]),
        ("verb=ListRecords&metadataPrefix=oai_dc", ["noRecordsMatch"]),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=a", ["noSetHierarchy"]),
    ]:
        answer = provider.fetch(f"/oai?{query}")
        valid(answer)
        assert provider.codes(etree.fromstring(answer)) == code
