"""What a target came to."""

from __future__ import annotations

from typing import NamedTuple


class Fuzzed(NamedTuple):
    target: str
    engine: str
    inputs: int
    findings: list[str]
