"""Records a second into a store: new, all equal, all different. SQLite and PostgreSQL in turn, by rounds.

    python -m bench.store                              a PostgreSQL server of its own, with fsync
    python -m bench.store postgresql://host/database   one that runs already; its schemas bench_* are dropped

Records are those of bench/corpus.py, made and packed before the clock starts; batches of 500, one transaction
each. Writers are processes. Printed: the median of the rounds, and the slowest and fastest.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import psycopg
from bench.corpus import record, texts
from tests.stores import PostgresServer

from indlet.model import Packed
from indlet.store import open_store, packed

BATCH = 500
STEPS = ("new", "equal", "different")


def changed(records: list[Packed]) -> list[Packed]:
    return [one._replace(digest=b"other " + one.digest[6:]) for one in records]


def writer(url: str, first: int, count: int, file: str) -> None:
    """Write each step when told to, and tell when it is done."""
    records = pickle.loads(Path(file).read_bytes())[first : first + count]
    with open_store(url) as store:
        with store.write() as tx:
            origin = tx.origin("source", "bench")
        for part in (records, records, changed(records)):
            print("ready", flush=True)
            sys.stdin.readline()
            for start in range(0, count, BATCH):
                with store.write() as tx:
                    tx.put(origin, part[start : start + BATCH])
        print("ready", flush=True)


def measured(url: str, count: int, writers: int, file: str) -> dict[str, float]:
    """Records a second of each step."""
    open_store(url).close()
    share = count // writers
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.store", "--write", json.dumps([url, n * share, share, file])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )
        for n in range(writers)
    ]  # fmt: skip

    def wait() -> None:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"

    rates = {}
    wait()
    for step in STEPS:
        begun = time.perf_counter()
        for child in children:
            assert child.stdin is not None
            child.stdin.write("\n")
        wait()
        rates[step] = share * writers / (time.perf_counter() - begun)
    for child in children:
        child.communicate()
    return rates


def rounds(server: str, count: int, repeat: int, file: str) -> dict[tuple[str, int], list[dict[str, float]]]:
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for number in range(repeat):
        for kind, writers in (("SQLite", 1), ("PostgreSQL", 1), ("SQLite", 2), ("PostgreSQL", 2)):
            with tempfile.TemporaryDirectory() as folder:
                url = folder
                if kind == "PostgreSQL":
                    schema = f"bench_{number}_{writers}"
                    with psycopg.connect(server, autocommit=True) as connection:
                        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
                        connection.execute(f"CREATE SCHEMA {schema}")
                    mark = "&" if "?" in server else "?"
                    url = f"{server}{mark}options={quote(f'-c search_path={schema}')}"
                found.setdefault((kind, writers), []).append(measured(url, count, writers, file))
                if kind == "PostgreSQL":
                    with psycopg.connect(server, autocommit=True) as connection:
                        connection.execute(f"DROP SCHEMA {schema} CASCADE")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", nargs="?", default="")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        writer(*json.loads(arguments.write))
        return
    own = None if arguments.server else PostgresServer("-c fsync=on", "-c shared_buffers=256MB")
    try:
        with tempfile.NamedTemporaryFile() as file:
            flat = [packed(record(text)) for text in texts(0, arguments.records, 60, 1)]
            Path(file.name).write_bytes(pickle.dumps(flat))
            server = arguments.server or (own.url if own else "")
            found = rounds(server, arguments.records, arguments.rounds, file.name)
    finally:
        if own:
            own.remove()
    print(f"| records/s, {arguments.records:,} records, {arguments.rounds} rounds | {' | '.join(STEPS)} |")
    print("| --- | --- | --- | --- |")
    for (kind, writers), rates in found.items():
        cells = []
        for step in STEPS:
            values = [rate[step] for rate in rates]
            cells.append(f"{statistics.median(values):,.0f} ({min(values):,.0f}–{max(values):,.0f})")
        print(f"| {kind}, {writers} writer{'s' * (writers > 1)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
