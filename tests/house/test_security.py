"""SECURITY.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_promise_names_a_test_that_exists() -> None:
    rows = [line for line in (ROOT / "SECURITY.md").read_text("utf-8").splitlines() if "`tests/" in line]
    assert len(rows) > 15
    for row in rows:
        for name in re.findall(r"`(tests/[^`]+)`", row):
            assert (ROOT / name).is_file(), name
