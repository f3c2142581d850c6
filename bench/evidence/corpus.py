"""A generated corpus of any size, written straight into a provider's store.

    python -m bench.evidence.corpus FOLDER FIRST COUNT TERMS SEED

Words follow a Zipf-Mandelbrot law (Mandelbrot 1953), p(r) ∝ (r + 25)^-1.05 over a million made-up ones: the
shift stands for the stop words, which an index does not see. Lengths are log-normal. A document depends on
the seed and on its number alone, so a corpus can be cut anywhere and shared out among providers and
processes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indlet.formats import oai_dc
from indlet.model import Record, TermVector
from indlet.store import Store

VOCABULARY: Final = 1_000_000
SHIFT, SLOPE, SPREAD = 25.0, 1.05, 0.6
CHUNK: Final = 2000
_ONSETS = "b c d f g h k l m n p r s t v w z br ch cl dr gr pl sh st tr".split()  # noqa: SIM905
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "io", "ou")


class Words(NamedTuple):
    """`names` in the order of their bytes; `place` is where the word of each rank stands among them."""

    names: list[str]
    place: NDArray[np.int32]
    cumulative: NDArray[np.float64]


@cache
def words() -> Words:
    syllables = ["".join(pair) for pair in product(_ONSETS, _VOWELS)]
    base = len(syllables)
    pairs = [first + second for first in syllables for second in syllables]
    # Common words are short: pairs of syllables first, then triples.
    rest = VOCABULARY - len(pairs)
    triples = [syllables[n // base // base % base] + pairs[n % base**2] for n in range(0, rest * 11, 11)]
    ranked = np.array(pairs + triples)
    order = np.argsort(ranked, kind="stable")
    place = np.empty(VOCABULARY, np.int32)
    place[order] = np.arange(VOCABULARY, dtype=np.int32)
    weights = (np.arange(1, VOCABULARY + 1) + SHIFT) ** -SLOPE
    return Words(ranked[order].tolist(), place, np.cumsum(weights / weights.sum()))


class Text(NamedTuple):
    number: int
    vector: TermVector


def texts(first: int, count: int, terms: int, seed: int) -> Iterator[Text]:
    """Documents `first` to `first + count`, of about `terms` distinct terms each."""
    for chunk in range(first // CHUNK, -(-(first + count) // CHUNK)):
        for number, vector in enumerate(_chunk(chunk, terms, seed), chunk * CHUNK):
            if first <= number < first + count:
                yield Text(number, vector)


def _chunk(chunk: int, terms: int, seed: int) -> Iterator[TermVector]:
    known = words()
    source = np.random.default_rng([seed, chunk])
    tokens = terms * 1.25  # some terms come more than once
    drawn = source.lognormal(np.log(tokens) - SPREAD**2 / 2, SPREAD, CHUNK)
    lengths = drawn.astype(np.int64).clip(3, 20_000)
    ranks = np.searchsorted(known.cumulative, source.random(int(lengths.sum())), "right")
    ranks = ranks.clip(max=VOCABULARY - 1)
    # A word that has occurred is likely to occur again: a tenth of the tokens repeat the one before.
    again = np.flatnonzero(source.random(ranks.size) < 0.1)
    ranks[again] = ranks[again - 1]
    owner = np.repeat(np.arange(CHUNK), lengths)
    pairs, counts = np.unique(owner * VOCABULARY + known.place[ranks], return_counts=True)
    owners = pairs // VOCABULARY
    order = np.lexsort((pairs, counts, owners))
    places, counts = (pairs % VOCABULARY)[order].tolist(), counts[order]
    # A line for each run of equal document and frequency.
    line = owners * 100_000 + counts
    starts = np.flatnonzero(np.diff(line, prepend=-1))
    ends = np.append(starts[1:], line.size).tolist()
    names = known.names
    lines: list[list[str]] = [[] for _ in range(CHUNK)]
    for document, count, low, high in zip(
        owners[starts].tolist(), counts[starts].tolist(), starts.tolist(), ends, strict=True
    ):
        lines[document].append(f"{count} " + " ".join([names[place] for place in places[low:high]]))
    for own, length in zip(lines, lengths.tolist(), strict=True):
        yield TermVector("\n".join(own).encode(), length, None, "en")


def queries(count: int, terms: int, seed: int) -> list[list[str]]:
    """Two to four words of one document each, neither the commonest nor the rarest."""
    source = np.random.default_rng(seed)
    known = words()
    usual = {known.names[place] for place in known.place[30:20_000].tolist()}
    found: list[list[str]] = []
    for text in texts(0, 4 * count, terms, seed):
        fit = sorted(usual.intersection(text.vector.frequencies()))
        wanted = int(source.integers(2, 5))
        if len(fit) >= wanted:
            found.append([fit[at] for at in source.choice(len(fit), wanted, replace=False).tolist()])
        if len(found) == count:
            break
    return found


def record(text: Text) -> Record:
    """A record with about a kilobyte of Dublin Core."""
    top = text.vector.packed.decode().rpartition("\n")[2].split()[1:]
    rare = text.vector.packed.decode().partition("\n")[0].split()[1:60]
    metadata = {
        "title": [f"Report {text.number}: {' '.join(top[:3])} and {' '.join(rare[:6])}"],
        "creator": [f"{rare[0].title() if rare else 'Nobody'}, {(top or ['x'])[0].title()}"],
        "subject": rare[6:10],
        "description": [" ".join(rare)],
        "date": [str(1950 + text.number % 70)],
        "format": ["application/pdf"],
        "identifier": [f"http://example.org/content/reports/{text.number:07d}.pdf"],
        "language": ["en"],
    }
    identifier = f"oai:example.org:reports/{text.number:07d}.pdf"
    return Record(
        identifier, metadata, text.vector, (f"reports:{text.number % 50}",), raw=oai_dc.write(metadata)
    )


def fill(folder: Path, first: int, count: int, terms: int, seed: int) -> None:
    batch: list[Record] = []
    with Store.open(folder) as store:
        for text in texts(first, count, terms, seed):
            batch.append(record(text))
            if len(batch) == 10_000 or text.number == first + count - 1:
                with store.write() as tx:
                    tx.put(tx.origin("hierarchy", "reports"), batch)
                batch.clear()


if __name__ == "__main__":
    fill(Path(sys.argv[1]), *map(int, sys.argv[2:]))
