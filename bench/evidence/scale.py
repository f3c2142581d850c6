"""Scale: what crawling, serving, harvesting, indexing and asking cost as the collection grows.

Two providers hold half of a generated corpus each (bench/corpus.py, written straight into their
stores); one service harvests both over loopback until all is searchable, and is then asked queries under each
model. Crawls, which need real files, are measured on folders of generated files (bench/crawl.py).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from bench.crawl import crawl, tree
from bench.evidence.figures import COLOURS, MARKERS, Figures, logarithmic, picture, table
from bench.evidence.setting import Found, Setting
from bench.evidence.statistics import exponent
from bench.generated import collection
from bench.generated import queries as queries_of
from bench.processes import Failed, Node, indlet, memory, size_of
from bench.processes import run as execute

from indlet.service.index.expression import Or, Term
from indlet.service.search.library import Library
from indlet.service.search.rank import MODELS

TITLE = "Scale"
ROOT: Final = Path(__file__).parents[2]
TERMS: Final = 170
# cost -> how it is called
COSTS: Final = {
    "serve_cpu": "serve (CPU s)",
    "harvest_seconds": "harvest, store, index on the way (s)",
    "index_seconds": "start, and index the rest (s)",
    "service_cpu": "service (CPU s)",
    "seconds": "first request to searchable (s)",
    "query_ms": "BM25 query (median ms)",
    "peak_mb": "service memory, peak (MB)",
    "service_bytes": "service disk (bytes)",
}


def run(setting: Setting) -> Found:
    sizes = setting.pick(
        (2_000, 4_000), (10_000, 30_000, 100_000), (10_000, 30_000, 100_000, 300_000, 1_000_000)
    )
    files = setting.pick((200, 400), (1_000, 3_000, 10_000), (1_000, 3_000, 10_000, 30_000))
    found: Found = {"terms": TERMS, "path": [], "crawl": []}
    for count in files:
        found["crawl"].append(crawled(setting, count))
    for count in sizes:
        found["path"].append(path(setting, count))
    return found


def crawled(setting: Setting, count: int) -> Found:
    root, data = setting.work / "tree", setting.work / "crawled"
    size = tree(root, count, 300)
    first, again = crawl(root, data, 0), crawl(root, data, 0)
    for folder in (root, data):
        shutil.rmtree(folder)
    setting.say(f"{count:,} files: crawled in {first['seconds']:.1f} s, unchanged {again['seconds']:.1f} s")
    return {
        "files": count,
        "bytes": size,
        "seconds": first["seconds"],
        "cpu": first["cpu"],
        "unchanged_seconds": again["seconds"],
        "unchanged_read": again["read"],
    }


def path(setting: Setting, count: int) -> Found:
    """The whole path for so many records."""
    began = time.perf_counter()
    folder = setting.work / "nodes"
    nodes = [
        Node(folder, f"provider{number}", data=place)
        for number, place in enumerate(filled(setting, count), 1)
    ]
    made = time.perf_counter() - began
    service = setting.work / "service"
    with nodes[0], nodes[1]:
        before = [node.cpu() for node in nodes]
        cost = execute(indlet("harvest", *(node.root for node in nodes), "--data", service, "--json"))
        serve = [node.cpu() - at for node, at in zip(nodes, before, strict=True)]
        provider_mb = max(memory(node.pid) for node in nodes)
    told = json.loads(cost.output)
    assert sum(one["records"] for one in told) == count, told
    harvesting = max(one["seconds"] for one in told)
    row: Found = {
        "records": count,
        "generated_seconds": made,
        "seconds": cost.seconds,
        "harvest_seconds": harvesting,
        "index_seconds": cost.seconds - harvesting,
        "service_cpu": cost.cpu,
        "serve_cpu": sum(serve),
        "wire_bytes": sum(one["bytes"] for one in told),
        "requests": sum(one["requests"] for one in told),
        "peak_mb": cost.peak_mb,
        "private_mb": cost.private_mb,
        "provider_mb": provider_mb,
        "provider_bytes": sum(size_of(node.data) for node in nodes),
        "service_bytes": size_of(service),
        "store_bytes": sum(path.stat().st_size for path in service.glob("store.sqlite*")),
    }
    row |= asked(service, setting.seed, count)
    row["query_ms"] = row["models"]["bm25"]["p50_ms"]
    shutil.rmtree(service)
    if setting.corpora is None:
        shutil.rmtree(nodes[0].data.parent)
    setting.say(
        f"{count:,} records: {row['seconds']:.1f} s to searchable, peak {row['peak_mb']:,.0f} MB, "
        f"BM25 {row['query_ms']:.2f} ms"
    )
    return row


def filled(setting: Setting, count: int) -> list[Path]:
    """Two stores, each with half of the corpus: made now, or by an earlier run."""
    place = (setting.corpora or setting.work) / f"corpus-{count}-{TERMS}-{setting.seed}"
    stores = [place / "one", place / "two"]
    if (place / "complete").exists():
        return stores
    shutil.rmtree(place, ignore_errors=True)
    half = count // 2
    parts = (0, half), (half, count - half)
    fillers = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.corpus", str(store), str(first), str(own), str(TERMS),
             str(setting.seed)],
            cwd=ROOT,
        )
        for store, (first, own) in zip(stores, parts, strict=True)
    ]  # fmt: skip
    if sum(filler.wait() for filler in fillers):
        raise Failed("the generator of the corpus failed")
    (place / "complete").touch()
    return stores


def asked(service: Path, seed: int, count: int) -> Found:
    """Times of queries under each model, each asked three times; the statistics that they are asked of."""
    queries = queries_of(collection(20_000, TERMS, seed), 200)
    with Library.open(service) as library:
        searcher = library.searcher()
        statistics = searcher.stats()
        assert statistics.documents == count, statistics
        models: dict[str, Any] = {}
        for name, kind in MODELS.items():
            model = kind()
            times = np.empty((3, len(queries)))
            for turn in range(-1, 3):
                for number, terms in enumerate(queries):
                    began = time.perf_counter()
                    searcher.search(Or(tuple(map(Term, terms))), model, 10)
                    if turn >= 0:
                        times[turn, number] = (time.perf_counter() - began) * 1e3
            each = np.median(times, axis=0)
            models[name] = {
                "p50_ms": float(np.percentile(each, 50)),
                "p95_ms": float(np.percentile(each, 95)),
            }
    return {
        "postings": statistics.postings,
        "vocabulary": statistics.terms,
        "index_bytes": statistics.bytes,
        "segments": statistics.segments,
        "models": models,
    }


def growth(rows: list[Found], cost: str) -> float:
    """The exponent over the sizes from 30,000 on, where starting up no longer weighs, if there are three."""
    large = [row for row in rows if row["records"] >= 30_000]
    chosen = large if len(large) >= 3 else rows
    return exponent([row["records"] for row in chosen], [row[cost] for row in chosen])


def show(found: Found, figures: Figures) -> str:
    rows: list[Found] = found["path"]
    sizes = [row["records"] for row in rows]
    with figures.plot("scale", 2, (8.4, 4.2)) as (left, right):
        for number, cost in enumerate(("seconds", "harvest_seconds", "index_seconds", "serve_cpu")):
            values = [row[cost] for row in rows]
            words = f"{COSTS[cost]}, n^{growth(rows, cost):.2f}"
            left.plot(sizes, values, f"{MARKERS[number]}-", color=COLOURS[number], label=words)
        files = [row["files"] for row in found["crawl"]]
        spent = [row["seconds"] for row in found["crawl"]]
        left.plot(
            files, spent, "X:", color=COLOURS[6], label=f"crawl of files (s), n^{exponent(files, spent):.2f}"
        )
        left.set(xlabel="records", title="Seconds")
        logarithmic(left)
        left.legend(fontsize=8)
        for number, model in enumerate(rows[0]["models"]):
            times = [row["models"][model]["p50_ms"] for row in rows]
            right.plot(sizes, times, f"{MARKERS[number]}-", color=COLOURS[number], label=model)
        right.set(xlabel="records", title="Median query, ms")
        logarithmic(right)
        right.legend(fontsize=8)
    with figures.plot("scale-room", 2, (8.4, 3.2)) as (left, right):
        left.plot(
            sizes,
            [row["peak_mb"] for row in rows],
            "o-",
            color=COLOURS[0],
            label="service, with mapped files",
        )
        left.plot(
            sizes, [row["private_mb"] for row in rows], "s-", color=COLOURS[1], label="service, private"
        )
        left.plot(
            sizes,
            [row["provider_mb"] for row in rows],
            "^-",
            color=COLOURS[2],
            label="a provider, with mapped files",
        )
        left.set(xlabel="records", title="Peak memory, MB", ylim=(0, None))
        logarithmic(left, "x")
        left.legend()
        for number, (key, words) in enumerate(
            (("provider_bytes", "providers' stores"), ("store_bytes", "service's store"),
             ("index_bytes", "index"), ("wire_bytes", "moved"))
        ):  # fmt: skip
            values = [row[key] / row["records"] for row in rows]
            right.plot(sizes, values, f"{MARKERS[number]}-", color=COLOURS[number], label=words)
        right.set(xlabel="records", title="Bytes a record", ylim=(0, 1.45 * right.get_ylim()[1]))
        logarithmic(right, "x")
        right.legend(fontsize=8, ncols=2)
    last = rows[-1]
    rate = last["records"] / last["seconds"]
    parts = [
        f"Generated records of about {found['terms']} distinct terms and 1.5 kB of Dublin Core, half at "
        f"each of two providers, one service, all on this machine. The largest: **{last['records']:,} "
        f"records in {last['seconds'] / 60:.1f} minutes** from the first request to searchable (the start "
        f"of the process included), {rate:,.0f} records/s, peak memory of the service "
        f"**{last['peak_mb'] / 1024:.2f} GiB** ({last['private_mb']:,.0f} MB "
        f"without mapped files).\n",
        picture("scale", "Cost of each stage and of queries over the number of records, logarithmic") + "\n",
        picture("scale-room", "Memory and bytes per record over the number of records") + "\n",
        table(
            ["cost", *(f"{size:,}" for size in sizes), "grows as"],
            [
                [words, *(_number(row[cost]) for row in rows), f"n^{growth(rows, cost):.2f}"]
                for cost, words in COSTS.items()
            ],
        ),
        "Exponents are fitted by least squares over logarithms, from 30,000 records on where there are three "
        "such sizes.\n",
        table(
            [
                "records",
                "postings",
                "vocabulary",
                "wire MB",
                "index B/posting",
                *(f"{m} p50/p95 ms" for m in rows[0]["models"]),
            ],
            [
                [
                    f"{row['records']:,}",
                    f"{row['postings']:,}",
                    f"{row['vocabulary']:,}",
                    f"{row['wire_bytes'] / 1e6:,.0f}",
                    f"{row['index_bytes'] / row['postings']:.2f}",
                    *(f"{m['p50_ms']:.2f} / {m['p95_ms']:.2f}" for m in row["models"].values()),
                ]
                for row in rows
            ],
        ),
        "Crawls of real files:\n",
        table(
            ["files", "MB", "first s", "files/s", "cores used", "unchanged s", "files read then"],
            [
                [
                    f"{row['files']:,}",
                    f"{row['bytes'] / 1e6:.1f}",
                    f"{row['seconds']:.1f}",
                    f"{row['files'] / row['seconds']:,.0f}",
                    f"{row['cpu'] / row['seconds']:.2f}",
                    f"{row['unchanged_seconds']:.2f}",
                    row["unchanged_read"],
                ]
                for row in found["crawl"]
            ],
        ),
    ]
    return "\n".join(parts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
