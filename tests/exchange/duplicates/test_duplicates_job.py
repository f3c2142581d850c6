"""Possible duplicates raise alerts and wait at the desk until somebody decides; decisions are reversible."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from indlet.exchange.alerts import acknowledge, alerts
from indlet.exchange.duplicates import decisions
from indlet.exchange.duplicates.job import decide, duplicates_job, look, waiting
from indlet.model import Record
from indlet.settings import Settings
from indlet.store import Store, open_store

ONE, OTHER = "oai:lanl.example.org:1", "oai:larc.example.org:7"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path) as found:
        put(found, "lanl", ONE, "FLUTTER OF SWEPT WINGS AT TRANSONIC SPEED / by I. Garrick", "I. Garrick")
        put(found, "larc", OTHER, "Flutter of swept wings at transonic speed", "Garrick, Isadore")
        put(found, "larc", "oai:larc.example.org:8", "Ice on wings", "Wells, Ada")
        yield found


def put(store: Store, source: str, identifier: str, title: str, creator: str) -> None:
    metadata = {"title": [title], "creator": [creator], "date": ["1957"]}
    with store.write() as tx:
        tx.put(tx.origin("source", source), [Record(identifier, metadata)])


def pairs(store: Store) -> list[list[str]]:
    return [[str(one["id"]) for one in pair["records"]] for pair in waiting(store)[1]]


def test_a_pair_raises_one_alert_until_somebody_decides(store: Store) -> None:
    assert look(store) == 1
    assert pairs(store) == [[ONE, OTHER]]
    (alert,) = alerts(store)
    assert (alert.kind, alert.source, alert.record) == ("duplicates", "lanl", f"{ONE} {OTHER}")
    assert "same title" in alert.reason
    acknowledge(store, str(alert.id), "Ada Wells")
    put(store, "afrl", "oai:afrl.example.org:3", "Waves", "Stone, Eva")
    assert look(store) == 1
    assert not list(alerts(store))  # somebody has seen to it
    decide(store, ONE, OTHER, "same", "Ada Wells")
    assert not pairs(store)
    assert not list(alerts(store, acknowledged=True))
    put(store, "afrl", "oai:afrl.example.org:4", "Vortices", "Stone, Eva")
    assert look(store) == 0


def test_a_decision_that_is_taken_back_brings_the_pair_back(store: Store) -> None:
    look(store)
    decide(store, OTHER, ONE, "different", "Ada Wells")
    assert not list(alerts(store))
    decide(store, ONE, OTHER, "open", "Ruth Stone")
    assert look(store) == 1
    assert [alert.record for alert in alerts(store)] == [f"{ONE} {OTHER}"]
    (made,) = decisions.decisions(store).values()
    assert [(one.decision, one.by) for one in made] == [("different", "Ada Wells"), ("open", "Ruth Stone")]


def test_a_record_that_goes_takes_its_alert_along(store: Store) -> None:
    look(store)
    with store.write() as tx:
        tx.delete(tx.origin("source", "larc"), [OTHER])
    assert look(store) == 0
    assert not list(alerts(store))


def test_the_job_looks_in_a_process_of_its_own(store: Store, tmp_path: Path) -> None:
    duplicates_job(Settings(data=tmp_path), threading.Event())
    assert pairs(store) == [[ONE, OTHER]]
