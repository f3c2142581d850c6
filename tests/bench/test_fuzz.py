"""A few seconds of `make fuzz`: every reader of foreign bytes keeps its laws on inputs that nobody wrote."""

from __future__ import annotations

import random

import pytest
from bench.fuzz.mutate import mutated
from bench.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.filterwarnings("default")  # what libraries say of broken input is no concern of ours
def test_mutated_inputs(name: str) -> None:
    target, chance = TARGETS[name], random.Random(2026)
    inputs = target.seeds()
    for data in inputs:
        target.run(data)
    for _ in range(60):
        target.run(mutated(chance.choice(inputs), inputs, target.words, chance))
