"""How many rounds the time allows, and what the fewest do without."""

import pytest

from harness.parent.pace import Pace
from harness.parent.rounds import TOO_SLOW_S, count_rounds, leave_out
from harness.plan.launches import Launch
from tests import samples

CASES = [samples.planned_case(name, variants=("a:eager", "b:eager", "a:jit")) for name in ("selu", "matmul")]


def timing(case, index: int, *variants: str, extra: bool = False) -> Launch:
    names = variants or ("a:eager", "b:eager", "a:jit")
    return Launch(case=case.id, process="timing", looks={"timing": names}, round=index, extra=extra)


def cold(case, index: int) -> Launch:
    return Launch(case=case.id, process="compilation", looks={"compilation": ("a:jit",)}, round=index)


@pytest.fixture
def pace() -> Pace:
    """Each timing launch takes ten seconds; of it, a:eager six in selu and b:eager four in matmul."""
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


@pytest.mark.parametrize(("left_s", "rounds"), [(140.0, 8), (139.0, 7), (60.0, 4), (59.0, 3), (40.0, 3), (0.0, 3)])
def test_rounds_are_as_many_as_fit_whole_and_never_fewer_than_the_fewest(pace, left_s, rounds):
    assert count_rounds(TO_COME, pace, left_s, done=1) == rounds


def test_rounds_that_are_done_count_where_nothing_is_to_come(pace):
    assert count_rounds([], pace, 100.0, done=5) == 5


def test_nothing_is_left_out_of_what_fits(pace):
    found = leave_out(TO_COME, CASES, pace, 40.0)

    assert (found.slow, found.cold) == ((), ())


@pytest.mark.parametrize(
    ("left_s", "slow"),
    [
        (39.0, [("selu", "a:eager")]),
        (28.0, [("selu", "a:eager")]),  # it saves six seconds in two rounds
        (27.0, [("selu", "a:eager"), ("matmul", "b:eager")]),
        (20.0, [("selu", "a:eager"), ("matmul", "b:eager")]),
        (19.0, [("selu", "a:eager"), ("matmul", "b:eager"), ("selu", "b:eager")]),
        (0.0, [("selu", "a:eager"), ("matmul", "b:eager"), ("selu", "b:eager")]),  # the last is not too slow
    ],
)
def test_the_slowest_eager_variants_are_left_out_until_the_rest_fits(pace, left_s, slow):
    found = leave_out(TO_COME, CASES, pace, left_s)

    assert [(case.workload, variant) for case, variant, _ in found.slow] == slow
    assert found.slow[0][2] == 6.0
    assert found.cold == ()


def test_only_eager_variants_are_left_out_however_slow_others_are(pace):
    pace.add_variant(CASES[0].id, "a:jit", 100.0)

    found = leave_out(TO_COME, CASES, pace, 0.0)

    assert {variant for _, variant, _ in found.slow} == {"a:eager", "b:eager"}


def test_an_eager_variant_that_is_not_timed_any_more_is_not_left_out_again(pace):
    without = [timing(case, index, "a:jit") for index in (1, 2) for case in CASES]

    assert leave_out(without, CASES, pace, 0.0).slow == ()


def test_where_that_is_not_enough_the_slowest_cold_processes_of_later_rounds_are_left_out(pace):
    coming = [*[timing(case, 1, "a:jit") for case in CASES], *[cold(case, 1) for case in CASES]]

    assert leave_out(coming, CASES, pace, 26.0).cold == ()
    assert leave_out(coming, CASES, pace, 25.9).cold == (cold(CASES[0], 1),)
    assert leave_out(coming, CASES, pace, 21.9).cold == (cold(CASES[0], 1), cold(CASES[1], 1))


def test_what_a_first_round_looks_at_and_what_fills_the_cache_is_never_left_out(pace):
    refill = Launch(case=CASES[0].id, process="check", looks={"numerics": ("a:jit",)}, round=2, refills=True)

    assert leave_out([cold(CASES[0], 0), refill], CASES, pace, 0.0).cold == ()
