"""The index on OpenSearch beside the embedded engine: bench/engines.py, and what it found."""

from __future__ import annotations

import os
import shutil

from bench.engines import STATES
from bench.evidence.figures import Figures, table
from bench.evidence.peers import bench
from bench.evidence.setting import Found, Setting

TITLE = "The index on OpenSearch"
_ENGINES = {
    "embedded": "embedded",
    "opensearch": "OpenSearch, exact",
    "its own BM25": "OpenSearch, its own BM25",
    "its own BM25, exact totals": "the same with exact totals",
}
_INDEXING = ("records/s", "cpu_us_here", "cpu_us_nodes")
_AGAIN, _FIRST = "asked again", "asked for the first time"


def run(setting: Setting) -> Found:
    """Parts: answers, costs, million. Another version is chosen by OPENSEARCH_VERSION and JAVA; its answers
    are kept beside those of the newest."""
    if not os.environ.get("INDLET_TEST_OPENSEARCH") and not (shutil.which("mvn") and shutil.which("java")):
        return {"missing": "Maven and Java, from which a cluster is made"}
    topics, records, queries = setting.pick((2, 2_000, 5), (4, 50_000, 25), (25, 100_000, 100))
    wanted = setting.parts or setting.pick(
        ("answers", "costs"), ("answers", "costs"), ("answers", "costs", "million")
    )
    found: Found = {}
    version = os.environ.get("OPENSEARCH_VERSION", "")
    if "answers" in wanted:
        real = "cranfield,cacm,reuters21578" if setting.data else ""
        found[f"answers {version}".strip()] = bench(
            setting, "engines", "--collections", real, "--records", 0 if real else 2_000,
            "--shards", "1,3,6", "--replica", "--queries", topics, "--heap", "512m",
        )  # fmt: skip
    if "costs" in wanted:
        found["costs"] = bench(setting, "engines", "--records", records, "--queries", queries)
    if "million" in wanted:
        found["million"] = bench(setting, "engines", "--records", 1_000_000, "--queries", 30)
    return found


def show(found: Found, figures: Figures) -> str:
    if "missing" in found:
        return f"Not run: it needs {found['missing']}."
    runs = [one for part in found.values() if isinstance(part, list) for one in part]
    measured = [one for one in runs if _whole(one)]
    return (
        "`bench.engines` gives the same records to both engines and asks the same queries, of every model "
        "with 100 hits, and of BM25 also as conjunctions, with negations, with facets, from place 191 on and "
        "by date. Answers are compared whole: identifiers, order, scores as doubles, totals, facets. This is "
        "done as loaded, merged, after 15 % of the records were deleted, and merged again; where there are "
        "replicas, also on replicas alone. In brackets stands the machine's load.\n\n"
        + table(
            ["records", "number", "OpenSearch", "shards", "replica", "states", "answers", "different"],
            [
                [
                    one["collection"] + _load(one), f"{one['records']:,}", one["version"], one["shards"],
                    "yes" if one["replica"] else "no", sum(state in one for state in STATES),
                    *_differing(one),
                ]
                for one in runs if STATES[0] in one
            ],
        )
        + "".join(_costs(one) for one in measured)
    )  # fmt: skip


def _costs(one: Found) -> str:
    engines = {name: label for name, label in _ENGINES.items() if f"{name}: ms, {_AGAIN}" in one}
    queries = [[label, *_times(one, name)] for name, label in engines.items()]
    indexing = [
        [_ENGINES[name], *(f"{told[key]:,.0f}" for key in _INDEXING), *_bytes(one, name)]
        for name in _ENGINES
        if (told := one.get(f"{name}: indexing"))
    ]  # fmt: skip
    return (
        f"\n{one['records']:,} generated records, OpenSearch {one['version']} with {one['shards']} shards on "
        f"one node, {one['queries']} queries of two to four terms with "
        f"{one['matches a query, median']:,.0f} matches in the median{_load(one)}. Processor time is that "
        "of the client and that of the node.\n\n"
        + table(
            ["", "records/s", "µs a record, client", "node", "bytes a posting", "merged"], indexing
        )
        + "\n"
        + table(
            ["milliseconds", "p50", "p95", "processor, client", "node", "first time: p50", "p95"], queries
        )
    )  # fmt: skip


def _times(one: Found, name: str) -> list[str]:
    again, first = (one[f"{name}: ms, {label}"] for label in (_AGAIN, _FIRST))
    told = [again[key] for key in ("p50", "p95", "cpu_here", "cpu_nodes")] + [first["p50"], first["p95"]]
    return [f"{value:.2f}" for value in told]


def _bytes(one: Found, name: str) -> list[str]:
    if name == "its own BM25":
        return [f"{value:.2f}" for value in one["its own BM25: bytes a posting, as loaded and merged"]]
    return [f"{one[f'bytes a posting, {state}'][name]:.2f}" for state in ("as loaded", "merged")]


def _differing(one: Found) -> tuple[str, int]:
    counts = [pair for state in STATES for pair in one.get(state, {}).values()]
    return f"{sum(asked for asked, _ in counts):,}", sum(wrong for _, wrong in counts)


def _whole(one: Found) -> bool:
    """Whether its costs were measured."""
    return f"opensearch: ms, {_AGAIN}" in one


def _load(one: Found) -> str:
    return f" (load {one['load'][0]:.0f} to {one['load'][1]:.0f})"
