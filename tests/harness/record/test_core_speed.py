import math

import pytest

from harness.record.core_speed import choose_full_speed, find_full_speed_s
from harness.record.statistics import SLOWED
from tests.harness.raw import beside, block, launch


def canaries(*taken_s: float | None):
    return launch(beside(taken_s, *[1.0] * len(taken_s)))


@pytest.mark.parametrize(
    ("taken_s", "expected"),
    [
        ([2.0], 2.0),
        ([3.0, 2.0], 2.0),
        ([1.0, *[2.0] * 19], 1.0),
        ([1.0, *[2.0] * 20], 2.0),
        ([None, 2.0], 2.0),
        ([None], None),
        ([0.0, -1.0, math.inf, math.nan, 2.0], 2.0),
        ([], None),
    ],
)
def test_full_speed_is_the_least_but_one_in_twenty(taken_s, expected):
    assert find_full_speed_s([canaries(*taken_s)]) == expected


def test_full_speed_is_that_of_all_processes_together():
    assert find_full_speed_s([canaries(3.0), canaries(2.0)]) == 2.0


def test_a_block_is_at_full_speed_up_to_a_fifth_more():
    fast, limit, slow, untold = (block(1.0, canary_s=one) for one in (1.0, SLOWED, 1.21, None))

    assert choose_full_speed([fast, limit, slow, untold], 1.0) == [fast, limit, untold]


def test_a_canary_that_cannot_have_been_measured_tells_nothing_of_its_block():
    blocks = [block(1.0, canary_s=one) for one in (0.0, -1.0, math.inf, math.nan)]

    assert choose_full_speed(blocks, 1.0) == blocks


def test_where_no_canary_tells_all_blocks_count():
    blocks = [block(1.0, canary_s=1.0), block(1.0, canary_s=9.0)]

    assert choose_full_speed(blocks, None) == blocks
