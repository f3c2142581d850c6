"""Running experiments: in order, each kept as JSON, told while it goes, taken up again after a break."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.evidence.setting import Setting, machine
from bench.processes import Meter

# A run that broke off is taken up again on the same day; figures of one page belong together.
HOURS: Final = 12
ROOT: Final = Path(__file__).parents[2]
_NUMBERS = re.compile(r'[{\[](?:\s+(?:"[^"\n]*": )?-?[\d.]+(?:e-?\d+)?,?)+\s+[}\]]')


@dataclass(frozen=True)
class Plan:
    size: str
    seed: int
    data: Path | None
    results: Path
    corpora: Path | None = None
    parts: tuple[str, ...] = ()

    @property
    def diary(self) -> Path:
        """Where it is written down what the run has finished; outside of what is published."""
        name = f"indlet-evidence-{os.getuid()}-{self.size}-{self.seed}.json"
        return Path(tempfile.gettempdir()) / name


def carry_out(plan: Plan, names: Iterable[str], again: bool) -> bool:
    """Runs experiments in their order, without those that this run has finished; whether all ended well."""
    chosen = list(names)
    finished = {} if again else earlier(plan)
    began, failed = time.monotonic(), []
    for number, name in enumerate(chosen, 1):
        place = f"[{number}/{len(chosen)}] {name}"
        if name in finished:
            say(f"{place}: finished at {finished[name]} UTC, kept; --again repeats it")
            continue
        ahead = sum(filter(None, (usual(plan, one) for one in chosen[number - 1 :] if one not in finished)))
        expected = usual(plan, name)
        say(
            f"{place}, size {plan.size}"
            + (f": took {expected / 60:.1f} min last time, {ahead / 60:.0f} min to go" if expected else "")
        )
        if perform(plan, name):
            finished[name] = f"{datetime.now(UTC):%H:%M}"
            plan.diary.write_text(json.dumps({"results": str(plan.results), "finished": finished}))
        else:
            failed.append(name)
    say(
        f"{(time.monotonic() - began) / 60:.1f} min in all"
        + (f"; FAILED: {', '.join(failed)}" if failed else "")
    )
    if not failed:
        plan.diary.unlink(missing_ok=True)
    return not failed


def earlier(plan: Plan) -> dict[str, str]:
    """What a run that broke off or failed somewhere has finished: experiment -> when."""
    if plan.parts or not plan.diary.exists() or time.time() - plan.diary.stat().st_mtime > HOURS * 3600:
        return {}
    kept = json.loads(plan.diary.read_text())
    return dict(kept["finished"]) if kept["results"] == str(plan.results) else {}


def usual(plan: Plan, name: str) -> float:
    """Seconds that an experiment took when it was last kept at this size; 0 if unknown."""
    path = plan.results / f"{name}.json"
    kept = json.loads(path.read_text()) if path.exists() and not plan.parts else {}
    return float(kept["seconds"]) if kept.get("size") == plan.size and "found" in kept else 0.0


def perform(plan: Plan, name: str) -> bool:
    """Runs one experiment and keeps what it found; whether it came to its end."""
    module = importlib.import_module(f"bench.evidence.{name}")
    work = Path(tempfile.mkdtemp(prefix=f"indlet-{name}-"))
    setting = Setting(plan.size, work, plan.data, plan.seed, plan.corpora, plan.parts)
    kept: dict[str, Any] = {
        "experiment": name,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "size": plan.size,
        "seed": plan.seed,
        "machine": machine(),
    }
    meter = Meter()
    try:
        kept["found"] = module.run(setting)
        broken = [part for part, one in kept["found"].items() if isinstance(one, dict) and "failed" in one]
    except Exception:  # what failed is said on the page, and the other experiments go on
        kept["failed"] = traceback.format_exc(limit=-3).replace(f"{ROOT}/", "")
        print(kept["failed"], file=sys.stderr)
        broken = [name]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    kept |= meter.read()
    path = plan.results / f"{name}.json"
    plan.results.mkdir(parents=True, exist_ok=True)
    if plan.parts and "found" in kept and path.exists():
        kept["found"] = json.loads(path.read_text()).get("found", {}) | kept["found"]
    path.write_text(laid_out(kept))
    setting.say(f"{name}: {'FAILED, ' if broken else ''}{kept['seconds']:,.0f} s")
    return not broken


def laid_out(kept: dict[str, Any]) -> str:
    """JSON that people can read: an item a line, but numbers of one group on one line."""
    text = json.dumps(kept, indent=1)
    return _NUMBERS.sub(lambda match: " ".join(match[0].split()), text) + "\n"


def say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)
