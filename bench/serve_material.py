"""What bench/serve.py serves: records with the values of seven systems (bench/shapes.py), as crawled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.shapes import SHAPES, page, works

from indlet.formats.metadata import oai_dc
from indlet.model import Record
from indlet.oai.read import read
from indlet.store import Store
from indlet.text import Analyzer

_BATCH: Final = 7_000


def records(first: int, count: int) -> Iterator[Record]:
    """The shapes in turn; each record with the metadata that its shape states, and the terms of its text."""
    analyzer, shapes = Analyzer(), list(SHAPES)
    for work in works(count, first):
        (item,) = read(page(shapes[work.number % len(shapes)], [work], "", 1, 0)).items
        assert item.metadata is not None
        metadata: dict[str, list[str]] = {}
        for field in oai_dc.fields(item.metadata):
            metadata.setdefault(field.tag, []).append(field.value)
        vector = analyzer.vector(" ".join((work.title, *work.abstract)), work.language)
        yield Record(item.identifier, metadata, vector, item.sets, raw=oai_dc.write(metadata))


def fill(folder: Path, count: int) -> None:
    """A store of so many records."""
    with Store.open(folder) as store:
        for first in range(0, count, _BATCH):
            with store.write() as tx:
                tx.put(tx.origin("hierarchy", "works"), list(records(first, min(_BATCH, count - first))))
