"""The simulated looks at processes."""

import numpy as np
import pytest

from benchmarks.coverage import (
    CASES_OF_RUN,
    LOOKS,
    VARIANTS,
    count_extra,
    miss_rates,
    moderate,
    moderated_miss_rates,
    process,
    time_cases,
)
from jaxmeter.harness.metrics.moderation import FEWEST_POOLED

RUNS = 25


def test_wide_and_cheap_cases_get_more_processes():
    draw = np.random.default_rng(1)
    values = draw.standard_normal((3, 5)) * np.array([[0.001], [0.1], [0.1]])

    extra = count_extra(values, np.array([1.0, 1.0, 50.0]), 10.0)

    assert extra[0] == extra[2] == 0
    assert 5 <= extra[1] <= 10


def test_without_a_look_intervals_miss_as_often_as_they_say():
    launched = process(np.random.default_rng(1), 4 * RUNS * CASES_OF_RUN, 5, 0.0, extra_s=0.0)

    rate, extended, _ = miss_rates(launched, (1, 1), 0.95)

    assert rate == pytest.approx(0.05, abs=0.01)
    assert np.isnan(extended)


def test_sharing_the_error_makes_misses_fewer():
    launched = process(np.random.default_rng(1), RUNS * CASES_OF_RUN, 3, 0.0)

    rates = {name: next(miss_rates(launched, looks, 0.95)) for name, looks in LOOKS.items()}

    assert rates["by 2 in all cases"] < rates["by looks taken"] < rates["not"]
    assert 0 < launched.extended.sum() < RUNS * CASES_OF_RUN


def test_variances_are_moderated_by_those_of_the_whole_run():
    own = np.exp(np.linspace(-4.0, 3.0, FEWEST_POOLED))

    variances, degrees = moderate(own, 2.0)

    assert variances.min() > own.min()
    assert variances.max() < own.max()
    assert (degrees > 2.0).all()


def test_too_few_variances_stay_as_they_are():
    own = np.linspace(1.0, 3.0, FEWEST_POOLED - 1)

    variances, degrees = moderate(own, 2.0)

    assert variances.tolist() == own.tolist()
    assert degrees.tolist() == [2.0] * len(own)


def test_where_cases_scatter_unequally_those_that_scatter_most_pay_for_the_others():
    timed = time_cases(np.random.default_rng(1), 50, 30, 3, 0.27)

    ordinary, moderated, worst = moderated_miss_rates(timed, 0.95)

    assert ordinary == pytest.approx(0.05, abs=0.01)
    assert moderated == pytest.approx(0.05, abs=0.015)
    assert worst > 2 * moderated
    assert timed.worst.sum() == 150 * VARIANTS


def test_where_all_scatter_alike_none_is_worst():
    timed = time_cases(np.random.default_rng(1), 5, 30, 3, 0.0)

    assert np.isnan(list(moderated_miss_rates(timed, 0.99))[2])
