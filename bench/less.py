"""Less: what summaries and pruning save, and what they cost in effectiveness.

    INDLET_DATA=… python -m bench.less [--collections cranfield,cacm] [--model bm25] [--json FILE]

Each collection is analysed whole, pruned to a share of each document's terms, cut to its lead, and summarised
by lead and keywords; each index answers the collection's topics. A curve is a way and its settings, from mild
to harsh: postings that are left, bytes of the vectors as tf_compact carries them, mean average precision.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench.evidence.material import Judged, judged
from bench.evidence.topics import Ranking, by_topic, mean

from indlet.model import Record
from indlet.service.search.library import Library
from indlet.settings import Analysis, Settings
from indlet.store import Store
from indlet.text import Analyzer, policy_of

SHARES: Final = (0.7, 0.5, 0.3, 0.2, 0.1)
CURVES: Final = {
    "whole": [Analysis()],
    "pruned by frequency": [Analysis(prune=share) for share in SHARES],
    "lead": [Analysis(lead=share) for share in SHARES],
    "lead and keywords": [Analysis(lead=share, prune=share) for share in SHARES],
}


@dataclass(frozen=True)
class Point:
    collection: str
    curve: str
    share: float
    postings: int
    vector_bytes: int
    precision: float  # MAP


def measured(material: Judged, curve: str, analysis: Analysis, model: str) -> Point:
    analyzer = Analyzer(policy_of(analysis))
    vectors = {name: analyzer.vector(text) for name, text in material.texts.items()}
    # The portal's side is the usual one: queries are analysed alike under all of these policies.
    records = [
        Record(f"oai:x.org:{name}", {"identifier": [name]}, vector) for name, vector in vectors.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        with Store.open(folder) as store, store.write() as tx:
            tx.put(tx.origin("source", "texts"), records)
        with Library.open(Path(folder), Settings()) as library:

            def rank(name: str, text: str, depth: int) -> Ranking:
                return library.rank(text, depth, model=name)

            scores = by_topic((model,), material, rank)
            postings = library.searcher().stats().postings
    share = analysis.lead or analysis.prune or 1.0
    size = sum(len(vector.packed) for vector in vectors.values())
    return Point(material.name, curve, share, postings, size, mean(scores[model]["MAP"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--collections", default="cranfield,cacm")
    parser.add_argument("--model", default="bm25")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    named = os.environ.get("INDLET_DATA")
    points: list[Point] = []
    print("| collection | way | share | postings | bytes | MAP |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for collection in given.collections.split(","):
        material = judged(collection, Path(named) / collection if named else None, 1)
        for curve, policies in CURVES.items():
            for analysis in policies:
                one = measured(material, curve, analysis, given.model)
                points.append(one)
                print(
                    f"| {one.collection} | {curve} | {one.share:.0%} | {one.postings:,} "
                    f"| {one.vector_bytes:,} | {one.precision:.4f} |",
                    flush=True,
                )
    if given.json:
        given.json.write_text(json.dumps([asdict(point) for point in points], indent=2))


if __name__ == "__main__":
    main()
