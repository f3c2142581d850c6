"""An incremental harvester misses nothing, whatever happens to files, times, rights or the clock."""

from __future__ import annotations

import os
import random
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from lxml import etree
from starlette.testclient import TestClient
from tests.provider.site.conftest import OAI
from tests.provider.site.web_servers import Web

from indlet.provider.pipeline import crawl
from indlet.provider.serve import application
from indlet.provider.workers import Workers
from indlet.settings import Crawl, Serve, Settings, Site
from indlet.store import Store

HISTORIES = int(os.environ.get("INDLET_HISTORIES", "12"))


class Clock:
    """The machine's clock, set forth and back."""

    offset = 0.0

    def __call__(self) -> float:
        return time.time() + self.offset


class Harvester:
    """Keeps what incremental lists tell, starting from the responseDate of the first page of the last one."""

    def __init__(self) -> None:
        self.since = ""
        self.known: dict[str, str] = {}  # URL -> SHA-256 in its header

    def harvest(self, client: TestClient) -> None:
        arguments = {"verb": "ListRecords", "metadataPrefix": "http_header"}
        if self.since:
            arguments["from"] = self.since
        first = ""
        while True:
            page = etree.fromstring(client.get(f"/oai?{httpx.QueryParams(arguments)}").content)
            first = first or page.findtext(f"{OAI}responseDate", "")
            for record in page.iter(f"{OAI}record"):
                url = record.findtext(f"{OAI}header/{OAI}identifier", "")
                digest = next((node.text or "" for node in record.iter("{*}digest")), None)
                if digest is None:
                    self.known.pop(url, None)
                else:
                    self.known[url] = digest
            token = page.findtext(f".//{OAI}resumptionToken")
            if not token:
                break
            arguments = {"verb": "ListRecords", "resumptionToken": token}
        self.since = first


def happen(web: Web, clock: Clock, dice: random.Random) -> None:
    files = sorted(path for path in web.root.rglob("*") if path.is_file())
    old = time.time() - dice.choice([0, 5, 3600, 10**6, 10**8])
    kind = dice.choice(
        ["new", "new", "change", "restore", "rename", "delete", "touch", "lock", "unlock", "clock"]
    )
    some = dice.choice(files) if files else None
    if kind == "new" or some is None:
        web.write(
            f"d{dice.randrange(3)}/{dice.randrange(1000)}.bin", dice.randbytes(dice.randrange(1, 99)), at=old
        )
    elif kind in ("change", "restore"):
        web.write(str(some.relative_to(web.root)), dice.randbytes(dice.randrange(1, 99)), at=old)
    elif kind == "rename":
        some.rename(some.with_name(f"{dice.randrange(1000)}.bin"))
    elif kind == "delete":
        some.unlink()
    elif kind == "touch":
        os.utime(some, (old, old))
    elif kind in ("lock", "unlock"):
        some.chmod(0o000 if kind == "lock" else 0o644)
    else:
        clock.offset = dice.choice([-7200.0, -15.0, 0.0, 15.0, 7200.0])


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_nothing_that_changed_is_missed(apache: Web, tmp_path: Path, workers: Workers, seed: int) -> None:
    dice, clock, web = random.Random(seed), Clock(), apache
    web.start()
    (web.root / "d0").mkdir()
    settings = Settings(
        data=tmp_path / "data",
        crawl=Crawl(settle_seconds=0.0),
        site=(Site(str(web.root), web.url, name="site"),),
        serve=replace(Serve(), records_per_page=dice.choice([2, 5, 500])),
    )
    with Store.open(tmp_path / "data", clock=clock) as store:
        client = TestClient(application(store, settings, clock=clock))
        harvesters = [Harvester(), Harvester()]
        for _ in range(12):
            for _ in range(dice.randrange(1, 6)):
                happen(web, clock, dice)
            for harvester in harvesters:
                if dice.random() < 0.5:
                    harvester.harvest(client)
            (summary,) = crawl(store, settings, workers=workers, clock=clock)
            assert summary.outcome == "complete"
            if dice.random() < 0.5:
                harvesters[0].harvest(client)
        everything = Harvester()
        everything.harvest(client)
        for harvester in harvesters:
            harvester.harvest(client)
            assert harvester.known == everything.known
    readable = [p for p in web.root.rglob("*.bin") if p.stat().st_mode & 0o444]
    assert len(everything.known) == len(readable)
