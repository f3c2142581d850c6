"""A node under everything at once for an hour: bench/soak.py, and what it found."""

from __future__ import annotations

from statistics import median

from bench.evidence.figures import COLOURS, Figures, picture, table
from bench.evidence.peers import bench
from bench.evidence.setting import Found, Setting

TITLE = "An hour of everything at once"
GOAL_MS = 50
_LINES = (("p50_ms", "p50"), ("p95_ms", "p95"), ("p99_ms", "p99, worst second"))
_KEPT = (
    ("descriptors", "open files"),
    ("threads", "threads"),
    ("children", "child processes"),
    ("segments", "segments"),
)


def run(setting: Setting) -> Found:
    records, minutes = setting.pick((2_000, 1), (50_000, 5), (100_000, 60))
    told = bench(setting, "soak", "--records", records, "--minutes", minutes)
    return {"records": records, "minutes": by_minute(told["seconds"]), "summary": told["summary"]}


def by_minute(seconds: list[Found]) -> list[Found]:
    """Of the seconds of each minute, the middle one's p50 and p95, the worst p99, the most of all else."""
    found = []
    for first in range(0, len(seconds), 60):
        part = seconds[first : first + 60]
        middle = {name: round(median(one[name] for one in part), 2) for name in ("p50_ms", "p95_ms")}
        most = {name: max(one[name] for one in part) for name in ("p99_ms", "memory_mb", *dict(_KEPT))}
        slow = sum(one["p95_ms"] > GOAL_MS for one in part)
        found.append(
            middle | most | {"errors": sum(one["errors"] for one in part), "seconds_above_goal": slow}
            | {"merges": part[-1]["merges"], "own_mb": part[-1]["own_mb"]}
        )  # fmt: skip
    return found


def _steady(minutes: list[Found]) -> str:
    if "merges" not in minutes[0]:  # a run of before these were counted
        return ""
    slow = [sum(one["seconds_above_goal"] for one in part) for part in (minutes, minutes[:20], minutes[-20:])]
    lengths = [60 * len(part) for part in (minutes, minutes[:20], minutes[-20:])]
    shares = [f"{one / length:.1%}" for one, length in zip(slow, lengths, strict=True)]
    return (
        f" Without mapped files: {minutes[0]['own_mb']:,.0f}, {minutes[len(minutes) // 2]['own_mb']:,.0f} "
        f"and {minutes[-1]['own_mb']:,.0f} MB. The p95 of a second was above {GOAL_MS} ms in {shares[0]} of "
        f"the seconds, {shares[1]} of the first 20 minutes and {shares[2]} of the last. The index had at "
        f"most {max(one['segments'] for one in minutes)} segments; {minutes[-1]['merges']} merges were seen."
    )


def show(found: Found, figures: Figures) -> str:
    minutes = found["minutes"]
    at = range(1, len(minutes) + 1)
    with figures.plot("soak", columns=3, size=(10.5, 3.4)) as (times, memory, kept):
        for number, (name, label) in enumerate(_LINES):
            times.plot(at, [one[name] for one in minutes], label=label, color=COLOURS[number])
        times.axhline(GOAL_MS, color="#777777", linestyle=":", linewidth=1)
        times.set(title="milliseconds", xlabel="minutes", ylim=(0, None))
        memory.plot(at, [one["memory_mb"] for one in minutes], color=COLOURS[0])
        memory.set(title="memory of the node, MB", xlabel="minutes", ylim=(0, None))
        for number, (name, label) in enumerate(item for item in _KEPT if item[0] in minutes[0]):
            kept.plot(at, [one[name] for one in minutes], label=label, color=COLOURS[number])
        kept.set(title="held by the node", xlabel="minutes", ylim=(0, None))
        times.legend()
        kept.legend()
    return (
        f"`bench.soak`: a node with {found['records']:,} records is searched 50 times a second, by page and "
        "by API with all facets. Meanwhile it harvests a source of which 100 records change every second, "
        "crawls a folder that grows by a file every second, gives a feed every second, has five clients that "
        "send and read slowly, and a second source that dies half-way. A request's time counts from when it "
        f"was due.{' ' + found['beside'] if 'beside' in found else ''}\n\n"
        + table(
            ["what", "requests", "errors", "p50 ms", "p95 ms", "p99 ms", "worst ms"],
            [
                [
                    row["what"],
                    f"{row['requests']:,}",
                    row["errors"],
                    *(f"{row[key]:.1f}" for key in ("p50_ms", "p95_ms", "p99_ms", "worst_ms")),
                ]
                for row in found["summary"]
            ],
        )
        + f"\nMemory, most in a minute: {minutes[0]['memory_mb']:,.0f} MB in the first, "
        f"{minutes[len(minutes) // 2]['memory_mb']:,.0f} MB half-way, "
        f"{minutes[-1]['memory_mb']:,.0f} MB in the last.{_steady(minutes)}\n\n"
        + picture("soak", "Answer times, memory and what the node holds, minute by minute")
    )
