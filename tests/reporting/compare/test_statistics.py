import math
import statistics

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.reporting.compare.ratios import compare_unpaired

times = st.floats(1e-6, 1e2)
SHARES = st.floats(0.5, 0.999)

# Quantiles of Student's t, as every table has them: by degrees of freedom, of 97.5 %.
T_975 = {2: 4.302653, 6: 2.446912}


def bounds(interval: Interval) -> tuple[float | None, float, float | None]:
    return interval.low, interval.estimate, interval.high


def welch(above: list[float], below: list[float]) -> tuple[float, float]:
    """Standard error and degrees of freedom of the difference of two means, as Welch gives them."""
    shares = [statistics.variance(values) / len(values) for values in (above, below)]
    freedom = sum(shares) ** 2 / sum(
        share**2 / (len(values) - 1) for share, values in zip(shares, (above, below), strict=True)
    )
    return math.sqrt(sum(shares)), freedom


@pytest.mark.parametrize(
    ("confidence", "low", "high"), [(0.95, 0.654518, 1.545482), (0.99, 0.353285, 1.846715)], ids=["95 %", "99 %"]
)
def test_a_ratio_of_unpaired_processes_has_welchs_interval_on_the_logs(confidence, low, high):
    # Means 2.1 and 1.0, 27 / 7 degrees of freedom; quantiles from an integral of t's density: 2.817474, 4.722643.
    above, below = ([math.exp(log) for log in logs] for logs in ((2.0, 2.1, 1.8, 2.5), (1.0, 1.1, 0.9)))

    ratio = compare_unpaired(above, below, confidence=confidence)

    assert bounds(ratio) == pytest.approx((math.exp(low), math.exp(1.1), math.exp(high)), rel=1e-5)
    assert ratio.count == 3


def test_equal_spreads_of_equal_counts_have_the_quantile_of_their_table():
    logs = (-0.1, 0.0, 0.0, 0.1)
    error, freedom = welch(list(logs), list(logs))

    ratio = compare_unpaired(*[[math.exp(log) for log in logs]] * 2, confidence=0.95)

    assert freedom == pytest.approx(6)
    assert math.log(ratio.high) == pytest.approx(T_975[6] * error, rel=1e-6)


@given(st.lists(times, min_size=3, max_size=8), st.lists(times, min_size=3, max_size=8), SHARES)
@example([1.0, 1.0, 1.0 + 2**-52], [1.0, 1.0, 1.0], 0.99)
@example([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], 0.99)
@example([0.1, 0.1, 0.1], [0.3, 0.3, 0.3], 0.99)
def test_exchanging_both_sides_inverts_the_ratio_whatever_they_are(above, below, confidence):
    try:
        there = compare_unpaired(above, below, confidence=confidence)
        back = compare_unpaired(below, above, confidence=confidence)
    except OverflowError:
        return

    assert there.low <= there.estimate * (1 + 1e-12)
    assert there.estimate <= there.high * (1 + 1e-12)
    assert there.estimate == pytest.approx(statistics.geometric_mean(above) / statistics.geometric_mean(below))
    assert back.estimate == pytest.approx(1 / there.estimate)
    if there.low > 0 and back.low > 0:
        assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low), rel=1e-6)


def test_a_ratio_of_fewer_than_three_unpaired_processes_has_no_interval():
    assert compare_unpaired((6.0, 6.0), (2.0, 2.0, 2.0)) == Interval(None, pytest.approx(3.0), None, 2)
    assert compare_unpaired((6.0,) * 3, (2.0,) * 2) == Interval(None, pytest.approx(3.0), None, 2)


def test_equal_times_on_one_side_alone_leave_the_others_interval():
    logs = (0.9, 1.0, 1.1)

    ratio = compare_unpaired([math.exp(log) for log in logs], [1.0] * 5, confidence=0.95)

    assert math.log(ratio.high) == pytest.approx(1.0 + T_975[2] * 0.1 / math.sqrt(3), rel=1e-6)


@pytest.mark.parametrize("confidence", [-0.1, 1.0, 1.1, 5.0, 0.0])
def test_a_confidence_that_no_interval_can_have_gives_no_bounds_and_none_one_without_width(confidence):
    # A damaged record may hold any number.
    ratio = compare_unpaired((6.0, 6.1, 6.2), (2.0, 2.1, 2.2), confidence=confidence)

    assert (ratio.low, ratio.high) == ((None, None) if confidence else pytest.approx((ratio.estimate,) * 2))


@pytest.mark.parametrize(
    ("sides", "reason"),
    [
        (((), (1.0,)), "at least one value of each arm"),
        (((1.0,), ()), "at least one value of each arm"),
        (((1.0, 1.0, 0.0), (1.0, 1.0, 1.0)), "domain"),
    ],
)
def test_a_side_without_processes_or_a_value_that_is_not_positive_is_an_error(sides, reason):
    with pytest.raises(ValueError, match=reason):
        compare_unpaired(*sides)
