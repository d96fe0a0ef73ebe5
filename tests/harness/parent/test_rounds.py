"""When a case has been looked at often enough, or for long enough."""

import math

import pytest

from harness.parent import rounds
from harness.parent.rounds import are_cold_rounds_over, are_launches_over, are_precise
from harness.record import Outcome, Settings, Status
from tests import samples

NARROW, WIDE = (0.0, 0.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 1.0, 0.0)


def settings(**changes) -> Settings:
    return samples.settings(launches=None, **{"looks": (5, 8, 12), "case_limit_s": 12.0, **changes})


def timing(log_ratios=(), times=(1.0, 1.0, 1.0)) -> Outcome:
    return Outcome(status=Status.OK, values={"execution_s": times, "log_ratio": log_ratios})


# Cold processes


@pytest.mark.parametrize(
    ("count", "elapsed_s", "share_s", "over"),
    [
        (3, 4.0, 100.0, False),  # a third of the case's limit of 12 s
        (3, 4.1, 100.0, True),
        (3, 2.0, 6.0, False),  # or of its share, where that is less
        (3, 2.1, 6.0, True),
        (2, 18.0, 100.0, False),  # one and a half times the limit
        (2, 18.1, 100.0, True),
        (2, 18.0, 4.0, False),  # what any case may take, 12 s, while the share is a third of that
        (2, 18.1, 4.0, True),
        (2, 5.9, 3.9, True),  # below a third the run is late: one and a half times the share
        (2, 5.8, 3.9, False),
    ],
)
def test_cold_rounds_end_where_they_take_too_much_of_the_cases_time(monkeypatch, count, elapsed_s, share_s, over):
    monkeypatch.setitem(rounds.CASE_LIMIT_S, "quick", 12.0)

    assert are_cold_rounds_over(count, elapsed_s, share_s, settings()) is over


def test_cold_rounds_whose_number_is_fixed_are_cut_by_no_time():
    fixed = samples.settings(launches=5)

    assert not are_cold_rounds_over(4, 1e9, 1e-9, fixed)


# Launches


@pytest.mark.parametrize(
    ("count", "elapsed_s", "timings", "over"),
    [
        (5, 0.0, [timing(NARROW)], True),
        (5, 0.0, [timing(WIDE)], False),
        (6, 0.0, [timing(NARROW)], False),  # not one of the looks
        (8, 0.0, [timing(NARROW)], True),
        (11, 0.0, [timing(WIDE)], False),
        (3, 7.0, [timing(WIDE)], False),
        (3, 7.1, [timing(WIDE)], True),
        (2, 7.1, [timing(WIDE)], False),  # too few for an interval
    ],
)
def test_launches_end_when_they_are_precise_at_a_look_or_have_taken_their_time(count, elapsed_s, timings, over):
    assert are_launches_over(count, elapsed_s, 7.0, settings(), timings) is over


def test_a_fixed_number_of_launches_is_run_whatever_it_takes():
    fixed = samples.settings(launches=4, looks=(4,))

    assert not are_launches_over(3, 1e9, 0.0, fixed, [timing(NARROW)])


# Precision


@pytest.mark.parametrize(("confidence", "precise"), [(0.99, False), (0.90, True)])
def test_precision_is_that_of_the_runs_own_confidence(confidence, precise):
    # Three logarithms 0, 0, d have a standard error of d / 3: t at 99 % is 9.92, at 90 % 2.92, of two degrees.
    d = 3 * 0.02 / math.sqrt(9.924843 * 2.919986)
    narrow = settings(confidence=confidence, looks=(3,), target_half_width=0.02)

    assert are_precise([timing((0.0, 0.0, d))], narrow) is precise


def test_the_error_is_shared_among_all_looks():
    d = 3 * 0.02 / math.sqrt(9.924843 * 17.277)  # t at 99 %, and at 99 2/3 %, of two degrees of freedom
    target = {"target_half_width": 0.02}

    assert are_precise([timing((0.0, 0.0, d))], settings(looks=(3,), **target))
    assert not are_precise([timing((0.0, 0.0, d))], settings(looks=(3, 5, 8), **target))


def test_every_ratio_has_to_be_precise():
    assert are_precise([timing(NARROW), timing(NARROW)], settings())
    assert not are_precise([timing(NARROW), timing(WIDE)], settings())


def test_two_launches_are_never_precise():
    assert not are_precise([timing((0.0, 0.0))], settings())


@pytest.mark.parametrize(("times", "precise"), [((1.0, 1.0, 1.0), True), ((1.0, 2.0, 1.0), False)])
def test_where_there_is_no_ratio_the_times_have_to_be(times, precise):
    assert are_precise([timing((), times)], settings()) is precise


def test_launches_that_lack_a_variant_do_not_count():
    assert are_precise([timing((None, *NARROW))], settings())
