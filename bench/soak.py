"""A node under everything at once, for as long as is asked: does it stay fast, whole and of one size?

    python -m bench.soak [--minutes 60] [--records 100000] [--rate 50] [--json FILE] [--plot FILE]

A node as `indlet serve` runs it is searched at a fixed rate, by page and by API with all facets, while it
harvests a source that changes at a fixed pace, crawls a folder that grows, is asked for feeds, has clients
that send and read slowly, and has a second source that dies half-way. A request's time counts from the moment
it was due, so a server that stalls cannot hide it. Every second: p50, p95, p99 and errors of that second,
memory, descriptors, threads, child processes and processor time of the node, segments and merges of its
index. SIGINT and SIGTERM end the run early: what there is until then is told and written.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote_plus

from bench.generated import collection, queries
from bench.portal import TERMS, ask, fill
from bench.processes import TICKS, Node, Server, free_port

from indlet.model import Record, TermVector
from indlet.service.index import follow
from indlet.service.index.embedded import manifest
from indlet.store import Store

SETTINGS = """
data = "{data}"
[node]
port = {port}
[analysis]
language = ""
stem = false
stop = false
[crawl]
every = "10s"
settle_seconds = 0.0
workers = 1
[harvest]
every = "5s"
retries = 1
backoff_seconds = 0.1
[[hierarchy]]
root = "{files}"
name = "files"
[[source]]
url = "{steady}"
name = "steady"
[[source]]
url = "{dying}"
name = "dying"
"""
PROVIDED = '[[hierarchy]]\nroot = "{root}"\nname = "{name}"\n'
SLOW_CLIENTS = 5


@dataclass
class Second:
    """What happened within one second of the run."""

    at: int
    times: list[float] = field(default_factory=list)
    errors: int = 0
    memory_mb: float = 0.0
    own_mb: float = 0.0  # without mapped files
    cpu: float = 0.0  # seconds of processor time of the node since it was started, without children
    segments: int = 0
    merges: int = 0  # merged segments that were seen so far
    descriptors: int = 0
    threads: int = 0
    children: int = 0


@dataclass(frozen=True)
class Summary:
    what: str
    requests: int
    errors: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    worst_ms: float


def share(times: list[float], part: float) -> float:
    ordered = sorted(times)
    return round(ordered[min(len(ordered) - 1, int(part * len(ordered)))], 2) if ordered else 0.0


def summary(what: str, times: list[float], errors: int) -> Summary:
    return Summary(what, len(times), errors, *(share(times, part) for part in (0.5, 0.95, 0.99, 1.0)))


class Soak:
    """The requests of a run and what came of them."""

    def __init__(
        self, port: int, pid: int, seconds: int, rate: float, paths: list[tuple[str, str]], index: Path
    ) -> None:
        self.port, self.pid, self.rate, self.index = port, pid, rate, index
        self._merged: set[str] = set()
        self.seconds = [Second(number) for number in range(seconds + 60)]
        self.length = seconds
        self.kinds: dict[str, tuple[list[float], list[int]]] = {}
        self._paths = paths
        self._begun = 0.0

    async def run(self) -> None:
        self._begun = time.perf_counter()
        everything = asyncio.gather(
            self._searches(), self._feeds(), self._sampled(), *(self._slow() for _ in range(SLOW_CLIENTS))
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, everything.cancel)
        try:
            await everything
        except asyncio.CancelledError:
            self.length = min(self.length, int(time.perf_counter() - self._begun))

    async def _one(self, due: float, kind: str, path: str) -> None:
        await asyncio.sleep(max(0.0, self._begun + due - time.perf_counter()))
        status = await ask(self.port, path)
        took = (time.perf_counter() - self._begun - due) * 1000
        times, errors = self.kinds.setdefault(kind, ([], []))
        times.append(took)
        second = self.seconds[int(due)]
        if kind != "feed":
            second.times.append(took)
        if status != 200:
            errors.append(status)
            second.errors += 1

    async def _searches(self) -> None:
        running: set[asyncio.Task[None]] = set()
        for number in range(int(self.length * self.rate)):
            due = number / self.rate
            kind, path = self._paths[number % len(self._paths)]
            await asyncio.sleep(max(0.0, self._begun + due - 0.2 - time.perf_counter()))
            task = asyncio.create_task(self._one(due, kind, path))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)

    async def _feeds(self) -> None:
        for number in range(self.length):
            await self._one(float(number), "feed", ("/feed.atom", "/feed.rss")[number % 2])

    async def _sampled(self) -> None:
        for number in range(self.length):
            await asyncio.sleep(max(0.0, self._begun + number - time.perf_counter()))
            second = self.seconds[number]
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{self.pid}/status").read_text()
                told = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
                second.memory_mb = round(int(told["VmRSS"].split()[0]) / 1024, 1)
                second.own_mb = round(int(told["RssAnon"].split()[0]) / 1024, 1)
                fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
                second.cpu = sum(map(int, fields[11:13])) / TICKS
                names = {entry.segment.name for entry in manifest.read(self.index).entries}
                self._merged |= {name for name in names if name.startswith(f"{manifest.MERGED}-")}
                second.segments, second.merges = len(names), len(self._merged)
                second.threads = int(told["Threads"])
                second.descriptors = len(os.listdir(f"/proc/{self.pid}/fd"))  # noqa: PTH208 - the kernel's list
                tasks = Path(f"/proc/{self.pid}/task").glob("*/children")
                second.children = sum(len(one.read_text().split()) for one in tasks)

    async def _slow(self) -> None:
        """A client that sends its request a byte at a time and reads the answer so slowly."""
        request = b"GET /api/search?q=*&limit=200 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        end = self._begun + self.length
        while time.perf_counter() < end:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1024)
                for byte in request:
                    writer.write(bytes([byte]))
                    await asyncio.sleep(0.05)
                for _ in range(20):
                    if time.perf_counter() > end or not await reader.read(512):
                        break
                    await asyncio.sleep(0.5)
                writer.close()


@contextlib.contextmanager
def changing(remote: Path, files: Path, pace: int, dying: Server, half: float) -> Iterator[None]:
    """Records of the steady source change at a pace a second, the folder grows, the other source dies."""
    over = threading.Event()

    def work() -> None:
        begun, number, alive = time.monotonic(), 0, True
        words = [f"w{n}" for n in range(2000)]
        chance = random.Random(7)
        with Store.open(remote) as store:
            while not over.wait(1.0):
                batch = []
                for _ in range(pace):
                    number += 1
                    terms = chance.sample(words, 40)
                    vector = TermVector.of(dict.fromkeys(terms, 1))
                    metadata = {"title": [" ".join(terms[:6])], "date": ["1999"], "type": ["Text"]}
                    batch.append(Record(f"oai:steady:{number % 20_000}", metadata, vector, ("steady:new",)))
                with store.write() as tx:
                    tx.put(tx.origin("hierarchy", "there"), batch)
                (files / f"note-{number}.txt").write_text(" ".join(chance.sample(words, 60)))
                if alive and time.monotonic() - begun > half:
                    alive = False
                    dying.__exit__(None, None, None)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def run(records: int, rate: float, minutes: float, pace: int) -> tuple[Soak, list[Summary]]:
    seconds = int(minutes * 60)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        place = Path(name)
        files, data = place / "files", place / "data"
        files.mkdir()
        documents = collection(records, TERMS)
        fill(data, "here", documents, "source")
        with Store.open(data) as store:
            follow.catch_up(store)
        sources = {}
        for source in ("there", "dying"):
            fill(place / f"{source}-data", source, collection(2000, TERMS, seed=len(source)), "hierarchy")
            (place / source).mkdir()
            more = PROVIDED.format(root=place / source, name=source)
            sources[source] = Node(place, source, more, data=place / f"{source}-data")
        stack.enter_context(sources["there"])
        sources["dying"].__enter__()
        port = free_port()
        config = place / "node.toml"
        config.write_text(
            SETTINGS.format(
                data=data, port=port, files=files, steady=sources["there"].root, dying=sources["dying"].root
            )
        )
        command = [sys.executable, "-P", "-m", "indlet", "serve", "--config", config]
        node = stack.enter_context(Server(command, f"http://127.0.0.1:{port}/healthz"))
        texts = [quote_plus(" ".join(words)) for words in queries(documents, 2000)]
        paths = [
            ("page", f"/?q={text}") if number % 2 else ("api", f"/api/search?q={text}&facets=all")
            for number, text in enumerate(texts)
        ]
        warm = Soak(port, node.pid, 10, 10.0, paths, data / "index")
        asyncio.run(warm.run())
        soak = Soak(port, node.pid, seconds, rate, paths, data / "index")
        with changing(place / "there-data", files, pace, sources["dying"], seconds / 2):
            asyncio.run(soak.run())
    soak.seconds = soak.seconds[: soak.length]
    found = [summary(kind, times, len(errors)) for kind, (times, errors) in sorted(soak.kinds.items())]
    return soak, found


def span(rows: list[dict[str, float]]) -> dict[str, float]:
    """Ten minutes in a line: what grows?"""
    last, length = rows[-1], len(rows)
    return {
        "minutes": round((last["at"] + 1) / 60, 1),
        "seconds_above_50_ms": round(sum(row["p95_ms"] > 50 for row in rows) / length, 3),
        "middle_p95_ms": share([row["p95_ms"] for row in rows], 0.5),
        "worst_p99_ms": max(row["p99_ms"] for row in rows),
        "cpu_of_a_second": round((last["cpu"] - rows[0]["cpu"]) / length, 3),
        "most_segments": max(row["segments"] for row in rows),
        "merges": last["merges"],
        "memory_mb": last["memory_mb"],
        "own_mb": last["own_mb"],
        "most_descriptors": max(row["descriptors"] for row in rows),
    }


def plot(soak: Soak, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (upper, middle, lower) = pyplot.subplots(3, 1, sharex=True, figsize=(9, 8))
    at = [second.at / 60 for second in soak.seconds]
    for part, label in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        upper.plot(at, [share(second.times, part) for second in soak.seconds], label=label, linewidth=0.8)
    upper.set(ylabel="milliseconds", yscale="log", title="Searches with all facets, while all else goes on")
    upper.axhline(50, color="grey", linestyle=":")
    upper.legend()
    middle.plot(at, [second.memory_mb for second in soak.seconds], label="all")
    middle.plot(at, [second.own_mb for second in soak.seconds], label="without mapped files")
    middle.set(ylabel="memory of the node, MB", ylim=(0, None))
    middle.legend()
    lower.plot(at, [second.descriptors for second in soak.seconds], label="descriptors")
    lower.plot(at, [second.threads for second in soak.seconds], label="threads")
    lower.plot(at, [second.children for second in soak.seconds], label="child processes")
    lower.plot(at, [second.segments for second in soak.seconds], label="segments of the index")
    lower.set(xlabel="minutes", ylim=(0, None))
    lower.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=50.0, help="searches a second")
    parser.add_argument("--pace", type=int, default=100, help="changed records a second at the source")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    if given.plot and find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib, which is not installed")
    soak, found = run(given.records, given.rate, given.minutes, given.pace)
    for one in found:
        print(json.dumps(asdict(one)))
    rows = [
        {"at": s.at, "p50_ms": share(s.times, 0.5), "p95_ms": share(s.times, 0.95)}
        | {"p99_ms": share(s.times, 0.99)}
        | {name: value for name, value in asdict(s).items() if name not in ("at", "times")}
        for s in soak.seconds
    ]
    for first in range(0, len(rows), 600):
        print(json.dumps(span(rows[first : first + 600])))
    if given.json:
        given.json.write_text(json.dumps({"summary": [asdict(one) for one in found], "seconds": rows}))
    if given.plot:
        plot(soak, given.plot)
    if any(one.errors for one in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
