import pytest

from jaxmeter.harness.metrics import statistics
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.reporting.compare.ratios import compare_unpaired, divide_readings, divide_unpaired
from tests import samples

ONCE = samples.settings()
SIDES = (4.0, 4.1, 4.2), (1.0, 1.1, 1.2)


def reading(metric, *values, exact=False, looks=1):
    return Reading(METRICS[metric], values, exact=exact, looks=looks)


def test_times_of_processes_of_their_own_are_compared_without_pairs():

    ours = divide_readings(reading("cold_s", *SIDES[0], None), reading("cached_s", *SIDES[1]), ONCE)

    expected = compare_unpaired(*SIDES, confidence=ONCE.confidence)
    assert ours.estimate == expected.estimate
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("looks", [(1, 3), (3, 1), (2, 3)])
def test_the_error_of_a_ratio_is_shared_among_the_looks_of_the_side_that_was_looked_at_more_often(looks):
    sides = reading("execution_s", *SIDES[0], looks=looks[0]), reading("cold_s", *SIDES[1], looks=looks[1])

    ours = divide_readings(*sides, ONCE)

    expected = compare_unpaired(*SIDES, confidence=1 - 0.01 / 3)
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high))


def test_times_at_reference_speed_of_two_runs_differ_by_more_than_their_processes_tell():
    metric = METRICS["normalised_s"]
    sides = [Reading(metric, one, shared=variance) for one, variance in zip(SIDES, (0.01, 0.02), strict=True)]

    within, between = (divide_readings(*sides, ONCE, two_runs=two_runs) for two_runs in (False, True))

    assert within == compare_unpaired(*SIDES, confidence=0.99)
    assert between == compare_unpaired(*SIDES, confidence=0.99, shared=0.03)
    assert between.low < within.low


def test_a_ratio_has_the_bounds_that_are_shown_and_those_of_verdicts_or_one_for_both():
    ours = divide_unpaired(*SIDES, samples.settings(shown_confidence=0.95), looks=2)
    once = divide_unpaired(*SIDES, ONCE)

    shown, decisive, only = (compare_unpaired(*SIDES, confidence=1 - error) for error in (0.025, 0.005, 0.01))
    assert (ours.low, ours.high) == pytest.approx((shown.low, shown.high))
    assert (ours.decisive.low, ours.decisive.high) == pytest.approx((decisive.low, decisive.high))
    assert once.decisive is once
    assert (once.low, once.high) == pytest.approx((only.low, only.high))


def test_a_ratio_of_exact_counts_is_exact_unless_one_is_not_the_same_in_all_processes():
    exact, four = (reading("hlo_fusions", *[count] * 3, exact=True) for count in (6.0, 4.0))
    ours = divide_readings(reading("hlo_fusions", 6.0, 6.1, 6.2), four, ONCE)

    assert divide_readings(exact, four, ONCE) == statistics.Interval(1.5, 1.5, 1.5, 3)
    assert ours.low < ours.estimate < ours.high


def test_a_count_of_1_and_a_time_below_a_second_have_a_ratio():
    counts = reading("hlo_fusions", 3.0, exact=True), reading("hlo_fusions", 1.0, exact=True)
    times = reading("cold_s", 0.5), reading("cached_s", 0.25)

    assert divide_readings(*counts, ONCE).estimate == 3.0
    assert divide_readings(*times, ONCE).estimate == pytest.approx(2.0)


@pytest.mark.parametrize("sides", [((0.0,), (1.0,)), ((1.0,), (0.0,)), ((), (1.0,)), ((1.0,), ())])
def test_nothing_and_0_have_no_ratio(sides):
    above, below = (reading("compiles", *side, exact=True) for side in sides)

    assert divide_readings(above, below, ONCE) is None


def test_processes_that_differ_by_more_than_a_float_holds_have_a_middle_and_no_bounds():
    apart = (1e-12, 1e9, 1.0)

    ours = divide_unpaired(apart, apart, samples.settings(confidence=1 - 1e-12))

    assert (ours.low, ours.estimate, ours.high) == (None, 1.0, None)


@pytest.mark.parametrize("above", [(), (1.0,)])
def test_a_side_without_processes_has_no_ratio(above):
    assert divide_unpaired(above, (1.0,) if not above else (), ONCE) is None
