import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.reporting.compare.scaling import NEAR, Scaling, find_slope, fit_exponent

# Quantiles of Student's t, as every table has them: by degrees of freedom, of 97.5 % and of 99.5 %.
T_975, T_995 = {2: 4.302653}, {2: 9.924843}
FOUR, FIVE, SIX = (10, 100, 1000, 10_000), (16, 32, 64, 128, 256), (16, 32, 64, 128, 256, 512)


def bounds(interval: Interval) -> tuple[float | None, float, float | None]:
    return interval.low, interval.estimate, interval.high


def told(exponent):
    return pytest.approx((exponent,) * 3, abs=1e-6)


@pytest.mark.parametrize(("confidence", "quantile"), [(0.95, T_975[2]), (0.99, T_995[2])], ids=["95 %", "99 %"])
def test_four_sizes_have_the_t_interval_of_a_least_squares_line_through_the_logs(confidence, quantile):
    # In powers of ten: slope 0.3, residuals 0.2, -0.1, -0.4, 0.3, spread 5.
    half = quantile * math.sqrt(0.3 / 2 / 5)

    found = fit_exponent(FOUR, [1, 1, 1, 10], confidence=confidence)

    assert bounds(found) == pytest.approx((0.3 - half, 0.3, 0.3 + half), rel=1e-6)
    assert found.count == 4


@given(
    exponent=st.floats(-3, 3),
    factor=st.floats(1e-6, 1e3),
    sizes=st.lists(st.integers(1, 10**6), min_size=2, max_size=8, unique=True),
)
def test_the_scaling_of_a_power_law_is_its_exponent(exponent, factor, sizes):
    assume(max(sizes) >= 2 * min(sizes))

    found = fit_exponent(sizes, [factor * size**exponent for size in sizes])

    assert found.estimate == pytest.approx(exponent, abs=1e-3)
    assert (found.low is None) is (found.high is None)
    assert found.low is None or found.low <= exponent + 1e-3
    assert found.high is None or found.high >= exponent - 1e-3


@pytest.mark.parametrize("exponent", [-1.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("constant", [0.0, 0.1, 10.0])
def test_a_constant_part_does_not_bend_the_exponent_of_five_sizes(exponent, constant):
    values = [(size / 16) ** exponent + constant for size in FIVE]

    assert bounds(fit_exponent(FIVE, values)) == told(exponent)


def test_a_constant_part_bends_the_exponents_between_four_sizes_which_show_it():
    values = [size + 1.0 for size in FOUR]

    fitted = fit_exponent(FOUR, values)
    slopes = [find_slope(Interval(None, values[k + 1] / values[k], None, 1), *FOUR[k : k + 2]) for k in range(3)]

    assert fitted.estimate == pytest.approx(0.9872, abs=1e-4)
    assert [slope.estimate for slope in slopes] == pytest.approx([0.9629, 0.9961, 0.9996], abs=1e-4)


def test_the_scatter_of_relative_errors_makes_the_interval():
    values = [size**2 * (1 + error) for size, error in zip(SIX, (0.02, -0.02, 0.02, -0.02, 0.02, -0.02), strict=True)]

    found = fit_exponent(SIX, values)
    large = fit_exponent(SIX, [value * 1e9 for value in values])

    assert 1.75 < found.low < 2 < found.high < 2.25
    assert bounds(large) == pytest.approx(bounds(found), abs=1e-6)


@pytest.mark.parametrize("sizes", [FIVE[:2], FIVE[:3], (1, 1, 2, 2, 4, 4)], ids=["two", "three", "three, twice each"])
def test_three_sizes_or_fewer_give_an_exponent_without_an_interval(sizes):
    assert bounds(fit_exponent(sizes, [size**2 for size in sizes])) == (None, pytest.approx(2.0), None)


@pytest.mark.parametrize("sizes", [FOUR, FIVE])
def test_what_does_not_grow_has_exponent_0_since_beside_a_constant_nothing_has_one(sizes):
    noisy = [1.0 + 0.01 * (-1) ** index for index in range(len(sizes))]

    assert bounds(fit_exponent(sizes, [3.0] * len(sizes))) == (0.0, 0.0, 0.0)
    assert bounds(fit_exponent(sizes, noisy)) == pytest.approx((0.0, 0.0, 0.0), abs=0.1)


def test_scatter_that_allows_any_exponent_gives_no_interval():
    found = fit_exponent(FIVE, [1.0, 30.0, 2.0, 60.0, 4.0])

    assert (found.low, found.high) == (None, None)


@pytest.mark.parametrize(
    ("values", "exponent"),
    [((53, 101, 197, 389, 773), 1.0), ((7, 7, 7, 7, 7), 0.0), ((16, 32, 64), 1.0), ((256, 1024, 4096, 16384), 2.0)],
    ids=["3n + 5", "constant", "three sizes", "four sizes"],
)
def test_exact_counts_have_an_exponent_without_width(values, exponent):
    found = fit_exponent(FIVE[: len(values)], values, exact=True)

    assert bounds(found) == told(exponent)
    assert found.low == found.estimate == found.high


@pytest.mark.parametrize("sizes", [[], [5], [5, 5, 5], [2**53, 2**53 + 1]])
def test_scaling_needs_two_sizes_that_their_logarithms_tell_apart_and_positive_values(sizes):
    with pytest.raises(ValueError, match="at least 2 different sizes"):
        fit_exponent(sizes, [1.0] * len(sizes))
    with pytest.raises(ValueError, match="two different sizes"):
        find_slope(Interval(1.0, 1.0, 1.0, 3), 10, 10)
    with pytest.raises(ValueError, match="domain"):
        fit_exponent([1, 2, 4], [1.0, 0.0, 1.0])


def test_sizes_and_values_as_far_apart_as_floats_allow_have_an_exponent():
    sizes = [1e-290, 1e-100, 1.0, 1e100, 1e290]

    assert fit_exponent(sizes, [size**0.1 for size in sizes]).estimate == pytest.approx(0.1, abs=1e-3)


def test_the_slope_between_two_sizes_has_the_interval_of_the_ratio_of_their_times():
    assert bounds(find_slope(Interval(3.0, 4.0, 5.0, 3), 10, 20)) == pytest.approx((math.log2(3), 2.0, math.log2(5)))
    for bound in (None, 0.0):
        assert bounds(find_slope(Interval(bound, 4.0, bound, 2), 10, 20)) == (None, pytest.approx(2.0), None)


def between(low, high):
    return Interval(low, (low + high) / 2, high, 5)


NO_BOUNDS = Interval(None, 1.0, None, 3)


@pytest.mark.parametrize(
    ("scaling", "is_told"),
    [
        (Scaling(between(1 - NEAR, 1 + NEAR)), True),
        (Scaling(between(0.99 - NEAR, 1 + NEAR)), False),
        (Scaling(NO_BOUNDS, (between(0.9, 1.1), between(1.0, 1.2))), True),
        (Scaling(NO_BOUNDS, (between(0.9, 1.1), between(0.0, 1.2))), False),
        (Scaling(NO_BOUNDS, (between(0.9, 1.1), NO_BOUNDS)), False),
        (Scaling(NO_BOUNDS), False),
        (Scaling(between(2, 2), exact=True), True),
    ],
)
def test_an_exponent_is_told_where_its_interval_or_those_between_all_sizes_are_narrow(scaling, is_told):
    assert scaling.is_told is is_told


@pytest.mark.parametrize(
    ("exponent", "slopes", "may"), [(between(1, 1), 4, False), (between(1, 1), 3, True), (NO_BOUNDS, 4, True)]
)
def test_an_exponent_may_hide_a_bend_unless_a_constant_was_set_apart(exponent, slopes, may):
    assert Scaling(exponent, (between(1, 1),) * slopes).may_bend is may
