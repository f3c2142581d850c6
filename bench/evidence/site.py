"""A site copied by wget and by OAI-PMH, as in the mod_oai paper: bench/site.py, and what it found."""

from __future__ import annotations

from statistics import median

from bench.evidence.figures import Figures, table
from bench.evidence.peers import bench
from bench.evidence.setting import Found, Setting

TITLE = "A web site, copied and kept up to date"
STAGES = ("baseline", "touched", "changed")
SERVERS = ("apache-event", "apache-prefork", "nginx")
WGET, OURS = "wget from a full list", "ListRecords, DIDL"


def run(setting: Setting) -> Found:
    files, megabytes = setting.pick((300, 10), (1_000, 55), (5_268, 292))
    histories, turns = setting.pick(3, 20, 100), setting.pick(1, 1, 3)
    chunks = setting.pick("10,100", "10,100,1000", "10,50,100,500,1000,5000")
    runs = [
        bench(
            setting, "site", "--server", server, "--files", files, "--megabytes", megabytes, "--turns", turns,
            "--chunks", chunks if server == SERVERS[0] else "",
        )
        for server in SERVERS
    ]  # fmt: skip
    return {"runs": runs, "histories": bench(setting, "site", "--histories", histories)}


def medians(run: Found, way: str, stage: str) -> dict[str, float]:
    rows = [cost for cost in run["costs"] if (cost["way"], cost["stage"]) == (way, stage)]
    found = {
        name: float(median(row[name] for row in rows))
        for name in ("seconds", "requests", "bytes", "client_cpu", "server_cpu")
    }
    return found | {"cpu": median(row["client_cpu"] + row["server_cpu"] for row in rows)}


def times(found: Found, stage: str, figure: str) -> dict[str, float]:
    """How many times the cost of our way that of wget is, by server."""
    return {
        run["server"]: medians(run, WGET, stage)[figure] / medians(run, OURS, stage)[figure]
        for run in found["runs"]
    }


def _turns(number: int) -> str:
    return "One turn" if number == 1 else f"Medians of {number} turns"


def show(found: Found, figures: Figures) -> str:
    first = found["runs"][0]
    turns = sum((cost["way"], cost["stage"]) == (OURS, "baseline") for cost in first["costs"])
    parts = [
        "`bench.site`: the experiment of the mod_oai paper (Nelson, Van de Sompel, Liu et al. 2004), on a "
        f"site of {first['files']:,} files and {first['bytes'] / 1e6:,.0f} MB: copied once, after a quarter "
        "of the files was touched, and after the same quarter got other bytes. Each way is a program; its "
        f"start is included. {_turns(turns)}, in which the ways alternate. Seconds are those of the clock; "
        "processor seconds are those of the client and of the servers (web server and node). The load of the "
        "machine stands with each server.\n"
    ]
    for run in found["runs"]:
        ways = list(dict.fromkeys(cost["way"] for cost in run["costs"]))
        rows = []
        for stage in STAGES:
            for way in ways:
                one = medians(run, way, stage)
                rows.append(
                    [
                        stage,
                        way,
                        f"{one['seconds']:.2f}",
                        f"{one['client_cpu']:.2f}",
                        f"{one['server_cpu']:.2f}",
                        f"{one['requests']:,.0f}",
                        f"{one['bytes'] / 1e6:,.0f}",
                    ]
                )
        before, after = run["load"]
        parts.append(f"**{run['server']}**, {run['began']}, load {before} before and {after} after:\n")
        parts.append(table(["stage", "way", "s", "client", "servers", "requests", "MB"], rows, 2))
    if first["sweep"]:
        parts.append(
            f"A list of all records with several page sizes ({first['server']}); a page ends at 16 MB:\n"
        )
        headings = ["page", "ListIdentifiers", "s", "processor s", "ListRecords", "s", "processor s"]
        parts.append(table(headings, [list(row.values()) for row in first["sweep"]]))
    told = found["histories"]
    parts.append(
        f"After {told['histories']} random histories with clocks set forward and back, restored old files, "
        f"renames and withdrawn rights, incremental harvesters had missed {told['missed']} changes."
    )
    return "\n".join(parts)
