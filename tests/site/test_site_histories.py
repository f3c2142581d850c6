"""An incremental harvester misses nothing, whatever happens to files, times, rights or the clock."""

from __future__ import annotations

import os
import random
import time
from dataclasses import replace
from pathlib import Path

import httpx
from lxml import etree
from starlette.testclient import TestClient
from tests.site.conftest import OAI
from tests.site.web_servers import Web

from indlet.provider.pipeline import crawl
from indlet.provider.serve import application
from indlet.provider.workers import Workers
from indlet.settings import Crawl, Serve, Settings, Site
from indlet.store import Store

HISTORIES = 6  # bench.site runs a hundred


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


def happen(web: Web, root: Path, clock: Clock, dice: random.Random) -> None:
    """One thing that happens to the files below a folder of the server's, or to the clock."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    here = root.relative_to(web.root)
    old = time.time() - dice.choice([0, 5, 3600, 10**6, 10**8])
    kind = dice.choice(
        ["new", "new", "change", "restore", "rename", "delete", "touch", "lock", "unlock", "clock"]
    )
    some = dice.choice(files) if files else None
    if kind == "new" or some is None:
        name = f"{here}/d{dice.randrange(3)}/{dice.randrange(1000)}.bin"
        web.write(name, dice.randbytes(dice.randrange(1, 99)), at=old)
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


def history(web: Web, folder: Path, workers: Workers, seed: int) -> None:
    """A random history of a site of its own; then every harvester knows what a full harvest tells."""
    dice, clock, root = random.Random(seed), Clock(), web.root / f"h{seed}"
    (root / "d0").mkdir(parents=True)
    settings = Settings(
        data=folder / "data",
        crawl=Crawl(settle_seconds=0.0),
        site=(Site(str(root), f"{web.url}/h{seed}", name="site"),),
        serve=replace(Serve(), records_per_page=dice.choice([2, 5, 500])),
    )
    with Store.open(folder / "data", clock=clock) as store:
        client = TestClient(application(store, settings, clock=clock))
        harvesters = [Harvester(), Harvester()]
        for _ in range(12):
            for _ in range(dice.randrange(1, 6)):
                happen(web, root, clock, dice)
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
    readable = [p for p in root.rglob("*.bin") if p.stat().st_mode & 0o444]
    assert len(everything.known) == len(readable)


def test_nothing_that_changed_is_missed(apache: Web, tmp_path: Path, workers: Workers) -> None:
    apache.start()
    for seed in range(HISTORIES):
        history(apache, tmp_path / str(seed), workers, seed)
