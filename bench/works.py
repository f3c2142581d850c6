"""Records with the values of seven systems and real texts (bench/shapes.py), as a crawl would keep them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from bench.generated import SPREAD
from bench.shapes import SHAPES, Work, page, passages, works
from lxml import etree

from indlet.formats.metadata import oai_dc
from indlet.model import Record
from indlet.oai.read import read
from indlet.text import Analyzer


def records(first: int, count: int, terms: int = 0, seed: int = 1) -> Iterator[Record]:
    """The shapes in turn; each record with the metadata that its shape states, and with the terms of its
    abstract, or some so many different ones of running sentences. A record depends on its number and the
    seed.
    """
    analyzer, shapes = Analyzer(), list(SHAPES)
    for work in works(count, first, seed):
        (item,) = read(page(shapes[work.number % len(shapes)], [work], "", 1, 0)).items
        assert item.packed is not None
        metadata: dict[str, list[str]] = {}
        for field in oai_dc.fields(etree.fromstring(item.packed.raw)):
            metadata.setdefault(field.tag, []).append(field.value)
        body = _passage(work, terms, seed) if terms else work.abstract
        vector = analyzer.vector(" ".join((work.title, *body)), work.language)
        yield Record(item.identifier, metadata, vector, item.sets, raw=oai_dc.write(metadata))


def _passage(work: Work, terms: int, seed: int) -> list[str]:
    """Sentences of the record's language, of log-normal length; of two words, one is a term that is new."""
    source, known = random.Random(f"{seed} {work.number} passage"), passages()[work.language]
    wanted, at = 2 * terms * source.lognormvariate(-(SPREAD**2) / 2, SPREAD), source.randrange(len(known))
    taken, size = list[str](), 0
    while size < wanted:
        taken.append(known[(at + len(taken)) % len(known)])
        size += taken[-1].count(" ") + 1
    return taken
