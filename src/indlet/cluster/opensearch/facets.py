"""How many of the matching records have which value: as the filter of that value would find them.

Values that differ in case alone count as one, under the spelling that most have; a set counts what is in any
set below it; records of one resource count once for a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from indlet.cluster.opensearch.cluster import Json
from indlet.cluster.opensearch.schema import FACETS, keys
from indlet.cluster.opensearch.snapshot import Snapshot
from indlet.service.index.values import VALUE_FACETS

_BUCKETS: Final = 10_000  # values of one answer

# Of one facet: values, most frequent first.
Counted = tuple[tuple[str, int], ...]


def check(names: Sequence[str]) -> None:
    for name in names:
        if name not in FACETS and name not in VALUE_FACETS:
            known = ", ".join((*FACETS, *VALUE_FACETS))
            raise ValueError(f"there is no facet {name!r}: choose from {known}")


def count(
    snapshot: Snapshot, match: Json, names: Sequence[str], members: Sequence[tuple[int, Json]]
) -> dict[str, Counted]:
    """`members` are the matching documents of groups with their groups and columns."""
    aggregations = {
        f"{kind}_{name}": {"terms": {"field": f"{kind}_{name}", "size": _BUCKETS, "shard_size": _BUCKETS}}
        for name in names
        for kind in ("key", "spelt")
    }
    if not aggregations:
        return {}
    told = snapshot.search({"size": 0, "aggs": aggregations}, match)["aggregations"]
    out = {}
    for name in names:
        by_key, by_spelling = (
            _counts(snapshot, match, f"{kind}_{name}", told.get(f"{kind}_{name}"))
            for kind in ("key", "spelt")
        )
        by_key -= _count_repeats(members, f"key_{name}")
        written = _spelt(name, by_spelling)
        shares = ((written[key], times) for key, times in by_key.items())
        out[name] = tuple(sorted(shares, key=lambda entry: (-entry[1], entry[0])))
    return out


def _counts(snapshot: Snapshot, match: Json, field: str, told: Json | None) -> Counter[str]:
    if told is None:
        return Counter()
    if not told["sum_other_doc_count"]:
        return Counter({bucket["key"]: bucket["doc_count"] for bucket in told["buckets"]})
    found: Counter[str] = Counter()
    pages: Json = {"size": _BUCKETS, "sources": [{"value": {"terms": {"field": field}}}]}
    while True:
        answer = snapshot.search({"size": 0, "aggs": {"each": {"composite": pages}}}, match)
        each = answer["aggregations"]["each"]
        found.update({bucket["key"]["value"]: bucket["doc_count"] for bucket in each["buckets"]})
        if "after_key" not in each:
            return found
        pages = {**pages, "after": each["after_key"]}


def _count_repeats(members: Sequence[tuple[int, Json]], field: str) -> Counter[str]:
    """How often a value was counted for a record whose resource has it by another."""
    seen: set[tuple[int, str]] = set()
    again: Counter[str] = Counter()
    for group, hit in members:
        for value in hit.get("fields", {}).get(field, ()):
            if (group, value) in seen:
                again[value] += 1
            seen.add((group, value))
    return again


def _spelt(facet: str, spellings: Counter[str]) -> dict[str, str]:
    """How most of the documents write each key."""
    written: Counter[str] = Counter()
    for value, times in spellings.items():
        parts = value.split(":")
        for key in keys(facet, value):
            whole = key == value.casefold()
            written[value if whole else ":".join(parts[: key.count(":") + 1])] += times
    # The most frequent comes last, and of those the first by name.
    order = sorted(sorted(written, reverse=True), key=written.__getitem__)
    return {spelling.casefold(): spelling for spelling in order}
