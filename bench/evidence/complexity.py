"""Where the extension of the protocol costs: at the protocol, or behind it.

The paper that this follows claims the latter. Both are measured: processor time, and lines of our code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.evidence.figures import table
from bench.evidence.setting import Found
from bench.processes import Node, indlet, run

import indlet as package

ROOMS: Final = {
    "the protocol itself: arguments, tokens, answers": (
        "oai/*.py", "provider/serve/*.py", "formats/oai_dc.py",
    ),
    "front end of the extension: index formats, bundles": (
        "formats/tf_*.py", "formats/bundle.py", "formats/terms.py",
    ),
    "back end of the provider: crawl, extraction, analysis": (
        "provider/*.py", "provider/extract/*.py", "text/*.py",
    ),
    "back end of the service: policies, index, models": (
        "service/analysis*.py", "service/policies.py", "service/normalise.py", "service/index*.py",
        "service/index/*.py", "service/rank/*.py",
    ),
}  # fmt: skip


def measure(node: Node, data: Path) -> Found:
    """Lines of code, and what a harvest by the plain protocol costs, where only metadata come."""
    before = node.cpu()
    cost = run(indlet("harvest", f"{node.root}/oai", "--index", "none", "--data", data, "--quiet"))
    plain = {"seconds": cost.seconds, "cpu": cost.cpu, "server_cpu": node.cpu() - before}
    return {"lines": lines(), "harvest_oai_dc": plain}


def lines() -> Found:
    """Lines without blanks and comments, by where they stand."""
    source = Path(str(package.__file__)).parent
    found: Found = {}
    for what, places in ROOMS.items():
        paths = [path for place in places for path in sorted(source.glob(place))]
        assert paths, f"{places}: no such files"
        found[what] = sum(
            bool(line.strip()) and not line.strip().startswith("#")
            for path in paths
            for line in path.read_text().splitlines()
        )
    return found


def show(found: Found) -> str:
    first = found["passes"]["first"]
    plain, full = found["complexity"]["harvest_oai_dc"], first["searchable"]["harvest"]
    lists = first["lists"]
    front = lists["tf_compact"]["zstd"]["server_cpu"] - lists["oai_dc"]["zstd"]["server_cpu"]
    rows = [
        ["provider, front end: serve the list with tf_compact, beyond oai_dc (zstd)", f"{front:.2f}"],
        ["provider, back end: crawl, extract, analyse, store", f"{found['crawl']['first']['cpu']:.2f}"],
        [
            "service: harvest and index tf_compact, beyond a harvest of oai_dc",
            f"{full['cpu'] - plain['cpu']:.2f}",
        ],
        ["service: harvest and index oai_dc alone", f"{plain['cpu']:.2f}"],
    ]
    return (
        "**Where the extension costs.** The paper that this follows claims that extending the protocol is "
        "simple, and that its complexity lies in what happens behind it. In processor time, for the first "
        "pass:\n\n"
        + table(["part", "CPU s"], rows)
        + "\nAnd in lines of our code, without blanks and comments:\n\n"
        + table(["part", "lines"], [[k, f"{v:,}"] for k, v in found["complexity"]["lines"].items()])
    )
