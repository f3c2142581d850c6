"""How documents of repositories are found: by which way, at what cost, and through kills.

    python -m bench.sidecar [--records 210] [--long 10000] [--kills 5] [--json FILE]

`--records` for each of the eight platforms of tests/sidecar/platforms.py, two thirds of them with a document;
documents are real ones (INDLET_DATA/documents) that can be read, or else generated. The right file is the one
whose digest is that of the record's document. `--long` records on one host, with files on two broken hosts
among them; the process that fetches is killed again and again. All servers are on loopback, without pauses.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.sidecar.platforms import PLATFORMS, ArXiv, Kind, PlatformItem, PlatformServer, Response, items
from tests.sidecar.test_sidecar_pace import CHILD, ManyHosts

from indlet.errors import ExtractionError
from indlet.net.settings import Harvest
from indlet.service.pipeline import harvest_all
from indlet.settings import Limits, Settings, Sidecar, Source
from indlet.sidecar.extraction import extractor
from indlet.sidecar.run import fetch_documents
from indlet.sidecar.status import status_of
from indlet.sidecar.visit import FetchedFile
from indlet.store import DocumentState, open_store

LARGEST = 4 << 20


def real_documents() -> list[bytes]:
    """PDF files of other programs' test suites that have text, each once; none without INDLET_DATA."""
    folder = Path(os.environ.get("INDLET_DATA", "/nowhere")) / "documents"
    read, found = extractor(Limits(seconds=10)), dict[bytes, None]()
    for archive in sorted(folder.glob("*.tar.gz")):
        with tarfile.open(archive) as tar:
            for member in tar:
                if not member.isfile() or not member.name.endswith(".pdf") or member.size > LARGEST:
                    continue
                body = (tar.extractfile(member) or sys.stdin.buffer).read()
                try:
                    if body.startswith(b"%PDF-") and len(read(body, member.name).text.split()) > 20:
                        found[body] = None
                except ExtractionError:
                    continue
    return list(found)


def with_documents(found: list[PlatformItem], bodies: list[bytes]) -> list[PlatformItem]:
    if not bodies:
        return found
    return [replace(item, body=bodies[item.number % len(bodies)]) for item in found]


def settings_for(server: PlatformServer, folder: Path) -> Settings:
    source = Source(server.url, name=server.name, fulltext="fetch")
    return Settings(
        data=folder, harvest=Harvest(retries=0, from_email="bench@example.org"),
        sidecar=Sidecar(delay_seconds=0.0), source=(source,),
    )  # fmt: skip


def known_documents(folder: Path, server: PlatformServer) -> dict[str, DocumentState]:
    with open_store(folder) as store, store.read() as view:
        return view.document_states(1, [server.identifier(item) for item in server.items.values()])


def digest(body: bytes) -> str:
    return FetchedFile("", body).digest


def one_platform(platform: type[PlatformServer], count: int, bodies: list[bytes]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place, platform(with_documents(items(count), bodies)) as server:
        folder = Path(place)
        settings = settings_for(server, folder)
        with open_store(folder) as store:
            harvest_all(store, settings, index=False)
            begun = time.process_time()
            fetch_documents(store, settings, settings.source)
            seconds = time.process_time() - begun
            status = status_of(store, 1)
        known = known_documents(folder, server)
        together = server.together
    wanted = {server.identifier(i): digest(i.body) for i in server.items.values() if i.kind.has_document}
    files = {name: json.loads(one.files) for name, one in known.items() if one.state == "read"}
    right = sum(name in files and files[name][0]["digest"] == wanted[name] for name in wanted)
    ways = Counter(one.way for one in known.values() if one.state == "read").most_common()
    return {
        "platform": server.name, "records": count, "with_document": len(wanted), "right": right,
        "others": len(files.keys() - wanted.keys()), "ways": dict(ways), "reasons": dict(status.reasons),
        "requests": status.requests / count, "bytes": status.bytes / count, "together": together,
        "cpu_seconds": seconds,
    }  # fmt: skip


def long_run(count: int, kills: int) -> dict[str, Any]:
    """Many records, two broken hosts, a process that is killed now and then."""
    with (
        tempfile.TemporaryDirectory() as place,
        ArXiv(items(1)) as broken,
        ManyHosts(items(count, (Kind.OPEN,)), [broken.root, "http://127.0.0.1:9"]) as server,
    ):
        broken.before = lambda path: Response(b"", 500)
        folder = Path(place)
        settings = settings_for(server, folder)
        with open_store(folder) as store:
            harvest_all(store, settings, index=False)
        killed, begun = 0, time.monotonic()
        while True:
            process = subprocess.Popen([sys.executable, "-c", CHILD, str(folder), server.url])
            before, quota = len(server.requests), 2 * count // (kills + 1)
            while process.poll() is None and (killed >= kills or len(server.requests) < before + quota):
                time.sleep(0.05)
            if process.poll() is not None:
                break
            process.kill()
            process.wait()
            killed += 1
        seconds = time.monotonic() - begun
        known = known_documents(folder, server)
        fetched = Counter(seen.path for seen in server.requests if seen.path.startswith("/bitstream"))
        with open_store(folder) as store, store.read() as view:
            vectors = sum(stored.vector is not None for stored in view.changes(parts=("vector",)))
    states = Counter(one.state for one in known.values())
    reachable = sum(item.number % 5 != 0 for item in server.items.values())
    return {
        "records": count, "reachable": reachable, "read": states["read"], "vectors": vectors,
        "waiting": states["waiting"], "killed": killed, "fetched": sum(fetched.values()),
        "fetched_twice": sum(fetched.values()) - len(fetched), "of_broken_host": len(broken.requests),
        "exit_status": process.returncode, "seconds": round(seconds),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=210)
    parser.add_argument("--long", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    bodies = real_documents()
    print(f"documents: {len(bodies)} real ones" if bodies else "documents: generated")
    results: dict[str, Any] = {"documents": len(bodies), "platforms": []}
    columns = "platform", "records", "with document", "right", "others", "requests", "kB", "ways"
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for platform in PLATFORMS if chosen.records else ():
        found = one_platform(platform, chosen.records, bodies)
        results["platforms"].append(found)
        ways = ", ".join(f"{way} {count}" for way, count in found["ways"].items())
        print(
            f"| {found['platform']} | {found['records']} | {found['with_document']} | {found['right']} | "
            f"{found['others']} | {found['requests']:.2f} | {found['bytes'] / 1000:.0f} | {ways} |",
            flush=True,
        )  # fmt: skip
    if chosen.long:
        results["long"] = long_run(chosen.long, chosen.kills)
        print(json.dumps(results["long"]))
    if chosen.json:
        chosen.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
