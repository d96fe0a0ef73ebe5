import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_sides

SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
ANY = st.one_of(st.none(), st.floats(), st.integers())
MISSING_OR_DIGITS = re.compile(r"—|0|[−\d].*")


def plain(text: str) -> str:
    """With ordinary spaces, to be read in a test."""
    return text.replace("\u202f", " ")


def number_in(text: str) -> float:
    return float(re.match(r"[−\d\u202f.e]+", text)[0].strip("\u202f").replace("\u202f", "").replace("−", "-"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (451e-6, "451 µs"),
        (999.6e-6, "1.00 ms"),
        (1e-9, "1.00 ns"),
        (0.5e-9, "0.500 ns"),
        (1.0, "1.00 s"),
        (1234.5, "1 230 s"),
        (0.0, "0 ns"),
        (None, "—"),
        (math.nan, "—"),
        (math.inf, "—"),
        (-1.0, "—"),
    ],
)
def test_a_time_has_three_digits_and_the_unit_that_fits(seconds, text):
    assert plain(numbers.time(seconds)) == text


@pytest.mark.parametrize(
    ("metric", "before", "after", "texts"),
    [
        ("planned_peak_bytes", 17_203_200, 17_240_064, ("17 203 200 B", "17 240 064 B")),
        ("planned_peak_bytes", 17_203_200, 18_264_640, ("16.4 MiB", "17.4 MiB")),
        ("planned_peak_bytes", 17_203_200, 17_203_200, ("16.4 MiB", "16.4 MiB")),
        ("planned_peak_bytes", None, 17_203_200, ("—", "16.4 MiB")),
        ("planned_peak_bytes", math.inf, math.nan, ("—", "—")),
        ("measured_peak_bytes", 17_203_200, 17_203_200.5, ("17 203 200 B", "17 203 200.5 B")),
        ("counted_flops", 12_345_678, 12_345_679, ("12 345 678 FLOP", "12 345 679 FLOP")),
        ("execution_s", 1.2341e-3, 1.2349e-3, ("1.23410 ms", "1.23490 ms")),
        ("execution_s", 1.23e-3, 1.24e-3, ("1.23 ms", "1.24 ms")),
        ("donation_saves_bytes", -17_203_200, -17_240_064, ("−17 203 200 B", "−17 240 064 B")),
        ("compiles", 1, 2, ("1", "2")),
    ],
)
def test_two_numbers_that_differ_are_written_in_full_where_they_would_read_the_same(metric, before, after, texts):
    assert tuple(map(plain, write_sides(METRICS[metric], before, after))) == texts


@given(st.integers(0, 2**50), st.one_of(st.integers(-(2**21), 2**21), st.integers(0, 2**50)))
@example(2**50, 1)
@example(1023, 1)
def test_two_numbers_of_bytes_never_read_the_same(before, more):
    after = abs(before + more)
    for metric in ("planned_peak_bytes", "counted_bytes"):
        was, now_is = write_sides(METRICS[metric], before, after)
        assert (was == now_is) == (before == after)


@given(st.floats(min_value=1e-9, max_value=1e4), st.floats(min_value=1.0001, max_value=1.1))
def test_two_times_that_differ_by_a_ten_thousandth_never_read_the_same(seconds, ratio):
    was, now_is = write_sides(METRICS["execution_s"], seconds, seconds * ratio)

    assert was != now_is


@given(st.floats(min_value=1e-9, max_value=1e4))
def test_a_time_reads_back_to_within_half_a_percent(seconds):
    number, unit = plain(numbers.time(seconds)).rsplit(" ", 1)

    assert float(number.replace(" ", "")) * SECONDS[unit] == pytest.approx(seconds, rel=0.00501)


@given(st.floats(min_value=1e-9, max_value=999))
def test_a_time_from_a_nanosecond_up_shows_a_number_from_1_to_1000(seconds):
    number, _ = plain(numbers.time(seconds)).rsplit(" ", 1)

    assert 1 <= float(number) < 1000


@pytest.mark.parametrize(
    ("interval", "texts"),
    [
        (Interval(448e-6, 451e-6, 456e-6, 5), ("451 µs", "[448, 456]")),
        (Interval(400e-6, 451e-6, 500e-6, 5), ("450 µs", "[400, 500]")),
        (Interval(0.9e-3, 1.01e-3, 1.1e-3, 5), ("1.0 ms", "[0.9, 1.1]")),
        (Interval(450.6e-6, 451e-6, 451.4e-6, 5), ("451 µs", "[450.6, 451.4]")),
        (Interval(1e-7, 13e-6, 1.3e-3, 3), ("13 µs", "[0.10, 1 300]")),
        (Interval(None, 451e-6, None, 2), ("451 µs", "—")),
        (Interval(math.nan, 451e-6, math.inf, 3), ("451 µs", "—")),
        (None, ("—", "—")),
    ],
)
def test_bounds_share_the_unit_of_the_estimate(interval, texts):
    assert tuple(map(plain, numbers.time_with_bounds(interval))) == texts


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.061, "1.06×"),
        (1.996, "2.0×"),
        (8.74, "8.7×"),
        (9.96, "10×"),
        (34.4, "34×"),
        (0.0123, "0.012×"),
        (1234, "1 234×"),
    ],
)
def test_a_speedup_has_fewer_decimals_the_larger_it_is(ratio, text):
    assert plain(numbers.speedup(ratio)) == text


@pytest.mark.parametrize(
    ("interval", "texts"),
    [
        (Interval(8.51, 8.74, 8.92, 3), ("8.7×", "[8.5, 8.9]")),
        (Interval(1.03, 2.31, 5.13, 3), ("2.3×", "[1.03, 5.1]")),
        (Interval(1.03, 2.31, 2.6, 3), ("2.3×", "[1.03, 2.60]")),
        (Interval(0.97, 12.2, 14.1, 3), ("12×", "[0.97, 14]")),
        (Interval(11.6, 12.2, 14.1, 3), ("12×", "[12, 14]")),
    ],
)
def test_bounds_of_a_speedup_tell_on_which_side_of_1_they_are(interval, texts):
    assert tuple(map(plain, numbers.speedup_with_bounds(interval))) == texts


@pytest.mark.parametrize("ratio", [None, math.nan, math.inf, 0.0, -2.0])
def test_an_impossible_speedup_is_a_dash(ratio):
    assert numbers.speedup(ratio) == "—"


@given(st.floats(min_value=1e-4, max_value=1e6))
@example(0.095)
def test_a_speedup_reads_back_to_within_five_percent(ratio):
    assert number_in(numbers.speedup(ratio).removesuffix("×")) == pytest.approx(ratio, rel=0.0501)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1 023 B"), (1024, "1.00 KiB"), (2**20 - 1, "1.00 MiB"), (3 * 2**30, "3.00 GiB"), (None, "—")],
)
def test_memory_counts_by_1024(size, text):
    assert plain(numbers.memory(size)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(12.34e9, "12.3 GFLOP/s"), (999.7e3, "1.00 MFLOP/s"), (5.0, "5.00 FLOP/s"), (None, "—"), (-1, "—")],
)
def test_a_rate_counts_by_1000(value, text):
    assert plain(numbers.amount(value, "FLOP/s")) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.02, "2 %"), (0.031, "3.1 %"), (0.0996, "10 %"), (0.99, "99 %"), (60.87, "6 087 %"), (0.0, "0 %")],
)
def test_a_percentage_has_at_most_two_digits_below_ten(share, text):
    assert plain(numbers.percent(share)) == text


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(12_100, 12_345, 12_500, 3), "12 300 tokens/s [12 100, 12 500]"),
        (Interval(999_400, 999_600, 999_800, 3), "1.00 million tokens/s [0.999, 1.000]"),
        (Interval(2.3e9, 2.34e9, 2.36e9, 3), "2.34 billion tokens/s [2.30, 2.36]"),
        (Interval(None, 0.0123, None, 1), "0.0123 tokens/s —"),
        (None, "— —"),
    ],
)
def test_a_throughput_has_its_unit_in_words(interval, text):
    assert plain(" ".join(numbers.throughput_with_bounds(interval, "tokens/s"))) == text


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.412, 0.43, 0.449, 3), "43 % [41, 45]"),
        (Interval(0.0301, 0.0312, 0.0325, 3), "3.1 % [3.0, 3.2]"),
        (Interval(0.4301, 0.4304, 0.4309, 3), "43 % [43.0, 43.1]"),
        (Interval(None, 0.43, None, 1), "43 % —"),
        (Interval(-0.2, -0.1, 0.1, 3), "−10 % [−20, 10]"),
        (Interval(0.0, 0.0, 0.0, 3), "0 % [0, 0]"),
        (None, "— —"),
    ],
)
def test_a_share_has_the_bounds_of_its_interval(interval, text):
    assert plain(" ".join(numbers.percent_with_bounds(interval))) == text


@pytest.mark.parametrize(("ratio", "text"), [(1.23e-7, "1.2e−7"), (0.0, "0"), (0.5, "5.0e−1"), (None, "—")])
def test_an_error_shows_its_size(ratio, text):
    assert numbers.error(ratio) == text


def test_an_exponent_has_a_minus_sign_and_two_decimals():
    assert numbers.exponent_with_bounds(Interval(-0.5, -0.013, 0.5, 3)) == ("−0.01", "[−0.50, 0.50]")


@given(ANY)
def test_no_value_is_ever_written_as_nan_inf_none_or_blank(value):
    texts = [
        numbers.time(value),
        numbers.speedup(value),
        numbers.memory(value),
        numbers.amount(value, "B/s"),
        numbers.count(value),
        numbers.number(value),
        numbers.percent(value),
        numbers.error(value),
        *numbers.time_with_bounds(None if value is None else Interval(value, value, value, 3)),
        *numbers.speedup_with_bounds(None if value is None else Interval(value, value, value, 3)),
        *numbers.exponent_with_bounds(None if value is None else Interval(value, value, value, 3)),
        *numbers.percent_with_bounds(None if value is None else Interval(value, value, value, 3)),
        *numbers.throughput_with_bounds(None if value is None else Interval(value, value, value, 3), "s"),
    ]

    for text in texts:
        assert MISSING_OR_DIGITS.fullmatch(text.removeprefix("["))
        assert not re.search(r"nan|inf|None", text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0452, "45.2 ms"), (-0.0031, "−3.10 ms"), (0.0, "0 ns"), (None, "—"), (1e301, "—"), (-1e301, "—")],
)
def test_a_difference_has_a_sign(seconds, text):
    assert plain(numbers.difference(seconds)) == text


@pytest.mark.parametrize(("value", "text"), [(12_345, "12 345"), (0.25, "0.25"), (10.0, "10"), (None, "—")])
def test_a_number_that_may_be_whole_is_written_whole_where_it_is(value, text):
    assert plain(numbers.number(value)) == text


# Where one form ends and the next begins


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e18, "1.00 EFLOP"),
        (2e15, "2.00 PFLOP"),
        (3e12, "3.00 TFLOP"),
        (4e9, "4.00 GFLOP"),
        (5e6, "5.00 MFLOP"),
        (6e3, "6.00 kFLOP"),
        (999.4, "999 FLOP"),
        (0.5, "0.500 FLOP"),
        (0, "0 FLOP"),
        (1e21, "1 000 EFLOP"),
    ],
)
def test_an_amount_has_the_largest_prefix_that_leaves_at_least_1(value, text):
    assert plain(numbers.amount(value, "FLOP")) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1.5 * 2**40, "1.50 TiB"),
        (2.25 * 2**20, "2.25 MiB"),
        (12_345 * 2**40, "12 300 TiB"),
        (1_048_524, "1.00 MiB"),
        (1_048_523, "1 020 KiB"),
        (-2048, "−2.00 KiB"),
        (-5, "−5 B"),
    ],
)
def test_memory_has_the_largest_unit_that_leaves_at_least_1_after_rounding(size, text):
    assert plain(numbers.memory(size)) == text


@pytest.mark.parametrize(
    ("interval", "texts"),
    [
        (Interval(19.0, 20.0, 21.0, 5), ("20.0 s", "[19.0, 21.0]")),
        (Interval(18.9, 20.0, 21.1, 5), ("20 s", "[19, 21]")),
        (Interval(5.0, 10.0, 15.0, 5), ("10 s", "[5, 15]")),
        (Interval(4.9, 10.0, 15.1, 5), ("10 s", "[4.9, 15]")),
        (Interval(900e-6, 999e-6, 1100e-6, 5), ("1.0 ms", "[0.9, 1.1]")),
        (Interval(0.0, 0.0, 0.0, 5), ("0 ns", "[0, 0]")),
    ],
    ids=["±5 %", "beyond ±5 %", "±50 %", "beyond ±50 %", "a unit by its two digits", "nothing"],
)
def test_the_digits_of_a_time_are_those_that_its_interval_allows(interval, texts):
    assert tuple(map(plain, numbers.time_with_bounds(interval))) == texts


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (450.0e-6, 452.0e-6, "[450, 452]"),
        (450.9e-6, 451.1e-6, "[450.9, 451.1]"),
        (450.99e-6, 451.01e-6, "[450.99, 451.01]"),
        (450.999e-6, 451.001e-6, "[451.00, 451.00]"),
        (451e-6, 451e-6, "[451, 451]"),
    ],
)
def test_bounds_that_would_read_the_same_get_up_to_two_decimals_more(low, high, text):
    assert plain(numbers.time_with_bounds(Interval(low, 451e-6, high, 5))[1]) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.0949, "0.095×"),
        (0.0996, "0.10×"),
        (0.5, "0.50×"),
        (1.0, "1.00×"),
        (1.99, "1.99×"),
        (2.0, "2.0×"),
        (9.94, "9.9×"),
        (10.0, "10×"),
        (1.234e-9, "0.000000001×"),
        (1e-12, "0.000000000×"),
    ],
)
def test_the_decimals_of_a_speedup_change_at_a_tenth_at_2_and_at_10(ratio, text):
    assert plain(numbers.speedup(ratio)) == text


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.95, 1.0, 1.05, 3), "[0.95, 1.05]"),
        (Interval(1.8, 3.0, 4.2, 3), "[1.8, 4.2]"),
        (Interval(2.0, 3.0, 4.0, 3), "[2.0, 4.0]"),
        (Interval(0.96, 3.0, 4.0, 3), "[0.96, 4.0]"),
        (Interval(10.4, 20.0, 24.0, 3), "[10, 24]"),
    ],
)
def test_only_a_bound_near_1_gets_more_decimals(interval, text):
    assert numbers.speedup_with_bounds(interval)[1] == text


@pytest.mark.parametrize("value", [1e300, -1e300, 10**400, math.nan, math.inf, None])
def test_a_value_beyond_any_measurement_is_not_used(value):
    assert numbers.usable(value) is None


@pytest.mark.parametrize("value", [0, 0.0, -1.5, 9.99e299, -9.99e299])
def test_any_other_value_is_used(value):
    assert numbers.usable(value) == value


def test_exponents_without_usable_bounds_have_none():
    assert numbers.exponent_with_bounds(Interval(0.0, 0.0, 0.0, 3)) == ("0.00", "[0.00, 0.00]")
    assert numbers.exponent_with_bounds(Interval(None, 1.0, None, 2)) == ("1.00", "—")
    assert numbers.exponent_with_bounds(Interval(math.nan, 1.0, 2.0, 2)) == ("1.00", "—")
    assert numbers.exponent_with_bounds(Interval(0.0, 1.0, math.inf, 2)) == ("1.00", "—")


@pytest.mark.parametrize("interval", [Interval(math.nan, 2.0, 3.0, 3), Interval(1.0, 2.0, math.nan, 3)])
def test_a_bound_that_is_no_number_leaves_none(interval):
    assert numbers.speedup_with_bounds(interval)[1] == "—"


@pytest.mark.parametrize(
    ("share", "digits", "text"),
    [
        (0.0994, 2, "9.9 %"),
        (0.0995, 2, "10 %"),
        (1e-5, 2, "0.001 %"),
        (0.99e-5, 2, "0 %"),
        (-0.031, 2, "−3.1 %"),
        (-0.5, 2, "−50 %"),
        (0.01234, 1, "1 %"),
        (0.01234, 3, "1.23 %"),
        (None, 2, "—"),
    ],
)
def test_a_percentage_is_whole_from_ten_on_and_nothing_below_a_thousandth(share, digits, text):
    assert plain(numbers.percent(share, digits=digits)) == text


@pytest.mark.parametrize(("difference", "text"), [(12, "+12"), (-3, "−3"), (0, "0"), (12_345, "+12 345")])
def test_a_difference_of_counts_has_its_sign(difference, text):
    assert plain(numbers.signed_count(difference)) == text


@pytest.mark.parametrize(("value", "text"), [(-0.5, "−0.5"), (-12_345, "−12 345"), (0, "0"), (1 / 3, "0.333333")])
def test_a_number_that_is_not_whole_has_six_digits(value, text):
    assert plain(numbers.number(value)) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1"), (10_000, "10 000"), (100_000, "100 000"), (1e6, "1e6"), (1e12, "1e12"), (0.1, "1e-01")],
)
def test_a_tick_of_counts_is_short(number, text):
    assert plain(numbers.short_count(number)) == text


@pytest.mark.parametrize(("share", "shown"), [(0.0994, "9.94"), (0.0996, "10"), (0.124, "12")])
def test_a_share_is_whole_from_ten_percent_on_however_many_digits_are_asked_for(share, shown):
    assert numbers.percent(share, digits=3) == f"{shown}{numbers.SPACE}%"


@pytest.mark.parametrize(
    ("low", "estimate", "high", "text"),
    [
        (3, 5, 1200, "3 to 1 200 calls"),
        (1, 1, 1, "1 call"),
        (3, 3, 3, "3 calls"),
        (3, 5, None, "at least 3 calls"),
        (None, 1, None, "1 call"),
        (None, 5, None, "5 calls"),
    ],
)
def test_a_count_has_the_range_that_its_bounds_allow(low, estimate, high, text):
    assert numbers.count_in_range(Interval(low, estimate, high, 3), "call").replace("\u202f", " ") == text


@pytest.mark.parametrize(
    ("low", "estimate", "high", "text"),
    [
        (0.045, 0.048, 0.051, ("48 ms", "[45, 51]")),
        (-0.0035, -0.003, -0.0025, ("−3.0 ms", "[−3.5, −2.5]")),
        (-0.005, 1e-7, 0.004, ("0.00010 ms", "[−5.0, 4.0]")),
        (None, -0.003, None, ("−3.00 ms", "—")),
    ],
)
def test_a_time_saved_has_bounds_on_both_sides_of_0_and_a_unit_that_fits_them(low, estimate, high, text):
    found = numbers.difference_with_bounds(Interval(low, estimate, high, 3))

    assert tuple(one.replace("\u202f", " ") for one in found) == text
