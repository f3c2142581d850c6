"""The portal under load: bench/portal.py, and what it found."""

from __future__ import annotations

from bench.evidence.figures import Figures, table
from bench.evidence.peers import bench
from bench.evidence.setting import Found, Setting

TITLE = "The portal under load"


def run(setting: Setting) -> Found:
    records, seconds = setting.pick((2_000, 3), (50_000, 10), (150_000, 20))
    told = bench(setting, "portal", "--records", records, "--seconds", seconds)
    return {"records": records, "seconds": seconds, "told": told}


def show(found: Found, figures: Figures) -> str:
    rows = rows_of(found)
    return (
        f"`bench.portal`: {found['records']:,} records, 50 requests a second for {found['seconds']} s in "
        "each phase, sent when due whether or not earlier ones were answered; its time counts from then.\n\n"
        + table(
            ["what", "phase", "requests", "errors", "p50 ms", "p95 ms", "p99 ms", "worst ms"],
            [
                [
                    row["what"],
                    row["phase"],
                    row["requests"],
                    row["errors"],
                    *(f"{row[key]:.1f}" for key in ("p50_ms", "p95_ms", "p99_ms", "worst_ms")),
                ]
                for row in rows
            ],
            2,
        )
    )


def rows_of(found: Found) -> list[Found]:
    told = found["told"]
    rows = told if isinstance(told, list) else next(v for v in told.values() if isinstance(v, list))
    return list(rows)
