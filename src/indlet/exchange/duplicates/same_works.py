"""Records of others that somebody called the same work as one of this node's own."""

from __future__ import annotations

from hashlib import blake2b

from indlet.exchange.duplicates import decisions
from indlet.store import Store


def same_as_ours(store: Store) -> tuple[frozenset[str], str]:
    """The identifiers of these records, and a digest that changes with them."""
    with store.read() as view:
        own, others = decisions.decisions_in(view), decisions.elsewhere_in(view)
        ours = [origin.id for origin in view.origins("hierarchy")]
        found = set[str]()
        for pair in own.keys() | others.keys() if ours else ():
            made = decisions.counting(own, others, *pair)
            if made is None or made.decision != "same":
                continue
            for one, other in (pair, pair[::-1]):
                held = view.get(one, ours)
                if held is not None and not held.deleted and view.get(other, ours) is None:
                    found.add(other)
    return frozenset(found), blake2b(repr(sorted(found)).encode(), digest_size=6).hexdigest()
