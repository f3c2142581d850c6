"""The portal under load: latency of the search page and of /api/search, quiet and while a harvest runs.

    python -m bench.portal [--records 150000] [--rate 50] [--seconds 20] [--json FILE]

One process serves the portal over generated records (bench/generated.py). In the second phase another
source is harvested into the same store and index over and over, as `indlet serve` does it, and all of its
records have changed each time: what is served changes all the time and keeps its size. Requests go out
at a fixed rate, whether or not earlier ones have been answered, and their time counts from the moment they
were due: a server that stalls cannot hide it. Every query is asked once for a page and once for the API.

Then wrk, where it is installed, asks as fast as it is answered over a few connections: how many requests a
second the portal bears. wrk keeps no rate, and does not ask while it waits: the goal is for the fixed rate.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote_plus

from bench.generated import Collection, collection, queries
from bench.harvest import Serving
from rich.console import Console
from rich.table import Table

from indlet.formats.metadata import oai_dc
from indlet.model import Record, TermVector
from indlet.store import Store

TERMS = 60
CONNECTIONS = 4  # of wrk
TYPES = ("Text", "Technical report", "Article", "Thesis", "Dataset")


@dataclass(frozen=True)
class Measured:
    what: str
    phase: str
    requests: int
    errors: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    worst_ms: float


@dataclass(frozen=True)
class Driven:
    """What wrk tells of a closed loop: each connection asks again when it has its answer."""

    what: str
    phase: str
    connections: int
    requests: int
    errors: int
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    worst_ms: float


def fill(folder: Path, name: str, documents: Collection, kind: str) -> None:
    """A store of generated records that no other collection shares, of seven decades and five types."""
    with Store.open(folder) as store:
        batch: list[Record] = []
        for number, (terms, frequencies) in enumerate(documents.documents()):
            metadata = {
                "title": [f"Report {number}: {' '.join(terms[:7])}"],
                "creator": [f"{terms[0].title()} Group", f"{terms[-1].title()} Group"],
                "subject": terms[:4],
                "description": [" ".join(terms[:50])],
                "date": [str(1950 + number * 7 % 70)],
                "type": [TYPES[number % len(TYPES)]],
                "identifier": [f"http://{name}.example.org/{number:06d}.pdf"],
                "language": ["en"],
            }
            vector = TermVector.of(dict(zip(terms, frequencies, strict=True)))
            identifier, sets = f"oai:{name}.example.org:{number:06d}", (f"{name}:{number % 50}",)
            batch.append(Record(identifier, metadata, vector, sets, raw=oai_dc.write(metadata)))
            if len(batch) == 5000 or number == documents.ends.size - 1:
                with store.write() as tx:
                    tx.put(tx.origin(kind, name), batch)
                batch = []


def serve(folder: Path, descriptor: int, sources: Sequence[str]) -> None:
    """The server process; SIGUSR1 begins a harvest that goes on until the process ends."""
    import uvicorn

    from indlet.node.harvest_child import harvest_in_child
    from indlet.service.harvest.progress import Progress
    from indlet.service.harvest.run import RunOptions
    from indlet.settings import Analysis, Node, Settings, Source
    from indlet.web.app import application

    sock = socket.socket(fileno=descriptor)
    # The words are made up: no language has rules for them.
    plain = Analysis(language="", stem=False, stop=False)
    settings = Settings(data=folder, node=Node(port=sock.getsockname()[1]), analysis=plain)
    store = Store.open(folder)
    app = application(store, settings)
    wanted, halt = threading.Event(), threading.Event()

    def harvest() -> None:
        wanted.wait()
        for number, url in enumerate(itertools.cycle(sources), 1):
            options = RunOptions(full=True)
            harvest_in_child(settings, Source(url, name="there"), Progress("there"), options, stop=halt)
            if halt.is_set():
                return
            print("harvested", number, flush=True)

    threading.Thread(target=harvest, daemon=True).start()
    signal.signal(signal.SIGUSR1, lambda *_: wanted.set())
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[sock])
    halt.set()


async def ask(port: int, path: str) -> int:
    """The status of an answer that was read to its end; 0 if there was none."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        body = await asyncio.wait_for(reader.read(-1), 30)
        writer.close()
        return int(body[9:12])
    except (OSError, ValueError, TimeoutError):
        return 0


async def load(port: int, paths: list[str], rate: float) -> tuple[list[float], int]:
    """Milliseconds from when each request was due, and how many failed."""
    begun = time.perf_counter()
    times: list[float] = []
    errors = 0

    async def one(number: int, path: str) -> None:
        nonlocal errors
        due = begun + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        status = await ask(port, path)
        times.append((time.perf_counter() - due) * 1000)
        errors += status != 200

    await asyncio.gather(*(one(number, path) for number, path in enumerate(paths)))
    return times, errors


def measured(what: str, phase: str, port: int, paths: list[str], rate: float) -> Measured:
    times, errors = asyncio.run(load(port, paths, rate))
    times.sort()

    def at(share: float) -> float:
        return round(times[min(len(times) - 1, int(share * len(times)))], 2)

    return Measured(what, phase, len(times), errors, at(0.5), at(0.95), at(0.99), round(times[-1], 2))


def driven(what: str, phase: str, port: int, paths: list[str], seconds: float) -> Driven:
    """wrk over the addresses, round and round."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(paths) + "\n")
        listed.flush()
        command = [
            "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(round(seconds), 1)}s", "--timeout", "30s", "--latency",
            "-s", str(Path(__file__).with_suffix(".lua")), f"http://127.0.0.1:{port}",
        ]  # fmt: skip
        done = subprocess.run(
            command, env=os.environ | {"PATHS": listed.name}, check=True, capture_output=True, text=True
        )
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("TOLD "))[5:])
    per_second = round(told["requests"] / told["seconds"], 1)
    times = [round(told[key], 2) for key in ("p50_ms", "p95_ms", "p99_ms", "worst_ms")]
    return Driven(what, phase, CONNECTIONS, told["requests"], told["errors"], per_second, *times)


def run(records: int, rate: float, seconds: float, at_source: int) -> tuple[list[Measured], list[Driven]]:
    found: list[Measured] = []
    loops: list[Driven] = []
    with tempfile.TemporaryDirectory() as place:
        folder, one, other = Path(place, "portal"), Path(place, "one"), Path(place, "other")
        documents = collection(records, TERMS)
        fill(folder, "here", documents, "source")
        for seed, version in enumerate((one, other), 3):
            fill(version, "there", collection(at_source, TERMS, seed=seed), "hierarchy")
        from indlet.service.index import follow

        with Store.open(folder) as store:
            follow.catch_up(store)
        asked = queries(documents, int(rate * seconds) * 2)
        with Serving(one) as before, Serving(other) as after, socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            sock.listen(512)
            port = sock.getsockname()[1]
            code = [
                sys.executable,
                "-m",
                "bench.portal",
                "--serve",
                str(folder),
                str(sock.fileno()),
                before.root,
                after.root,
            ]
            # Providers stand for other machines: they must not take this one's cores from the portal.
            for provider in (before, after):
                assert provider._process is not None
                os.setpriority(os.PRIO_PROCESS, provider._process.pid, 10)
            process = subprocess.Popen(code, pass_fds=[sock.fileno()], stdout=subprocess.PIPE, text=True)
            try:
                warm = [f"/?q={quote_plus(' '.join(words))}" for words in asked[:100]]
                asyncio.run(load(port, warm, 20))
                for phase in ("quiet", "harvesting"):
                    if phase == "harvesting":
                        process.send_signal(signal.SIGUSR1)
                        time.sleep(1)
                    half = len(asked) // 2
                    some = asked[:half] if phase == "quiet" else asked[half:]
                    texts = [quote_plus(" ".join(words)) for words in some]
                    pages = [f"/?q={text}" for text in texts]
                    answers = [f"/api/search?q={text}&facets=all" for text in texts]
                    for what, paths in (("search page", pages), ("/api/search", answers)):
                        found.append(measured(what, phase, port, paths, rate))
                        if shutil.which("wrk"):
                            loops.append(driven(what, phase, port, paths, seconds / 2))
                        if process.poll() is not None:
                            raise SystemExit(f"the portal ended with status {process.returncode}")
            finally:
                process.terminate()
                process.wait(30)
            harvested = (process.stdout.read() if process.stdout else "").count("harvested")
            print(
                f"{harvested} harvests of {at_source:,} records came to their end meanwhile", file=sys.stderr
            )
    return found, loops


def report(found: Sequence[Measured | Driven], title: str) -> None:
    table = Table(title=title)
    for column in found[0].__dataclass_fields__:
        shown = column.replace("_ms", " ms").replace("_", " ")
        table.add_column(shown, justify="left" if column in ("what", "phase") else "right")
    for one in found:
        table.add_row(*map(str, asdict(one).values()))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=150_000)
    parser.add_argument("--source-records", type=int, default=50_000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(Path(given.serve[0]), int(given.serve[1]), given.serve[2:])
        return
    found, loops = run(given.records, given.rate, given.seconds, given.source_records)
    report(found, f"{given.records:,} records, {given.rate:g} requests/s, {os.cpu_count()} cores")
    if loops:
        report(loops, f"wrk, {CONNECTIONS} connections, as fast as they are answered")
    if given.json:
        value = {
            "records": given.records,
            "rate": given.rate,
            "measured": [asdict(one) for one in found],
            "wrk": [asdict(one) for one in loops],
        }
        given.json.write_text(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    main()
