"""How fast a folder becomes records, and how fast a crawl sees that nothing changed.

    python -m bench.crawl [--files 20000] [--words 300] [--workers 0] [--json FILE]

A tree of generated files (text and HTML, a hundred to a folder) is crawled, crawled again unchanged, crawled
after every file was touched, and after one file in a hundred was changed. Each crawl is a process of its own,
as people run it; its start is part of the time. Use of cores is CPU time, children included, by time passed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.generated import FREQUENT, words

OLD = 1_500_000_000


def tree(root: Path, files: int, length: int) -> int:
    """Files of words by Zipf's law, the commonest ones English; how many bytes they have."""
    rng = random.Random(1)
    vocabulary = FREQUENT + words(30_000)
    weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
    drawn = rng.choices(vocabulary, weights, k=2_000_000)
    size = 0
    for number in range(files):
        folder = root / f"{number // 10_000:03}" / f"{number // 100 % 100:02}"
        folder.mkdir(parents=True, exist_ok=True)
        start = rng.randrange(len(drawn) - 2 * length)
        text = " ".join(drawn[start : start + rng.randrange(length // 2, 2 * length)])
        if number % 4 == 0:
            place = folder / f"{number}.html"
            text = f"<html><head><title>Number {number}</title></head><body><p>{text}</p></body></html>"
        else:
            place = folder / f"{number}.txt"
        place.write_text(text)
        os.utime(place, (OLD, OLD))
        size += len(text)
    return size


def crawl(root: Path, data: Path, workers: int) -> dict[str, Any]:
    """What `indlet crawl` says of a crawl, with the time and the CPU time that it took."""
    command = [sys.executable, "-m", "indlet", "crawl", str(root), "--data", str(data), "--json"]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([*command, "--workers", str(workers)], capture_output=True, check=True)
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    (summary,) = json.loads(done.stdout)
    assert isinstance(summary, dict)
    return summary | {"seconds": seconds, "cpu": cpu, "rss_mb": after.ru_maxrss / 1024}


def measure(files: int, length: int, workers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        root, data = Path(scratch) / "tree", Path(scratch) / "data"
        size = tree(root, files, length)
        rows = {"first": crawl(root, data, workers)}
        rows["unchanged"] = crawl(root, data, workers)
        places = sorted(root.rglob("*.*"))
        for place in places:
            os.utime(place, (OLD + 60, OLD + 60))
        rows["touched"] = crawl(root, data, workers)
        for place in places[::100]:
            place.write_text(place.read_text() + " changed")
            os.utime(place, (OLD + 120, OLD + 120))
        rows["1 % changed"] = crawl(root, data, workers)
        store = (data / "store.sqlite").stat().st_size
    assert rows["first"]["records"] == files
    assert (rows["unchanged"]["read"], rows["unchanged"]["unchanged"]) == (0, files)
    assert (rows["touched"]["records"], rows["touched"]["touched"]) == (0, files)
    assert rows["1 % changed"]["records"] == len(places[::100])
    return {
        "files": files,
        "bytes": size,
        "store_bytes": store,
        "cores": os.cpu_count(),
        "crawls": {
            name: {
                "seconds": round(row["seconds"], 2),
                "files_per_second": round(files / row["seconds"]),
                "mb_per_second": round(row["bytes"] / 1e6 / row["seconds"], 2),
                "cores_used": round(row["cpu"] / row["seconds"], 2),
                "rss_mb": round(row["rss_mb"]),
            }
            for name, row in rows.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=300)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measure(options.files, options.words, options.workers)
    size, store = found["bytes"] / 1e6, found["store_bytes"] / 1e6
    print(f"{found['files']:,} files, {size:.0f} MB, store {store:.0f} MB\n")
    print("| crawl | s | files/s | MB/s read | cores used | RSS MB |\n|---|---|---|---|---|---|")
    for name, row in found["crawls"].items():
        print(f"| {name} | {' | '.join(f'{value:,}' for value in row.values())} |")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
