"""The misbehaving provider lives in tests/hostile, where the benchmarks find it too."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from indlet.kernels import state
from indlet.service.harvest import fetch_page

# pytest names test modules by their path, but does not make `tests` a package that can be imported from.
package = sys.modules.setdefault("tests", types.ModuleType("tests"))
package.__path__ = [str(Path(__file__).parents[2])]


@pytest.fixture(autouse=True)
def from_the_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sources are read by the kernels too, which are otherwise for large ones."""
    monkeypatch.setattr(fetch_page, "MUCH", 0)
    monkeypatch.setattr(state, "ready", lambda: True)
