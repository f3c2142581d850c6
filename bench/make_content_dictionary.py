"""Trains the dictionary by which a store compresses records (src/indlet/store/content.py).

    python -m bench.make_content_dictionary FILE

It learns from records modelled on seven repository platforms (bench/shapes.py), with the texts of this
repository alone. A dictionary that stores were written with is never replaced: a better one needs another
number in content.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import zstandard
from bench.shapes import SHAPES, page, works

from indlet.errors import BadResponse
from indlet.oai.read import read
from indlet.service.records.normalise import Normaliser
from indlet.store.packed import packed
from indlet.text import Analyzer

RECORDS = 200  # of each platform
SIZE = 8192


def samples() -> list[bytes | bytearray | memoryview]:
    """The content of records as a store keeps it: metadata, then the original."""
    os.environ.pop("INDLET_DATA", None)
    normaliser, found = Normaliser(Analyzer()), list[bytes | bytearray | memoryview]()
    for shape in SHAPES:
        items = read(page(shape, list(works(RECORDS)), "", RECORDS, 0)).items
        for made in normaliser.records(items):
            assert not isinstance(made, BadResponse)
            record = packed(made)
            found.append(record.metadata + record.raw)
    return found


if __name__ == "__main__":
    made = zstandard.train_dictionary(SIZE, samples(), level=3)
    Path(sys.argv[1]).write_bytes(made.as_bytes())
