import math
import statistics

import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.across import subtract_means
from jaxmeter.harness.metrics.statistics import Interval

SIDE = st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=8)


def test_a_difference_of_means_has_welchs_interval():
    # By hand: variances 0.29 / 3 and 0.01; quantile of 27 / 7 degrees of freedom at 97.5 %: 2.817474.
    difference = subtract_means((2.0, 2.1, 1.8, 2.5), (1.0, 1.1, 0.9), confidence=0.95)

    half = 2.817474 * math.sqrt(statistics.variance((2.0, 2.1, 1.8, 2.5)) / 4 + 0.01 / 3)
    assert difference.estimate == pytest.approx(1.1)
    assert (difference.low, difference.high) == pytest.approx((1.1 - half, 1.1 + half), rel=1e-6)
    assert difference.count == 3


def test_what_a_side_has_in_common_counts_once_for_each_side():
    sides = (3.0, 4.0, 5.0), (-1.0, 0.0, 1.0)

    found = subtract_means(*sides, confidence=0.95, shared=1.0)

    own, in_common = subtract_means(*sides, confidence=0.95).high - 4, scipy.stats.norm.ppf(0.975)
    assert found.high - 4 == pytest.approx(math.sqrt(own**2 + in_common**2))
    constant = subtract_means([4.0] * 3, [0.0] * 3, confidence=0.95, shared=1.0)
    assert (constant.low, constant.high) == pytest.approx((4 - in_common, 4 + in_common))


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(SIDE, SIDE, st.floats(0.5, 0.999))
def test_the_interval_is_scipys(above, below, confidence):
    found = subtract_means(above, below, confidence=confidence)
    expected = scipy.stats.ttest_ind(above, below, equal_var=False).confidence_interval(confidence)

    # Where all scatter is rounding, SciPy's own variance is no more than that.
    if max(map(statistics.pstdev, (above, below))) > 1e-6 * max(map(abs, (*above, *below))):
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-6)


@given(SIDE, SIDE)
@example([0.1, 0.1, 0.1], [0.3, 0.3, 0.3])
@example([1e-200, 2e-200, 3e-200], [1.0, 1.0, 1.0])
def test_exchanging_both_sides_turns_the_sign(above, below):
    there, back = subtract_means(above, below), subtract_means(below, above)

    assert there.low <= there.estimate <= there.high
    assert (back.low, back.estimate, back.high) == pytest.approx((-there.high, -there.estimate, -there.low))


def test_a_difference_of_fewer_than_three_has_no_interval_and_of_equal_values_one_without_width():
    assert subtract_means((6.0, 6.0), (2.0,) * 3) == Interval(None, 4.0, None, 2)
    assert subtract_means((6.0,) * 3, (2.0,) * 4) == Interval(4.0, 4.0, 4.0, 3)


@pytest.mark.parametrize("confidence", [-0.1, 1.0, 5.0])
def test_a_confidence_that_no_interval_can_have_gives_no_bounds(confidence):
    # A damaged record may hold any number.
    assert subtract_means((1.0, 2.0, 3.0), (1.0, 2.0, 3.0), confidence=confidence).low is None


@pytest.mark.parametrize("sides", [((), (1.0,)), ((1.0,), ())])
def test_a_side_without_values_is_an_error(sides):
    with pytest.raises(ValueError, match="at least one value of each arm"):
        subtract_means(*sides)
