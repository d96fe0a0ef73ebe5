"""Programs after reports: references are right by another way, and each report is about the case that is measured."""

import jax
import numpy as np
import pytest

from jaxmeter.suites import reported
from tests.suites.outcomes import exact

KEY = jax.random.key(0)

WORKLOADS = [one for one in vars(reported).values() if hasattr(one, "declaration")]


def test_each_report_has_a_case():
    lost = [
        (one.name, report)
        for one in WORKLOADS
        for report in one.declaration.reported
        if not any(report in one.find_reported(params, "cpu") for params in one.list_cases("full", "cpu"))
    ]

    assert len(WORKLOADS) == 12
    assert all(one.declaration.reported for one in WORKLOADS)
    assert lost == []


def test_a_slope_by_a_complex_step_is_that_of_a_polynomial():
    x = np.array([0.3, -1.2, 2.0])

    slope = reported.slope_in_numpy(lambda x: np.sum(x**3, -1) + x[..., 0] * x[..., 1], x)

    np.testing.assert_allclose(slope, 3 * x**2 + [x[1], x[0], 0], rtol=1e-15)


def test_the_gradient_of_squared_differences_is_their_slope_by_small_steps():
    x = np.random.default_rng(0).standard_normal((3, 4, 2))
    step = np.zeros_like(x)
    step[1, 2, 0] = 1e-6

    def total(x):
        return sum(np.sum(np.diff(x, axis=axis) ** 2) for axis in range(x.ndim))

    slope = (total(x + step) - total(x - step)) / 2e-6
    assert reported.differences_in_numpy(x)[1, 2, 0] == pytest.approx(slope, rel=1e-8)


def test_the_derivative_of_the_buffer_is_its_slope_by_small_steps():
    def fill(x):
        entries = []
        for _ in range(5):
            x = np.sin(x + 1.0)
            entries.append(x)
        return np.array(entries)

    found = reported.buffer_in_numpy(np.float64(0.5), np.array([1.0, -2.0]), n=5)
    slope = (fill(0.5 + 1e-6) - fill(0.5 - 1e-6)) / 2e-6

    np.testing.assert_allclose(found, [slope, -2 * slope], rtol=1e-7)


def test_the_logistic_regressions_slope_is_that_of_its_density():
    weights, _, features, labels = exact(*reported.regression(KEY, examples=7))

    def log_density(weights):
        logits = features @ weights
        return np.sum(labels * logits - np.logaddexp(0, logits)) - np.sum(weights**2) / 2

    step = np.eye(10)[3] * 1e-6
    slope = (log_density(weights + step) - log_density(weights - step)) / 2e-6
    assert reported.log_slope(weights, features, labels, np)[3] == pytest.approx(slope, rel=1e-7)


def test_bodies_keep_their_momentum():
    masses = np.array([1.0, 1e-2, 2e-2])
    state = reported.begun_orbits(np)
    before = masses @ state[1]
    for _ in range(10):
        state = reported.leap(state, masses, np)

    np.testing.assert_allclose(masses @ state[1], before, atol=1e-15)
