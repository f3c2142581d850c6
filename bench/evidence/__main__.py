"""Runs experiments, and writes the page from their results.

INDLET_DATA names the folder of the collections. `page` only writes the page.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

from bench.evidence.page import EXPERIMENTS, write
from bench.evidence.runs import Plan, carry_out
from bench.evidence.setting import SIZES
from bench.harvest import prepare
from bench.processes import Failed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence"
WRITING = ("page",)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.evidence", description=__doc__)
    parser.add_argument(
        "experiments",
        nargs="*",
        metavar="experiment",
        help=f"{', '.join((*EXPERIMENTS, *WRITING))}; none: all",
    )
    parser.add_argument(
        "--size", choices=SIZES, default="full", help="full, the usual one: the sizes of the goals"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="repeat what a run that broke off has finished")
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument(
        "--parts",
        default="",
        help="of peers: serve,harvest,shapes,memory,search; of engines: answers,costs,million; of "
        "cluster: nodes,jobs,metal,workers; of site: a server, a documentation package, pages, histories; of "
        "libraries: rounds,agree,duplicates,known,subjects,readers; the others are kept",
    )
    parser.add_argument("--corpora", type=Path, help="keep generated corpora here for the next run")
    options = parser.parse_args()
    unknown = set(options.experiments) - {*EXPERIMENTS, *WRITING}
    if unknown:
        parser.error(f"no such experiment: {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}")
    chosen = [name for name in options.experiments or EXPERIMENTS if name not in WRITING]
    well = True
    if chosen:
        place = os.environ.get("INDLET_DATA", "")
        if not place:
            print(
                "INDLET_DATA is not set: generated stand-ins take the place of the collections",
                file=sys.stderr,
            )
        parts = tuple(filter(None, options.parts.split(",")))
        plan = Plan(
            options.size, options.seed, Path(place) if place else None, options.out / "results",
            options.corpora, parts,
        )  # fmt: skip
        with contextlib.suppress(Failed):  # if nothing can be harvested, the experiments will say so
            prepare()
        # What is asked for by name is repeated.
        well = carry_out(plan, chosen, again=options.again or bool(options.experiments))
    write(options.out)
    print(options.out / "index.md")
    sys.exit(not well)


if __name__ == "__main__":
    main()
