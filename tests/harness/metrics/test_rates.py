"""Bounds of a rate, and what an honest interval holds."""

import pytest

from jaxmeter.harness.metrics.statistics import bound_rate, hold_another


def test_bounds_of_a_rate_are_those_of_clopper_and_pearson():
    assert bound_rate(0, 100) == pytest.approx((0.0, 0.03622), abs=1e-5)
    assert bound_rate(97, 100) == pytest.approx((0.91482, 0.99377), abs=1e-5)
    assert bound_rate(100, 100) == pytest.approx((0.96378, 1.0), abs=1e-5)


def test_an_honest_interval_holds_an_equal_runs_mean_less_often_than_the_truth():
    # Of a normal mean with a known variance: P(|z| < 1.96 / sqrt(2)).
    assert hold_another(0.95, 1e9) == pytest.approx(0.83422, abs=1e-5)
    # Of three processes: P(|t| < 4.303 / sqrt(2)), t with two degrees: x / sqrt(2 + x²).
    assert hold_another(0.95, 2) == pytest.approx(0.90685, abs=1e-4)
