"""A search node killed while it is asked and written to: what users see, and for how long.

    python -m bench.faults_cluster [--rounds 5]

Two nodes on loopback, two shards with a replica each. Threads ask the same questions all the time and compare
each answer with that of the embedded engine; in every second round a writer commits meanwhile. The second
node is killed (SIGKILL) and started again. Counted: answers that were right, refused, and wrong; seconds from
the kill to the first right answer after the last refusal; seconds until each shard has its replica again.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.opensearch_index import TemporaryIndex
from tests.opensearch_server import SERVER, OpenSearchNode

from indlet.errors import StoreError, StoreUnavailable
from indlet.model import Stored, pack
from indlet.service.index import Index
from indlet.service.index.embedded.index import EmbeddedIndex
from indlet.service.index.expression import Or, Term
from indlet.text import Analyzer, Policy

ANALYZER = Analyzer(Policy())
ASKED = [Or((Term("even"), Term(f"w{n}"))) for n in range(10)]
SECONDS = 6.0  # of each round after the kill


def record(id: int, seq: int) -> Stored:
    terms = {f"w{id % 97}": 1 + id % 5, "even" if id % 2 == 0 else "odd": 1 + id % 3}
    length, vector = sum(terms.values()), pack(terms)
    return Stored(
        id, seq, 1, f"oai:x:{id}", 0, 0, "", "en", length, 0, b"{}", b"", b"", vector, None, b""
    )  # fmt: skip


def write(indices: tuple[Index, ...], changes: list[Stored], tries: int = 60) -> int:
    """Commits to both; how often the cluster refused."""
    refused = 0
    for index in indices:
        for _ in range(tries):
            try:
                with index.writer(ANALYZER) as writer:
                    writer.apply(writer.prepare(changes))
                    writer.commit()
                break
            except StoreError:
                refused += 1
                time.sleep(0.5)
        else:
            raise SystemExit("the cluster could not be written for half a minute")
    return refused


class Users:
    """Who ask all the time; an answer is right if it is that of a published state."""

    def __init__(self, index: TemporaryIndex, right: dict[int, list[object]]) -> None:
        self.seen: Counter[str] = Counter()
        self.last_refused = 0.0
        self.first_right_after = 0.0
        self._index, self._right = index, right
        self._halt = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(2)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        number = 0
        while not self._halt.is_set():
            number = (number + 1) % len(ASKED)
            try:
                searcher = self._index.searcher()
                told = searcher.search(ASKED[number], limit=20)
            except StoreUnavailable:
                self.seen["refused"] += 1
                self.last_refused = time.monotonic()
                time.sleep(0.02)
                continue
            right = self._right.get(searcher.position)
            self.seen["right" if right is not None and told == right[number] else "wrong"] += 1
            if self.last_refused > self.first_right_after:
                self.first_right_after = time.monotonic()

    def leave(self) -> None:
        self._halt.set()
        for thread in self._threads:
            thread.join()


def answers(index: Index) -> list[object]:
    searcher = index.searcher()
    return [searcher.search(asked, limit=20) for asked in ASKED]


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the nodes go with this process
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    rounds = options.parse_args().rounds
    one = OpenSearchNode()
    two = OpenSearchNode(number=2, seeds=(one.transport,))
    os.environ[SERVER] = one.url
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(EmbeddedIndex(Path(folder))) as here,
            closing(TemporaryIndex(shards=2)) as there,
        ):
            write((here, there), [record(id, id) for id in range(1, 3001)])
            right = {3000: answers(here)}
            for number in range(rounds):
                _round(number, one, two, here, there, right)
    finally:
        two.remove()
        one.remove()


def _round(
    number: int,
    one: OpenSearchNode,
    two: OpenSearchNode,
    here: Index,
    there: TemporaryIndex,
    right: dict[int, list[object]],
) -> None:
    green = f"{there.name}-*?wait_for_status=green&timeout=60s"
    there.cluster.ask("GET", f"_cluster/health/{green}")
    users = Users(there, right)
    time.sleep(1.0)
    killed = time.monotonic()
    two.kill()
    refused = 0
    if number % 2:
        base = 3000 * (number + 1)
        changes = [record(id, base + id) for id in range(1 + number, 3001, 3)]
        right[max(one.seq for one in changes)] = _ahead(here, changes)
        refused = write((there,), changes)
    time.sleep(max(0.0, SECONDS - (time.monotonic() - killed)))
    users.leave()
    pause = max(users.first_right_after, killed) - killed if users.seen["refused"] else 0.0
    two.start()
    began = time.monotonic()
    there.cluster.ask("GET", f"_cluster/health/{green}")
    print(
        f"round {number}{' with commits' if number % 2 else ''}: {dict(users.seen)}, whole again after "
        f"{pause:.1f} s, writer refused {refused} times, replicas back {time.monotonic() - began:.1f} s "
        f"after the node (load {os.getloadavg()[0]:.0f})",
        flush=True,
    )


def _ahead(here: Index, changes: list[Stored]) -> list[object]:
    write((here,), changes)
    return answers(here)


if __name__ == "__main__":
    main()
