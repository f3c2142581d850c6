"""One to four workers on one machine: records a second over four sources, and which part limits.

    python -m bench.workers [--records 2000] [--rounds 3] [--far 0.5] [--json FILE]

Four providers, each a host of its own (127.0.0.1 to .4), a PostgreSQL server with fsync, and 1, 2, 3 or 4
`indlet worker --at-once 1`, in turns. Seconds count from the end of a pause in which all workers wait until
the last source is harvested. Beside them: processor seconds of providers, workers and database, cores that
are busy, whoever keeps them so, and how many sessions waited for the lock of writers, in the mean of samples.
With --far each request is held back for so many seconds on its way to the provider, as by a slow repository:
then workers wait more than they compute.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from urllib.parse import quote

import psycopg
from bench.cluster import Database, wait_for
from bench.corpus import fill
from bench.processes import Meter, Node, cpu_of, indlet

from indlet.node.job_entries import last_runs, pause
from indlet.store import open_store

SOURCES = 4
TERMS = 60
FAR_PAGE = 100  # records a page where each takes its time
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'advisory'"


class SlowWay:
    """A relay to a provider on which each request takes so many seconds."""

    def __init__(self, host: str, seconds: float) -> None:
        self._host, self._seconds = host, seconds
        self.to = 0  # the provider's port
        self._door = socket.create_server((host, 0))
        self.port: int = self._door.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._door.accept()
                far = socket.create_connection((self._host, self.to))
                threading.Thread(target=self._carry, args=(near, far, self._seconds), daemon=True).start()
                threading.Thread(target=self._carry, args=(far, near, 0.0), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, seconds: float) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 20):
                time.sleep(seconds)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._door.close()


def providers(folder: Path, stack: contextlib.ExitStack, records: int, far: float) -> list[Node]:
    found = []
    for number in range(SOURCES):
        data, host = folder / f"provider{number}-data", f"127.0.0.{number + 1}"
        fill(data, records, TERMS, first=number * records)
        way = stack.enter_context(contextlib.closing(SlowWay(host, far))) if far else None
        more = f'base_url = "http://{host}:{way.port}"\n' if way else ""
        pages = f"[serve]\nrecords_per_page = {FAR_PAGE}\n" if far else ""
        node = Node(folder, f"provider{number}", pages, node=f'host = "{host}"\n{more}', data=data)
        node.check = f"http://{host}:{node.port}/healthz"
        node.root = f"http://{host}:{way.port if way else node.port}"
        if way:
            way.to = node.port
        found.append(stack.enter_context(node))
    return found


def measured(
    folder: Path, nodes: list[Node], database: Database, workers: int, records: int
) -> dict[str, float]:
    """One harvest of everything into an empty schema."""
    schema = f"w{time.monotonic_ns()}"
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    url = f"{database.url}?options={quote(f'-c search_path={schema}')}"
    config = folder / f"{schema}.toml"
    config.write_text(
        f'data = "{folder / schema}"\n[node]\njobs = false\n[store]\nurl = "{url}"\n[harvest]\nevery = "1d"\n'
        + "".join(f'[[source]]\nname = "s{n}"\nurl = "{node.root}/ft-oai"\n' for n, node in enumerate(nodes))
    )
    with open_store(url, local_folder=folder / schema) as store, contextlib.ExitStack() as stack:
        pause(store, True)
        started = [_worker(config, stack) for _ in range(workers)]
        time.sleep(10.0)  # until all of them look
        cpu = {"providers": _cpu(nodes), "database": cpu_of(database.pid)}
        own = sum(cpu_of(each.pid) for each in started)
        meter, waiting = Meter(), list[int]()
        pause(store, False)
        began = time.monotonic()
        with psycopg.connect(database.url, autocommit=True) as connection:
            while sum(name.startswith("harvest") for name in last_runs(store)) < SOURCES:
                row = connection.execute(WAITING.encode()).fetchone()
                waiting.append(int(row[0]) if row else 0)
                time.sleep(0.2)
        seconds = time.monotonic() - began
        busy = meter.read()
        with store.read() as view:
            live = sum(count for count, _ in view.totals().values())
        assert live == records * SOURCES and not any(run.error for run in last_runs(store).values())
        found = {
            "workers": workers,
            "seconds": round(seconds, 2),
            "records_per_second": round(live / seconds, 1),
            "waiting_for_the_lock": round(sum(waiting) / len(waiting), 2),
            "busy_cores": round(busy["others_cores"] + busy["cpu_seconds"] / seconds, 2),
            "providers_cpu": round(_cpu(nodes) - cpu["providers"], 2),
            "workers_cpu": round(sum(cpu_of(each.pid) for each in started) - own, 2),
        }
        found["load"] = round(os.getloadavg()[0], 1)
    wait_for(lambda: _sessions(database) == 1, "sessions to end")
    return found | {"database_cpu": round(cpu_of(database.pid) - cpu["database"], 2)}


def _worker(config: Path, stack: contextlib.ExitStack) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        indlet("worker", "--config", config, "--at-once", 1),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def _cpu(nodes: list[Node]) -> float:
    return sum(node.cpu() for node in nodes)


def _sessions(database: Database) -> int:
    with psycopg.connect(database.url, autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = 'indlet'").fetchone()
    return int(row[0]) if row else 0


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--records", type=int, default=2000, help="of each source")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--far", type=float, default=0.0, help="seconds of each request on its way")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    found: list[dict[str, float]] = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="indlet-workers-")))
        folder.chmod(0o755)
        database = Database(folder / "db")
        stack.callback(database.remove)
        database.create()
        nodes = providers(folder, stack, given.records, given.far)
        for _ in range(given.rounds):
            for workers in (1, 2, 3, 4):
                found.append(measured(folder, nodes, database, workers, given.records))
                print(found[-1], flush=True)
                if given.json:
                    given.json.write_text(
                        json.dumps({"records": given.records, "far": given.far, "runs": found}, indent=2)
                        + "\n"
                    )
    print("| workers | records/s | to one worker | waiting | processor s: workers, database, providers |")
    print("| --- | --- | --- | --- | --- |")
    for workers in (1, 2, 3, 4):
        rows = [row for row in found if row["workers"] == workers]
        mid = {name: median(row[name] for row in rows) for name in rows[0]}
        first = median(row["records_per_second"] for row in found if row["workers"] == 1)
        print(
            f"| {workers} | {mid['records_per_second']:,.0f} | {mid['records_per_second'] / first:.2f} | "
            f"{mid['waiting_for_the_lock']:.2f} | {mid['workers_cpu']:.1f}, {mid['database_cpu']:.1f}, "
            f"{mid['providers_cpu']:.1f} |"
        )


if __name__ == "__main__":
    main()
