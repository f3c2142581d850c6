"""Harvesting pages in the shapes of seven systems (bench/shapes.py), beside other harvesters.

    python -m bench.harvest_shapes [--records 100000] [--pages 100 1000] [--repeat 3] [--json FILE]
    python -m bench.harvest_shapes --only indlet --shapes DSpace --pages 1000 --records 25000 400000

A server of its own process hands out pages that were written before, so that it costs everybody the same and
little. The others iterate the oai_dc records and let them go (metha keeps the answers as files); `indlet
harvest` stores them and makes them searchable. All take turns, each in a process; time counts from its start
to its end, and processor time is that of the process and its children. Programs run as they do where they
were installed: byte code is there. Ratios to sickle are made within a turn; over the
shapes, their geometric mean and the worst of them are told. Private memory is the most that the process and
its children held at a time, files that they had mapped left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, Final
from urllib.parse import parse_qsl

from bench.processes import Server, free_port, indlet, run
from bench.shapes import SHAPES, write

from bench import harvest_others

WHO: Final = ("sickle", "scythe", "metha", "indlet")
_FRAME: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
    "<responseDate>2026-01-01T00:00:00Z</responseDate><request>http://x.example.org/oai</request>{}</OAI-PMH>"
)
_ANSWERS: Final = {
    "Identify": "<Identify><repositoryName>X</repositoryName><baseURL>http://x.example.org/oai</baseURL>"
    "<protocolVersion>2.0</protocolVersion><adminEmail>a@x.example.org</adminEmail><earliestDatestamp>"
    "1990-01-01T00:00:00Z</earliestDatestamp><deletedRecord>persistent</deletedRecord><granularity>"
    "YYYY-MM-DDThh:mm:ssZ</granularity></Identify>",
    "ListMetadataFormats": "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>"
    "<schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema><metadataNamespace>"
    "http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace></metadataFormat></ListMetadataFormats>",
    "ListSets": '<error code="noSetHierarchy">none</error>',
}


def serve(folder: Path, port: int) -> None:
    """Hands out the pages below a folder: one folder for each repository, by the path of its address."""
    import uvicorn

    pages = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    async def answer(scope: Any, _receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        asked = dict(parse_qsl(scope["query_string"].decode()))
        body = pages.get(folder / scope["path"].strip("/") / asked.get("resumptionToken", "0"), b"")
        if asked.get("verb") != "ListRecords":
            unknown = '<error code="badVerb">no</error>'
            body = _FRAME.format(_ANSWERS.get(asked.get("verb", ""), unknown)).encode()
        headers = [(b"content-type", b"text/xml; charset=utf-8"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    uvicorn.run(answer, port=port, log_level="error", access_log=False)


def harvested(who: str, url: str, data: Path) -> dict[str, Any]:
    """One harvest by one harvester."""
    if who == "indlet":
        cost = run(indlet("harvest", url, "--index", "none", "--data", data, "--json"))
        (told,) = json.loads(cost.output)
        assert told["outcome"] == "complete", told
        records = told["records"]
    else:
        cost = run(harvest_others.command(who, url, data), cwd=Path(__file__).parents[1])
        records = harvest_others.taken(who, cost.output, url, data)
    measured = {"seconds": cost.seconds, "cpu": cost.cpu, "private_mb": cost.private_mb}
    return {"who": who, "records": records, **measured}


def compare(shapes: list[str], records: int, size: int, repeat: int, who: list[str]) -> list[dict[str, Any]]:
    """Everybody in turn over every shape."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder, data, port = Path(scratch) / "pages", Path(scratch) / "data", free_port()
        for shape in shapes:
            write(folder / shape.replace(" ", "-"), shape, records, size)
        command = [sys.executable, "-m", "bench.harvest_shapes", "--serve", folder, "--port", port]
        root = f"http://127.0.0.1:{port}"
        with Server(command, f"{root}/x?verb=Identify"):
            for name in who:  # once before, uncounted: byte code is kept
                harvested(name, f"{root}/{shapes[0].replace(' ', '-')}", data)
                shutil.rmtree(data, ignore_errors=True)
            for turn in range(repeat):
                for shape in shapes:
                    for name in who:
                        row = harvested(name, f"{root}/{shape.replace(' ', '-')}", data)
                        assert row["records"] == records, row
                        rows.append({"shape": shape, "page": size, "turn": turn, **row})
                        shutil.rmtree(data, ignore_errors=True)
    return rows


def ratios(rows: list[dict[str, Any]], who: str, key: str) -> dict[str, float]:
    """Shape -> how many times as fast as sickle, the median over the turns; nothing without sickle."""
    base = {(r["shape"], r["page"], r["turn"]): r[key] for r in rows if r["who"] == "sickle"}
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["who"] == who and base:
            ratio = base[row["shape"], row["page"], row["turn"]] / row[key]
            found.setdefault(row["shape"], []).append(ratio)
    return {shape: median(each) for shape, each in found.items()}


def report(rows: list[dict[str, Any]]) -> None:
    print("records  page  shape            who      wall s   CPU s  private MB  x sickle, wall   CPU")
    for records, size in dict.fromkeys((row["records"], row["page"]) for row in rows):
        some = [row for row in rows if (row["records"], row["page"]) == (records, size)]
        for who in dict.fromkeys(row["who"] for row in some):
            wall, cpu = ratios(some, who, "seconds"), ratios(some, who, "cpu")
            for shape in dict.fromkeys(row["shape"] for row in some):
                own = [r for r in some if (r["who"], r["shape"]) == (who, shape)]
                seconds, used, memory = (median(r[k] for r in own) for k in ("seconds", "cpu", "private_mb"))
                beside = f"{wall[shape]:>16.2f}{cpu[shape]:>6.2f}" if wall else ""
                print(
                    f"{records:<9}{size:<6}{shape:<17}{who:<9}{seconds:>6.2f}{used:>8.2f}{memory:>12.0f}{beside}"
                )
            for told, each in (("geometric mean", geometric_mean), ("worst", min)) if wall else ():
                told = f"{records:<9}{size:<6}{told:<17}{who:<33}"
                print(f"{told}{each(wall.values()):>18.2f}{each(cpu.values()):>6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, nargs="+", default=[100_000])
    parser.add_argument("--pages", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(WHO), choices=WHO)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve, chosen.port)
        return
    absent = {name: harvest_others.missing(name) for name in chosen.only if name != "indlet"}
    for reason in filter(None, absent.values()):
        print(f"left out: {reason}", file=sys.stderr)
    who = [name for name in chosen.only if not absent.get(name)]
    rows = []
    for records in chosen.records:
        for size in chosen.pages:
            rows += compare(chosen.shapes, records, size, chosen.repeat, who)
    report(rows)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
