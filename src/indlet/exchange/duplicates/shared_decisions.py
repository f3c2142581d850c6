"""Decisions about duplicates, given out for other nodes: those made here, and those heard of elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from itertools import islice
from typing import Final

import orjson

from indlet.exchange.duplicates import decisions
from indlet.provider.serve.access import Permit
from indlet.provider.serve.repository import Repository
from indlet.store import Store, View

_KEPT: Final = 8  # lists, for requesters who may see different records


def decisions_list(store: Store, repository: Repository, node: str) -> Callable[[Permit], bytes]:
    """What answers with the last decision of each node about each pair, as JSON.

    A pair is named to those who may see both of its records. Equal decisions give equal bytes, so that a node
    that comes again is told that nothing has changed; they are made once for each state of the store. `node`
    is the base URL of this one.
    """
    made: dict[tuple[int, ...] | None, tuple[bytes, bytes]] = {}  # by the origins that a requester may see

    def body(permit: Permit) -> bytes:
        with store.read() as view:
            state = blake2b(b"%d" % view.last_seq())
            for key in (decisions.KEY, decisions.ELSEWHERE):
                state.update(b"\0" + (view.meta(key) or b""))
            origins = permit.origins(view)
            shown = None if origins is None else tuple(origins)
            found = made.get(shown)  # other threads may clear it
            if repository.is_filtered or found is None or found[0] != state.digest():
                if len(made) >= _KEPT:
                    made.clear()
                found = state.digest(), _written(view, cache(repository.visible(view, permit)), node)
                made[shown] = found
            return found[1]

    return body


def _written(view: View, visible: Callable[[str], bool], node: str) -> bytes:
    own = decisions.own_id(view)
    last = [
        (pair, replace(made[-1], node=node, node_id=own))
        for pair, made in decisions.decisions_in(view).items()
    ]
    last += [(pair, one) for pair, made in decisions.elsewhere_in(view).items() for one in made]
    shown = ((pair, made) for pair, made in last if all(map(visible, pair)))
    told = [
        {
            "records": pair, "decision": made.decision, "at": made.at, "revision": made.revision,
            "by": made.by, "node": made.node, "node_id": made.node_id,
        }
        for pair, made in islice(shown, decisions.KEPT)
    ]  # fmt: skip
    return orjson.dumps({"node": node, "decisions": told})
