"""The index on OpenSearch beside the embedded engine: the same answers, and what they cost.

    python -m bench.scale [--records 100000] [--queries 200] [--json FILE]     a node of its own
    INDLET_TEST_OPENSEARCH=http://… python -m bench.scale                      one that runs already
    INDLET_DATA=… python -m bench.scale --records 0 --collections cranfield,cacm,reuters21578 \
        --shards 1,3,6 --replica       answers alone, to real topics (Reuters has none: titles of its stories)
    OPENSEARCH_VERSION=2.19.6 JAVA=…/java-17/bin/java python -m bench.scale …  another version

Records are those of bench/generated.py. Queries are asked of the engines in turn; OpenSearch's own BM25 is
asked over an index of the same words made in the ordinary way. Printed: records a second, bytes a posting
before and after merging, medians and 95th percentiles, and how many answers differ in ids, order or scores.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import orjson
from bench.effectiveness import documents
from bench.evidence.material import reuters
from bench.generated import collection, queries
from tests.opensearch_index import TemporaryIndex
from tests.opensearch_server import SERVER, OpenSearchNode

from indlet.model import Stored, pack
from indlet.service.index import Index, Searcher
from indlet.service.index.embedded.index import EmbeddedIndex
from indlet.service.index.expression import Or, Term
from indlet.service.index.opensearch.cluster import Cluster, pieces
from indlet.service.rank import MODELS
from indlet.text import Analyzer, Policy

BATCH = 5_000
ANALYZER = Analyzer(Policy())


def written(index: Index, changes: Sequence[Stored]) -> float:
    """Seconds until all are committed."""
    began = time.perf_counter()
    with index.writer(ANALYZER, anew=True) as writer:
        for piece in pieces(changes, BATCH):
            writer.apply(writer.prepare(piece))
        writer.commit()
    return time.perf_counter() - began


def own_bm25(cluster: Cluster, name: str, changes: Sequence[Stored]) -> Callable[[list[str]], object]:
    """OpenSearch as it comes: a text of words, its default similarity."""
    text = {"type": "text", "analyzer": "whitespace"}
    settings = {"index": {"number_of_shards": 3, "refresh_interval": "-1"}}
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
    cluster.ask("POST", f"{name}/_forcemerge", max_num_segments=1)

    def ask(words: list[str]) -> object:
        query = {"match": {"text": " ".join(words)}}
        return cluster.search({"query": query, "size": 10, "_source": False}, f"{name}/_search")

    return ask


def timed(ask: Callable[[list[str]], object], asked: Sequence[list[str]]) -> list[float]:
    out = []
    for words in asked:
        began = time.perf_counter()
        ask(words)
        out.append(1000 * (time.perf_counter() - began))
    return out


def disagreeing(here: Searcher, there: Searcher, asked: Sequence[list[str]]) -> dict[str, int]:
    """For each model, how many answers are not the same."""
    wrong = {}
    for name, kind in MODELS.items():
        expressions = [Or(tuple(map(Term, words))) for words in asked]
        wrong[name] = sum(here.search(e, kind()) != there.search(e, kind()) for e in expressions)
    return wrong


def searching(searcher: Searcher) -> Callable[[list[str]], object]:
    return lambda words: searcher.search(Or(tuple(map(Term, words))))


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
    return changes, [[t for word in topic.split() for t in ANALYZER.terms(word, "en")] for topic in topics]


def generated(records: int, count: int) -> tuple[list[Stored], list[list[str]]]:
    made = collection(records)
    changes = [
        Stored(number, number, 1, f"oai:example.org:{number}", 0, 0, "", "en", sum(frequencies), number,
               b'{"title":["A title of some words"],"date":["2001-02-03"],"type":["Text"]}', b"", b"",
               pack(dict(zip(terms, frequencies, strict=True))), None, b"")
        for number, (terms, frequencies) in enumerate(made.documents(), 1)
    ]  # fmt: skip
    return changes, queries(made, count)


def compared(
    changes: list[Stored], asked: list[list[str]], shards: int = 3, *, speed: bool
) -> Iterator[tuple[str, object]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engines: dict[str, Index] = {
            "embedded": stack.enter_context(closing(EmbeddedIndex(folder))),
            "opensearch": stack.enter_context(closing(TemporaryIndex(shards=shards))),
        }
        for name, index in engines.items():
            yield f"{name}: records/s", round(len(changes) / written(index, changes))
        here, there = (index.searcher() for index in engines.values())
        postings = here.stats().postings
        yield "postings", postings
        yield "opensearch: bytes a posting, fresh", round(there.stats().bytes / postings, 2)
        yield "answers that differ", disagreeing(here, there, asked)
        gone = [one._replace(seq=one.seq + len(changes), deleted=1, vector=None) for one in changes[::7]]
        for index in engines.values():
            with index.writer(ANALYZER) as writer:
                writer.apply(writer.prepare(gone))
                writer.commit()
        here, there = (index.searcher() for index in engines.values())
        yield "after deletion of a seventh", disagreeing(here, there, asked)
        for index in engines.values():
            index.settle(everything=True)
        here, there = (index.searcher() for index in engines.values())
        yield "after merging", disagreeing(here, there, asked)
        for name, searcher in zip(engines, (here, there), strict=True):
            yield f"{name}: bytes a posting, merged", round(searcher.stats().bytes / postings, 2)
        if speed:
            yield from _speed(engines["opensearch"], here, there, changes, asked)


def _speed(
    index: Index, here: Searcher, there: Searcher, changes: list[Stored], asked: list[list[str]]
) -> Iterator[tuple[str, object]]:
    assert isinstance(index, TemporaryIndex)
    ways = {
        "embedded": searching(here),
        "opensearch": searching(there),
        "opensearch, its own BM25": own_bm25(index.cluster, f"{index.name}-own", changes),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(3):  # in turn; the first round warms up
        for name, ask in ways.items():
            times[name] = timed(ask, asked)
    for name, each in times.items():
        cuts = statistics.quantiles(each, n=20)
        yield f"{name}: ms p50, p95", [round(statistics.median(each), 2), round(cuts[18], 2)]


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the nodes go with this process
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--records", type=int, default=100_000)
    options.add_argument("--queries", type=int, default=200)
    options.add_argument("--collections", default="")
    options.add_argument("--shards", default="3", help="of the real collections, such as 1,3,6")
    options.add_argument("--replica", action="store_true", help="a second node, so that there are replicas")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    nodes = []
    if SERVER not in os.environ:
        nodes.append(OpenSearchNode("1g"))
        os.environ[SERVER] = nodes[0].url
        if given.replica:
            nodes.append(OpenSearchNode("512m", 2, (nodes[0].transport,)))
        print(f"OpenSearch {nodes[0].version}, {len(nodes)} nodes", flush=True)
    told: dict[str, dict[str, object]] = {}
    try:
        for name in filter(None, given.collections.split(",")):
            changes, topics = real(name)
            for shards in map(int, given.shards.split(",")):
                title = f"{name}, {shards} shards"
                told[title] = _shown(title, compared(changes, topics[: given.queries], shards, speed=False))
        if given.records:
            name = f"{given.records} generated records"
            made = generated(given.records, given.queries)
            told[name] = _shown(name, compared(*made, speed=True))
    finally:
        for node in reversed(nodes):
            node.remove()
    if given.json:
        given.json.write_text(json.dumps(told, indent=1))


def _shown(name: str, figures: Iterator[tuple[str, object]]) -> dict[str, object]:
    told = {}
    for what, value in figures:
        print(f"{name}: {what}: {value}  (load {os.getloadavg()[0]:.0f})", flush=True)
        told[what] = value
    return told


if __name__ == "__main__":
    main()
