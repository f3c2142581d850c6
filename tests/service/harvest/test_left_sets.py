"""Records that leave the set by which a source is harvested go; nothing else does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import tests.hostile.misbehaving as m
from tests.hostile.misbehaving import Provider, Rec
from tests.stores import store_in

from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import Run, RunOptions
from indlet.service.pipeline import harvest_all
from indlet.settings import Harvest, Settings, Source
from indlet.store import Store
from indlet.text import Analyzer, Policy

QUICK = Harvest(retries=1, backoff_seconds=0.01)
FULL, COMPARE = RunOptions(full=True), RunOptions(reconcile=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with store_in(tmp_path / "data") as found:
        yield found


def records(*physics: int, total: int = 12) -> list[Rec]:
    """Those of the numbers given are in the set, the others in another."""
    return [
        Rec(
            f"oai:x.org:{n}",
            f"2024-05-01T00:00:{n:02}Z",
            sets=("physics:optics",) if n in physics else ("history",),
        )
        for n in range(total)
    ]


def harvest(
    store: Store, provider: Provider, options: RunOptions | None = None, *, republish: bool = False
) -> Progress:
    source = Source(provider.url, name="repo", set="physics", republish=republish)
    (progress,) = harvest_all(store, Settings(harvest=QUICK), [source], options=options, index=False)
    return progress


def live(store: Store) -> set[int]:
    with store.read() as view:
        return {int(s.identifier.rpartition(":")[2]) for s in view.changes() if not s.deleted}


@pytest.mark.parametrize("republish", [False, True])
@pytest.mark.parametrize("options", [FULL, COMPARE])
def test_a_record_that_left_the_set_goes(store: Store, options: RunOptions, republish: bool) -> None:
    with Provider(records(1, 2, 3)) as provider:
        assert harvest(store, provider, republish=republish).records == 3
        provider.records = records(1, 3)
        gone = provider.records.pop(3)
        progress = harvest(store, provider, options, republish=republish)
    assert (progress.outcome, progress.deleted) == ("complete", 2)
    assert live(store) == {1}
    assert not progress.repairs["records that a list left out"]
    with store.read() as view:
        left, deleted = view.get("oai:x.org:2"), view.get(gone.identifier)
    assert left is not None and left.deleted and deleted is not None and deleted.deleted
    # Other nodes must not take it for the origin's word that the record was deleted.
    assert b"version" not in left.properties
    assert (b"version" in deleted.properties) == republish


def test_records_that_left_the_set_are_found_on_schedule_though_the_source_keeps_deletions(
    store: Store,
) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]

    def run(provider: Provider) -> None:
        source = Source(provider.url, name="repo", set="physics")
        analyzer = Analyzer(Policy())
        progress = Progress("repo")
        Run(store, source, "repo", analyzer, QUICK, progress, now=lambda: now[0]).go()
        assert progress.outcome == "complete", progress.reason

    with Provider(records(1, 2, 3), deleted="persistent") as provider:
        run(provider)
        provider.records = records(1, 2)
        now[0] += timedelta(days=1)
        run(provider)
        assert live(store) == {1, 2, 3}
        now[0] += timedelta(days=7)
        run(provider)
        assert live(store) == {1, 2}


def test_a_set_may_become_empty(store: Store) -> None:
    with Provider(records(1, 2, 3)) as provider:
        harvest(store, provider)
        provider.records = records()
        provider.faults = (m.broken_verb("GetRecord"),)
        doubtful = harvest(store, provider, COMPARE)
        assert doubtful.outcome == "incomplete" and "single record" in doubtful.reason
        assert live(store) == {1, 2, 3}
        provider.faults = ()
        assert harvest(store, provider, COMPARE).outcome == "complete"
    assert live(store) == set()


def test_a_record_that_the_list_of_its_set_leaves_out_stays(store: Store) -> None:
    with Provider(records(1, 2, 3)) as provider:
        harvest(store, provider)
        hidden = rb"<header><identifier>oai:x.org:2</identifier>.*?</header>"
        provider.faults = (m.rewritten(hidden, b"", "ListIdentifiers"),)
        progress = harvest(store, provider, COMPARE)
    assert progress.repairs["records that a list left out"] == 1
    assert live(store) == {1, 2, 3}


def test_where_headers_name_no_sets_two_lists_decide(store: Store) -> None:
    def nameless(request: m.Request, reply: m.Reply) -> m.Reply:
        return replace(reply, body=re.sub(rb"<setSpec>.*?</setSpec>", b"", reply.body))

    with Provider(records(1, 2, 3), nameless) as provider:
        harvest(store, provider)
        provider.records = records(1, 3)
        assert harvest(store, provider, COMPARE).outcome == "complete"
    assert live(store) == {1, 3}


def test_a_full_list_of_everything_ends_what_it_does_not_name(store: Store) -> None:
    with Provider(records(1, 2, 3), deleted="no") as provider:
        source = Source(provider.url, name="repo", from_="2024-05-01")
        settings = Settings(harvest=QUICK)
        harvest_all(store, settings, [source], index=False)
        assert len(live(store)) == 12
        provider.records = provider.records[4:]
        provider.records.append(Rec("oai:x.org:99", "2023-05-01T00:00:00Z"))  # before the dates asked for
        (progress,) = harvest_all(store, settings, [source], options=FULL, index=False)
    assert progress.outcome == "complete"
    assert live(store) == set(range(4, 12))
