"""What a capture gives: shares of a traced step, scaled by the timed one where tracing changes little."""

import pytest

from jaxmeter.harness.metrics.derived import (
    describe_bound_of,
    describe_tracing,
    find_bound_of,
    find_busy_share,
    find_trace,
    is_slowed_down,
)
from jaxmeter.harness.metrics.metric import Lack
from jaxmeter.harness.metrics.reading import read_case
from jaxmeter.harness.record import Cost, Outcome, Status
from jaxmeter.harness.record.trace_summary import Finding, Problem
from jaxmeter.harness.traces.bound import BoundKind
from tests import samples

TIMED_S = 1e-3
FLOAT32 = {"dtype": "float32"}


def variant_with(trace, *, timed_s=TIMED_S, cost=None, devices=1, params=FLOAT32, **environment):
    case = samples.planned_case(variants=("f:jit",), cost=cost, devices=devices, params=dict(params))
    outcomes = {"timing": samples.timing(timed_s, spread=0), **({} if trace is None else {"trace": trace})}
    record = samples.record(case, {"f:jit": outcomes})
    (variant,) = read_case(case, record, samples.environment(**environment), samples.settings()).variants
    return variant


def test_the_busy_share_is_that_of_all_steps_so_that_a_rare_stall_counts_as_long_as_it_lasts():
    trace = samples.traced(1e-3, 2e-3, 4e-3)
    uneven = samples.traced(1e-3, 1e-3, 8e-3, devices=(samples.TracedDevice(name="0", busy_s=(1e-3, 1e-3, 1e-3)),))

    assert find_busy_share(trace.details.summary) == pytest.approx(0.9)
    assert variant_with(uneven).read("busy_share").estimate == pytest.approx(0.3)


def test_a_device_that_is_never_busy_has_a_busy_share_of_0_and_a_warning_leaves_the_numbers():
    idle = variant_with(samples.traced(1e-3, 1e-3, busy=0.0)).read("busy_share")
    finding = Finding(problem=Problem.UNEQUAL_STEPS, text="its steps are unequal", is_fatal=False)

    assert (idle.estimate, idle.fault) == (0.0, None)
    assert variant_with(samples.traced(1e-3, findings=(finding,))).read("busy_share").estimate == pytest.approx(0.9)


@pytest.mark.parametrize(("traced_s", "busy_s"), [(1.25e-3, 0.9e-3), (1.26e-3, None)])
def test_a_processor_s_busy_time_is_its_share_of_the_timed_step_unless_tracing_slows_it_down(traced_s, busy_s):
    variant = variant_with(samples.traced(traced_s, traced_s, traced_s))

    reading = variant.read("device_busy_s")

    assert reading.estimate == (None if busy_s is None else pytest.approx(busy_s))
    assert is_slowed_down(variant) is (busy_s is None)
    assert reading.fault is None if busy_s else reading.fault.lack is Lack.WITHHELD


@pytest.mark.parametrize(("traced_s", "is_like"), [(0.81e-3, True), (0.79e-3, False)])
def test_a_traced_step_that_is_much_shorter_than_the_timed_one_is_another(traced_s, is_like):
    variant = variant_with(samples.traced(traced_s, traced_s, traced_s))

    assert variant.read("device_busy_s").has_number is is_like
    assert (find_bound_of(variant) is not None) is is_like


@pytest.mark.parametrize(
    ("formats", "params", "peak"),
    [
        (("bfloat16",), {}, 8e9),
        (("float32",), {"dtype": "bfloat16"}, 4e9),
        ((), {"dtype": "bfloat16"}, 8e9),
        (("bfloat16", "float32"), {}, None),
        ((), {}, None),
        (("float64",), {}, None),
    ],
)
def test_the_peak_is_that_of_the_format_of_the_program_s_products(formats, params, peak):
    trace = samples.traced(1e-3, 1e-3, 1e-3, flops=2e6, product_formats=formats)
    peaks = {"float32": 4e9, "bfloat16": 8e9}

    share = variant_with(trace, params=params, peak_flops=peaks).read("flops_share").estimate

    assert share == (None if peak is None else pytest.approx(2e6 / 1e-3 / peak))


def test_counted_flops_are_of_the_devices_that_the_program_ran_on():
    two = tuple(samples.TracedDevice(name=name, busy_s=(9e-4,)) for name in "01")
    changes = {"flops": 2e6, "product_formats": ("float32",)}

    of_one = variant_with(samples.traced(1e-3, **changes), devices=2, peak_flops={"float32": 4e9})
    of_two = variant_with(samples.traced(1e-3, devices=two, **changes), devices=2, peak_flops={"float32": 4e9})

    assert of_one.read("flops_share").estimate == pytest.approx(0.5)
    assert of_two.read("flops_share").estimate == pytest.approx(1.0)


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_a_device_s_busy_time_is_by_its_own_clock_however_slow_the_traced_step_is(platform):
    variant = variant_with(samples.traced(5e-3, 5e-3, 5e-3, busy=0.1, platform=platform))

    assert variant.read("device_busy_s").estimate == pytest.approx(5e-4)


def test_a_capture_that_is_not_healthy_has_a_reason_and_no_number():
    finding = Finding(problem=Problem.DROPPED_EVENTS, text="the profiler lost events")
    variant = variant_with(samples.traced(1e-3, findings=(finding,)))

    for metric in ("device_busy_s", "busy_share", "traced_over_timed", "launch_delay_s"):
        reading = variant.read(metric)
        assert reading.estimate is None
        assert "the profiler lost events" in reading.fault.reason
    assert (find_trace(variant), find_bound_of(variant), describe_bound_of(variant)) == (None, None, "")


@pytest.mark.parametrize(
    ("trace", "lack"),
    [(None, Lack.NOT_ASKED), (Outcome(status=Status.SKIPPED, reason="a session is running"), Lack.NO_VALUE)],
)
def test_without_a_capture_there_is_no_number(trace, lack):
    assert variant_with(trace).read("busy_share").fault.lack is lack


@pytest.mark.parametrize(
    ("traced_s", "busy", "kind"),
    [
        (1.2e-3, 0.6, BoundKind.OPERATIONS),
        (2e-3, 0.6, None),
        (2e-3, 0.71, BoundKind.OPERATIONS),
        (2e-3, 0.29, BoundKind.PYTHON),
    ],
)
def test_a_step_that_tracing_slows_down_is_bound_by_something_only_where_that_cannot_turn_round(traced_s, busy, kind):
    bound = find_bound_of(variant_with(samples.traced(traced_s, traced_s, traced_s, busy=busy)))

    assert (None if bound is None else bound.kind) is kind


SWOLLEN = {
    "findings": (Finding(problem=Problem.PYTHON_TRACER, text="the Python tracer was on", is_fatal=False),),
    "ledger": {"compute": 0.3, "host after": 0.7},
}


@pytest.mark.parametrize(
    ("traced_s", "timed_s", "changes", "reason"),
    [
        (
            2e-3,
            TIMED_S,
            {"busy": 0.55},
            "a traced step takes 2× as long as a timed one, with its device busy for 55\u202f%",
        ),
        (0.5e-3, TIMED_S, {}, "a traced step takes 0.5× as long as a timed one"),
        (1e-3, TIMED_S, {"ledger": {}}, "the capture does not show"),
        (2e-3, TIMED_S, {"ledger": {}}, "the capture does not show"),
        (1e-3, TIMED_S, SWOLLEN, "the profiler's Python tracer"),
        (2e-3, TIMED_S, {"busy": 0.1, **SWOLLEN}, "the profiler's Python tracer"),
        (1e-3, 0.0, SWOLLEN, "the profiler's Python tracer"),
    ],
)
def test_a_capture_without_a_bound_says_why(traced_s, timed_s, changes, reason):
    variant = variant_with(samples.traced(traced_s, traced_s, traced_s, **changes), timed_s=timed_s)

    assert find_bound_of(variant) is None
    assert describe_bound_of(variant).removeprefix("bound unknown: ").startswith(reason)


@pytest.mark.parametrize(
    ("traced_s", "executions", "warning"),
    [(1e-3, 3 * 249, ""), (1e-3, 3 * 251, "tracing dominates"), (1.3e-3, 3, "a traced step"), (1.2e-3, 3, "")],
)
def test_a_reader_is_warned_where_recording_takes_a_tenth_of_the_step_or_slows_it_down(traced_s, executions, warning):
    variant = variant_with(samples.traced(traced_s, traced_s, traced_s, executions=executions))

    assert describe_tracing(variant).startswith(warning)
    assert bool(describe_tracing(variant)) is bool(warning)


def test_peaks_of_the_environment_tell_compute_from_memory():
    costs = {"flops": 2e6, "bytes": 1e6}
    trace = samples.traced(1e-3, 1e-3, 1e-3, **costs)

    fast_memory = variant_with(trace, peak_flops={"float32": 4e9}, peak_bytes_per_s=1e12)
    slow_memory = variant_with(trace, peak_flops={"float32": 4e12}, peak_bytes_per_s=2e9)

    assert find_bound_of(fast_memory).kind is BoundKind.ARITHMETIC
    assert find_bound_of(slow_memory).kind is BoundKind.BANDWIDTH


def test_declared_costs_come_before_counted_ones():
    trace = samples.traced(1e-3, 1e-3, 1e-3, flops=9e6, bytes=9e6)
    peaks = {"peak_flops": {"float32": 4e9}, "peak_bytes_per_s": 8e9}

    declared = variant_with(trace, cost=Cost(flops=2e6, bytes=4e6), **peaks)
    counted = variant_with(trace, **peaks)

    assert declared.read("flops_share").estimate == pytest.approx(0.5)
    assert declared.read("bandwidth_share").estimate == pytest.approx(0.5)
    assert declared.read("operational_intensity").estimate == pytest.approx(0.5)
    assert counted.read("flops_share").estimate == pytest.approx(9e6 / 1e-3 / 4e9)


def test_a_gpu_s_share_of_peak_is_by_its_busy_time_and_over_all_devices_of_the_case():
    trace = samples.traced(2e-3, 2e-3, 2e-3, busy=0.25, platform="gpu")
    variant = variant_with(
        trace, cost=Cost(flops=8e6), devices=2, device_kind="Sample GPU", peak_flops={"float32": 16e9}
    )

    assert variant.read("flops_share").estimate == pytest.approx(8e6 / 5e-4 / 32e9)


@pytest.mark.parametrize(
    ("flops", "is_doubted"), [(4.4e6, False), (4.5e6, True), (0, None), (-1, None), (10**400, None)]
)
def test_a_share_above_the_peak_is_doubted_and_a_damaged_cost_gives_none(flops, is_doubted):
    share = variant_with(None, cost=Cost(flops=flops), peak_flops={"float32": 4e9}).read("flops_share")

    assert bool(share.doubt) is bool(is_doubted)
    assert is_doubted is not None or share.fault.lack is Lack.NOT_DEFINED


PEAKS = {"peak_flops": {"float32": 4e9}, "peak_bytes_per_s": 8e9}
TWO_FORMATS = samples.traced(1e-3, product_formats=("float32", "bfloat16"))


LOW = {"cost": Cost(flops=1e6)}
NOT_GIVEN = "its workload declares no {}, and no capture gives them"
NO_PEAK = "no peak is known of its device (cpu)"


@pytest.mark.parametrize(
    ("metric", "trace", "changes", "reason"),
    [
        ("flops_share", None, PEAKS, NOT_GIVEN.format("flops")),
        ("bandwidth_share", None, PEAKS, NOT_GIVEN.format("bytes")),
        ("flops_share", None, LOW, NO_PEAK),
        ("bandwidth_share", None, {"cost": Cost(bytes=1e6)}, NO_PEAK),
        ("flops_share", None, {"params": {"dtype": "float16"}, **LOW, **PEAKS}, "no peak is known of float16 products"),
        ("flops_share", TWO_FORMATS, LOW | PEAKS, "in which format its products are computed is not known"),
    ],
)
def test_a_share_that_is_missing_says_what_it_lacks(metric, trace, changes, reason):
    fault = variant_with(trace, **changes).read(metric).fault

    assert (fault.lack, fault.reason) == (Lack.NOT_DEFINED, reason)


@pytest.mark.parametrize(("traced_s", "is_told"), [(1.2e-3, False), (2e-3, True)])
def test_where_no_part_dominates_a_step_that_tracing_slows_down_says_so(traced_s, is_told):
    ledger = {"compute": 0.2, "dispatch": 0.4, "waiting": 0.4}
    text = describe_bound_of(variant_with(samples.traced(traced_s, traced_s, busy=0.2, ledger=ledger)))

    assert text.startswith("no part dominates (largest: ")
    assert ("of the traced step, 2× as long as the timed one" in text) is is_told
