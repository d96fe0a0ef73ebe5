"""Every metric, declared once: its unit, which direction is better, and what exactly it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What a metric's numbers count. Records hold these units; scaling happens when shown."""

    SECONDS = "s"
    BYTES = "B"
    COUNT = "count"
    RATIO = "ratio"
    LOG_RATIO = "log ratio"
    FLOP_PER_SECOND = "FLOP/s"
    BYTES_PER_SECOND = "B/s"


class Direction(StrEnum):
    """Which way is better."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"
    EXACT = "exact"


@dataclass(frozen=True)
class Metric:
    """A named result. `probe` is the probe that measures it, or None where it is derived on reading."""

    name: str
    unit: Unit
    direction: Direction
    probe: str | None
    definition: str


_TABLE = (
    Metric(
        "max_error",
        Unit.RATIO,
        Direction.LOWER,
        "numerics",
        "Largest absolute difference from the reference, over the reference's largest absolute entry.",
    ),
    Metric(
        "execution_s",
        Unit.SECONDS,
        Direction.LOWER,
        "timing",
        "One call until its result is ready, compiled and warmed up: the median over the clean blocks of one launch.",
    ),
    Metric(
        "log_ratio",
        Unit.LOG_RATIO,
        Direction.HIGHER,
        "timing",
        "log(baseline variant's time / this variant's time): the median over one launch's sweeps, each sweep "
        "timing both within the same moment. Peers, launched on their own, are paired by launch order instead.",
    ),
    Metric(
        "dispatch_s",
        Unit.SECONDS,
        Direction.LOWER,
        "timing",
        "One call until it returns, whether or not its result is ready; taken apart from execution_s. "
        "The median over one launch.",
    ),
    Metric(
        "trace_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "Python function to jaxpr (`jit(f).trace`), first time in a fresh process.",
    ),
    Metric(
        "lower_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "Jaxpr to StableHLO (`.lower`), first time in a fresh process.",
    ),
    Metric(
        "compile_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "StableHLO to executable (`.compile`) with the persistent compilation cache off, in a fresh process.",
    ),
    Metric(
        "first_call_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "The first call until its result is ready, after the stages above; for eager code it holds every "
        "operation's own compilation.",
    ),
    Metric(
        "jaxpr_equations",
        Unit.COUNT,
        Direction.NEITHER,
        "compilation",
        "Equations at the top level of the jaxpr.",
    ),
    Metric(
        "argument_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "memory",
        "Memory of the program's arguments, as the compiler plans it (`memory_analysis`).",
    ),
    Metric(
        "output_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "memory",
        "Memory of the program's outputs, as the compiler plans it (`memory_analysis`).",
    ),
    Metric(
        "temp_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "memory",
        "Memory of temporaries, as the compiler plans it (`memory_analysis`).",
    ),
    Metric(
        "alias_bytes",
        Unit.BYTES,
        Direction.NEITHER,
        "memory",
        "Output memory that reuses argument memory (donated buffers), as the compiler plans it.",
    ),
    Metric(
        "code_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "memory",
        "Size of the generated code (`memory_analysis`); 0 where the backend does not tell.",
    ),
    Metric(
        "trace_file_bytes",
        Unit.BYTES,
        Direction.NEITHER,
        "trace",
        "Size of the captured profile (`*.xplane.pb`).",
    ),
    Metric(
        "speedup",
        Unit.RATIO,
        Direction.HIGHER,
        None,
        "Baseline variant's time over this variant's time: exp of the mean log_ratio over launches.",
    ),
    Metric(
        "break_even_calls",
        Unit.COUNT,
        Direction.LOWER,
        None,
        "Calls after which jit has paid for its compilation against eager code, both from a cold process.",
    ),
    Metric(
        "planned_bytes",
        Unit.BYTES,
        Direction.LOWER,
        None,
        "argument_bytes + output_bytes + temp_bytes - alias_bytes.",
    ),
    Metric(
        "growth_exponent",
        Unit.RATIO,
        Direction.NEITHER,
        None,
        "Slope of log(metric) against log(n) over a sweep of n: 1 is linear, 2 is quadratic.",
    ),
    Metric(
        "achieved_flops",
        Unit.FLOP_PER_SECOND,
        Direction.HIGHER,
        None,
        "Declared floating-point operations over execution_s.",
    ),
    Metric(
        "achieved_bandwidth",
        Unit.BYTES_PER_SECOND,
        Direction.HIGHER,
        None,
        "Declared bytes that must move over execution_s.",
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}


def metrics_of(probe: str) -> tuple[str, ...]:
    """Names of the metrics that a probe measures."""
    return tuple(metric.name for metric in _TABLE if metric.probe == probe)
