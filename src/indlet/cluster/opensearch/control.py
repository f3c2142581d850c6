"""The state of an index on a cluster: one document says what is published, and who may write.

Published is a point in time, so nobody sees a commit in part. While a writer changes documents in place the
state says so (`changing`): a lost point in time can then not be made again, and questions are refused until
the writer, or the next one, has finished.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from typing import Final
from uuid import uuid4

from indlet.cluster.opensearch.cluster import Cluster, Conflict, Json, NotThere, SnapshotLost
from indlet.errors import IndexBusy, StoreError, StoreUnavailable

LEASE: Final = 20_000  # milliseconds for which the right to write lasts unless it is renew
BEAT: Final = 5.0  # seconds between renewals
KEEP_ALIVE: Final = "10m"  # a point in time that nobody has asked for so long goes
OLD: Final = 30_000  # milliseconds for which what was published before can still be searched

_TAKE: Final = (
    "if (ctx._source.owner != null && ctx._source.owner != params.owner && ctx._now < ctx._source.until) "
    "{ ctx.op = 'none' } else "
    "{ ctx._source.owner = params.owner; ctx._source.until = ctx._now + params.lease }"
)
_OWNED: Final = "if (ctx._source.owner != params.owner) { ctx.op = 'none' } else { "
_BEAT: Final = _OWNED + "ctx._source.until = ctx._now + params.lease }"
_RELEASE: Final = _OWNED + "ctx._source.owner = null }"
_SET: Final = (
    _OWNED + "ctx._source.until = ctx._now + params.lease; "
    "for (e in params.values.entrySet()) { ctx._source[e.getKey()] = e.getValue() } "
    "for (o in params.old) { ctx._source.old.add([o[0], o[1], ctx._now]) } "
    "List gone = new ArrayList(); "
    "for (o in ctx._source.old) { if (ctx._now - o[2] > params.age) { gone.add(o) } } "
    "ctx._source.old.removeAll(gone); ctx._source.gone = gone }"
)
_RENEW: Final = (
    "if (ctx._source.generation != params.generation || ctx._source.changing || "
    "ctx._source.snapshot != params.lost) { ctx.op = 'none' } else { ctx._source.snapshot = params.snapshot }"
)


@dataclass(frozen=True, slots=True)
class PublishedState:
    """`data` is the cluster's index with the documents; `snapshot` the point in time of it that is shown."""

    generation: int = 0
    position: int = 0
    about: Json = field(default_factory=dict)
    data: str = ""
    snapshot: str = ""
    changing: bool = False
    documents: int = 0
    length: int = 0
    longest: int = 0


_FIELDS: Final = tuple(each.name for each in fields(PublishedState))


class Control:
    """The document, and the right to write for whoever took it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self._index = f"{name}-state"

    def read(self) -> PublishedState:
        try:
            answer = self.cluster.ask("GET", f"{self._index}/_doc/state", preference="_primary")
        except NotThere:
            return PublishedState()
        source = answer["_source"]
        return PublishedState(**{name: source[name] for name in _FIELDS})

    def take(self) -> WriteLease:
        """The right to write; IndexBusy if another has it."""
        self._ensure()
        owner = uuid4().hex
        first = {**asdict(PublishedState()), "owner": None, "until": 0, "old": [], "gone": []}
        told = {"script": _script(_TAKE, owner=owner, lease=LEASE), "scripted_upsert": True, "upsert": first}
        if self._update(told) is None:
            raise IndexBusy(f"{self.name} is being written by another process: wait for it, or stop it")
        return WriteLease(self, owner)

    def snapshot(self, data: str) -> str:
        """A point in time of the documents as they are."""
        answer = self.cluster.ask("POST", f"{data}/_search/point_in_time", keep_alive=KEEP_ALIVE)
        shards = answer["_shards"]
        if shards.get("failed") or shards["successful"] != shards["total"]:
            raise StoreUnavailable(f"{self.cluster.location}: some shards are missing; ask again later")
        return str(answer["pit_id"])

    def renew(self, state: PublishedState) -> str:
        """Another point in time for a state whose own is gone. StoreUnavailable if there can be none."""
        now = self.read()
        if now.generation != state.generation:
            raise SnapshotLost(f"{self.name}: the index has moved on; ask again")
        if now.snapshot != state.snapshot:
            return now.snapshot
        if now.changing:
            raise StoreUnavailable(
                f"{self.name}: a search node was lost while the index is being brought up to date; ask again "
                "when that is done (indlet index)"
            )
        return self.republish(state) or self.renew(state)

    def republish(self, state: PublishedState) -> str:
        """Publishes another point in time of the same state; none if it is the same no more."""
        fresh = self.snapshot(state.data)
        script = _script(_RENEW, generation=state.generation, lost=state.snapshot, snapshot=fresh)
        done = self._update({"script": script}) is not None
        self.forget([state.snapshot if done else fresh])
        return fresh if done else ""

    def forget(self, snapshots: list[str]) -> None:
        if snapshots:
            with suppress(StoreError):
                self.cluster.ask("DELETE", "_search/point_in_time", {"pit_id": snapshots})

    def drop(self, data: str) -> None:
        with suppress(NotThere):
            self.cluster.ask("DELETE", data)

    def _ensure(self) -> None:
        try:
            self.cluster.ask("HEAD", self._index)
        except NotThere:
            settings = {"number_of_shards": 1, "auto_expand_replicas": "0-1"}
            try:
                body = {"settings": {"index": settings}, "mappings": {"dynamic": False}}
                self.cluster.ask("PUT", self._index, body, wait_for_active_shards=1)
            except StoreError as e:
                if "resource_already_exists" not in str(e):
                    raise

    def _update(self, body: Json) -> Json | None:
        """The document after a change; None where its script would not."""
        for _ in range(20):
            with suppress(Conflict):
                answer = self.cluster.ask("POST", f"{self._index}/_update/state", body, _source="true")
                if answer["result"] == "noop":
                    return None
                source: Json = answer["get"]["_source"]
                return source
        raise StoreUnavailable(f"{self.name}: its state is changed all the time by others; try again")


class WriteLease:
    """The right to write, renew by a thread until it is released."""

    def __init__(self, control: Control, owner: str) -> None:
        self._control, self._owner = control, owner
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="index-lease", daemon=True)
        self._thread.start()

    def set(self, values: Json, old: list[tuple[str, str]] | None = None) -> None:
        """Changes the state; `old` are indices and points in time that go after a while."""
        script = _script(_SET, owner=self._owner, lease=LEASE, values=values, old=old or [], age=OLD)
        after = self._control._update({"script": script})
        if after is None:
            raise IndexBusy(f"{self._control.name}: another process has taken over writing; let it")
        for index, snapshot, _ in after["gone"]:
            self._control.forget([snapshot] if snapshot else [])
            if index:
                self._control.drop(index)

    def sweep(self, kept: str) -> None:
        """Deletes what killed writers have left."""
        state = self._control._update({"script": _script(_BEAT, owner=self._owner, lease=LEASE)})
        known = {kept, *(index for index, _, _ in (state or {"old": []})["old"])}
        prefix = f"{self._control.name}-data-"
        found = self._control.cluster.ask("GET", f"{prefix}*/_settings", filter_path="*.settings.index.uuid")
        for index in found:
            if state is not None and index.startswith(prefix) and index not in known:
                self._control.drop(index)

    def release(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            with suppress(StoreError):
                self._control._update({"script": _script(_RELEASE, owner=self._owner)})
            self._thread.join()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            with suppress(StoreError):
                self._control._update({"script": _script(_BEAT, owner=self._owner, lease=LEASE)})


def _script(source: str, **params: object) -> Json:
    return {"source": source, "lang": "painless", "params": params}
