"""The index on OpenSearch beside the embedded engine: the same answers, and what they cost.

    python -m bench.engines [--records 100000] [--queries 100] [--shards 3] [--json FILE]
    INDLET_DATA=… python -m bench.engines --records 0 --collections cranfield,cacm,reuters21578 \
        --shards 1,3,6 --replica       answers alone, to real topics (Reuters has none: titles of its stories)
    OPENSEARCH_VERSION=2.19.6 JAVA=…/java-17/bin/java python -m bench.engines …    another version

Both engines are given the same records and asked the same queries by every model, and in other ways by BM25:
boolean, facets, a page further down, by date. Answers are compared whole: identifiers, order, scores as
doubles, totals, facets. This is done four times: as loaded, after everything was merged, after 15 % were
deleted, and after merging again. With --replica there is a second node, and every answer is also taken from
replicas alone.

Costs are told for generated records (bench/generated.py), when merged, in blocks of queries to one engine
after the other. OpenSearch's own BM25 is asked over an index of the same words made in the ordinary way.
Processor time is that of this program and that of the nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import orjson
from bench.effectiveness import documents
from bench.evidence.material import reuters
from bench.generated import collection, queries
from bench.processes import cpu_of
from tests.opensearch_index import TemporaryIndex
from tests.opensearch_server import SERVER, OpenSearchNode

from indlet.cluster.opensearch.cluster import Cluster, pieces
from indlet.cluster.opensearch.searcher import ClusterSearcher
from indlet.model import JsonObject, Stored, pack
from indlet.service.index import Index, Searcher
from indlet.service.index.embedded.index import EmbeddedIndex
from indlet.service.index.expression import And, Expression, Not, Or, Term
from indlet.service.search.rank import MODELS
from indlet.text import Analyzer, Policy

BATCH = 5_000
GONE = 0.15  # of the records, that are deleted
DEPTH = 100  # hits of the answers that are compared
BLOCK = 25  # queries to one engine before the next has its turn
ROUNDS = 4  # of which the first is told apart: it asks for frequencies that are remembered from then on
ANALYZER = Analyzer(Policy())

Ask = Callable[[list[str]], object]


class Nodes(NamedTuple):
    """The cluster that is asked; nothing is known of the processes of one that runs already."""

    version: str
    own: Sequence[OpenSearchNode]

    def cpu(self) -> float:
        return sum(cpu_of(node.pid) for node in self.own)


class Spent:
    """Seconds, and processor seconds here and in the nodes, since its making."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._start = self._now()

    def _now(self) -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), self._nodes.cpu()

    def read(self) -> tuple[float, float, float]:
        seconds, here, there = (now - then for now, then in zip(self._now(), self._start, strict=True))
        return seconds, here, there


def written(index: Index, changes: Sequence[Stored], anew: bool = False) -> None:
    with index.writer(ANALYZER, anew=anew) as writer:
        for piece in pieces(changes, BATCH):
            writer.apply(writer.prepare(piece))
        writer.commit()


# ---- answers


def asked_in_other_ways(words: list[str]) -> dict[str, tuple[Expression, JsonObject]]:
    each = tuple(map(Term, words))
    some = Or(each)
    without = And((Or(each[:-1]), Not(each[-1]))) if len(each) > 1 else some
    return {
        "and": (And(each[:2]), {}),
        "and not": (without, {}),
        "facets": (some, {"facets": ("type", "year", "language"), "limit": 5}),
        "page 20": (some, {"limit": 10, "offset": 190}),
        "newest": (some, {"sort": "newest", "limit": 20}),
    }


def differing(here: Searcher, theirs: Sequence[Searcher], asked: Sequence[list[str]]) -> dict[str, list[int]]:
    """By model or way of asking: how many answers were compared, and how many were not the same."""
    found: dict[str, list[int]] = {}

    def compare(name: str, expression: Expression, **options: object) -> None:
        expected = here.search(expression, **options)  # type: ignore[arg-type]
        count = found.setdefault(name, [0, 0])
        for there in theirs:
            count[0] += 1
            if there.search(expression, **options) != expected:  # type: ignore[arg-type]
                count[1] += 1
                print(f"DIFFERS: {name} {expression} {options}", flush=True)

    for words in asked:
        for name, kind in MODELS.items():
            compare(name, Or(tuple(map(Term, words))), model=kind(), limit=DEPTH)
        for name, (expression, options) in asked_in_other_ways(words).items():
            compare(name, expression, **options)
    return found


def searchers(index: TemporaryIndex, replica: bool) -> list[Searcher]:
    """What is published; and the same from replicas alone."""
    found: list[Searcher] = [index.searcher()]
    if replica:
        control = index._control
        state = control.read()
        index.cluster.ask("GET", f"_cluster/health/{state.data}?wait_for_status=green&timeout=50s")
        path = f"{state.data}/_search/point_in_time"
        pit = index.cluster.ask("POST", path, keep_alive="10m", preference="_replica")
        found.append(ClusterSearcher(control, replace(state, snapshot=str(pit["pit_id"]))))
    return found


def compared(
    changes: list[Stored], asked: list[list[str]], shards: int, replica: bool, nodes: Nodes, *, speed: bool
) -> Iterator[tuple[str, object]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        embedded = stack.enter_context(closing(EmbeddedIndex(folder)))
        cluster = stack.enter_context(closing(TemporaryIndex(shards=shards)))
        engines: dict[str, Index] = {"embedded": embedded, "opensearch": cluster}
        yield "records", len(changes)
        for name, index in engines.items():
            spent = Spent(nodes)
            written(index, changes, anew=True)
            yield f"{name}: indexing", _indexing(len(changes), spent)

        def differences() -> dict[str, list[int]]:
            return differing(embedded.searcher(), searchers(cluster, replica), asked)

        def bytes_a_posting() -> dict[str, float]:
            stats = embedded.searcher().stats()
            sizes = {"embedded": stats.bytes, "opensearch": stored(cluster.cluster, f"{cluster.name}-data-*")}
            return {name: round(size / stats.postings, 2) for name, size in sizes.items()}

        yield "as loaded", differences()
        if speed:
            yield "postings", embedded.searcher().stats().postings
            yield "bytes a posting, as loaded", bytes_a_posting()
        for index in engines.values():
            index.settle(everything=True)
        yield "merged", differences()
        if speed:
            yield "bytes a posting, merged", bytes_a_posting()
            yield from costs(cluster, embedded.searcher(), changes, asked, nodes)
        chosen = random.Random(3).sample(changes, round(GONE * len(changes)))
        gone = [one._replace(seq=one.seq + len(changes), deleted=1, vector=None) for one in chosen]
        for index in engines.values():
            written(index, gone)
        yield "15 % deleted", differences()
        for index in engines.values():
            index.settle(everything=True)
        yield "merged again", differences()


# ---- costs


def _indexing(records: int, spent: Spent) -> dict[str, float]:
    seconds, here, there = spent.read()
    return {
        "records/s": round(records / seconds),
        "cpu_us_here": round(1e6 * here / records, 1),
        "cpu_us_nodes": round(1e6 * there / records, 1),
    }


def own_index(cluster: Cluster, name: str, shards: int, changes: Sequence[Stored]) -> None:
    """OpenSearch as it comes: a text of words, its default similarity."""
    text = {"type": "text", "analyzer": "whitespace"}
    settings = {"index": {"number_of_shards": shards, "number_of_replicas": 0, "refresh_interval": "-1"}}
    cluster.ask("PUT", name, {"settings": settings, "mappings": {"properties": {"text": text}}})
    for piece in pieces(changes, 1000):
        rows = []
        for one in piece:
            vector = one.record.vector
            assert vector is not None
            words = [term for term, times in vector.frequencies().items() for _ in range(times)]
            rows.append(({"index": {"_id": str(one.id)}}, orjson.dumps({"text": " ".join(words)})))
        cluster.bulk(name, rows)
    cluster.ask("POST", f"{name}/_refresh")


def stored(cluster: Cluster, name: str) -> int:
    """Bytes of an index, without replicas."""
    time.sleep(11.0)  # a node remembers for ten seconds what it was
    return int(cluster.ask("GET", f"{name}/_stats/store")["_all"]["primaries"]["store"]["size_in_bytes"])


def costs(
    index: TemporaryIndex, here: Searcher, changes: list[Stored], asked: list[list[str]], nodes: Nodes
) -> Iterator[tuple[str, object]]:
    cluster, own = index.cluster, f"{index.name}-own"
    there = ClusterSearcher(index._control, index._control.read())  # one that remembers nothing
    spent = Spent(nodes)
    own_index(cluster, own, index._shards, changes)
    yield "its own BM25: indexing", _indexing(len(changes), spent)

    postings = sum(len(vector.frequencies()) for one in changes if (vector := one.record.vector))
    fresh = round(stored(cluster, own) / postings, 2)
    cluster.ask("POST", f"{own}/_forcemerge", max_num_segments=1, request_timeout=3600)
    cluster.ask("POST", f"{own}/_refresh")  # lets go of what was merged
    yield (
        "its own BM25: bytes a posting, as loaded and merged",
        [fresh, round(stored(cluster, own) / postings, 2)],
    )

    def match(words: list[str], **more: object) -> object:
        query = {"match": {"text": " ".join(words)}}
        return cluster.search({"query": query, "size": 10, "_source": False, **more}, f"{own}/_search")

    ways: dict[str, Ask] = {
        "embedded": searching(here),  # which is ready once it was asked
        "opensearch": searching(there),
        "its own BM25": match,
        "its own BM25, exact totals": lambda words: match(words, track_total_hits=True),
    }
    yield (
        "matches a query, median",
        statistics.median(here.search(Or(tuple(map(Term, words))), limit=1).total for words in asked),
    )
    yield from times(ways, asked, nodes)


def times(
    ways: dict[str, Ask], asked: Sequence[list[str]], nodes: Nodes
) -> Iterator[tuple[str, dict[str, float]]]:
    """Milliseconds of queries, by turns; processor milliseconds of one query here and in the nodes."""
    for rounds, label in ((1, "asked for the first time"), (ROUNDS - 1, "asked again")):
        each: dict[str, list[float]] = {name: [] for name in ways}
        cpu = {name: [0.0, 0.0] for name in ways}
        for block in list(pieces(asked, BLOCK)) * rounds:
            for name, ask in ways.items():
                spent = Spent(nodes)
                for words in block:
                    began = time.perf_counter()
                    ask(words)
                    each[name].append(1000 * (time.perf_counter() - began))
                _, mine, theirs = spent.read()
                cpu[name][0] += mine
                cpu[name][1] += theirs
        for name, taken in each.items():
            cuts = statistics.quantiles(taken, n=20)
            yield (
                f"{name}: ms, {label}",
                {
                    "p50": round(statistics.median(taken), 2),
                    "p95": round(cuts[18], 2),
                    "cpu_here": round(1000 * cpu[name][0] / len(taken), 2),
                    "cpu_nodes": round(1000 * cpu[name][1] / len(taken), 2),
                },
            )


def searching(searcher: Searcher) -> Ask:
    return lambda words: searcher.search(Or(tuple(map(Term, words))))


# ---- what is asked


def real(name: str) -> tuple[list[Stored], list[list[str]]]:
    """The documents and topics of a collection."""
    folder = Path(os.environ["INDLET_DATA"]) / name
    if name == "reuters21578":
        stories = reuters(folder, 21_578, 1).stories
        texts = {str(number): story.text for number, story in enumerate(stories, 1)}
        topics = [story.text.strip().partition("\n")[0][:200] for story in stories[::97]]
    else:
        texts = documents(folder)
        topics = [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text().splitlines()]
    changes = []
    for number, (identifier, text) in enumerate(texts.items(), 1):
        vector = ANALYZER.vector(text)
        changes.append(
            Stored(number, number, 1, f"oai:{name}:{identifier}", 0, 0, "", "en", vector.length, 0,
                   b"{}", b"", b"", vector.packed, None, b"")
        )  # fmt: skip
    asked = [[t for word in topic.split() for t in ANALYZER.terms(word, "en")] for topic in topics]
    return changes, [words for words in asked if words]


def generated(records: int, count: int) -> tuple[list[Stored], list[list[str]]]:
    made = collection(records)
    changes = [
        Stored(number, number, 1, f"oai:example.org:{number}", 0, 0, "", "en", sum(frequencies), number,
               b'{"title":["A title of some words"],"date":["%d-02-03"],"type":["Text"]}'
               % (1950 + number % 70), b"", b"",
               pack(dict(zip(terms, frequencies, strict=True))), None, b"")
        for number, (terms, frequencies) in enumerate(made.documents(), 1)
    ]  # fmt: skip
    return changes, queries(made, count)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the nodes go with this process
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--records", type=int, default=100_000)
    options.add_argument("--queries", type=int, default=100)
    options.add_argument("--collections", default="")
    options.add_argument("--shards", default="3", help="such as 1,3,6")
    options.add_argument("--replica", action="store_true", help="a second node, so that there are replicas")
    options.add_argument("--heap", default="1g", help="of each node")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    own: list[OpenSearchNode] = []
    told: list[dict[str, object]] = []
    try:
        if SERVER not in os.environ:
            quick = not given.records  # where costs are not measured
            own.append(OpenSearchNode(given.heap, quick=quick))
            os.environ[SERVER] = own[0].url
            if given.replica:
                own.append(OpenSearchNode(given.heap, 2, (own[0].transport,), quick=quick))
        cluster = Cluster([os.environ[SERVER]])
        version = str(cluster.ask("GET", "")["version"]["number"])
        machines = int(cluster.ask("GET", "_cluster/health")["number_of_nodes"])
        nodes = Nodes(version, own)
        for name in [*filter(None, given.collections.split(",")), *([""] if given.records else [])]:
            made = real(name) if name else generated(given.records, given.queries)
            changes, asked = made[0], made[1][: given.queries]
            for shards in map(int, given.shards.split(",")):
                run = {
                    "collection": name or "generated", "shards": shards, "version": version,
                    "nodes": machines, "replica": given.replica, "queries": len(asked),
                }  # fmt: skip
                speed = not name and not given.replica
                told.append(run)
                for _ in _shown(run, compared(changes, asked, shards, given.replica, nodes, speed=speed)):
                    if given.json:
                        given.json.write_text(json.dumps(told, indent=1))
    finally:
        for node in reversed(own):
            node.remove()
    _summary(told)


def _shown(run: dict[str, object], figures: Iterator[tuple[str, object]]) -> Iterator[None]:
    """Prints each figure as it comes, and keeps it."""
    began, loads = time.perf_counter(), [os.getloadavg()[0]]
    for what, value in figures:
        loads.append(os.getloadavg()[0])
        title = f"{run['collection']}, {run['shards']} shards"
        print(f"{title}: {what}: {value}  (load {loads[-1]:.0f})", flush=True)
        seconds = round(time.perf_counter() - began)
        run |= {what: value, "seconds": seconds, "load": [round(min(loads), 1), round(max(loads), 1)]}
        yield


STATES = ("as loaded", "merged", "15 % deleted", "merged again")


def _summary(told: Sequence[dict[str, object]]) -> None:
    print(f"{'collection':<14} shards replica {'answers':>8} {'differ':>7}  load")
    for run in told:
        counts = [pair for state in STATES for pair in _pairs(run[state])]
        asked, wrong = (sum(pair[at] for pair in counts) for at in (0, 1))
        print(
            f"{run['collection']:<14} {run['shards']:>6} {'yes' if run['replica'] else 'no':>7} "
            f"{asked:>8} {wrong:>7}  {run['load']}"
        )


def _pairs(counts: object) -> list[list[int]]:
    assert isinstance(counts, dict)
    return list(counts.values())


if __name__ == "__main__":
    main()
