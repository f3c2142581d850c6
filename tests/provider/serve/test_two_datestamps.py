"""Another index part is no news for who takes metadata alone; who takes statistics gets it once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lxml import etree
from tests.provider.serve.conftest import Provider

from indlet.model import Record, TermVector

METADATA = {"metadataPrefix": "oai_dc"}
INDEXED = [
    ("/ft-oai", {**METADATA, "indexPrefix": "tf_compact"}),
    ("/oai", {"metadataPrefix": "oai_dc_tf"}),
    ("/ft-oai", {"metadataPrefix": "oai_dc_tf_basic"}),
]
PLAIN = [("/oai", METADATA), ("/ft-oai", METADATA), ("/oai", {"metadataPrefix": "mods"})]


def reanalysed(number: int, digest: str) -> Record:
    """A record under another policy: its vector and the policy's digest differ, nothing else."""
    record = Provider.record(number, ("papers:a",))
    return replace(
        record,
        vector=TermVector.of({digest: 1}, language="en"),
        properties={**record.properties, "policy": digest},
    )


@pytest.fixture
def changed(provider: Provider) -> Provider:
    """25 records; then a new policy for all of them, 100 s later; then a new title for number 7, 100 s later;
    then number 9 is deleted."""
    provider.put(reanalysed(n, "one") for n in range(25))
    provider.clock.now += 100
    provider.put(reanalysed(n, "two") for n in range(25))
    provider.clock.now += 100
    title = {**reanalysed(7, "two").metadata, "title": ["Another"]}
    provider.put([replace(reanalysed(7, "two"), metadata=title, raw=b"")])
    provider.clock.now += 100
    provider.delete([provider.name(9)])
    provider.clock.now += 100
    return provider


@pytest.mark.parametrize(("path", "formats"), PLAIN)
@pytest.mark.parametrize("verb", ["ListRecords", "ListIdentifiers"])
def test_a_new_policy_is_no_news_for_metadata(
    changed: Provider, path: str, formats: dict[str, str], verb: str
) -> None:
    def since(moment: str) -> list[str]:
        return changed.listed(path, verb=verb, from_=moment, **formats)

    assert len(changed.listed(path, verb=verb, **formats)) == 25
    assert since("2023-11-14T22:13:21Z") == [changed.name(7), changed.name(9)]
    assert since("2023-11-14T22:16:41Z") == [changed.name(9)]
    in_set = changed.listed(path, verb=verb, set="papers", from_="2023-11-14T22:13:21Z", **formats)
    assert in_set == [changed.name(7), changed.name(9)]
    until = changed.listed(path, verb=verb, until="2023-11-14T22:13:20Z", **formats)
    assert until == [changed.name(n) for n in range(25) if n not in (7, 9)]


@pytest.mark.parametrize(("path", "formats"), INDEXED)
@pytest.mark.parametrize("verb", ["ListRecords", "ListIdentifiers"])
def test_who_takes_statistics_gets_them_again(
    changed: Provider, path: str, formats: dict[str, str], verb: str
) -> None:
    def since(moment: str) -> list[str]:
        return changed.listed(path, verb=verb, from_=moment, **formats)

    assert len(since("2023-11-14T22:13:21Z")) == 25
    assert since("2023-11-14T22:15:01Z") == [changed.name(7), changed.name(9)]


def test_each_answer_dates_a_record_as_its_list_does(changed: Provider) -> None:
    for path, formats in (*PLAIN, *INDEXED):
        listed: dict[str, str] = {}
        for page in changed.pages(path, verb="ListRecords", **formats):
            listed |= dict(
                zip(changed.found(page, "identifier"), changed.found(page, "datestamp"), strict=True)
            )
        for name, date in listed.items():
            answer = changed.ask(path, verb="GetRecord", identifier=name, **formats)
            assert changed.found(answer, "datestamp") == [date]
    plain, indexed = (
        changed.found(
            changed.ask("/ft-oai", verb="GetRecord", identifier=changed.name(3), **formats), "datestamp"
        )
        for formats in (METADATA, INDEXED[0][1])
    )
    assert (plain, indexed) == (["2023-11-14T22:13:20Z"], ["2023-11-14T22:15:00Z"])
    assert changed.found(changed.ask(verb="Identify"), "earliestDatestamp") == ["2023-11-14T22:13:20Z"]


def test_a_token_of_one_list_goes_on_while_the_other_moves(changed: Provider) -> None:
    """A policy changes between the pages of a list: who takes metadata alone does not notice."""
    digests = iter(["three", "four", "five"])

    def between() -> None:
        changed.clock.now += 100
        changed.put(reanalysed(n, "three" + next(digests, "")) for n in range(25) if n not in (7, 9))

    pages = list(changed.pages("/oai", between, verb="ListRecords", **METADATA))
    names = [name for page in pages for name in changed.found(page, "identifier")]
    assert len(pages) == 3 and len(names) == len(set(names)) == 25
    assert {t.get("completeListSize") for p in pages for t in p.iter("{*}resumptionToken")} == {"25"}


def test_a_new_policy_leaves_sitemaps_alone(changed: Provider) -> None:
    body = etree.fromstring(changed.client.get("/sitemap.xml").content)
    dates = [node.text for node in body.iter("{*}lastmod")]
    assert dates.count("2023-11-14T22:13:20Z") == 23
    assert "2023-11-14T22:15:00Z" not in dates
