"""Every contract test runs on every kind of store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.contract.given import Clock, Make
from tests.stores import KIND, on_postgresql, store_url

from indlet.store import Store, open_store


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "postgresql" and not on_postgresql():
        pytest.skip(f"needs a PostgreSQL server: make test-cluster, or {KIND}=postgresql")
    return str(request.param)


@pytest.fixture
def place_of(kind: str, tmp_path: Path) -> Callable[[str], str]:
    """The URL of the store of a name."""
    return lambda name: store_url(tmp_path / name, kind == "postgresql")


@pytest.fixture(scope="session")
def new_place(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """The URL of a store that nobody has opened yet."""
    return lambda: store_url(tmp_path_factory.mktemp("new"), kind == "postgresql")


@pytest.fixture
def make(place_of: Callable[[str], str], tmp_path: Path) -> Iterator[Make]:
    with contextlib.ExitStack() as stack:

        def made(name: str = "data", **options: Any) -> Store:
            return stack.enter_context(open_store(place_of(name), local_folder=tmp_path / name, **options))

        yield made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(make: Make, clock: Clock) -> Store:
    return make(clock=clock)
