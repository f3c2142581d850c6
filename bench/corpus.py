"""Records written straight into a provider's store: generated ones (bench/generated.py), or of real texts
(bench/works.py).

python -m bench.corpus FOLDER FIRST COUNT TERMS SEED
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench.generated import CHUNK, FREQUENT, draw, vocabulary
from bench.works import records as real_records

from indlet.formats.metadata import oai_dc
from indlet.model import Record, TermVector
from indlet.store import Store


class Text(NamedTuple):
    number: int
    vector: TermVector


def texts(first: int, count: int, terms: int, seed: int) -> Iterator[Text]:
    """Documents `first` to `first + count`, of about `terms` distinct terms each."""
    for chunk in range(first // CHUNK, -(-(first + count) // CHUNK)):
        for number, vector in enumerate(_vectors(chunk, terms, seed), chunk * CHUNK):
            if first <= number < first + count:
                yield Text(number, vector)


def _vectors(chunk: int, terms: int, seed: int) -> Iterator[TermVector]:
    """Packed as the model says: a line for each frequency, then the terms that have it."""
    drawn = draw(chunk, terms, seed)
    order = np.lexsort((drawn.terms, drawn.frequencies, drawn.owners))
    owners, counts = drawn.owners[order], drawn.frequencies[order]
    places = drawn.terms[order].tolist()
    line = owners * 100_000 + counts
    starts = np.flatnonzero(np.diff(line, prepend=-1))
    ends = np.append(starts[1:], line.size).tolist()
    names = vocabulary().names
    lines: list[list[str]] = [[] for _ in range(CHUNK)]
    for document, count, low, high in zip(
        owners[starts].tolist(), counts[starts].tolist(), starts.tolist(), ends, strict=True
    ):
        lines[document].append(f"{count} " + " ".join([names[place] for place in places[low:high]]))
    for own, length in zip(lines, drawn.lengths.tolist(), strict=True):
        yield TermVector("\n".join(own).encode(), length, None, "en")


def record(text: Text) -> Record:
    """A record with some one and a half kilobytes of Dublin Core; its abstract has a hundred words."""
    top = text.vector.packed.decode().rpartition("\n")[2].split()[1:]
    rare = text.vector.packed.decode().partition("\n")[0].split()[1:65] or top
    # Four of five words are followed by a small one.
    abstract = [
        f"{name} {FREQUENT[(text.number + 7 * at) % len(FREQUENT)]}" if at % 5 else name
        for at, name in enumerate(rare)
    ]
    metadata = {
        "title": [f"Report {text.number}: the {' '.join(top[:3])} and the {' '.join(rare[:5])}"],
        "creator": [f"{rare[0].title()}, {top[0].title()}", "Ada Lovelace"],
        "subject": rare[5:9],
        "description": [" ".join(abstract)],
        "date": [str(1950 + text.number % 70)],
        "format": ["application/pdf"],
        "identifier": [f"http://example.org/content/reports/{text.number:07d}.pdf"],
        "language": ["en"],
    }
    identifier = f"oai:example.org:reports/{text.number:07d}.pdf"
    return Record(
        identifier, metadata, text.vector, (f"reports:{text.number % 50}",), raw=oai_dc.write(metadata)
    )


def fill(folder: Path, count: int, terms: int, *, first: int = 0, seed: int = 1, real: bool = False) -> None:
    """A store of `count` records, the first of which has that number. Real ones have the terms of their
    abstracts if `terms` is 0.
    """
    records: Iterable[Record] = map(record, texts(first, count, terms, seed))
    if real:
        records = real_records(first, count, terms, seed)
    rest = iter(records)
    with Store.open(folder) as store:
        while batch := list(islice(rest, 10_000)):
            with store.write() as tx:
                tx.put(tx.origin("hierarchy", "reports"), batch)


if __name__ == "__main__":
    _first, _count, _terms, _seed = map(int, sys.argv[2:])
    fill(Path(sys.argv[1]), _count, _terms, first=_first, seed=_seed)
