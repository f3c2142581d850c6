"""What stands beside the protocol's lists: sitemap, ResourceSync, feeds; and sites under other names."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import etree
from starlette.testclient import TestClient
from tests.site.conftest import OAI, Bench, Make
from tests.site.test_site_access import OFFICE, PUBLIC, guard
from tests.site.web_servers import Web

from indlet.provider.serve.access import Permit
from indlet.service.index import follow
from indlet.settings import Serve, Site
from indlet.site.command import _site
from indlet.site.resourcesync import ResourceSync
from indlet.web.app import application

TERMS, SITEMAP = "{http://www.openarchives.org/rs/terms/}", "{http://www.sitemaps.org/schemas/sitemap/0.9}"
LISTS = ("/sitemap.xml", "/resourcesync/resourcelist.xml", "/resourcesync/changelist.xml", "/feed.atom")


@pytest.mark.parametrize("path", LISTS)
def test_every_list_obeys_the_rules_for_the_client(apache: Web, make: Make, path: str) -> None:
    for name in PUBLIC:
        apache.write(name[1:])
    refused = f"<RequireAll>\nRequire all granted\nRequire not ip {OFFICE}\n</RequireAll>\n"
    apache.write("open/.htaccess", refused)
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    bench.crawl()
    client = bench.serve()
    for address, shown in (("198.51.100.7", True), (OFFICE, False)):
        answer = client.http.get(path, headers={"X-Forwarded-For": address}).text
        assert "a.html" in answer
        assert ("open/d.html" in answer) == shown
    apache.write("open/.htaccess", "Require all denied\n")
    assert "open/d.html" not in client.http.get(path).text


def test_both_lists_state_the_same_time_and_changes_come_in_dated_parts(apache: Web, make: Make) -> None:
    for number in range(12):
        apache.write(f"{number}.txt", f"text {number}", at=1_500_000_000 + number)
    apache.start()
    bench = make(apache)
    bench.crawl()
    bench.serve().harvested()
    apache.write("3.txt", "restored", at=1_400_000_000)
    (apache.root / "4.txt").unlink()
    bench.crawl()
    sync = ResourceSync(bench.store, bench.settings, bench.store.now, limit=5)

    def entries(capability: str) -> dict[str, str]:
        index = etree.fromstring(
            sync.resources(Permit()) if "resource" in capability else sync.changes(Permit())
        )
        found = {}
        for loc in index.iter(f"{SITEMAP}loc"):
            (name,) = re.findall(r"/([\w-]+)\.xml$", loc.text or "")
            part = etree.fromstring(sync.part(capability)(Permit(), name) or b"")
            for url in part.iter(f"{SITEMAP}url"):
                found[url.findtext(f"{SITEMAP}loc", "")] = url.findtext(f"{SITEMAP}lastmod", "")
        return found

    resources, changes = entries("resourcelist"), entries("changelist")
    assert {url: when for url, when in changes.items() if when} == resources
    assert changes[f"{apache.url}/4.txt"] == ""
    index = etree.fromstring(sync.changes(Permit()))
    periods = [(md.get("from", ""), md.get("until")) for md in index.iter(f"{TERMS}md")][1:]
    assert [until is None for _, until in periods] == [False] * (len(periods) - 1) + [True]
    for (_, until), (since, _) in itertools.pairwise(periods):
        assert until is not None and until <= since


def test_a_deploy_by_symlink_is_followed(apache: Web, make: Make) -> None:
    for release in ("one", "two"):
        place = apache.root / release
        place.mkdir()
        (place / "a.html").write_text(f"<p>{release}</p>")
        os.utime(place / "a.html", (1_500_000_000, 1_500_000_000))
    current = apache.root / "current"
    current.symlink_to("one")
    apache.start()
    bench = make(apache)
    site = replace(_site(str(current), f"{apache.url}/current", "", (), False), name="site")
    assert site.root == str(current)
    bench.settings = replace(bench.settings, site=(site,))
    bench.crawl()
    before = bench.listed()["current/a.html"]["sha256"]
    (apache.root / "next").symlink_to("two")
    (apache.root / "next").rename(current)
    summary = bench.crawl()
    assert (summary.deleted, summary.records) == (0, 1)
    assert bench.listed()["current/a.html"]["sha256"] != before


def test_who_may_see_a_guarded_file_learns_its_media_type(apache: Web, make: Make) -> None:
    guard(apache)
    apache.write("staff/table.odd", "x")
    apache.extra = "AddType application/x-odd .odd"
    apache.start()
    bench = make(apache)
    bench.crawl()
    client = bench.serve(records_per_page=50)
    for verb in ("ListRecords", "GetRecord"):
        for prefix in ("oai_dc", "oai_didl", "http_header"):
            given = {"identifier": f"{apache.url}/staff/table.odd"} if verb == "GetRecord" else {}
            answer = client.get("ann", verb=verb, metadataPrefix=prefix, **given)
            (record,) = [
                one
                for one in answer.iter(f"{OAI}record")
                if "table.odd" in (one.findtext(f".//{OAI}identifier") or "")
            ]
            written = etree.tostring(record)
            assert b"application/x-odd" in written
            assert b"octet-stream" not in written.partition(b"</header>")[2]


def urls(bench: Bench) -> set[str]:
    return bench.serve(identifiers_per_page=100).harvested()


def test_a_site_that_was_dropped_is_not_shown(apache: Web, make: Make) -> None:
    guard(apache)
    apache.start()
    bench = make(apache)
    bench.crawl()
    kept = bench.settings
    other = Site(str(apache.root / "open"), f"{apache.url}/open", name="open")
    bench.settings = replace(kept, site=(other,))
    assert urls(bench) == set()
    for path in LISTS:
        assert "a.html" not in bench.serve().http.get(path).text
    bench.settings = kept
    assert urls(bench) == PUBLIC


def test_a_site_with_another_name_keeps_its_records(apache: Web, make: Make) -> None:
    guard(apache)
    apache.start()
    bench = make(apache)
    bench.crawl()
    (site,) = bench.settings.site
    bench.settings = replace(bench.settings, site=(replace(site, name="other"),))
    summary = bench.crawl()
    assert summary.deleted == 0
    assert urls(bench) == PUBLIC
    client = bench.serve(identifiers_per_page=100)
    assert client.harvested(user="ann") == PUBLIC | {"/staff/s.html", "/staff/deep/ann.html"}
    assert client.harvested(user="ann", set="other:staff") == {"/staff/s.html", "/staff/deep/ann.html"}


def test_another_address_of_a_site_replaces_all_identifiers_at_once(
    apache: Web, make: Make, tmp_path: Path
) -> None:
    for name in PUBLIC:
        apache.write(name[1:])
    apache.start()
    bench = make(apache)
    strict = replace(bench.settings.crawl, withhold_share=0.0, withhold_records=0)
    (site,) = bench.settings.site
    bench.settings = replace(bench.settings, crawl=strict, site=(replace(site, name=""),))
    bench.crawl()
    moved = replace(site, name="", url=f"http://localhost:{apache.port}", server=apache.url)
    bench.settings = replace(bench.settings, site=(moved,))
    summary = bench.crawl()
    assert (summary.withheld, summary.deleted) == (0, len(PUBLIC))
    pages = bench.serve(identifiers_per_page=100).get(verb="ListIdentifiers", metadataPrefix="oai_dc")
    states = {
        header.findtext(f"{OAI}identifier", ""): header.get("status") for header in pages.iter(f"{OAI}header")
    }
    for path in PUBLIC:
        assert states[apache.url + path] == "deleted"
        assert states[moved.url + path] is None


@pytest.mark.parametrize("rule", ["Require not ip", "RewriteCond", "none"])
def test_the_portal_shows_a_site_only_if_no_rule_refuses_it_to_some(
    apache: Web, make: Make, rule: str
) -> None:
    """The portal does not ask the web server who may see a record, so it must not show one that is not for
    everybody: here a client at OFFICE could read in the portal what the server refuses to it."""
    rules = {
        "Require not ip": f"<RequireAll>\nRequire all granted\nRequire not ip {OFFICE}\n</RequireAll>\n",
        "RewriteCond": f"RewriteEngine On\nRewriteCond %{{REMOTE_ADDR}} ={OFFICE}\nRewriteRule .* - [F]\n",
        "none": "",
    }
    apache.write("open/d.html", "<title>quincunx pattern</title><p>quincunx</p>")
    if rules[rule]:
        apache.write("open/.htaccess", rules[rule])
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    bench.crawl()
    settings = replace(bench.settings, serve=Serve(trusted_proxies=("127.0.0.1",)))
    follow.catch_up(bench.store)
    portal = TestClient(application(bench.store, settings), client=("127.0.0.1", 5000))
    assert set(bench.listed()) == {"open/d.html"}  # in lists, where the server is asked for each client
    record = f"/record?id={apache.url}/open/d.html"
    sitemap = re.findall("<loc>(.*?)</loc>", portal.get("/portal-sitemap.xml").text)[-1]

    def shown() -> list[bool]:
        answers = [
            portal.get(path, headers={"X-Forwarded-For": OFFICE}).text
            for path in ("/?q=quincunx", "/api/search?q=quincunx", "/feed.atom?q=quincunx", record, sitemap)
        ]
        return ["quincunx pattern" in one for one in answers[:-1]] + ["%2Fopen%2Fd.html" in answers[-1]]

    assert shown() == [rule == "none"] * 5
    if rule != "none":
        (apache.root / "open/.htaccess").unlink()
        bench.crawl()
        assert shown() == [True] * 5
