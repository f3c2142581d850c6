"""ResourceSync and sitemaps: another client than ours brings a folder into step with the site."""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx
import pytest
from lxml import etree
from resync.client import Client
from tests.site.conftest import Bench, Make
from tests.site.test_site_mirror import contents, served
from tests.site.web_servers import Web

from indlet.provider.serve.access import Permit
from indlet.site.resourcesync import ResourceSync

SITEMAP, TERMS = "{http://www.sitemaps.org/schemas/sitemap/0.9}", "{http://www.openarchives.org/rs/terms/}"


@pytest.fixture
def bench(apache: Web, make: Make) -> Bench:
    for number in range(12):
        apache.write(f"d{number % 3}/{number}.txt", f"text {number}", at=1_500_000_000 + number)
    apache.write("a-b.html", "<p>&amp;</p>")
    apache.write("guarded/g.html", "<p>guarded</p>")
    apache.write("guarded/.htaccess", "Require all denied\n")
    apache.start()
    bench = make(apache)
    bench.crawl()
    return bench


@pytest.mark.filterwarnings("ignore")
def test_the_resync_client_synchronises_from_a_site(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the client keeps its state
    web, copy = bench.web, tmp_path / "copy"
    public = {f"/{path}" for path in contents(web.root) if not path.startswith("guarded")}
    with bench.listening() as node:
        client = Client()
        client.set_mappings([web.url, str(copy)])
        client.capability_list_uri = f"{node}/resourcesync/capabilitylist.xml"
        client.baseline_or_audit(allow_deletion=True)
        host = web.url.removeprefix("http://")
        synced = {f"{host}/{path}": file for path, file in contents(copy).items()}
        assert synced == served(web, public)
        # What the client counts as seen is dated in seconds.
        time.sleep(1.1)
        web.write("d0/0.txt", "changed", at=time.time())
        web.write("new/x.txt", "new", at=time.time())
        (web.root / "d1/1.txt").unlink()
        bench.crawl()
        client = Client()
        client.set_mappings([web.url, str(copy)])
        client.incremental(allow_deletion=True, change_list_uri=f"{node}/resourcesync/changelist.xml")
    names = {path: data for path, (data, _) in contents(copy).items()}
    assert names == {p: data for p, (data, _) in contents(web.root).items() if not p.startswith("guarded")}


def test_each_document_leads_to_the_next(bench: Bench) -> None:
    with bench.listening() as node:
        url = f"{node}/.well-known/resourcesync"
        for capability in ("description", "capabilitylist", "resourcelist"):
            root = etree.fromstring(httpx.get(url).content)
            md = root.find(f"{TERMS}md")
            assert md is not None
            assert md.get("capability") == capability
            url = root.findtext(f"{SITEMAP}url/{SITEMAP}loc", "")
        resources = etree.fromstring(httpx.get(f"{node}/resourcesync/resourcelist.xml").content)
        assert len(resources.findall(f"{SITEMAP}url")) == 13
        for entry in resources.findall(f"{SITEMAP}url"):
            md, answer = entry.find(f"{TERMS}md"), httpx.get(entry.findtext(f"{SITEMAP}loc", ""))
            assert md is not None
            assert md.get("length") == str(len(answer.content))
            assert answer.headers["content-type"].startswith(md.get("type", "?"))
            assert re.fullmatch("sha-256:[0-9a-f]{64}", md.get("hash", ""))
        sitemap = httpx.get(f"{node}/sitemap.xml").text
        assert sitemap.count("<lastmod>") == 13
        assert "guarded" not in sitemap


def test_long_lists_come_in_parts(bench: Bench) -> None:
    (bench.web.root / "d1/1.txt").unlink()
    bench.crawl()
    sync = ResourceSync(bench.store, bench.settings, time.time, limit=5)
    names = list[str]()
    for capability, build, count in (("resourcelist", sync.resources, 12), ("changelist", sync.changes, 13)):
        index = etree.fromstring(build(Permit()))
        assert index.tag == f"{SITEMAP}sitemapindex"
        found = []
        for loc in index.iter(f"{SITEMAP}loc"):
            names += re.findall(rf"/{capability}/([\w-]+)\.xml$", loc.text or "")
            part = etree.fromstring(sync.part(capability)(Permit(), names[-1]) or b"")
            found += [url.text for url in part.iter(f"{SITEMAP}loc")]
        assert len(found) == len(set(found)) == count
    assert len({len(name) for name in names}) == 2, "a name tells nothing of the number that it stands for"
    assert sync.part("changelist")(Permit(), names[0]) is None is sync.part("changelist")(Permit(), "0")
    first = sync.part("changelist")(Permit(), names[3])
    changes = [etree.fromstring(first or b"").findall(f".//{TERMS}md")]
    stamps = [md.get("datetime", "") for md in changes[0] if md.get("change")]
    assert stamps == sorted(stamps)
