import math
import statistics

import numpy
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.statistics import (
    LARGEST_WAIT,
    OWN_WAIT,
    Interval,
    PseudoProcess,
    VariancePrior,
    agree,
    bound_rate,
    clean_blocks,
    differs,
    find_block_time,
    geometric_interval,
    hold_another,
    lost_share,
    mean_interval,
    paired_log_ratio,
    speedup,
)

times = st.floats(1e-6, 1e2)
log_ratios = st.floats(-5, 5)
shares = st.floats(0, 1)


def bounds(interval: Interval) -> tuple[float | None, float, float | None]:
    return interval.low, interval.estimate, interval.high


@pytest.mark.parametrize(
    ("samples_s", "expected"),
    [
        ((5.0,), 5.0),
        ((1.0, 1.0, 7.0), 3.0),
        ((64.0, 1.0, 2.0, 3.0), 2.0),
        ((*[2.0] * 9, 64.0), 2.0),
        ((64.0, *[2.0] * 9, 64.0), 2.0),
        ((64.0, *[2.0] * 8, 13.0), 29 / 9),
    ],
    ids=["one", "too few to leave one out", "the slowest of four", "of ten", "two of eleven", "one of ten only"],
)
def test_a_blocks_time_is_the_mean_without_the_slowest_tenth(samples_s, expected):
    assert find_block_time(samples_s) == pytest.approx(expected, rel=1e-15)


@given(values=st.lists(times, min_size=1, max_size=30), calls=st.integers(1, 5))
def test_a_blocks_time_is_between_its_samples_in_any_order(values, calls):
    found = find_block_time(values)

    assert min(values) * (1 - 1e-12) <= found <= statistics.fmean(values) * (1 + 1e-12)
    assert found == find_block_time(values[::-1])
    assert find_block_time([calls * value for value in values]) == pytest.approx(calls * found)


@pytest.mark.parametrize("confidence", [0.9, 0.99])
@given(values=st.lists(log_ratios, min_size=3, max_size=12))
def test_a_mean_interval_is_the_t_interval_of_scipy(values, confidence):
    assume(statistics.stdev(values) > 1e-9)

    interval = mean_interval(values, confidence=confidence)

    error = scipy.stats.sem(values)
    expected = scipy.stats.t.interval(confidence, len(values) - 1, loc=numpy.mean(values), scale=error)
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert interval.estimate == pytest.approx(numpy.mean(values), abs=1e-12)
    assert interval.count == len(values)


def test_looks_share_the_error():
    values = [1.0, 2.0, 4.0]

    assert mean_interval(values, looks=3) == mean_interval(values, confidence=1 - 0.01 / 3)


def test_three_processes_have_bounds_of_5_7_standard_deviations():
    values = [-1.0, 0.0, 1.0]

    assert bounds(mean_interval([0.5, 0.5, 0.5])) == (0.5, 0.5, 0.5)
    assert mean_interval(values).high == pytest.approx(5.7301, abs=1e-4)
    assert mean_interval(values, confidence=0.95).low == pytest.approx(-2.4841, abs=1e-4)


@pytest.mark.parametrize(
    ("confidence", "looks"), [(-0.1, 1), (1.0, 1), (5.0, 1), (math.nan, 1), (math.inf, 1), (0.99, 10**18)]
)
def test_a_confidence_that_no_interval_can_have_gives_no_bounds(confidence, looks):
    assert bounds(mean_interval([1.0, 1.0, 1.0], confidence=confidence, looks=looks)) == (None, 1.0, None)


def test_a_moderated_interval_has_the_moderated_deviation_and_its_degrees():
    # Own variance 1 with 2 degrees, borrowed 4 with 6: 3.25 with 8.
    interval = mean_interval([-1.0, 0.0, 1.0], borrowed=VariancePrior(variance=4.0, degrees=6.0, most_degrees=100.0))

    half = scipy.stats.t.ppf(0.995, 8) * math.sqrt(3.25 / 3)
    assert bounds(interval) == pytest.approx((-half, 0.0, half))


def test_what_processes_share_widens_an_interval_however_many_there_are():
    few = mean_interval([-1.0, 0.0, 1.0], shared=0.25)
    many = mean_interval([-1.0, 1.0] * 10_000, shared=0.25, confidence=0.95)

    own, in_common = scipy.stats.t.ppf(0.995, 2) / math.sqrt(3), 0.5 * scipy.stats.norm.ppf(0.995)
    assert few.high == pytest.approx(math.sqrt(own**2 + in_common**2))
    assert many.high == pytest.approx(scipy.stats.norm.ppf(0.975) * 0.5, rel=1e-3)


def test_processes_that_agree_are_known_as_well_as_what_they_share():
    found = geometric_interval([2.0, 2.0, 2.0], shared=0.01)

    assert found.high == pytest.approx(2 * math.exp(0.1 * scipy.stats.norm.ppf(0.995)))


def test_a_usual_process_counts_once_beside_those_that_there_are():
    # Own variance 1 with 2 degrees, one process more with 10: 12 / 3, and still 2 degrees.
    interval = mean_interval([-1.0, 0.0, 1.0], borrowed=PseudoProcess(variance=10.0))

    half = scipy.stats.t.ppf(0.995, 2) * math.sqrt(4 / 3)
    assert bounds(interval) == pytest.approx((-half, 0.0, half))


@given(
    values=st.lists(st.integers(-1000, 1000).map(lambda number: number / 100), min_size=3, max_size=12),
    usual=st.integers(0, 10_000).map(lambda number: number / 100),
)
def test_a_usual_process_never_narrows_an_interval(values, usual):
    own, widened = mean_interval(values), mean_interval(values, borrowed=PseudoProcess(usual))

    if usual <= statistics.variance(values):
        assert bounds(widened) == pytest.approx(bounds(own))
    else:
        assert widened.low < own.low <= own.high < widened.high


def test_a_speed_ups_interval_counts_the_usual_process():
    ratios, usual = [0.1, 0.2, 0.3], PseudoProcess(1.0)

    assert speedup(ratios, borrowed=usual).low == pytest.approx(math.exp(mean_interval(ratios, borrowed=usual).low))
    assert speedup(ratios, borrowed=usual).low < speedup(ratios).low


def test_an_interval_decides_by_itself_unless_it_carries_another():
    decisive = Interval(1.0, 2.0, 3.0, 5)

    assert Interval(1.5, 2.0, 2.5, 5, verdict=decisive).decisive is decisive
    assert decisive.decisive is decisive


@pytest.mark.parametrize(("low", "expected"), [(1.01, True), (0.99, False), (None, False)])
def test_whether_a_ratio_differs_is_told_by_the_interval_for_verdicts(low, expected):
    verdict = Interval(low, 1.10, 1.3, 5)

    assert differs(Interval(1.05, 1.10, 1.15, 5, verdict=verdict)) is expected
    assert differs(Interval(0.95, 1.10, 1.25, 5, verdict=verdict)) is expected


@pytest.mark.parametrize("borrowed", [None, VariancePrior(variance=0.01, degrees=math.inf, most_degrees=100.0)])
@pytest.mark.parametrize("values", [[2.0], [2.0, 4.0]])
def test_fewer_than_3_processes_give_an_estimate_without_bounds_whatever_they_borrow(values, borrowed):
    interval = mean_interval(values, borrowed=borrowed)

    assert bounds(interval) == (None, statistics.mean(values), None)
    assert interval.half_width is None
    with pytest.raises(ValueError, match="at least one value"):
        mean_interval([], borrowed=borrowed)


def test_the_half_width_is_relative_to_the_estimate():
    assert Interval(3.0, 4.0, 5.0, 3).half_width == 0.25
    assert Interval(-5.0, -4.0, -3.0, 3).half_width == 0.25
    assert Interval(-1.0, 0.0, 1.0, 3).half_width is None


@pytest.mark.parametrize("borrowed", [None, VariancePrior(variance=0.01, degrees=4.0, most_degrees=100.0)])
@given(values=st.lists(times, min_size=3, max_size=12))
def test_a_geometric_interval_is_the_mean_interval_of_the_logs(values, borrowed):
    interval = geometric_interval(values, borrowed=borrowed)
    logs = mean_interval([math.log(value) for value in values], borrowed=borrowed)

    assert bounds(interval) == (math.exp(logs.low), math.exp(logs.estimate), math.exp(logs.high))
    assert interval.estimate == pytest.approx(statistics.geometric_mean(values))


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_time_that_is_not_positive_has_no_geometric_mean(value):
    with pytest.raises(ValueError, match="domain"):
        geometric_interval([1.0, 1.0, value])


def test_a_speedup_is_the_mean_interval_of_the_log_ratios_looked_at_once():
    logs = mean_interval([0.1, 0.2, 0.4], looks=1)

    assert bounds(speedup([0.1, 0.2, 0.4])) == tuple(map(math.exp, bounds(logs)))
    shared = mean_interval([0.1, 0.2, 0.4], shared=0.01)
    assert bounds(speedup([0.1, 0.2, 0.4], shared=0.01)) == tuple(map(math.exp, bounds(shared)))


@given(processes=st.lists(st.tuples(times, times), min_size=3, max_size=12))
def test_exchanging_baseline_and_variant_inverts_the_speedup(processes):
    there = speedup([paired_log_ratio([one], [other]) for one, other in processes])
    back = speedup([paired_log_ratio([other], [one]) for one, other in processes])
    assume(there.high < 1e300)

    assert back.estimate == pytest.approx(1 / there.estimate, rel=1e-9)
    assert back.low == pytest.approx(1 / there.high, rel=1e-6)
    assert back.high == pytest.approx(1 / there.low, rel=1e-6)


@given(
    ratios=st.lists(st.floats(-0.1, 0.1), min_size=1, max_size=15),
    speed=st.floats(0.5, 2.0),
)
def test_a_paired_log_ratio_is_the_median_of_the_passes_ratios(ratios, speed):
    baseline_s = [math.exp(ratio) * speed for ratio in ratios]

    assert paired_log_ratio(baseline_s, [speed] * len(ratios)) == pytest.approx(statistics.median(ratios), abs=1e-12)


@given(st.lists(st.floats(0.1, 10), min_size=6, max_size=6))
def test_fewer_than_half_of_the_passes_may_be_anything(wild):
    """Seven of thirteen passes have the same ratio."""
    assert paired_log_ratio([2.0] * 7 + wild, [1.0] * 13) == pytest.approx(math.log(2))


def test_slow_passes_move_the_ratio_of_the_medians_but_not_the_median_of_the_paired_ratios():
    # Both variants take equally long; two of five passes are slow, and slow passes hit both.
    baseline_s = [1.0, 1.0, 2.0, 2.0, 1.5]
    variant_s = [1.0, 1.0, 2.0, 2.0, 2.5]

    assert paired_log_ratio(baseline_s, variant_s) == 0.0
    assert statistics.median(baseline_s) / statistics.median(variant_s) == 0.75


def test_passes_without_a_partner_are_an_error():
    with pytest.raises(ValueError, match="shorter"):
        paired_log_ratio([1.0, 1.0], [1.0])


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (Interval(1.05, 1.10, 1.15, 5), True),
        (Interval(0.85, 0.90, 0.95, 5), True),
        (Interval(0.99, 1.10, 1.21, 5), False),
        (Interval(1.0297, 1.0298, 1.0299, 5), False),
        (Interval(1.0301, 1.0302, 1.0303, 5), True),
        (Interval(1.0, 1.10, 1.2, 5), False),
        (Interval(None, 2.0, None, 2), False),
    ],
    ids=["faster", "slower", "not sure", "too small", "large enough", "touches 1", "no interval"],
)
def test_a_ratio_differs_when_its_interval_excludes_1_and_it_is_beyond_the_minimum_effect(ratio, expected):
    assert differs(ratio) is expected


@given(estimate=st.floats(0.5, 2.0), width=st.floats(0.0, 0.2))
def test_whether_a_ratio_differs_does_not_depend_on_which_side_is_the_baseline(estimate, width):
    ratio = Interval(estimate / (1 + width), estimate, estimate * (1 + width), 5)
    inverse = Interval(1 / ratio.high, 1 / ratio.estimate, 1 / ratio.low, 5)
    for edge in (ratio.low, ratio.high, estimate / 1.03, estimate * 1.03):
        assume(abs(edge - 1) > 1e-9)

    assert differs(ratio) is differs(inverse)


@pytest.mark.parametrize(
    ("waits", "clean"),
    [
        ([0.0, 0.0, LARGEST_WAIT, LARGEST_WAIT + 0.01], (True, True, True, False)),
        ([0.055, 0.055, 0.055, 0.11, 0.12], (True, True, True, True, False)),
        ([0.5] * 10, (False,) * 10),
        ([OWN_WAIT * 2 + 0.01] * 10, (False,) * 10),
        ([None, None], (True, True)),
        ([None, 0.0, 0.0, 0.9], (True, True, True, False)),
        ([], ()),
    ],
    ids=["up to the limit", "twice its own wait", "much", "a little too much", "no reading", "one reading", "none"],
)
def test_a_block_is_clean_up_to_the_largest_wait_or_twice_what_its_code_always_waits(waits, clean):
    assert clean_blocks(waits) == clean


@pytest.mark.parametrize(
    ("waited_s", "cpu_s", "expected"),
    [(0.0, 1.0, 0.0), (0.25, 0.75, 0.25), (0.5, 1.5, 0.25), (2.0, 1.5, 0.25), (0.5, 2.0, 0.0), (0.25, 0.0, 0.25)],
    ids=["no wait", "one thread", "two threads", "what the process left", "nothing left", "asleep"],
)
def test_what_was_lost_is_a_share_of_what_ready_threads_could_have_run(waited_s, cpu_s, expected):
    assert lost_share(waited_s, 1.0, cpu_s, cores=2) == expected


def test_the_same_loss_of_each_thread_is_the_same_share_on_many_cores():
    shares = [lost_share(0.05 * threads, 1.0, 0.95 * threads, cores=threads) for threads in (1, 2, 64)]

    assert shares == pytest.approx([0.05] * 3)


@given(waits=st.lists(shares, max_size=20))
def test_a_block_that_waits_less_than_a_clean_one_is_clean(waits):
    marked = list(zip(waits, clean_blocks(waits), strict=True))

    most = max((wait for wait, clean in marked if clean), default=0.0)
    assert all(clean for wait, clean in marked if wait < most)
    assert most <= 2 * OWN_WAIT


@pytest.mark.parametrize(("other", "expected"), [(105.0, True), (105.1, False), (100.0, True)])
def test_two_values_agree_within_a_share_of_the_smaller(other, expected):
    assert agree(100.0, other, within=0.05) is expected
    assert agree(other, 100.0, within=0.05) is expected


def test_bounds_of_a_rate_are_those_of_clopper_and_pearson():
    assert bound_rate(0, 100) == pytest.approx((0.0, 0.03622), abs=1e-5)
    assert bound_rate(97, 100) == pytest.approx((0.91482, 0.99377), abs=1e-5)
    assert bound_rate(100, 100) == pytest.approx((0.96378, 1.0), abs=1e-5)


def test_an_honest_interval_holds_an_equal_runs_mean_less_often_than_the_truth():
    # Of a normal mean with a known variance: P(|z| < 1.96 / sqrt(2)).
    assert hold_another(0.95, 1e9) == pytest.approx(0.83422, abs=1e-5)
    # Of three processes: P(|t| < 4.303 / sqrt(2)), t with two degrees: x / sqrt(2 + x²).
    assert hold_another(0.95, 2) == pytest.approx(0.90685, abs=1e-4)
