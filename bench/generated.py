"""Collections made by a seeded generator: as large as wanted, the same on every machine.

Words follow a Zipf-Mandelbrot law (Mandelbrot 1953), p(r) ∝ (r + 100)^-1.5 over a million made-up ones. Shift
and slope are fitted to harvested metadata as they are: titles, creators, subjects and descriptions in the
captured responses of 55 repositories have 11,504 different words among the first 100,000, 24,110 among
300,000 and 42,316 among all 688,055; generated records have 11,414 and 24,211 among as many. Lengths are
log-normal. A document depends on
the seed and on its number alone, so a collection can be cut anywhere and shared out among providers and
processes. Queries are two to four terms of one document, each found in at least 20 documents and at most a
tenth of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

VOCABULARY: Final = 1_000_000
SHIFT, SLOPE, SPREAD = 100.0, 1.5, 0.6
CHUNK: Final = 2000  # documents that are drawn together
_ONSETS = "b c d f g h k l m n p r s t v w z br ch cl dr gr pl sh st tr".split()  # noqa: SIM905
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "io", "ou")
# A text is told to be English by its small words, as everywhere.
FREQUENT: Final = """
    the of and to in a is that for it as was with be by on not he his but at are this have from or had an
    they which one you were her all she there would their we him been has when who will more no if out so
""".split()  # noqa: SIM905


def words(count: int) -> list[str]:
    """Distinct pronounceable words, the short ones first: pairs of syllables, in no order, then triples."""
    syllables = ["".join(pair) for pair in product(_ONSETS, _VOWELS)]
    base = len(syllables)
    pairs = [first + second for first in syllables for second in syllables]
    random.Random(1).shuffle(pairs)
    rest = max(count - len(pairs), 0)
    triples = [syllables[n // base // base % base] + pairs[n % base**2] for n in range(0, rest * 11, 11)]
    return (pairs + triples)[:count]


class Vocabulary(NamedTuple):
    """`names` in the order of their bytes; `place` is where the word of each rank stands among them."""

    names: list[str]
    place: NDArray[np.int32]
    cumulative: NDArray[np.float64]


@cache
def vocabulary() -> Vocabulary:
    ranked = np.array(words(VOCABULARY))
    order = np.argsort(ranked, kind="stable")
    place = np.empty(VOCABULARY, np.int32)
    place[order] = np.arange(VOCABULARY, dtype=np.int32)
    weights = (np.arange(1, VOCABULARY + 1) + SHIFT) ** -SLOPE
    return Vocabulary(ranked[order].tolist(), place, np.cumsum(weights / weights.sum()))


class Drawn(NamedTuple):
    """Pairs of document and term with their frequency, in the order of document and term."""

    owners: NDArray[np.int64]
    terms: NDArray[np.int64]
    frequencies: NDArray[np.int64]
    lengths: NDArray[np.int64]  # of the documents, in words


def draw(chunk: int, mean_terms: int, seed: int) -> Drawn:
    """The documents from `chunk * CHUNK` on, of about `mean_terms` distinct terms each."""
    known = vocabulary()
    source = np.random.default_rng([seed, chunk])
    tokens = mean_terms * 1.25  # some terms come more than once
    drawn = source.lognormal(np.log(tokens) - SPREAD**2 / 2, SPREAD, CHUNK)
    lengths = drawn.astype(np.int64).clip(3, 20_000)
    ranks = np.searchsorted(known.cumulative, source.random(int(lengths.sum())), "right")
    ranks = ranks.clip(max=VOCABULARY - 1)
    # A word that has occurred is likely to occur again: a tenth of the tokens repeat the one before.
    again = np.flatnonzero(source.random(ranks.size) < 0.1)
    ranks[again] = ranks[again - 1]
    owner = np.repeat(np.arange(CHUNK), lengths)
    pairs, counts = np.unique(owner * VOCABULARY + known.place[ranks], return_counts=True)
    return Drawn(pairs // VOCABULARY, pairs % VOCABULARY, counts, lengths)


@dataclass(frozen=True)
class Collection:
    """Documents as frequencies of term numbers, one array after another; `ends` says where each stops."""

    names: list[str]
    terms: NDArray[np.int32]
    frequencies: NDArray[np.int32]
    ends: NDArray[np.int64]

    @property
    def postings(self) -> int:
        return int(self.terms.size)

    def documents(self) -> Iterator[tuple[list[str], list[int]]]:
        low = 0
        for high in self.ends.tolist():
            yield [self.names[t] for t in self.terms[low:high].tolist()], self.frequencies[low:high].tolist()
            low = high


def collection(records: int, mean_terms: int = 60, seed: int = 1) -> Collection:
    """`records` documents of about `mean_terms` distinct terms, held as arrays."""
    parts = [draw(chunk, mean_terms, seed) for chunk in range(-(-records // CHUNK))]
    counts = np.concatenate([np.bincount(part.owners, minlength=CHUNK) for part in parts])
    ends = np.cumsum(counts)[:records]
    size = int(ends[-1])
    terms = np.concatenate([part.terms.astype(np.int32) for part in parts])[:size]
    frequencies = np.concatenate([part.frequencies.astype(np.int32) for part in parts])[:size]
    return Collection(vocabulary().names, terms, frequencies, ends)


def queries(documents: Collection, count: int, seed: int = 2) -> list[list[str]]:
    source = random.Random(seed)
    df = np.bincount(documents.terms, minlength=VOCABULARY)
    starts = np.concatenate(([0], documents.ends[:-1]))
    found: list[list[str]] = []
    while len(found) < count:
        number = source.randrange(documents.ends.size)
        own = documents.terms[starts[number] : documents.ends[number]]
        fit = own[(df[own] >= 20) & (df[own] <= documents.ends.size // 10)].tolist()
        wanted = source.randint(2, 4)
        if len(fit) >= wanted:
            found.append([documents.names[term] for term in source.sample(fit, wanted)])
    return found
