"""Xapian's part of bench/search.py. Runs under the system's Python, where its bindings are.

Arguments: documents (JSON lines of [terms, frequencies]), queries (JSON), repeats, folder for the database.
Prints one JSON object.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

import xapian


def main() -> None:
    documents, queries, repeats, folder = sys.argv[1:]
    began = time.perf_counter()
    database = xapian.WritableDatabase(folder, xapian.DB_CREATE_OR_OVERWRITE)
    count = 0
    reading = 0.0
    with Path(documents).open() as lines:
        for line in lines:
            start = time.perf_counter()
            terms, frequencies = json.loads(line)
            reading += time.perf_counter() - start
            document = xapian.Document()
            for term, frequency in zip(terms, frequencies):  # noqa: B905  (may be an older Python)
                document.add_term(term, frequency)
            database.add_document(document)
            count += 1
    database.commit()
    database.close()
    ingest = time.perf_counter() - began - reading
    size = sum(file.stat().st_size for file in Path(folder).iterdir())
    reader = xapian.Database(folder)
    asked = json.loads(Path(queries).read_text())
    times: list[list[float]] = [[] for _ in asked]
    for _ in range(int(repeats)):
        for number, terms in enumerate(asked):
            start = time.perf_counter()
            enquire = xapian.Enquire(reader)
            enquire.set_weighting_scheme(xapian.BM25Weight(1.2, 0, 1, 0.75, 0))
            enquire.set_query(xapian.Query(xapian.Query.OP_OR, terms))
            found = enquire.get_mset(0, 10)
            [hit.docid for hit in found]
            times[number].append((time.perf_counter() - start) * 1e3)
    shutil.rmtree(folder)
    print(json.dumps({"ingest": ingest, "records": count, "bytes": size, "times": times}))


main()
