"""Bounds of a rate."""

import pytest

from harness.record.rates import bound_rate


def test_bounds_of_a_rate_are_those_of_clopper_and_pearson():
    assert bound_rate(0, 100) == pytest.approx((0.0, 0.03622), abs=1e-5)
    assert bound_rate(97, 100) == pytest.approx((0.91482, 0.99377), abs=1e-5)
    assert bound_rate(100, 100) == pytest.approx((0.96378, 1.0), abs=1e-5)
