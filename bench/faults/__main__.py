"""Faults of the machine: python -m bench.faults [--trials 1000] [--only commit,merge] [--kinds kill].

Crawl, harvest, commit, merge, reindex and migration are each killed, torn in the middle of a write, run into
a full disk, cut off from power (what was not synced is lost, wholly or in part), given a clock that goes back
and a folder that cannot be written, at changes of files chosen by chance. Then each is done again,
undisturbed, and must come to what it would have come to at once: every record, an index that equals the
store, datestamps in order. Needs a C compiler and Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.faults import shim


def run(trials: int, only: list[str], seed: int = 1, kinds: list[str] | None = None) -> dict[str, object]:
    """In a process that has the shim."""
    from bench.faults.activities import activities, provider
    from bench.faults.trials import KINDS, Trials

    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    findings: list[str] = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="indlet-faults-") as name, contextlib.ExitStack() as stack:
        place = Path(name)
        wanted = only or ["harvest", "commit", "merge", "reindex", "migration", "crawl"]
        url = f"{stack.enter_context(provider(place)).root}/ft-oai" if "harvest" in wanted else ""
        known = activities(place, url)
        for activity in wanted:
            made = Trials(place, activity, known[activity])
            for number in range(-(-trials // len(wanted))):
                # Half of them kills; the rest one of each in turn.
                kind = KINDS[0] if number % 2 == 0 else KINDS[1 + number // 2 % (len(KINDS) - 1)]
                kind = kinds[number % len(kinds)] if kinds else kind
                counts[f"{activity}: {kind}"] += 1
                if found := made.trial(kind, chance):
                    findings.append(f"{activity}: {found}")
            print(f"{activity}: {made.changes} changes, {len(findings)} findings so far", file=sys.stderr)
    seconds = round(time.monotonic() - begun, 1)
    return {"trials": counts.total(), "seconds": seconds, "counts": dict(counts), "findings": findings}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--only", default="", help="activities, separated by commas")
    parser.add_argument("--kinds", default="", help="kinds of faults, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if shim.VARIABLE not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            try:
                library = shim.compiled(Path(folder))
            except shim.NoCompiler as e:
                raise SystemExit(str(e)) from e
            command = [sys.executable, "-m", "bench.faults", *sys.argv[1:]]
            sys.exit(subprocess.run(command, env=shim.environment(library), check=False).returncode)
    only, kinds = ([name for name in told.split(",") if name] for told in (given.only, given.kinds))
    found = run(given.trials, only, given.seed, kinds)
    counts, findings = found["counts"], found["findings"]
    assert isinstance(counts, dict)
    assert isinstance(findings, list)
    for name, count in counts.items():
        print(f"{name:<32} {count:>6}")
    print(f"{found['trials']} faults in {found['seconds']} s, {len(findings)} findings")
    for finding in findings:
        print(finding)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
