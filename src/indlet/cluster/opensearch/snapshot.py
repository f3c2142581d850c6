"""One published state of the index as the cluster keeps it: a point in time, to which requests are put.

A point in time that is gone, with a node or by its age, is made again, as long as nothing was changed since.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from indlet.cluster.opensearch.cluster import NO_ANSWER, PAGE, Json, SnapshotLost, hits
from indlet.cluster.opensearch.control import KEEP_ALIVE, Control, PublishedState

T = TypeVar("T")


class Snapshot:
    """`hidden` are the origins whose records are not shown."""

    def __init__(self, control: Control, state: PublishedState, hidden: frozenset[str] = frozenset()) -> None:
        self.control, self.state, self.hidden = control, state, hidden
        self._guard = threading.Lock()

    def search(self, body: Json, query: Json, **params: str) -> Json:
        """The answer to a query over what is shown."""
        if not self.state.data:
            return NO_ANSWER
        made = {"track_total_hits": True, **body, "query": self._without_hidden(query)}
        return self._lasting(lambda pit: self.control.cluster.search({**made, "pit": pit}, **params))

    def search_many(self, bodies: Sequence[tuple[Json, Json]]) -> list[Json]:
        if not self.state.data:
            return [NO_ANSWER for _ in bodies]
        made = [
            {"track_total_hits": True, **body, "query": self._without_hidden(query)} for body, query in bodies
        ]

        def ask(pit: Json) -> list[Json]:
            return self.control.cluster.search_many([{**body, "pit": pit} for body in made])

        return self._lasting(ask)

    def each(self, query: Json, columns: Sequence[str], source: Sequence[str] = ()) -> Iterator[Json]:
        """All matching documents in the order of their ids: columns, and parts of the source."""
        body: Json = {
            "size": PAGE if not source else PAGE // 10,
            "sort": [{"id": "asc"}],
            "docvalue_fields": list(columns),
            "_source": list(source) or False,
            "track_total_hits": False,
        }
        while True:
            page = hits(self.search(body, query))
            yield from page
            if len(page) < body["size"]:
                return
            body = {**body, "search_after": page[-1]["sort"]}

    def _without_hidden(self, query: Json) -> Json:
        if not self.hidden:
            return query
        return {"bool": {"must": [query], "must_not": [{"terms": {"key_origin": sorted(self.hidden)}}]}}

    def _lasting(self, ask: Callable[[Json], T]) -> T:
        for _ in range(3):
            state = self.state
            try:
                return ask({"id": state.snapshot, "keep_alive": KEEP_ALIVE})
            except SnapshotLost:
                with self._guard:
                    if self.state is state:
                        self.state = replace(state, snapshot=self.control.renew(state))
        return ask({"id": self.state.snapshot, "keep_alive": KEEP_ALIVE})


def column(hit: Json, name: str, default: object = None) -> object:
    """A document's value of a column that has at most one."""
    found = hit.get("fields", {}).get(name)
    return found[0] if found else default
