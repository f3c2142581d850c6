"""What a cluster says against a question, as errors of ours: nothing of it is an answer."""

from __future__ import annotations

import pytest

from indlet.errors import StoreError, StoreUnavailable
from indlet.service.index.opensearch.cluster import Cluster, Json, SnapshotLost

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
    assert type(CLUSTER._refused(status, told)) is kind


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
