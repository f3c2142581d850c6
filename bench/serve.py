"""Serving, beside pyoai and oai_repo: records a second, first and last page, memory.

    python -m bench.serve [--records 50000] [--rounds 20] [--pages 500 100] [--repeat 1] [--json FILE]

Every server runs in a uvicorn process of its own over a store of records in the shapes of seven systems, with
real texts (bench/works.py). Beside the others: all servers are up at once and get the same records
in pages of the same size; in each round each has a turn of a few pages, in drawn order, and ratios are made
within the round, so that a machine whose speed drifts does not decide. Then each form and coding of ours is
harvested whole, over loopback, by a client that follows tokens and parses nothing; after that an early page
(the second: the first also counts the list) and the last whole one are asked for in turn. Processor time is
that of the server.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import uvicorn
from bench.corpus import fill
from bench.processes import cpu_now, memory
from rich.console import Console
from rich.table import Table

from indlet.settings import Node, Serve, Settings
from indlet.store import Store

TOKEN = re.compile(rb"<(?:\w+:)?resumptionToken[^>]*>\s*([^<\s]+)")


def serve(kind: str, folder: Path, page: int, descriptor: int) -> None:
    """The server process."""
    sock = socket.socket(fileno=descriptor)
    store = Store.open(folder)
    if kind == "indlet":
        from indlet.provider.serve import application

        root = f"http://127.0.0.1:{sock.getsockname()[1]}"
        paging = replace(Serve(), records_per_page=page)
        app = application(store, replace(Settings(), node=replace(Node(), base_url=root), serve=paging))
    else:
        from bench import serve_others

        app = getattr(serve_others, kind)(store, page)
    # As our own server is set up; the same for all.
    config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", proxy_headers=False)
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


class Server:
    """A server process; `pages` follows one of its lists, again from its start where it ends."""

    def __init__(self, kind: str, folder: Path, page: int) -> None:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            sock.listen(64)
            descriptor = sock.fileno()
            command = [sys.executable, "-m", "bench.serve", "--serve", kind, folder, page, descriptor]
            self._process = subprocess.Popen([*map(str, command)], pass_fds=[descriptor])
            self._connection = http.client.HTTPConnection("127.0.0.1", sock.getsockname()[1], timeout=120)
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        self.page("/oai?verb=Identify", "identity")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.wait(20)

    def page(self, url: str, coding: str) -> tuple[bytes, bytes]:
        return _page(self._connection, url, coding)

    def connect_anew(self) -> None:
        """Connections that nobody used for a while are closed by the servers."""
        self._connection.close()
        self.page("/oai?verb=Identify", "identity")

    def pages(self, request: str, coding: str) -> Iterator[Asked]:
        path, _, query = request.partition("?")
        following = request
        while True:
            raw, plain = self.page(following, coding)
            token = next_token(plain)
            yield Asked(following, plain.count(b"<datestamp>"), len(raw), not token)
            verb = query.partition("&")[0]
            following = f"{path}?{verb}&resumptionToken={token}" if token else request


class Asked(NamedTuple):
    """One page of a list."""

    url: str
    records: int
    bytes: int
    last: bool


def harvest(folder: Path, request: str, coding: str) -> Run:
    """One list of ours, to its end."""
    with Server("indlet", folder, 500) as server:
        used, started, asked = cpu_now(server.pid), time.perf_counter(), list[Asked]()
        for page in server.pages(request, coding):
            asked.append(page)
            if page.last:
                break
        seconds, used = time.perf_counter() - started, cpu_now(server.pid) - used
        private = memory(server.pid, "RssAnon")
        first, last = _times(server, [asked[:2][-1].url, asked[-2:][0].url], coding)
    count, size = sum(page.records for page in asked), sum(page.bytes for page in asked)
    return Run("indlet", request, coding, count, seconds, size, first, last, used, private)


def beside(folder: Path, page: int, rounds: int) -> list[dict[str, Any]]:
    """A few pages of everybody's in each round, in drawn order: records, seconds, processor seconds."""
    turns, order = list[dict[str, Any]](), random.Random(1)
    with contextlib.ExitStack() as stack:
        servers = {kind: stack.enter_context(Server(kind, folder, page)) for kind in TURNS_OF}
        lists = {kind: server.pages(DC, "identity") for kind, server in servers.items()}
        for number in range(rounds):
            for kind in order.sample(list(servers), len(servers)):
                server = servers[kind]
                server.connect_anew()
                used, started = cpu_now(server.pid), time.perf_counter()
                records = sum(next(lists[kind]).records for _ in range(TURNS_OF[kind] * 500 // page))
                seconds, used = time.perf_counter() - started, cpu_now(server.pid) - used
                if number:  # the first is there to warm up
                    turns.append(
                        {"server": kind, "page": page, "round": number, "records": records,
                         "seconds": seconds, "cpu_seconds": used}
                    )  # fmt: skip
    return turns


def ratios(turns: list[dict[str, Any]], kind: str, page: int, key: str) -> list[float]:
    """How many times as many records as another server we give out for each second, round by round."""
    found = {(one["server"], one["round"]): one[key] / one["records"] for one in turns if one["page"] == page}
    rounds = sorted({number for _, number in found})
    return [found[kind, number] / found["indlet", number] for number in rounds]


def _times(server: Server, urls: list[str], coding: str) -> list[float]:
    """The median time of each page in milliseconds; they are asked for in turn, so that a busy moment hits
    all of them.
    """
    times: list[list[float]] = [[] for _ in urls]
    for _ in range(TURNS):
        for url, own in zip(urls, times, strict=True):
            begun = time.perf_counter()
            server.page(url, coding)
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


TURNS_OF = {"indlet": 10, "pyoai": 2, "oairepo": 2}  # pages of 500 records, or so many records, in a turn
TURNS = 25  # in which an early and the last page are asked for
DC = "/oai?verb=ListRecords&metadataPrefix=oai_dc"
COMPACT = "/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_compact"
HEADERS = "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc"
BASIC = "/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_basic"


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=20, help="beside the others, for each size of page")
    parser.add_argument("--pages", type=int, nargs="*", default=[500, 100], help="sizes, beside the others")
    parser.add_argument("--repeat", type=int, default=1, help="of all")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    told: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        large, small = Path(scratch) / "large", Path(scratch) / "small"
        fill(large, options.records, 0, real=True)
        fill(small, options.records // 10, 0, real=True)
        plan = [(small, DC, "identity")]
        plan += [(large, DC, coding) for coding in ("identity", "gzip", "br", "zstd")]
        plan += [(small, COMPACT, "identity")]
        plan += [(large, COMPACT, coding) for coding in ("identity", "gzip", "zstd")]
        plan += [(large, BASIC, "identity"), (large, HEADERS, "identity")]
        for _ in range(options.repeat):
            turns = [one for page in options.pages for one in beside(large, page, options.rounds + 1)]
            tell(turns, options.pages)
            runs = [harvest(*chosen) for chosen in plan]
            report(runs)
            each = [asdict(run) | {"records_per_second": round(run.rate)} for run in runs]
            told.append({"rounds": turns, "runs": each})
    if options.json:
        options.json.write_text(json.dumps(told, indent=1) + "\n")


def tell(turns: list[dict[str, Any]], pages: list[int]) -> None:
    for page in pages:
        for kind in ("pyoai", "oairepo"):
            for key in ("cpu_seconds", "seconds"):
                found = sorted(ratios(turns, kind, page, key))
                print(
                    f"oai_dc beside {kind}, pages of {page}, by {key}: {statistics.median(found):.2f} times "
                    f"({found[0]:.2f} to {found[-1]:.2f} in {len(found)} rounds)"
                )


def form_of(request: str) -> str:
    """What a list is in."""
    if "ListIdentifiers" in request:
        return "headers"
    return "oai_dc" if "indexPrefix" not in request else f"oai_dc + {request.rpartition('=')[2]}"


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
            form_of(run.request),
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


if __name__ == "__main__":
    main()
