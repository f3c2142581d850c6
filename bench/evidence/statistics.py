"""The statistics that the page speaks of: spread, paired tests, the exponent of a cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Spread(NamedTuple):
    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


def spread(values: Sequence[float]) -> Spread:
    """The median of repeated measurements, with the least and the greatest of them."""
    return Spread(float(np.median(values)), float(min(values)), float(max(values)))


def paired_t(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p of Student's paired t-test."""
    differences = np.asarray(first) - np.asarray(second)
    deviation = float(differences.std(ddof=1))
    if deviation == 0:
        return 1.0 if float(differences.mean()) == 0 else 0.0
    t = abs(float(differences.mean())) / (deviation / math.sqrt(differences.size))
    return 2 * _beyond(t, differences.size - 1)


def _beyond(t: float, freedom: int) -> float:
    """P(T > t): Student's density, integrated by Simpson's rule over the angle atan(t / √freedom)."""
    low, high = math.atan(t / math.sqrt(freedom)), math.pi / 2
    angles = np.linspace(low, high, 2001)
    density = np.cos(angles).clip(0) ** (freedom - 1)
    weights = np.ones(2001)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    area = float((density * weights).sum()) * (high - low) / 2000 / 3
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return area * scale


def randomisation(
    first: Sequence[float], second: Sequence[float], rounds: int = 20_000, seed: int = 1
) -> float:
    """Two-sided p of Fisher's randomisation test: signs of the differences drawn at random."""
    differences = np.asarray(first) - np.asarray(second)
    seen = abs(float(differences.mean()))
    source = np.random.default_rng(seed)
    extreme = 0
    for start in range(0, rounds, 1000):
        count = min(1000, rounds - start)
        signs = source.integers(0, 2, (count, differences.size)) * 2 - 1
        extreme += int((np.abs((signs * differences).mean(axis=1)) >= seen - 1e-15).sum())
    return (extreme + 1) / (rounds + 1)


def holm(values: Sequence[float]) -> list[float]:
    """The p values of one family, adjusted by Holm's step-down method."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    adjusted, most = [0.0] * len(values), 0.0
    for rank, at in enumerate(order):
        most = max(most, min(1.0, (len(values) - rank) * values[at]))
        adjusted[at] = most
    return adjusted


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """b of cost ≈ a · size^b, by least squares over logarithms."""
    slope, _ = np.polyfit(np.log(sizes), np.log(costs), 1)
    return float(slope)
