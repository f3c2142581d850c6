"""Search nodes that are killed, or refuse, while they are asked and written to: what users see.

    python -m bench.faults_cluster [--rounds 12] [--only search,publish] [--json FILE]

Three nodes on loopback, two shards with a replica each. Threads ask the same questions all the time and
compare each answer with that of the embedded engine at the same position of the change feed. In each round
another node is killed (SIGKILL) and started again:

search      while users search, and nothing is written
write       at some instant while records go to the cluster
publish     at some instant while a commit is being published: refresh, point in time, state
breaker     no node is killed, but all refuse by their circuit breaker for 3 seconds, in the midst of writing

Counted: answers that were right, refused, and wrong; seconds from the fault to the last refusal, and until
every shard has its replica again. Ends with status 1 if an answer was wrong, or something written is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.cluster import search_nodes, wait_for
from tests.opensearch_server import OpenSearchNode

from indlet.cluster.opensearch.cluster import Cluster
from indlet.cluster.opensearch.index import OpenSearchIndex
from indlet.errors import StoreError, StoreUnavailable
from indlet.model import Stored, pack
from indlet.service.index import Index
from indlet.service.index.embedded.index import EmbeddedIndex
from indlet.service.index.expression import Or, Term
from indlet.text import Analyzer, Policy

ANALYZER = Analyzer(Policy())
ASKED = [Or((Term("even"), Term(f"w{n}"))) for n in range(10)]
RECORDS = 3000
SECONDS = 5.0  # of each round after the fault
KINDS = {
    "search": "a search node killed while users search",
    "write": "a search node killed while records are written",
    "publish": "a search node killed while a commit is published",
    "breaker": "all search nodes refuse by their circuit breaker for 3 s, while records are written",
}


def record(id: int, seq: int) -> Stored:
    terms = {f"w{id % 97}": 1 + id % 5, "even" if (id + seq) % 2 == 0 else "odd": 1 + id % 3}
    length, vector = sum(terms.values()), pack(terms)
    return Stored(
        id, seq, 1, f"oai:x:{id}", 0, 0, "", "en", length, 0, b"{}", b"", b"", vector, None, b""
    )  # fmt: skip


@dataclass
class FaultSeen:
    """What users and the writer saw of one kind of fault, over all rounds."""

    fault: str
    rounds: int = 0
    right: int = 0
    refused: int = 0
    wrong: int = 0
    slowest: float = 0.0
    last_refusal: float = 0.0
    writer_refused: int = 0
    written_after: list[float] = field(default_factory=list)
    replicas_after: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)


class Searching:
    """Users who ask all the time; an answer is right if it is that of a published state."""

    def __init__(self, index: OpenSearchIndex, right: dict[int, list[object]], seen: FaultSeen) -> None:
        self.fault_at = time.monotonic()
        self._index, self._right, self._seen = index, right, seen
        self._guard, self._halt = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(2)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number: int) -> None:
        while not self._halt.is_set():
            number = (number + 1) % len(ASKED)
            began = time.monotonic()
            try:
                searcher = self._index.searcher()
                told = searcher.search(ASKED[number], limit=20)
            except StoreUnavailable:
                with self._guard:
                    self._seen.refused += 1
                    since = time.monotonic() - self.fault_at
                    self._seen.last_refusal = max(self._seen.last_refusal, since)
                time.sleep(0.02)
                continue
            right = self._right.get(searcher.position)
            with self._guard:
                self._seen.slowest = max(self._seen.slowest, time.monotonic() - began)
                if right is not None and told == right[number]:
                    self._seen.right += 1
                else:
                    self._seen.wrong += 1
                    print(f"WRONG at {searcher.position}: {ASKED[number]}", flush=True)

    def leave(self) -> None:
        self._halt.set()
        for thread in self._threads:
            thread.join()


def answers(index: Index) -> list[object]:
    searcher = index.searcher()
    return [searcher.search(asked, limit=20) for asked in ASKED]


class Rounds:
    """The nodes, both indices, and what is right at each position."""

    def __init__(self, nodes: list[OpenSearchNode], here: Index, there: OpenSearchIndex) -> None:
        self._nodes, self._here, self._there = nodes, here, there
        self._position = 0
        self.right: dict[int, list[object]] = {}
        self.commit(self.changes(1), lambda: None)

    def changes(self, step: int) -> list[Stored]:
        """Records that change next; the embedded index has them at once, so that what is right is known."""
        made = [record(id, self._position + id) for id in range(1, RECORDS + 1, step)]
        self._position = made[-1].seq
        with self._here.writer(ANALYZER) as writer:
            writer.apply(writer.prepare(made))
            writer.commit()
        self.right[self._position] = answers(self._here)
        return made

    def commit(self, changes: list[Stored], publishing: Callable[[], None]) -> int:
        """Writes to the cluster until it is done; how often that was refused."""
        refused = 0
        while True:
            try:
                with self._there.writer(ANALYZER) as writer:
                    writer.apply(writer.prepare(changes))
                    writer._flush()
                    writer._await_requests()
                    publishing()
                    writer.commit()
                return refused
            except StoreError as e:
                refused += 1
                if refused > 120:
                    raise RuntimeError("the cluster could not be written for a minute") from e
                time.sleep(0.5)

    def round(self, kind: str, number: int, seen: FaultSeen) -> None:
        self._whole()
        node = self._nodes[number % len(self._nodes)]
        users = Searching(self._there, self.right, seen)
        time.sleep(0.5)
        faults = list[threading.Timer]()

        def fault(within: float) -> None:
            if not faults:
                users.fault_at = time.monotonic()
                action = self._refuse if kind == "breaker" else node.kill
                faults.append(threading.Timer(random.uniform(0.0, within), action))
                faults[0].start()

        began = time.monotonic()
        if kind == "search":
            fault(0.0)
        else:
            changes = self.changes(1 + number % 3)
            if kind != "publish":
                fault(0.6)
            seen.writer_refused += self.commit(changes, lambda: fault(0.25))
            seen.written_after.append(round(time.monotonic() - began, 2))
        faults[0].join()
        time.sleep(max(0.0, SECONDS - (time.monotonic() - users.fault_at)))
        told = list[object]()

        def answered() -> bool:
            with suppress(StoreUnavailable):
                told[:] = answers(self._there)
            return bool(told)

        wait_for(answered, "all shards")
        users.leave()
        if told != self.right[self._position]:
            seen.wrong += 1
            print(f"WRONG after {kind}, round {number}", flush=True)
        if kind != "breaker":
            node.start()
            began = time.monotonic()
            self._whole()
            seen.replicas_after.append(round(time.monotonic() - began, 2))
        seen.rounds += 1
        seen.load.append(round(os.getloadavg()[0], 1))

    def _whole(self) -> None:
        """Waits until all nodes are there, and a replica of every shard."""
        path = "_cluster/health?wait_for_status=green&wait_for_nodes=3&timeout=5s"

        def green() -> bool:
            with suppress(StoreError):
                return not self._there._control.cluster.ask("GET", path)["timed_out"]
            return False

        wait_for(green, "replicas")

    def _refuse(self) -> None:
        for limit in ("1%", None):
            body = json.dumps({"transient": {"indices.breaker.total.limit": limit}}).encode()
            address, kind = f"{self._nodes[0].url}/_cluster/settings", {"Content-Type": "application/json"}
            request = urllib.request.Request(address, body, kind, method="PUT")
            urllib.request.urlopen(request, timeout=60).close()
            time.sleep(3.0 if limit else 0.0)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the nodes go with this process
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--rounds", type=int, default=12, help="of each kind")
    options.add_argument("--only", default=",".join(KINDS))
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    found = {kind: FaultSeen(KINDS[kind]) for kind in given.only.split(",")}
    with (
        search_nodes(3) as nodes,
        tempfile.TemporaryDirectory() as folder,
        closing(EmbeddedIndex(Path(folder))) as here,
        closing(Cluster([node.url for node in nodes])) as cluster,
    ):
        rounds = Rounds(nodes, here, OpenSearchIndex(cluster, "faults", 2))
        for number in range(given.rounds):
            for kind, seen in found.items():
                rounds.round(kind, number, seen)
                print(f"{kind} {number}: {asdict(seen)}", flush=True)
                if given.json:
                    told = {"search": nodes[0].version, "faults": [asdict(one) for one in found.values()]}
                    given.json.write_text(json.dumps(told, indent=1) + "\n")
    print("| fault | rounds | right | refused | wrong | last refusal, s | slowest, s | writer refused |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for seen in found.values():
        print(
            f"| {seen.fault} | {seen.rounds} | {seen.right} | {seen.refused} | {seen.wrong} | "
            f"{seen.last_refusal:.1f} | {seen.slowest:.1f} | {seen.writer_refused} |"
        )
    sys.exit(any(seen.wrong for seen in found.values()))


if __name__ == "__main__":
    main()
