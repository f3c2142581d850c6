"""Harvesting a web server: the experiment of the mod_oai paper (Nelson, Van de Sompel, Liu et al. 2004).

    python -m bench.site [--files 5268] [--megabytes 292] [--tree FOLDER] [--server apache-event]
                         [--chunks 10,50,100,500,1000,5000] [--json FILE]

A generated site with the paper's numbers (5,268 files of 292 MB, of which the home page leads to 709), or a
copy of a real tree of pages. It is copied by wget from the home page, by wget from a full list of URLs, by
ListIdentifiers and wget, and by ListRecords with DIDL (`indlet mirror`): all of it once, then after a quarter
of the files was touched. Requests and bytes are those that the web server and the node answered. The crawl
of the node is told apart: it happens by itself. Then pages of several sizes. Needs wget and the server.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

import httpx
from bench.processes import cpu_of
from rich.console import Console
from rich.table import Table
from tests.provider.site.web_servers import Web, free_port, web_server

from indlet.service.harvest.client import Client
from indlet.service.mirror.fetch import Fetcher
from indlet.service.mirror.journal import MirrorJournal
from indlet.service.mirror.pages import ListReader
from indlet.service.mirror.run import Mirror
from indlet.settings import Harvest

BASELINE, UPDATE = 946_684_800, 1_009_843_200  # 2000-01-01 and 2002-01-01, as in the paper
LINKED = 709 / 5268
# Kind of file, share of the files, relative size.
MIX = ((".html", 0.42, 8), (".gif", 0.30, 20), (".pdf", 0.14, 250), (".txt", 0.08, 15), (".ps", 0.06, 150))


@dataclass
class Cost:
    way: str
    stage: str
    seconds: float
    requests: int
    bytes: int
    client_cpu: float
    server_cpu: float
    files: int  # that the copy holds afterwards
    current: int  # of them, equal to what is served


def generate(root: Path, files: int, megabytes: float, seed: int = 1) -> None:
    """A site of so many files; the home page leads to a seventh of them."""
    dice = random.Random(seed)
    kinds = dice.choices([m[0] for m in MIX], [m[1] for m in MIX], k=files - 1)
    scale = megabytes * 1e6 / sum({m[0]: m[2] for m in MIX}[kind] for kind in kinds)
    sizes = {m[0]: m[2] * scale for m in MIX}
    words = [f"word{n}" for n in range(2000)]
    names = []
    for number, kind in enumerate(kinds):
        place = root / f"d{number % 40}" / f"e{number % 7}" / f"{number}{kind}"
        place.parent.mkdir(parents=True, exist_ok=True)
        size = max(20, int(sizes[kind] * dice.lognormvariate(-0.3, 0.8)))
        if kind in (".html", ".txt"):
            place.write_text(" ".join(dice.choices(words, k=max(1, size // 8))))
        else:
            place.write_bytes(dice.randbytes(size))
        names.append(str(place.relative_to(root)))
    links = "".join(f'<a href="{quote(name)}">{name}</a>\n' for name in names[: int(files * LINKED) - 1])
    (root / "index.html").write_text(f"<html><body>{links}</body></html>")
    for place in root.rglob("*"):
        if place.is_file():
            os.utime(place, (BASELINE, BASELINE))


class Bench:
    def __init__(self, web: Web, work: Path) -> None:
        self.web, self.work = web, work
        self.log = web.run / "access.log"
        self.node = ""
        self.pid = 0

    @contextmanager
    def serving(self, records: int = 500, identifiers: int = 2000) -> Iterator[None]:
        """The node in a process of its own."""
        port = free_port()
        config = self.work / "indlet.toml"
        config.write_text(
            f'data = "{self.work / "data"}"\n[node]\nport = {port}\n[serve]\nrecords_per_page = {records}\n'
            f"identifiers_per_page = {identifiers}\n"
            f'[[site]]\nroot = "{self.web.root}"\nurl = "{self.web.url}"\nname = "site"\n'
        )
        command = [
            sys.executable,
            "-m",
            "indlet",
            "serve",
            "--config",
            str(config),
            "--no-crawl",
            "--no-portal",
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.node, self.pid = f"http://127.0.0.1:{port}/oai", process.pid
        try:
            while True:
                try:
                    httpx.get(f"{self.node}?verb=Identify")
                    break
                except httpx.HTTPError:
                    time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait()

    def crawl(self) -> float:
        begun = time.monotonic()
        config = self.work / "indlet.toml"
        subprocess.run(
            [sys.executable, "-m", "indlet", "crawl", "--config", str(config), "-q"],
            stdout=subprocess.DEVNULL,
            check=False,
        )
        return time.monotonic() - begun

    def measured(self, way: str, stage: str, run: Callable[[], tuple[int, int, Path, float]]) -> Cost:
        """What a way costs; `run` gives requests and bytes of the node, the copy, and processor seconds."""
        self.log.write_bytes(b"")
        before, begun = self._server_cpu(), time.monotonic()
        requests, size, copy, cpu = run()
        seconds = time.monotonic() - begun
        served = [int(line.split()[-1]) for line in self.log.read_text().splitlines()]
        return Cost(
            way, stage, round(seconds, 2), requests + len(served), size + sum(served), round(cpu, 2),
            round(self._server_cpu() - before, 2), *self._compared(copy),
        )  # fmt: skip

    def _server_cpu(self) -> float:
        pids = [
            int(p.name) for p in Path("/proc").iterdir() if p.name.isdecimal() and _is_server(p, self.web)
        ]
        return sum(cpu_of(pid) for pid in [*pids, *([self.pid] if self.pid else [])])

    def _compared(self, copy: Path) -> tuple[int, int]:
        """How many files a copy has, and how many are those of the site, by size and time."""
        base = copy / self.web.url.removeprefix("http://")
        found = [p for p in base.rglob("*") if p.is_file()] if base.exists() else []
        same = 0
        for place in found:
            original = self.web.root / place.relative_to(base)
            same += original.exists() and _facts(original) == _facts(place)
        return len(found), same

    # The ways

    def wget(self, copy: str, *arguments: str) -> Callable[[], tuple[int, int, Path, float]]:
        def run() -> tuple[int, int, Path, float]:
            folder = self.work / copy
            before = os.times()
            subprocess.run(
                ["wget", "-q", "-x", "-e", "robots=off", "-P", str(folder), *arguments], check=False
            )
            after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            return 0, 0, folder, cpu

        return run

    def listed(self, since: str) -> Callable[[], tuple[int, int, Path, float]]:
        def run() -> tuple[int, int, Path, float]:
            begun = time.process_time()
            requests, size, urls = self.identifiers(since)
            names = self.work / "urls"
            names.write_text("\n".join(urls))
            own = time.process_time() - begun
            _, _, folder, cpu = self.wget("listed", "-N", "-i", str(names))()
            return requests, size, folder, cpu + own

        return run

    def identifiers(self, since: str = "") -> tuple[int, int, list[str]]:
        client = Client(Harvest())
        lists = ListReader(client, self.node, Harvest())
        arguments = {"metadataPrefix": "oai_dc"} | ({"from": since} if since else {})
        urls = [
            item.identifier
            for page in lists.pages("ListIdentifiers", arguments)
            for item in page.page.items
            if not item.deleted
        ]
        client.close()
        return client.requests, client.wire, urls

    def mirrored(self, copy: str = "mirrored") -> Callable[[], tuple[int, int, Path, float]]:
        def run() -> tuple[int, int, Path, float]:
            begun = time.process_time()
            client, folder = Client(Harvest()), self.work / copy
            folder.mkdir(exist_ok=True)
            fetcher = Fetcher(self.node, "", (), 1 << 32, 3600)
            with MirrorJournal(folder).opened() as journal:
                done = Mirror(folder, ListReader(client, self.node, Harvest()), fetcher, journal).run(
                    self.node
                )
            assert not done.failed, done.failed
            client.close()
            fetcher.close()
            return client.requests, client.wire, folder, time.process_time() - begun

        return run


def _facts(place: Path) -> tuple[int, int]:
    found = place.stat()
    return found.st_size, int(found.st_mtime)


def _is_server(process: Path, web: Web) -> bool:
    try:
        return str(web.run).encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


def experiment(bench: Bench, chunks: list[int]) -> dict[str, object]:
    web = bench.web
    files = sorted(p for p in web.root.rglob("*") if p.is_file())
    everything = bench.work / "all"
    everything.write_text("\n".join(f"{web.url}/{quote(str(p.relative_to(web.root)))}" for p in files))
    costs: list[Cost] = []
    with bench.serving():
        first_crawl = bench.crawl()
        # Asked by HEAD, as the wget of the paper did: after a 304 wget follows no links of the page it has.
        recursive = ("-r", "-l", "inf", "-np", "-N", "--no-if-modified-since", f"{web.url}/index.html")
        before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for stage in ("baseline", "update"):
            if stage == "update":
                time.sleep(1.1)
                before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                for place in random.Random(2).sample(files, len(files) // 4):
                    os.utime(place, (UPDATE, UPDATE))
                second_crawl = bench.crawl()
            since = "" if stage == "baseline" else before
            costs += [
                bench.measured("wget from the home page", stage, bench.wget("home", *recursive)),
                bench.measured(
                    "wget from a full list", stage, bench.wget("full", "-N", "-i", str(everything))
                ),
                bench.measured("ListIdentifiers + wget", stage, bench.listed(since)),
                bench.measured("ListRecords, DIDL", stage, bench.mirrored()),
            ]
    sweep = []
    for size in chunks:
        with bench.serving(size, size):
            begun = time.monotonic()
            pages, _, _ = bench.identifiers()
            listed = time.monotonic() - begun
            cost = bench.measured("sweep", "", bench.mirrored(f"sweep-{size}"))
            shutil.rmtree(bench.work / f"sweep-{size}")
            sweep.append({"page": size, "identifiers": round(listed, 3), "identifier_pages": pages,
                          "records": cost.seconds, "record_requests": cost.requests})  # fmt: skip
    return {
        "server": web.kind,
        "files": len(files),
        "bytes": sum(p.stat().st_size for p in files),
        "first_crawl": round(first_crawl, 2),
        "second_crawl": round(second_crawl, 2),
        "costs": [asdict(cost) for cost in costs],
        "sweep": sweep,
    }


def shown(found: dict[str, object]) -> None:
    console = Console(width=140)
    told = {k: v for k, v in found.items() if k not in ("costs", "sweep")}
    console.print(", ".join(f"{name} {value}" for name, value in told.items()))
    for name in ("costs", "sweep"):
        rows = found[name]
        assert isinstance(rows, list)
        if rows:
            table = Table(*rows[0])
            for row in rows:
                table.add_row(*(f"{v:,}" if isinstance(v, int | float) else str(v) for v in row.values()))
            console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=5268)
    parser.add_argument("--megabytes", type=float, default=292)
    parser.add_argument("--tree", type=Path, help="copy this tree instead of generating one")
    parser.add_argument("--server", default="apache-event")
    parser.add_argument("--chunks", default="10,50,100,500,1000,5000")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, web_server(options.server) as web:
        if options.tree:
            shutil.copytree(options.tree, web.root, dirs_exist_ok=True)
            for place in web.root.rglob("*"):
                if place.is_file():
                    os.utime(place, (BASELINE, BASELINE))
        else:
            generate(web.root, options.files, options.megabytes)
        log = web.run / "access.log"
        if web.kind == "nginx":
            raise SystemExit("its access log is not set up for this; choose apache-event or apache-prefork")
        web.extra = f'LogFormat "%>s %O" bytes\nCustomLog {log} bytes'
        web.start()
        found = experiment(Bench(web, Path(work)), [int(size) for size in options.chunks.split(",") if size])
    shown(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
