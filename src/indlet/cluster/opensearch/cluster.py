"""A connection to an OpenSearch cluster. Every answer is whole: a part of one is an error.

What goes wrong becomes an error of ours: `StoreUnavailable` where the cluster does not answer or refuses for
now (its circuit breaker, a lost node), `StoreError` where it says no. Why, as the cluster names it, is in the
log alone, for it may name nodes and their addresses; its words only where they cannot quote what somebody
searched for, or a record.
"""

from __future__ import annotations

import gzip
import logging
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar
from urllib.parse import urlsplit

import orjson
from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import OpenSearchException, TransportError

from indlet.errors import StoreError, StoreUnavailable
from indlet.model import JsonObject

logging.getLogger("opensearch").setLevel(logging.CRITICAL)  # our errors report the cause
_log = logging.getLogger("indlet.opensearch")

Json = JsonObject
T = TypeVar("T")

SECONDS: Final = 60.0  # that an answer may take
WRITING: Final = 600.0  # the same where documents are written or made visible: nobody waits for a page
PATIENCE: Final = 60.0  # seconds that a refusal for now is borne while indexing
PAGE: Final = 10_000  # hits of one answer: what clusters allow by default
# Connections that are kept to each node of the cluster: requests are answered in 40 threads (AnyIO's number),
# and a few others ask beside them.
CONNECTIONS: Final = 48
PLAIN: Final = 4096  # bytes of a request that go as they are; of longer ones two thirds can be saved
NO_ANSWER: Final[Json] = {"hits": {"total": {"value": 0}, "hits": []}, "aggregations": {}}
_LATER: Final = (429, 502, 503, 504)
_LOGGED: Final = 1000  # characters of what a cluster says
_TYPE: Final = re.compile("[a-z_]{1,80}")
# Errors of the cluster's own state: their words speak of nodes, shards and memory alone.
_STATE: Final = re.compile(
    "circuit_breaking|rejected_execution|no_shard_available|unavailable_shards|cluster_block|not_connected|"
    "not_discovered|cluster_event_timeout|node_closed|node_disconnected|connect_transport|shard_lock|disk_usage"
)


class SnapshotLost(StoreUnavailable):
    """The point in time is gone: it expired, or a node went with its part of it."""


class Cluster:
    """May be used by many threads; a connection pool for each process."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = tuple(urls)
        self._guard = threading.Lock()
        self._client: OpenSearch | None = None

    @property
    def location(self) -> str:
        """For people: without passwords."""
        return ", ".join(f"{p.scheme}://{p.hostname}:{p.port or 9200}" for p in map(urlsplit, self.urls))

    def ask(self, method: str, path: str, body: object = None, **params: str | float | bool) -> Json:
        data = None if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        headers = {"content-type": _kind(path), "accept-encoding": "gzip"}
        if data and len(data) > PLAIN:
            # The client's own way takes ten times as long, for a sixth less.
            data, headers["content-encoding"] = gzip.compress(data, 1), "gzip"
        told: Json = dict(params)
        try:
            answer = self._connect().transport.perform_request(
                method, "/" + path, params=told, body=data, headers=headers
            )
        except TransportError as e:
            raise self._transport_error(e, path) from e
        except (OpenSearchException, OSError) as e:
            _log.warning("%s: %s", self.location, str(e)[:_LOGGED])
            raise StoreUnavailable(
                f"{self.location}: gives no answer that can be read; correct [index] url"
            ) from e
        if answer is False:  # to HEAD
            raise NotThere(f"{self.location}: has no {path}")
        return answer if isinstance(answer, dict) else {}

    def search(self, body: Json, path: str = "_search", **params: str | int | bool) -> Json:
        """An answer of all shards, or an error."""
        answer = self.ask("POST", path, body, allow_partial_search_results="false", **params)
        return self._whole(answer)

    def search_many(self, bodies: Sequence[Json], index: str = "") -> list[Json]:
        if not bodies:
            return []
        header = {"index": index} if index else {}
        lines = [part for body in bodies for part in (header, body)]
        answers = self.ask("POST", "_msearch", _lines(lines))["responses"]
        for answer in answers:
            if "error" in answer:
                raise self._response_error(answer.get("status", 500), answer["error"])
        return [self._whole(answer) for answer in answers]

    def bulk(self, index: str, operations: Iterable[tuple[Json, bytes | None]]) -> None:
        """Writes documents; what a busy cluster refuses is offered again. An older version loses."""
        waiting = list(operations)
        until, pause = time.monotonic() + PATIENCE, 0.1
        while waiting:
            lines = [orjson.dumps(head) + b"\n" + (made + b"\n" if made else b"") for head, made in waiting]
            try:
                items = self.ask("POST", f"{index}/_bulk", b"".join(lines), request_timeout=WRITING)["items"]
            except StoreUnavailable:
                if time.monotonic() > until:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 5.0)
                continue
            again = []
            for pair, item in zip(waiting, items, strict=True):
                ((action, told),) = item.items()
                status = told["status"]
                if status in _LATER:
                    again.append(pair)
                elif status >= 400 and status != 409 and not (action == "delete" and status == 404):
                    raise self._response_error(status, told.get("error", {}), f"record {told.get('_id')}")
            if again and time.monotonic() > until:
                raise StoreUnavailable(f"{self.location}: refuses records, being too busy; index again later")
            if again:
                time.sleep(pause)
                pause = min(2 * pause, 5.0)
            waiting = again

    def close(self) -> None:
        with self._guard:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _connect(self) -> OpenSearch:
        with self._guard:
            if self._client is None:
                self._client = OpenSearch(
                    hosts=list(self.urls), timeout=SECONDS, max_retries=3, pool_maxsize=CONNECTIONS,
                    retry_on_status=(502, 503, 504),
                )  # fmt: skip
            return self._client

    def _whole(self, answer: Json) -> Json:
        shards = answer.get("_shards", {})
        if shards.get("failed") or shards.get("successful") != shards.get("total") or answer.get("timed_out"):
            if _snapshot_gone(orjson.dumps(shards.get("failures", []), default=str).decode()):
                raise SnapshotLost(f"{self.location}: the snapshot is gone; ask again")
            raise StoreUnavailable(f"{self.location}: some shards did not answer; ask again later")
        return answer

    def _transport_error(self, e: TransportError, path: str) -> StoreError:
        if isinstance(e, NoConnection) or not isinstance(e.status_code, int):
            _log.warning("%s: %s", self.location, str(e.info if e.status_code == "N/A" else e)[:_LOGGED])
            return StoreUnavailable(
                f"{self.location}: the cluster does not answer; start it, or correct [index] url"
            )
        return self._response_error(
            e.status_code, e.info if isinstance(e.info, dict) else {"reason": e.error}, path
        )

    def _response_error(self, status: int, told: object, what: str = "") -> StoreError:
        text = orjson.dumps(told, default=str).decode()
        if _snapshot_gone(text) or (status == 404 and "point_in_time" in text):
            return SnapshotLost(f"{self.location}: the snapshot is gone; ask again")
        short_of_memory = "circuit_breaking" in text
        later = status in _LATER or status >= 500 or short_of_memory
        if status == 404 and not later:
            return NotThere(f"{self.location}: has no {what or 'such index'}")
        if status == 409 and not later:
            return Conflict(f"{self.location}: {what} was modified by another process")
        what = what or "a question"
        _log.warning("%s: refuses %s (%d): %s", self.location, what, status, "; ".join(_causes(told)))
        if later:
            why = "is short of memory" if short_of_memory else "is too busy, or not all of it is there"
            return StoreUnavailable(f"{self.location}: the cluster {why} ({status}); ask again later")
        return StoreError(
            f"{self.location}: refuses {what} ({status}, {_type(told)}); the log has its causes"
        )


def _type(told: object) -> str:
    """The type of an error as a cluster names it: "parsing_exception"."""
    error = told.get("error", told) if isinstance(told, dict) else told
    named = error.get("type") if isinstance(error, dict) else error
    return named if isinstance(named, str) and _TYPE.fullmatch(named) else "no type"


def _causes(told: object, depth: int = 0) -> list[str]:
    """The types of an error and of its causes, each once; with their words where these quote nothing."""
    error = told.get("error", told) if isinstance(told, dict) else told
    if not isinstance(error, dict) or depth > 5:
        return ["no type"]
    name, reason = _type(error), error.get("reason")
    if isinstance(reason, dict):  # of a shard that failed
        return _causes(reason, depth + 1)
    found = [f"{name}: {reason}"[:_LOGGED] if _STATE.search(name) else name]
    for part in ("caused_by", "root_cause", "failed_shards"):
        inner = error.get(part) or []
        for one in inner[:5] if isinstance(inner, list) else [inner]:
            found += _causes(one, depth + 1)
    return list(dict.fromkeys(found))


def _snapshot_gone(text: str) -> bool:
    """Whether a point in time is no more: forgotten by a node, or gone with one."""
    return "search_context_missing" in text or "no node found for id" in text


class NotThere(StoreError):
    pass


class Conflict(StoreError):
    pass


def pieces(values: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(values)
    return iter(lambda: list(islice(rest, size)), [])


def hits(answer: Json) -> list[Json]:
    found: list[Json] = answer["hits"]["hits"]
    return found


def total(answer: Json) -> int:
    return int(answer["hits"]["total"]["value"])


def _kind(path: str) -> str:
    return "application/x-ndjson" if path.endswith(("_bulk", "_msearch")) else "application/json"


def _lines(parts: Iterable[object]) -> bytes:
    return b"".join(orjson.dumps(part) + b"\n" for part in parts)
