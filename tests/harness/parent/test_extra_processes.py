"""Who is given the time that whole rounds leave."""

import math

import pytest

from jaxmeter.harness.parent.rounds import Width, matters, measure_width, share_out
from jaxmeter.harness.record import Answer, Figure, Outcome, Status
from tests import samples

T_975 = {2: 4.302653, 4: 2.776445}  # of so many degrees of freedom
T_9875 = {4: 3.495406}
CASE = samples.planned_case("selu", variants=("a:jit", "b:jit"))
SETTINGS = samples.settings(level="default", target_half_width=0.02)
LENIENT = samples.settings(level="default", target_half_width=10.0)


def timing(**values) -> Outcome:
    return Outcome(status=Status.OK, values=values)


def case(name: str, **changes):
    return samples.planned_case(name, variants=("a:jit",), **changes)


def test_a_case_matters_that_stands_for_its_workload_or_for_an_answer_or_beside_a_published_figure():
    assert matters(case("selu", represents_workload=True))
    assert matters(case("selu", answer=Answer("Is it?", "a:jit")))
    assert matters(case("selu", published=(samples.claim(Figure(variant="a:jit", value=1.0)),)))
    assert not matters(case("selu"))
    assert not matters(case("selu", represents_workload=True, measures="compilation"))


def test_the_width_is_half_the_95_percent_interval_of_the_widest_ratio():
    ratios = [timing(log_ratio=(0.0, 0.1, 0.2)), timing(log_ratio=(0.0, 0.2, 0.4)), timing(execution_s=(1.0, 9.0, 1.0))]

    found = measure_width(CASE, ratios, LENIENT)

    assert found.half == pytest.approx(0.2 * T_975[2] / math.sqrt(3), rel=1e-6)
    assert (found.case, found.processes) == (CASE, 3)


def test_without_ratios_it_is_that_of_the_times_on_the_logarithm():
    found = measure_width(CASE, [timing(execution_s=(1.0, math.e, math.e**2))], LENIENT)

    assert found.half == pytest.approx(T_975[2] / math.sqrt(3), rel=1e-6)


def test_a_ratio_that_the_most_processes_would_leave_wide_does_not_count():
    # With 24 processes: 2.07 / sqrt(24) standard deviations, and ±15 % is five times the target.
    narrow, wild = timing(log_ratio=(0.0, 0.1, 0.2)), timing(log_ratio=(0.0, 0.6, 1.2))
    settings = samples.settings(level="default", target_half_width=0.03)

    assert measure_width(CASE, [narrow, wild], settings) == measure_width(CASE, [narrow], settings) is not None
    assert measure_width(CASE, [wild], settings) is None


@pytest.mark.parametrize("values", [(0.1, 0.2), (0.1, None, 0.2), ()])
def test_fewer_than_three_processes_have_no_width(values):
    assert measure_width(CASE, [timing(log_ratio=values)], LENIENT) is None


def test_more_processes_narrow_it_by_the_t_multiplier_and_the_root_of_their_number():
    width = Width(CASE, T_975[2] / math.sqrt(3), 3)

    assert width.predict(0) == pytest.approx(width.half)
    # 4 degrees of freedom, at 97.5 %: the error is shared with the look that decided.
    assert width.predict(2) == pytest.approx(T_9875[4] / math.sqrt(5), rel=1e-6)


def share(widths, left_s: float, seconds: float = 1.0, **settings) -> dict[str, int]:
    names = {width.case.id: width.case.workload for width in widths}
    of_level = samples.settings(**{"level": "default", **settings})
    given = share_out(widths, dict.fromkeys(names, seconds), left_s, of_level)
    return {names[case_id]: count for case_id, count in given.items()}


def test_of_equally_quick_cases_the_widest_is_given_processes_until_another_gains_more():
    wide, narrow = Width(case("selu"), 0.5, 3), Width(case("mlp"), 0.3, 3)

    assert share([narrow, wide], 1.0) == {"selu": 1}
    assert share([narrow, wide], 2.0) == {"selu": 2}
    later = share([narrow, wide], 6.0)
    assert later["selu"] > later["mlp"] > 0


@pytest.mark.parametrize(("half", "slow_s", "left_s", "processes"), [(0.5, 4.0, 4.0, 4), (0.4, 3.0, 2.0, 2)])
def test_the_quick_case_is_given_processes_first_and_no_more_than_there_is_time_for(half, slow_s, left_s, processes):
    slow, quick = Width(case("selu"), 0.5, 3), Width(case("mlp"), half, 3)
    seconds = {slow.case.id: slow_s, quick.case.id: 1.0}

    assert share_out([slow, quick], seconds, left_s, SETTINGS) == {quick.case.id: processes}


@pytest.mark.parametrize(
    ("processes", "fewest"),
    [(3, 1), (5, 2), (8, 3), (10, 3), (11, 4), (12, 4), (13, 4), (18, 6), (19, None), (24, None)],
)
def test_it_takes_several_processes_to_make_up_for_the_look_that_they_cost(processes, fewest):
    width = Width(CASE, 0.5, processes)

    assert width.find_fewest(24) == fewest
    if fewest is not None:
        assert width.predict(fewest) < 0.5 <= min((width.predict(more) for more in range(1, fewest)), default=0.5)


def test_time_for_too_few_processes_to_narrow_it_goes_to_another():
    wide, other = Width(case("selu"), 0.5, 10), Width(case("mlp"), 0.3, 3)
    fewest = wide.find_fewest(24)

    assert share([wide, other], fewest - 0.1) == {"mlp": fewest - 1}
    assert share([wide], fewest - 0.1) == {}
    assert share([wide], float(fewest)) == {"selu": fewest}
    assert share([wide], fewest + 1.0) == {"selu": fewest + 1}
    assert share([Width(case("selu"), 0.5, 21)], 100.0) == {}


def test_nobody_is_given_a_process_for_which_no_time_is_left_or_that_is_narrow_enough():
    wide = Width(case("selu"), 0.5, 3)

    assert [share([wide], left_s) for left_s in (2.9, 0.9, 0.0)] == [{"selu": 2}, {}, {}]
    assert share([Width(case("selu"), 0.0200, 3)], 100.0, target_half_width=0.02) == {}
    assert share([Width(case("selu"), 0.0201, 3)], 100.0, target_half_width=0.02) == {"selu": 1}


@pytest.mark.parametrize("level", ["default", "full"])
def test_a_level_has_a_limit_of_processes(level):
    assert share([Width(case("selu"), 100.0, 3)], 1000.0, level=level) == {"selu": 24 - 3}
