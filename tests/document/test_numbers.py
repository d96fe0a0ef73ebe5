import math
import re
from functools import partial

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


NO_NUMBERS = (None, math.nan, math.inf)
WRITTEN = {
    "a time has three digits and the unit that fits": (
        numbers.time,
        (451e-6, 999.6e-6, 1e-9, 0.5e-9, 1.0, 1234.5, 0.0, *NO_NUMBERS, -1.0),
        "451 µs|1.00 ms|1.00 ns|0.500 ns|1.00 s|1 230 s|0 ns|—|—|—|—",
    ),
    "a difference has a sign": (
        numbers.difference,
        (0.0452, -0.0031, 0.0, None, 1e301, -1e301),
        "45.2 ms|−3.10 ms|0 ns|—|—|—",
    ),
    "a speedup has fewer decimals the larger it is": (
        numbers.speedup,
        (1.061, 1.996, 8.74, 9.96, 34.4, 0.0123, 1234, *NO_NUMBERS, 0.0, -2.0),
        "1.06×|2.0×|8.7×|10×|34×|0.012×|1 234×|—|—|—|—|—",
    ),
    "the decimals of a speedup change at a tenth, at 2 and at 10": (
        numbers.speedup,
        (0.0949, 0.0996, 0.5, 1.0, 1.99, 2.0, 9.94, 10.0, 1.234e-9, 1e-12),
        "0.095×|0.10×|0.50×|1.00×|1.99×|2.0×|9.9×|10×|0.000000001×|0.000000000×",
    ),
    "memory counts by 1024": (
        numbers.memory,
        (0, 1023, 1024, 2**20 - 1, 3 * 2**30, None),
        "0 B|1 023 B|1.00 KiB|1.00 MiB|3.00 GiB|—",
    ),
    "memory has the largest unit that leaves at least 1 after rounding": (
        numbers.memory,
        (1.5 * 2**40, 2.25 * 2**20, 12_345 * 2**40, 1_048_524, 1_048_523, -2048, -5),
        "1.50 TiB|2.25 MiB|12 300 TiB|1.00 MiB|1 020 KiB|−2.00 KiB|−5 B",
    ),
    "a rate counts by 1000": (
        partial(numbers.amount, unit="FLOP/s"),
        (12.34e9, 999.7e3, 5.0, None, -1),
        "12.3 GFLOP/s|1.00 MFLOP/s|5.00 FLOP/s|—|—",
    ),
    "an amount has the largest prefix that leaves at least 1": (
        partial(numbers.amount, unit="F"),
        (1e18, 2e15, 3e12, 4e9, 5e6, 6e3, 999.4, 0.5, 0, 1e21),
        "1.00 EF|2.00 PF|3.00 TF|4.00 GF|5.00 MF|6.00 kF|999 F|0.500 F|0 F|1 000 EF",
    ),
    "a percentage has at most two digits below ten, and nothing below a thousandth": (
        numbers.percent,
        (0.02, 0.031, 0.0994, 0.0995, 0.0996, 0.99, 60.87, 0.0, 1e-5, 0.99e-5, -0.031, -0.5, None),
        "2 %|3.1 %|9.9 %|10 %|10 %|99 %|6 087 %|0 %|0.001 %|0 %|−3.1 %|−50 %|—",
    ),
    "a percentage of three digits is whole from ten on": (
        partial(numbers.percent, digits=3),
        (0.01234, 0.0994, 0.0996, 0.124),
        "1.23 %|9.94 %|10 %|12 %",
    ),
    "a percentage of one digit": (partial(numbers.percent, digits=1), (0.01234,), "1 %"),
    "an error shows its size": (numbers.error, (1.23e-7, 0.0, 0.5, None), "1.2e−7|0|5.0e−1|—"),
    "a number that may be whole is written whole where it is, else with six digits": (
        numbers.number,
        (12_345, 0.25, 10.0, None, -0.5, -12_345, 0, 1 / 3),
        "12 345|0.25|10|—|−0.5|−12 345|0|0.333333",
    ),
    "a difference of counts has its sign": (numbers.signed_count, (12, -3, 0, 12_345), "+12|−3|0|+12 345"),
    "a tick of counts is short": (
        numbers.short_count,
        (1, 10_000, 100_000, 1e6, 1e12, 0.1),
        "1|10 000|100 000|1e6|1e12|1e-01",
    ),
}


@pytest.mark.parametrize(("write", "values", "texts"), WRITTEN.values(), ids=WRITTEN)
def test_a_number_is_written_by_its_rule(write, values, texts):
    assert [plain(write(value)) for value in values] == texts.split("|")


WITH_BOUNDS = {
    "bounds share the unit of the estimate": (
        numbers.time_with_bounds,
        [(448e-6, 451e-6, 456e-6), (400e-6, 451e-6, 500e-6), (0.9e-3, 1.01e-3, 1.1e-3), (450.6e-6, 451e-6, 451.4e-6)],
        "451 µs [448, 456]|450 µs [400, 500]|1.0 ms [0.9, 1.1]|451 µs [450.6, 451.4]",
    ),
    "without a bound there is none": (
        numbers.time_with_bounds,
        [(1e-7, 13e-6, 1.3e-3), (None, 451e-6, None), (math.nan, 451e-6, math.inf), None],
        "13 µs [0.10, 1 300]|451 µs —|451 µs —|— —",
    ),
    "a time has the digits that its interval allows: up to and beyond ±5 % and ±50 %, by two digits, and nothing": (
        numbers.time_with_bounds,
        [(19, 20, 21), (18.9, 20, 21.1), (5, 10, 15), (4.9, 10, 15.1), (900e-6, 999e-6, 1100e-6), (0, 0, 0)],
        "20.0 s [19.0, 21.0]|20 s [19, 21]|10 s [5, 15]|10 s [4.9, 15]|1.0 ms [0.9, 1.1]|0 ns [0, 0]",
    ),
    "bounds that would read the same get up to two decimals more": (
        numbers.time_with_bounds,
        [(450e-6, 451e-6, 452e-6), *((451e-6 - off, 451e-6, 451e-6 + off) for off in (1e-7, 1e-8, 1e-9, 0))],
        "451 µs [450, 452]|451 µs [450.9, 451.1]|451 µs [450.99, 451.01]|451 µs [451.00, 451.00]|451 µs [451, 451]",
    ),
    "bounds of a speedup tell on which side of 1 they are": (
        numbers.speedup_with_bounds,
        [(8.51, 8.74, 8.92), (1.03, 2.31, 5.13), (1.03, 2.31, 2.6), (0.97, 12.2, 14.1), (11.6, 12.2, 14.1)],
        "8.7× [8.5, 8.9]|2.3× [1.03, 5.1]|2.3× [1.03, 2.60]|12× [0.97, 14]|12× [12, 14]",
    ),
    "only a bound near 1 gets more decimals": (
        numbers.speedup_with_bounds,
        [
            (0.95, 1.0, 1.05),
            (1.8, 3.0, 4.2),
            (2.0, 3.0, 4.0),
            (0.96, 3.0, 4.0),
            (10.4, 20.0, 24.0),
            (math.nan, 2.0, 3.0),
        ],
        "1.00× [0.95, 1.05]|3.0× [1.8, 4.2]|3.0× [2.0, 4.0]|3.0× [0.96, 4.0]|20× [10, 24]|2.0× —",
    ),
    "a throughput has its unit in words": (
        partial(numbers.throughput_with_bounds, unit="t/s"),
        [(12_100, 12_345, 12_500), (999_400, 999_600, 999_800), (2.3e9, 2.34e9, 2.36e9), (None, 0.0123, None), None],
        "12 300 t/s [12 100, 12 500]|1.00 million t/s [0.999, 1.000]|2.34 billion t/s [2.30, 2.36]|0.0123 t/s —|— —",
    ),
    "a share has the bounds of its interval": (
        numbers.percent_with_bounds,
        [(0.412, 0.43, 0.449), (0.0301, 0.0312, 0.0325), (0.4301, 0.4304, 0.4309), (-0.2, -0.1, 0.1), (0, 0, 0), None],
        "43 % [41, 45]|3.1 % [3.0, 3.2]|43 % [43.0, 43.1]|−10 % [−20, 10]|0 % [0, 0]|— —",
    ),
    "an exponent has a minus sign and two decimals, and bounds that are numbers": (
        numbers.exponent_with_bounds,
        [(-0.5, -0.013, 0.5), (0.0, 0.0, 0.0), (None, 1.0, None), (math.nan, 1.0, 2.0), (0.0, 1.0, math.inf)],
        "−0.01 [−0.50, 0.50]|0.00 [0.00, 0.00]|1.00 —|1.00 —|1.00 —",
    ),
    "a time saved has bounds on both sides of 0, and a unit that fits them": (
        numbers.difference_with_bounds,
        [(0.045, 0.048, 0.051), (-0.0035, -0.003, -0.0025), (-0.005, 1e-7, 0.004), (None, -0.003, None)],
        "48 ms [45, 51]|−3.0 ms [−3.5, −2.5]|0.00010 ms [−5.0, 4.0]|−3.00 ms —",
    ),
    "a count has the range that its bounds allow": (
        lambda interval: (numbers.count_in_range(interval, "call"),),
        [(3, 5, 1200), (1, 1, 1), (3, 3, 3), (3, 5, None), (None, 1, None), (None, 5, None)],
        "3 to 1 200 calls|1 call|3 calls|at least 3 calls|1 call|5 calls",
    ),
}


@pytest.mark.parametrize(("write", "bounds", "texts"), WITH_BOUNDS.values(), ids=WITH_BOUNDS)
def test_a_number_with_bounds_is_written_by_its_rule(write, bounds, texts):
    written = (write(None if one is None else Interval(*one, 5)) for one in bounds)

    assert [plain(" ".join(one)) for one in written] == texts.split("|")


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
def test_a_time_reads_back_to_within_half_a_percent_and_shows_a_number_from_1_to_1000(seconds):
    number, unit = plain(numbers.time(seconds)).rsplit(" ", 1)

    assert float(number.replace(" ", "")) * SECONDS[unit] == pytest.approx(seconds, rel=0.00501)
    assert 1 <= float(number.replace(" ", "")) < 1000 or seconds > 999


@given(st.floats(min_value=1e-4, max_value=1e6))
@example(0.095)
def test_a_speedup_reads_back_to_within_five_percent(ratio):
    assert number_in(numbers.speedup(ratio).removesuffix("×")) == pytest.approx(ratio, rel=0.0501)


@given(ANY)
def test_no_value_is_ever_written_as_nan_inf_none_or_blank(value):
    interval = None if value is None else Interval(value, value, value, 3)
    alone = (
        numbers.time,
        numbers.speedup,
        numbers.memory,
        numbers.count,
        numbers.number,
        numbers.percent,
        numbers.error,
    )
    bounded = (
        *(numbers.time_with_bounds, numbers.speedup_with_bounds, numbers.exponent_with_bounds),
        *(numbers.percent_with_bounds, partial(numbers.throughput_with_bounds, unit="s")),
    )
    texts = [*(write(value) for write in alone), numbers.amount(value, "B/s")]

    for text in (*texts, *(text for write in bounded for text in write(interval))):
        assert MISSING_OR_DIGITS.fullmatch(text.removeprefix("["))
        assert not re.search(r"nan|inf|None", text)


def test_a_value_beyond_any_measurement_is_not_used():
    assert [numbers.usable(value) for value in (1e300, -1e300, 10**400, *NO_NUMBERS)] == [None] * 6
    assert [numbers.usable(value) for value in (0, -1.5, 9.99e299, -9.99e299)] == [0, -1.5, 9.99e299, -9.99e299]
