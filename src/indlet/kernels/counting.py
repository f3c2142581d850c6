"""How often values occur in a result. The plain way is `numpy.bincount` over the values of its documents, or
over those of its groups of documents, each value of a group once.
"""

from __future__ import annotations

from indlet.kernels.arrays import Numbers, Small
from indlet.kernels.jit import kernel


@kernel
def count_values(starts: Numbers, codes: Small, numbers: Small, docs: Numbers, counts: Numbers) -> None:
    """Adds one to counts[numbers[code]] for every code of documents: codes[starts[doc]:starts[doc + 1]]."""
    for place in range(docs.size):
        doc = docs[place]
        for at in range(starts[doc], starts[doc + 1]):
            counts[numbers[codes[at]]] += 1


@kernel
def count_once(
    starts: Numbers, numbers: Small, groups: Numbers, places: Numbers, last: Numbers, counts: Numbers
) -> None:
    """Adds one to counts[number] for every number that a group has, numbers[starts[place]:starts[place + 1]].

    The places of a group, which groups[place] tells, follow one another; `last` has a 0 for each number.
    """
    for at in range(places.size):
        place = places[at]
        group = groups[place]
        for value in range(starts[place], starts[place + 1]):
            number = numbers[value]
            if last[number] != group:
                last[number] = group
                counts[number] += 1


@kernel
def turn_round(
    docs: Small, bounds: Numbers, numbers: Numbers, starts: Numbers, at: Numbers, codes: Small
) -> None:
    """The numbers of documents, codes[starts[doc]:starts[doc + 1]], of lists of documents: list t, which is
    docs[bounds[t]:bounds[t + 1]], has numbers[t], and these never fall. A number of several lists stands once
    for a document. The plain way is `numpy.unique` over pairs.

    `starts` comes with zeros; `at`, with -1 for each document, is room to work in.
    """
    for t in range(numbers.size):
        for i in range(bounds[t], bounds[t + 1]):
            doc = docs[i]
            if at[doc] != numbers[t]:
                at[doc] = numbers[t]
                starts[doc + 1] += 1
    for doc in range(at.size):
        at[doc] = starts[doc]
        starts[doc + 1] += starts[doc]
    for t in range(numbers.size):
        for i in range(bounds[t], bounds[t + 1]):
            doc = docs[i]
            place = at[doc]
            if place == starts[doc] or codes[place - 1] != numbers[t]:
                codes[place] = numbers[t]
                at[doc] = place + 1
