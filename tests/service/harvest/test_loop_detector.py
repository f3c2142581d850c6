"""A list that never ends is told from one that is merely long, untidy or repetitive."""

from __future__ import annotations

import random

from indlet.service.harvest.loop_detector import LoopDetector


def test_a_circle_of_ever_different_pages_is_found() -> None:
    chance, circles = random.Random(1), LoopDetector()
    records = [f"r{i}" for i in range(230)]
    met = next(n for n in range(10_000) if circles.add(chance.sample(records, 50)))
    assert met < 300


def test_long_lists_overlaps_and_repetitions_are_no_circles() -> None:
    for step, width in ((50, 50), (40, 50), (10, 50)):
        circles = LoopDetector()
        assert not any(circles.add(f"r{i}" for i in range(n * step, n * step + width)) for n in range(2000))
    several = LoopDetector()
    assert not any(several.add(f"r{i % 500}" for i in range(n * 50, n * 50 + 50)) for n in range(40))
