"""A provider's new analysis policy, as two services see it: one takes metadata alone, one statistics too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.provider.serve.conftest import SETTINGS, record
from tests.provider.serve.conftest import running as running
from tests.stores import store_in

from indlet.model import TermVector
from indlet.service.pipeline import harvest_all
from indlet.settings import Settings, Source
from indlet.settings.file import from_mapping
from indlet.store import Store


def put(store: Store, word: str) -> None:
    """The collection under one policy or another: vectors and the policy's digest differ, nothing else."""
    made = [record(n) for n in range(30)]
    with store.write() as tx:
        tx.put(
            tx.origin("hierarchy", "papers"),
            [
                replace(
                    one,
                    vector=TermVector.of({word: 1, f"n{n}": 2}, language="en"),
                    properties={**one.properties, "policy": word},
                )
                for n, one in enumerate(made)
            ],
        )


def test_each_service_hears_of_what_concerns_it(tmp_path: Path, running: Callable[..., str]) -> None:
    with store_in(tmp_path / "provider") as origin:
        put(origin, "one")
        root = running(origin, from_mapping(SETTINGS))
        with store_in(tmp_path / "plain") as plain, store_in(tmp_path / "full") as full:

            def harvested() -> tuple[int, int]:
                found = [
                    harvest_all(store, Settings(), [Source(url, index=index)], index=False)[0]
                    for store, url, index in (
                        (plain, f"{root}/oai", "none"),
                        (full, f"{root}/ft-oai", "auto"),
                    )
                ]
                assert [one.outcome for one in found] == ["complete", "complete"]
                return found[0].changed, found[1].changed

            def terms(store: Store) -> set[str]:
                with store.read() as view:
                    return {t for s in view.page(100) if s.vector for t in s.vector.decode().split()}

            assert harvested() == (30, 30)
            put(origin, "two")
            assert harvested() == (0, 30)
            assert "two" in terms(full) and "one" not in terms(full) and not terms(plain)
            with origin.write() as tx:
                tx.delete(tx.origin("hierarchy", "papers"), [record(4).identifier])
            assert harvested() == (1, 1)
            for store in (plain, full):
                with store.read() as view:
                    assert view.totals() == {1: (29, 1)}
