"""What stands around the protocol: landing page, health, robots.txt, sitemap, schemas, counts of use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from lxml import etree

from indlet.formats import INDEX
from indlet.provider.serve import routes
from indlet.provider.serve.pages import SCHEMAS
from indlet.provider.serve.usage import Usage

Provider = Any  # of conftest.py
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def test_the_landing_page_tells_how_to_harvest(filled: Provider) -> None:
    node = replace(filled.settings.node, name="Wings & <air>", description="Reports since 1950")
    filled.configure(replace(filled.settings, node=node))
    page = etree.fromstring(filled.client.get("/").content, etree.HTMLParser())
    assert page.findtext(".//h1") == "Wings & <air>"
    text = " ".join(" ".join(map(str, page.itertext())).split())
    for expected in (
        "23",
        "Reports since 1950",
        "http://x.org/oai",
        "http://x.org/ft-oai",
        "a@x.org",
        "sickle",
    ):
        assert expected in text
    for node in page.iter("a", "link", "img", "script"):
        address = node.get("href") or node.get("src") or ""
        assert not address.startswith(("http:", "https:", "//")) or address.startswith("http://x.org")


def test_the_landing_page_may_stand_elsewhere_or_nowhere(filled: Provider) -> None:
    def paths(landing: str) -> list[str]:
        return [getattr(r, "path", "") for r in routes(filled.store, filled.settings, landing=landing)]

    assert "/" in paths("/")
    assert "/about" in paths("/about")
    assert "/" not in paths("/about") + paths("")


def test_health(filled: Provider) -> None:
    told = filled.client.get("/healthz").json()
    assert told["status"] == "ok"
    assert (told["records"], told["deleted"]) == (23, 2)
    assert told["last_change"] == "2023-11-14T22:16:40Z"
    filled.put([filled.record(900)])
    assert filled.client.get("/healthz").json()["records"] == 24


def test_robots_name_sitemap_and_repository(filled: Provider) -> None:
    text = filled.client.get("/robots.txt").text
    assert "Sitemap: http://x.org/sitemap.xml\n" in text
    assert "OAIPMHbaseURL: http://x.org/oai\n" in text


def locations(xml: bytes) -> list[str]:
    return [node.text or "" for node in etree.fromstring(xml).iter(f"{SITEMAP}loc")]


def test_the_sitemap_holds_every_address_once(filled: Provider) -> None:
    filled.put([replace(filled.record(5), identifier="oai:x.org:twin")])
    found = locations(filled.client.get("/sitemap.xml").content)
    alive = [n for n in range(25) if n not in (3, 14)]
    assert sorted(found) == sorted(["http://x.org/", *(f"http://x.org/files/{n}.pdf" for n in alive)])


def test_documents_of_one_file_have_one_page(provider: Provider) -> None:
    many = [provider.record(n) for n in range(5)]
    provider.put(
        replace(r, properties={"url": f"http://x.org/files/all.sgm#{n}"}) for n, r in enumerate(many)
    )
    found = locations(provider.client.get("/sitemap.xml").content)
    assert found == ["http://x.org/", "http://x.org/files/all.sgm"]


def test_a_large_sitemap_is_an_index_of_parts(filled: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indlet.provider.serve.pages.SITEMAP_URLS", 10)
    index = filled.client.get("/sitemap.xml").content
    assert etree.fromstring(index).tag == f"{SITEMAP}sitemapindex"
    parts = [locations(filled.client.get(url).content) for url in locations(index)]
    assert [len(part) for part in parts] == [10, 10, 3]
    assert len({url for part in parts for url in part}) == 23


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_served_and_sound(filled: Provider, name: str) -> None:
    response = filled.client.get(f"/schema/{name}")
    assert response.headers["content-type"].startswith("text/xml")
    assert etree.fromstring(response.content).tag == "{http://www.w3.org/2001/XMLSchema}schema"


def test_each_index_format_has_a_schema_that_fits_it_alone(filled: Provider) -> None:
    filled.configure(replace(filled.settings, analysis=replace(filled.settings.analysis, positions=True)))
    formats = {
        node.findtext("{*}indexPrefix"): node.findtext("{*}schema")
        for node in filled.ask("/ft-oai", verb="ListIndexFormats").iter("{*}indexFormat")
    }
    assert formats.keys() == INDEX.keys()
    for prefix in formats:
        root = filled.ask("/ft-oai", verb="ListRecords", metadataPrefix="oai_dc", indexPrefix=prefix)
        for other, schema in formats.items():
            checker = etree.XMLSchema(etree.fromstring(filled.fetch(schema)))
            parts = root.findall(".//{*}index/*")
            assert len(parts) == 10
            assert all(map(checker.validate, parts)) == (other == prefix)


def test_use_is_counted(filled: Provider) -> None:
    usage = Usage()
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    app = Starlette(routes=routes(filled.store, filled.settings, clock=filled.clock, usage=usage))
    client = TestClient(app, headers={"User-Agent": "Harvester/1"})
    for _ in range(2):
        client.get("/oai?verb=ListRecords&metadataPrefix=oai_dc")
    client.get("/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_basic")
    (extended, one), (plain, two) = usage.counts()
    assert plain == ("2023-11-14", "/oai", "ListRecords", "oai_dc", "Harvester/1")
    assert (two.requests, two.records) == (2, 20)
    assert two.bytes > 1000
    assert (extended.prefix, one.records) == ("oai_dc+tf_basic", 10)
