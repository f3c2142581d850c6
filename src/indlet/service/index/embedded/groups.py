"""Records of one resource: which they are, and what values each resource has.

Documents that are not alone stand group by group, whatever segments they are in. To count a resource once for
a value, one goes through the matching ones in that order and takes what a group was not counted for yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from indlet.kernels.counting import count_once
from indlet.service.index.embedded.array_file import Array
from indlet.service.index.embedded.segment import Segment, bits, ranges


@dataclass(frozen=True, slots=True)
class Groups:
    """Records of one resource: for each segment the group of each document (0: alone); the ids of the grouped
    records, group by group, and where each group begins. `members` are, for each segment, the documents of
    groups, and their places in that order.
    """

    of: tuple[Array, ...]
    grouped: tuple[Array, ...]  # the same as bits: whether it has one
    ids: Array
    starts: Array
    members: tuple[tuple[Array, Array], ...]

    def __bool__(self) -> bool:
        return self.ids.size > 0

    def with_others(self, id: int, group: int) -> tuple[int, ...]:
        """A record's id, and those of the others in its group, ascending."""
        if group == 0:
            return (id,)
        members = self.ids[self.starts[group - 1] : self.starts[group]].tolist()
        return (id, *(other for other in members if other != id))


NO_GROUPS: Final = Groups((), (), np.empty(0, np.int64), np.zeros(1, np.int64), ())


def grouped(segments: Sequence[Segment]) -> Groups:
    """The groups of live documents that share a resource; no groups where every resource has one record.

    What several records of one source share (the address of their repository, say) tells no resource.
    Each segment's resources are sorted once; a commit then costs a look-up of what it brought.
    """
    repeated = [segment.resources()[2] for segment in segments]
    ordered = sorted((segment.resources()[0] for segment in segments), key=len)
    for i, smaller in enumerate(ordered):
        for larger in ordered[i + 1 :]:
            at = np.searchsorted(larger, smaller)
            at[at == larger.size] = 0
            if larger.size:
                repeated.append(smaller[larger[at] == smaller])
    suspects = np.unique(np.concatenate(repeated or [np.empty(0, np.uint64)]))
    found: list[tuple[Array, Array]] = []  # for each segment: live documents of a suspect, and which
    for segment in segments:
        resources, docs, _ = segment.resources()
        lows, highs = np.searchsorted(resources, suspects), np.searchsorted(resources, suspects, "right")
        which = np.repeat(np.arange(suspects.size), highs - lows)
        held = docs[ranges(lows, highs)]
        if segment.gone is not None:
            alive = ~segment.gone[held]
            held, which = held[alive], which[alive]
        found.append((held, which))
    every = np.concatenate([which for _, which in found] or [np.empty(0, np.int64)])
    sizes = np.bincount(every, minlength=suspects.size)
    several = sizes > 1
    several[_ambiguous(segments, found)] = False
    if not several.any():
        return NO_GROUPS
    number_of = np.where(several, np.cumsum(several), 0)
    of, ids, numbers, members = [], [], [], []
    for segment, (held, which) in zip(segments, found, strict=True):
        groups = np.zeros(segment.size, np.int64)
        groups[held] = number_of[which]
        of.append(groups)
        grouped_here = number_of[which] > 0
        members.append(held[grouped_here])
        ids.append(segment.arrays["id"][members[-1]].astype(np.int64))
        numbers.append(number_of[which[grouped_here]])
    id = np.concatenate(ids)
    order = np.lexsort((id, np.concatenate(numbers)))
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    starts = np.concatenate(([0], np.cumsum(sizes[several])))
    parts = np.split(place, np.cumsum([docs.size for docs in members])[:-1])
    flags = tuple(bits(each > 0) for each in of)
    return Groups(tuple(of), flags, id[order], starts, tuple(zip(members, parts, strict=True)))


def _ambiguous(segments: Sequence[Segment], found: Sequence[tuple[Array, Array]]) -> Array:
    """Which resources several documents of one source have."""
    numbers: dict[str, int] = {}
    pairs = []
    for segment, (held, which) in zip(segments, found, strict=True):
        origin = segment.facet("origin")
        known = np.array([numbers.setdefault(name, len(numbers)) for name in origin.values], np.int64)
        pairs.append(which << 32 | known[origin.codes[held]])
    ordered = np.sort(np.concatenate(pairs or [np.empty(0, np.int64)]))
    twice: Array = ordered[1:][ordered[1:] == ordered[:-1]] >> 32
    return twice


class MatchedDocuments(NamedTuple):
    """The matching documents of each segment, those of them that are alone, and the places of the others."""

    docs: Sequence[Array]
    alone: Sequence[Array]
    places: Array


def parted(docs: Sequence[Array], groups: Groups) -> MatchedDocuments:
    if not groups:
        return MatchedDocuments(docs, docs, groups.ids)
    alone = [some[of[some] == 0] for some, of in zip(docs, groups.of, strict=True)]
    matching = np.zeros(groups.ids.size, np.bool_)
    for some, of, (members, places) in zip(docs, groups.of, groups.members, strict=True):
        flags = np.zeros(of.size, np.bool_)
        flags[some] = True
        matching[places[flags[members]]] = True
    return MatchedDocuments(docs, alone, np.flatnonzero(matching))


@dataclass(frozen=True, slots=True)
class GroupedValues:
    """The values of a facet that grouped documents have, numbers[starts[place]:starts[place + 1]], in one
    snapshot.
    """

    owners: Array  # the group of each place
    starts: Array
    numbers: Array

    def add(self, places: Array, counts: Array) -> None:
        """Counts each group among the places, which ascend, once for each of its values."""
        last = np.zeros(counts.size, np.int64)
        count_once(self.starts, self.numbers, self.owners, places, last, counts)


def grouped_values(groups: Groups, having: Sequence[tuple[Array, Array]]) -> GroupedValues:
    """`having` tells of the members of groups, for each segment, how many values each has, and these."""
    sizes = np.zeros(groups.ids.size, np.int64)
    for (_, places), (own, _) in zip(groups.members, having, strict=True):
        sizes[places] = own
    starts = np.concatenate(([0], np.cumsum(sizes)))
    numbers = np.empty(int(starts[-1]), np.uint32)
    for (_, places), (_, values) in zip(groups.members, having, strict=True):
        numbers[ranges(starts[places], starts[places + 1])] = values
    owners = np.repeat(np.arange(1, groups.starts.size), np.diff(groups.starts))
    return GroupedValues(owners, starts, numbers)
