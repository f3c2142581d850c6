"""What is worked out quickly is never below what is worked out exactly."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indlet.kernels import scoring
from indlet.kernels.jit import Kernel

NORMAL = st.floats(1e-300, 1e300, allow_subnormal=False)


def by_python(kernel: object, *arguments: float) -> float:
    assert isinstance(kernel, Kernel)
    found = kernel.by_python(*arguments)
    assert isinstance(found, float)
    return found


@given(NORMAL)
def test_a_quick_logarithm_is_a_little_above(value: float) -> None:
    quick = by_python(scoring.log2_above, value)
    assert 0.0 < quick - math.log2(value) < 0.0004


@pytest.mark.parametrize("kind", [scoring.JELINEK_MERCER, scoring.PL2])
@given(
    weight=st.floats(0.5, 8.0),
    constant=st.floats(1e-7, 1e7),
    frequency=st.integers(1, 5000),
    length=st.integers(1, 100_000),
    tabled=st.floats(1e-6, 10.0),
)
def test_a_quick_share_is_not_below_the_exact_one(
    kind: int, weight: float, constant: float, frequency: int, length: int, tabled: float
) -> None:
    of = float(frequency), length, tabled
    exact = by_python(scoring.share, kind, weight, constant, 0.0, 0.0, *of)
    quick = by_python(scoring.share_above, kind, weight, constant, math.log2(constant), *of)
    assert quick >= exact - 1e-9 * (abs(exact) + 1.0)
    assert quick - exact < 0.001 * weight + 1e-9 * abs(exact)
