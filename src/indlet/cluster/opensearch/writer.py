"""Writing: changes go to the cluster as they come, and are seen when a commit publishes a point in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Self
from uuid import uuid4

import orjson

from indlet.cluster.opensearch import schema
from indlet.cluster.opensearch.cluster import WRITING, Json, NotThere, pieces, total
from indlet.cluster.opensearch.control import Control, PublishedState
from indlet.cluster.opensearch.resources import regroup
from indlet.errors import IndexDamaged, StoreError
from indlet.model import Stored
from indlet.service.index.protocol import Prepared
from indlet.text import Analyzer

FLUSH: Final = 8 << 20  # bytes of documents that wait in memory, while as many are on their way
REQUEST: Final = 500  # documents of one request
SENDERS: Final = 2  # requests at once


class OpenSearchWriter:
    """Belongs to one thread. A version of a record that is older than the cluster's loses, so work that is
    done twice changes nothing."""

    def __init__(self, control: Control, analyzer: Analyzer, shards: int, anew: bool) -> None:
        self._control, self._cluster = control, control.cluster
        self._analyzer, self._shards = analyzer, shards
        self._lease = control.take()
        try:
            self._state = control.read()
            self._anew = anew
            self._data = "" if anew else self._state.data
            self._applied = 0 if anew else self._state.position
            if self._data:
                try:
                    self._cluster.ask("HEAD", self._data)
                except NotThere as e:
                    raise IndexDamaged(
                        f"{self._data} is missing; rebuild the index with `indlet reindex`"
                    ) from e
            self._lease.sweep(self._state.data)
        except BaseException:
            self._lease.release()
            raise
        self._waiting: dict[int, tuple[int, bytes | None]] = {}  # by ids: the change, the document
        self._bytes = 0
        self._touched: set[int] = set()  # resources
        self._written = False
        self._senders = ThreadPoolExecutor(SENDERS, thread_name_prefix="index-writer")
        self._sent: list[Future[None]] = []

    @property
    def position(self) -> int:
        return self._state.position

    @property
    def applied(self) -> int:
        return self._applied

    @property
    def anew(self) -> bool:
        return self._anew

    def prepare(self, changes: Sequence[Stored]) -> Prepared:
        return Prepared(self._analyzer.described(changes))

    def apply(self, prepared: Prepared) -> int:
        for stored in prepared.changes:
            self._applied = max(self._applied, stored.seq)
            made = None if stored.deleted else orjson.dumps(schema.document(stored))
            if stored.resource and not stored.deleted:
                self._touched.add(stored.resource)
            self._waiting[stored.id] = stored.seq, made
            self._bytes += len(made or b"") + 100
            if self._bytes > FLUSH:
                self._flush()
        return len(prepared.changes)

    def commit(self, position: int | None = None, about: Mapping[str, str] | None = None) -> None:
        if position is not None:
            self._applied = max(self._applied, position)
        kept = dict(self._state.about) if about is None else dict(about)
        if not (self._waiting or self._written or self._anew) and (self._applied, kept) == (
            self._state.position,
            self._state.about,
        ):
            return
        self._flush()
        self._await_requests()
        before = self._state
        values: Json = {"generation": before.generation + 1, "position": self._applied, "about": kept}
        old: list[tuple[str, str]] = []
        if self._written or self._anew:
            self._ready()
            self._refresh()
            if regroup(self._cluster, self._data, self._touched):
                self._refresh()
            snapshot = self._control.snapshot(self._data)
            values |= {"data": self._data, "snapshot": snapshot, "changing": False} | self._collection(
                snapshot
            )
            old = [("" if before.data == self._data else before.data, before.snapshot)] if before.data else []
        self._lease.set(values, old)
        self._state = PublishedState(**{**_values(before), **values})
        self._anew, self._written, self._touched = False, False, set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._senders.shutdown(cancel_futures=True)
        try:
            if self._data and self._data != self._state.data:
                self._control.drop(self._data)
        except StoreError:
            pass  # the next writer sweeps
        finally:
            self._lease.release()

    # ---- inside

    def _ready(self) -> None:
        """There are documents to be written into: in a new index nobody sees them."""
        if not self._data:
            name = f"{self._control.name}-data-{uuid4().hex[:12]}"
            self._cluster.ask("PUT", name, schema.settings(self._shards), wait_for_active_shards=1)
            self._data = name
        elif self._data == self._state.data and not self._state.changing:
            self._lease.set({"changing": True})
            self._state = PublishedState(**{**_values(self._state), "changing": True})

    def _flush(self) -> None:
        if not self._waiting:
            return
        self._await_requests()  # first: an older version of a record never comes after a newer one
        self._ready()
        self._written = True
        if self._data == self._state.data:
            self._touched |= self._former_resources(list(self._waiting))
        for piece in pieces(self._waiting.items(), REQUEST):
            self._sent.append(self._senders.submit(self._cluster.bulk, self._data, _operations(piece)))
        self._waiting, self._bytes = {}, 0

    def _await_requests(self) -> None:
        """Waits until the cluster has all that was sent; what it refused is an error here."""
        for request in self._sent:
            request.result()
        self._sent.clear()

    def _former_resources(self, ids: list[int]) -> set[int]:
        """The resources of records as they were before."""
        found: set[int] = set()
        for piece in pieces(ids, 5 * REQUEST):
            told = {"ids": [str(id) for id in piece]}
            answer = self._cluster.ask("POST", f"{self._data}/_mget", told, _source_includes="resource")
            found |= {doc["_source"]["resource"] for doc in answer["docs"] if doc.get("_source")}
        return found

    def _refresh(self) -> None:
        answer = self._cluster.ask("POST", f"{self._data}/_refresh", request_timeout=WRITING)
        shards = answer["_shards"]
        if shards.get("failed"):
            raise StoreError(f"{self._data}: some shards could not be refreshed; index again")

    def _collection(self, snapshot: str) -> Json:
        body = {
            "size": 0,
            "track_total_hits": True,
            "pit": {"id": snapshot},
            "aggs": {"length": {"sum": {"field": "length"}}, "longest": {"max": {"field": "length"}}},
        }
        answer = self._cluster.search(body)
        told = answer["aggregations"]
        return {
            "documents": total(answer),
            "length": int(told["length"]["value"]),
            "longest": int(told["longest"]["value"] or 0),
        }


def _operations(piece: Iterable[tuple[int, tuple[int, bytes | None]]]) -> Iterator[tuple[Json, bytes | None]]:
    for id, (seq, made) in piece:
        head = {"_id": str(id), "version": seq, "version_type": "external_gte"}
        yield {"delete" if made is None else "index": head}, made


def _values(state: PublishedState) -> Json:
    return {name: getattr(state, name) for name in PublishedState.__dataclass_fields__}
