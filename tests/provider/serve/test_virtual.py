"""A virtual repository is a full OAI-PMH repository over a part of what a node has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from lxml import etree

from indlet.errors import SettingsError
from indlet.oai.provenance import FROM, read
from indlet.settings import Access, VirtualRepository

Provider = Any  # of conftest.py
NASA = VirtualRepository("/oai/nasa", "NASA reports", ("papers", "lanl:reports"), description="Two of them.")


@pytest.fixture
def virtual(filled: Provider) -> Provider:
    """Beside the 25 records of the node's own: two sources that are served again, and one that is not."""
    with filled.store.write() as tx:
        for name, spec, first in (("lanl", "reports", 30), ("lanl", "memos", 40), ("afrl", "reports", 50)):
            origin = tx.origin("source", name, {"url": f"http://{name}.org/oai", "republish": True})
            tx.put(origin, [filled.record(n, (spec, f"{FROM}:{name}")) for n in range(first, first + 4)])
        tx.put(tx.origin("source", "secret", {"url": "http://s.org/oai"}), [filled.record(99, ("reports",))])
    filled.clock.now += 100
    filled.configure(replace(filled.settings, repository=(NASA,)))
    return filled


def numbers(names: list[str]) -> set[int]:
    return {int(name.partition("/")[2][:4]) for name in names}


def test_it_shows_what_it_is_made_of(virtual: Provider) -> None:
    everything = set(range(25)) | set(range(30, 34))
    for path in ("/oai/nasa", "/ft-oai/nasa"):
        for verb in ("ListIdentifiers", "ListRecords"):
            assert numbers(virtual.listed(path, verb=verb, metadataPrefix="oai_dc")) == everything
    page = virtual.ask("/oai/nasa", verb="ListRecords", metadataPrefix="oai_dc")
    (token,) = page.iter("{*}resumptionToken")
    assert token.get("completeListSize") == str(len(everything))
    assert numbers(virtual.listed(verb="ListRecords", metadataPrefix="oai_dc")) == everything | set(
        range(40, 44)
    ) | set(range(50, 54))


def test_it_has_an_identify_sets_and_tokens_of_its_own(
    virtual: Provider, valid: Callable[[bytes], None]
) -> None:
    answer = virtual.get("/oai/nasa", verb="Identify")
    valid(answer)
    root = etree.fromstring(answer)
    assert virtual.found(root, "baseURL") == ["http://x.org/oai/nasa"]
    assert virtual.found(root, "repositoryName") == ["NASA reports"]
    assert b"Two of them." in answer and b'href="../oai.xsl"' in answer
    sets = virtual.listed("/oai/nasa", verb="ListSets") or [
        spec
        for page in virtual.pages("/oai/nasa", verb="ListSets")
        for spec in virtual.found(page, "setSpec")
    ]
    assert {"papers:a", "reports", "from:lanl"} <= set(sets) and not {"memos", "from:afrl"} & set(sets)
    page = virtual.ask("/oai/nasa", verb="ListRecords", metadataPrefix="oai_dc")
    (token,) = virtual.found(page, "resumptionToken")
    elsewhere = virtual.ask("/oai", verb="ListRecords", resumptionToken=token)
    assert virtual.codes(elsewhere) == ["badResumptionToken"]


def test_what_it_does_not_show_does_not_exist_there(virtual: Provider) -> None:
    for number, code in ((1, []), (31, []), (41, ["idDoesNotExist"]), (51, ["idDoesNotExist"])):
        root = virtual.ask(
            "/oai/nasa", verb="GetRecord", metadataPrefix="oai_dc", identifier=virtual.name(number)
        )
        assert virtual.codes(root) == code, number


def test_it_offers_the_formats_that_it_names(virtual: Provider) -> None:
    virtual.configure(replace(virtual.settings, repository=(replace(NASA, formats=("marc21",)),)))
    root = virtual.ask("/oai/nasa", verb="ListMetadataFormats")
    assert virtual.found(root, "metadataPrefix") == ["oai_dc", "marc21"]  # the protocol asks for oai_dc
    root = virtual.ask("/oai/nasa", verb="ListRecords", metadataPrefix="mods")
    assert virtual.codes(root) == ["cannotDisseminateFormat"]
    with pytest.raises(SettingsError, match="no format 'marc22'"):
        virtual.configure(replace(virtual.settings, repository=(replace(NASA, formats=("marc22",)),)))


def test_it_has_rules_of_access_of_its_own(virtual: Provider) -> None:
    closed = replace(NASA, access=Access(networks=("192.0.2.0/24",), tokens=("sesame",)))
    virtual.configure(replace(virtual.settings, repository=(closed,)))
    for path in ("/oai/nasa", "/ft-oai/nasa"):
        for method in ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "ODD"):
            refused, missing = (virtual.client.request(method, one) for one in (path, f"{path}/none"))
            assert (refused.status_code, refused.content) == (404, missing.content), method
            assert refused.headers.keys() == missing.headers.keys(), method
        opened = virtual.client.get(f"{path}?verb=Identify", headers={"Authorization": "Bearer sesame"})
        assert opened.status_code == 200 and "private" in opened.headers["cache-control"]
        assert virtual.client.put(path, headers={"Authorization": "Bearer sesame"}).status_code == 405
    assert virtual.client.get("/oai?verb=Identify").status_code == 200


def test_records_of_the_node_are_known_for_what_they_are(virtual: Provider) -> None:
    """A harvester that meets them here and at the node itself keeps one copy."""
    asked = {"verb": "GetRecord", "metadataPrefix": "oai_dc"}
    root = virtual.ask("/ft-oai/nasa", **asked, identifier=virtual.name(1))
    _, stated = read(etree.tostring(about[0]) for about in root.iter("{*}about"))
    assert stated is not None and stated.origin == "http://x.org/ft-oai" and stated.sets == ("papers:a",)
    assert not list(virtual.ask("/ft-oai", **asked, identifier=virtual.name(1)).iter("{*}about"))


def test_a_path_that_is_none_is_told(virtual: Provider) -> None:
    for path in ("/nasa", "/oai", "/oai/", "/oai/../admin", "/oai/a b"):
        with pytest.raises(SettingsError, match="path"):
            virtual.configure(replace(virtual.settings, repository=(replace(NASA, path=path),)))
