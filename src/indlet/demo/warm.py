"""Compiles the index's kernels into numba's cache, ahead of their first use.

    python -m indlet.demo.warm FOLDER

After a fresh installation that takes some ten seconds; another process may meanwhile crawl and harvest. Where
the cache cannot be written nothing is gained, and nothing lost but that time.
"""

from __future__ import annotations

import sys
from pathlib import Path

from indlet.model import Record, TermVector
from indlet.service.rank import MODELS
from indlet.service.search import FACETS, Library

VECTORS = (b"1 barrel harbour\n2 salt", b"1 orchard salt\n3 wind", b"1 appl salt wind", b"2 wind")


def warm(folder: Path) -> None:
    """Fills, searches, and changes a small library of its own in the folder."""
    with Library.open(folder) as library:
        with library.store.write() as tx:
            origin = tx.origin("source", "warm", {})
            tx.put(origin, (_record(number, packed) for number, packed in enumerate(VECTORS)))
        for model in MODELS:
            library.search("salt wind", model=model, facets=FACETS)
        library.search("salt AND wind NOT appl date:1980..1990 source:warm harb*")
        library.explain("salt wind", "oai:warm.example:1")
        library.similar("oai:warm.example:1")
        library.suggest("sal")
        with library.store.write() as tx:
            tx.delete(origin, ["oai:warm.example:3"])
        library.search("salt", sort="newest")


def _record(number: int, packed: bytes) -> Record:
    metadata = {"title": [f"Number {number}"], "date": ["1987"], "language": ["en"]}
    vector = TermVector(packed, 4, language="en")
    return Record(f"oai:warm.example:{number}", metadata, vector, ("warm",))


if __name__ == "__main__":
    warm(Path(sys.argv[1]))
