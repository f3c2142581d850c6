"""Less: what summaries and pruning save, and what they cost in effectiveness.

    INDLET_DATA=… python -m bench.less [--collections cranfield,cacm] [--model bm25] [--json FILE]

Each collection is analysed whole, pruned to a share of each document's terms, cut to its lead, and summarised
by lead and keywords; and the index of the whole is pruned by term (Carmel et al. 2001) at the service. Each
index answers the collection's topics. A curve is a way and its settings, from mild to harsh: the share of the
text's postings that is left, bytes of the vectors as tf_compact carries them, bytes of the index in one
segment, mean average precision, precision at 10, and the share of the whole's first ten that are still there.
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
from indlet.service.index import follow
from indlet.service.search.library import Library
from indlet.settings import Analysis, IndexEngine, Settings
from indlet.store import Store
from indlet.text import Analyzer, policy_of

SHARES: Final = (0.7, 0.5, 0.3, 0.2, 0.1)
BY_TERM: Final = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
WHOLE: Final = (Analysis(), IndexEngine())
CURVES: Final = {
    "whole": [WHOLE],
    "pruned by frequency": [(Analysis(prune=share), IndexEngine()) for share in SHARES],
    "lead": [(Analysis(lead=share), IndexEngine()) for share in SHARES],
    "lead and keywords": [(Analysis(lead=share, prune=share), IndexEngine()) for share in SHARES],
    "pruned by term, 10th best": [(Analysis(), IndexEngine(prune=share)) for share in BY_TERM],
    "pruned by term, 30th best": [(Analysis(), IndexEngine(prune=share, prune_best=30)) for share in BY_TERM],
}
# topic -> its first ten
Tens = dict[str, list[str]]


@dataclass(frozen=True)
class Point:
    collection: str
    curve: str
    share: float
    postings: int
    vector_bytes: int
    index_bytes: int
    precision: float  # MAP
    first_ten: float  # P@10
    agreement: float  # with the whole's first ten


def measured(
    material: Judged, curve: str, analysis: Analysis, engine: IndexEngine, model: str, tens: Tens
) -> Point:
    """One point; the first measurement, of the whole, fills in `tens`."""
    analyzer = Analyzer(policy_of(analysis))
    vectors = {name: analyzer.vector(text) for name, text in material.texts.items()}
    # The portal's side is the usual one: queries are analysed alike under all of these policies.
    records = [
        Record(f"oai:x.org:{name}", {"identifier": [name]}, vector) for name, vector in vectors.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        with Store.open(folder) as store, store.write() as tx:
            tx.put(tx.origin("source", "texts"), records)
        with Library.open(Path(folder), Settings(index=engine)) as library:
            follow.rebuild(library.store, engine=library.settings.index)
            found: Tens = {}

            def rank(name: str, text: str, depth: int) -> Ranking:
                listed = library.rank(text, depth, model=name)
                found[text] = [one.identifier for one in listed[:10]]
                return listed

            scores = by_topic((model,), material, rank)
            index = library.searcher()
            postings = sum(df for term, df, _ in index.vocabulary() if not term.startswith(b"\x1f"))
            held = index.stats().bytes
    share = engine.prune or analysis.lead or analysis.prune or 1.0
    size = sum(len(vector.packed) for vector in vectors.values())
    tens.update({} if tens else found)
    same = [len(set(ten) & set(found[text])) / len(ten) for text, ten in tens.items() if ten]
    precision, first_ten = (mean(scores[model][measure]) for measure in ("MAP", "P@10"))
    agreement = sum(same) / len(same)
    return Point(material.name, curve, share, postings, size, held, precision, first_ten, agreement)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--collections", default="cranfield,cacm")
    parser.add_argument("--model", default="bm25")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    named = os.environ.get("INDLET_DATA")
    points: list[Point] = []
    print(
        "| collection | way | share | postings kept | vectors, bytes | index, bytes | MAP | P@10 | same ten |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for collection in given.collections.split(","):
        material = judged(collection, Path(named) / collection if named else None, 1)
        tens: Tens = {}
        whole = 0
        for curve, ways in CURVES.items():
            for analysis, engine in ways:
                one = measured(material, curve, analysis, engine, given.model, tens)
                whole = whole or one.postings
                points.append(one)
                print(
                    f"| {one.collection} | {curve} | {one.share:.0%} | {one.postings / whole:.1%} "
                    f"| {one.vector_bytes:,} | {one.index_bytes:,} | {one.precision:.4f} "
                    f"| {one.first_ten:.4f} | {one.agreement:.1%} |",
                    flush=True,
                )
    if given.json:
        given.json.write_text(json.dumps([asdict(point) for point in points], indent=2))


if __name__ == "__main__":
    main()
