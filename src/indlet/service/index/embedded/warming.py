"""Compiles every kernel once, so that the first search and harvest of a fresh installation need not."""

from __future__ import annotations

import tempfile

import numpy as np
import orjson

from indlet import process
from indlet.kernels.state import alone, compile_here, folder, mark_ready, ready
from indlet.kernels.utf8 import is_utf8
from indlet.kernels.vector_check import totals
from indlet.model import Stored, TermVector
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.expression import Or, Phrase, Prefix, Term
from indlet.text import Analyzer, Policy, langid

# So plainly English that no model of languages has to be loaded to tell.
_LINE = "what they have done with the wings, and why that would not be for us to know"
_PAGE = (
    b"""
<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-01-01T00:00:00Z</responseDate>
<request>http://x</request><ListRecords><record><header><identifier>oai:x:1</identifier>
<datestamp>2026-01-01</datestamp><setSpec>a</setSpec></header><metadata>
<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"
xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>%b</dc:title><dc:date>2026</dc:date>
<dc:identifier>http://x/1</dc:identifier></oai_dc:dc></metadata></record></ListRecords></OAI-PMH>
""".strip()
    % _LINE.encode()
)


def warm() -> None:
    """Takes a tiny index through all that an index can do, and analyses a line.

    The machine code stays on disk where it can (`kernels.jit`): the next call takes a fraction of a second.
    """
    # The reading of what is harvested is compiled by this room's rules, and imports them.
    from indlet.service.index.embedded.analysis import Analyses
    from indlet.service.index.embedded.languages import weighed
    from indlet.service.records.normalise import Normaliser
    from indlet.service.records.scan import scan

    compile_here()
    page = scan(_PAGE)
    assert page is not None
    is_utf8(np.frombuffer(_PAGE, np.uint8))
    totals(np.frombuffer(bytearray(b"1 wing"), np.uint8), np.array([6]))
    weighed(langid.model(), [_LINE.encode()])
    analyzer = Analyzer(Policy())
    Normaliser(analyzer).records(page.items)
    metadata = orjson.dumps({"title": [_LINE], "format": ["application/pdf"]})  # which has keys to learn
    plain = _record(4, 4, {})._replace(vector=None, metadata=metadata)
    with tempfile.TemporaryDirectory() as scratch, Engine.open(scratch, writable=True) as engine:
        for id in (1, 2, 3):
            engine.apply([_record(id, id, {"heated": [0], "wing": [1], f"w{id}": [2]})])
            engine.commit()
        engine.take(*Analyses(analyzer).together([plain]))
        # One goes, and one has more terms than there is room for at first.
        many = {f"n{number}": [number] for number in range(5_000)}
        engine.apply([_record(2, 5, None), _record(6, 6, many)])
        engine.commit()
        engine.merge(everything=True)
        searcher = engine.searcher()
        searcher.search(Or((Term("wing"), Term("heated"))))
        searcher.search(Phrase(("heated", "wing")), facets=("year", "creator"))
        searcher.search(Prefix("w"), sort="newest")
        searcher.explain(Term("wing"), 1)
        searcher.near("wing", 1)
        searcher.stats()
    mark_ready()


def _record(id: int, seq: int, places: dict[str, list[int]] | None) -> Stored:
    """One of many records of a resource, each of another origin."""
    vector = TermVector.of_positions(places or {})
    return Stored(
        id, seq, id, f"oai:{id}", 0, int(places is None), "", "", vector.length, 7, b"{}", b"", b"",
        vector.packed, vector.positions, b"1 \x1ftwing",
    )  # fmt: skip


def main() -> None:
    """Aside from whoever has started it, and alone."""
    process.lower_priority()
    place = folder()
    if place is not None:
        with alone(place / ".kernels-compiling.lock", wait=False) as mine:
            if mine and not ready():
                warm()


if __name__ == "__main__":
    main()
