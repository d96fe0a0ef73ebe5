"""Sweeps: cases of one workload that differ in one param, and how a metric grows over it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Metric, Reading
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_interval
from jaxmeter.harness.record import Param
from jaxmeter.harness.record.wording import shorten

from ..compare.ratios import divide_readings
from ..compare.scaling import Scaling, find_slope, fit_exponent
from .names import LONGEST_NAME, LONGEST_TERM

PARAM = "n"
"""The size of a problem: what growth is told of, unless another param is named."""

SCALING = METRICS["compile_exponent"]
"""How the exponent of any metric is written."""

DEVICES = "devices"
FEWEST_SIZES = 3

MODES = ("jit", "aot", "mixed", "native", "eager")
"""One mode for each implementation, the first that it has: compiled as a whole where it can be."""


@dataclass(frozen=True)
class Sweep:
    """Cases of one workload that differ in one param only, by its value."""

    run: Run
    workload: str
    fixed: str
    cases: tuple[tuple[float, Case], ...]
    param: str = PARAM

    @property
    def label(self) -> str:
        """The workload, its param, what its cases share, and where they ran."""
        fixed = f" [{self.fixed}]" if self.fixed else ""
        return f"{shorten(self.workload + fixed, LONGEST_NAME)} over {self.param} · {self.run.label}"

    @cached_property
    def modes(self) -> dict[str, str]:
        """The mode that stands for each implementation, in the order of the plan."""
        modes: dict[str, str] = {}
        for planned in (variant.planned for _, case in self.cases for variant in case.shown):
            if planned.mode in MODES:
                before = modes.get(planned.implementation, planned.mode)
                modes[planned.implementation] = min(before, planned.mode, key=MODES.index)
        return modes

    @property
    def implementations(self) -> tuple[str, ...]:
        """In the order of the plan."""
        return tuple(self.modes)

    def name(self, implementation: str) -> str:
        """Of the implementation's variants, such as `loop:jit`."""
        return f"{implementation}:{self.modes[implementation]}"

    def variants(self, implementation: str) -> tuple[tuple[float, Variant], ...]:
        """The implementation's variants by size."""
        return tuple(
            (n, variant)
            for n, case in self.cases
            for variant in case.shown
            if variant.planned.implementation == implementation
            and variant.planned.mode == self.modes.get(implementation)
        )

    def list_readings(self, implementation: str, metric: Metric) -> tuple[tuple[float, Reading], ...]:
        """Return the sizes with a number above 0, each with it."""
        return tuple((n, reading) for n, _, reading, _ in self._read(implementation, metric))

    def fit(self, implementation: str, metric: Metric) -> Scaling | None:
        """How the metric grows through the points; None with fewer than three."""
        points = self._read(implementation, metric)
        sizes, values = [n for n, *_ in points], [interval.estimate for *_, interval in points]
        if len(set(sizes)) < FEWEST_SIZES:
            return None
        exact = all(reading.exact for _, _, reading, _ in points)
        try:
            shown, decisive = (
                fit_exponent(sizes, values, confidence=level, exact=exact)
                for level in (self.run.level, self.run.verdict_level)
            )
            exponent = replace(shown, verdict=decisive)
            slopes = tuple(_slope(*pair) for pair in pairwise(points) if pair[0][0] < pair[1][0])
        except (OverflowError, ValueError):
            # Sizes that differ by less than a logarithm can tell: there is no slope to give.
            return None
        return Scaling(exponent, slopes, exact)

    def _read(self, implementation: str, metric: Metric) -> list[_Point]:
        readings = ((n, variant, variant.read(metric.name)) for n, variant in self.variants(implementation))
        return [
            (n, variant, reading, interval)
            for n, variant, reading in readings
            if (interval := reading.interval) and interval.estimate > 0
        ]


_Point = tuple[float, Variant, Reading, Interval]
"""A size, and what was read there."""


def _slope(smaller: _Point, larger: _Point) -> Interval:
    """Between two sizes, which were measured in processes of their own."""
    (before, variant, below, low), (after, _, above, high) = smaller, larger
    ratio = divide_readings(above, below, variant.settings)
    return find_slope(ratio or Interval(None, high.estimate / low.estimate, None, 1), before, after)


def write_exponent(scaling: Scaling) -> tuple[str, str]:
    """(`1.02`, `[0.98, 1.06]`); an exact one has no bounds."""
    exponent, bounds = write_interval(SCALING, scaling.exponent)
    return exponent, numbers.MISSING if scaling.exact else bounds


def list_slopes(scaling: Scaling, *, bounds: bool = False) -> list[str]:
    """The exponents between neighbouring sizes: `0.93`; with bounds `0.93 [0.90, 0.96]`."""
    slopes = (write_interval(SCALING, slope) for slope in scaling.slopes)
    return [f"{text} {around}" if bounds and around != numbers.MISSING else text for text, around in slopes]


def find_sweeps(cases: Sequence[Case]) -> Iterable[Sweep]:
    """Every sweep of at least three different values: over n, over devices, then over any other param."""
    params = dict.fromkeys((PARAM, DEVICES, *(name for case in cases for name in case.planned.params)))
    sweeps = (sweep for param in params for sweep in group_cases(cases, param))
    return (sweep for sweep in sweeps if len({n for n, _ in sweep.cases}) >= FEWEST_SIZES)


def group_cases(cases: Iterable[Case], param: str = PARAM) -> Iterable[Sweep]:
    """All cases with such a param by what they have in common: run, workload and the other params."""
    groups: dict[tuple[str, str, str, str], list[tuple[float, Case]]] = {}
    for case in cases:
        n = _size(case.planned.params.get(param))
        if n is not None:
            fixed = ", ".join(f"{key}={value}" for key, value in sorted(case.planned.params.items()) if key != param)
            key = (case.planned.suite, case.planned.workload, fixed, case.run.name)
            groups.setdefault(key, []).append((n, case))
    for (_, workload, fixed, _), members in groups.items():
        by_size = tuple(sorted(members, key=lambda member: member[0]))
        yield Sweep(by_size[0][1].run, workload, fixed, by_size, shorten(param, LONGEST_TERM))


def _size(value: Param | None) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    size = numbers.usable(value)
    return size if size is not None and size > 0 else None
