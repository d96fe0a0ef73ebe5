import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.reporting.compare import claims
from jaxmeter.reporting.compare.claims import ABOUT_SAME, LIKE, ClaimJudgement, ClaimVerdict, Reason, judge_ratio
from jaxmeter.reporting.compare.scaling import Scaling

SAME, OTHER, UNDECIDED = ClaimVerdict.AS_PUBLISHED, ClaimVerdict.DIFFERS, ClaimVerdict.UNDECIDED
OPPOSITE, SMALLER, LARGER = ClaimVerdict.OPPOSITE, ClaimVerdict.SMALLER, ClaimVerdict.LARGER
SAME_DIRECTION = ClaimVerdict.SAME_DIRECTION
EDGE = ABOUT_SAME


def interval(low, high):
    """With its estimate in the middle of the logs."""
    return Interval(low, math.sqrt(low * high), high, 5)


RATIOS = {
    (OPPOSITE, Reason.NONE): [(6, 0.2, 0.3), (0.5, 2.0, 3.0)],
    (SAME, Reason.NONE): [(6, 4.1, 8.9), (0.5, 0.34, 0.74)],
    (SMALLER, Reason.NONE): [(6, 2.0, 3.9), (6, 1.04, 1.05), (0.5, 0.76, 0.8), (6, 1.001, 1.2)],
    (LARGER, Reason.NONE): [(6, 9.1, 20.0), (0.5, 0.2, 0.33)],
    (SAME_DIRECTION, Reason.SIZE_UNSURE): [(6, 3.9, 8.9), (6, 4.1, 9.1), (6, 2.0, 20.0)],
    (UNDECIDED, Reason.INCLUDES_1): [(6, 0.5, 2.0), (6, 1.0, 2.0), (6, 0.5, 1.0), (6, 0.9, 1.05), (1.3, 0.95, 1.05)],
    (UNDECIDED, Reason.TOO_SMALL): [(1.3, 1.01, 1.02)],
    (OTHER, Reason.NO_DIFFERENCE): [(6, 1 / EDGE, EDGE), (6, 1.01, 1.02), (1 / 6, 0.98, 0.99)],
    (SAME, Reason.DO_NOT_DIFFER): [(1.05, 1 / EDGE, EDGE)],
    (OTHER, Reason.DIFFER): [(1.05, 1.11, 1.2), (1.05, 0.8, 0.9)],
    (UNDECIDED, Reason.NEAR_UNSURE): [(1.05, 1.0, 1.2), (1.05, 0.8, 1.0), (1.05, 1.1, 1.2), (1.05, 0.8, 1 / EDGE)],
}
"""By what is judged, the published ratio and the bounds of ours."""


@pytest.mark.parametrize("judgement", RATIOS, ids=" ".join)
def test_a_ratio_is_judged_by_where_the_whole_interval_lies_beside_1_and_beside_theirs(judgement):
    for theirs, low, high in RATIOS[judgement]:
        assert judge_ratio(theirs, interval(low, high), exact=False) == ClaimJudgement(*judgement), (theirs, low, high)


@pytest.mark.parametrize(
    ("theirs", "ours", "judgement"),
    [
        (2.0, 1.0, ClaimJudgement(OTHER, Reason.EQUAL)),
        (2.0, 1.001, ClaimJudgement(SMALLER)),
        (1.2, 1.001, ClaimJudgement(SAME)),
        (2.0, 0.999, ClaimJudgement(OPPOSITE)),
        (1.05, 1.0, ClaimJudgement(SAME, Reason.DO_NOT_DIFFER)),
    ],
)
def test_counts_that_are_the_same_in_all_processes_differ_by_however_little(theirs, ours, judgement):
    assert judge_ratio(theirs, interval(ours, ours), exact=True) == judgement


@pytest.mark.parametrize(("low", "high"), [(None, None), (None, 3.0), (2.0, None)])
def test_without_both_bounds_nothing_is_said(low, high):
    half = Interval(low, 2.5, high, 2)

    assert judge_ratio(6, half, exact=True) == ClaimJudgement(UNDECIDED, Reason.NO_INTERVAL)
    assert claims.judge_exponent(2, Scaling(half)) == ClaimJudgement(UNDECIDED, Reason.NO_INTERVAL)


def test_an_exponent_that_is_bounded_at_the_lower_level_alone_could_be_any():
    shown = Interval(0.8, 1.2, 1.8, 5, Interval(None, 1.2, None, 5))

    assert claims.judge_exponent(2, Scaling(shown)) == ClaimJudgement(UNDECIDED, Reason.ANY_EXPONENT)


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
    assume(not claims.says_about_the_same(theirs))

    assert judge_ratio(theirs, interval(low, high), exact=exact).verdict in {UNDECIDED, OTHER}


def test_a_published_ratio_near_1_claims_no_difference():
    assert [claims.says_about_the_same(one) for one in (1.0, EDGE, 1 / EDGE, 1.11, 0.9)] == [
        True,
        True,
        True,
        False,
        False,
    ]


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

    assert claims.judge_count(theirs, ours) == judgement


EXPONENTS = {
    (SAME, Reason.NONE): [(2, 1.9, 2.1), (2, 1.75, 2.25), (2, 2.1, 2.2)],
    (UNDECIDED, Reason.UNSURE): [(2, 1.74, 2.1), (2, 1.9, 2.26), (2, 1.4, 2.5), (2, 1.0, 1.75)],
    (OTHER, Reason.NONE): [(2, 1.0, 1.74), (2, 2.26, 9.0)],
    (UNDECIDED, Reason.NO_NUMBER): [(None, 1.9, 2.1)],
}


@pytest.mark.parametrize("judgement", EXPONENTS, ids=" ".join)
def test_an_exponent_holds_where_our_whole_interval_is_near_it_so_vague_data_hold_nothing(judgement):
    for theirs, low, high in EXPONENTS[judgement]:
        found = claims.judge_exponent(theirs, Scaling(interval(low, high)))
        assert found == ClaimJudgement(*judgement), (theirs, low, high)


@pytest.mark.parametrize(
    ("slopes", "judgement"),
    [
        (((1.9, 2.1), (1.8, 2.2)), ClaimJudgement(SAME)),
        (((1.0, 1.2), (0.5, 1.5)), ClaimJudgement(OTHER)),
        (((1.0, 1.2), (1.9, 2.1)), ClaimJudgement(UNDECIDED, Reason.UNSURE)),
        (((1.0, 1.2), (2.8, 3.1)), ClaimJudgement(UNDECIDED, Reason.UNSURE)),
        (((1.9, 2.1), (1.5, 2.5)), ClaimJudgement(UNDECIDED, Reason.UNSURE)),
        ((), ClaimJudgement(UNDECIDED, Reason.NO_INTERVAL)),
        (((1.9, 2.1), None), ClaimJudgement(UNDECIDED, Reason.NO_INTERVAL)),
    ],
)
def test_without_an_interval_the_exponents_between_all_sizes_decide(slopes, judgement):
    unbounded = Interval(None, 2.0, None, 3)
    ours = Scaling(unbounded, tuple(interval(*one) if one else unbounded for one in slopes))

    assert claims.judge_exponent(2, ours) == judgement


def test_exponents_between_sizes_decide_nothing_where_a_constant_may_have_bent_them():
    ours = Scaling(Interval(None, 0.6, None, 5), (interval(0.1, 0.2), interval(0.4, 0.6), *[interval(1.1, 1.7)] * 2))

    assert claims.judge_exponent(2, ours) == ClaimJudgement(UNDECIDED, Reason.BESIDE_CONSTANT)
