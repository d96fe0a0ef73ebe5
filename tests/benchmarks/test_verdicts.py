"""Verdicts on unchanged code, and their rates."""

import math

import pytest

from benchmarks.verdicts import compare_runs, write_rate
from harness.record.statistics import differs


def test_two_runs_are_compared_by_welch_on_the_logs():
    first, second = [math.exp(value) for value in (1, 2, 3)], [math.exp(value) for value in (4, 5, 6, 9)]

    ratio = compare_runs(first, second)

    # Means 2 and 6, variances 1 and 14/3, squared errors 1/3 and 7/6; as scipy.stats.ttest_ind(equal_var=False) has it.
    assert math.log(ratio.estimate) == pytest.approx(4.0)
    assert math.log(ratio.low) == pytest.approx(-1.2905225)
    assert math.log(ratio.high) == pytest.approx(9.2905225)
    assert ratio.count == 7


def test_launches_that_all_agree_have_an_interval_without_width():
    ratio = compare_runs([1.0, 1.0, 1.0], [1.1, 1.1, 1.1])

    assert (ratio.low, ratio.high) == (ratio.estimate, ratio.estimate)
    assert differs(ratio)


def test_two_launches_are_too_few_for_a_verdict():
    ratio = compare_runs([1.0, 1.1], [2.0, 2.1, 2.2])

    assert (ratio.low, ratio.high) == (None, None)
    assert not differs(ratio)


def test_a_rate_is_written_with_its_bounds():
    assert write_rate(0, 100) == "0 of 100 (0.0 %; 95 % bounds 0.0 to 3.6 %)"
    assert write_rate(0, 0) == "none to count"
