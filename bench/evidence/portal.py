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
    driven = wrk_of(found)
    paced = (
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
                for row in rows_of(found)
            ],
            2,
        )
    )
    if not driven:
        return paced + "\n\nwrk was not installed: no closed loop was measured."
    return (
        paced
        + f"\n\nwrk beside it, as fast as it is answered over {driven[0]['connections']} connections:\n\n"
        + table(
            ["what", "phase", "requests/s", "errors", "p50 ms", "p95 ms", "p99 ms", "worst ms"],
            [
                [
                    row["what"],
                    row["phase"],
                    f"{row['per_second']:.0f}",
                    row["errors"],
                    *(f"{row[key]:.1f}" for key in ("p50_ms", "p95_ms", "p99_ms", "worst_ms")),
                ]
                for row in driven
            ],
            2,
        )
    )


def wrk_of(found: Found) -> list[Found]:
    """What wrk told; nothing where it was not installed, or before it was asked."""
    told = found["told"]
    return list(told.get("wrk", ())) if isinstance(told, dict) else []


def rows_of(found: Found) -> list[Found]:
    told = found["told"]
    rows = told if isinstance(told, list) else next(v for v in told.values() if isinstance(v, list))
    return list(rows)
