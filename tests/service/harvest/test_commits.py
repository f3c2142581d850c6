"""What a run commits, and what it leaves behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.stores import store_in

from indlet.errors import StoreError
from indlet.model import Record
from indlet.service.harvest.commit import Committer
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import Run
from indlet.service.harvest.source_state import SourceState
from indlet.service.harvest.withhold import DeletionGuard
from indlet.settings import Harvest, Source
from indlet.store import Store
from indlet.text import Analyzer, Policy


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with store_in(tmp_path / "data") as found:
        yield found


def test_the_journal_claims_what_its_transaction_holds(store: Store) -> None:
    with store.write() as tx:
        origin = tx.origin("source", "repo")
        run = tx.start_run(origin, "harvest")
    progress = Progress("repo")
    guard = DeletionGuard(store, Harvest())
    committer = Committer(store, origin, run, SourceState(), (), progress, lambda: datetime.now(UTC), guard)
    for number in range(3):
        committer.add(Record(f"oai:x.org:{number}"))
    with store.write():  # the commit has to wait, and more comes meanwhile
        committer.commit(None, wait=False)
        for number in range(3, 8):
            committer.add(Record(f"oai:x.org:{number}"))
    committer.settle()
    with store.read() as view:
        (noted,) = view.runs()
        assert (noted.detail["records"], noted.detail["changed"], view.totals()[origin][0]) == (3, 3, 3)
    assert progress.changed == 3


def test_a_run_whose_job_is_taken_leaves_no_thread(store: Store) -> None:
    def fetching() -> int:
        return sum(thread.name == "harvest-fetch" for thread in threading.enumerate())

    before = fetching()
    source = Source("http://127.0.0.1:9/oai", name="repo")
    run = Run(store, source, "repo", Analyzer(Policy()), Harvest(), Progress("repo"))
    with store.job(f"harvest-{run.origin}"), pytest.raises(StoreError, match="busy"):
        run.go()
    assert fetching() == before
