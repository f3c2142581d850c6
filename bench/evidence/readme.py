"""The figures of the README: a block between two marks, made from what the experiments kept."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.evidence import goals, page
from bench.evidence.figures import table

BEGIN: Final = "<!-- figures: written by `python -m bench.evidence readme` -->"
END: Final = "<!-- end of figures -->"


def block(results: Path) -> str:
    """What stands between the marks."""
    kept = page.read(results)
    days = sorted({one["taken"][:10] for one in kept.values()})
    cores = "/".join(sorted({one["machine"]["cores"] for one in kept.values()}))
    when = days[0] if len(set(days)) == 1 else f"{days[0]} to {days[-1]}"
    rows = goals.judged(kept, headlines=True)
    every = goals.judged(kept)
    met = sum(word == "met" for *_, word in every)
    return (
        f"Taken on {cores} cores, {when}; in brackets the least and the greatest of repeated runs. {met} of "
        f"all {len(every)} goals are met.\n\n" + table(["", "measured", "goal", ""], rows, 4)
    )


def rewrite(path: Path, results: Path) -> None:
    text = path.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{path} has no place for the figures: it needs the lines {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n{block(results)}{END}{after}")
