"""Search side by side: this index, tantivy, bm25s, Xapian and SQLite FTS5, in one run on one machine.

    python -m bench.search [--records 150000] [--terms 60] [--queries 400] [--repeats 7] [--json FILE]
    INDLET_DATA=… python -m bench.search --texts real --records 150910

Every engine gets the same documents and queries: generated ones (bench/generated.py), or windows of real
texts (bench/text_windows.py). One thread asks for the top ten, by BM25 unless a model is named. The engines
take turns after every few queries, in an order that is drawn each time, so that a busy moment of the machine
hits all of them and none always follows the same one. Within a turn the queries are different ones: no engine
finds what it needs in a cache because another model has just asked for it. A query's time is its median over
the repeats, and the table shows the median and the 95th percentile over the queries. The ratio to tantivy is
taken in each repeat apart, that of ingest in each turn; its median is told with its least and its
largest. `noise` is the time of a fixed piece of arithmetic in its worst turn over its best. Times are
processor time of the asking thread, and include each engine's Python binding. Merges that are due are done
before queries are timed, here as in tantivy.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import bm25s
import numpy as np
import tantivy
from bench.generated import Collection, collection, queries
from bench.text_windows import windows
from rich.console import Console
from rich.table import Table

from indlet.model import Stored, pack
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.expression import Or, Term
from indlet.service.search.rank import MODELS

SYSTEM_PYTHON = "/usr/bin/python3"
TURN = 20  # queries to one engine before the next is asked
RIVAL = "tantivy, no total"  # to which the times of queries are compared


@dataclass
class Contender:
    name: str
    records_per_second: float
    bytes: int
    ask: Callable[[list[str]], Any] | None
    note: str = ""
    ingests: list[float] = field(default_factory=list)  # records a second, turn by turn
    times: list[list[float]] = field(default_factory=list)


def stored(documents: Collection) -> Iterator[Stored]:
    for number, (terms, frequencies) in enumerate(documents.documents(), 1):
        yield Stored(
            number, number, 1, f"oai:example.org:{number}", 0, 0, "", "en", sum(frequencies), number,
            b'{"title":["A title of some words"],"date":["2001-02-03"],"type":["Text"]}', b"", b"",
            pack(dict(zip(terms, frequencies, strict=True))), None, b"",
        )  # fmt: skip


@dataclass(frozen=True)
class Source:
    """The documents in the forms that the engines take: packed vectors, and texts of separated words."""

    documents: Collection

    @cached_property
    def changes(self) -> list[Stored]:
        return list(stored(self.documents))

    @cached_property
    def texts(self) -> list[str]:
        return list(_texts(self.documents))


def ours(source: Source, folder: Path) -> list[Contender]:
    changes = source.changes
    start = time.perf_counter()
    with Engine.open(folder, writable=True) as engine:
        engine.apply(changes)
        engine.commit()
        rate = len(changes) / (time.perf_counter() - start)
        while engine.merge():
            pass
        size = engine.stats().bytes
    searcher = Engine.open(folder).searcher()
    searcher.make_ready()

    def asking(name: str) -> Callable[[list[str]], Any]:
        model = MODELS[name]()
        return lambda terms: searcher.search(Or(tuple(Term(term) for term in terms)), model, 10)

    return [Contender(f"indlet {name}", rate, size, asking(name), "exact total") for name in MODELS]


def with_tantivy(source: Source, folder: Path) -> list[Contender]:
    texts = source.texts
    schema = tantivy.SchemaBuilder()
    schema.add_unsigned_field("id", stored=True)
    schema.add_text_field("body", stored=False, tokenizer_name="whitespace", index_option="freq")
    folder.mkdir()
    index = tantivy.Index(schema.build(), str(folder))
    start = time.perf_counter()
    writer = index.writer(512 << 20)
    for number, text in enumerate(texts):
        writer.add_document(tantivy.Document(id=number, body=text))
    writer.commit()
    rate = len(texts) / (time.perf_counter() - start)
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def ask(terms: list[str], count: bool) -> Any:
        parts = [
            (tantivy.Occur.Should, tantivy.Query.term_query(index.schema, "body", term, "freq"))
            for term in terms
        ]
        found = searcher.search(tantivy.Query.boolean_query(parts), 10, count=count)
        return [searcher.doc(address)["id"][0] for _, address in found.hits]

    size = _size(folder)
    return [
        Contender("tantivy", rate, size, lambda terms: ask(terms, True), "exact total"),
        Contender("tantivy, no total", rate, size, lambda terms: ask(terms, False), "no total"),
    ]


def with_bm25s(source: Source, folder: Path) -> list[Contender]:
    documents = source.documents
    repeated = np.repeat(documents.terms, documents.frequencies)
    sizes = np.add.reduceat(documents.frequencies, np.concatenate(([0], documents.ends[:-1])))
    ids = [part.tolist() for part in np.split(repeated, np.cumsum(sizes)[:-1])]
    numbers = {name: number for number, name in enumerate(documents.names)}
    start = time.perf_counter()
    retriever = bm25s.BM25(k1=1.2, b=0.75, method="lucene", backend="numpy")
    retriever.index((ids, numbers), show_progress=False)
    rate = len(ids) / (time.perf_counter() - start)
    retriever.save(str(folder))

    def ask(terms: list[str]) -> Any:
        return retriever.retrieve([terms], k=10, show_progress=False, n_threads=1)

    return [Contender("bm25s (numpy)", rate, _size(folder), ask, "no updates, no total")]


def with_sqlite(source: Source, folder: Path) -> list[Contender]:
    texts = source.texts
    folder.mkdir()
    database = sqlite3.connect(folder / "fts.db")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(body, content='', detail=none)")
    start = time.perf_counter()
    with database:
        database.executemany("INSERT INTO t(rowid, body) VALUES (?, ?)", enumerate(texts))
    rate = len(texts) / (time.perf_counter() - start)

    def ask(terms: list[str]) -> Any:
        wanted = " OR ".join(f'"{term}"' for term in terms)
        return database.execute(
            "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10", (wanted,)
        ).fetchall()

    return [Contender("SQLite FTS5", rate, _size(folder), ask, "no total")]


def with_xapian(
    documents: Collection, folder: Path, asked: list[list[str]], repeats: int, console: Console
) -> list[Contender]:
    probe = subprocess.run([SYSTEM_PYTHON, "-c", "import xapian"], capture_output=True, check=False)
    if probe.returncode:
        console.print("Xapian is left out: the system's Python has no bindings (Debian: python3-xapian)")
        return []
    folder.mkdir()
    with (folder / "documents").open("w") as out:
        for document in documents.documents():
            out.write(json.dumps(document) + "\n")
    (folder / "queries").write_text(json.dumps(asked))
    command = [SYSTEM_PYTHON, str(Path(__file__).with_name("search_xapian.py")), str(folder / "documents")]
    command += [str(folder / "queries"), str(repeats), str(folder / "db")]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    rate = answer["records"] / answer["ingest"]
    return [
        Contender("Xapian", rate, answer["bytes"], None, "after the others, alone", times=answer["times"])
    ]


def _texts(documents: Collection) -> Iterator[str]:
    for terms, frequencies in documents.documents():
        yield " ".join(" ".join([term] * f) for term, f in zip(terms, frequencies, strict=True))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _yardstick() -> float:
    start = time.perf_counter()
    sum(range(300_000))
    return time.perf_counter() - start


def measure(contenders: list[Contender], asked: list[list[str]], repeats: int) -> float:
    """Fills in the contenders' times in milliseconds; gives the noise of the machine."""
    present = [(contender, contender.ask) for contender in contenders if contender.ask is not None]
    for contender, ask in present:
        contender.times = [[] for _ in asked]
        for terms in asked[:20]:
            ask(terms)
    ticks, order = [], random.Random(1)
    parts = [range(first, min(first + TURN, len(asked))) for first in range(0, len(asked), TURN)]
    for _ in range(repeats):
        for turn in range(len(parts)):
            ticks.append(_yardstick())
            # In one turn each contender has another part of the queries.
            own = [
                (ask, contender, parts[(turn + at) % len(parts)])
                for at, (contender, ask) in enumerate(present)
            ]
            for ask, contender, part in order.sample(own, len(own)):
                for number in part:
                    start = time.thread_time()
                    ask(asked[number])
                    contender.times[number].append((time.thread_time() - start) * 1e3)
    return max(ticks) / min(ticks)


def ratios(contender: Contender, rival: Contender, percent: float) -> list[float]:
    """A percentile of one over that of another, in each repeat; in ascending order."""
    own, other = (np.percentile(np.array(one.times), percent, axis=0) for one in (contender, rival))
    return sorted((own / other).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=150_000)
    parser.add_argument("--terms", type=int, default=60, help="of a generated document, in the middle")
    parser.add_argument("--texts", choices=("generated", "real"), default="generated")
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--ingests", type=int, default=3, help="the median counts; the slower engines, once")
    parser.add_argument("--only", default="", help="comma-separated: ours, tantivy, bm25s, sqlite, xapian")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    console = Console()
    only = set(filter(None, arguments.only.split(","))) or {"ours", "tantivy", "bm25s", "sqlite", "xapian"}
    if arguments.texts == "real":
        documents = windows(Path(os.environ["INDLET_DATA"]), arguments.records)
    else:
        documents = collection(arguments.records, arguments.terms)
    asked = queries(documents, arguments.queries)
    each = documents.postings / arguments.records
    console.print(
        f"{arguments.records:,} records, {documents.postings:,} postings, {each:.1f} terms a record"
    )
    work = Path(tempfile.mkdtemp(prefix="indlet-bench-"))
    try:
        source = Source(documents)
        steps = {"ours": ours, "tantivy": with_tantivy, "bm25s": with_bm25s, "sqlite": with_sqlite}
        built: dict[str, list[list[Contender]]] = {}
        for repeat in range(arguments.ingests):
            for name, step in steps.items():
                if name in only and (repeat == 0 or name in ("ours", "tantivy")):
                    built.setdefault(name, []).append(step(source, work / f"{name}{repeat}"))
        contenders: list[Contender] = []
        for repeats in built.values():
            rates = [each[0].records_per_second for each in repeats]
            for contender in repeats[-1]:
                contender.ingests, contender.records_per_second = rates, median(rates)
                contenders.append(contender)
        noise = measure(contenders, asked, arguments.repeats)
        if "xapian" in only:
            contenders += with_xapian(documents, work / "xapian", asked, arguments.repeats, console)
    finally:
        shutil.rmtree(work)
    report(contenders, documents, noise, arguments, console)


def report(
    contenders: list[Contender], documents: Collection, noise: float, arguments: Any, console: Console
) -> None:
    named = {contender.name: contender for contender in contenders}
    rival, built = (named.get(name, contenders[0]) for name in (RIVAL, "tantivy"))
    rows = []
    table = Table(title=f"noise {noise:.2f}; in brackets, times {rival.name} and {built.name}")
    for heading in ("engine", "p50 ms", "p95 ms", "records/s", "bytes/posting", "note"):
        table.add_column(heading, justify="left" if heading in ("engine", "note") else "right")
    for contender in contenders:
        medians = [float(np.median(times)) for times in contender.times]
        row: dict[str, Any] = {"engine": contender.name}
        cells = []
        for percent in (50, 95):
            row[f"p{percent}_ms"] = float(np.percentile(medians, percent))
            each = ratios(contender, rival, percent)
            row[f"p{percent}_ratios"] = each[0], median(each), each[-1]
            cells.append(f"{row[f'p{percent}_ms']:.3f} ({median(each):.2f}, {each[0]:.2f}–{each[-1]:.2f})")
        row["ingest_records_per_second"] = contender.records_per_second
        row["bytes_per_posting"] = contender.bytes / documents.postings
        row["note"] = contender.note
        # Of the turns that both had; one that came after the others, alone, had none.
        turns = zip(contender.ingests or [contender.records_per_second], built.ingests, strict=False)
        faster = sorted(own / other for own, other in turns)
        row["ingest_ratios"] = faster[0], median(faster), faster[-1]
        larger = contender.bytes / built.bytes
        told = f"{median(faster):.2f}, {faster[0]:.2f}–{faster[-1]:.2f}"
        cells.append(f"{contender.records_per_second:,.0f} ({told})")
        cells.append(f"{row['bytes_per_posting']:.2f} ({larger:.2f})")
        table.add_row(contender.name, *cells, contender.note)
        rows.append(row)
    console.print(table)
    if arguments.json:
        facts = {"records": arguments.records, "texts": arguments.texts, "postings": documents.postings}
        facts |= {"queries": arguments.queries, "repeats": arguments.repeats, "noise": noise}
        arguments.json.write_text(json.dumps({**facts, "engines": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
