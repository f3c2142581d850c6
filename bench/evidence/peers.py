"""Peers: serving, harvesting, ingesting and asking beside the programs that people use for that today.

Reruns the benches of this repository (bench/serve.py, bench/harvest.py, bench/search.py), each in processes
of its own, several times. Within one run everybody works on the same records on the same machine, in turn;
ratios are made within a run, and told as their median, least and greatest over the runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean
from typing import Any, Final

from bench.evidence.figures import COLOURS, Figures, picture, table
from bench.evidence.setting import Found, Setting, circumstances
from bench.evidence.statistics import Spread, spread
from bench.harvest_shapes import ratios as shape_ratios
from bench.processes import Failed, Meter
from bench.processes import run as execute
from bench.serve import form_of
from bench.serve import ratios as round_ratios

from bench import harvest_others
from indlet.service.search.rank import MODELS

TITLE = "Peers"
SECTIONS: Final = {
    "serve": "Serving", "harvest": "Harvesting index formats", "shapes": "Harvesting real shapes",
    "memory": "Memory of a harvest", "search": "Ingest and queries",
}  # fmt: skip
# What has its index in common with another.
SHARED: Final = (
    *(f"indlet {name}" for name in MODELS if name != "bm25"),
    *(f"indlet {name}, at least" for name in MODELS),
    "tantivy, no total",
)
ROOT: Final = Path(__file__).parents[2]


def bench(setting: Setting, name: str, *arguments: object) -> Any:
    """What a bench says of one run."""
    place = setting.work / f"{name}.json"
    command = [sys.executable, "-m", f"bench.{name}", *arguments, "--json", place]
    cost = execute(command, cwd=ROOT)
    setting.say(f"bench.{name}: {cost.seconds:.0f} s")
    told = json.loads(place.read_text())
    if isinstance(told, dict):
        told.get("settings", {}).pop("json", None)  # where this run kept it is nobody's concern
    return told


def run(setting: Setting) -> Found:
    serve = setting.pick((5_000, 5), (20_000, 20), (50_000, 30))
    harvest = setting.pick(2_000, 20_000, 100_000)
    memory = setting.pick((500, 2_000), (5_000, 20_000), (25_000, 100_000, 400_000))
    search = setting.pick((5_000, 50), (50_000, 200), (150_000, 400))
    plain = ("--queries", search[1], "--repeats", 5)
    two = (*plain, "--only", "ours,tantivy")
    searches = [
        ("--records", search[0], *plain),
        ("--records", setting.pick(5_000, 50_000, 1_000_000), "--terms", 90, "--ingests", 1, *two),
    ]
    if setting.data:
        searches.append(("--texts", "real", "--records", setting.pick(5_000, 50_000, 150_910), *two))
    texts = ("--texts", "real") if setting.data else ()
    plan: dict[str, Callable[[], Any]] = {
        "serve": lambda: bench(setting, "serve", "--records", serve[0], "--rounds", serve[1]),
        "harvest": lambda: bench(
            setting, "harvest", "--records", harvest, "--repeat", setting.pick(1, 3, 3), *texts
        ),
        "shapes": lambda: bench(
            setting, "harvest_shapes", "--records", harvest, "--repeat", setting.pick(1, 3, 3)
        ),
        "memory": lambda: bench(
            setting, "harvest_shapes", "--only", "indlet", "--shapes", "DSpace", "--pages", 1000,
            "--records", *memory, "--repeat", setting.pick(1, 3, 3),
        ),
        "search": lambda: [bench(setting, "search", *arguments) for arguments in searches],
    }  # fmt: skip
    absent = [reason for name in harvest_others.NAMES if (reason := harvest_others.missing(name))]
    sizes = {"serve": serve[0], "memory": memory[-1], "search": search[0]}
    found: Found = {"absent": absent}
    for name, part in plan.items():
        if setting.parts and name not in setting.parts:
            continue
        began, meter = datetime.now(UTC).isoformat(timespec="seconds"), Meter()
        try:
            found[name] = part()
        except Failed as e:
            setting.say(str(e))
            found[name] = {"failed": str(e).replace(f"{ROOT}/", "")[-1500:]}
        found[f"{name}_run"] = {"taken": began, "size": setting.size, **meter.read()}
        found[f"{name}_run"]["records"] = sizes.get(name, harvest)
    if isinstance(found.get("harvest"), list):
        for row in found["harvest"]:
            row.pop("stats", None)
    return found


def harvest_ratios(rows: list[Found], key: str = "rate") -> dict[tuple[int, str, str], tuple[Spread, Spread]]:
    """(terms, harvester, form) -> records/s, and the ratio to sickle in the same turn.

    Of its runs over most records.
    """
    found = {}
    for terms, harvester, form in dict.fromkeys((r["terms"], r["harvester"], r["form"]) for r in rows):
        own = _largest(rows, terms, harvester, form)
        base = {
            r["turn"]: r[key]
            for r in rows
            if (r["terms"], r["harvester"], r["records"]) == (terms, "sickle", own[0]["records"])
        }
        found[terms, harvester, form] = (
            spread([r[key] for r in own]),
            spread([r[key] / base[r["turn"]] for r in own]),
        )
    return found


def _largest(rows: list[Found], terms: int, harvester: str, form: str) -> list[Found]:
    own = [r for r in rows if (r["terms"], r["harvester"], r["form"]) == (terms, harvester, form)]
    most = max(r["records"] for r in own)
    return [r for r in own if r["records"] == most]


def harvest_memory(rows: list[Found]) -> dict[int, Spread]:
    """Records -> the private memory that harvests of so many took, in MB."""
    sizes = sorted({row["records"] for row in rows})
    return {size: spread([row["private_mb"] for row in rows if row["records"] == size]) for size in sizes}


def search_runs(runs: list[Found]) -> dict[str, list[Found]]:
    """The runs on each collection, by what it is, and by when if that is not the time of all."""
    found: dict[str, list[Found]] = {}
    for run in runs:
        size = f"{run['postings'] / run['records']:.0f} different terms"
        name = f"{run['records']:,} {run.get('texts', 'generated')} documents of {size}"
        when = f" ({run['taken'][:10]})" if "taken" in run else ""
        found.setdefault(name + when, []).append(run)
    return found


def search_ratios(runs: list[Found], key: str, beside: str = "tantivy") -> dict[str, tuple[Spread, Spread]]:
    """engine -> the figure, and its ratio to another's in the same run; the runs are on one collection."""
    found = {}
    for row in runs[0]["engines"]:
        name = row["engine"]
        values, ratios = [], []
        for run in runs:
            engines = {one["engine"]: one for one in run["engines"]}
            values.append(engines[name][key])
            ratios.append(engines[name][key] / engines[beside][key])
        found[name] = spread(values), spread(ratios)
    return found


def serve_ratios(runs: list[Found], page: int = 500) -> dict[str, tuple[Spread, Spread]]:
    """Other server -> how many times as many records as it we serve in oai_dc, uncoded, round by round.

    By time passed, in which the client and whatever else runs have their share, and by processor time.
    """
    found = {}
    for name in ("pyoai", "oairepo"):
        wall, cpu = (
            spread([ratio for run in runs for ratio in round_ratios(run["rounds"], name, page, key)])
            for key in ("seconds", "cpu_seconds")
        )
        found[name] = wall, cpu
    return found


def _effort(one: Found) -> float:
    return float(one["records"] / max(one["cpu_seconds"], 0.01))


def show(found: Found, figures: Figures) -> str:
    parts = [f"Left out: {'; '.join(found['absent'])}.\n"] if found["absent"] else []
    for name, words in SECTIONS.items():
        if name not in found:
            parts.append(f"### {words}\n\nNot run yet: `python -m bench.evidence peers --parts {name}`\n")
            continue
        parts.append(f"### {words}\n\n{circumstances(found[f'{name}_run'], f'peers --parts {name}')}\n")
        if "failed" in found[name]:
            parts.append(f"**Failed:**\n\n```\n{found[name]['failed'].strip()}\n```\n")
        else:
            parts.append(globals()[f"_{name}"](found[name], found[f"{name}_run"]["records"], figures))
    return "\n".join(parts)


def _serve(runs: list[Found], records: int, figures: Figures) -> str:
    rows: dict[tuple[str, str, str, int], list[Found]] = {}
    for run in runs:
        for one in run["runs"]:
            form = form_of(one["request"])
            rows.setdefault((one["server"], form, one["coding"], one["records"]), []).append(one)
    pages = dict.fromkeys(one["page"] for run in runs for one in run["rounds"])
    beside = [
        [page, name, str(cpu), str(rate)]
        for page in pages
        for name, (rate, cpu) in serve_ratios(runs, page).items()
    ]
    return (
        f"`bench.serve`, a store of {records:,} records with the values of seven systems and real texts, as "
        "a crawl keeps them. A client that parses nothing follows the tokens. All servers are up at once "
        "and have small turns in drawn order; ratios of records in oai_dc without coding are made within "
        "each round, and told as their median and range:\n\n"
        + table(["records a page", "beside", "times, by processor time", "times, by time passed"], beside, 2)
        + "\n\nEach form and coding of ours, harvested whole in pages of 500 records or 2,000 headers:\n\n"
        + table(
            ["server", "form", "coding", "records", "records/s", "per CPU second", "first page ms",
             "last page ms", "private MB"],
            [
                [server, form, coding, f"{count:,}", _whole(spread([o["records_per_second"] for o in own])),
                 _whole(spread([_effort(o) for o in own])),
                 f"{spread([o['first_ms'] for o in own]).median:.1f}",
                 f"{spread([o['last_ms'] for o in own]).median:.1f}",
                 f"{spread([o['memory_mb'] for o in own]).median:.0f}"]
                for (server, form, coding, count), own in rows.items()
            ],
            3,
        )
    )  # fmt: skip


def _harvest(rows: list[Found], records: int, figures: Figures) -> str:
    ratios, started = harvest_ratios(rows), harvest_ratios(rows, "with_start_rate")
    terms = sorted({key[0] for key in ratios})
    with figures.plot("peers-harvest", len(terms), (8.4, 3.0), squeeze=False, sharex=True) as grid:
        for axis, count in zip(grid[0], terms, strict=True):
            own = {f"{who} {form}": of[0] for (n, who, form), of in ratios.items() if n == count}
            _across(axis, own)
            axis.set(title=f"Records/s, {count} terms a record")
    lines = []
    for key, (rate, ratio) in ratios.items():
        count, who, form = key
        taken = _largest(rows, *key)
        memory = harvest_memory([r for r in rows if (r["terms"], r["harvester"], r["form"]) == key])
        lines.append(
            [who, form, count, f"{taken[0]['records']:,}", _whole(rate), str(ratio), _whole(started[key][0]),
             str(started[key][1]), f"{spread([r['cpu'] for r in taken]).median:.1f}",
             f"{spread([r['server_cpu'] for r in taken]).median:.1f}",
             " → ".join(f"{of.high:,.0f}" for of in memory.values()),
             f"{max(r['peak_mb'] for r in taken):,.0f}"]
        )  # fmt: skip
    return (
        f"`bench.harvest`, {records:,} records, {rows[-1].get('texts', 'generated')} texts, over loopback, "
        f"all in turn, {rows[-1]['turn'] + 1} times. The "
        "others take the metadata alone: they iterate over the records and drop them, but metha keeps "
        "the answers as files. Ours stores metadata and index and makes them "
        "searchable. The time counts from the first request that the server sees to the end of the process; "
        "*with start* counts from the start of the process. Private memory is that of a quarter of the "
        "records → of all of them; the peak has mapped files too. Less common harvesters got a "
        "quarter of the records, once.\n\n"
        f"{picture('peers-harvest', 'Records per second of each harvester')}\n\n"
        + table(
            ["harvester", "form", "terms", "records", "records/s", "times sickle", "with start: records/s",
             "times sickle", "CPU s", "server CPU s", "private MB", "peak MB"],
            lines,
            2,
        )
    )  # fmt: skip


def _shapes(rows: list[Found], records: int, figures: Figures) -> str:
    lines = []
    for who in dict.fromkeys(row["who"] for row in rows):
        wall, cpu = (shape_ratios(rows, who, key) for key in ("seconds", "cpu"))
        for shape in wall:
            own = [row for row in rows if (row["who"], row["shape"]) == (who, shape)]
            rate = spread([row["records"] / row["seconds"] for row in own])
            lines.append([shape, who, _whole(rate), f"{wall[shape]:.2f}", f"{cpu[shape]:.2f}"])
        for told, each in (("geometric mean", geometric_mean), ("worst", min)):
            lines.append([told, who, "", f"{each(wall.values()):.2f}", f"{each(cpu.values()):.2f}"])
    return (
        f"`bench.harvest_shapes`, {records:,} records in each shape of seven systems (bench/shapes.py, "
        "learned from captured responses; texts of real collections in seven languages and three scripts), "
        "pages of 100 and of 1,000, from the start of the process to its end. The others iterate the "
        "records; ours are stored and searchable.\n\n"
        + table(["shape", "harvester", "records/s", "times sickle", "by processor time"], lines, 2)
    )


def _memory(rows: list[Found], records: int, figures: Figures) -> str:
    lines = [
        [f"{size:,}", _whole(memory), _whole(spread([r["seconds"] for r in rows if r["records"] == size]))]
        for size, memory in harvest_memory(rows).items()
    ]
    return (
        "`bench.harvest_shapes`, the shape of DSpace, pages of 1,000. The most private memory that the "
        "processes of a harvest and its index held at a time; files that they had mapped are left out.\n\n"
        + table(["records", "private MB", "seconds"], lines, 0)
    )


def _search(runs: list[Found], records: int, figures: Figures) -> str:
    each = search_runs(runs)
    first = next(iter(each.values()))
    with figures.plot("peers-search", 2, (8.4, 3.4)) as (left, right):
        _across(left, {name: of[0] for name, of in search_ratios(first, "p50_ms").items()})
        left.set_xscale("log")
        left.set(title="Median query, ms (logarithmic)")
        ingest = {n: of[0] for n, of in search_ratios(first, "ingest_records_per_second").items()}
        # The models share one index, and both ways of asking tantivy another.
        _across(right, {n.removesuffix(" bm25"): s for n, s in ingest.items() if n not in SHARED})
        right.set(title="Records/s ingested")
    parts = [
        "`bench.search`. Top ten by BM25 unless named; in brackets, times tantivy's in the same run (of "
        "query times, tantivy's without a total; then the least and the largest of any round). The picture "
        "shows the first collection.\n\n"
        f"{picture('peers-search', 'Query time and ingest speed of each engine')}\n"
    ]
    return "\n".join([*parts, *(_search_table(name, own) for name, own in each.items())])


def _search_table(name: str, runs: list[Found]) -> str:
    queried, built = ("p50_ms", "p95_ms"), ("ingest_records_per_second", "bytes_per_posting")
    by_key = {key: search_ratios(runs, key, "tantivy, no total") for key in queried}
    by_key |= {key: search_ratios(runs, key) for key in built}
    forms = dict(zip((*queried, *built), (".3f", ".3f", ",.0f", ".2f"), strict=True))
    rows = [
        [
            row["engine"],
            *(
                f"{by_key[key][row['engine']][0].median:{form}} ({by_key[key][row['engine']][1].median:.2f}"
                f"{_over_rounds(runs, row['engine'], key)})"
                for key, form in forms.items()
            ),
            row["note"],
        ]
        for row in runs[0]["engines"]
    ]
    noise = max(run["noise"] for run in runs)
    return (
        f"{name}, {runs[0]['postings']:,} postings, {runs[0]['queries']} queries, {runs[0]['repeats']} "
        f"rounds; noise of the machine {noise:.2f}:\n\n"
        + table(["engine", "p50 ms", "p95 ms", "records/s", "bytes/posting", "note"], rows)
    )


def _over_rounds(runs: list[Found], engine: str, key: str) -> str:
    """The least and the largest ratio in any round; nothing where rounds were not told apart."""
    told = [
        row[f"{key.removesuffix('_ms')}_ratios"]
        for run in runs
        for row in run["engines"]
        if row["engine"] == engine and f"{key.removesuffix('_ms')}_ratios" in row
    ]
    return f", {min(low for low, _, _ in told):.2f}–{max(high for _, _, high in told):.2f}" if told else ""


def _across(axes: Any, values: dict[str, Spread]) -> None:
    """Bars from left to right with their spread; ours in a colour of its own."""
    names = list(values)
    middle = [one.median for one in values.values()]
    errors = [
        [one.median - one.low for one in values.values()],
        [one.high - one.median for one in values.values()],
    ]
    colours = [COLOURS[0] if name.startswith("indlet") else COLOURS[5] for name in names]
    marks = {"lw": 1, "ecolor": "#333333"}
    drawn = axes.barh(names, middle, xerr=errors, color=colours, height=0.7, error_kw=marks)
    labels = [f"{value:,.0f}" if value >= 10 else f"{value:.3f}" for value in middle]
    axes.bar_label(drawn, labels, fontsize=8, padding=3)
    axes.margins(x=0.18)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", labelsize=8)


def _whole(one: Spread) -> str:
    return f"{one.median:,.0f} ({one.low:,.0f}–{one.high:,.0f})"
