"""The simulated looks at launches."""

import numpy as np
import pytest

from benchmarks.coverage import CASES_OF_RUN, LOOKS, count_extra, launch, miss_rates

RUNS = 500


def test_the_widest_third_gets_up_to_three_launches_more():
    extra = count_extra(np.arange(CASES_OF_RUN), 13)

    assert extra.tolist() == [3] * 5 + [2] * 4 + [1] * 4 + [0] * 27


def test_without_a_look_intervals_miss_as_often_as_they_say():
    launched = launch(np.random.default_rng(1), RUNS * CASES_OF_RUN, 5, 0.0, widest=0.0)

    rate, extended, _ = miss_rates(launched, (1, 1), 0.95)

    assert rate == pytest.approx(0.05, abs=0.005)
    assert np.isnan(extended)


def test_sharing_the_error_makes_misses_fewer():
    launched = launch(np.random.default_rng(1), RUNS * CASES_OF_RUN, 3, 0.0)

    rates = {name: next(miss_rates(launched, looks, 0.95)) for name, looks in LOOKS.items()}

    assert rates["by 2 in all cases"] < rates["by looks taken"] < rates["not"]
    assert launched.extended.sum() == RUNS * 13
