"""How a metric is written: its unit decides, here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.record.metric import Metric, Reading, Unit
from harness.record.statistics import Interval

from . import numbers

_WRITERS: Mapping[Unit, Callable[[float | None], str]] = {
    Unit.SECONDS: numbers.difference,
    Unit.BYTES: numbers.memory,
    Unit.COUNT: numbers.number,
    Unit.FLOP: lambda value: numbers.amount(value, "FLOP"),
    Unit.RATIO: numbers.gain,
    Unit.SHARE: numbers.percent,
    Unit.RELATIVE_ERROR: numbers.error,
    Unit.LOG_RATIO: numbers.number,
    Unit.EXPONENT: numbers.number,
    Unit.FLOP_PER_SECOND: lambda value: numbers.amount(value, "FLOP/s"),
    Unit.BYTES_PER_SECOND: lambda value: numbers.amount(value, "B/s"),
}

_WRITERS_WITH_BOUNDS: Mapping[Unit, Callable[[Interval | None], tuple[str, str]]] = {
    Unit.SECONDS: numbers.difference_with_bounds,
    Unit.RATIO: numbers.gain_with_bounds,
    Unit.EXPONENT: numbers.exponent_with_bounds,
}


def write(metric: Metric, value: float | None) -> str:
    """`451 µs`, `1.91 MiB`, `8.7×`: a value in the metric's unit; a dash where there is none."""
    return _WRITERS[metric.unit](value)


def write_reading(reading: Reading) -> tuple[str, str]:
    """(`451 µs`, `[448, 456]`): the number, with the digits that its interval allows, and its bounds.

    A unit in which nothing has an interval has no bounds.
    """
    return write_interval(reading.metric, reading.interval)


def write_interval(metric: Metric, interval: Interval | None) -> tuple[str, str]:
    """The same of an interval in the metric's unit."""
    writer = _WRITERS_WITH_BOUNDS.get(metric.unit)
    if writer is None:
        return write(metric, None if interval is None else interval.estimate), numbers.MISSING
    return writer(interval)
