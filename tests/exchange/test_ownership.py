"""Records whose origin is gone stay and can be adopted; an originator marks its records as deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import orjson
import pytest
from tests.hostile.misbehaving import Provider, Rec

from indlet.errors import StoreError
from indlet.exchange.ownership import adopt, confirmed, give_back, marked, restore, withdraw
from indlet.model import Record
from indlet.oai.provenance import version_of
from indlet.provider.pipeline import crawl
from indlet.provider.summary import Summary
from indlet.service.pipeline import harvest_all
from indlet.settings import Crawl, Harvest, Hierarchy, Settings, Source
from indlet.store import Store, Transaction, open_store, withheld

GUARDED = Settings(harvest=Harvest(retries=0, backoff_seconds=0.01, withhold_records=3))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "data") as found:
        yield found


def harvest(store: Store, url: str) -> str | None:
    source = Source(url, name="lanl", republish=True)
    return harvest_all(store, GUARDED, [source], index=False)[0].outcome


def live(store: Store) -> set[str]:
    with store.read() as view:
        return {s.identifier for s in view.changes() if not s.deleted}


def test_what_is_adopted_stays_and_can_be_withdrawn(store: Store) -> None:
    old = [Rec(f"oai:x.org:{n}", f"2099-05-01T00:00:{n:02}Z") for n in range(10)]
    gone = [Rec(r.identifier, "2099-05-02T00:00:00Z", deleted=True) for r in old]
    with Provider(old) as provider:
        assert harvest(store, provider.url) == "complete"
        with pytest.raises(StoreError, match="adopt its records first"):
            withdraw(store, "oai:x.org:1", "Ada")
        done = adopt(store, "lanl", "Ada")
        assert done.confirmed
        provider.records = gone
        assert harvest(store, provider.url) == "complete"
        assert len(live(store)) == 10 and not withheld.waiting_deletions(store)[0].waiting
    with store.read() as view:
        origin = view.origin("source", "lanl")
        before = view.get("oai:x.org:1")
    assert origin is not None and origin.state["adopted"]["by"] == "Ada" and before is not None
    assert confirmed(store, origin) >= done.confirmed
    assert withdraw(store, "oai:x.org:1", "Ada") == "lanl"
    with store.read() as view:
        after = view.get("oai:x.org:1")
    assert after is not None and after.deleted
    versions = [version_of(orjson.loads(s.properties)) for s in (before, after)]
    assert versions[0] < versions[1]  # so that all nodes take it
    give_back(store, "lanl")
    with pytest.raises(StoreError, match="not adopted"):
        give_back(store, "lanl")


def test_a_record_of_our_own_is_withdrawn_though_its_file_stays(store: Store, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a", "b"):
        (docs / f"{name}.txt").write_text(f"flutter of wings {name}")
    settings = Settings(hierarchy=(Hierarchy(str(docs), "docs"),), crawl=Crawl(settle_seconds=0.0, workers=1))
    crawl(store, settings)
    (name,) = (i for i in live(store) if i.endswith("/a"))
    withdraw(store, name, "Ada")
    with pytest.raises(StoreError, match="no live record"):
        withdraw(store, name, "Ada")
    (docs / "a.txt").write_text("flutter of wings, again")
    crawl(store, settings)
    assert name not in live(store) and len(live(store)) == 1
    restore(store, name)
    crawl(store, settings)
    assert len(live(store)) == 2


def test_a_crawl_that_is_on_does_not_bring_back_what_is_withdrawn(store: Store, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("flutter of wings")
    settings = Settings(hierarchy=(Hierarchy(str(docs), "docs"),), crawl=Crawl(settle_seconds=0.0, workers=1))
    crawl(store, settings)
    (name,) = live(store)
    (docs / "a.txt").write_text("flutter of wings, again")
    told: list[str] = []

    def meanwhile(summary: Summary) -> None:
        if not told:
            told.append(withdraw(store, name, "Ada"))

    crawl(store, settings, report=meanwhile)
    assert told == ["docs"] and not live(store)


def test_what_a_run_would_forget_is_not_decided_while_it_is_on(store: Store) -> None:
    with store.write() as tx:
        number = tx.origin("source", "lanl")
    with store.job(f"harvest-{number}"), pytest.raises(StoreError, match="busy with 'harvest-"):
        adopt(store, "lanl", "Ada")
    adopt(store, "lanl", "Ada")
    with store.job(f"harvest-{number}"), pytest.raises(StoreError, match="busy with 'harvest-"):
        give_back(store, "lanl")
    with store.read() as view:
        assert view.state(number)["adopted"]["by"] == "Ada"


def test_of_two_who_withdraw_records_at_once_both_are_heard(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.write() as tx:
        tx.put(tx.origin("hierarchy", "docs"), [Record("oai:x.org:a"), Record("oai:x.org:b")])
    write = store.write

    def after_another() -> AbstractContextManager[Transaction]:
        monkeypatch.setattr(store, "write", write)
        withdraw(store, "oai:x.org:a", "Ada")
        return write()

    monkeypatch.setattr(store, "write", after_another)
    withdraw(store, "oai:x.org:b", "Bob")
    assert {mark["identifier"]: mark["by"] for mark in marked(store)} == {
        "oai:x.org:a": "Ada",
        "oai:x.org:b": "Bob",
    }
