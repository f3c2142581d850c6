"""Runs experiments, keeps what they found, and writes the page."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.evidence.page import EXPERIMENTS, write
from bench.evidence.setting import SIZES, Setting, machine

_NUMBERS = re.compile(r'[{\[](?:\s+(?:"[^"\n]*": )?-?[\d.]+(?:e-?\d+)?,?)+\s+[}\]]')
PAGE = Path(__file__).parents[2] / "docs" / "evidence"


def perform(
    name: str,
    size: str,
    data: Path | None,
    seed: int,
    out: Path,
    corpora: Path | None = None,
    parts: tuple[str, ...] = (),
) -> bool:
    """Runs one experiment and keeps what it found; whether it came to its end."""
    module = importlib.import_module(f"bench.evidence.{name}")
    work = Path(tempfile.mkdtemp(prefix=f"indlet-{name}-"))
    setting = Setting(size, work, data, seed, corpora, parts)
    setting.say(f"{module.TITLE} ({name}, size {size})")
    kept: dict[str, Any] = {
        "experiment": name,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "size": size,
        "seed": seed,
        "load_before": round(os.getloadavg()[0], 2),
        "machine": machine(),
    }
    began = time.perf_counter()
    try:
        kept["found"] = module.run(setting)
    except Exception:  # what failed is said on the page, and the other experiments go on
        kept["failed"] = traceback.format_exc(limit=-3)
        print(kept["failed"], file=sys.stderr)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    kept["seconds"] = round(time.perf_counter() - began, 1)
    out.mkdir(parents=True, exist_ok=True)
    if parts and "found" in kept and (out / f"{name}.json").exists():
        kept["found"] = json.loads((out / f"{name}.json").read_text()).get("found", {}) | kept["found"]
    (out / f"{name}.json").write_text(laid_out(kept))
    setting.say(f"{name}: {kept['seconds']} s")
    return "failed" not in kept


def laid_out(kept: dict[str, Any]) -> str:
    """JSON that people can read: an item a line, but numbers of one group on one line."""
    text = json.dumps(kept, indent=1)
    return _NUMBERS.sub(lambda match: " ".join(match[0].split()), text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.evidence", description=__doc__)
    parser.add_argument("experiments", nargs="*", metavar="experiment", help=", ".join(EXPERIMENTS))
    parser.add_argument("--size", choices=SIZES, default="usual", help="full: the sizes of the goals")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument("--parts", default="", help="of peers: serve,harvest,search; the others are kept")
    parser.add_argument("--corpora", type=Path, help="keep generated corpora here for the next run")
    parser.add_argument("--page", action="store_true", help="only write the page from what is kept")
    options = parser.parse_args()
    unknown = set(options.experiments) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"no such experiment: {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}")
    place = os.environ.get("INDLET_DATA", "")
    data = Path(place) if place else None
    if data is None and not options.page:
        print(
            "INDLET_DATA is not set: generated stand-ins take the place of the collections", file=sys.stderr
        )
    done = [
        perform(
            name,
            options.size,
            data,
            options.seed,
            options.out / "results",
            options.corpora,
            tuple(filter(None, options.parts.split(","))),
        )
        for name in ([] if options.page else options.experiments or EXPERIMENTS)
    ]
    write(options.out)
    print(options.out / "index.md")
    sys.exit(not all(done))


if __name__ == "__main__":
    main()
