"""Decisions about duplicates, given out for other nodes: those made here, and those heard of elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice

import orjson

from indlet.provider.serve.access import Permit
from indlet.provider.serve.repository import Repository
from indlet.store import Store, decisions


def decisions_list(store: Store, repository: Repository, node: str) -> Callable[[Permit], bytes]:
    """What answers with the last decision of each node about each pair, as JSON.

    A pair is named to those who may see both of its records. Equal decisions give equal bytes, so that a node
    that comes again is told that nothing has changed. `node` is the base URL of this one.
    """

    def body(permit: Permit) -> bytes:
        with store.read() as view:
            visible = cache(repository.visible(view, permit))
            last = [(pair, made[-1]) for pair, made in decisions.decisions_in(view).items()]
            last += [(pair, one) for pair, made in decisions.elsewhere_in(view).items() for one in made]
            shown = ((pair, made) for pair, made in last if all(map(visible, pair)))
            told = [
                {
                    "records": pair, "decision": made.decision, "at": made.at, "revision": made.revision,
                    "by": made.by, "node": made.node or node,
                }
                for pair, made in islice(shown, decisions.KEPT)
            ]  # fmt: skip
        return orjson.dumps({"node": node, "decisions": told})

    return body
