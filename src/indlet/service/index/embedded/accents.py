"""The terms of a segment that hold accents, by what they are without."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from indlet.model import FIELD_MARK
from indlet.service.index.embedded.segment import Segment
from indlet.text.accents import without_accents


def accented(segments: Iterable[Segment], plain: str) -> list[str]:
    """The terms that differ from a plain one by accents alone, each once."""
    return list(dict.fromkeys(term for segment in segments for term in prepare(segment).get(plain, ())))


def prepare(segment: Segment) -> dict[str, tuple[str, ...]]:
    """Works out which terms have accents; once for a segment. Most terms are ASCII and cost nothing."""
    known = segment.shared.get("accented")
    if known is None:
        names, bounds = segment.arrays["names"], segment.arrays["bounds"]
        wide = np.flatnonzero(names > 0x7F)
        numbers = np.unique(np.searchsorted(bounds, wide, "right")) - 1
        # Whole values are no words, and there are many.
        begins = bounds[numbers]
        whole = (names[begins] == ord(FIELD_MARK)) & (names[begins + 1] < ord("a"))
        numbers = numbers[~whole]
        found: dict[str, list[str]] = {}
        for number in numbers.tolist():
            term = names[bounds[number] : bounds[number + 1]].tobytes().decode("utf-8", "replace")
            plain = without_accents(term)
            if plain != term:
                found.setdefault(plain, []).append(term)
        known = segment.shared["accented"] = {plain: tuple(terms) for plain, terms in found.items()}
    out: dict[str, tuple[str, ...]] = known
    return out
