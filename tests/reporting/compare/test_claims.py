import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.reporting.compare.claims import (
    ABOUT_SAME,
    LIKE,
    ClaimJudgement,
    ClaimVerdict,
    Reason,
    judge_count,
    judge_exponent,
    judge_ratio,
    says_about_the_same,
)
from jaxmeter.reporting.compare.scaling import Scaling

SAME, OTHER, UNDECIDED = ClaimVerdict.AS_PUBLISHED, ClaimVerdict.DIFFERS, ClaimVerdict.UNDECIDED
EDGE = ABOUT_SAME


def interval(low, high):
    """With its estimate in the middle of the logs."""
    return Interval(low, math.sqrt(low * high), high, 5)


@pytest.mark.parametrize(
    ("theirs", "low", "high", "verdict", "reason"),
    [
        (6, 0.2, 0.3, ClaimVerdict.OPPOSITE, Reason.NONE),
        (0.5, 2.0, 3.0, ClaimVerdict.OPPOSITE, Reason.NONE),
        (6, 4.1, 8.9, SAME, Reason.NONE),
        (0.5, 0.34, 0.74, SAME, Reason.NONE),
        (6, 2.0, 3.9, ClaimVerdict.SMALLER, Reason.NONE),
        (6, 1.04, 1.05, ClaimVerdict.SMALLER, Reason.NONE),
        (0.5, 0.76, 0.8, ClaimVerdict.SMALLER, Reason.NONE),
        (6, 9.1, 20.0, ClaimVerdict.LARGER, Reason.NONE),
        (0.5, 0.2, 0.33, ClaimVerdict.LARGER, Reason.NONE),
        (6, 3.9, 8.9, ClaimVerdict.SAME_DIRECTION, Reason.SIZE_UNSURE),
        (6, 4.1, 9.1, ClaimVerdict.SAME_DIRECTION, Reason.SIZE_UNSURE),
        (6, 2.0, 20.0, ClaimVerdict.SAME_DIRECTION, Reason.SIZE_UNSURE),
        (6, 0.5, 2.0, UNDECIDED, Reason.INCLUDES_1),
        (6, 1.0, 2.0, UNDECIDED, Reason.INCLUDES_1),
        (6, 0.5, 1.0, UNDECIDED, Reason.INCLUDES_1),
        (6, 0.9, 1.05, UNDECIDED, Reason.INCLUDES_1),
        (6, 0.95, 1.11, UNDECIDED, Reason.INCLUDES_1),
        (1.3, 0.95, 1.05, UNDECIDED, Reason.INCLUDES_1),
        (1.3, 1.01, 1.02, UNDECIDED, Reason.TOO_SMALL),
        (6, 1.001, 1.2, ClaimVerdict.SMALLER, Reason.NONE),
        (6, 1 / EDGE, EDGE, OTHER, Reason.NO_DIFFERENCE),
        (6, 1.01, 1.02, OTHER, Reason.NO_DIFFERENCE),
        (1 / 6, 0.98, 0.99, OTHER, Reason.NO_DIFFERENCE),
        (1.05, 1 / EDGE, EDGE, SAME, Reason.DO_NOT_DIFFER),
        (1.05, 1.11, 1.2, OTHER, Reason.DIFFER),
        (1.05, 0.8, 0.9, OTHER, Reason.DIFFER),
        (1.05, 1.0, 1.2, UNDECIDED, Reason.NEAR_UNSURE),
        (1.05, 0.8, 1.0, UNDECIDED, Reason.NEAR_UNSURE),
        (1.05, 1.1, 1.2, UNDECIDED, Reason.NEAR_UNSURE),
        (1.05, 0.8, 1 / EDGE, UNDECIDED, Reason.NEAR_UNSURE),
    ],
)
def test_a_ratio_is_judged_by_where_the_whole_interval_lies_beside_1_and_beside_theirs(
    theirs, low, high, verdict, reason
):
    assert judge_ratio(theirs, interval(low, high), exact=False) == ClaimJudgement(verdict, reason)


@pytest.mark.parametrize(
    ("theirs", "ours", "judgement"),
    [
        (2.0, 1.0, ClaimJudgement(OTHER, Reason.EQUAL)),
        (2.0, 1.001, ClaimJudgement(ClaimVerdict.SMALLER)),
        (1.2, 1.001, ClaimJudgement(SAME)),
        (2.0, 0.999, ClaimJudgement(ClaimVerdict.OPPOSITE)),
        (1.05, 1.0, ClaimJudgement(SAME, Reason.DO_NOT_DIFFER)),
    ],
)
def test_counts_that_are_the_same_in_all_processes_differ_by_however_little(theirs, ours, judgement):
    assert judge_ratio(theirs, interval(ours, ours), exact=True) == judgement


@pytest.mark.parametrize(("low", "high"), [(None, None), (None, 3.0), (2.0, None)])
def test_without_both_bounds_nothing_is_said(low, high):
    half = Interval(low, 2.5, high, 2)

    assert judge_ratio(6, half, exact=True) == ClaimJudgement(UNDECIDED, Reason.NO_INTERVAL)
    assert judge_exponent(2, Scaling(half)) == ClaimJudgement(UNDECIDED, Reason.NO_INTERVAL)


def test_an_exponent_that_is_bounded_at_the_lower_level_alone_could_be_any():
    shown = Interval(0.8, 1.2, 1.8, 5, Interval(None, 1.2, None, 5))

    assert judge_exponent(2, Scaling(shown)) == ClaimJudgement(UNDECIDED, Reason.ANY_EXPONENT)


ratios = st.floats(1e-3, 1e3)


@given(theirs=ratios, one=ratios, other=ratios, exact=st.booleans())
def test_turning_both_ratios_over_turns_no_verdict_over(theirs, one, other, exact):
    low, high = sorted((one, other))
    # Floating point may put a value on an edge to either side of it.
    edges = (1.0, ABOUT_SAME, 1 / ABOUT_SAME, 1.03, 1 / 1.03, LIKE, 1 / LIKE)
    values = (theirs, low, high, math.sqrt(low * high), low / theirs, high / theirs)
    assume(all(abs(math.log(value / edge)) > 1e-9 for value in values for edge in edges))

    turned = judge_ratio(1 / theirs, interval(1 / high, 1 / low), exact=exact)

    assert turned == judge_ratio(theirs, interval(low, high), exact=exact)


@given(theirs=ratios, low=st.floats(1e-3, 1.0, exclude_max=True), high=st.floats(1.0, 1e3), exact=st.booleans())
def test_an_interval_on_both_sides_of_1_never_tells_a_direction(theirs, low, high, exact):
    assume(not says_about_the_same(theirs))

    assert judge_ratio(theirs, interval(low, high), exact=exact).verdict in {UNDECIDED, OTHER}


@pytest.mark.parametrize(
    ("theirs", "same"), [(1.0, True), (ABOUT_SAME, True), (1 / ABOUT_SAME, True), (1.11, False), (0.9, False)]
)
def test_a_published_ratio_near_1_claims_no_difference(theirs, same):
    assert says_about_the_same(theirs) is same


@pytest.mark.parametrize(
    ("theirs", "values", "judgement"),
    [
        (2, (2.0, 2.0), ClaimJudgement(SAME)),
        (2, (3.0,), ClaimJudgement(OTHER)),
        (None, (3.0,), ClaimJudgement(OTHER)),
        (2, (2.0, 3.0), ClaimJudgement(UNDECIDED, Reason.UNLIKE_PROCESSES)),
    ],
)
def test_a_count_holds_where_it_is_equal_in_all_processes(theirs, values, judgement):
    ours = Reading(METRICS["compiles"], values, exact=len(set(values)) == 1)

    assert judge_count(theirs, ours) == judgement


@pytest.mark.parametrize(
    ("theirs", "low", "high", "judgement"),
    [
        (2, 1.9, 2.1, ClaimJudgement(SAME)),
        (2, 1.75, 2.25, ClaimJudgement(SAME)),
        (2, 2.1, 2.2, ClaimJudgement(SAME)),
        (2, 1.74, 2.1, ClaimJudgement(UNDECIDED, Reason.UNSURE)),
        (2, 1.9, 2.26, ClaimJudgement(UNDECIDED, Reason.UNSURE)),
        (2, 1.4, 2.5, ClaimJudgement(UNDECIDED, Reason.UNSURE)),
        (2, 1.0, 1.75, ClaimJudgement(UNDECIDED, Reason.UNSURE)),
        (2, 1.0, 1.74, ClaimJudgement(OTHER)),
        (2, 2.26, 9.0, ClaimJudgement(OTHER)),
        (None, 1.9, 2.1, ClaimJudgement(UNDECIDED, Reason.NO_NUMBER)),
    ],
)
def test_an_exponent_holds_where_our_whole_interval_is_near_it_so_vague_data_hold_nothing(theirs, low, high, judgement):
    assert judge_exponent(theirs, Scaling(interval(low, high))) == judgement


@pytest.mark.parametrize(
    ("slopes", "judgement"),
    [
        (((1.9, 2.1), (1.8, 2.2)), ClaimJudgement(SAME)),
        (((1.0, 1.2), (0.5, 1.5)), ClaimJudgement(OTHER)),
        (((1.0, 1.2), (1.9, 2.1)), ClaimJudgement(UNDECIDED, Reason.UNSURE)),
        (((1.0, 1.2), (2.8, 3.1)), ClaimJudgement(UNDECIDED, Reason.UNSURE)),
        (((1.9, 2.1), (1.5, 2.5)), ClaimJudgement(UNDECIDED, Reason.UNSURE)),
        ((), ClaimJudgement(UNDECIDED, Reason.NO_INTERVAL)),
    ],
)
def test_without_an_interval_the_exponents_between_all_sizes_decide(slopes, judgement):
    ours = Scaling(Interval(None, 2.0, None, 3), tuple(interval(*one) for one in slopes))

    assert judge_exponent(2, ours) == judgement


def test_exponents_between_sizes_decide_nothing_where_a_constant_may_have_bent_them():
    ours = Scaling(Interval(None, 0.6, None, 5), (interval(0.1, 0.2), interval(0.4, 0.6), *[interval(1.1, 1.7)] * 2))

    assert judge_exponent(2, ours) == ClaimJudgement(UNDECIDED, Reason.BESIDE_CONSTANT)


def test_one_exponent_between_sizes_that_has_no_bounds_leaves_it_open():
    ours = Scaling(Interval(None, 2.0, None, 3), (interval(1.9, 2.1), Interval(None, 2.0, None, 1)))

    assert judge_exponent(2, ours) == ClaimJudgement(UNDECIDED, Reason.NO_INTERVAL)
