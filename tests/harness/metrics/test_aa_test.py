"""What equal programs, of which the truth is known, say of a machine's numbers."""

import math
import statistics

import pytest

from jaxmeter.harness.metrics.aa_test import (
    EqualPair,
    compare_aa_controls,
    compare_runs,
    count,
    find_smallest,
    make_self_test,
    scale,
)
from jaxmeter.harness.metrics.statistics import Interval, differs, geometric_interval, speedup
from jaxmeter.harness.record import PlannedVariant
from jaxmeter.harness.record.self_test import LADDER
from tests import samples

FIRST = samples.planned_variant("f:jit")
AA_CONTROL = PlannedVariant(
    name="f:jit again", implementation="f", mode="jit", description="Sample.", source="0" * 16, same_as="f:jit"
)
SETTINGS = samples.settings(shown_confidence=0.95, most_rounds=5)
WAVE = (0.01, -0.01, 0.02, -0.02, 0.0)
"""Log ratios of five processes whose mean is 0."""


def run_of(
    *, times_s=(1e-3, 1.01e-3, 0.99e-3), log_ratios=WAVE, calibration_s=1e-4, identity=samples.CALIBRATION, number=0
):
    """A run of one case: a program that took these times, and its A/A control with these ratios to it."""
    planned = samples.planned_case(variants=(FIRST, AA_CONTROL))
    own = {"execution_s": tuple(times_s), "return_s": (1e-6,), "calibration_s": (calibration_s,) * len(times_s)}
    details = samples.TimingDetails(processes=len(times_s), calibration=identity)
    first = samples.Outcome(status=samples.Status.OK, values=own, details=details)
    values = {"execution_s": (1e-3,) * len(log_ratios), "log_ratio": tuple(log_ratios)}
    again = samples.Outcome(status=samples.Status.OK, values=values, details=details)
    record = samples.record(planned, {"f:jit": {"timing": first}, "f:jit again": {"timing": again}})
    return samples.run((planned, record), settings=SETTINGS, ended=f"2026-01-02T03:0{number}:05Z")


def comparison(ratio, *, held=()):
    return EqualPair(ratio, held, held)


# Gains


def test_a_speedup_of_a_aa_control_is_read_as_pages_read_it_and_its_truth_is_1():
    (found,) = compare_aa_controls(run_of())

    assert found.ratio.low == pytest.approx(speedup(WAVE, confidence=0.95).low)
    assert found.ratio.decisive.low == pytest.approx(speedup(WAVE, confidence=0.99).low)
    assert (found.held_shown, found.held_decisive) == ((True,), (True,))


def test_a_speedup_between_both_intervals_is_missed_by_that_which_is_shown_alone():
    half_shown, half_decisive = (math.log(speedup(WAVE, confidence=level).high) for level in (0.95, 0.99))
    off = (half_shown + half_decisive) / 2

    (found,) = compare_aa_controls(run_of(log_ratios=[value + off for value in WAVE]))

    assert (found.held_shown, found.held_decisive) == ((False,), (True,))


def test_a_aa_control_that_looks_faster_beyond_doubt_is_a_false_difference():
    tally = count(compare_aa_controls(run_of(log_ratios=[value + 0.1 for value in WAVE])))

    assert (tally.compared, tally.differ, tally.intervals, tally.held_decisive) == (1, 1, 1, 0)


def test_a_aa_control_that_was_timed_twice_has_no_interval_and_says_nothing():
    assert count(compare_aa_controls(run_of(log_ratios=WAVE[:2]))) == count([])


# Times of two runs


def test_two_runs_are_compared_at_the_reference_speed_of_the_first():
    slow = run_of(times_s=(2e-3, 2.02e-3, 1.98e-3), calibration_s=2e-4)

    (found,) = compare_runs(run_of(), slow)

    assert found.ratio.estimate == pytest.approx(1.0)
    assert (found.held_shown, found.held_decisive) == ((True,), (True,))


def test_the_first_run_alone_is_asked_whether_its_interval_holds_the_time_of_the_other():
    vague = run_of(times_s=(1e-3, 1.2e-3, 1.4e-3))

    (found,), (reversed_order,) = compare_runs(run_of(), vague), compare_runs(vague, run_of())

    assert (found.held_shown, found.held_decisive) == ((False,), (False,))
    assert (reversed_order.held_shown, reversed_order.held_decisive) == ((True,), (True,))
    assert not differs(found.ratio)


def test_times_differ_by_welchs_interval_for_verdicts():
    (found,) = compare_runs(run_of(), run_of(times_s=(1.2e-3, 1.21e-3, 1.19e-3)))

    logs = [[math.log(value) for value in values] for values in ((1e-3, 1.01e-3, 0.99e-3), (1.2e-3, 1.21e-3, 1.19e-3))]
    assert math.log(found.ratio.estimate) == pytest.approx(statistics.fmean(logs[0]) - statistics.fmean(logs[1]))
    assert found.ratio.low < found.ratio.estimate < found.ratio.high < 1
    assert differs(found.ratio)


@pytest.mark.parametrize("other", [run_of(calibration_s=None, identity=None), run_of(identity="alu 2")])
def test_without_a_reference_speed_in_common_two_runs_are_not_compared(other):
    assert compare_runs(run_of(), other) is None
    assert make_self_test("here", [run_of(), other]).times is None


# Together


def test_a_self_test_counts_every_speedup_and_each_run_beside_the_one_before_it():
    runs = [run_of(number=1), run_of(number=2), run_of(number=3, times_s=(1.2e-3, 1.21e-3, 1.19e-3))]

    found = make_self_test("here", runs)

    assert (found.machine, found.at, found.runs, found.cases, found.processes) == (
        "here",
        "2026-01-02T03:03:05Z",
        3,
        1,
        15,
    )
    assert found.packages == {"jax": "0.10.0", "jaxlib": "0.10.0"}
    assert (found.shown_confidence, found.confidence, found.minimum_effect) == (0.95, 0.99, 0.03)
    assert (found.speedups.compared, found.speedups.differ, found.speedups.held_shown) == (3, 0, 3)
    assert found.times is not None
    assert (found.times.compared, found.times.differ, found.times.intervals) == (2, 1, 2)


def test_one_run_has_speedups_and_nothing_to_compare_its_times_with():
    found = make_self_test("here", [run_of()])

    assert (found.speedups.compared, found.times) == (1, count([]))
    with pytest.raises(ValueError, match="at least one run"):
        make_self_test("here", [])


# The smallest difference


def test_a_ratio_that_is_so_many_times_larger_in_every_process_has_the_same_interval_times_that():
    values = (1.0, 1.1, 0.9)

    found = scale(geometric_interval(values), 1.5)

    wanted = geometric_interval([1.5 * value for value in values])
    assert (found.low, found.estimate, found.high) == pytest.approx((wanted.low, wanted.estimate, wanted.high))
    assert found.count == 3


@pytest.mark.parametrize(("half", "smallest"), [(0.001, 0.05), (0.06, 0.07), (0.12, 0.15), (0.4, 0.5), (0.6, None)])
def test_the_smallest_difference_is_the_first_of_the_ladder_beyond_interval_and_minimum_effect(half, smallest):
    # 3 % more than a little less is not beyond the minimum effect of 3 %.
    assert find_smallest([Interval(math.exp(-half), 0.9999, math.exp(half), 5)] * 20) == smallest


@pytest.mark.parametrize(("vague", "smallest"), [(1, 0.05), (2, 0.5)])
def test_it_is_found_in_95_percent_of_the_ratios(vague, smallest):
    ratios = [Interval(0.9999, 0.9999, 0.9999, 5)] * (20 - vague) + [Interval(0.7, 1.0, 1.4, 5)] * vague

    assert find_smallest(ratios) == smallest


def test_without_a_ratio_or_where_it_differs_the_wrong_way_no_difference_is_found():
    assert find_smallest([]) is None
    assert find_smallest([Interval(0.5, 0.5, 0.5, 5)]) is None
    assert list(LADDER) == sorted(LADDER)


def test_ratios_without_bounds_are_not_counted():
    tally = count(
        [comparison(Interval(None, 1.0, None, 2)), comparison(Interval(0.9, 1.0, 1.1, 5), held=(True, False))]
    )

    assert (tally.compared, tally.differ, tally.intervals, tally.held_shown) == (1, 0, 2, 1)
