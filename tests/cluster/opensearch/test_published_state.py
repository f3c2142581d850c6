"""What is published is what is answered: lost snapshots, writers that stop half-way, clusters down."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.opensearch_index import TemporaryIndex
from tests.opensearch_server import SERVER, awaited, on_opensearch
from tests.stores import store_in

from indlet.cluster.opensearch import control
from indlet.cluster.opensearch.cluster import Cluster
from indlet.cluster.opensearch.index import OpenSearchIndex
from indlet.errors import IndexBusy, IndexDamaged, QueryError, StoreUnavailable
from indlet.model import Record, Stored, TermVector
from indlet.service.index import Searcher, follow
from indlet.service.index.engines import index_of
from indlet.service.index.expression import Phrase, Term
from indlet.settings import IndexEngine
from indlet.text import Analyzer, Policy

pytestmark = pytest.mark.skipif(not on_opensearch(), reason="make test-cluster starts OpenSearch")

ANALYZER = Analyzer(Policy())
Make = Callable[..., Stored]


@pytest.fixture
def index() -> Iterator[TemporaryIndex]:
    with closing(TemporaryIndex()) as made:
        yield made


def write(index: TemporaryIndex, *changes: Stored) -> Searcher:
    with index.writer(ANALYZER) as writer:
        writer.apply(writer.prepare(changes))
        writer.commit()
    return index.searcher()


def lose(index: TemporaryIndex) -> None:
    """What happens to a point in time when a node goes."""
    index._control.forget([index._control.read().snapshot])


def test_a_lost_snapshot_is_made_again_while_nothing_has_changed(index: TemporaryIndex, record: Make) -> None:
    held = write(index, record(1, 1, {"wing": 2}), record(2, 2, {"wing": 1}))
    before = held.search(Term("wing"))
    lose(index)
    assert held.search(Term("wing")) == before
    assert index.searcher() is held


def test_merging_everything_lets_go_of_what_was_merged(index: TemporaryIndex, record: Make) -> None:
    for number in range(1, 4):
        held = write(index, record(number, number, {"wing": number}))
    before = held.search(Term("wing"))
    index.settle(everything=True)
    assert index.searcher() is held
    assert held.search(Term("wing")) == before
    assert held.stats().segments <= 2  # one for each shard


def test_half_of_a_commit_is_never_shown(
    index: TemporaryIndex, record: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indlet.cluster.opensearch.writer.FLUSH", 1)
    held = write(index, record(1, 1, {"wing": 2}))
    with index.writer(ANALYZER) as writer:  # stops before its commit
        writer.apply(writer.prepare([record(1, 2, {"other": 1}), record(2, 3, {"wing": 5})]))
    assert index.searcher().search(Term("wing")).total == 1
    index.refresh()  # as a node does that starts again
    assert held.search(Term("wing")).total == 1
    lose(index)
    with pytest.raises(StoreUnavailable, match="being brought up to date"):
        held.search(Term("wing"))
    after = write(index, record(1, 2, {"other": 1}), record(2, 3, {"wing": 5}))
    assert [hit.id for hit in after.search(Term("wing")).hits] == [2]


def test_who_writes_and_is_gone_is_followed_by_another(
    index: TemporaryIndex, record: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "LEASE", 3_600_000)
    monkeypatch.setattr(control, "BEAT", 3600.0)  # as if it were dead
    stalled = index.writer(ANALYZER)
    stalled.apply(stalled.prepare([record(1, 1, {"old": 1})]))
    with pytest.raises(IndexBusy):
        index.writer(ANALYZER)
    monkeypatch.undo()
    index.cluster.ask("POST", f"{index.name}-state/_update/state", {"doc": {"until": 0}})  # its hour is over
    held = write(index, record(1, 2, {"new": 1}))
    with pytest.raises(IndexBusy, match="taken over"):
        stalled.commit()
    stalled.__exit__()
    assert [name for name, _, _ in held.vocabulary() if name[:1] != b"\x1f"] == [b"new"]


def test_documents_that_are_missing_are_a_damage(index: TemporaryIndex, record: Make) -> None:
    write(index, record(1, 1, {"wing": 2}))
    index.cluster.ask("DELETE", f"{index.name}-data-*")
    with pytest.raises(IndexDamaged, match="missing"):
        TemporaryIndex(name=index.name).searcher()
    with pytest.raises(IndexDamaged, match="missing"):
        index.writer(ANALYZER)
    with index.writer(ANALYZER, anew=True) as writer:
        writer.apply(writer.prepare([record(1, 1, {"wing": 2})]))
        writer.commit()
    assert index.searcher().search(Term("wing")).total == 1


def test_a_cluster_that_is_down_is_said_to_be() -> None:
    down = OpenSearchIndex(Cluster(["http://name:secret@127.0.0.1:9"]), "x", 1)
    with pytest.raises(StoreUnavailable, match=r"http://127\.0\.0\.1:9: the cluster does not answer") as told:
        down.searcher()
    assert "secret" not in str(told.value)


def test_a_phrase_past_reach_is_refused(index: TemporaryIndex, record: Make) -> None:
    held = write(index, record(1, 1, {"wing": 2}))
    with pytest.raises(QueryError, match="50 words"):
        held.search(Phrase(("wing", "heated"), (0, 51)))


def test_the_index_of_a_store_follows_it_on_either_engine(tmp_path: Path) -> None:
    with store_in(tmp_path / "store") as store:
        with store.write() as tx:
            origin = tx.origin("o", "hierarchy", {})
            tx.put(
                origin,
                [
                    Record(f"oai:a:{n}", {"title": [f"wing {n}"]}, TermVector.of({"wing": n, f"w{n}": 1}))
                    for n in range(1, 30)
                ],
            )
        follow.catch_up(store)
        embedded = index_of(store).searcher()
        engine = IndexEngine("opensearch", (awaited(os.environ[SERVER]),), 1)
        assert follow.lag(store, engine)[1] == 0
        assert follow.catch_up(store, engine=engine).applied == 29
        clustered = index_of(store, engine).searcher()
        assert clustered.fingerprint() == embedded.fingerprint()
        assert clustered.search(Term("wing"), limit=50) == embedded.search(Term("wing"), limit=50)
        assert follow.catch_up(store, engine=engine).applied == 0
        assert follow.rebuild(store, engine=engine).applied == 29
        assert index_of(store, engine).searcher().fingerprint() == embedded.fingerprint()
