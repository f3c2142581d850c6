"""The experiment of the mod_oai paper (Nelson, Van de Sompel, Liu et al. 2004) with real servers.

    python -m bench.site --files 5268 --megabytes 292 --server apache-event --json RESULT
    python -m bench.site --tree /usr/share/doc/linux-doc-6.1/html --server nginx
    python -m bench.site --histories 100

A site is copied in four ways: by wget from the home page, by wget from a full list of URLs, by
ListIdentifiers and wget, and by ListRecords with DIDL (`indlet mirror`). Three stages: all of it once, after
a quarter of the files was touched, and after the same quarter got other bytes; and several turns of these.
Every way is a program of its own, its start included; requests and bytes (of bodies) are those that the web
server and the node answered. The crawl of the node is told apart: it happens by itself. Then pages of several
sizes. `--histories`: random histories after each of which incremental harvesters must know what a full
harvest tells. Needs wget and the servers.
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
from statistics import median
from urllib.parse import quote

import httpx
from bench.processes import as_installed, cpu_of, descendants, indlet
from rich.console import Console
from rich.table import Table
from tests.site.test_site_histories import history
from tests.site.web_servers import Web, free_port, web_server

from indlet.provider.workers import Workers
from indlet.settings import Settings
from indlet.text import policy_of

FREE_BYTES, MOST_BYTES = 1 << 29, 1 << 33
BASELINE, UPDATE = 946_684_800, 1_009_843_200  # 2000-01-01 and 2002-01-01, as in the paper
LINKED = 709 / 5268
# Kind of file, share of the files, relative size.
MIX = ((".html", 0.42, 8), (".gif", 0.30, 20), (".pdf", 0.14, 250), (".txt", 0.08, 15), (".ps", 0.06, 150))


LISTS = (("ListIdentifiers", "oai_dc"), ("ListRecords", "oai_didl"))
READ = """
import sys
from indlet.net.settings import Harvest
from indlet.net.client import Client
from indlet.site.mirror.pages import ListReader
url, verb, prefix = sys.argv[1:]
for page in ListReader(Client(Harvest()), url, Harvest()).pages(verb, {"metadataPrefix": prefix}):
    for record in page.records:
        pass
"""


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


def plant(tree: Path, root: Path) -> None:
    """A real tree as a site: its files with their names, without links and what nobody may read."""
    for place in sorted(tree.rglob("*")):
        if place.is_file() and not place.is_symlink() and os.access(place, os.R_OK):
            target = root / place.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(place, target)
            os.utime(target, (BASELINE, BASELINE))


Way = Callable[[], Path]  # does it, and says where the copy is


class Bench:
    def __init__(self, web: Web, work: Path) -> None:
        self.web, self.work = web, work
        self.log = web.run / "access.log"
        self.told = work / "requests.jsonl"
        self.node = ""
        self.pid = 0

    @contextmanager
    def serving(self, records: int = 500, identifiers: int = 2000) -> Iterator[None]:
        """The node in a process of its own."""
        port = free_port()
        config = self.work / "indlet.toml"
        config.write_text(
            f'data = "{self.work / "data"}"\n[node]\nport = {port}\n[serve]\nrecords_per_page = {records}\n'
            f'identifiers_per_page = {identifiers}\n[log]\nlevel = "info"\nformat = "json"\n'
            f'[[site]]\nroot = "{self.web.root}"\nurl = "{self.web.url}"\nname = "site"\n'
        )
        command = indlet("serve", "--config", config, "--no-crawl", "--no-portal")
        with self.told.open("ab") as told:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=told, env=as_installed())
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

    def crawl(self) -> tuple[float, float]:
        """Seconds and processor seconds of a crawl."""
        begun, before = time.monotonic(), children_cpu()
        command = indlet("crawl", "--config", self.work / "indlet.toml", "-q")
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False, env=as_installed())
        return round(time.monotonic() - begun, 2), round(children_cpu() - before, 2)

    def measured(self, way: str, stage: str, run: Way) -> Cost:
        self.log.write_bytes(b"")
        self.told.write_bytes(b"")
        os.sync()  # a way that waits for the disk must not wait for what the one before left to be written
        server, begun, client = self._server_cpu(), time.monotonic(), children_cpu()
        copy = run()
        seconds, client = time.monotonic() - begun, children_cpu() - client
        answers = [int(line.split()[1]) for line in self.log.read_text().splitlines()]
        answers += [one["bytes"] for line in self.told.read_text().splitlines()
                    if (one := json.loads(line)).get("event") == "request"]  # fmt: skip
        return Cost(
            way, stage, round(seconds, 2), len(answers), sum(answers), round(client, 2),
            round(self._server_cpu() - server, 2), *self._compared(copy),
        )  # fmt: skip

    def _server_cpu(self) -> float:
        return sum(cpu_of(pid) for top in (self.web.pid, self.pid) for pid in [top, *descendants(top)])

    def _compared(self, copy: Path) -> tuple[int, int]:
        """How many files a copy has, and how many are those of the site, by bytes and time."""
        base = copy / self.web.url.removeprefix("http://")
        found = [p for p in base.rglob("*") if p.is_file()] if base.exists() else []
        same = 0
        for place in found:
            original = self.web.root / place.relative_to(base)
            same += original.exists() and _facts(original) == _facts(place)
        return len(found), same

    # The ways

    def wget(self, copy: str, *arguments: str | Path) -> Way:
        folder = self.work / copy

        def run() -> Path:
            command = ["wget", "-q", "-x", "-e", "robots=off", "-P", folder, *arguments]
            subprocess.run(command, check=False)
            return folder

        return run

    def listed(self, copy: str, since: str) -> Way:
        urls = self.work / "urls"

        def run() -> Path:
            with urls.open("wb") as out:
                given = ["--since", since] if since else []
                command = indlet("mirror", self.node, "--list", *given)
                subprocess.run(command, stdout=out, check=True, env=as_installed())
            return self.wget(copy, "-N", "-i", urls)()

        return run

    def read(self, verb: str, prefix: str) -> Way:
        """A list to its end. Nothing is written: what new files cost depends on the machine's memory."""

        def run() -> Path:
            command = [sys.executable, "-c", READ, self.node, verb, prefix]
            subprocess.run(command, check=True, env=as_installed())
            return self.work / "nothing"

        return run

    def mirrored(self, copy: str) -> Way:
        folder = self.work / copy

        def run() -> Path:
            command = indlet("mirror", self.node, "--to", folder, "-q")
            subprocess.run(command, check=True, env=as_installed())
            return folder

        return run


@contextmanager
def full_memory(folder: Path) -> Iterator[None]:
    """With less free memory, so that new files take the place of cached ones.

    A virtual machine may hand free memory back to its host, and whoever uses that first pays up to five times
    the processor time for the same file. This makes it rarer; medians of several turns do the rest.
    """
    holes = folder / "holes"
    with holes.open("wb") as file:
        file.truncate(max(0, min(_free() - FREE_BYTES, MOST_BYTES)))
    with holes.open("rb", buffering=0) as file:
        while file.read(1 << 24):
            pass
    yield
    holes.unlink()


def _free() -> int:
    (line,) = (one for one in Path("/proc/meminfo").read_text().splitlines() if one.startswith("MemFree:"))
    return int(line.split()[1]) * 1024


def children_cpu() -> float:
    found = os.times()
    return found.children_user + found.children_system


def _facts(place: Path) -> tuple[bytes, int]:
    return place.read_bytes(), int(place.stat().st_mtime)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


STAGES = ("baseline", "touched", "changed")


def experiment(bench: Bench, chunks: list[int], turns: int, only_pages: bool) -> dict[str, object]:
    """So many turns of the three stages, each with new copies; then the sizes of pages."""
    files = [p for p in bench.web.root.rglob("*") if p.is_file()]
    found: dict[str, object] = {
        "server": bench.web.kind,
        "files": len(files),
        "bytes": sum(p.stat().st_size for p in files),
        "began": _now(),
        "turns": turns,
    }
    if only_pages:
        with bench.serving():
            found["crawls"] = [bench.crawl()]
    else:
        found |= staged(bench, turns)
    return found | {"sweep": swept(bench, chunks, turns)}


def change(place: Path, mark: str) -> None:
    """Other bytes, as many as before: the last ones become a mark. Links stay."""
    before = place.read_bytes()
    place.write_bytes((before[: -len(mark)] + mark.encode())[: len(before)])


def staged(bench: Bench, turns: int) -> dict[str, object]:
    """What each way costs in each stage; in each turn another way comes first."""
    web = bench.web
    files = sorted(p for p in web.root.rglob("*") if p.is_file())
    some = random.Random(2).sample([p for p in files if p.name != "index.html"], len(files) // 4)
    everything = bench.work / "all"
    everything.write_text("\n".join(f"{web.url}/{quote(str(p.relative_to(web.root)))}" for p in files))
    # Asked by HEAD, as the wget of the paper did: after a 304 wget follows no links of the page it has.
    recursive = ("-r", "-l", "inf", "-np", "-N", "--no-if-modified-since", f"{web.url}/index.html")
    costs, crawls = list[Cost](), list[tuple[float, float]]()
    with bench.serving():
        for turn in range(turns):
            for stage in STAGES:
                before = ""
                if stage != "baseline":
                    time.sleep(1.1)
                    before = _now()
                moment = UPDATE + 86_400 * (2 * turn + (stage == "changed"))
                for number, place in enumerate(some if stage != "baseline" else ()):
                    if stage == "changed":
                        change(place, f"<!-- {turn} {number} -->")
                    os.utime(place, (moment, moment))
                if stage != "baseline" or not turn:
                    crawls.append(bench.crawl())
                ways = [
                    ("wget from the home page", bench.wget(f"home{turn}", *recursive)),
                    ("wget from a full list", bench.wget(f"full{turn}", "-N", "-i", str(everything))),
                    ("ListIdentifiers + wget", bench.listed(f"listed{turn}", before)),
                    ("ListRecords, DIDL", bench.mirrored(f"mirrored{turn}")),
                ]
                costs += [bench.measured(way, stage, run) for way, run in ways[turn % 4 :] + ways[: turn % 4]]
    return {"crawls": crawls, "costs": [asdict(cost) for cost in costs]}


def swept(bench: Bench, sizes: list[int], turns: int) -> list[dict[str, object]]:
    """What lists of both verbs cost with pages of these sizes: medians of turns over all of them."""
    found: dict[int, list[tuple[Cost, ...]]] = {size: [] for size in sizes}
    for _ in range(turns):
        for size in sizes:
            with bench.serving(size, size):
                found[size].append(tuple(bench.measured("", "", bench.read(*what)) for what in LISTS))
    rows = list[dict[str, object]]()
    for size, costs in found.items():
        rows.append({"page": size})
        for verb, ones in zip(("identifiers", "records"), zip(*costs, strict=True), strict=True):
            cpu = median(one.client_cpu + one.server_cpu for one in ones)
            rows[-1] |= {
                f"{verb}_requests": ones[0].requests,
                f"{verb}_seconds": median(one.seconds for one in ones),
                f"{verb}_cpu": round(cpu, 2),
            }
    return rows


def histories(number: int) -> None:
    """So many random histories; AssertionError where a harvester has missed something."""
    settings = Settings()
    workers = Workers(1, settings.crawl.limits, policy_of(settings.analysis))
    with web_server("apache-event") as web, workers:
        web.start()
        for seed in range(number):
            with tempfile.TemporaryDirectory() as work:
                history(web, Path(work), workers, seed)
    print(f"{number} histories: no incremental harvester missed anything")


def shown(found: dict[str, object]) -> None:
    console = Console(width=140)
    told = {k: v for k, v in found.items() if k not in ("costs", "sweep")}
    console.print(", ".join(f"{name} {value}" for name, value in told.items()))
    for name in ("costs", "sweep"):
        rows = found.get(name, [])
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
    parser.add_argument("--only-pages", action="store_true", help="the sizes of pages alone")
    parser.add_argument("--turns", type=int, default=3, help="how often each way is measured")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--histories", type=int, default=0, help="run so many random histories instead")
    options = parser.parse_args()
    if options.histories:
        histories(options.histories)
        if options.json:
            options.json.write_text(json.dumps({"histories": options.histories, "missed": 0}))
        return
    with (
        tempfile.TemporaryDirectory() as work,
        web_server(options.server) as web,
        full_memory(Path(work)),
    ):
        if options.tree:
            plant(options.tree, web.root)
        else:
            generate(web.root, options.files, options.megabytes)
        log = web.run / "access.log"
        web.extra = f'LogFormat "%>s %B" bytes\nCustomLog {log} bytes'
        if web.kind == "nginx":
            web.extra, web.log_format = (
                f"access_log {log} bytes;",
                "log_format bytes '$status $body_bytes_sent';",
            )
        web.start()
        chunks = [int(size) for size in options.chunks.split(",") if size]
        found = experiment(Bench(web, Path(work)), chunks, options.turns, options.only_pages)
    shown(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
