"""What a daily round costs as a collection grows, when sites keep each other's records.

    INDLET_DATA=… python -m bench.mesh [--records 72000 …] [--sites 2 4] [--changed 0.01] [--json FILE]

Each site holds its share of the real records below INDLET_DATA/marc (a folder, or marc.tar.gz there) and
harvests all others over HTTP on loopback, compressed as a network would see it. Where more `--records` are
asked for than there are, the rest are the real ones again under other numbers. Measured: the first exchange;
then a round in which a share of every site's records has changed; then one in which nothing has. Seconds are
those of the processor, both ends together, all sites in one process, one after the other; `clock` is what
passed meanwhile. At last one site is stopped, and its records are searched for at another.

    python -m bench.mesh --agree [--sites 4 8] [--changes 10] [--json FILE]

How long it takes until all sites have a change, in harvest intervals: each site harvests its neighbours once
in every interval, at a moment of its own, drawn at random; one site changes a record at a random moment.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import tempfile
import threading
import time
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import uvicorn
from bench.duplicates import marc_files

from indlet.formats.iso2709 import Marc, iso2709_records
from indlet.formats.metadata import marc21
from indlet.model import Record
from indlet.provider.serve import application
from indlet.service.pipeline import harvest_all
from indlet.service.search.library import Library
from indlet.settings import Harvest, Node, Settings, Source
from indlet.store import Store, open_store
from indlet.text import Analyzer, Policy

Metadata = dict[str, list[str]]


@dataclass(frozen=True)
class Cost:
    """Of one round over all sites."""

    seconds: float
    clock: float
    requests: int
    bytes: int
    records: int
    rounds: int = 1


class Site:
    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        bound = socket.create_server(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.settings = Settings(
            data=folder / name, node=Node(name=name, port=port),
            harvest=Harvest(retries=1, compress_loopback=True),
        )  # fmt: skip
        self.store: Store = open_store(self.settings.data)
        app = application(self.store, self.settings)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [bound]})
        self._thread.start()

    def put(self, records: list[Record]) -> None:
        with self.store.write() as tx:
            tx.put(tx.origin("hierarchy", self.name), records)

    def harvest(self, others: list[Site]) -> Cost:
        sources = [Source(o.url, name=o.name, republish=True) for o in others]
        done = harvest_all(self.store, self.settings, sources, index=False)
        assert all(p.outcome == "complete" for p in done), [p.reason for p in done]
        return Cost(
            0.0, 0.0, sum(p.requests for p in done), sum(p.bytes for p in done), sum(p.changed for p in done)
        )

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    def live(self) -> int:
        with self.store.read() as view:
            return sum(live for live, _ in view.totals().values())


def one_round(sites: list[Site]) -> Cost:
    begun, clock = time.process_time(), time.perf_counter()
    done = [site.harvest([o for o in sites if o is not site]) for site in sites]
    spent, passed = time.process_time() - begun, time.perf_counter() - clock
    return _sum(done, spent, passed)


def until_silence(sites: list[Site]) -> Cost:
    """Rounds until one changes nothing; the cost of those that did."""
    found = list[Cost]()
    while (cost := one_round(sites)).records:
        found.append(cost)
    return _sum(found, sum(c.seconds for c in found), sum(c.clock for c in found), len(found))


def _sum(costs: list[Cost], seconds: float, clock: float, rounds: int = 1) -> Cost:
    return Cost(
        round(seconds, 2), round(clock, 2), sum(c.requests for c in costs), sum(c.bytes for c in costs),
        sum(c.records for c in costs), rounds,
    )  # fmt: skip


def described(data: Path) -> list[Metadata]:
    return [
        {name: list(values) for name, values in marc21.dublin_core(record).items()}
        for content in marc_files(data)
        for record in iso2709_records(content)
        if isinstance(record, Marc) and record.leader[6:7] != "z"
    ]


def experiment(real: list[Metadata], count: int, sites: int, changed: float) -> dict[str, object]:
    analyzer = Analyzer(Policy())

    def record(site: str, number: int, metadata: Metadata, edition: str = "") -> Record:
        title = [f"{next(iter(metadata.get('title', ())), 'untitled')}{edition}"]
        said = {**metadata, "title": title}
        vector = analyzer.vector(" ".join(v for values in said.values() for v in values), "en")
        return Record(f"oai:{site}.example.org:{number}", said, vector, ("reports",))

    with tempfile.TemporaryDirectory(prefix="indlet-mesh-") as folder:
        nodes = [Site(Path(folder), f"site{n}") for n in range(sites)]
        shelves = [list[tuple[int, Metadata]]() for _ in nodes]
        for number, metadata in enumerate(islice(cycle(real), count)):
            shelves[number % sites].append((number, metadata))
        for node, shelf in zip(nodes, shelves, strict=True):
            node.put([record(node.name, n, metadata) for n, metadata in shelf])
        first = until_silence(nodes)
        for node, shelf in zip(nodes, shelves, strict=True):
            few = shelf[: max(1, round(changed * len(shelf)))]
            node.put([record(node.name, n, metadata, ", revised") for n, metadata in few])
        time.sleep(2.1)  # datestamps have seconds: the changes are clear of the round that follows
        daily = one_round(nodes)
        time.sleep(2.1)
        one_round(nodes)  # what the overlap brings once more
        idle = one_round(nodes)
        agree = {node.live() for node in nodes} == {count}
        nodes[0].stop()
        settings = nodes[1].settings
        with Library.open(settings.data, settings) as library:
            down = library.search("source:site0", limit=1).total
            revised = library.search("source:site0 revised", limit=1).total
        for node in nodes:
            node.stop()
            node.store.close()
    return {
        "records": count, "sites": sites, "real": len(real), "agree": agree,
        "first": vars(first), "daily": vars(daily), "idle": vars(idle),
        "origin_down": {"records": len(shelves[0]), "found": down, "revised": revised},
    }  # fmt: skip


def neighbours(topology: str, sites: int) -> list[tuple[int, ...]]:
    """Whom each site harvests."""
    if topology == "ring":
        return [((n + 1) % sites,) for n in range(sites)]
    if topology == "chain":
        return [tuple(m for m in (n - 1, n + 1) if 0 <= m < sites) for n in range(sites)]
    if topology == "star":
        return [tuple(range(1, sites)) if n == 0 else (0,) for n in range(sites)]
    return [tuple(m for m in range(sites) if m != n) for n in range(sites)]


def agreement(topology: str, sites: int, changes: int) -> dict[str, object]:
    """Intervals from a change until the last site has it: the mean and the longest of some changes."""
    chance, took = random.Random(f"{topology} {sites}"), list[float]()
    with tempfile.TemporaryDirectory(prefix="indlet-mesh-") as folder:
        nodes = [Site(Path(folder), f"site{n}") for n in range(sites)]
        others = neighbours(topology, sites)
        for n, node in enumerate(nodes):
            node.put([Record(f"oai:{node.name}.example.org:{n}", {"title": ["0"]})])
        for edition in range(1, changes + 1):
            phases = sorted((chance.random(), n) for n in range(sites))
            origin, begun = chance.randrange(sites), chance.random()
            identifier, title = f"oai:site{origin}.example.org:{origin}", {"title": [str(edition)]}
            nodes[origin].put([Record(identifier, title)])
            missing, interval = set(range(sites)) - {origin}, 0
            while missing:
                for phase, n in phases:
                    moment = interval + phase
                    if moment > begun and missing:
                        nodes[n].harvest([nodes[m] for m in others[n]])
                        with nodes[n].store.read() as view:
                            held = view.get(identifier)
                        if n in missing and held and json.loads(held.metadata) == title:
                            missing.discard(n)
                            if not missing:
                                took.append(moment - begun)
                interval += 1
                assert interval < 5 * sites, f"{topology}: a change does not arrive"
        for node in nodes:
            node.stop()
            node.store.close()
    return {
        "topology": topology, "sites": sites, "changes": changes,
        "mean": round(sum(took) / len(took), 2), "longest": round(max(took), 2),
    }  # fmt: skip


def _row(one: dict[str, object]) -> str:
    first, daily, idle = (one[name] for name in ("first", "daily", "idle"))
    assert isinstance(first, dict)
    assert isinstance(daily, dict)
    assert isinstance(idle, dict)
    return (
        f"{one['records']:7,}  {one['sites']:5}  {first['seconds']:7.1f}  {daily['seconds']:7.2f}  "
        f"{daily['requests']:8}  {daily['bytes'] / 1000:8,.0f}  {daily['records']:7,}  "
        f"{idle['seconds']:6.2f}  {idle['bytes'] / 1000:7,.0f}  {one['agree']!s:5}  "
        f"{one['origin_down']}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[9000, 18000, 36000, 72000])
    parser.add_argument("--sites", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--changed", type=float, default=0.01)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--agree", action="store_true", help="intervals until all sites have a change")
    parser.add_argument("--changes", type=int, default=10)
    given = parser.parse_args()
    found = agreements(given.sites, given.changes) if given.agree else rounds(given)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def agreements(sites: list[int], changes: int) -> list[dict[str, object]]:
    found = []
    for topology in ("full", "star", "ring", "chain"):
        for count in sites:
            found.append(agreement(topology, count, changes))
            print(json.dumps(found[-1]), flush=True)
    return found


def rounds(given: argparse.Namespace) -> list[dict[str, object]]:
    real = described(Path(os.environ.get("INDLET_DATA", ".")) / "marc")
    print(f"{len(real):,} real records; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        "records  sites  first s  daily s  requests  kB moved  changed  idle s  idle kB  agree  origin down"
    )
    found = []
    for sites in given.sites:
        for count in given.records:
            found.append(experiment(real, count, sites, given.changed))
            print(_row(found[-1]), flush=True)
    return found


if __name__ == "__main__":
    main()
