"""A site copied by wget and by OAI-PMH, as in the mod_oai paper: bench/site.py, and what it found."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from bench.evidence.figures import Figures, table
from bench.evidence.peers import bench
from bench.evidence.setting import Found, Setting
from bench.processes import Meter

TITLE = "A web site, copied and kept up to date"
STAGES = ("baseline", "touched", "changed")
SERVERS = ("apache-event", "apache-prefork", "nginx")
# apt-get install linux-doc-6.1 python3.11-doc
TREES = {
    "linux-doc-6.1": Path("/usr/share/doc/linux-doc-6.1/html"),
    "python3.11-doc": Path("/usr/share/doc/python3.11/html"),
}
COMPARED = (*SERVERS, "linux-doc-6.1")  # what is of the paper's size; the goals are held to these
WGET, OURS = "wget from a full list", "ListRecords, DIDL"
WAYS = ("wget from the home page", WGET, "ListIdentifiers + wget", OURS)


def run(setting: Setting) -> Found:
    """Parts: a server's name, a documentation tree's, pages, histories."""
    files, megabytes = setting.pick((300, 10), (1_000, 55), (5_268, 292))
    generated = ("--files", files, "--megabytes", megabytes)
    turns = ("--turns", setting.pick(1, 1, 3))
    chunks = setting.pick("10,100", "10,100,1000", "10,50,100,500,1000,5000")
    plan: dict[str, tuple[object, ...]] = {
        server: ("--server", server, *generated, *turns, "--chunks", "") for server in SERVERS
    }
    plan |= {
        name: ("--server", SERVERS[0], "--tree", tree, *turns, "--chunks", "")
        for name, tree in TREES.items()
        if tree.is_dir()
    }
    plan["pages"] = ("--server", SERVERS[0], *generated, *turns, "--chunks", chunks, "--only-pages")
    plan["histories"] = ("--histories", setting.pick(3, 20, 100))
    found: Found = {}
    for name in setting.parts or plan:
        meter = Meter()
        found[name] = bench(setting, "site", *plan[name]) | meter.read()
    return found


def medians(run: Found, way: str, stage: str) -> dict[str, float]:
    rows = [cost for cost in run["costs"] if (cost["way"], cost["stage"]) == (way, stage)]
    found = {
        name: float(median(row[name] for row in rows))
        for name in ("seconds", "requests", "bytes", "client_cpu", "server_cpu", "current")
    }
    return found | {"cpu": median(row["client_cpu"] + row["server_cpu"] for row in rows)}


def times(found: Found, stage: str, figure: str) -> dict[str, float]:
    """How many times the cost of our way that of wget is, by server or tree."""
    return {
        name: medians(found[name], WGET, stage)[figure] / medians(found[name], OURS, stage)[figure]
        for name in COMPARED
    }


def show(found: Found, figures: Figures) -> str:
    runs = {name: found[name] for name in (*SERVERS, *TREES) if name in found}
    parts = [
        "`bench.site`: the experiment of the mod_oai paper (Nelson, Van de Sompel, Liu et al. 2004), on a "
        "generated site of its size with three servers, and on the HTML of documentation packages of Debian "
        "with Apache: copied once, after a quarter of the files was touched, and after the same quarter got "
        "other bytes. Each way is a program; its start is included. The ways alternate. Seconds "
        "are those of the clock; processor seconds are those of the client and of the servers (web server "
        "and node). `indlet mirror` waits until all files are on the disk, wget does not; before each way "
        "the disk is idle. Files: how many of the copy are those of the site then, by bytes and time.\n"
    ]
    parts += [_shown(name, run) for name, run in runs.items()]
    if "pages" in found:
        one = found["pages"]
        parts.append(
            f"Lists of all records by page size ({one['server']}, the same site), read to their end: "
            "identifiers, and records with their files in DIDL. A page ends at 16 MB in any case. "
            f"{_taken(one)}\n"
        )
        headings = ["page", "ListIdentifiers", "s", "processor s", "ListRecords", "s", "processor s"]
        parts.append(table(headings, [list(row.values()) for row in one["sweep"]]))
    if "histories" in found:
        told = found["histories"]
        parts.append(
            f"After {told['histories']} random histories with clocks set forward and back, restored old "
            "files, renames and withdrawn rights, incremental harvesters had missed "
            f"{told['missed']} changes."
        )
    return "\n".join(parts)


def _shown(name: str, run: Found) -> str:
    rows = []
    for stage in STAGES:
        for way in sorted({cost["way"] for cost in run["costs"]}, key=WAYS.index):
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
                    f"{one['current']:,.0f}",
                ]
            )
    what = f"{run['files']:,} files, {run['bytes'] / 1e6:,.0f} MB"
    where = name if name == run["server"] else f"{name}, {run['server']}"
    headings = ["stage", "way", "s", "client", "servers", "requests", "MB", "files"]
    return f"**{where}** ({what}). {_taken(run)}\n\n{table(headings, rows, 2)}"


def _taken(run: Found) -> str:
    number, when = run["turns"], run["began"][:16].replace("T", " ")
    turns = "One turn" if number == 1 else f"Medians of {number} turns"
    return f"{turns}, {when} UTC, others kept {run['others_cores']:.2f} cores busy:"
