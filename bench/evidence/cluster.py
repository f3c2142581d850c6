"""A cluster under faults, and how workers scale: four benches, and what they found."""

from __future__ import annotations

import shutil
from statistics import median

from bench.evidence.figures import Figures, table
from bench.evidence.peers import bench
from bench.evidence.setting import Found, Setting

TITLE = "A cluster: faults and workers"
_KINDS = {
    "harvest": "worker killed in a harvest, another one started",
    "crawl": "the same in a crawl",
    "index": "the same while it fills the index on OpenSearch",
    "write": "the same in writing out",
    "alerts": "the same in sending alerts",
    "restart": "database stopped at once and started again, two workers harvesting",
    "cut": "connections of both workers cut and refused for 3 s",
    "silent": "every packet between the harvesting worker and the database lost for 90 s; a second worker "
    "has another way",
}


def run(setting: Setting) -> Found:
    """Parts: nodes, jobs, metal, workers."""
    if not (shutil.which("mvn") and shutil.which("java")):
        return {"missing": "Maven and Java, from which a cluster is made"}
    rounds, records = setting.pick((1, 200), (3, 1000), (12, 3000))
    wanted = setting.parts or ("nodes", "jobs", "metal", "workers")
    found: Found = {}
    if "nodes" in wanted:
        found["nodes"] = bench(setting, "faults_cluster", "--rounds", rounds)
    if "jobs" in wanted:
        found["jobs"] = bench(setting, "faults_workers", "--rounds", rounds)
    if "metal" in wanted:
        found["metal"] = bench(setting, "bare_metal", "--rounds", rounds)
    if "workers" in wanted:
        for name, far in (("workers", 0), ("workers, far", 0.5)):
            found[name] = bench(setting, "workers", "--records", records, "--far", far)
    return found


def show(found: Found, figures: Figures) -> str:
    if "missing" in found:
        return f"Not run: it needs {found['missing']}."
    shown = {"nodes": _nodes, "metal": _metal, "jobs": _jobs, "workers": _workers, "workers, far": _workers}
    return "\n".join(make(found[name]) for name, make in shown.items() if name in found)


def _nodes(told: Found) -> str:
    return (
        f"Three search nodes (OpenSearch {told['search']}, 512 MB of heap), two shards with a replica; two "
        "users ask all the time, and each answer is compared with that of the embedded engine at the same "
        "position (`bench.faults_cluster`). In each round another node is killed.\n\n"
        + table(
            ["fault", "rounds", "right", "refused", "wrong or partial", "last refusal after",
             "slowest answer", "replicas back after", "load"],
            [
                [
                    one["fault"], one["rounds"], f"{one['right']:,}", f"{one['refused']:,}", one["wrong"],
                    _seconds(one["last_refusal"]), _seconds(one["slowest"]), _most(one["replicas_after"]),
                    _range(one["load"]),
                ]
                for one in told["faults"]
            ],
        )
    )  # fmt: skip


def _metal(told: Found) -> str:
    return (
        "The whole cluster of the bare-metal recipe: three search nodes, a database with a standby, two "
        "workers, two web nodes behind nginx; two users search by way of the proxy, and each answer is "
        "compared with that of a node on the embedded defaults (`bench.bare_metal`). After each fault the "
        "records are compared one by one.\n\n"
        + table(
            ["fault", "rounds", "right", "of a state between", "refused", "wrong or partial",
             "last refusal after", "slowest answer", "all harvested and searchable after"],
            [
                [
                    one["fault"], one["rounds"], f"{one['right']:,}", one["on_the_way"],
                    f"{one['refused']:,}", one["wrong"] + len(one["problems"]), _seconds(one["last_refusal"]),
                    _seconds(one["slowest"]), _most(one["done_after"]),
                ]
                for one in told["faults"]
            ],
        )
    )  # fmt: skip


def _jobs(told: Found) -> str:
    return (
        f"Workers and their database (`bench.faults_workers`, load {told['load']}); the provider counts how "
        "many requests it has at once, and two would be wrong.\n\n"
        + table(
            ["fault", "rounds", "while the job was on", "wrong", "from the fault to the end of the job",
             "reads meanwhile", "refused"],
            [
                [
                    _KINDS[one["kind"]], one["rounds"], one["within"], one["wrong"], _most(one["seconds"]),
                    one["read"] or "–", one["refused"] if one["read"] else "–",
                ]
                for one in told["faults"]
            ],
        )
    )  # fmt: skip


def _workers(told: Found) -> str:
    runs = told["runs"]
    rows = []
    first = median(one["records_per_second"] for one in runs if one["workers"] == 1)
    for count in sorted({one["workers"] for one in runs}):
        some = [one for one in runs if one["workers"] == count]
        mid = {name: median(one[name] for one in some) for name in some[0]}
        rate, per = mid["records_per_second"], 1e6 / (4 * told["records"])
        rows.append([
            count, f"{rate:,.0f}", f"{rate / first:.2f}", f"{mid['busy_cores']:.2f}",
            *(f"{per * mid[part]:,.0f}" for part in ("workers_cpu", "database_cpu", "providers_cpu")),
            f"{mid['waiting_for_the_lock']:.2f}",
        ])  # fmt: skip
    way = f", each request held back for {told['far']} s on its way" if told.get("far") else ""
    return (
        f"Workers over four sources of {told['records']:,} records each{way} (`bench.workers`, medians of "
        f"{len(runs) // len(rows)} rounds, load {_range([one['load'] for one in runs])}):\n\n"
        + table(
            ["workers", "records/s", "beside one", "busy cores", "µs a record: workers", "database",
             "providers", "sessions that wait to write"],
            rows,
        )
    )  # fmt: skip


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value else "–"


def _most(values: list[float]) -> str:
    return f"{median(values):.1f} s, at most {max(values):.1f}" if values else "–"


def _range(values: list[float]) -> str:
    return f"{min(values):.0f} to {max(values):.0f}" if values else "–"
