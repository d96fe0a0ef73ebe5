import math

import pytest

from jaxmeter.harness.metrics.contention import find_slow_share
from jaxmeter.harness.metrics.statistics import SLOWED
from tests.harness.raw import beside, process


def calibrations(*taken_s: float | None):
    return process(beside(taken_s, *[1.0] * len(taken_s)))


@pytest.mark.parametrize(
    ("taken_s", "expected"),
    [
        ([2.0], 0.0),
        ([1.0, SLOWED, 1.21, 9.0], 0.5),
        ([1.0, *[2.0] * 19], 0.95),
        ([1.0, *[2.0] * 20], 0.0),  # full speed is the least but one in twenty
        ([0.0, -1.0, math.inf, math.nan, None, 1.0, 2.0], 0.5),
        ([None], None),
        ([0.0], None),
        ([], None),
    ],
)
def test_a_core_is_slow_where_its_calibration_takes_a_fifth_more_than_at_full_speed(taken_s, expected):
    assert find_slow_share([calibrations(*taken_s)]) == expected


def test_full_speed_is_that_of_all_processes_together():
    assert find_slow_share([calibrations(3.0), calibrations(2.0)]) == 0.5
