"""A folder to crawl, a store to crawl it into, and workers that all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.stores import store_in

from indlet.model import Record
from indlet.provider.pipeline import crawl
from indlet.provider.summary import Summary
from indlet.provider.workers import Workers
from indlet.settings import Crawl, Hierarchy, Node, Settings
from indlet.store import FileState, StoredFailure
from indlet.text import policy_of

OLD = 1_500_000_000


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    settings = Settings()
    with Workers(1, settings.crawl.limits, policy_of(settings.analysis)) as found:
        yield found


class Bench:
    """A root, a store, and short words for what tests do with them."""

    def __init__(self, folder: Path, workers: Workers) -> None:
        self.root = folder / "docs"
        self.root.mkdir()
        self.store = store_in(folder / "data")
        self.settings = Settings(
            data=folder / "data",
            node=Node(repository="test.example.org"),
            hierarchy=(Hierarchy(str(self.root)),),
            crawl=Crawl(settle_seconds=1.0),
        )
        self._workers = workers

    def write(self, path: str, text: str | bytes = "a wing in the air", at: int = OLD) -> Path:
        """A file of that content, last changed at that second."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(place, (at, at))
        return place

    def crawl(self, **options: Any) -> Summary:
        """Crawl with the shared workers; `own=True` with new ones, as another policy needs."""
        if not options.pop("own", False):
            options["workers"] = self._workers
        (summary,) = crawl(self.store, self.settings, **options)
        return summary

    def at(self, root: str, **changes: Any) -> None:
        """Let the hierarchy be elsewhere, under its old name."""
        self.settings = replace(self.settings, hierarchy=(Hierarchy(root, **{"name": "docs", **changes}),))

    def records(self) -> dict[str, Record]:
        """The live records by the local part of their identifier, without the hierarchy."""
        with self.store.read() as view:
            return {s.identifier.partition(":docs/")[2]: s.record for s in view.page(10_000) if not s.deleted}

    def terms(self, name: str) -> dict[str, int]:
        vector = self.records()[name].vector
        assert vector is not None
        return vector.frequencies()

    def deleted(self) -> set[str]:
        with self.store.read() as view:
            return {s.identifier.partition(":docs/")[2] for s in view.page(10_000) if s.deleted}

    def seqs(self) -> dict[str, int]:
        with self.store.read() as view:
            return {s.identifier.partition(":docs/")[2]: s.seq for s in view.page(10_000)}

    def failures(self) -> dict[str, StoredFailure]:
        with self.store.read() as view:
            return {failure.where: failure for failure in view.failures()}

    def files(self) -> dict[str, FileState]:
        with self.store.read() as view:
            return {file.path: file for origin in view.origins() for file in view.files(origin.id)}


@pytest.fixture
def bench(tmp_path: Path, workers: Workers) -> Iterator[Bench]:
    found = Bench(tmp_path, workers)
    yield found
    found.store.close()
