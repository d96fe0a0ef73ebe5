"""Scales and axes: from a value to a pixel, with limits and ticks that follow from the data."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Unit

from ..view.page_model import Axis
from .canvas import FONT_SIZE, Canvas, measure_text

MOST_TICKS = 6
"""More are not read one by one."""

TICK_AIR = 12
"""Pixels between the texts of two ticks."""

SLACK = 1e-5
"""Of a step, for rounding: shares add up to 1.0000001, and log10(1000) is a little below 3. Never 0.01 pixels."""

MOST_SIZES = 12
"""Sizes of a sweep that can be ticks themselves; more are a cloud, and get the ticks of a plain axis."""

SMALLEST = 1e-300
"""Less is nothing: the next power of ten below it, or a step between two ticks, could be 0."""

LEAST_PERCENT, LARGEST_PERCENT = 0.5, 1.5
"""A change by more, or to less than half, is written as a factor: `3×`."""


@dataclass(frozen=True)
class Tick:
    """A value that an axis names."""

    value: float
    text: str


@dataclass(frozen=True)
class Scale:
    """A scale from `low` at the pixel `start` to `high` at the pixel `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool
    ticks: tuple[Tick, ...] = ()

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; the value is one that the scale shows."""
        low, high, at = (math.log(v) if self.is_log else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def shows(self, value: float | None) -> bool:
        """Return whether the value has a place: a number, and positive on a logarithmic scale."""
        known = numbers.usable(value)
        return known is not None and (known > SMALLEST or not self.is_log)


def fit_scale(axis: Axis, values: Iterable[float], start: float, end: float, *, is_vertical: bool = False) -> Scale:
    """Return the scale that holds the values, with as many ticks as have room."""
    known = _keep_shown(axis, values)
    limits = _log_limits if axis.is_log else _linear_limits
    choices = [limits(min(known), max(known), axis.unit, most) for most in range(MOST_TICKS, 1, -1)]
    choices += [(low, high, (low, high)) for low, high, _ in choices[-1:]]  # both ends have room longest
    return _choose(choices, axis.is_log, start, end, lambda v: write_tick(v, axis.unit), is_vertical=is_vertical)


def fit_sizes(axis: Axis, sizes: Iterable[float], start: float, end: float) -> Scale:
    """Return the scale of a sweep: its ticks are the sizes themselves, as a reader compares these."""
    known = sorted(set(_keep_shown(axis, sizes)))
    if axis.names:
        ticks = [float(place) for place in range(1, len(axis.names) + 1)]
        low, high = min(0.5, known[0]), max(len(ticks) + 0.5, known[-1])
        names = dict(zip(ticks, axis.names, strict=True))
        choices = ((low, high, tuple(ticks[::step])) for step in range(1, len(ticks) + 1))
        return _choose(choices, False, start, end, names.__getitem__, is_vertical=False)
    are_few = 1 < len(known) <= MOST_SIZES and all(size == int(size) for size in known)
    if not axis.is_log or not are_few:
        return fit_scale(axis, known, start, end)
    steps = range(math.ceil(len(known) / MOST_TICKS), len(known) + 1)
    choices = ((known[0], known[-1], tuple(known[::step])) for step in steps)
    return _choose(choices, True, start, end, lambda v: write_tick(v, axis.unit), is_vertical=False)


def fit_changes(axis: Axis, ratios: Iterable[float], start: float, end: float) -> Scale:
    """Return a logarithmic scale of ratios around 1, written as changes in per cent; as factors if these are large."""
    known = [*_keep_shown(axis, ratios), 1.0]
    low, high = min(known), max(known)
    if not LEAST_PERCENT < low <= high < 1 + LARGEST_PERCENT:
        return fit_scale(axis, known, start, end)
    least = max(high - low, 0.01)  # One per cent: less is no change that can be confirmed.
    changes = (
        _linear_limits(low - 1, max(high, low + least) - 1, Unit.SHARE, most) for most in range(MOST_TICKS, 1, -1)
    )
    choices = ((1 + first, 1 + last, tuple(1 + tick for tick in ticks)) for first, last, ticks in changes)
    return _choose(choices, True, start, end, _write_change, is_vertical=False)


def write_tick(value: float, unit: Unit) -> str:
    """Return the text of a tick, without trailing zeros: `10 µs`, `32 MiB`, `50 %`, `1 000`."""
    if value == 0:
        return "0"
    if value < 0:
        return f"−{write_tick(-value, unit)}"
    if unit == Unit.SHARE:
        return f"{_write_number(100 * value)}{numbers.SPACE}%"
    write, least, most = _WRITERS.get(unit, (None, 0.0, 0.0))
    if write and least <= value < most:
        # A zero behind the point, before the unit: `10.0 ms` is `10 ms`, `2.50 s` is `2.5 s`.
        return re.sub(r"(\.\d*?)0+(?!\d)", r"\1", write(value)).replace(f".{numbers.SPACE}", numbers.SPACE)
    return _write_number(value) + _SUFFIXES.get(unit, "")


_WRITERS: dict[Unit, tuple[Callable[[float], str], float, float]] = {
    Unit.SECONDS: (numbers.time, 1e-9, 1e6),
    Unit.BYTES: (numbers.memory, 1.0, 2.0**60),
    Unit.FLOP: (lambda value: numbers.amount(value, "FLOP"), 1.0, 1e21),
    Unit.FLOP_PER_SECOND: (lambda value: numbers.amount(value, "FLOP/s"), 1.0, 1e21),
    Unit.BYTES_PER_SECOND: (lambda value: numbers.amount(value, "B/s"), 1.0, 1e21),
}
"""How a unit is written, and from where to where; beyond, its prefixes end."""

_SUFFIXES: dict[Unit, str] = {unit: numbers.SPACE + unit.value for unit in _WRITERS} | {
    Unit.RATIO: "×",
    Unit.ITEMS_PER_SECOND: "/s",
}


def _write_number(value: float) -> str:
    """Return `1 000`, `0.25`, from a million on `2.5e6`, below a thousandth `1e−6`."""
    value = float(f"{value:.6g}")
    if 1e-3 <= value < 1e6:
        return numbers.number(value)
    mantissa, power = f"{value:e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}".replace("-", "−")


def _write_change(ratio: float) -> str:
    change = round(ratio - 1, 9)
    return f"+{write_tick(change, Unit.SHARE)}" if change > 0 else write_tick(change, Unit.SHARE)


def _keep_shown(axis: Axis, values: Iterable[float]) -> list[float]:
    """Return the values that have a place on the axis; where none has, one that shows an empty axis."""
    known = [value for value in values if numbers.usable(value) is not None and (value > SMALLEST or not axis.is_log)]
    return known or [1.0]


Limits = tuple[float, float, tuple[float, ...]]
"""Low, high, and ticks between them."""


def _choose(
    choices: Iterable[Limits],
    is_log: bool,
    start: float,
    end: float,
    write: Callable[[float], str],
    *,
    is_vertical: bool,
) -> Scale:
    """Return the first choice whose ticks have room and differ in text; else the last one, without equal texts."""
    for low, high, ticks in choices:
        by_text = {write(value): value for value in reversed(ticks)}
        scale = Scale(low, high, start, end, is_log, tuple(Tick(v, text) for text, v in reversed(by_text.items())))
        if len(by_text) == len(ticks) and _have_room(scale, is_vertical):
            break
    return scale


def _have_room(scale: Scale, is_vertical: bool) -> bool:
    sizes = [FONT_SIZE if is_vertical else measure_text(tick.text) for tick in scale.ticks]
    places = [scale(tick.value) for tick in scale.ticks]
    pairs = itertools.pairwise(zip(places, sizes, strict=True))
    return all(abs(q - p) >= (a + b) / 2 + TICK_AIR for (p, a), (q, b) in pairs)


def _log_limits(low: float, high: float, unit: Unit, most: int) -> Limits:
    """Return full powers around the data: of 4 or 32 for bytes, else of 10; 1-2-5 within less than a decade."""
    if unit == Unit.BYTES:
        ticks = _list_powers(low, high, 4)
        ticks = ticks if len(ticks) <= most else _list_powers(low, high, 32)
    elif high < 10 * low:
        ticks = _list_steps_around(low, high)
    else:
        ticks = _list_powers(low, high, 10)
    return ticks[0], ticks[-1], tuple(ticks[:: math.ceil(len(ticks) / most)])


def _list_powers(low: float, high: float, base: int) -> list[float]:
    first = math.floor(math.log(low, base) + SLACK)
    last = max(math.ceil(math.log(high, base) - SLACK), first + 1)
    # As text for base 10: 10.0 ** -9 is not 1e-9.
    return [float(f"1e{power}") if base == 10 else float(base) ** power for power in range(first, last + 1)]


def _list_steps_around(low: float, high: float) -> list[float]:
    """Return the steps 1-2-5 that hold data within a decade, at least two of them."""
    power = math.floor(math.log10(low))
    steps = [float(f"{digit}e{power + more}") for more in (-1, 0, 1, 2) for digit in (1, 2, 5)]
    first = max(index for index, step in enumerate(steps) if step <= low * (1 + SLACK))
    last = min(index for index, step in enumerate(steps) if step >= high * (1 - SLACK))
    return steps[first - (first == last) : last + 1 + (first == last)]


def _linear_limits(low: float, high: float, unit: Unit, most: int) -> Limits:
    """Return limits that hold 0 and the data, at full steps."""
    low, high = min(low, 0.0), max(high, 0.0)
    if high - low < SMALLEST:
        low, high = 0.0, 1.0
    for step in _list_linear_steps((high - low) / MOST_TICKS, unit):
        first = math.floor(low / step + SLACK)
        last = max(math.ceil(high / step - SLACK), first + 1)
        if last - first < most:
            break
    return first * step, last * step, tuple(place * step for place in range(first, last + 1))


def _list_linear_steps(least: float, unit: Unit) -> Iterator[float]:
    """Yield the steps 1-2-2.5-5 from about `least` on; of bytes in the unit of the whole, of counts whole ones."""
    size = 1.0
    digits: Sequence[float] = (1, 2, 2.5, 5)
    if unit == Unit.BYTES:
        size = 1024.0 ** max(math.floor(math.log(max(least * MOST_TICKS, 1.0), 1024)), 0)
    power = math.floor(math.log10(least / size))
    for exponent in itertools.count(power):
        for digit in digits:
            step = float(f"{digit}e{exponent}") * size
            if unit != Unit.COUNT or step == int(step):
                yield step


TICK_DROP, TITLE_DROP = 16, 30
"""Pixels from the plot to the baselines of ticks and of the title below them. The lowest tick at the left reaches 7."""

BELOW = 35
"""Pixels that an axis below a plot takes."""

TICK_GAP = 5


def draw_x_axis(canvas: Canvas, scale: Scale, top: float, bottom: float, title: str) -> None:
    """Draw hairlines over the plot, ticks below it, and the title at the right."""
    canvas.grid((scale(tick.value) for tick in scale.ticks), top, bottom, is_vertical=True)
    for tick in scale.ticks:
        canvas.text(scale(tick.value), bottom + TICK_DROP, tick.text, "tick", anchor="middle")
    canvas.text(max(scale.start, scale.end), bottom + TITLE_DROP, title, "title", anchor="end")


def draw_y_axis(canvas: Canvas, scale: Scale, left: float, right: float) -> None:
    """Draw hairlines over the plot, and ticks left of it; the title stands above the plot."""
    canvas.grid((scale(tick.value) for tick in scale.ticks), left, right, is_vertical=False)
    for tick in scale.ticks:
        canvas.text(left - TICK_GAP, scale(tick.value) + 4, tick.text, "tick", anchor="end")


def draw_limit(canvas: Canvas, x: float, top: float, bottom: float, text: str) -> None:
    """Draw a dashed vertical line, and its name."""
    canvas.line(x, top, x, bottom, "limit")
    name_limit(canvas, x, top, text)


def name_limit(canvas: Canvas, x: float, top: float, text: str) -> None:
    """Write the name of a vertical line; it ends above the line, since a column of notes may begin right of it."""
    canvas.text(x, top - 3, text, "label b", anchor="end")


def draw_level_name(canvas: Canvas, right: float, y: float, text: str, rooms: tuple[float, ...]) -> None:
    """Write the name of a horizontal line above it, else below it, in the first room that no other text takes."""
    for room, drop in itertools.product(rooms, (-4, 12)):
        if canvas.text(right, y + drop, text, "direct label b", anchor="end", room=room) is not None:
            return
