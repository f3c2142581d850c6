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
