"""The page: made from what the experiments kept, and from nothing else."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any, Final

from bench.evidence import goals
from bench.evidence.figures import Figures
from bench.evidence.setting import circumstances

EXPERIMENTS: Final = (
    "equality", "load", "loss", "less", "models", "scale", "peers", "faults", "portal", "soak",
    "site", "engines", "cluster", "libraries", "sidecar",
)  # fmt: skip
HEAD: Final = """\
# The evidence

*Search collections that you do not hold: harvest the index, not the content.* This page measures that.
It is written by `make evidence` (or `python -m bench.evidence`) and never by hand; what each experiment found
is kept as JSON in `docs/evidence/results/`, and [bench/README.md](../../bench/README.md) says what each one
is, where to get the collections, and how to run it alone. Seeds are fixed. Other programs run at the settings
that their documentation recommends for the job. What failed or fell short is shown as such, and a section
says so where its results were put together from several runs.

Under each heading stand the command, when it was run, how long it took, how much processor time it used, and
how many cores other work kept busy meanwhile, or the load of the machine before it: above a tenth or so,
times are longer than they need be. Ratios are made of figures taken in one run; in brackets stand the least
and the greatest of repeated runs.
"""


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """What is kept of each experiment, in the order of the page."""
    found = {}
    for name in EXPERIMENTS:
        path = folder / f"{name}.json"
        if path.exists():
            found[name] = json.loads(path.read_text())
    return found


def write(folder: Path) -> None:
    kept = read(folder / "results")
    figures = Figures(folder)
    parts = [HEAD]
    sections = []
    for number, name in enumerate(EXPERIMENTS, 1):
        module = importlib.import_module(f"bench.evidence.{name}")
        sections.append(section(number, name, module, kept.get(name), figures))
    parts += [goals.show(kept), taken(kept)]
    parts += sections
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.md").write_text("\n\n".join(part.strip("\n") for part in parts) + "\n")


def section(number: int, name: str, module: Any, kept: dict[str, Any] | None, figures: Figures) -> str:
    title = f"## {number}. {module.TITLE}\n\n"
    if kept is None:
        return f"{title}Not run yet: `python -m bench.evidence {name}`"
    facts = f"{circumstances(kept, name)} · [raw](results/{name}.json)\n\n"
    if "note" in kept:  # by who took it: what a reader must know before the figures
        facts += f"{kept['note']}\n\n"
    if "failed" in kept:
        return f"{title}{facts}**Failed:**\n\n```\n{kept['failed'].strip()}\n```"
    try:
        return title + facts + str(module.show(kept["found"], figures))
    except (KeyError, TypeError, IndexError, ValueError) as e:
        # What an earlier version kept: the rest of the page is still to be read.
        return f"{title}{facts}**Cannot be shown** ({type(e).__name__}: {e}): run it again."


def taken(kept: dict[str, dict[str, Any]]) -> str:
    """What the figures were taken on; where experiments differ in it, each with its own."""
    facts: dict[str, dict[str, list[str]]] = {}
    for experiment, one in kept.items():
        for name, value in one["machine"].items():
            facts.setdefault(name, {}).setdefault(value, []).append(experiment)
    lines = ["## The machine\n"]
    for name, values in facts.items():
        for value, experiments in values.items():
            of = f" ({', '.join(experiments)})" if len(values) > 1 else ""
            lines.append(f"- {name}{of}: {value}")
    return "\n".join(lines)
