"""When a complete run is suspicious: a full list that is too short, and empty lists where there usually were
records."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hostile import misbehaving as m
from tests.web.nodes import settings_for

from indlet.model import Record
from indlet.service.harvest.run import RunOptions
from indlet.service.harvest.shortfall import shortfall
from indlet.service.pipeline import harvest_all
from indlet.settings import Source
from indlet.store import open_store


@pytest.mark.parametrize(
    ("held", "listed", "warns"), [(100, 0, True), (100, 49, True), (100, 50, False), (9, 0, False)]
)
def test_a_full_list_is_compared_with_what_is_held(
    tmp_path: Path, held: int, listed: int, warns: bool
) -> None:
    with open_store(tmp_path) as store:
        with store.write() as tx:
            origin = tx.origin("source", "s")
            tx.put(origin, [Record(f"oai:s:{i}") for i in range(held)])
        with store.read() as view:
            assert bool(shortfall(view, origin, listed, everything=True)) == warns


@pytest.mark.parametrize(
    ("before", "warns"),
    [
        ([5] * 12 + [0, 0], True),
        ([5] * 12 + [0], False),  # the second empty run in a row
        ([5] * 12 + [0, 1], False),
        ([0] * 12 + [0, 0], False),  # a source that never changes
        ([5] * 3 + [0, 0], False),  # too young to tell
    ],
)
def test_an_empty_run_is_compared_with_those_before(tmp_path: Path, before: list[int], warns: bool) -> None:
    with open_store(tmp_path) as store:
        with store.write() as tx:
            origin = tx.origin("source", "s")
            for records in before:
                tx.note_run(tx.start_run(origin, "harvest"), {"records": records}, "complete")
        with store.read() as view:
            assert bool(shortfall(view, origin, 0, everything=False)) == warns
            assert not shortfall(view, origin, 1, everything=False)


def test_a_source_whose_identifiers_alone_can_be_listed_is_not_short(tmp_path: Path) -> None:
    with m.Provider() as provider, open_store(tmp_path) as store:
        settings = settings_for(tmp_path, source=(Source(provider.url, "s"),))
        harvest_all(store, settings)
        provider.faults = (m.broken_verb("ListRecords", 500),)
        (again,) = harvest_all(store, settings, options=RunOptions(full=True))
        assert not again.warning, (again.outcome, again.warning)
