"""Harvesting, beside other harvesters: records a second from the first request to searchable.

    python -m bench.harvest [--records 100000] [--terms 60 170] [--repeat 3] [--only …] [--json FILE]
    INDLET_DATA=… python -m bench.harvest --texts real …

A provider serves records (bench/corpus.py), of real texts or generated, in a process of its own. `indlet
harvest`, in another, takes them over loopback, stores them and commits the index. Others
(bench/harvest_others.py) merely iterate the oai_dc records of the same server, each in a process too. All
take turns.

The time counts from the first request, as the server sees it, to the end of the process: by then ours is
searchable. The time from the start of the process stands beside it, for everybody. One more turn has a
quarter of the records: a harvest that streams needs no more memory for four times as many. Harvesters that
are very slow or less used have that turn alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.corpus import fill
from bench.processes import Cost, cpu_of, free_port, indlet, run

from bench import harvest_others

FORMS: Final = ("none", "tf_basic", "tf_compact")
# The first request since it was last asked, by the clock that all processes of a machine share.
SERVER: Final = """
import sys, time, uvicorn
from pathlib import Path
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from indlet.provider.serve import routes
from indlet.settings import Node, Settings
from indlet.store import Store

port = int(sys.argv[2])
provider = Starlette(
    routes=routes(Store.open(sys.argv[1]), Settings(data=Path(sys.argv[1]), node=Node(port=port)))
)
first = None

async def metered(scope, receive, send):
    global first
    if scope["type"] == "http" and scope["path"] == "/first-request":
        answer, first = JSONResponse(first), None
        await answer(scope, receive, send)
        return
    if scope["type"] == "http" and first is None:
        first = time.clock_gettime(time.CLOCK_MONOTONIC)
    await provider(scope, receive, send)

uvicorn.run(metered, port=port, log_level="error", access_log=False)
"""


class Serving:
    """A provider over a folder, while it is open."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu(self) -> float:
        assert self._process is not None
        return cpu_of(self._process.pid)

    def first_request(self) -> float | None:
        """When the first request since the last call came, on the machine's monotonic clock."""
        with urllib.request.urlopen(f"{self.root}/first-request", timeout=20) as answer:
            told = json.load(answer)
        return None if told is None else float(told)

    def __enter__(self) -> Serving:
        self._process = subprocess.Popen([sys.executable, "-c", SERVER, str(self._folder), str(self.port)])
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return self
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the provider did not come up")

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()


def timed(serving: Serving, command: list[str]) -> tuple[Cost, dict[str, Any]]:
    """A harvest by a program, and what it cost on both sides."""
    serving.first_request()
    before = serving.cpu()
    cost = run(command, cwd=Path(__file__).parents[1])
    server = serving.cpu() - before
    first = serving.first_request()
    assert first is not None, f"{command}: no request came"
    return cost, {
        "seconds": cost.ended - first, "with_start_seconds": cost.seconds, "cpu": cost.cpu,
        "server_cpu": server, "peak_mb": cost.peak_mb, "private_mb": cost.private_mb,
    }  # fmt: skip


def ours(serving: Serving, form: str, data: Path) -> dict[str, Any]:
    """A harvest of everything in one form, stored and searchable."""
    url = serving.root + "/oai" if form == "none" else serving.root
    cost, row = timed(serving, indlet("harvest", url, "--index", form, "--data", data, "--json"))
    (told,) = json.loads(cost.output)
    assert told["outcome"] == "complete", told
    stats = json.loads(run(indlet("stats", "--data", data, "--json")).output)
    return {
        "harvester": "indlet", "form": "oai_dc" if form == "none" else form, "records": told["records"],
        "bytes": told["bytes"], "stats": stats, **row,
    }  # fmt: skip


def other(serving: Serving, name: str, data: Path) -> dict[str, Any]:
    url = serving.root + "/oai"
    cost, row = timed(serving, harvest_others.command(name, url, data))
    records = harvest_others.taken(name, cost.output, url, data)
    return {"harvester": name, "form": "oai_dc", "records": records, **row}


def compare(records: int, terms: int, repeat: int, only: tuple[str, ...], texts: str) -> list[dict[str, Any]]:
    """Everybody in turn, `repeat` times; the rows of one size."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "provider"
        fill(folder, records, terms, real=texts == "real")
        with Serving(folder) as serving:
            for turn in range(repeat):
                for name in only:
                    data = Path(scratch) / f"{name}-{turn}"
                    rows.append((ours if name in FORMS else other)(serving, name, data))
                    shutil.rmtree(data, ignore_errors=True)
                    assert rows[-1]["records"] == records, rows[-1]
                    rows[-1]["turn"] = turn
    for row in rows:
        row["terms"], row["texts"] = terms, texts
        row["rate"] = row["records"] / row["seconds"]
        row["with_start_rate"] = row["records"] / row["with_start_seconds"]
    return rows


def prepare() -> None:
    """Small harvests that nobody times: afterwards byte code and files are in the caches."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "provider"
        fill(folder, 1200, 60)
        with Serving(folder) as serving:
            for form in FORMS:
                ours(serving, form, Path(scratch) / form)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--terms", type=int, nargs="+", default=[60, 170])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--texts", choices=("real", "generated"), default="generated")
    parser.add_argument("--only", nargs="+", default=[*harvest_others.NAMES, *FORMS])
    parser.add_argument(
        "--no-quarter", action="store_true", help="leave out the turn with a quarter of the records"
    )
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    absent = {name: harvest_others.missing(name) for name in chosen.only if name not in FORMS}
    for reason in filter(None, absent.values()):
        print(f"left out: {reason}", file=sys.stderr)
    only = tuple(name for name in chosen.only if not absent.get(name))
    rows = []
    prepare()
    principal = tuple(name for name in only if name not in harvest_others.ASIDE)
    for terms in chosen.terms:
        if not chosen.no_quarter:
            # The metadata that they take does not depend on the number of terms.
            some = only if terms == chosen.terms[0] else principal
            rows += compare(chosen.records // 4, terms, 1, some, chosen.texts)
        rows += compare(chosen.records, terms, chosen.repeat, principal, chosen.texts)
    report(rows)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2))


def report(rows: list[dict[str, Any]]) -> None:
    """Medians over the turns; the ratio to sickle is made within a turn."""
    print(
        "harvester form         terms  records  records/s  x sickle  with start  x sickle"
        "  CPU s  server  peak MB  private"
    )
    keys = dict.fromkeys((row["harvester"], row["form"], row["terms"], row["records"]) for row in rows)
    for key in keys:
        own = [r for r in rows if (r["harvester"], r["form"], r["terms"], r["records"]) == key]
        base = [r for r in rows if (r["harvester"], *key[2:]) == ("sickle", r["terms"], r["records"])]

        def middle(name: str, own: list[dict[str, Any]] = own) -> float:
            return float(median(r[name] for r in own))

        def ratio(name: str, own: list[dict[str, Any]] = own, base: list[dict[str, Any]] = base) -> str:
            return f"{median(o[name] / b[name] for o, b in zip(own, base, strict=True)):.2f}" if base else ""

        print(
            f"{key[0]:<10}{key[1]:<12}{key[2]:>6}{key[3]:>9,}{middle('rate'):>11,.0f}{ratio('rate'):>10}"
            f"{middle('with_start_rate'):>12,.0f}{ratio('with_start_rate'):>10}{middle('cpu'):>7.1f}"
            f"{middle('server_cpu'):>8.1f}{middle('peak_mb'):>9.0f}{middle('private_mb'):>9.0f}"
        )


if __name__ == "__main__":
    main()
