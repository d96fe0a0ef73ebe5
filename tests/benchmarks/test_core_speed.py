"""What setting aside slow blocks is worth, by the raw samples of a run."""

import pytest

from benchmarks.core_speed import describe_tenths, list_scatters
from harness.record import RunFolder, write_json
from tests import samples
from tests.harness.raw import beside, canary, launch, variant

FAST, SLOW = 1.0, 1.5


def test_times_that_scatter_by_the_speed_of_the_core_alone_do_not_scatter_at_full_speed(tmp_path):
    case = samples.planned_case(variants=("a:jit",))
    folder = RunFolder(tmp_path)
    for index in range(3):
        slow = 8 * index
        blocks = beside([FAST] * 8 + [SLOW] * slow, *[2.0] * 8, *[3.0] * slow, name="a:jit")
        write_json(folder.case(case.id).launch(index), launch(blocks, index=index, canaries=(canary(FAST),)))

    (found,) = list_scatters(folder, samples.manifest([case]))

    assert found.fast == 0
    assert found.every > 0.1
    assert (found.busy, found.slow_share) == (1.0, pytest.approx(24 / 48))


def test_what_was_timed_too_seldom_tells_nothing(tmp_path):
    case = samples.planned_case(variants=("a:jit",))
    folder = RunFolder(tmp_path)
    for index in range(2):
        write_json(folder.case(case.id).launch(index), launch(variant("a:jit", (1.0, 0.0)), index=index))

    assert list(list_scatters(folder, samples.manifest([case]))) == []


def test_tenths_are_percent_and_one_variant_has_none():
    assert describe_tenths([0.0, 0.1, 0.2]) == "2.0 / 10.0 / 18.0 %"
    assert describe_tenths([0.1]) == "too few to say"
