"""Inferred subjects beside those that cataloguers gave, on real stories.

    INDLET_DATA=… python -m bench.infer [--json FILE]

The stories of Reuters with topics go into a store, every other one without its topics. The index is made anew
with `index.infer`, which learns from those that have topics; what it says of the others is compared with the
topics that were taken away.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from bench.evidence.subjects import stories

from indlet.model import Record, TermVector
from indlet.service.index import inference
from indlet.service.search.library import Library
from indlet.settings import IndexEngine, Settings
from indlet.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    place = os.environ.get("INDLET_DATA", "")
    if not place:
        sys.exit("set INDLET_DATA to the folder of the collections")
    coded = stories(Path(place))
    random.Random(1).shuffle(coded)
    records = [
        Record(f"oai:x.org:{n}", {"subject": list(one.fine)} if n % 2 else {}, TermVector.of(one.terms))
        for n, one in enumerate(coded)
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Store.open(folder) as store, store.write() as tx:
            tx.put(tx.origin("source", "reuters"), records)
        with Library.open(folder, Settings(index=IndexEngine(infer=("subject",)))) as library:
            begun = time.process_time()
            learned = inference.learn(library.store, library.analyzer, library.settings.index)["subject"]
            spent = time.process_time() - begun
            known = inference.inference_of(library.store, library.settings.index)
            assert known is not None
            right = said = wanted = told = 0
            begun = time.process_time()
            for one in coded[::2]:
                found = set(known.of({}, one.terms).get("subject", ()))
                right, said = right + len(found & set(one.fine)), said + len(found)
                wanted, told = wanted + len(set(one.fine)), told + bool(found)
            each = 1000 * (time.process_time() - begun) / len(coded[::2])
    result = {
        "records": learned.records, "values": learned.values, "held_back_precision": learned.precision,
        "held_back_recall": learned.recall, "inferred_for": len(coded[::2]), "with_a_subject": told,
        "precision": right / said, "recall": right / wanted, "learn_seconds": spent, "ms_a_record": each,
    }  # fmt: skip
    print(json.dumps(result, indent=2))
    if given.json:
        given.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
