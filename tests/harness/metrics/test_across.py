import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.across import find_worst, read_metric
from jaxmeter.harness.metrics.metric import Lack
from jaxmeter.harness.metrics.plausibility import LARGEST_COUNT, LARGEST_LOG_RATIO, LONGEST_S, SHORTEST_S, usable_size
from jaxmeter.harness.metrics.reading import read_case
from jaxmeter.harness.metrics.statistics import geometric_interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Outcome, Status, TimingDetails
from tests import samples

T_995 = 9.924843  # Student's t of 2 degrees of freedom at 99 %, two-sided.


def variant_of(outcomes, **settings):
    """The one variant of a case."""
    case = samples.planned_case(variants=("f:jit",))
    record = samples.record(case, {"f:jit": outcomes})
    (one,) = read_case(case, record, samples.environment(), samples.settings(**settings)).variants
    return one


def read(metric, *values, status=Status.OK, looks=1, **settings):
    details, probe = TimingDetails(processes=len(values), looks=looks), METRICS[metric].probe
    outcome = Outcome(status=status, values={metric: values}, details=details if probe == "timing" else None)
    timing = Outcome(status=Status.OK, details=details)
    return variant_of({"timing": timing, probe: outcome}, **settings).read(metric)


def test_times_become_a_geometric_mean_with_a_t_interval_on_the_logs():
    reading = read("compile_s", 1.0, 2.0, 4.0)

    half = T_995 * math.log(2) / math.sqrt(3)
    assert reading.values == (1.0, 2.0, 4.0)
    assert reading.estimate == pytest.approx(2.0)
    assert reading.interval.low == pytest.approx(2 * math.exp(-half), rel=1e-4)
    assert reading.interval.high == pytest.approx(2 * math.exp(half), rel=1e-4)
    assert (reading.exact, reading.contended, reading.fault) == (False, False, None)


def test_log_ratios_become_a_mean():
    assert read("log_ratio", -1.0, 0.0, 4.0).estimate == pytest.approx(1.0)


def test_looks_beyond_all_that_can_be_leave_an_interval_finite():
    assert math.isfinite(read("execution_s", 1.0, 1.1, 1.2, looks=10**13).interval.high)


@pytest.mark.parametrize(("metric", "wider"), [("execution_s", True), ("return_s", True), ("compile_s", False)])
def test_looks_widen_the_interval_of_processes_whose_number_followed_from_them(metric, wider):
    once, often = (read(metric, 1.0, 1.1, 1.2, looks=looks).interval for looks in (1, 3))

    assert (often.half_width > once.half_width) is wider


@pytest.mark.parametrize(("taken", "shared"), [(0, 1), (1, 1), (2, 2), (4, 4)])
def test_the_error_is_shared_among_the_looks_that_were_taken(taken, shared):
    values = 1.0, 1.1, 1.2

    reading = read("execution_s", *values, looks=taken)

    assert reading.looks == shared
    assert reading.interval == geometric_interval(values, looks=shared)


def test_intervals_are_shown_at_one_level_and_decide_at_another():
    values = 1.0, 1.1, 1.2

    reading = read("execution_s", *values, confidence=0.99, shown_confidence=0.95)

    shown, decisive = (geometric_interval(values, confidence=confidence) for confidence in (0.95, 0.99))
    assert (reading.interval.low, reading.interval.high) == (shown.low, shown.high)
    assert reading.verdict_interval == decisive
    of_one_level = read("execution_s", *values)
    assert of_one_level.verdict_interval == of_one_level.interval == geometric_interval(values)
    assert read("execution_s").verdict_interval is None  # without a number nothing decides


def test_one_look_is_as_good_as_a_fixed_number():
    assert read("execution_s", 1.0, 1.1, 1.2).interval == read("compile_s", 1.0, 1.1, 1.2).interval


@pytest.mark.parametrize(
    ("metric", "estimate"),
    [
        ("max_error", 3.0),
        ("measured_peak_bytes", 3.0),
        ("executable_bytes", 3.0),
        ("hlo_fusions", 7.0),
        ("planned_peak_bytes", 7.0),
        ("compiles", 7.0),
        ("recompiles", 7.0),
    ],
)
def test_other_metrics_take_the_middle_the_first_or_the_largest_of_their_processes(metric, estimate):
    reading = read(metric, None, 7, 1, 3)

    assert (reading.estimate, reading.known) == (estimate, (7.0, 1.0, 3.0))
    assert (reading.interval.low, reading.interval.high, reading.interval.count) == (None, None, 3)


@pytest.mark.parametrize(
    ("metric", "values", "exact"),
    [
        ("hlo_fusions", (3, 3), True),
        ("hlo_fusions", (3, None), True),
        ("hlo_fusions", (3, 4), False),
        ("hlo_fusions", (None,), False),
        ("max_error", (3, 3), False),
        ("measured_peak_bytes", (3, 3), False),
    ],
)
def test_a_number_is_exact_where_its_metric_is_and_all_processes_agree(metric, values, exact):
    assert read(metric, *values).exact is exact


@pytest.mark.parametrize(
    ("metric", "low", "high"),
    [
        ("execution_s", SHORTEST_S, LONGEST_S),
        ("compile_s", 0.0, LONGEST_S),
        ("log_ratio", -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO),
        ("hlo_fusions", 0.0, LARGEST_COUNT),
        ("planned_peak_bytes", 0.0, LARGEST_COUNT),
        ("max_error", 0.0, LARGEST_COUNT),
        ("donation_saves_bytes", -LARGEST_COUNT, LARGEST_COUNT),
    ],
)
def test_what_cannot_have_been_measured_is_missing(metric, low, high):
    below, above = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    damaged = (below, above, math.nan, math.inf, -math.inf, 10**400, -(10**400), None)

    reading = read(metric, low, high, *damaged)

    assert reading.values == (low, high, *(None for _ in damaged))


def test_zero_seconds_of_a_part_are_a_value_and_of_a_timed_call_are_none():
    parts, calls = read("lower_s", 0.0, 0.0), read("execution_s", 0.0, 0.0)

    assert (parts.values, parts.estimate, parts.fault) == ((0.0, 0.0), 0.0, None)
    assert (calls.values, calls.estimate) == ((None, None), None)


def test_the_mean_of_times_among_which_is_a_zero_is_arithmetic():
    assert read("lower_s", 0.0, 0.2, 0.4).estimate == pytest.approx(0.2)
    assert read("lower_s", 0.1, 0.4).estimate == pytest.approx(0.2)


def test_only_damaged_values_are_no_value():
    reading = read("compile_s", -1.0)

    assert (reading.interval, reading.fault.lack, reading.fault.metric) == (None, Lack.NO_VALUE, "compile_s")


@given(st.lists(st.one_of(st.none(), st.floats(), st.integers()), max_size=6), st.sampled_from(sorted(METRICS)))
def test_no_recorded_value_is_a_crash_or_a_number_that_is_none(values, name):
    metric = METRICS[name]
    if metric.probe is None:
        return
    reading = read(name, *values)

    assert len(reading.values) == len(values)
    assert (reading.interval is None) is (reading.known == ())
    assert reading.estimate is None or math.isfinite(reading.estimate)


def test_processes_that_differ_by_more_than_a_float_holds_have_a_middle_and_no_bounds():
    reading = read("compile_s", SHORTEST_S, LONGEST_S, 1.0, confidence=1 - 1e-12)

    assert (reading.estimate, reading.interval.low) == (1.0, None)


WRONG = Outcome(status=Status.WRONG, reason="far off")
TIMED = Outcome(status=Status.OK, values={"execution_s": (1.0,)})


def test_a_wrong_result_has_no_speed_but_keeps_what_was_compiled():
    one = variant_of({"numerics": WRONG, "timing": TIMED, "compilation": samples.compilation(1.0)})

    time, first_call = one.read("execution_s"), one.read("first_call_s")

    assert (time.values, time.interval, time.fault.outcome) == ((), None, WRONG)
    assert (first_call.estimate, first_call.fault.outcome) == (1.0, WRONG)


@pytest.mark.parametrize(("metric", "kept"), [("execution_s", ()), ("compile_s", (1.0,))])
def test_a_probe_that_failed_has_no_time_of_processes_and_keeps_what_else_it_measured(metric, kept):
    reading = read(metric, 1.0, status=Status.FAILED)

    assert reading.values == kept
    assert (reading.fault.lack, reading.fault.probe) == (Lack.ENDED, METRICS[metric].probe)


@pytest.mark.parametrize(
    ("outcomes", "probes", "lack", "probe"),
    [
        ({}, ("timing",), Lack.ENDED, ""),
        ({"numerics": samples.numerics()}, (), Lack.NOT_ASKED, "timing"),
        ({"numerics": samples.numerics()}, ("timing",), Lack.NOT_LOOKED, "timing"),
        ({"": Outcome(status=Status.LOST)}, ("timing",), Lack.ENDED, ""),
        ({"numerics": Outcome(status=Status.FAILED)}, (), Lack.ENDED, "numerics"),
        ({"timing": Outcome(status=Status.SKIPPED)}, ("timing",), Lack.ENDED, "timing"),
        ({"timing": Outcome(status=Status.OK)}, ("timing",), Lack.NO_VALUE, "timing"),
    ],
)
def test_a_missing_number_has_its_reason_as_fields(outcomes, probes, lack, probe):
    fault = variant_of(outcomes, probes=probes).read("execution_s").fault

    assert (fault.lack, fault.probe, fault.metric) == (lack, probe, "execution_s")
    assert (fault.outcome is None) is (lack is not Lack.ENDED)


@pytest.mark.parametrize(
    ("processes", "contended", "expected"),
    [(3, 0, False), (3, 1, True), (4, 1, False), (12, 6, False), (12, 7, True), (1, 0, False), (1, 1, True)],
)
def test_a_time_is_contended_where_fewer_than_three_or_half_of_the_processes_are_clean(processes, contended, expected):
    details = TimingDetails(processes=processes, contended=contended)
    one = variant_of({"timing": Outcome(status=Status.OK, values={"execution_s": (1.0,)}, details=details)})

    assert one.read("execution_s").contended is expected


def test_a_metric_of_a_workload_is_no_metric_of_a_variant():
    with pytest.raises(ValueError, match="compile_exponent is of a workload"):
        variant_of({}).read("compile_exponent")


def test_that_a_peer_has_no_compiler_to_probe_says_nothing_bad_of_it():
    unsupported = Outcome(status=Status.UNSUPPORTED)

    assert find_worst({"compilation": unsupported, "timing": TIMED}) == ("timing", TIMED)
    assert find_worst({"compilation": unsupported}) == ("compilation", unsupported)
    assert find_worst({"compilation": unsupported, "memory": WRONG, "timing": TIMED}) == ("memory", WRONG)


@pytest.mark.parametrize(("value", "expected"), [(0, 0.0), (2**62, 2.0**62), (2**62 + 1024, None), (-1, None)])
def test_a_size_that_cannot_be_is_none(value, expected):
    assert usable_size(value) == expected


def test_a_metric_may_be_read_that_no_registry_holds():
    count = dataclasses.replace(METRICS["hlo_fusions"], name="made_up", probe="numerics")
    one = variant_of({"numerics": Outcome(status=Status.OK, values={"made_up": (3,)})})

    assert read_metric(one, count).estimate == 3


def test_a_variant_of_a_case_by_itself_finds_the_others_and_is_lost_without_a_record():
    case = samples.planned_case(variants=("f:eager", "f:jit"))
    record = samples.record(case, {"f:eager": {"timing": TIMED}})

    eager, jit = read_case(case, record, samples.environment(), samples.settings()).variants

    assert (eager.planned.name, jit.planned.name) == ("f:eager", "f:jit")
    assert jit.status is Status.LOST
    assert jit.find("f:eager").read("execution_s").estimate == pytest.approx(1.0)
    assert jit.find("g:jit") is None
