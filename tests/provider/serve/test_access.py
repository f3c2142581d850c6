"""What a requester may not have does not exist for it: in lists, counts, sets, records, sitemap, content."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from lxml import etree
from starlette.testclient import TestClient

from indlet.errors import SettingsError
from indlet.settings import Access, Hierarchy, LibraryFolder, Serve, Site

Provider = Any  # of conftest.py
SECRET = "oai:x.org:papers/0100%20a"
KEY = {"Authorization": "Bearer open-sesame"}


@pytest.fixture
def guarded(filled: Provider) -> Provider:
    """25 public records, and 15 of a hierarchy that a network and a token open."""
    filled.put((filled.record(n, ("hidden:x",)) for n in range(100, 115)), origin="hidden")
    access = Access(networks=("192.0.2.0/24", "2001:db8::/32"), tokens=("other", "open-sesame"))
    filled.configure(
        replace(
            filled.settings,
            hierarchy=(Hierarchy("/nowhere", "hidden", access=access), Hierarchy("/nowhere", "papers")),
            serve=replace(filled.settings.serve, trusted_proxies=("10.0.0.0/8",)),
        )
    )
    return filled


def test_a_site_that_was_not_crawled_yet_takes_nothing_from_others(filled: Provider) -> None:
    asked = {"verb": "ListIdentifiers", "metadataPrefix": "oai_dc"}
    before = filled.listed(**asked)
    filled.configure(replace(filled.settings, site=(Site("/nowhere", "http://127.0.0.1:9/"),)))
    assert len(before) == 25 and filled.listed(**asked) == before


def count(provider: Provider, headers: Any = None, address: str = "198.51.100.1") -> int:
    """How many records this requester can list, by the pages and by what the list says of its size."""
    client = TestClient(provider.app, base_url="http://x.org", client=(address, 1))
    query, total, size = "/oai?verb=ListRecords&metadataPrefix=oai_dc", 0, 0
    while query:
        root = etree.fromstring(client.get(query, headers=headers).content)
        total += len(provider.found(root, "identifier"))
        node = root.find(".//{*}resumptionToken")
        assert node is not None
        size = int(node.get("completeListSize", "0"))
        query = f"/oai?verb=ListRecords&resumptionToken={node.text}" if node.text else ""
    assert size == total
    return total


def test_nothing_of_it_is_seen_without_a_permit(guarded: Provider) -> None:
    assert count(guarded) == 25
    answers = [
        guarded.get(verb="ListSets"),
        guarded.get(verb="Identify"),
        guarded.client.get("/sitemap.xml").content,
        guarded.client.get("/healthz").content,
        guarded.client.get("/").content,
    ]
    assert not any(word in answer for answer in answers for word in (b"hidden", b"files/100.pdf"))
    told = guarded.client.get("/healthz").json()
    assert (told["records"], told["last_change"]) == (23, "2023-11-14T22:16:40Z")
    hidden = guarded.ask(verb="GetRecord", metadataPrefix="oai_dc", identifier=SECRET)
    absent = guarded.ask(verb="GetRecord", metadataPrefix="oai_dc", identifier="oai:x.org:none")
    assert guarded.codes(hidden) == guarded.codes(absent) == ["idDoesNotExist"]
    for verb in ("ListMetadataFormats", "ListIndexFormats"):
        assert guarded.codes(guarded.ask("/ft-oai", verb=verb, identifier=SECRET)) == ["idDoesNotExist"]
    root = guarded.ask(verb="ListRecords", metadataPrefix="oai_dc", set="hidden:x")
    assert guarded.codes(root) == ["noRecordsMatch"]


def test_a_library_is_restricted_in_the_same_way(guarded: Provider) -> None:
    hidden, papers = guarded.settings.hierarchy
    library = LibraryFolder("hidden", "/nowhere", access=hidden.access)
    guarded.configure(replace(guarded.settings, hierarchy=(papers,), library=(library,)))
    test_nothing_of_it_is_seen_without_a_permit(guarded)
    test_a_token_opens_it(guarded)
    assert count(guarded, address="192.0.2.9") == 40


def test_a_token_opens_it(guarded: Provider) -> None:
    assert count(guarded, KEY) == 40
    response = guarded.client.get(
        "/oai", params={"verb": "GetRecord", "metadataPrefix": "oai_dc", "identifier": SECRET}, headers=KEY
    )
    assert b"<metadata>" in response.content
    assert "Authorization" in response.headers["vary"]
    assert "private" in response.headers["cache-control"]
    assert b"hidden:x" in guarded.client.get("/oai?verb=ListSets", headers=KEY).content


@pytest.mark.parametrize(
    "value", ["Bearer wrong", "Bearer", "Basic open-sesame", "open-sesame", "Bearer öpen", ""]
)
def test_another_token_does_not(guarded: Provider, value: str) -> None:
    assert count(guarded, {b"Authorization": value.encode()}) == 25


@pytest.mark.parametrize(
    ("address", "forwarded", "seen"),
    [
        ("192.0.2.9", "", 40),
        ("::ffff:192.0.2.9", "", 40),
        ("2001:db8::1", "", 40),
        ("198.51.100.1", "", 25),
        ("198.51.100.1", "192.0.2.9", 25),  # nobody vouches for that
        ("10.0.0.1", "192.0.2.9", 40),
        ("10.0.0.1", "198.51.100.1", 25),
        ("10.0.0.1", "192.0.2.9, 198.51.100.1", 25),  # the requester made up the first
        ("10.0.0.1", "198.51.100.1, 192.0.2.9", 40),
        ("10.0.0.1", "192.0.2.9, 10.0.0.2", 40),
        ("10.0.0.1", "192.0.2.9:5000", 40),
        ("10.0.0.1", "[2001:db8::1]:5000", 40),
        ("10.0.0.1", "nonsense, 192.0.2.9x", 25),
        ("10.0.0.1", "", 25),
        ("testclient", "", 25),
    ],
)
def test_networks_open_it(guarded: Provider, address: str, forwarded: str, seen: int) -> None:
    assert count(guarded, {"X-Forwarded-For": forwarded} if forwarded else None, address) == seen


def test_a_resumption_token_does_not_widen_a_permit(guarded: Provider) -> None:
    first = guarded.client.get("/oai?verb=ListRecords&metadataPrefix=oai_dc", headers=KEY)
    token = guarded.found(etree.fromstring(first.content), "resumptionToken")[0]
    assert guarded.codes(guarded.ask(verb="ListRecords", resumptionToken=token)) == ["badResumptionToken"]


def test_a_hierarchy_without_a_stated_name_is_guarded_too(filled: Provider) -> None:
    hierarchy = Hierarchy("/srv/papers", access=Access(tokens=("open-sesame",)))
    filled.put((filled.record(n, ("open",)) for n in range(100, 115)), origin="open")
    filled.configure(replace(filled.settings, hierarchy=(hierarchy, Hierarchy("/srv/open"))))
    assert (count(filled), count(filled, KEY)) == (15, 40)


def test_a_hierarchy_that_left_the_settings_stays_shut_if_it_was(filled: Provider) -> None:
    with filled.store.write() as tx:
        origin = tx.origin("hierarchy", "old", {"access": {"networks": [], "tokens": 1}})
        tx.put(origin, [filled.record(100)])
    assert count(filled) == 25


def test_harvested_records_are_not_given_out(filled: Provider) -> None:
    with filled.store.write() as tx:
        tx.put(tx.origin("source", "elsewhere"), [filled.record(n) for n in range(100, 105)])
    assert count(filled) == 25


def test_rules_that_cannot_be_meant_are_refused(filled: Provider) -> None:
    for access in (Access(networks=("300.1.2.3",)), Access(tokens=("",))):
        with pytest.raises(SettingsError):
            filled.configure(replace(filled.settings, hierarchy=(Hierarchy("/x", "papers", access=access),)))
    with pytest.raises(SettingsError, match="trusted_proxies"):
        filled.configure(replace(filled.settings, serve=Serve(trusted_proxies=("proxy",))))
