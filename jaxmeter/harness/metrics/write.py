"""How a metric and the details of a probe are written: the unit decides, here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Metric, Reading, Summary, Unit
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, Interval
from jaxmeter.harness.metrics.within import stand_alone
from jaxmeter.harness.record.outcomes import (
    CompilationDetails,
    Conditioning,
    Correctness,
    Details,
    NumericsDetails,
    TimingDetails,
    TraceDetails,
    describe_trap,
)
from jaxmeter.harness.record.trace_summary import Finding, TraceSummary
from jaxmeter.harness.record.wording import counted, shorten

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


IN_FULL = "float32"
"""The format in which float32 products lose nothing, which is nothing to say."""

NO_LINE = "no operation has a line of your code: all source lines are of installed packages, or the program has none"
"""Why a capture has no time by source line."""


def describe_details(details: Details | None, *, raises: str | None = None) -> tuple[str, ...]:
    """Return what a reader must know in addition to the numbers, a sentence each, unless a section of its own shows it.

    Args:
      raises: The error that the implementation declares, by name.
    """
    match details:
        case TimingDetails():
            return _describe_processes(details)
        case NumericsDetails():
            return _describe_comparison(details, raises)
        case CompilationDetails():
            return (*_describe_cached(details.cached), *map(describe_trap, details.traps))
        case TraceDetails(summary=TraceSummary() as summary):
            return tuple(map(describe_finding, summary.findings))
        case _:
            return ()


def _describe_cached(stages: tuple[str, ...]) -> tuple[str, ...]:
    return (f"cached: {', '.join(stages)}; this process had compiled the program before",) if stages else ()


def describe_finding(finding: Finding) -> str:
    """Say what is wrong with a capture, what follows from it, and what helps."""
    says = "the capture gives no numbers" if finding.is_fatal else "the capture"
    return f"{says}: {finding.text}{'; ' if finding.remedy else ''}{finding.remedy}"


def _describe_processes(details: TimingDetails) -> tuple[str, ...]:
    sentences = []
    if details.contended:
        many = f"{details.contended} of {details.processes} processes"
        enough = stand_alone(details.processes - details.contended, details.processes)
        sentences.append(f"set aside: {many}, contended" if enough else f"contended: {many} were contended")
    if details.unsteady:
        sentences.append(f"no steady state within the warm-up in {details.unsteady} of {details.processes} processes")
    return tuple(sentences)


def _describe_comparison(details: NumericsDetails, raises: str | None) -> tuple[str, ...]:
    sentences = []
    if details.raised is not None:
        error = "raises" if raises is None else f"raises {raises}"
        sentences.append(f"{error}, as declared: {details.raised}")
    if details.products not in (None, IN_FULL):
        sentences.append(f"float32 matrix products are computed in {details.products}")
    if details.unchecked:
        sentences.append(f"not checked: {details.unchecked} of {details.outputs} outputs, NaN in both results")
    if details.verdict is not None and details.conditioning is not None:
        sentences.append(_describe_conditioning(details.verdict, details.conditioning, details.outputs))
    return tuple(sentences)


def _describe_conditioning(verdict: Correctness, conditioning: Conditioning, outputs: int | None) -> str:
    """`right within the problem's conditioning: 13 of 170 outputs are beyond their tolerance; worst ['w']: …`."""
    of_all = "" if outputs is None else f" of {counted(outputs, 'output')}"
    verb = "is" if conditioning.beyond == 1 else "are"
    parts = [f"{conditioning.beyond}{of_all} {verb} beyond the tolerance"]
    where = f" at {conditioning.worst}" if conditioning.worst else ""
    if conditioning.is_too_slow:
        parts.append(f"error {_write(conditioning.error)}{where}; running the program on moved inputs takes too long")
    else:
        error, allowed = _write(conditioning.error), _write(conditioning.allowed)
        parts.append(f"error {error}{where}, rounding alone explains {allowed}")
        parts.append(f"{conditioning.digits or 0:.1f} digits of that output are left")
        if conditioning.unresolved and verdict is not Correctness.CANNOT_BE_CHECKED:
            parts.append(f"{conditioning.unresolved} cannot be checked: rounding alone reaches their size")
    return f"{verdict.value}: {'; '.join(parts)}"


def _write(error: float | None) -> str:
    return "beyond any number" if error is None else f"{error:.2g}"
