"""What is worked out quickly is never below what is worked out exactly."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indlet.kernels import scoring
from indlet.kernels.interpreted import run

NORMAL = st.floats(1e-300, 1e300, allow_subnormal=False)


@given(NORMAL)
def test_a_quick_logarithm_is_a_little_above(value: float) -> None:
    quick = run(scoring.log2_above.__wrapped__, (value,))
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
    given_ = float(frequency), length, tabled
    exact = run(scoring.share.__wrapped__, (kind, weight, constant, 0.0, 0.0, *given_))
    quick = run(scoring.share_above.__wrapped__, (kind, weight, constant, math.log2(constant), *given_))
    assert quick >= exact - 1e-9 * (abs(exact) + 1.0)
    assert quick - exact < 0.001 * weight + 1e-9 * abs(exact)
