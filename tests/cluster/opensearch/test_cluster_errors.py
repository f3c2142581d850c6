"""What a cluster says against a question, as errors of ours: nothing of it is an answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import orjson
import pytest
from anyio.to_thread import current_default_thread_limiter

from indlet.cluster.opensearch.cluster import CONNECTIONS, Cluster, Json, SnapshotLost
from indlet.errors import StoreError, StoreUnavailable

CLUSTER = Cluster(["http://127.0.0.1:9"])
# As a node said it of whose point in time another node, killed, had a part.
GONE = {"type": "illegal_state_exception", "reason": "no node found for id: vJz4pELUSw6-kW1DY8iIqg"}


@pytest.mark.parametrize(
    ("status", "told", "kind"),
    [
        (
            500,
            {"type": "search_phase_execution_exception", "failed_shards": [{"reason": GONE}]},
            SnapshotLost,
        ),
        (404, {"type": "search_context_missing_exception"}, SnapshotLost),
        (429, {"type": "circuit_breaking_exception"}, StoreUnavailable),
        (503, {"type": "no_shard_available_action_exception"}, StoreUnavailable),
        (400, {"type": "parsing_exception"}, StoreError),
    ],
)
def test_refusals(status: int, told: Json, kind: type[StoreError]) -> None:
    assert type(CLUSTER._response_error(status, told)) is kind


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (
            {"_shards": {"total": 2, "successful": 1, "failed": 1, "failures": [{"reason": GONE}]}},
            SnapshotLost,
        ),
        ({"_shards": {"total": 2, "successful": 1, "failed": 1}}, StoreUnavailable),
        ({"_shards": {"total": 2, "successful": 1, "failed": 0}}, StoreUnavailable),
        ({"timed_out": True, "_shards": {"total": 2, "successful": 2, "failed": 0}}, StoreUnavailable),
    ],
)
def test_a_part_of_an_answer_is_none(answer: Json, kind: type[StoreError]) -> None:
    with pytest.raises(StoreUnavailable) as raised:
        CLUSTER._whole(answer)
    assert type(raised.value) is kind


# As a node of 512 MB said it during a load of a million records.
BREAKER = {
    "type": "circuit_breaking_exception",
    "reason": "[parent] Data too large, data for [<http_request>] would be [515000000/491.1mb], which is "
    "larger than the limit of [510027366/486.3mb]",
    "bytes_wanted": 515000000,
    "bytes_limit": 510027366,
    "durability": "TRANSIENT",
}


@contextmanager
def answering(*answers: tuple[int, Json], seconds: float = 0.0) -> Iterator[tuple[Cluster, list[bytes]]]:
    """A node that gives these answers in turn, each after so long; and the bodies of what it was asked."""
    left, asked = list(answers), list[bytes]()

    class Node(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])))
            status, told = left.pop(0)
            time.sleep(seconds)
            body = orjson.dumps(told)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Node) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        cluster = Cluster([f"http://127.0.0.1:{server.server_port}"])
        try:
            yield cluster, asked
        finally:
            cluster.close()
            server.shutdown()


def test_records_that_the_circuit_breaker_refuses_are_sent_again_and_no_others() -> None:
    refused: Json = {"error": BREAKER, "status": 429}
    some: Json = {"items": [{"index": {"_id": "1", "status": 201}}, {"index": {"_id": "2"} | refused}]}
    last: Json = {"items": [{"index": {"_id": "2", "status": 201}}]}
    with answering((429, refused), (200, some), (200, last)) as (cluster, asked):
        cluster.bulk("x", [({"index": {"_id": id}}, b'{"n":%s}' % id.encode()) for id in "12"])
    assert [body.count(b"_id") for body in asked] == [2, 2, 1]
    assert b'{"n":2}' in asked[-1]


def test_a_question_that_the_circuit_breaker_refuses_is_refused() -> None:
    short = "the cluster is short of memory .429.; ask again later"
    with (
        answering((429, {"error": BREAKER, "status": 429})) as (cluster, asked),
        pytest.raises(StoreUnavailable, match=short),
    ):
        cluster.search({"query": {"match_all": {}}})
    assert len(asked) == 1
    part = {"responses": [{"error": BREAKER, "status": 429}]}
    with answering((200, part)) as (cluster, _), pytest.raises(StoreUnavailable, match=short):
        cluster.search_many([{"query": {"match_all": {}}}])


# As a node said it that had lost another one.
LOST: Json = {
    "error": {
        "type": "search_phase_execution_exception",
        "reason": "all shards failed",
        "failed_shards": [{
            "node": "vJz4pELUSw6-kW1DY8iIqg",
            "reason": {"type": "node_disconnected_exception", "reason": "[data-2][10.0.3.7:9300] is lost"},
        }],
    },
    "status": 503,
}  # fmt: skip


def test_what_a_cluster_says_of_itself_is_for_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "indlet.opensearch"),
        answering(*[(503, LOST)] * 4) as (cluster, asked),
        pytest.raises(StoreUnavailable) as raised,
    ):
        cluster.search({"query": {"match_all": {}}})
    assert len(asked) == 4  # it is asked three times more
    assert str(raised.value).startswith(f"{cluster.location}: the cluster is too busy, or not all of it is")
    assert "10.0.3.7" not in str(raised.value) and "10.0.3.7" in caplog.text
    exists = {"error": {"type": "resource_already_exists_exception", "reason": "index [i/8Zk] exists"}}
    told = str(CLUSTER._response_error(400, exists, "i"))
    assert "resource_already_exists" in told and "8Zk" not in told  # by that type others go
    assert "no type" in str(CLUSTER._response_error(400, {"error": "<b>8Zk</b>"}))


# As a node said it of a script that failed on a shard, and of a query that it could not read.
QUOTING: Json = {
    "type": "search_phase_execution_exception",
    "reason": "all shards failed",
    "failed_shards": [{"shard": 0, "node": "n1", "reason": {
        "type": "query_shard_exception",
        "reason": "failed to create query: {\"term\":{\"terms\":\"divorce lawyer\"}}",
        "caused_by": {"type": "parsing_exception", "reason": "[divorce lawyer] is no number"},
    }}],
}  # fmt: skip


@pytest.mark.parametrize("status", [400, 500])
def test_the_log_does_not_quote_what_somebody_searched_for(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "indlet.opensearch"):
        CLUSTER._response_error(status, QUOTING)
        CLUSTER._response_error(429, BREAKER)
    assert "divorce" not in caplog.text
    assert "search_phase_execution_exception; query_shard_exception; parsing_exception" in caplog.text
    assert "larger than the limit of" in caplog.text


def test_every_thread_that_answers_has_a_connection() -> None:
    async def threads() -> float:
        return current_default_thread_limiter().total_tokens

    (connection,) = CLUSTER._connect().transport.connection_pool.connections
    assert connection.pool.pool.maxsize == CONNECTIONS >= anyio.run(threads)


def test_writing_may_take_longer_than_an_answer_to_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that is busy with what it was sent took more than a minute for the refresh of a commit."""
    monkeypatch.setattr("indlet.cluster.opensearch.cluster.SECONDS", 0.1)
    with (
        answering((200, {"hits": {}}), seconds=0.3) as (cluster, _),
        pytest.raises(StoreUnavailable, match="does not answer"),
    ):
        cluster.search({"query": {"match_all": {}}})
    with answering((200, {"items": [{"index": {"status": 201}}]}), seconds=0.3) as (cluster, asked):
        cluster.bulk("x", [({"index": {}}, b"{}")])
    assert len(asked) == 1
