"""What a run can detect, and why some speedups scatter far more than the others."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.precision import (
    LEAST_OF_ONE_SPEED,
    LEAST_STEP,
    WILD,
    describe_smallest,
    explain_scatter,
    find_two_speeds,
    is_wild,
    list_smallest,
    suggest_more,
)
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.results import list_results
from tests import samples

PROCESSES = 8
EVEN = (1.0, 1.01, 0.99, 1.02, 0.98, 1.01, 0.99, 1.0)


def run_of(*unusual, baseline_factors=EVEN, mode="jit", parallelism=(), usual=EVEN, cases=12):
    """A run in which the first variants' times have these factors, and the others are usual ones."""

    def timing(factors, baseline_factors=None, parallelism=()):
        values = {"execution_s": tuple(1e-3 * factor for factor in factors), "parallelism": tuple(parallelism)}
        if baseline_factors is not None:
            pairs = zip(factors, baseline_factors, strict=True)
            values["log_ratio"] = tuple(math.log(base / own) for own, base in pairs)
        return samples.with_values(samples.timing(1e-3, processes=PROCESSES), **values)

    pairs = []
    for n, own in enumerate([*unusual, *[usual] * (cases - len(unusual))]):
        names = ("f:jit", f"g:{mode}")
        planned = samples.planned_case(params={"n": n}, variants=names, baseline="f:jit")
        base = baseline_factors if n == 0 else EVEN[::-1]
        outcomes = {"f:jit": {"timing": timing(base)}, names[1]: {"timing": timing(own, base, parallelism)}}
        pairs.append((planned, samples.record(planned, outcomes)))
    return samples.run(*pairs)


def explain(factors, *, mode="jit", **others):
    """What is said of a speedup whose variant's times have these factors, in a run of eleven usual ones."""
    first, *_ = Run(run_of(factors, mode=mode, **others)).cases
    return explain_scatter(first.variant(f"g:{mode}"))


def test_json_has_the_smallest_detectable_difference_of_each_speedup():
    run = run_of()
    found = {row["variant"]: row["smallest_difference"] for row in list_results(run)}
    expected = list(list_smallest(variant for case in Run(run).cases for variant in case.variants))

    assert found == {"f:jit": None, "g:jit": expected[-1]}
    assert all(0.03 <= smallest < 0.2 for smallest in expected)


def test_a_speedup_that_scatters_as_the_others_needs_no_reason():
    assert explain(EVEN) == ""


def test_the_side_that_has_two_speeds_is_named_with_both():
    two = (1.0, 3.0, 1.01, 3.03, 0.99, 3.0, 1.0, 1.02)

    own, of_baseline = explain(two), explain(EVEN, baseline_factors=two)

    assert "g:jit has two speeds, 1.00\u202fms in 5 of 8 processes and 3.00\u202fms in the others" in own
    assert "f:jit has two speeds, 1.00\u202fms in 5 of 8 processes and 3.00\u202fms in the others" in of_baseline


def test_threads_that_share_a_core_in_the_slow_processes_are_the_reason():
    two = (1.0, 2.0, 1.01, 2.02, 0.99, 2.0, 1.0, 1.02)
    busy = [1.05 if factor > 1.5 else 1.9 for factor in two]

    assert explain(two, parallelism=busy).endswith("its threads shared a core there: parallelism 1.1 instead of 1.9")
    assert "shared a core" not in explain(two, parallelism=[1.9] * PROCESSES)


def test_a_few_slow_processes_are_named_and_a_second_thread_if_calls_are_short():
    one = (1.0, 1.01, 0.99, 9.0, 1.02, 0.98, 1.0, 1.01)
    short = tuple(factor * 0.01 for factor in one)

    assert "g:jit takes up to 9.00\u202fms in 1 of 8 processes, usually 1.01\u202fms" in explain(one)
    assert "second thread" not in explain(one, parallelism=[1.6] * PROCESSES)
    assert explain(short, parallelism=[1.6] * PROCESSES).endswith("its short calls wakes a second thread")
    assert "second thread" not in explain(short, parallelism=[1.0] * PROCESSES)


def test_a_speedup_without_plausible_times_has_a_reason_all_the_same():
    ratios = (0.0, 0.9, 0.1, 2.0, 0.2, 1.5, 0.3, 3.0)
    run = run_of(EVEN)
    damaged = samples.change_timings(
        run,
        lambda timing, name: samples.with_values(
            timing, execution_s=(), **({"log_ratio": ratios} if "log_ratio" in timing.values else {})
        ),
    )

    assert all(isinstance(explain_scatter(variant), str) for case in Run(damaged).cases for variant in case.variants)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("eager", "each call of g:eager starts several programs"),
        ("mixed", "each call of g:mixed starts several programs"),
        ("jit", "the record does not show why"),
        ("aot", "the record does not show why"),
    ],
)
def test_without_two_speeds_the_mode_says_what_can_differ(mode, words):
    assert words in explain((1.0, 1.3, 1.7, 2.2, 2.9, 3.7, 4.9, 6.4), mode=mode)


def test_a_peer_scatters_by_itself_and_is_compared_with_peers():
    assert "processes of its own" in explain((1.0, 1.3, 1.7, 2.2, 2.9, 3.7, 4.9, 6.4), mode="native")
    wide = (1.0, 1.3, 0.7, 1.2, 0.8, 1.3, 0.7, 1.0)
    assert explain((1.0, 1.3, 1.7, 2.2, 2.9, 3.7, 4.9, 6.4), mode="native", usual=wide) == ""


@pytest.mark.parametrize(("times", "expected"), [(WILD * 0.99, False), (WILD * 1.01, True)])
def test_wild_is_ten_times_the_usual_deviation(times, expected):
    assert is_wild((times * 0.04) ** 2, 0.04**2) is expected
    assert not is_wild(1.0, 0.0)


@given(st.lists(st.one_of(st.none(), st.floats(1e-9, 1e9)), max_size=12))
def test_two_speeds_are_groups_of_several_processes_that_lie_apart(times_s):
    speeds = find_two_speeds(times_s)

    if speeds is None:
        return
    fast, slow = ([times_s[place] for place in places] for places in (speeds.fast, speeds.slow))
    assert min(len(fast), len(slow)) >= LEAST_OF_ONE_SPEED
    assert len(fast) + len(slow) == sum(time_s is not None for time_s in times_s)
    step, whole = math.log(min(slow) / max(fast)), math.log(max(slow) / min(fast))
    assert step >= LEAST_STEP * whole * (1 - 1e-9) > 0


def test_times_that_lie_anywhere_seldom_look_like_two_speeds():
    draw = random.Random(1)

    for count in (4, 6, 8, 12):
        found = sum(find_two_speeds([math.exp(draw.random()) for _ in range(count)]) is not None for _ in range(2000))
        assert found <= 40, count


@pytest.mark.parametrize(
    "times_s", [(), (1.0,), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 9.0), (1.0, 2.0, 3.0, 4.0, 5.0), (None, None)]
)
def test_one_speed_an_outlier_and_a_spread_are_no_two_speeds(times_s):
    assert find_two_speeds(times_s) is None


@pytest.mark.parametrize(
    ("smallest", "sentence"),
    [
        ([], ""),
        ([0.0594], "Smallest detectable difference of its one speedup: 5.9\u202f%"),
        ([8.91], "Smallest detectable difference of its one speedup: a factor of 9.9"),
        (
            [0.03, 0.04, 0.123, 0.5, 0.6],
            "Smallest detectable difference of 5 speedups: median 12\u202f%, 90th percentile 56\u202f%",
        ),
    ],
)
def test_what_a_run_detects_is_one_sentence(smallest, sentence):
    assert describe_smallest(smallest) == sentence


@pytest.mark.parametrize(
    ("changes", "option"),
    [({"level": "default"}, "--budget"), ({"level": "quick"}, "A default run"), ({"processes": 5}, "--processes")],
)
def test_a_run_that_misses_what_is_worth_a_verdict_suggests_what_detects_more(changes, option):
    settings = samples.settings(**changes)

    assert suggest_more([0.03, 0.03, 0.5], settings) == suggest_more([], settings) == ""
    assert option in suggest_more([0.031], settings)
