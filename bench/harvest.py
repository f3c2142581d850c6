"""Harvesting, beside sickle and oaipmh-scythe: records a second from the first request to searchable.

    python -m bench.harvest [--records 100000] [--terms 60 170] [--repeat 1] [--json FILE]

A provider serves generated records (bench/generated.py) in a process of its own. `indlet harvest`,
in another, takes them over loopback, stores them and commits the index; the start of its process is part of
the time, and is also told apart. sickle and scythe merely iterate the oai_dc records of the same server,
each in a process too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.crawl import FREQUENT
from bench.generated import collection

from indlet.formats import oai_dc
from indlet.model import Record, TermVector
from indlet.store import Store

FORMS = ("none", "tf_basic", "tf_compact")
SICKLE = """
import sys, time
from sickle import Sickle
begun = time.perf_counter()
count = sum(1 for _ in Sickle(sys.argv[1]).ListRecords(metadataPrefix="oai_dc"))
print(count, time.perf_counter() - begun)
"""
SCYTHE = """
import sys, time
from oaipmh_scythe import Scythe
begun = time.perf_counter()
with Scythe(sys.argv[1]) as scythe:
    count = sum(1 for _ in scythe.list_records(metadata_prefix="oai_dc"))
print(count, time.perf_counter() - begun)
"""


def fill(folder: Path, records: int, terms: int) -> None:
    """A store of generated records: Dublin Core with an abstract of 80 words, and about `terms` terms."""
    batch: list[Record] = []
    rng = random.Random(1)
    with Store.open(folder) as store:
        for number, (names, frequencies) in enumerate(collection(records, terms).documents()):
            # An abstract is told to be English by its small words, as everywhere.
            words = [
                w
                for name in names[:40]
                for w in ((name, rng.choice(FREQUENT)) if rng.random() < 0.8 else (name,))
            ]
            metadata = {
                "title": [f"Report {number}: the {' '.join(names[:4])} and the {' '.join(names[4:7])}"],
                "creator": [f"{names[0].title()}, {names[-1].title()}", "Ada Lovelace"],
                "subject": names[:4],
                "description": [" ".join(words)],
                "date": [str(1950 + number % 70)],
                "format": ["application/pdf"],
                "identifier": [f"http://example.org/content/papers/{number:06d}.pdf"],
                "language": ["en"],
            }
            vector = TermVector.of(dict(zip(names, frequencies, strict=True)), language="en")
            identifier = f"oai:example.org:papers/{number:06d}.pdf"
            batch.append(
                Record(identifier, metadata, vector, (f"papers:{number % 50}",), raw=oai_dc.write(metadata))
            )
            if len(batch) == 5000 or number == records - 1:
                with store.write() as tx:
                    tx.put(tx.origin("hierarchy", "papers"), batch)
                batch.clear()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Serving:
    """`indlet serve` over a folder, while it is open."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Serving:
        code = (
            "import sys,uvicorn\nfrom pathlib import Path\nfrom starlette.applications import Starlette\n"
            "from indlet.provider.serve import routes\nfrom indlet.settings import Node, Settings\n"
            "from indlet.store import Store\nport=int(sys.argv[2])\n"
            "settings=Settings(data=Path(sys.argv[1]), node=Node(port=port))\n"
            "app=Starlette(routes=routes(Store.open(sys.argv[1]), settings))\n"
            "uvicorn.run(app, port=port, log_level='error', access_log=False)\n"
        )
        self._process = subprocess.Popen([sys.executable, "-c", code, str(self._folder), str(self.port)])
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


def ours(root: str, form: str, data: Path) -> dict[str, Any]:
    """A harvest of everything in one form, stored and searchable."""
    url = root + "/oai" if form == "none" else root
    command = [
        sys.executable, "-m", "indlet", "harvest", url, "--index", form, "--data", str(data), "--json",
    ]  # fmt: skip
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    told = json.loads(process.stdout.read())[0]
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    seconds = time.perf_counter() - begun
    cpu = usage.ru_utime + usage.ru_stime
    del before
    assert told["outcome"] == "complete", told
    found = subprocess.run(
        [sys.executable, "-m", "indlet", "stats", "--data", str(data), "--json"],
        capture_output=True, check=True,
    )  # fmt: skip
    return {
        "harvester": "indlet", "form": "oai_dc" if form == "none" else form, "records": told["records"],
        "seconds": seconds, "harvest_seconds": told["seconds"], "rate": told["records"] / seconds, "cpu": cpu,
        "bytes": told["bytes"], "peak_mb": usage.ru_maxrss / 1024, "stats": json.loads(found.stdout),
    }  # fmt: skip


def other(name: str, script: str, root: str) -> dict[str, Any]:
    begun = time.perf_counter()
    told = subprocess.run(
        [sys.executable, "-c", script, root + "/oai"], capture_output=True, check=True, text=True
    ).stdout.split()
    seconds = time.perf_counter() - begun
    return {
        "harvester": name, "form": "oai_dc", "records": int(told[0]), "seconds": seconds,
        "harvest_seconds": float(told[1]), "rate": int(told[0]) / seconds,
    }  # fmt: skip


def compare(records: int, terms: int, repeat: int, only: tuple[str, ...]) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "provider"
        fill(folder, records, terms)
        with Serving(folder) as serving:
            for turn in range(repeat):
                if "sickle" in only:
                    rows.append(other("sickle", SICKLE, serving.root))
                if "scythe" in only:
                    rows.append(other("scythe", SCYTHE, serving.root))
                forms = [form for form in FORMS if form in only]
                rows += [ours(serving.root, form, Path(scratch) / f"{form}-{turn}") for form in forms]
    for row in rows:
        row["terms"] = terms
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--terms", type=int, nargs="+", default=[60, 170])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=["sickle", "scythe", *FORMS])
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rows = [
        row
        for terms in chosen.terms
        for row in compare(chosen.records, terms, chosen.repeat, tuple(chosen.only))
    ]
    print("harvester form         terms  records/s  x sickle  peak MB  MB wire")
    for row in rows:
        base = [r["rate"] for r in rows if r["harvester"] == "sickle" and r["terms"] == row["terms"]]
        ratio = f"{row['rate'] / (sum(base) / len(base)):.2f}" if base else ""
        print(
            f"{row['harvester']:<10}{row['form']:<12}{row['terms']:>6}{row['rate']:>11,.0f}{ratio:>10}"
            f"{row.get('peak_mb', 0):>9.0f}{row.get('bytes', 0) / 1e6:>9.1f}"
        )
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
