import math

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.derived import (
    TOO_FEW_PAIRS,
    compare_paired,
    count_break_even,
    doubt_ratio,
    find_eager,
    is_peer,
    read_log_ratios,
)
from jaxmeter.harness.metrics.metric import Lack
from jaxmeter.harness.metrics.reading import read_case
from jaxmeter.harness.metrics.statistics import speedup
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import CompilationDetails, Cost, Outcome, Status
from tests import samples

COST = Cost(flops=2e6, bytes=4e6, message_bytes=1e6, bus_bytes=2e6)


def variants_of(outcomes, *, memory_bytes=None, settings=None, **planned):
    """The variants of a case by name."""
    case = samples.planned_case(variants=tuple(outcomes), **planned)
    environment = samples.environment(
        device_memory_bytes=memory_bytes, peak_flops={"float32": 4e6, "bfloat16": 8e6}, peak_bytes_per_s=16e6
    )
    record = samples.record(case, outcomes)
    found = read_case(case, record, environment, settings or samples.settings()).variants
    return {one.planned.name: one for one in found}


def timed(execution_s, log_ratio=None, *, contended=0, return_s=(1e-6,), **more):
    """A timing; `more` are further values by process."""
    values = {"execution_s": tuple(execution_s), "return_s": return_s, **more}
    if log_ratio is not None:
        values["log_ratio"] = tuple(log_ratio)
    details = samples.TimingDetails(processes=len(values["execution_s"]), contended=contended)
    return {"timing": Outcome(status=Status.OK, values=values, details=details)}


def compiled(**values):
    return {"compilation": Outcome(status=Status.OK, values=values, details=CompilationDetails())}


BYTES = {
    "memory": samples.memory(4, 4, 2, more={"donation_saves_bytes": 5}),
    "measured_memory": samples.measured_memory(20),
}
STAGES = {"trace_s": (1.0,), "lower_s": (2.0,), "compile_s": (4.0,), "first_call_s": (2.5,)}
FULL = variants_of(
    {
        "f:eager": {**timed((2.0, 2.0, 2.0)), **compiled(first_call_s=(8.0,)), **BYTES},
        "f:jit": {
            **timed((1.0, 1.0, 1.0), (math.log(2),) * 3),
            **compiled(**STAGES, counted_flops=(1e6,), counted_bytes=(6e6,)),
            "caching": samples.caching(processes=1, cold_s=5.0, cached_s=7.0),
            **BYTES,
            "trace": samples.traced(1.2, 1.2, 1.2, busy=0.5, launch_delay_s=1e-5),
        },
    },
    memory_bytes=40,
    cost=COST,
    items=500,
    items_unit="tokens",
    devices=4,
)

EXPECTED = {
    "speedup": 2.0,
    "break_even_calls": 3.0,  # 8 + (n - 1) * 2 exceeds 9.5 + (n - 1) * 1 from n = 3 on
    "compile_total_s": 7.0,
    "first_result_s": 9.5,
    "flops_over_declared": 2.0,
    "bytes_over_declared": 6.0,
    "cache_saving_s": -2.0,
    "capacity_share": 0.25,
    "measured_over_planned": 2.0,
    "donation_share": 0.5,
    "device_busy_s": 0.5,  # half of the timed step, since tracing makes it no more than 1.25 times as long
    "busy_share": 0.5,
    "traced_over_timed": 1.2,
    "launch_delay_s": 1e-5,
    "flops_share": 0.5,
    "bandwidth_share": 0.25,
    "operational_intensity": 0.5,
    "items_per_s": 500.0,
    "achieved_flops": 2e6,
    "achieved_bandwidth": 4e6,
    "algorithm_bandwidth": 1e6,
    "bus_bandwidth": 2e6,
}


OF_DECLARATIONS = {"operational_intensity"}
"""Metrics that nothing has to be measured for."""


def test_every_derived_metric_is_derived_here():
    assert {*EXPECTED, "normalised_s"} == {name for name, metric in METRICS.items() if metric.derive is not None}


@pytest.mark.parametrize("metric", EXPECTED)
def test_a_derived_metric_is_what_its_definition_says(metric):
    reading = FULL["f:jit"].read(metric)

    assert reading.estimate == pytest.approx(EXPECTED[metric])
    assert reading.fault is None


@pytest.mark.parametrize("metric", sorted(EXPECTED.keys() - OF_DECLARATIONS))
def test_a_derived_metric_of_a_variant_that_nobody_measured_tells_why(metric):
    nothing = variants_of({"f:eager": {}, "f:jit": {}}, cost=COST, items=500)["f:jit"]

    reading = nothing.read(metric)

    assert (reading.interval, reading.values) == (None, ())
    assert reading.fault is not None


def test_throughput_is_the_items_over_the_time_with_its_interval_and_in_the_unit_of_the_workload():
    one = variants_of(
        {"f:jit": timed((0.9, 1.0, 1.2, None), contended=3)},
        items=600,
        items_unit="tokens",
        settings=samples.settings(shown_confidence=0.95),
    )["f:jit"]
    time, rate = one.read("execution_s"), one.read("items_per_s")

    assert (rate.metric.unit_text, rate.contended, rate.values[3]) == ("tokens/s", time.contended, None)
    assert rate.values[:3] == pytest.approx((600 / 0.9, 600.0, 500.0))
    for of_rate, of_time in ((rate.interval, time.interval), (rate.verdict_interval, time.verdict_interval)):
        assert of_rate.low * of_time.high == pytest.approx(600)
        assert of_rate.estimate * of_time.estimate == pytest.approx(600)
        assert of_rate.high * of_time.low == pytest.approx(600)
        assert of_rate.count == 3
    assert rate.verdict_interval.low < rate.interval.low


@pytest.mark.parametrize(
    "metric",
    [
        *("achieved_flops", "achieved_bandwidth", "algorithm_bandwidth", "bus_bandwidth"),
        *("flops_share", "bandwidth_share"),
    ],
)
def test_a_rate_has_the_interval_of_the_time_that_it_says_in_other_words(metric):
    one = variants_of({"f:jit": timed((0.9, 1.0, 1.2))}, cost=COST, devices=4)["f:jit"]
    time, rate = one.read("execution_s"), one.read(metric)

    for of_rate, of_time in ((rate.interval, time.interval), (rate.verdict_interval, time.verdict_interval)):
        amount = of_rate.estimate * of_time.estimate
        assert of_rate.low * of_time.high == pytest.approx(amount)
        assert of_rate.high * of_time.low == pytest.approx(amount)


@pytest.mark.parametrize("items", [None, 0, -1, 10**400, 1e300])
def test_missing_or_damaged_items_give_no_throughput_and_say_so(items):
    rate = variants_of({"f:jit": timed((1.0,))}, items=items)["f:jit"].read("items_per_s")

    assert (rate.estimate, rate.fault.lack) == (None, Lack.NOT_DEFINED)
    assert rate.fault.reason == "its workload declares no items="


def test_the_first_result_of_eager_code_is_its_first_call():
    assert FULL["f:eager"].read("first_result_s").values == (8.0,)
    assert FULL["f:eager"].read("compile_total_s").fault.lack is Lack.NO_VALUE


def test_a_process_that_lacks_a_stage_has_no_sum():
    stages = {"trace_s": (1.0, 1.0), "lower_s": (1.0, 1.0), "compile_s": (1.0, None), "first_call_s": (1.0, 1.0)}
    one = variants_of({"f:jit": compiled(**stages)})["f:jit"]

    assert one.read("compile_total_s").values == (3.0, None)
    assert one.read("first_result_s").values == (4.0, None)


def test_a_time_beside_a_failure_keeps_the_failure():
    failed = Outcome(status=Status.FAILED, reason="more than declared", values={"first_call_s": (1.0,)})

    reading = variants_of({"f:eager": {"compilation": failed}})["f:eager"].read("first_result_s")

    assert (reading.estimate, reading.fault.outcome) == (1.0, failed)


def test_the_baseline_has_no_speedup_over_itself():
    assert FULL["f:eager"].read("speedup").fault.lack is Lack.NOT_DEFINED


@pytest.mark.parametrize(
    ("mode", "own", "baseline", "contended"),
    [("jit", 1, 1, False), ("native", 0, 0, False), ("native", 1, 0, True), ("native", 0, 1, True)],
)
def test_what_is_contended_matters_for_the_speedup_of_a_peer_only(mode, own, baseline, contended):
    name = f"g:{mode}"
    found = variants_of({"f:eager": timed((2.0,), contended=baseline), name: timed((1.0,), (0.5,), contended=own)})

    assert is_peer(found[name]) is (mode == "native")
    assert found[name].read("speedup").contended is contended


@pytest.mark.parametrize(
    ("busy", "other_busy", "contended", "trusted"),
    [
        ((1.0,), (1.9,), (1, 0), False),
        ((1.9,), (1.0,), (1, 0), False),
        ((1.0,), (1.9,), (0, 1), False),
        ((1.0,), (1.9,), (0, 0), True),
        ((1.0,), (1.2,), (1, 1), True),
        ((1.0,), (1.21,), (1, 1), False),
        ((1.21,), (1.0,), (1, 1), False),
        ((1.0, 1.0, 1.0), (1.0, 1.9, 1.05), (1, 1), False),
        ((1.0,), (), (1, 1), True),
        ((None,), (1.9,), (1, 1), True),
        ((0.0,), (0.0,), (1, 1), True),
    ],
)
def test_a_contended_speedup_of_sides_that_keep_processors_busy_unlike_is_not_to_be_trusted(
    busy, other_busy, contended, trusted
):
    first = timed((2.0,) * 3, contended=contended[0], parallelism=busy)
    second = timed((1.0,) * 3, (0.7,) * 3, contended=contended[1], parallelism=other_busy)
    found = variants_of({"f:jit": first, "g:jit": second})

    speedup = found["g:jit"].read("speedup")

    assert speedup.contended is bool(speedup.doubt) is not trusted
    assert doubt_ratio(found["f:jit"], found["g:jit"]) == doubt_ratio(found["g:jit"], found["f:jit"]) == speedup.doubt
    if busy == (1.9,):
        assert speedup.doubt.startswith("its variants keep 1.0 and 1.9 processors busy, and what disturbed them")


@pytest.mark.parametrize(("other", "words"), [("f:jit", TOO_FEW_PAIRS), ("h:jit", "")])
def test_too_few_quiet_pairs_make_the_speedup_over_the_baseline_doubtful(other, words):
    outcomes = {
        "f:jit": timed((2.0,) * 3),
        "g:jit": timed((1.0,) * 3, (0.7,) * 3),
        "h:jit": timed((1.0,) * 3, (0.7,) * 3),
    }
    doubtful = samples.TimingDetails(processes=3, doubtful_ratios=True)
    outcomes["g:jit"]["timing"] = msgspec.structs.replace(outcomes["g:jit"]["timing"], details=doubtful)
    found = variants_of(outcomes)

    assert doubt_ratio(found["g:jit"], found[other]) == doubt_ratio(found[other], found["g:jit"]) == words
    assert found["g:jit"].read("speedup").doubt == TOO_FEW_PAIRS


def test_a_ratio_over_the_baseline_is_the_speedup_also_where_the_baselines_time_was_set_aside():
    ratios = (0.5, 0.6, 0.7, 0.8)
    found = variants_of({"f:eager": timed((None, 4.0, 4.0, 4.0)), "f:jit": timed((2.0,) * 4, ratios)})

    over_baseline = compare_paired(found["f:jit"], found["f:eager"])

    assert over_baseline == speedup(ratios)
    assert over_baseline.estimate == pytest.approx(found["f:jit"].read("speedup").estimate)
    assert compare_paired(found["f:eager"], found["f:jit"]).estimate == pytest.approx(1 / over_baseline.estimate)


def test_the_looks_of_a_ratio_are_those_of_the_side_that_was_looked_at_more_often():
    def ratio(own, other):
        outcomes = {"f:jit": timed((2.0,) * 3), "g:jit": timed((1.0,) * 3, (0.5, 0.6, 0.7))}
        for probes, looks in zip(outcomes.values(), (other, own), strict=True):
            details = samples.TimingDetails(processes=3, looks=looks)
            probes["timing"] = msgspec.structs.replace(probes["timing"], details=details)
        found = variants_of(outcomes)
        return compare_paired(found["g:jit"], found["f:jit"])

    assert ratio(1, 3) == ratio(3, 1) == ratio(3, 3) != ratio(1, 1)
    assert ratio(1, 3) == speedup((0.5, 0.6, 0.7), looks=3)


def test_a_paired_ratio_has_the_bounds_that_are_shown_and_those_of_verdicts():
    outcomes = {"f:jit": timed((2.0,) * 3), "g:jit": timed((1.0,) * 3, (0.5, 0.6, 0.7))}
    found = variants_of(outcomes, settings=samples.settings(shown_confidence=0.95))

    ratio = compare_paired(found["g:jit"], found["f:jit"])

    shown, decisive = (speedup((0.5, 0.6, 0.7), confidence=confidence) for confidence in (0.95, 0.99))
    assert (ratio.low, ratio.high) == (shown.low, shown.high)
    assert ratio.decisive == decisive


def test_a_ratio_of_two_variants_is_the_difference_of_theirs_to_the_baseline_in_the_same_process():
    found = variants_of(
        {
            "f:eager": timed((4.0, 4.0, None, 4.0)),
            "f:jit": timed((2.0, 2.0, 2.0, 2.0), (math.log(2), None, math.log(2), math.log(2))),
            "g:jit": timed((1.0, 1.0, 1.0, 1.0), (math.log(4), math.log(4), math.log(4), math.log(8))),
        }
    )

    assert read_log_ratios(found["f:eager"]) == (0.0, 0.0, 0.0, 0.0)
    assert compare_paired(found["g:jit"], found["f:jit"]).count == 3
    assert compare_paired(found["g:jit"], found["f:jit"]).estimate == pytest.approx(16 ** (1 / 3))
    assert compare_paired(found["f:eager"], found["f:jit"]).estimate == pytest.approx(0.5)


def test_without_a_time_or_a_common_process_there_is_no_ratio():
    found = variants_of({"f:eager": timed((4.0, None)), "f:jit": timed((1.0,), (None,)), "g:jit": {}})

    assert read_log_ratios(found["g:jit"]) == ()
    assert compare_paired(found["f:eager"], found["f:jit"]) is None


@pytest.mark.parametrize(
    ("outcomes", "lack", "metric"),
    [
        ({"f:eager": {}, "f:aot": {}}, Lack.NOT_DEFINED, "break_even_calls"),
        ({"g:eager": {}, "f:jit": {}}, Lack.NOT_DEFINED, "break_even_calls"),
        ({"f:eager": {}, "f:jit": timed((1.0,))}, Lack.ENDED, "execution_s"),
        ({"f:eager": timed((2.0,)), "f:jit": timed((1.0,), (0.7,))}, Lack.NOT_LOOKED, "first_call_s"),
    ],
)
def test_when_jit_pays_is_not_told_without_both_times_of_one_implementation(outcomes, lack, metric):
    *_, last = variants_of(outcomes).values()

    fault = last.read("break_even_calls").fault

    assert (fault.lack, fault.metric) == (lack, metric)


@pytest.mark.parametrize(("log_ratio", "lack"), [(0.001, Lack.NO_DIFFERENCE), (-1.0, Lack.NEVER)])
def test_jit_that_is_not_faster_never_pays(log_ratio, lack):
    cold = compiled(first_call_s=(1.0,))
    jit_s = math.exp(-log_ratio)
    found = variants_of(
        {"f:eager": {**timed((1.0,) * 3), **cold}, "f:jit": {**timed((jit_s,) * 3, (log_ratio,) * 3), **cold}}
    )

    assert found["f:jit"].read("break_even_calls").fault.lack is lack


def test_eager_code_of_another_implementation_is_not_found():
    found = variants_of({"f:eager": {}, "f:jit": {}, "g:jit": {}})

    assert find_eager(found["f:jit"]).planned.name == "f:eager"
    assert find_eager(found["g:jit"]) is None


@pytest.mark.parametrize("declared", [None, 0, -1, 10**400, 1e300])
def test_a_damaged_or_missing_cost_gives_no_rate_and_no_ratio_to_it(declared):
    outcomes = {"f:jit": {**timed((1.0,)), **compiled(counted_flops=(1,))}}
    one = variants_of(outcomes, cost=Cost(flops=declared))["f:jit"]

    for metric in ("achieved_flops", "flops_over_declared"):
        assert one.read(metric).fault.lack is Lack.NOT_DEFINED
    least = variants_of({"f:jit": {**timed((0.5,), contended=1), **compiled(counted_flops=(3,))}}, cost=Cost(flops=1))
    rate = least["f:jit"].read("achieved_flops")
    assert (rate.estimate, rate.contended) == (pytest.approx(2.0), True)
    assert least["f:jit"].read("flops_over_declared").estimate == 3.0


@pytest.mark.parametrize("capacity", [None, 0, -1, 10**400, 2**63])
def test_a_device_whose_memory_nobody_tells_has_no_share(capacity):
    one = variants_of({"f:jit": {"memory": samples.memory(1, 1, 1)}}, memory_bytes=capacity)["f:jit"]

    assert one.read("capacity_share").fault.lack is Lack.NOT_DEFINED


def cheaper_with_jit(calls: int, eager_s: int, jit_s: int, eager_cold_s: int, jit_cold_s: int) -> bool:
    """Whether jit has cost no more than eager code after so many calls, the first of them cold."""
    return jit_cold_s + (calls - 1) * jit_s <= eager_cold_s + (calls - 1) * eager_s


@given(
    eager_s=st.integers(1, 20), jit_s=st.integers(1, 20), eager_cold_s=st.integers(0, 50), jit_cold_s=st.integers(0, 50)
)
@example(eager_s=1, jit_s=1, eager_cold_s=1, jit_cold_s=1)
@example(eager_s=1, jit_s=1, eager_cold_s=1, jit_cold_s=2)
@example(eager_s=2, jit_s=1, eager_cold_s=1, jit_cold_s=1)
@example(eager_s=1, jit_s=2, eager_cold_s=2, jit_cold_s=1)
def test_break_even_is_the_first_call_from_which_on_jit_has_cost_no_more(eager_s, jit_s, eager_cold_s, jit_cold_s):
    costs = (eager_s, jit_s, eager_cold_s, jit_cold_s)
    # Costs are lines in the number of calls: where jit is cheaper at 100 calls, it stays so or has the shorter call.
    stays = jit_s < eager_s or (jit_s == eager_s and jit_cold_s <= eager_cold_s)
    expected = next(calls for calls in range(1, 100) if cheaper_with_jit(calls, *costs)) if stays else None

    assert count_break_even(*costs) == expected


def paying(log_ratios, *, eager_cold_s=(1.0,) * 3, jit_cold_s=(101.0,) * 3, eager_s=(1.0,) * 3):
    """When jit pays, of an eager call of about a second and a cold start that takes about 100 s longer."""
    jit = timed([1.0 / math.exp(one) for one in log_ratios], log_ratios)
    found = variants_of(
        {
            "f:eager": {**timed(eager_s), **compiled(first_call_s=eager_cold_s)},
            "f:jit": {**jit, **compiled(first_call_s=jit_cold_s)},
        }
    )
    return found["f:jit"].read("break_even_calls")


def spread(log_ratio, by):
    """Of three processes; half of the 99 % interval is 5.7301 times as wide, t of 2 degrees over the root of 3."""
    return log_ratio - by, log_ratio, log_ratio + by


def test_cold_starts_and_the_eager_call_widen_the_range():
    speedup = spread(math.log(2.1), 0.01)
    alone = paying(speedup).interval

    wider = [
        paying(speedup, jit_cold_s=(100.0, 101.0, 102.0)).interval,
        paying(speedup, eager_cold_s=(0.5, 1.0, 2.0)).interval,
        paying(speedup, eager_s=(0.98, 1.0, 1.02)).interval,
    ]

    assert all(one.low < alone.low and one.high > alone.high for one in wider)


SURE, UNSURE = spread(math.log(2.1), 0.01), spread(math.log(1.1), 0.1)


@pytest.mark.parametrize(
    ("log_ratios", "cold", "calls"),
    [
        (SURE, {}, (183, 192, 203)),  # gains of 1.9832 to 2.2241: 1 + 100 / (1 - 1 / gain)
        (UNSURE, {}, (207, 1101, None)),  # at most a speedup of 1.1 * 1.7736
        (SURE, {"jit_cold_s": (101.0,)}, (None, 192, None)),
    ],
    ids=["a range", "a speedup that may be none", "no interval of the cold starts"],
)
def test_jit_pays_between_the_fewest_and_the_most_calls_that_the_speedup_allows(log_ratios, cold, calls):
    found = paying(log_ratios, **cold)

    assert (found.interval.low, found.interval.estimate, found.interval.high) == calls
    assert found.fault is None
    nothing_saved = paying(UNSURE, jit_cold_s=(1.0,) * 3)  # a cold start that costs nothing
    assert nothing_saved.fault.lack is Lack.NO_DIFFERENCE


# Variances of 0.04, 4 degrees of freedom.
@pytest.mark.parametrize(("settings", "t"), [({}, 4.604095), ({"shown_confidence": 0.95}, 2.776445)])
def test_what_the_cache_saves_has_the_interval_of_a_difference_of_means(settings, t):
    values = {"cold_s": (1.0, 1.2, 1.4), "cached_s": (0.9, 1.1, 1.3)}
    outcomes = {"f:jit": {"caching": Outcome(status=Status.OK, values=values)}}
    one = variants_of(outcomes, settings=samples.settings(**settings))["f:jit"]

    saving = one.read("cache_saving_s")

    deviation = math.sqrt(2 * 0.04 / 3)
    interval, decisive = saving.interval, saving.interval.decisive
    assert (interval.low, interval.high) == pytest.approx((0.1 - t * deviation, 0.1 + t * deviation), rel=1e-6)
    assert (decisive.high - 0.1) / deviation == pytest.approx(4.604095, rel=1e-6)
    assert saving.values == (saving.estimate,)
