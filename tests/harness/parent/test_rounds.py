"""How many rounds the time allows, and what the fewest do without."""

import msgspec
import pytest

from jaxmeter.harness.parent.rounds import TOO_SLOW_S, Coming, Pace, count_rounds, leave_out
from jaxmeter.harness.plan.processes import PlannedProcess
from tests import samples

CASES = [samples.planned_case(name, variants=("a:eager", "b:eager", "a:jit")) for name in ("selu", "matmul")]


ALL = ("a:eager", "b:eager", "a:jit")


def timing(case, index: int, *variants: str, extra: bool = False) -> Coming:
    planned = PlannedProcess(case=case.id, kind="timing", assignments={"timing": ALL}, round=index, extra=extra)
    return Coming(planned, variants or ALL)


def cold(case, index: int) -> Coming:
    planned = PlannedProcess(case=case.id, kind="compilation", assignments={"compilation": ("a:jit",)}, round=index)
    return Coming(planned, ("a:jit",))


@pytest.fixture
def pace() -> Pace:
    """Each timing process takes ten seconds; of it, a:eager six in selu and b:eager four in matmul."""
    pace = Pace()
    for case, slow_s in zip(CASES, ({"a:eager": 6.0}, {"b:eager": 4.0}), strict=True):
        pace.add(timing(case, 0), 10.0)
        for variant in ("a:eager", "b:eager", "a:jit"):
            pace.add_variant(case.id, variant, slow_s.get(variant, TOO_SLOW_S))
    pace.add_variant(CASES[0].id, "b:eager", 2.0)
    pace.add(cold(CASES[0], 0), 4.0)
    pace.add(cold(CASES[1], 0), 2.0)
    return pace


TO_COME = [timing(case, index, extra=index >= 3) for index in range(1, 8) for case in CASES]
FEWEST = [one for one in TO_COME if not one.process.extra]


@pytest.mark.parametrize(("left_s", "rounds"), [(140.0, 8), (139.0, 7), (60.0, 4), (59.0, 3), (40.0, 3), (0.0, 3)])
def test_rounds_are_as_many_as_fit_whole_and_never_fewer_than_the_fewest(pace, left_s, rounds):
    assert count_rounds(TO_COME, pace, left_s, done=1) == rounds


def test_rounds_that_are_done_count_where_nothing_is_to_come(pace):
    assert count_rounds([], pace, 100.0, done=5) == 5


@pytest.mark.parametrize("left_s", [40.0, 15.9, 0.0], ids=["it fits", "no room even so", "no time"])
def test_nothing_is_left_out_of_what_fits_or_where_that_makes_no_room(pace, left_s):
    """The fourth eager variant takes no more than any other, and is not too slow."""
    found = leave_out(FEWEST, CASES, pace, left_s)

    assert (found.slow, found.cold) == ((), ())


@pytest.mark.parametrize(
    ("left_s", "slow"),
    [
        (39.0, [("selu", "a:eager")]),
        (28.0, [("selu", "a:eager")]),  # it saves six seconds in two rounds
        (27.0, [("selu", "a:eager"), ("matmul", "b:eager")]),
        (20.0, [("selu", "a:eager"), ("matmul", "b:eager")]),
        (19.0, [("selu", "a:eager"), ("matmul", "b:eager"), ("selu", "b:eager")]),
        (16.0, [("selu", "a:eager"), ("matmul", "b:eager"), ("selu", "b:eager")]),
    ],
)
def test_the_slowest_eager_variants_are_left_out_until_the_rest_fits(pace, left_s, slow):
    found = leave_out(FEWEST, CASES, pace, left_s)

    assert [(case.workload, variant) for case, variant, _ in found.slow] == slow
    assert found.slow[0][2] == 6.0
    assert found.cold == ()


def test_only_eager_variants_are_left_out_however_slow_others_are(pace):
    pace.add_variant(CASES[0].id, "a:jit", 100.0)

    found = leave_out(FEWEST, CASES, pace, 16.0)

    assert {variant for _, variant, _ in found.slow} == {"a:eager", "b:eager"}


def test_an_eager_variant_that_is_not_timed_any_more_is_not_left_out_again(pace):
    without = [timing(case, index, "b:eager", "a:jit") for index in (1, 2) for case in CASES]

    assert [variant for _, variant, _ in leave_out(without, CASES, pace, 19.0).slow] == ["b:eager"]


def test_where_that_is_not_enough_the_slowest_cold_processes_of_later_rounds_are_left_out(pace):
    coming = [*[timing(case, 1, "b:eager", "a:jit") for case in CASES], *[cold(case, 1) for case in CASES]]
    slow_s, rest_s = 4.0 + 2.0, 4.0 + 9.0 - 6.0  # of b:eager; of all timing without that

    assert leave_out(coming, CASES, pace, rest_s + 6.0).cold == ()
    assert leave_out(coming, CASES, pace, rest_s + 5.9).cold == (cold(CASES[0], 1),)
    assert leave_out(coming, CASES, pace, rest_s + 1.9).cold == (cold(CASES[0], 1), cold(CASES[1], 1))
    assert slow_s == pace.predict_variant_s(CASES[0].id, "b:eager") + pace.predict_variant_s(CASES[1].id, "b:eager")


def test_cold_processes_of_cases_that_measure_compiling_are_left_out_last(pace):
    cases = [msgspec.structs.replace(CASES[0], measures="compilation"), CASES[1]]
    coming = [cold(case, 1) for case in CASES]

    assert leave_out(coming, cases, pace, 5.9).cold == (cold(CASES[1], 1),)
    assert leave_out(coming, cases, pace, 3.9).cold == (cold(CASES[1], 1), cold(CASES[0], 1))


def test_what_a_first_round_looks_at_and_what_fills_the_cache_is_never_left_out(pace):
    check = PlannedProcess(case=CASES[0].id, kind="check", assignments={"numerics": ("a:jit",)}, round=2, refills=True)
    refill = Coming(check, ("a:jit",))
    pace.add(refill, 1.0)

    found = leave_out([cold(CASES[0], 0), refill, cold(CASES[1], 1)], CASES, pace, 5.0)

    assert found.cold == (cold(CASES[1], 1),)
