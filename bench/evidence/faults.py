"""Faults: what each harvester does with each hostile answer.

The misbehaving provider of the tests (tests/hostile) serves 47 records, some of them deleted, and commits one
fault at a time. Each harvester lists the records in a process of its own, with a limit of time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from bench.evidence.figures import Figures, bars, picture, table
from bench.evidence.harvesters import HARVESTERS
from bench.evidence.setting import Found, Setting
from bench.harvest_others import NAMES, missing

TITLE = "Faults"
SECONDS: Final = 90
TOGETHER: Final = 12
ROOT: Final = Path(__file__).parents[2]
# What each harvester is given beyond its defaults (bench/evidence/harvesters.py).
SETTINGS: Final = {
    "indlet": "4 retries with pauses of at most 0.2 s, 2 s of patience with silence",
    "sickle": "4 retries, also after 429, 500, 502 and 504, with pauses of 0.1 s; 2 s of patience",
    "scythe": "the same, with pauses of 1 s, its least",
    "pyoai": "requests by GET, bad characters ignored, 2 s of patience; it retries after 503 alone",
    "metha": "4 retries, 2 s of patience; month by month, its default",
    "oai-pmh.js": "pauses of 0.1 to 5 s; it retries after 503 with Retry-After alone, and waits for ever",
    "HTTP::OAI": "2 s of patience; it retries after 503 with Retry-After",
}
# What a harvest can come to -> its sign in the table.
OUTCOMES: Final = {
    "complete": "✓",
    "said so": "said so",
    "wrong silently": "**wrong**",
    "crashed": "crashed",
    "hung": "hung",
}


def faults() -> dict[str, tuple[Any, bool]]:
    """Name -> the fault, and whether all data can be had in spite of it."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from tests.hostile import misbehaving
    from tests.service.harvest import test_harvest_hostile as hostile

    found: dict[str, tuple[Any, bool]] = {"none": (None, True)}
    found |= {name: (fault, True) for name, (fault, _) in hostile.COMPLETE.items()}
    found |= {name: (fault, False) for name, fault in hostile.INCOMPLETE.items()}
    found["one record is malformed"] = misbehaving.malformed_record("oai:x.org:0012", single=True), False
    found["XML bomb"] = misbehaving.xml_bomb(), False
    return found


def run(setting: Setting) -> Found:
    absent = {name: reason for name in NAMES if (reason := missing(name))}
    harvesters = [name for name in HARVESTERS if name not in absent]
    chosen = faults()
    names = list(chosen)[: setting.pick(8, len(chosen), len(chosen))]
    rows: Found = {}
    # Most of the time goes into waiting: for stalls, pauses and lists without end.
    with ThreadPoolExecutor(TOGETHER) as pool:
        # The last ones wait longest, and so begin first.
        jobs = {
            (name, who): pool.submit(harvested, who, chosen[name][0])
            for name in reversed(names)
            for who in harvesters
        }
        for name, who in ((name, who) for name in names for who in harvesters):
            rows.setdefault(name, {"had": chosen[name][1], "harvesters": {}})
            rows[name]["harvesters"][who] = jobs[name, who].result()
            if who == harvesters[-1]:
                told = ", ".join(f"{w}: {r['outcome']}" for w, r in rows[name]["harvesters"].items())
                setting.say(f"{name}: {told}")
    return {"harvesters": harvesters, "absent": list(absent.values()), "seconds": SECONDS, "faults": rows}


def harvested(who: str, fault: Any) -> Found:
    """What came of one harvest, judged by what the provider really holds."""
    from tests.hostile.misbehaving import Provider

    with Provider(None, *((fault,) if fault else ())) as provider:
        command = [sys.executable, "-m", "bench.evidence.harvesters", who, provider.url]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            output, complaint = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the programs that it started
            process.communicate()
            return {"outcome": "hung", "why": f"not at its end after {SECONDS} s"}
        right = {r.identifier: r.title.split()[-1] for r in provider.records if not r.deleted}
    if process.returncode:
        return {"outcome": "crashed", "why": complaint.decode(errors="replace")[-200:]}
    return judged(json.loads(output), right)


def judged(told: Found, right: dict[str, str]) -> Found:
    """The outcome: are all records there with the words they should have, and if not, was it said?"""
    words = {name: (title.split() or [""])[-1] for name, title in told["live"].items()}
    whole = words == right
    outcomes = {"well": "complete" if whole else "wrong silently", "said": "said so", "broke": "crashed"}
    # Complete and complaining is complete: nothing is missing.
    if told["ended"] == "said" and whole:
        outcomes["said"] = "complete"
    missing = len(right.keys() - words.keys())
    wrong = sum(words[name] != right[name] for name in right.keys() & words.keys())
    why = told["why"] or (f"{missing} missing, {wrong} wrong" if not whole else "")
    return {"outcome": outcomes.get(told["ended"], "hung"), "why": why, "missing": missing, "wrong": wrong}


def totals(found: Found) -> dict[str, Counter[str]]:
    return {
        who: Counter(row["harvesters"][who]["outcome"] for row in found["faults"].values())
        for who in found["harvesters"]
    }


def show(found: Found, figures: Figures) -> str:
    counted = totals(found)
    with figures.plot("faults", 1, (8.4, 2.8)) as axis:
        bars(
            axis,
            list(OUTCOMES),
            {who: [counted[who][outcome] for outcome in OUTCOMES] for who in found["harvesters"]},
            labels="%d",
        )
        axis.set(title=f"What becomes of {len(found['faults'])} harvests")
        axis.legend()
    settings = "\n".join(f"- {who}: {SETTINGS[who]}" for who in found["harvesters"] if who in SETTINGS)
    left_out = f" Left out: {'; '.join(found['absent'])}." if found.get("absent") else ""
    return (
        "The misbehaving provider serves 47 records (some deleted) and commits one fault at a time. "
        "**Complete**: every record with its words. **Said so**: not all, and it reported an error. "
        "**Wrong**: not all, or other words, without a sign. **Crashed**: an unexpected error. **Hung**: "
        f"not finished after {found['seconds']} s, or a list without end. Others run with the retries and "
        "timeouts that they offer. The last column says whether a patient client can get all data at all."
        f"{left_out}\n\n"
        f"{picture('faults', 'How often each harvester was complete, said so, was wrong, crashed, hung')}\n\n"
        + table(
            ["fault", *found["harvesters"], "all available"],
            [
                [
                    name,
                    *(OUTCOMES[row["harvesters"][who]["outcome"]] for who in found["harvesters"]),
                    "yes" if row["had"] else "no",
                ]
                for name, row in found["faults"].items()
            ],
            len(found["harvesters"]) + 2,
        )
        + f"\nWhat each was given:\n\n{settings}\n"
        + ("\nWhere ours was not complete, this is what it came to:\n\n" if ours(found) else "")
        + "\n".join(f"- {name}: {OUTCOMES[one['outcome']]}, “{one['why']}”" for name, one in ours(found))
    )


def ours(found: Found) -> list[tuple[str, Found]]:
    """The faults under which our harvest was not complete."""
    rows = ((name, row["harvesters"]["indlet"]) for name, row in found["faults"].items())
    return [(name, one) for name, one in rows if one["outcome"] != "complete"]
