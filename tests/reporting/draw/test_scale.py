"""Scales: limits and ticks follow from the data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.reporting.draw.scale import MOST_TICKS, Scale, fit_changes, fit_scale, fit_sizes, write_tick
from jaxmeter.reporting.view.page_model import Axis


def fit(values: list[float], unit: Unit, *, is_log: bool = False, pixels: float = 500) -> Scale:
    return fit_scale(Axis("", unit, is_log), values, 0, pixels)


def texts(scale: Scale) -> list[str]:
    return [tick.text.replace("\u202f", " ") for tick in scale.ticks]


@pytest.mark.parametrize(
    ("values", "unit", "is_log", "ticks"),
    [
        ([3.7e-4, 8.5e-3], Unit.SECONDS, True, "100 µs|1 ms|10 ms"),
        ([1.3, 4.1], Unit.SECONDS, True, "1 s|2 s|5 s"),
        ([0.93], Unit.SECONDS, False, "0|200 ms|400 ms|600 ms|800 ms|1 s"),
        ([37.4 * 2**20], Unit.BYTES, False, "0|10 MiB|20 MiB|30 MiB|40 MiB"),
        ([2.0], Unit.COUNT, False, "0|1|2"),
        ([1e-9], Unit.COUNT, False, "0|1"),
    ],
    ids=["full decades", "steps of 1, 2, 5", "a full step", "round binary ticks", "whole counts", "a tiny count"],
)
def test_an_axis_ends_at_round_ticks(values: list[float], unit: Unit, is_log: bool, ticks: str) -> None:
    scale = fit(values, unit, is_log=is_log)

    assert texts(scale) == ticks.split("|")
    assert (scale.low, scale.high) == (scale.ticks[0].value, pytest.approx(scale.ticks[-1].value))


def test_equal_values_still_span_an_axis_and_a_rounding_error_above_100_percent_adds_no_tick() -> None:
    scale = fit([5.0, 5.0], Unit.COUNT, is_log=True)

    assert scale.low < 5 < scale.high
    assert fit([1.0000001], Unit.SHARE).high == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (fit_sizes(Axis("", Unit.COUNT, is_log=True), [8, 16, 32, 64, 128, 256, 512], 0, 200), "8|32|128|512"),
        (fit_sizes(Axis("", Unit.COUNT, names=("0.9.1", "0.9.2", "0.10.0")), [1, 2, 3], 0, 300), "0.9.1|0.9.2|0.10.0"),
        (fit_changes(Axis("", Unit.RATIO, is_log=True), [0.92, 1.04], 0, 500), "−10 %|−5 %|0|+5 %"),
        (fit_changes(Axis("", Unit.RATIO, is_log=True), [0.02, 30.0], 0, 500), "0.01×|0.1×|1×|10×|100×"),
    ],
    ids=["sizes", "releases", "changes in percent", "changes by factors"],
)
def test_ticks_are_sizes_names_or_changes(scale: Scale, ticks: str) -> None:
    assert texts(scale) == ticks.split("|")


@pytest.mark.parametrize(("high", "base"), [(2.0**20, 4), (2.0**33, 32)])
def test_ticks_of_bytes_are_powers_of_4_or_32(high: float, base: int) -> None:
    first, second, *_ = fit([2.0**14, high], Unit.BYTES, is_log=True).ticks

    assert second.value / first.value == base


def test_a_narrow_axis_has_fewer_ticks() -> None:
    assert len(fit([0.93], Unit.SECONDS, pixels=90).ticks) < len(fit([0.93], Unit.SECONDS).ticks)


def test_a_logarithmic_axis_does_not_show_0() -> None:
    scale = fit([1.0, 100.0], Unit.COUNT, is_log=True)

    assert not scale.shows(0.0)
    assert not scale.shows(float("nan"))
    assert scale.shows(1.0)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1e-2, Unit.SECONDS, "10 ms"),
        (2.5, Unit.SECONDS, "2.5 s"),
        (-0.1, Unit.SECONDS, "−100 ms"),
        (2.0**30, Unit.BYTES, "1 GiB"),
        (0.125, Unit.SHARE, "12.5 %"),
        (1000, Unit.COUNT, "1 000"),
        (2.5e6, Unit.COUNT, "2.5e6"),
        (1e-9, Unit.COUNT, "1e−9"),
        (1e11, Unit.FLOP_PER_SECOND, "100 GFLOP/s"),
        (10, Unit.RATIO, "10×"),
    ],
)
def test_a_tick_has_a_unit_and_no_trailing_zeros(value: float, unit: Unit, text: str) -> None:
    assert write_tick(value, unit).replace("\u202f", " ") == text


VALUES = st.lists(st.floats(1e-9, 1e15), min_size=1, max_size=8)


@given(values=VALUES, unit=st.sampled_from(Unit), is_log=st.booleans(), pixels=st.floats(60, 600))
def test_every_value_lies_on_its_axis_and_no_two_ticks_read_the_same(
    values: list[float], unit: Unit, is_log: bool, pixels: float
) -> None:
    scale = fit_scale(Axis("", unit, is_log), values, 0, pixels)

    assert all(-0.01 <= scale(value) <= pixels + 0.01 for value in values)
    assert 1 <= len(scale.ticks) <= MOST_TICKS
    assert len(set(texts(scale))) == len(scale.ticks)
    assert all(scale.low <= tick.value <= scale.high * (1 + 1e-9) for tick in scale.ticks)


@pytest.mark.parametrize("is_log", [False, True])
def test_a_number_next_to_0_is_shown_as_0(*, is_log: bool) -> None:
    scale = fit([5e-324], Unit.SECONDS, is_log=is_log)

    assert scale.low < scale.high
    assert scale.shows(5e-324) is not is_log
