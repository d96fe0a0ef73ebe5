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

RUNS = 500


def test_the_widest_third_gets_up_to_three_processes_more():
    extra = count_extra(np.arange(CASES_OF_RUN), 13)

    assert extra.tolist() == [3] * 5 + [2] * 4 + [1] * 4 + [0] * 27


def test_without_a_look_intervals_miss_as_often_as_they_say():
    launched = process(np.random.default_rng(1), RUNS * CASES_OF_RUN, 5, 0.0, widest=0.0)

    rate, extended, _ = miss_rates(launched, (1, 1), 0.95)

    assert rate == pytest.approx(0.05, abs=0.005)
    assert np.isnan(extended)


def test_sharing_the_error_makes_misses_fewer():
    launched = process(np.random.default_rng(1), RUNS * CASES_OF_RUN, 3, 0.0)

    rates = {name: next(miss_rates(launched, looks, 0.95)) for name, looks in LOOKS.items()}

    assert rates["by 2 in all cases"] < rates["by looks taken"] < rates["not"]
    assert launched.extended.sum() == RUNS * 13


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
