"""Serving, beside pyoai and oai_repo: records a second, first and last page, memory.

    python -m bench.serve [--records 100000] [--terms 120] [--others 10000] [--repeat 1] [--json FILE]

Every server runs in a uvicorn process of its own over a store of generated records (bench/corpus.py), and is
harvested over loopback by a client that follows tokens and parses nothing. After that an early page (the
second: the first also counts the list) and the last whole one are asked for in turn. The others get the same
records from the same store, by their bulk interfaces; they are asked for `--others` records, as their speed
does not depend on how many there are. Client and server share the machine's cores.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from bench.corpus import fill
from bench.processes import cpu_of, memory
from rich.console import Console
from rich.table import Table

from indlet.settings import Node, Settings
from indlet.store import Store

TOKEN = re.compile(rb"<(?:\w+:)?resumptionToken[^>]*>([^<]+)<")


def serve(kind: str, folder: Path, descriptor: int) -> None:
    """The server process."""
    sock = socket.socket(fileno=descriptor)
    store = Store.open(folder)
    if kind == "indlet":
        from indlet.provider.serve import application

        root = f"http://127.0.0.1:{sock.getsockname()[1]}"
        app = application(store, replace(Settings(), node=replace(Node(), base_url=root)))
    else:
        from bench import serve_others

        app = getattr(serve_others, kind)(store)
    config = uvicorn.Config(app, log_level="error", lifespan="off", proxy_headers=False)
    uvicorn.Server(config).run(sockets=[sock])


@dataclass
class Run:
    server: str
    request: str
    coding: str
    records: int
    seconds: float
    bytes: int
    first_ms: float
    last_ms: float
    cpu_seconds: float  # of the server
    memory_mb: float  # private memory of the server after the harvest; mapped pages of the store not counted

    @property
    def rate(self) -> float:
        return self.records / self.seconds

    @property
    def effort(self) -> float:
        """Records for each second of the server's processor time: steady on a busy machine."""
        return self.records / max(self.cpu_seconds, 0.01)  # the clock ticks in hundredths


def harvest(kind: str, folder: Path, request: str, coding: str, most: int) -> Run:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(64)
        port = sock.getsockname()[1]
        command = [sys.executable, "-m", "bench.serve", "--serve", kind, str(folder), str(sock.fileno())]
        process = subprocess.Popen(command, pass_fds=[sock.fileno()])
    try:
        path, _, query = request.partition("?")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        _page(connection, f"{path}?verb=Identify", "identity")
        count, size, asked = 0, 0, list[str]()
        used = cpu_of(process.pid)
        started = time.perf_counter()
        following = f"{path}?{query}"
        while following and count < most:
            asked.append(following)
            raw, plain = _page(connection, following, coding)
            count += plain.count(b"<datestamp>")
            size += len(raw)
            token = next_token(plain)
            verb = query.partition("&")[0]
            following = f"{path}?{verb}&resumptionToken={token}" if token else ""
        seconds = time.perf_counter() - started
        used = cpu_of(process.pid) - used
        private = memory(process.pid, "RssAnon")
        first, last = _times(connection, [asked[:2][-1], asked[-2:][0]], coding)
    finally:
        process.terminate()
        process.wait(20)
    return Run(kind, request, coding, count, seconds, size, first, last, used, private)


def _times(connection: http.client.HTTPConnection, urls: list[str], coding: str) -> list[float]:
    """The median time of each page in milliseconds; they are asked for in turn, so that a busy moment hits
    all of them.
    """
    times: list[list[float]] = [[] for _ in urls]
    for _ in range(TURNS):
        for url, own in zip(urls, times, strict=True):
            begun = time.perf_counter()
            _page(connection, url, coding)
            own.append(1000 * (time.perf_counter() - begun))
    return list(map(statistics.median, times))


def _page(connection: http.client.HTTPConnection, url: str, coding: str) -> tuple[bytes, bytes]:
    connection.request("GET", url, headers={"Accept-Encoding": coding})
    response = connection.getresponse()
    raw = response.read()
    if response.status != 200:
        raise SystemExit(f"{url}: {response.status} {raw[:300]!r}")
    return raw, decoded(raw, response.headers.get("Content-Encoding", "identity"))


def decoded(raw: bytes, coding: str) -> bytes:
    """A body without its coding."""
    match coding:
        case "gzip":
            import gzip

            return gzip.decompress(raw)
        case "br":
            import brotli  # type: ignore[import-untyped]

            return bytes(brotli.decompress(raw))
        case "zstd":
            import zstandard

            return zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    return raw


def next_token(page: bytes) -> str:
    """The token that a page of a list ends with; empty if the list has ended."""
    found = TOKEN.search(page, max(0, page.rfind(b"resumptionToken") - 2000))
    return found[1].decode() if found else ""


TURNS = 25  # in which an early and the last page are asked for
DC = "/oai?verb=ListRecords&metadataPrefix=oai_dc"
COMPACT = "/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_compact"
BASIC = "/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_basic"


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--terms", type=int, default=120)
    parser.add_argument(
        "--others", type=int, default=10_000, help="how many records the others are asked for"
    )
    parser.add_argument("--repeat", type=int, default=1, help="turns; every server has its own in each")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    turns: list[list[Run]] = []
    with tempfile.TemporaryDirectory() as scratch:
        large, small = Path(scratch) / "large", Path(scratch) / "small"
        fill(large, options.records, options.terms)
        fill(small, options.records // 10, options.terms)
        plan = [
            ("indlet", small, DC, "identity"),
            ("indlet", large, DC, "identity"),
            ("indlet", large, DC, "gzip"),
            ("indlet", large, DC, "br"),
            ("indlet", large, DC, "zstd"),
            ("indlet", small, COMPACT, "identity"),
            ("indlet", large, COMPACT, "identity"),
            ("indlet", large, COMPACT, "gzip"),
            ("indlet", large, COMPACT, "zstd"),
            ("indlet", large, BASIC, "identity"),
            ("pyoai", large, DC, "identity"),
            ("oairepo", large, DC, "identity"),
        ]
        for _ in range(options.repeat):
            runs: list[Run] = []
            for kind, folder, request, coding in plan:
                most = options.records if kind == "indlet" else options.others
                runs.append(harvest(kind, folder, request, coding, most))
                print(f"{kind} {request} {coding}: {runs[-1].rate:,.0f} records/s", file=sys.stderr)
            report(runs)
            turns.append(runs)
    if options.json:
        told: list[dict[str, Any]] = [
            {"runs": [asdict(run) | {"records_per_second": round(run.rate)} for run in runs]}
            for runs in turns
        ]
        options.json.write_text(json.dumps(told, indent=1) + "\n")


def report(runs: list[Run]) -> None:
    table = Table(
        "server",
        "request",
        "coding",
        "records",
        "records/s",
        "per CPU second",
        "bytes/record",
        "first page",
        "last page",
        "memory",
    )
    for run in runs:
        table.add_row(
            run.server,
            "oai_dc" if "indexPrefix" not in run.request else f"oai_dc + {run.request.rpartition('=')[2]}",
            run.coding,
            f"{run.records:,}",
            f"{run.rate:,.0f}",
            f"{run.effort:,.0f}",
            f"{run.bytes / run.records:,.0f}",
            f"{run.first_ms:.1f} ms",
            f"{run.last_ms:.1f} ms",
            f"{run.memory_mb:.0f} MB",
        )
    Console(width=130).print(table)
    plain = [run for run in runs if run.request == DC and run.coding == "identity"]
    ours = max((run for run in plain if run.server == "indlet"), key=lambda run: run.records)
    for other in plain:
        if other.server != "indlet":
            print(
                f"oai_dc beside {other.server}: {ours.rate / other.rate:.1f} times as fast, "
                f"{ours.effort / other.effort:.1f} times by processor time"
            )


if __name__ == "__main__":
    main()
