"""What it costs to tell the languages of harvested records: the share of the processor time of a harvest.

    INDLET_DATA=… python -m bench.languages [--records 100000] [--repeat 3] [--json FILE]

Records in the shapes of seven systems (bench/shapes.py), and records of a title alone, are harvested, stored
and indexed by `indlet harvest`, whose processor time is taken, its start included. Then the stored records
are analysed again here, block by block as the index process does it, and what tells languages is timed.
`asked` is the share of the records whose words leave a doubt, so that the statistical model is asked.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from bench.harvest_shapes import harvested
from bench.processes import Server, free_port
from bench.shapes import SHAPES, TITLES, write

from indlet.service.index.embedded import analysis, languages
from indlet.service.index.embedded.analysis import Analyses
from indlet.service.index.embedded.languages import Judged
from indlet.service.index.follow import BLOCK
from indlet.store import open_store
from indlet.text import Analyzer, Policy


class TimedAnalyses(Analyses):
    """Analyses that tell how long languages took."""

    seconds = 0.0

    def _languages(self, *given: Any) -> list[str]:
        start = time.thread_time()
        found = super()._languages(*given)
        self.seconds += time.thread_time() - start
        return found


def told(data: Path, records: int, repeat: int) -> tuple[float, float]:
    """Seconds to tell the languages of all stored records, the median; and the share that the model is
    asked of.
    """
    with open_store(str(data), create=False) as store, store.read() as view:
        changes = list(view.changes(0, records, parts=("metadata", "vector", "positions")))
    seconds, asked = [], 0

    def modelled(texts: Sequence[str], places: Sequence[int], by: Judged) -> list[str]:
        nonlocal asked
        asked += len(texts)
        return languages.modelled(texts, places, by)

    setattr(analysis, "modelled", modelled)  # noqa: B010  type checkers do not see that it is there
    for _ in range(repeat):
        analyses = TimedAnalyses(Analyzer(Policy()))
        for first in range(0, len(changes), BLOCK):
            analyses.together(changes[first : first + BLOCK])
        seconds.append(analyses.seconds)
    return median(seconds), asked / len(changes) / repeat


def measure(shape: str, records: int, repeat: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        folder, port = Path(scratch), free_port()
        write(folder / "pages" / "x", shape, records, 1000)
        url = f"http://127.0.0.1:{port}/x"
        command = [sys.executable, "-m", "bench.harvest_shapes", "--serve", folder / "pages", "--port", port]
        with Server(command, f"{url}?verb=Identify"):
            runs = [harvested("indlet", url, folder / str(turn)) for turn in range(repeat)]
        cpu = median(run["cpu"] for run in runs)
        seconds, asked = told(folder / "0", records, repeat)
    return {
        "shape": shape, "records": records, "microseconds": 1e6 * seconds / records,
        "harvest_microseconds": 1e6 * cpu / records, "share": seconds / cpu, "asked": asked,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--shapes", nargs="+", default=[*SHAPES, TITLES], choices=[*SHAPES, TITLES])
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    print("shape            languages, µs  harvest, µs  share  asked")
    rows = []
    for shape in chosen.shapes:
        row = measure(shape, chosen.records, chosen.repeat)
        rows.append(row)
        print(
            f"{shape:<17}{row['microseconds']:>13.2f}{row['harvest_microseconds']:>13.1f}{row['share']:>7.1%}"
            f"{row['asked']:>7.1%}"
        )
    if systems := [row["share"] for row in rows if row["shape"] in SHAPES]:
        print(f"mean of the systems{mean(systems):>31.1%}")
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
