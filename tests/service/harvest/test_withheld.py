"""An origin that comes back empty, or with most of its records gone, empties nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.hostile.misbehaving import Provider, Rec

from indlet.errors import StoreError
from indlet.model import Record
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import RunOptions
from indlet.service.pipeline import harvest_all
from indlet.settings import Harvest, Settings, Source
from indlet.store import Store, Transaction, open_store, withheld

GUARDED = Harvest(retries=0, backoff_seconds=0.01, withhold_share=0.2, withhold_records=3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path) as found:
        yield found


def harvest(store: Store, url: str, *, republish: bool, full: bool = False) -> Progress:
    source = Source(url, name="lanl", republish=republish)
    options = RunOptions(reconcile=full)
    (progress,) = harvest_all(store, Settings(harvest=GUARDED), [source], options=options, index=False)
    assert progress.outcome == "complete", progress.reason
    return progress


def live(store: Store) -> set[str]:
    with store.read() as view:
        return {s.identifier for s in view.changes() if not s.deleted}


def records(count: int, deleted: int = 0, day: int = 1) -> list[Rec]:
    old = [Rec(f"oai:x.org:{n}", f"2099-05-01T00:00:{n:02}Z") for n in range(deleted, count)]
    gone = [Rec(f"oai:x.org:{n}", f"2099-05-{day:02}T00:00:{n:02}Z", deleted=True) for n in range(deleted)]
    return old + gone


def reasons(store: Store) -> list[str]:
    with store.read() as view:
        return [alert.reason for alert in view.alerts() if alert.kind == withheld.ALERT]


@pytest.mark.parametrize("republish", [False, True])
def test_few_deletions_happen_and_many_wait(store: Store, republish: bool) -> None:
    with Provider(records(20), page=7) as provider:
        harvest(store, provider.url, republish=republish)
        provider.records = records(20, deleted=4, day=2)
        assert harvest(store, provider.url, republish=republish).withheld == 0
        assert len(live(store)) == 16 and not reasons(store)
        # Most of it goes, and something is added: the addition comes, the deletions wait.
        provider.records = [*records(20, deleted=18, day=3), Rec("oai:x.org:new", "2099-05-03T01:00:00Z")]
        assert harvest(store, provider.url, republish=republish).withheld == 14
        assert len(live(store)) == 17 and "oai:x.org:new" in live(store)
        assert reasons(store) == [
            "14 of 17 records are said to be deleted, or are gone; they are still shown"
        ]
        (waiting,) = withheld.waiting_deletions(store)
        assert (waiting.source, waiting.waiting, waiting.live) == ("lanl", 14, 17)
        assert withheld.release(store, "lanl") == 14
        assert live(store) == provider.live() and not reasons(store)
        with pytest.raises(StoreError, match="no deletions"):
            withheld.release(store, "lanl")
        assert harvest(store, provider.url, republish=republish).changed == 0


@pytest.mark.parametrize("republish", [False, True])
def test_what_comes_back_is_not_deleted(store: Store, republish: bool) -> None:
    with Provider(records(20), page=7) as provider:
        harvest(store, provider.url, republish=republish)
        provider.records = records(20, deleted=19, day=2)
        assert harvest(store, provider.url, republish=republish).withheld == 19
        provider.records = [Rec(r.identifier, "2099-05-03T00:00:00Z") for r in records(20)]
        assert harvest(store, provider.url, republish=republish).withheld == 0
        assert len(live(store)) == 20 and not reasons(store) and not withheld.waiting_deletions(store)


@pytest.mark.parametrize("republish", [False, True])
def test_an_operator_keeps_the_records(store: Store, republish: bool) -> None:
    with Provider(records(20), page=7) as provider:
        harvest(store, provider.url, republish=republish)
        provider.records = records(20, deleted=19, day=2)
        harvest(store, provider.url, republish=republish)
        assert withheld.keep(store, "lanl", "Ada Wells") == 19
        assert harvest(store, provider.url, republish=republish, full=True).withheld == 0
        assert len(live(store)) == 20 and not reasons(store)


def test_a_list_without_deletions_that_has_shrunk(store: Store) -> None:
    """A full list of identifiers is compared: what it no longer names waits in the same way."""
    with Provider(records(40), page=7, deleted="no") as provider:
        harvest(store, provider.url, republish=False)
        provider.records = records(40)[30:]
        assert harvest(store, provider.url, republish=False, full=True).withheld == 30
        assert len(live(store)) == 40
        provider.records = records(40)
        assert harvest(store, provider.url, republish=False, full=True).withheld == 0
        assert len(live(store)) == 40 and not reasons(store)


@pytest.mark.parametrize("kept", [False, True])
def test_what_comes_again_or_is_kept_while_deletions_are_carried_out_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    names = [f"oai:x.org:{n}" for n in range(3)]
    with store.write() as tx:
        number = tx.origin("source", "lanl")
        tx.put(number, [Record(name) for name in names])
        tx.withhold(number, {name: {} for name in names[:2]})
    with store.read() as view:
        origin = view.origin("source", "lanl")
    assert origin is not None
    write = store.write

    def after_another() -> AbstractContextManager[Transaction]:
        """Another process is first."""
        monkeypatch.setattr(store, "write", write)
        with write() as tx:
            if kept:
                tx.keep_withheld(number, "somebody")
            else:
                tx.drop_withheld(number, names[:1])
        return write()

    monkeypatch.setattr(store, "write", after_another)
    assert withheld.carry_out(store, origin) == (0 if kept else 1)
    assert live(store) == ({*names} if kept else {names[0], names[2]})
