import math
import statistics

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from harness.record.statistics import Interval
from reporting.compare.statistics import compare_unpaired, fit_growth

times = st.floats(1e-6, 1e2)
SHARES = st.floats(0.5, 0.999)

# Quantiles of Student's t, as every table has them: by degrees of freedom, of 97.5 % and of 99.5 %.
T_975 = {1: 12.706205, 2: 4.302653, 3: 3.182446, 4: 2.776445, 6: 2.446912}
T_995 = {3: 5.840909}


def bounds(interval: Interval) -> tuple[float | None, float, float | None]:
    return interval.low, interval.estimate, interval.high


# Growth


@pytest.mark.parametrize(
    ("confidence", "low", "high"), [(0.95, 0.869757, 1.090243), (0.99, 0.777665, 1.182335)], ids=["95 %", "99 %"]
)
def test_the_exponent_has_the_t_interval_of_a_least_squares_line_through_the_logs(confidence, low, high):
    # By hand: mean of log10 y is -1, slope 9.8 / 10, sum of squared residuals 0.036, error sqrt(0.036 / 3 / 10).
    sizes = [10, 100, 1000, 10_000, 100_000]
    values = [10**power for power in (-3.0, -1.9, -1.1, 0.1, 0.9)]

    found = fit_growth(sizes, values, confidence=confidence)

    assert bounds(found.exponent) == pytest.approx((low, 0.98, high), abs=1e-6)
    half = {0.95: T_975, 0.99: T_995}[confidence][3] * math.sqrt(0.036 / 3 / 10)
    assert found.exponent.high == pytest.approx(0.98 + half, abs=1e-6)
    assert found.exponent.count == 5
    assert found.factor == pytest.approx(10**-3.94)


@pytest.mark.parametrize(
    ("sizes", "values", "slope", "squares", "spread"),
    [
        # In powers of ten: residuals 1/6, -1/3, 1/6.
        ([1, 10, 100], [1, 10, 1000], 1.5, 1 / 6, 2),
        # In powers of two: residuals 0.2, -0.1, -0.4, 0.3.
        ([1, 2, 4, 8], [1, 1, 1, 2], 0.3, 0.3, 5),
    ],
    ids=["three points", "two values"],
)
def test_the_fewest_points_and_values_that_leave_a_line_have_an_interval(sizes, values, slope, squares, spread):
    freedom = len(sizes) - 2

    found = fit_growth(sizes, values, confidence=0.95)

    half = T_975[freedom] * math.sqrt(squares / freedom / spread)
    assert bounds(found.exponent) == pytest.approx((slope - half, slope, slope + half), rel=1e-6)


@given(
    exponent=st.floats(-3, 3),
    factor=st.floats(1e-6, 1e3),
    sizes=st.lists(st.integers(1, 10**6), min_size=2, max_size=8, unique=True),
)
def test_the_growth_of_a_power_law_is_its_exponent(exponent, factor, sizes):
    assume(max(sizes) >= 2 * min(sizes))

    found = fit_growth(sizes, [factor * size**exponent for size in sizes])

    assert found.exponent.estimate == pytest.approx(exponent, abs=1e-9)
    assert found.factor == pytest.approx(factor, rel=1e-6)
    if len(sizes) > 2:
        assert found.exponent.half_width is None or found.exponent.high - found.exponent.low < 1e-3


def test_a_value_that_does_not_grow_has_exponent_0_without_width():
    found = fit_growth([1, 2, 4, 8], [3.0] * 4)

    assert found.exponent == Interval(0.0, 0.0, 0.0, 4)
    assert found.factor == pytest.approx(3.0)


def test_two_sizes_give_an_exponent_without_bounds():
    assert bounds(fit_growth([1, 2], [1.0, 4.0]).exponent) == (None, pytest.approx(2.0), None)


def test_a_size_may_be_measured_more_than_once():
    found = fit_growth([1, 1, 2], [1.0, 1.0, 4.0])

    assert found.exponent.estimate == pytest.approx(2.0)
    assert found.exponent.count == 3


@pytest.mark.parametrize("sizes", [[], [5], [5, 5, 5], [2**53, 2**53 + 1]])
def test_growth_needs_two_sizes_that_their_logarithms_tell_apart(sizes):
    with pytest.raises(ValueError, match="at least 2 different sizes"):
        fit_growth(sizes, [1.0] * len(sizes))


def test_growth_needs_positive_values():
    with pytest.raises(ValueError, match="domain"):
        fit_growth([1, 2, 4], [1.0, 0.0, 1.0])


# Ratios of unpaired processes


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


def test_equal_times_have_a_ratio_without_width():
    ratio = compare_unpaired((6.0, 6.0, 6.0), (2.0, 2.0, 2.0))

    assert (ratio.low, ratio.high) == (ratio.estimate, ratio.estimate)


def test_equal_times_on_one_side_alone_leave_the_others_interval():
    logs = (0.9, 1.0, 1.1)

    ratio = compare_unpaired([math.exp(log) for log in logs], [1.0] * 5, confidence=0.95)

    assert math.log(ratio.high) == pytest.approx(1.0 + T_975[2] * 0.1 / math.sqrt(3), rel=1e-6)


@pytest.mark.parametrize("confidence", [-0.1, 1.0, 1.1, 5.0])
def test_a_confidence_that_no_interval_can_have_gives_no_bounds(confidence):
    # A damaged record may hold any number.
    ratio = compare_unpaired((6.0, 6.1, 6.2), (2.0, 2.1, 2.2), confidence=confidence)

    assert (ratio.low, ratio.high) == (None, None)


def test_no_confidence_is_an_interval_without_width():
    ratio = compare_unpaired((6.0, 6.1, 6.2), (2.0, 2.1, 2.2), confidence=0.0)

    assert bounds(ratio) == pytest.approx((ratio.estimate,) * 3)


@pytest.mark.parametrize("sides", [((), (1.0,)), ((1.0,), ())])
def test_a_side_without_processes_is_an_error(sides):
    with pytest.raises(ValueError, match="at least one value on each side"):
        compare_unpaired(*sides)


def test_a_ratio_needs_positive_values():
    with pytest.raises(ValueError, match="domain"):
        compare_unpaired((1.0, 1.0, 0.0), (1.0, 1.0, 1.0))
