"""Which documents of a segment match an expression: a flag for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from indlet.service.index import tokens
from indlet.service.index.codec import decode
from indlet.service.index.expression import (
    And,
    Dates,
    Everything,
    Expression,
    Filter,
    Ids,
    Not,
    Or,
    Phrase,
    Prefix,
    Term,
)
from indlet.service.index.positions import occurrences
from indlet.service.index.scoring import mark
from indlet.service.index.segment import Array, Segment

Mask = NDArray[np.bool_]


def look_up(segments: Sequence[Segment], terms: list[bytes]) -> tuple[list[Array], Array]:
    """For each segment its numbers for the terms, -1 where it has none; and df and cf of each term in all."""
    sums = np.zeros((len(terms), 2), np.int64)
    joined = np.frombuffer(bytearray().join(terms), np.uint8)
    ends = np.array(list(accumulate(map(len, terms))), np.int64)
    found = []
    for segment in segments:
        out = np.empty(len(terms), np.int64)
        df, cf = segment.frequencies()
        tokens.find(joined, ends, segment.arrays["names"], segment.arrays["bounds"], df, cf, out, sums)
        found.append(out)
    return found, sums


def numbers(segment: Segment, terms: list[bytes]) -> Array:
    return look_up((segment,), terms)[0][0]


def prefixed(segment: Segment, prefix: bytes) -> range:
    """The numbers of the terms that begin so."""

    def below(bound: bytes) -> int:
        low, high = 0, segment.arrays["starts"].size
        while low < high:
            middle = (low + high) // 2
            if segment.term(middle) < bound:
                low = middle + 1
            else:
                high = middle
        return low

    stem = prefix.rstrip(b"\xff")
    end = below(stem[:-1] + bytes([stem[-1] + 1])) if stem else segment.arrays["starts"].size
    return range(below(prefix), end)


def places(segment: Segment, numbers: Array) -> Array:
    """Where the lists of the terms begin in the stream, -1 for those it has not."""
    out = np.full(numbers.size, -1, np.int64)
    known = numbers >= 0
    out[known] = segment.arrays["starts"][numbers[known]]
    return out


def postings(segment: Segment, number: int) -> tuple[Array, Array]:
    """All documents and frequencies of a term, deleted documents too."""
    df = int(segment.listed()[number])
    docs, freqs = np.empty(df, np.uint32), np.empty(df, np.uint32)
    decode(segment.arrays["stream"], int(segment.arrays["starts"][number]), docs, freqs, 0)
    return docs, freqs


@dataclass(slots=True)
class Matcher:
    """Evaluates expressions over one segment. `loose` tells that a phrase was matched without positions."""

    segment: Segment
    loose: bool = field(default=False)

    def live(self, expression: Expression) -> Mask:
        mask = self.mask(expression)
        return mask if self.segment.gone is None else mask & ~self.segment.gone

    def mask(self, expression: Expression) -> Mask:
        segment = self.segment
        match expression:
            case Term(term):
                return self._marked(numbers(segment, [term.encode()]))
            case Phrase():
                return self._phrase(expression)
            case Prefix(prefix):
                found = prefixed(segment, prefix.encode())
                return self._marked(np.arange(found.start, found.stop))
            case And(parts):
                return self._all(parts)
            case Or(parts):
                return self._any(parts)
            case Not(part):
                return ~self.mask(part)
            case Filter(facet, value):
                return self._filter(facet, value)
            case Dates(low, high):
                dates = segment.arrays["date"]
                return (dates >= max(low, 1)) & (dates <= max(high, 0))
            case Ids(ids):
                return np.isin(segment.arrays["id"], np.array(ids, np.int64))
            case Everything():
                return np.ones(segment.size, np.bool_)

    def _marked(self, terms: Array) -> Mask:
        mask = np.zeros(self.segment.size, np.bool_)
        mark(self.segment.arrays["stream"], places(self.segment, terms), mask)
        return mask

    def _all(self, parts: tuple[Expression, ...]) -> Mask:
        out = np.ones(self.segment.size, np.bool_)
        for part in parts:
            out &= self.mask(part)
        return out

    def _any(self, parts: tuple[Expression, ...]) -> Mask:
        words = [part.term.encode() for part in parts if isinstance(part, Term)]
        out = self._marked(numbers(self.segment, words)) if words else np.zeros(self.segment.size, np.bool_)
        for part in parts:
            if not isinstance(part, Term):
                out |= self.mask(part)
        return out

    def _phrase(self, phrase: Phrase) -> Mask:
        segment = self.segment
        terms = numbers(segment, [term.encode() for term in phrase.terms])
        together = np.ones(segment.size, np.bool_)
        for term in terms:
            together &= self._marked(term.reshape(1))
        if not together.any():
            return together
        placed = segment.arrays["placed"] != 0 if segment.positional else np.zeros(segment.size, np.bool_)
        out = together & ~placed
        if out.any() and len(phrase.terms) > 1:
            self.loose = True
        if not segment.positional:
            return out
        offsets = phrase.offsets or tuple(range(len(phrase.terms)))
        common: Array | None = None
        for term, offset in zip(terms, offsets, strict=True):
            docs, freqs = postings(segment, int(term))
            here = occurrences(segment, int(term), docs, freqs, together, offset - offsets[0])
            common = here if common is None else np.intersect1d(common, here)
        if common is not None:
            # The shift may borrow from the document's number only below position 0, where nothing matches.
            out[common >> 33] = True
        return out & together

    def _filter(self, facet: str, value: str) -> Mask:
        column = self.segment.facets.get(facet)
        if column is None:
            return np.zeros(self.segment.size, np.bool_)
        wanted = value.casefold()
        below = wanted + ":" if facet == "set" else None
        hit = np.zeros(len(column.values), np.bool_)
        for code, name in enumerate(column.values):
            name = name.casefold()
            hit[code] = code > 0 and (name == wanted or (below is not None and name.startswith(below)))
        flags = hit[column.codes]
        if column.starts is None:
            return flags
        return np.add.reduceat(flags, column.starts[:-1].astype(np.int64), dtype=np.int64) > 0
