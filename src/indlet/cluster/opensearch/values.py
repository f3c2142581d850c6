"""Facets with any number of values and their lists from A to Z, by the terms of `service/index/values.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import nlargest
from itertools import groupby, islice
from typing import Final

from indlet.cluster.opensearch.cluster import Json, total
from indlet.cluster.opensearch.matching import all_of
from indlet.cluster.opensearch.schema import escape_term, term_of, tie
from indlet.cluster.opensearch.snapshot import Snapshot
from indlet.cluster.opensearch.vocabulary import ClusterVocabulary
from indlet.model import VALUE_MARKS
from indlet.service.index.protocol import Value
from indlet.service.index.values import SEPARATOR, beginning, plain

_AT_ONCE: Final = 2  # spellings of a value, as a guess
_REMEMBERED: Final = 100_000
_HEAD: Final = 8  # bytes of a key by which those that are equally frequent are chosen

# For each key the terms of its spellings, with how many documents have each.
_Spelt = dict[str, Counter[str]]


class FacetValues:
    """The values of facets, fetched on demand and cached with the snapshot."""

    def __init__(self, snapshot: Snapshot, vocabulary: ClusterVocabulary) -> None:
        self._snapshot = snapshot
        self._vocabulary = vocabulary
        self._known: dict[str, _Spelt | None] = {}  # by facet; None if it has too many values for one answer
        self._shown: dict[str, Value] = {}  # by key

    def listed(self, facet: str, start: str, limit: int, backwards: bool = False) -> list[Value]:
        bound = beginning(facet, start).encode("utf-8", "replace")
        spelt = self._spelt(facet)
        if spelt is None:
            return self._page(facet, bound.decode(), max(limit, 0), backwards)
        keys = sorted(spelt, key=lambda key: key.encode("utf-8", "surrogatepass"))
        at = sum((key + SEPARATOR).encode("utf-8", "surrogatepass") < bound for key in keys)
        chosen = keys[max(at - limit, 0) : at] if backwards else keys[at : at + max(limit, 0)]
        return [_value(spelt[key]) for key in chosen]

    def count(
        self, match: Json, facet: str, members: Sequence[tuple[int, Json]], most: int
    ) -> tuple[tuple[str, int], ...]:
        """The most frequent values over what matches; `members` are the documents of groups."""
        here = _by_key(self._vocabulary.counted_in(match, VALUE_MARKS[facet]))
        again = _count_repeats(members, VALUE_MARKS[facet])
        counts = Counter({key: sum(terms.values()) - again[key] for key, terms in here.items()})
        # A document with two spellings of a value counts once; queried only where it can change the order.
        least = {key: max(terms.values()) - again[key] for key, terms in here.items()}
        last = min(nlargest(max(most, 1), least.values()), default=0)
        several = [key for key, terms in here.items() if len(terms) > 1 and counts[key] >= last]
        asked: list[tuple[Json, Json]] = [
            ({"size": 0}, all_of([match, {"prefix": {"terms": escape_term(key + SEPARATOR)}}]))
            for key in several
        ]
        for key, answer in zip(several, self._snapshot.search_many(asked), strict=True):
            counts[key] = total(answer) - again[key]
        chosen = sorted((key for key in counts if counts[key] > 0), key=lambda key: _place(key, counts))[
            :most
        ]
        shown = list(zip(self._values(chosen), (counts[key] for key in chosen), strict=True))
        ordered = sorted(shown, key=lambda entry: (-entry[1], entry[0].key))
        return tuple((value.label, times) for value, times in ordered)

    def _values(self, keys: Sequence[str]) -> list[Value]:
        """What is shown for keys, by the spellings of all records."""
        known = {key: self._shown[key] for key in keys if key in self._shown}
        missing = [key for key in keys if key not in known]
        spelt = self._vocabulary.counted_by_beginning([key + SEPARATOR for key in missing])
        found = {key: _value(Counter(terms)) for key, terms in zip(missing, spelt, strict=True)}
        self._shown = (self._shown if len(self._shown) < _REMEMBERED else {}) | found
        known |= found
        return [known[key] for key in keys]

    def _spelt(self, facet: str) -> _Spelt | None:
        if facet not in self._known:
            terms = self._vocabulary.counted_at_once(VALUE_MARKS[facet])
            self._known[facet] = None if terms is None else _by_key(terms)
        return self._known[facet]

    def _page(self, facet: str, bound: str, limit: int, backwards: bool) -> list[Value]:
        """A page of a list that is too long for one answer, in the order of the list."""
        terms = self._vocabulary.terms_from(bound, VALUE_MARKS[facet], _AT_ONCE * limit, backwards)
        by_key = groupby(terms, key=lambda entry: entry[0].partition(SEPARATOR)[0])
        found = [_value(Counter(dict(spelt))) for _, spelt in islice(by_key, limit)]
        return found[::-1] if backwards else found


def _by_key(terms: dict[str, int]) -> _Spelt:
    found: _Spelt = {}
    for term, df in terms.items():
        found.setdefault(term.partition(SEPARATOR)[0], Counter())[term] = df
    return found


def _count_repeats(members: Sequence[tuple[int, Json]], mark: str) -> Counter[str]:
    """How often a key was counted for a record whose resource has it by another."""
    seen: set[tuple[int, str]] = set()
    again: Counter[str] = Counter()
    for group, hit in members:
        words = map(term_of, hit.get("fields", {}).get("words", ()))
        for key in {word.partition(SEPARATOR)[0] for word in words if word.startswith(mark)}:
            if (group, key) in seen:
                again[key] += 1
            seen.add((group, key))
    return again


def _place(key: str, counts: Counter[str]) -> tuple[int, bytes, int]:
    head = key.encode("utf-8", "surrogatepass")[2 : 2 + _HEAD]
    return -counts[key], head.ljust(_HEAD, b"\0"), tie(key)


def _value(spelt: Counter[str]) -> Value:
    best = min(spelt, key=lambda term: (-spelt[term], term.encode("utf-8", "surrogatepass")))
    key, _, label = best[2:].partition(SEPARATOR)
    return Value(plain(key), plain(label))
