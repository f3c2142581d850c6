"""How often values occur in a result. The plain way is `numpy.bincount` over the values of its documents."""

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
