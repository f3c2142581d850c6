"""Workers and their database under faults: killed in each job, restarted, cut off; what came of the jobs.

    python -m bench.faults_workers [--rounds 3] [--only harvest,restart] [--json FILE]

Real `indlet worker` processes on a PostgreSQL server and an OpenSearch node of their own, and a real provider
on loopback with small, slow pages. Each round has a store of its own and ends when its job has: then what is
in the store, the folder or the index is compared with what there is to be had. The provider counts how many
requests it has at once: two would mean two workers on one source.

harvest, crawl, index, write, alerts   the worker is killed (SIGKILL) in that job; another one takes it up
restart     the database is stopped ("immediate") and started while two workers harvest and a user reads
cut         the connections between a worker and the database are reset, and refused for three seconds
silent      every packet between a worker that harvests and the database is lost for 90 seconds; a second
            worker has another way. By two network namespaces, so it needs root
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.far import HERE, Netem, Wire, os_setns, sites
from bench.far import Relay as Line
from tests.opensearch_server import OpenSearchNode
from tests.stores import PostgresServer
from tests.web.nodes import free_socket, listening

from indlet.errors import StoreError
from indlet.model import Record, TermVector
from indlet.node.job_entries import last_runs, permit
from indlet.provider.pipeline import crawl
from indlet.provider.serve import application
from indlet.service.index.engines import index_of
from indlet.settings import Crawl, Hierarchy, IndexEngine, Node, Serve, Settings
from indlet.store import Store, open_store

FILES = 120
PAGE_SECONDS = 0.05
JOBS = ("harvest", "crawl", "index", "write", "alerts")
SILENT_SECONDS = 90.0


@dataclass
class Provider:
    url: str
    files: Path
    app: Any = None
    at_once: int = 0
    most: int = 0


@contextlib.contextmanager
def within(namespace: str) -> Iterator[None]:
    """What this thread opens meanwhile belongs to a network namespace."""
    with Path(f"/run/netns/{namespace}").open() as there, Path("/proc/self/ns/net").open() as here:
        os_setns(there.fileno())
        try:
            yield
        finally:
            os_setns(here.fileno())


@contextlib.contextmanager
def provider(folder: Path) -> Iterator[Provider]:
    files = folder / "files"
    files.mkdir()
    for number in range(FILES):
        (files / f"note-{number}.txt").write_text(f"Note {number}\n\nA note on quincunx w{number % 17}.\n")
    bound, port = free_socket()
    told = Provider(f"http://127.0.0.1:{port}", files)
    settings = Settings(
        data=folder / "provider", node=Node(name="Slow", port=port, base_url=told.url),
        crawl=Crawl(workers=1, settle_seconds=0.0), serve=Serve(records_per_page=4, identifiers_per_page=4),
        hierarchy=(Hierarchy(root=str(files), name="notes"),),
    )  # fmt: skip
    with open_store(settings.data) as store:
        crawl(store, settings)
        app = application(store, settings)

        async def slowly(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            told.at_once += 1
            told.most = max(told.most, told.at_once)
            try:
                await asyncio.sleep(PAGE_SECONDS)
                await app(scope, receive, send)
            finally:
                told.at_once -= 1

        told.app = slowly
        with listening(slowly, bound):
            yield told


class Webhook(ThreadingHTTPServer):
    """Takes alerts, slowly."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.taken = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Taking(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.3)
        assert isinstance(self.server, Webhook)
        self.server.taken += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Relay:
    """Stands between a worker and the database's socket; can be cut."""

    def __init__(self, to: Path) -> None:
        self._to, self._guard, self._ends = str(to), threading.Lock(), list[socket.socket]()
        self.folder = Path(tempfile.mkdtemp(prefix="indlet-relay-"))
        self._place = str(self.folder / to.name)
        self._listen()

    def _listen(self) -> None:
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(self._place)
        self._door.listen(64)
        threading.Thread(target=self._accept, args=(self._door,), daemon=True).start()

    def _accept(self, door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = door.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(self._to)
                with self._guard:
                    self._ends += [here, there]
                for a, b in ((here, there), (there, here)):
                    threading.Thread(target=_pump, args=(a, b), daemon=True).start()

    def cut(self, seconds: float) -> None:
        self._door.close()
        Path(self._place).unlink()
        with self._guard:
            for end in self._ends:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            self._ends.clear()
        time.sleep(seconds)
        self._listen()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class FarServer(PostgresServer):
    """A server in a network namespace, which listens there."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        super().__init__(f"-c listen_addresses={HERE}")

    def start(self) -> None:
        with (self.folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {HERE}/30 trust\n")
        super().start()

    def _run(self, program: str, *arguments: str) -> None:
        enter = ["ip", "netns", "exec", self._namespace]
        enter += ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        subprocess.run(
            [*enter, str(self._programs / program), *arguments], check=True, cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )  # fmt: skip


@dataclass
class Outcome:
    kind: str
    rounds: int = 0
    within: int = 0  # faults while the job was on
    wrong: int = 0
    seconds: list[float] = field(default_factory=list)
    read: int = 0
    refused: int = 0


@dataclass
class Bench:
    """One round's surroundings."""

    server: PostgresServer
    node: OpenSearchNode | None
    provider: Provider
    folder: Path
    hook: Webhook
    schema: str
    far: tuple[str, Line | Netem] | None = (
        None  # a worker's namespace, and the way from there to the database
    )

    def url(self, host: Path | str | None = None) -> str:
        schema = quote(f"-c search_path={self.schema}")
        return f"postgresql://indlet@/postgres?host={host or self.server.folder}&options={schema}"

    def config(self, kind: str, host: Path | str | None = None) -> Path:
        parts = [f'data = "{self.folder / "data"}"', f'[store]\nurl = "{self.url(host)}"']
        parts.append("[node]\njobs = false")
        if kind in ("harvest", "restart", "cut", "silent"):
            parts.append('[harvest]\nevery = "1d"\nretries = 2')
            parts.append(f'[[source]]\nname = "s"\nurl = "{self.provider.url}/ft-oai"')
        if kind == "crawl":
            parts.append('[crawl]\nevery = "1d"\nworkers = 1\nsettle_seconds = 0.0')
            parts.append(f'[[hierarchy]]\nname = "h"\nroot = "{self.provider.files}"')
        if kind == "index" and self.node is not None:
            parts.append(f'[index]\nengine = "opensearch"\nurl = ["{self.node.url}"]\nshards = 2')
        if kind in ("write", "alerts"):
            (self.folder / "out").mkdir(exist_ok=True)
            every = "1d" if kind == "write" else "1h"
            parts.append(f'[[write]]\nfolder = "{self.folder / "out"}"\nformat = "oai_dc"\nevery = "{every}"')
        if kind == "alerts":
            parts.append(f'[notify]\nevery = "1d"\nwebhook = "http://127.0.0.1:{self.hook.server_port}/"')
        path = self.folder / f"{kind}-{'far' if host else 'direct'}.toml"
        path.write_text("\n".join(parts) + "\n")
        return path

    def job(self, kind: str) -> str:
        named = {"crawl": "crawl h", "write": f"write {self.folder / 'out'}"}
        return kind if kind in ("index", "alerts") else named.get(kind, "harvest s")

    def fill(self, store: Store, kind: str) -> None:
        if kind in ("index", "write"):
            made = [
                Record(f"oai:x:{n}", {"title": [f"Title {n}"]}, TermVector.of({f"w{n % 17}": 1, "all": 2}))
                for n in range(3000 if kind == "index" else 400)
            ]
            with store.write() as tx:
                tx.put(tx.origin("source", "filled", {"url": "http://127.0.0.1:9/oai"}), made)
        if kind == "alerts":
            with store.write() as tx:
                for number in range(5):
                    tx.alert("deletions", f"s{number}", "", "many deletions", "release them")

    def engine(self) -> IndexEngine:
        return IndexEngine("opensearch", (self.node.url,), 2) if self.node is not None else IndexEngine()

    def problem(self, store: Store, kind: str) -> str:
        """What is missing, or there twice; empty if nothing is."""
        with store.read() as view:
            live = sum(count for count, _ in view.totals().values())
            seqs = [one.seq for one in view.changes()]
        if seqs != sorted(set(seqs)) or store.check():
            return f"the order of changes: {store.check()}"
        match kind:
            case "index":
                searcher = index_of(store, self.engine()).searcher()
                found = (searcher.collection.documents, searcher.position)
                return "" if found == (live, seqs[-1]) else f"{found} for {live}, {seqs[-1]}"
            case "write":
                files = [p for p in (self.folder / "out").rglob("*") if p.is_file() and p.suffix == ".xml"]
                return "" if len(files) == live else f"{len(files)} files for {live}"
            case "alerts":  # at least once; one whose worker was killed may be told twice
                return "" if self.hook.taken else "nobody was told"
        most = 0 if kind == "crawl" else 1
        asked = "" if self.provider.most == most else f"{self.provider.most} requests at once"
        return asked or ("" if live == FILES else f"{live} records of {FILES}")


def worker(config: Path, *before: str) -> subprocess.Popen[bytes]:
    command = [*before, sys.executable, "-m", "indlet", "worker", "--config", str(config)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def wait_for(condition: Callable[[], bool], seconds: float = 180.0) -> None:
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(StoreError):
            if condition():
                return
        if time.monotonic() > until:
            raise SystemExit(f"it did not happen within {seconds:.0f} s")
        time.sleep(0.02)


def run_round(kind: str, bench: Bench, seen: Outcome) -> None:
    bench.provider.most = 0
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(open_store(bench.url(), local_folder=bench.folder / "data"))
        bench.fill(store, kind)
        job, workers = bench.job(kind), list[subprocess.Popen[bytes]]()
        stack.callback(_end, workers)
        if kind in JOBS:
            workers.append(worker(bench.config(kind)))
            wait_for(lambda: store.busy(permit("job", job)))
            time.sleep(random.uniform(0.0, 0.6))
            workers[0].kill()
            workers[0].wait()
            seen.within += job not in last_runs(store)
            began = time.monotonic()
            workers.append(worker(bench.config(kind)))
        elif bench.far is not None:
            began = _silent(bench, store, job, workers, seen, *bench.far)
        else:
            relay = Relay(bench.server.folder / ".s.PGSQL.5432") if kind == "cut" else None
            if relay is not None:
                stack.callback(shutil.rmtree, relay.folder, ignore_errors=True)
            config = bench.config(kind, relay.folder if relay else None)
            workers += [worker(config), worker(config)]
            wait_for(lambda: _records(store) > 0)
            halt = threading.Event()
            user = threading.Thread(target=_read, args=(store, halt, seen))
            user.start()
            seen.within += job not in last_runs(store)
            began = time.monotonic()
            if relay is not None:
                relay.cut(3.0)
            else:
                bench.server.stop()
                bench.server.start()
            wait_for(lambda: job in last_runs(store))
            halt.set()
            user.join()
        wait_for(lambda: job in last_runs(store))
        seen.seconds.append(time.monotonic() - began)
        seen.rounds += 1
        if problem := bench.problem(store, kind):
            seen.wrong += 1
            print(f"{kind}: {problem}", flush=True)


def _silent(
    bench: Bench,
    store: Store,
    job: str,
    workers: list[subprocess.Popen[bytes]],
    seen: Outcome,
    here: str,
    way: Line | Netem,
) -> float:
    """The worker that harvests loses its database without a word; when that began."""
    with within(here):
        bound = socket.create_server(("127.0.0.1", int(bench.provider.url.rpartition(":")[2])))
    with listening(bench.provider.app, bound):
        workers.append(worker(bench.config("silent", HERE), "ip", "netns", "exec", here))
        wait_for(lambda: _records(store) > 0)
        way.wire = Wire(0, 100.0)
        began = time.monotonic()
        seen.within += job not in last_runs(store)
        workers.append(worker(bench.config("silent")))
        wait_for(lambda: job in last_runs(store), 300.0)
        ended = time.monotonic()
        time.sleep(max(0.0, SILENT_SECONDS - (ended - began)))
        way.wire = Wire(0)
        time.sleep(5.0)  # what the first worker still sends must change nothing
    return began + time.monotonic() - ended  # without these waits


def _records(store: Store) -> int:
    with store.read() as view:
        return sum(live for live, _ in view.totals().values())


def _read(store: Store, halt: threading.Event, seen: Outcome) -> None:
    while not halt.wait(0.05):
        try:
            _records(store)
            seen.read += 1
        except StoreError:
            seen.refused += 1


def _end(workers: list[subprocess.Popen[bytes]]) -> None:
    for each in workers:
        each.kill()
        each.wait()


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default=",".join((*JOBS, "restart", "cut", "silent")))
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    kinds, found = given.only.split(","), list[Outcome]()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = PostgresServer()
        stack.callback(server.remove)
        node = OpenSearchNode() if "index" in kinds else None
        if node is not None:
            stack.callback(node.remove)
        told = stack.enter_context(provider(folder))
        print(
            "| fault | rounds | within the job | wrong | seconds to its end: median, most | reads, refused |"
        )
        print("| --- | --- | --- | --- | --- | --- |", flush=True)
        for kind in kinds:
            found.append(Outcome(kind))
            for number in range(given.rounds):
                place = folder / f"{kind}-{number}"
                place.mkdir()
                bench = Bench(server, node, told, place, Webhook(), f"r_{kind}_{number}")
                with _far(bench) if kind == "silent" else contextlib.nullcontext():
                    _schema(bench.server, bench.schema)
                    run_round(kind, bench, found[-1])
                bench.hook.shutdown()
                bench.hook.server_close()
                if given.json:
                    rows = {"load": round(os.getloadavg()[0], 1), "faults": [asdict(one) for one in found]}
                    given.json.write_text(json.dumps(rows, indent=2) + "\n")
            print(_row(found[-1]), flush=True)
    print(f"load {os.getloadavg()[0]:.0f}")


@contextlib.contextmanager
def _far(bench: Bench) -> Iterator[None]:
    """A database in one namespace, and the way to it from another."""
    with sites("indlet-cut") as (there, here, way):
        bench.server, bench.far = FarServer(there), (here, way)
        try:
            yield
        finally:
            bench.server.remove()


def _schema(server: PostgresServer, name: str) -> None:
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())


def _row(seen: Outcome) -> str:
    times = sorted(seen.seconds)
    reads = f"{seen.read}, {seen.refused}" if seen.read else "–"
    middle = times[len(times) // 2]
    told = (seen.kind, seen.rounds, seen.within, seen.wrong, f"{middle:.1f}, {times[-1]:.1f}", reads)
    return f"| {' | '.join(map(str, told))} |"


if __name__ == "__main__":
    main()
