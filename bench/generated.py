"""Collections made by a seeded generator: as large as wanted, the same on every machine.

Terms follow a Zipf-Mandelbrot law, p(r) ∝ (r + 25)^-1.05 over 400,000 made-up words: the shift stands for the
stop words, which an index does not see. Lengths are log-normal. Queries are two to four terms of one
document, each found in at least 20 documents and at most a tenth of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

VOCABULARY = 400_000
SHIFT, SLOPE = 25.0, 1.05
_ONSETS = "b c d f g h k l m n p r s t v w z br ch cl dr gr pl sh st tr".split()  # noqa: SIM905
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "io", "ou"]


def words(count: int, seed: int = 1) -> list[str]:
    """Distinct pronounceable words of two to four syllables."""
    source = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        syllables = source.choices((2, 3, 4), (3, 5, 2))[0]
        word = "".join(source.choice(_ONSETS) + source.choice(_VOWELS) for _ in range(syllables))
        found[word + source.choice(("", "", "n", "r", "s", "t"))] = None
    return list(found)


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
    """`records` documents of about `mean_terms` distinct terms."""
    source = np.random.default_rng(seed)
    weights = (np.arange(1, VOCABULARY + 1) + SHIFT) ** -SLOPE
    cumulative = np.cumsum(weights / weights.sum())
    spread = 0.6
    tokens = mean_terms * 1.12  # some terms come more than once
    lengths = source.lognormal(np.log(tokens) - spread**2 / 2, spread, records).astype(np.int64).clip(3)
    terms, frequencies, ends = [], [], np.empty(records, np.int64)
    at = 0
    for begin in range(0, records, 10_000):
        some = lengths[begin : begin + 10_000]
        drawn = np.searchsorted(cumulative, source.random(int(some.sum())), "right").clip(max=VOCABULARY - 1)
        # A word that has occurred is likely to occur again: a fifth of the tokens repeat one before them.
        again = source.random(drawn.size) < 0.2
        drawn[1:][again[1:]] = drawn[:-1][again[1:]]
        owner = np.repeat(np.arange(some.size), some)
        pairs, counts = np.unique(owner * VOCABULARY + drawn, return_counts=True)
        terms.append((pairs % VOCABULARY).astype(np.int32))
        frequencies.append(counts.astype(np.int32))
        ends[begin : begin + some.size] = at + np.cumsum(
            np.bincount(pairs // VOCABULARY, minlength=some.size)
        )
        at = int(ends[begin + some.size - 1])
    return Collection(words(VOCABULARY, seed), np.concatenate(terms), np.concatenate(frequencies), ends)


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
