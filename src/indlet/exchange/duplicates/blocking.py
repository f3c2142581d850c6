"""Which records are compared: those that share a key, instead of each with each.

A record has keys of several kinds, so that a fault in one of its values leaves it others. A key that too many
records share tells little: these are ordered by title, and each is compared with those that follow it next
(sorted neighbourhood, Hernández & Stolfo 1995). So the work grows with the number of records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt

from indlet.exchange.duplicates.features import Features

BLOCK: Final = 40  # records of one key that are all compared with each other
WINDOW: Final = 10  # of a larger one: with how many that follow
_NAMES: Final = 3  # of a record that make keys
_KEYS: Final = 12

Numbers = npt.NDArray[np.int64]


def candidates(records: Sequence[Features], *, within: bool = False) -> Numbers:
    """Pairs of places in `records`, each once and in order; `within`: of one origin as well."""
    keys, places = _keyed(records)
    order = np.lexsort((places, keys))
    keys, places = keys[order], places[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, np.int64)
    ends = np.r_[starts[1:], len(keys)]
    several = ends - starts > 1
    found: list[Numbers] = []
    for start, end in zip(starts[several].tolist(), ends[several].tolist(), strict=True):
        found.append(_block(records, places[start:end]))
    if not found:
        return np.zeros((0, 2), np.int64)
    pairs = np.concatenate(found)
    pairs.sort(axis=1)
    if not within:
        origins = np.fromiter((record.origin for record in records), np.int64, len(records))
        pairs = pairs[origins[pairs[:, 0]] != origins[pairs[:, 1]]]
    codes = np.unique(pairs[:, 0] * len(records) + pairs[:, 1])
    return np.stack(np.divmod(codes, len(records)), axis=1)


def _block(records: Sequence[Features], places: Numbers) -> Numbers:
    size = len(places)
    if size <= BLOCK:
        first, second = np.triu_indices(size, 1)
        return np.stack((places[first], places[second]), axis=1)
    ordered = np.array(
        sorted(places.tolist(), key=lambda place: (records[place].title, records[place].order))
    )
    return np.concatenate(
        [np.stack((ordered[:-step], ordered[step:]), axis=1) for step in range(1, WINDOW + 1)]
    )


def _keyed(records: Sequence[Features]) -> tuple[npt.NDArray[np.uint64], Numbers]:
    """Every key of every record, as a hash, with the record's place."""
    keys, places = bytearray(), []
    for place, record in enumerate(records):
        for key in dict.fromkeys(keys_of(record)):
            keys += blake2b(key.encode("utf-8", "replace"), digest_size=8).digest()
            places.append(place)
    return np.frombuffer(bytes(keys), np.uint64), np.array(places, np.int64)


def keys_of(record: Features) -> Iterator[str]:
    """The keys of a record."""
    yield from sorted(record.keys)[:_KEYS]
    for series, number in sorted(record.reports)[:_KEYS]:
        yield f"report {series} {number}"
    words = record.words
    telling = sorted({w for w in words if len(w) > 3}, key=lambda word: (-len(word), word))
    if words:
        yield f"start {' '.join(words[:3])}"
    if len(words) > 3:
        yield f"next {' '.join(words[2:5])}"
    if len(telling) > 1:
        yield f"long {' '.join(sorted(telling[:2]))}"
    if len(telling) > 3:
        yield f"long {' '.join(sorted(telling[2:4]))}"
    for family, given in record.names[:_NAMES]:
        for name in {family, given} if len(given) > 1 else {family}:
            for found in sorted(record.years)[:2]:
                yield f"year {name} {found}"
            for word in words[:2]:
                yield f"word {name[:5]} {word[:4]}"
