"""How a metric is written: its unit decides, here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Metric, Reading, Summary, Unit
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, Interval
from jaxmeter.harness.record.wording import shorten

LONGEST_UNIT = 32
"""Of a throughput, which a suite names."""

_WRITERS: Mapping[Unit, Callable[[float | None], str]] = {
    Unit.SECONDS: numbers.difference,
    Unit.BYTES: numbers.memory,
    Unit.COUNT: numbers.number,
    Unit.FLOP: lambda value: numbers.amount(value, "FLOP"),
    Unit.RATIO: numbers.speedup,
    Unit.SHARE: numbers.percent,
    Unit.RELATIVE_ERROR: numbers.error,
    Unit.LOG_RATIO: numbers.number,
    Unit.EXPONENT: numbers.number,
    Unit.FLOP_PER_SECOND: lambda value: numbers.amount(value, "FLOP/s"),
    Unit.BYTES_PER_SECOND: lambda value: numbers.amount(value, "B/s"),
}

_WRITERS_WITH_BOUNDS: Mapping[Unit, Callable[[Interval | None, str], tuple[str, str]]] = {
    Unit.SECONDS: numbers.difference_with_bounds,
    Unit.RATIO: numbers.speedup_with_bounds,
    Unit.SHARE: numbers.percent_with_bounds,
    Unit.EXPONENT: numbers.exponent_with_bounds,
    Unit.FLOP_PER_SECOND: lambda interval, form: numbers.amount_with_bounds(interval, "FLOP/s", form),
    Unit.BYTES_PER_SECOND: lambda interval, form: numbers.amount_with_bounds(interval, "B/s", form),
}

_EXACT_WRITERS: Mapping[Unit, Callable[[float], str]] = {
    Unit.SECONDS: numbers.exact_time,
    Unit.BYTES: lambda value: numbers.amount_exactly(value, "B"),
    Unit.FLOP: lambda value: numbers.amount_exactly(value, "FLOP"),
}
"""Writers of exact numbers, for two numbers that their usual digits do not distinguish."""


def write(metric: Metric, value: float | None) -> str:
    """`451 µs`, `1.91 MiB`, `8.7×`: a value in the metric's unit; a dash where there is none."""
    if metric.unit is Unit.ITEMS_PER_SECOND:
        return write_interval(metric, None if value is None else Interval(None, value, None, 1))[0]
    return _WRITERS[metric.unit](value)


def write_sides(metric: Metric, before: float | None, after: float | None) -> tuple[str, str]:
    """Write two values: (`451 µs`, `460 µs`), or (`17 203 200 B`, `17 240 064 B`) if both would read the same."""
    exact = _EXACT_WRITERS.get(metric.unit)
    if exact is None:
        return write(metric, before), write(metric, after)
    return numbers.distinguish(before, after, lambda value: write(metric, value), exact)


def write_reading(reading: Reading) -> tuple[str, str]:
    """(`451 µs`, `[448, 456]`): the number, with the digits that its interval allows, and its bounds.

    Where too few processes give bounds, it has their range instead. A metric that may be below 0, or is no mean of
    processes, has none.
    """
    is_mean = reading.metric.summary in (Summary.TIMING, Summary.PROCESSES)
    is_few = len(reading.known) < FEWEST_PROCESSES
    return write_range(reading) if is_mean and is_few else write_interval(reading.metric, reading.interval)


def write_range(reading: Reading) -> tuple[str, str]:
    """(`451 µs`, `448 to 456`): the number between the smallest and the largest of its processes."""
    interval, known = reading.interval, reading.known
    if interval is None or len(set(known)) == 1:
        return write_interval(reading.metric, interval)
    whole = Interval(min(known), interval.estimate, max(known), interval.count)
    return write_interval(reading.metric, whole, numbers.RANGE)


def write_interval(metric: Metric, interval: Interval | None, form: str = numbers.BOUNDS) -> tuple[str, str]:
    """The same of an interval in the metric's unit."""
    if metric.unit is Unit.ITEMS_PER_SECOND:
        return numbers.throughput_with_bounds(interval, shorten(metric.unit_text, LONGEST_UNIT), form)
    writer = _WRITERS_WITH_BOUNDS.get(metric.unit)
    if writer is None:
        return write(metric, None if interval is None else interval.estimate), numbers.MISSING
    return writer(interval, form)
