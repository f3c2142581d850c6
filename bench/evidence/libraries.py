"""Libraries that keep each other's records: what the benches of the mesh, of MARC and of duplicates found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.evidence import subjects
from bench.evidence.figures import COLOURS, MARKERS, Figures, picture, table
from bench.evidence.peers import bench
from bench.evidence.setting import Found, Setting

TITLE = "Libraries that keep each other's records"
PARTS = ("rounds", "agree", "duplicates", "known", "subjects", "readers")
_TOPOLOGIES = {
    "full": "all others (full mesh)", "star": "one in the middle, which harvests all (star)",
    "ring": "the next one (ring)", "chain": "its two neighbours (chain)",
}  # fmt: skip


def run(setting: Setting) -> Found:
    data = setting.data
    if data is None:
        raise FileNotFoundError("INDLET_DATA is not set: this needs the real MARC records and Reuters")
    sizes = setting.pick((400,), (9_000, 18_000), (9_000, 18_000, 36_000, 72_000))
    plan: dict[str, Callable[[], Any]] = {
        "rounds": lambda: bench(setting, "mesh", "--records", *sizes, "--sites", 2, 4),
        "agree": lambda: bench(
            setting, "mesh", "--agree", "--sites", 4, 8, "--changes", setting.pick(1, 3, 8)
        ),
        "duplicates": lambda: [
            run
            for records in (0, setting.pick(4_000, 20_000, 72_000))
            for run in bench(setting, "duplicates", "--records", records)
        ],
        "known": lambda: bench(setting, "duplicates", "--known"),
        "subjects": lambda: subjects.measured(data),
        "readers": lambda: bench(
            setting, "marc", "readers", *(("--formats", "mods") if setting.size == "small" else ())
        ),
    }
    return {name: plan[name]() for name in PARTS if name in (setting.parts or PARTS)}


def show(found: Found, figures: Figures) -> str:
    sections: dict[str, Callable[[list[Found]], str]] = {
        "rounds": lambda runs: _rounds(runs, figures), "agree": _agree, "duplicates": _duplicates,
        "known": _known,
        "subjects": _subjects, "readers": _readers,
    }  # fmt: skip
    return "\n\n".join(sections[name](found[name]).strip() for name in PARTS if name in found)


def _rounds(runs: list[Found], figures: Figures) -> str:
    with figures.plot("libraries", columns=3, size=(10.5, 3.4)) as axes:
        for number, sites in enumerate(sorted({one["sites"] for one in runs})):
            drawn = [one for one in runs if one["sites"] == sites]
            for axis, key, scale in zip(axes, ("seconds", "bytes", "requests"), (1, 1e-6, 1), strict=True):
                axis.plot(
                    [one["records"] for one in drawn], [one["daily"][key] * scale for one in drawn],
                    label=f"{sites} sites", color=COLOURS[number], marker=MARKERS[number],
                )  # fmt: skip
        for axis, label in zip(axes, ("seconds of processor time", "MB moved", "requests"), strict=True):
            axis.set(xlabel="records in all", ylabel=label, ylim=(0, None))
        axes[0].set(title="A daily round")
        axes[0].legend()
    rows = [
        [
            f"{one['records']:,}", one["sites"], _cost(one["first"]), _cost(one["daily"]),
            one["daily"]["requests"], f"{one['daily']['bytes'] / 1000:,.0f} kB",
            f"{one['daily']['records']:,}", _cost(one["idle"]),
            f"{one['idle']['bytes'] / 1000:,.0f} kB, {one['idle']['records']} records",
            "yes" if one["agree"] else "**no**",
            f"{one['origin_down']['found']:,} of {one['origin_down']['records']:,}",
        ]
        for one in runs
    ]  # fmt: skip
    real = runs[0]["real"]
    return (
        "### What a round costs\n\n"
        f"`bench.mesh`: sites share a collection, and each harvests all others over HTTP, compressed, and "
        f"republishes. {real:,} real MARC records; where more are wanted, they are repeated under other "
        "numbers. After the first exchange 1 % of every site's records changes: the daily round. Then comes "
        "a round without changes; what it moves beyond 4 or 24 kB is of the seconds by which harvests "
        "overlap. Processor seconds of all sites and both ends together, in brackets those of the clock, "
        "with the sites one after the other. At last one site is stopped, and its records are searched for "
        "at another.\n\n"
        + picture("libraries", "Seconds, megabytes and requests of a daily round as the collection grows")
        + "\n\n"
        + table(
            ["records", "sites", "first exchange", "daily round", "requests", "moved", "records taken",
             "round without changes", "moved then", "all sites agree", "found with the origin down"],
            rows, 0,
        )
    )  # fmt: skip


def _cost(cost: Found) -> str:
    return f"{cost['seconds']:.2f} s ({cost['clock']:.2f})"


def _agree(runs: list[Found]) -> str:
    rows = [
        [
            one["sites"], _TOPOLOGIES[one["topology"]], f"{one['mean']:.1f}", f"{one['longest']:.1f}",
            one["changes"],
        ]
        for one in sorted(runs, key=lambda one: int(one["sites"]))
    ]  # fmt: skip
    return (
        "### How long until all sites agree\n\n"
        "`bench.mesh --agree`: each site harvests its neighbours once in every interval, at a moment of its "
        "own, and one site changes a record at a random moment (real nodes; the moments are drawn, not "
        "waited for). Harvest intervals from the change until the last site has it:\n\n"
        + table(["sites", "each harvests", "mean", "longest", "changes"], rows, 0)
    )


def _duplicates(runs: list[Found]) -> str:
    kinds = list(runs[0]["recall_by_kind"])
    rows = [
        [
            f"{one['records']:,}", f"{one['real']:,}", one["injected"], "yes" if one["vectors"] else "no",
            f"{one['precision']:.3f}", f"{one['recall']:.3f}",
            *(f"{one['recall_by_kind'][kind]:.2f}" for kind in kinds),
            f"{one['seconds']:.1f} s", f"{one['peak_mb']:,} MB",
        ]
        for one in runs
    ]  # fmt: skip
    return (
        "### Duplicates\n\n"
        "`bench.duplicates`: copies as another cataloguer would have made them, without identifiers, among "
        "real MARC records of two libraries; every pair that was not injected counts as wrong. What is more "
        "than the real records is put together from their words, names and years, which measures time and "
        "says little of precision. The weights were set on the same records.\n\n"
        + table(
            ["records", "real", "injected", "term vectors", "precision", "recall",
             *(f"recall: {kind}" for kind in kinds), "took", "memory"],
            rows, 0,
        )
    )  # fmt: skip


def _known(runs: list[Found]) -> str:
    rows = [
        [
            f"{one['records']:,}", "yes" if one["vectors"] else "no",
            *(f"{one['recall_by_kind'][kind]:.3f} of {count}" for kind, count in one["by_kind"].items()),
            one["found"] - round(one["recall"] * one["injected"]), f"{one['seconds']:.1f} s",
        ]
        for one in runs
    ]  # fmt: skip
    kinds = [f"recall: {kind}" for kind in runs[0]["by_kind"]]
    return (
        "`bench.duplicates --known`: nothing is injected. Pairs of real records that differ and have one "
        "number of the Library of Congress or of OCLC are put into two libraries without their identifiers. "
        "Titles without a word in common are of test records that reuse a number, and of Chinese that lost "
        "its escape sequences. Other pairs that are found are mostly editions of one novel and year.\n\n"
        + table(["records", "term vectors", *kinds, "other pairs found", "took"], rows, 0)
    )


def _subjects(rows: list[Found]) -> str:
    return (
        "### Subjects\n\n"
        f"Reuters stories with topics, half of them coded finely (topics), half coarsely (14 fields); "
        f"{rows[0]['records']:,} of each half get codes of the other's scheme by the four methods of TRI "
        "(`python -m bench.evidence.subjects`).\n\n"
        + table(
            ["", "method", "precision", "recall", "ms a record", "cost"],
            [
                [
                    row["direction"], row["method"], f"{row['precision']:.3f}", f"{row['recall']:.3f}",
                    f"{row['milliseconds']:.3f}", row["cost"],
                ]
                for row in rows
            ],
            2,
        )
    )  # fmt: skip


def _readers(rows: list[Found]) -> str:
    programs = list(rows[0]["read"])

    def told(row: Found, name: str) -> str:
        if name not in row["read"]:
            return ""
        read, complaints = row["read"][name]
        other = row.get("other_text", {}).get(name)
        return f"{read:,}, {complaints} complaints" + (f", {other} with another text" if other else "")

    shown = [
        [
            row["what"], f"{row['records']:,}", f"{row['files']:,}" if "files" in row else "",
            *(told(row, name) for name in programs),
        ]
        for row in rows
    ]  # fmt: skip
    return (
        "### What other programs read\n\n"
        "`bench.marc readers`: the real MARC files as a catalogue's export, through two nodes over HTTP, "
        "into import folders; every file that was written is read by other programs. What is missing is "
        "explained in [formats](../formats.md#what-other-programs-read).\n\n"
        + table(["", "records", "files written", *programs], shown, 1)
    )
