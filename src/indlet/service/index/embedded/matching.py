"""Which documents of a segment match an expression: a flag for each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indlet.kernels import term_hash
from indlet.kernels.machine_code import compiled_for
from indlet.kernels.scoring import mark
from indlet.service.index.embedded.array_file import Array
from indlet.service.index.embedded.positions import occurrences
from indlet.service.index.embedded.segment import Segment, postings_at
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
    Positioned,
    Prefix,
    Term,
)
from indlet.service.index.values import VALUE_FACETS, term_beginning

Mask = NDArray[np.bool_]


class Looked(NamedTuple):
    """For each segment its numbers for some terms and where their lists begin, -1 where it has none; and df
    and cf of each term in all segments."""

    numbers: list[Array]
    where: list[Array]
    sums: Array


def look_up(segments: Sequence[Segment], terms: list[bytes]) -> Looked:
    size = len(terms)
    sums = np.zeros((size, 2), np.int64)
    joined = np.frombuffer(bytearray().join(terms), np.uint8)
    ends = np.fromiter(accumulate(map(len, terms)), np.int64, size)
    found, where = [], []
    for segment in segments:
        out, at = np.empty(size, np.int64), np.empty(size, np.int64)
        arrays = segment.arrays
        df, cf = segment.frequencies()
        given = joined, ends, arrays["names"], arrays["bounds"], arrays["starts"], df, cf, out, at, sums
        find = segment.shared.get("find")  # what is given has the same types for all terms
        if find is None:
            find = segment.shared["find"] = compiled_for(term_hash.find, *given)
        (find or term_hash.find)(*given)
        found.append(out)
        where.append(at)
    return Looked(found, where, sums)


def prefixed(segment: Segment, prefix: bytes) -> range:
    """The numbers of the terms that begin so."""
    every = range(segment.arrays["starts"].size)
    stem = prefix.rstrip(b"\xff")
    end = first_from(segment, every, stem[:-1] + bytes([stem[-1] + 1])) if stem else every.stop
    return range(first_from(segment, every, prefix), end)


def first_from(segment: Segment, terms: range, bound: bytes) -> int:
    """The first of the terms that is not less than the bound."""
    return bisect_left(terms, bound, key=segment.term) + terms.start


def postings(segment: Segment, number: int) -> tuple[Array, Array]:
    """All documents and frequencies of a term, deleted documents too."""
    return postings_at(segment, int(segment.arrays["starts"][number]))


@dataclass(slots=True)
class Matcher:
    """Evaluates expressions over one segment. `loose` tells that a phrase was matched without positions."""

    segment: Segment
    loose: bool = field(default=False)

    def live(self, expression: Expression) -> Mask:
        mask = self.mask(expression)
        return mask if self.segment.gone is None else mask & ~self.segment.gone

    def hidden(self, filters: Sequence[Expression]) -> Mask | None:
        """The documents that are deleted or do not pass all filters; None if there are none of either."""
        if not filters:
            return self.segment.gone
        mask = self.mask(filters[0])
        for part in filters[1:]:
            mask &= self.mask(part)
        return ~mask if self.segment.gone is None else ~mask | self.segment.gone

    def matched(self, expression: Expression, hidden: Mask | None) -> NDArray[np.int64]:
        """The documents that match and are not hidden."""
        mask = self.mask(expression)
        return np.flatnonzero(mask if hidden is None else mask & ~hidden)

    def mask(self, expression: Expression) -> Mask:
        segment = self.segment
        match expression:
            case Term(term):
                return self._marked(look_up((segment,), [term.encode("utf-8", "surrogatepass")]).where[0])
            case Phrase():
                return self._phrase(expression)
            case Prefix(prefix):
                found = prefixed(segment, prefix.encode("utf-8", "surrogatepass"))
                return self._marked(segment.arrays["starts"][found.start : found.stop].astype(np.int64))
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
            case Positioned():
                if not segment.positional:
                    return np.zeros(segment.size, np.bool_)
                return np.asarray(segment.arrays["placed"] != 0, np.bool_)

    def _marked(self, where: Array) -> Mask:
        mask = np.zeros(self.segment.size, np.bool_)
        mark(self.segment.arrays["stream"], where, mask)
        return mask

    def _all(self, parts: tuple[Expression, ...]) -> Mask:
        out = np.ones(self.segment.size, np.bool_)
        for part in parts:
            out &= self.mask(part)
        return out

    def _any(self, parts: tuple[Expression, ...]) -> Mask:
        words = [part.term.encode("utf-8", "surrogatepass") for part in parts if isinstance(part, Term)]
        out = self._marked(look_up((self.segment,), words).where[0])
        for part in parts:
            if not isinstance(part, Term):
                out |= self.mask(part)
        return out

    def _phrase(self, phrase: Phrase) -> Mask:
        segment = self.segment
        looked = look_up((segment,), [term.encode("utf-8", "surrogatepass") for term in phrase.terms])
        terms = looked.numbers[0]
        together = np.ones(segment.size, np.bool_)
        for number in range(terms.size):
            together &= self._marked(looked.where[0][number : number + 1])
        if not together.any():
            return together
        placed = segment.arrays["placed"] != 0 if segment.positional else np.zeros(segment.size, np.bool_)
        out = together & ~placed
        if len(phrase.terms) > 1 and (out if segment.gone is None else out & ~segment.gone).any():
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
        if facet in VALUE_FACETS:
            return self.mask(Prefix(term_beginning(facet, value)))
        if facet not in self.segment.facet_names:
            return np.zeros(self.segment.size, np.bool_)
        column = self.segment.facet(facet)
        wanted = value.casefold()
        below = wanted + ":" if facet == "set" else None
        hit = np.zeros(len(column.values), np.bool_)
        for code, name in enumerate(column.values):
            name = name.casefold()
            hit[code] = code > 0 and (name == wanted or (below is not None and name.startswith(below)))
        # To compare is ten times as fast as to look up, and most filters mean one value.
        flags = column.codes == hit.argmax() if hit.sum() == 1 else hit[column.codes]
        if column.starts is None:
            return flags
        return np.add.reduceat(flags, column.starts[:-1].astype(np.int64), dtype=np.int64) > 0
