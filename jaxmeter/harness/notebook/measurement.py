"""What `jaxmeter.measure` returns: the results of one call, their ratios, as a document or drawn by matplotlib."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxmeter.document import html, numbers, terminal
from jaxmeter.document.model import Cell, Column, Document, Item, Part, Tone, make_table
from jaxmeter.document.numbers import choose_unit
from jaxmeter.harness.metrics.derived import describe_bound_of, find_trace
from jaxmeter.harness.metrics.plausibility import OF_PASSES, describe_disagreement, find_objection
from jaxmeter.harness.metrics.reading import Variant, read_case
from jaxmeter.harness.metrics.statistics import find_block_time
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.within import is_slowed
from jaxmeter.harness.metrics.write import describe_details, write
from jaxmeter.harness.notebook.calls import SHOWN
from jaxmeter.harness.record import (
    AS_GIVEN,
    CaseRecord,
    CompilationDetails,
    Environment,
    Outcome,
    PlannedCase,
    ProcessRecord,
    Settings,
    Status,
    TimingDetails,
    VariantSamples,
)
from jaxmeter.harness.record.cases import explain_unknown
from jaxmeter.harness.record.outcomes import NOT_COUNTED, join_remarks
from jaxmeter.harness.record.wording import counted, describe_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


IN_PROCESS = (
    "measured inside this process: no interval between processes; compile times are not those of a fresh process"
)
MOST_OPERATIONS = 5
"""That a capture's remarks name."""

WITHIN = "speedups with 95 % confidence intervals over passes, within this process"

LEFT_OUT = "not measured: "
"""Begin of the note on modes that nobody asked for."""

MARK = "*"
"""Behind a time that is at odds with a speedup."""

COLUMNS = ("execution_s", "return_s", "trace_s", "lower_s", "compile_s", "first_call_s", "temp_bytes")
"""Metrics of the table: those that a variant has."""


@dataclass(frozen=True, repr=False)
class Measurement:
    """Results of functions in their modes. Printing it shows a table.

    Args:
      case: What was measured, as in the manifest of a run.
      record: The results, as in the case record of a run.
      environment: Device and versions.
      settings: How it was timed.
      process: The raw samples; None if nothing was timed.
    """

    case: PlannedCase
    record: CaseRecord
    environment: Environment
    settings: Settings
    process: ProcessRecord | None = None

    def value(self, variant: str, metric: str) -> float | None:
        """One metric of a variant, named in full or by its mode such as "jit"; None where it has none.

        Raises:
          KeyError: There is no such variant or metric; the message has those that there are.
        """
        item = self._find(variant)
        if metric not in METRICS or METRICS[metric].exponent_of is not None:
            known = (name for name, entry in METRICS.items() if entry.exponent_of is None)
            raise KeyError(explain_unknown("metric", metric, known))
        return next(iter(item.read(metric).known), None)

    def find_speedup(self, variant: str) -> Ratio | None:
        """Speedup over the first variant with a 95 % confidence interval over passes, within this process.

        None for the first variant, and where a result was not timed, is wrong, or depends on no argument. Also None for
        fewer than 6 passes in common, which have no interval.

        Raises:
          KeyError: There is no such variant; the message has those that there are.
        """
        item = self._find(variant)
        if self.process is None or item.planned.name == self.case.baseline:
            return None
        if any(find_objection(side.outcomes) for side in (item, self._find(self.case.baseline))):
            return None
        return compare_passes(self.process, self.case.baseline, item.planned.name)

    def list_disagreements(self) -> dict[str, str]:
        """By variant, why its time is at odds with the speedup; with the baseline variant, where any is."""
        times = {item.planned.name: next(iter(item.read("execution_s").known), None) for item in self._variants()}
        first = self.case.baseline
        disagreements = {}
        for name, time_s in times.items():
            if (ratio := self.find_speedup(name)) is None:
                continue
            names, pair = (_show(first), _show(name)), (times.get(first), time_s)
            if reason := describe_disagreement(names, pair, (ratio.low, ratio.high), OF_PASSES):
                disagreements[name] = f"{MARK} {reason}"
        return {first: next(iter(disagreements.values())), **disagreements} if disagreements else {}

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the time of each variant by matplotlib, with its speedup and a faint dot for each block of calls.

        Args:
          axes: Where to draw; None for a new figure.
        Raises:
          ImportError: matplotlib is not installed; the message says what to install.
          ValueError: No variant was timed.
        """
        timed = [] if self.process is None else [item for item in self.process.variants if item.blocks]
        if not timed:
            raise ValueError("no variant was timed, so there is nothing to draw")
        ratios = {item.variant: self.find_speedup(item.variant) for item in timed}
        notes = {name: "" if ratio is None else f", {ratio}" for name, ratio in ratios.items()}
        return draw_times([(_show(item.variant), item, notes[item.variant]) for item in timed], axes)

    def _explain_no_speedup(self, variant: Variant) -> Iterator[str]:
        """Say why a variant that was timed has no speedup, unless a probe says so."""
        name, first = variant.planned.name, self.case.baseline
        if self.process is None or name == first:
            return
        blocks = {item.variant: len(item.blocks) for item in self.process.variants}
        if not blocks.get(name) or not blocks.get(first) or self.find_speedup(name):
            return
        if any(find_objection(item.outcomes) for item in (variant, self._find(first))):
            return
        if passes := len(list_ratios(self.process, first, name)):
            yield f"no speedup: {counted(passes, 'pass', 'passes')}, and an interval needs {FEWEST_PASSES}"
        else:
            yield f"no speedup: slow eager code, timed separately from {_show(first)}"

    def __repr__(self) -> str:
        return terminal.write(self._describe())

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return html.write(self._describe())

    def _find(self, variant: str) -> Variant:
        """The first variant of this name or mode, as recorded or as shown."""
        for item in self._variants():
            names = item.planned.name, item.planned.mode
            if variant in (*names, *map(_show, names)):
                return item
        there = ", ".join(_show(planned.name) for planned in self.case.variants)
        why = "".join(f"; {note}" for note in self.record.notes if note.startswith(LEFT_OUT))
        raise KeyError(f"no variant '{variant}'; there are {there}{why}")

    def _variants(self) -> tuple[Variant, ...]:
        return read_case(self.case, self.record, self.environment, self.settings).variants

    def _describe(self) -> Document:
        """What was measured where, a table, and what must be known of it."""
        jax = self.environment.packages.get("jax", "?")
        title = f"{self.case.name} on {self.environment.device_count} x {self.environment.device_kind}, jax {jax}"
        at_odds = self.list_disagreements()
        variants = self._variants()
        shown = [
            name
            for name in COLUMNS
            if any(variant.read(name).known or name in _list_cached(variant.outcomes) for variant in variants)
        ]
        columns = (Column(METRICS[name].title, numeric=True) for name in shown)
        level = numbers.percent(CONFIDENCE)
        table = make_table(
            ("", Column("speedup", level, numeric=True), *columns),
            [self._make_row(variant, shown, at_odds) for variant in variants],
        )
        remarks = join_remarks(
            (_show(variant.planned.name), word)
            for variant in variants
            for word in (*_list_remarks(variant, self.process), *self._explain_no_speedup(variant))
        )
        notes = self.record.notes if len(variants) <= 1 else (*self.record.notes, WITHIN)
        doubts = tuple(Item(reason, tone=Tone.WARN) for reason in dict.fromkeys(at_odds.values()))
        below = Part(items=(*doubts, *map(Item, remarks)), notes=tuple(f"({_show(note)})" for note in notes))
        return Document(title, (Part(tables=(table,)), below))

    def _make_row(self, variant: Variant, shown: Sequence[str], at_odds: Mapping[str, str]) -> list[Cell]:
        ratio = self.find_speedup(variant.planned.name)
        is_baseline = variant.planned.name == self.case.baseline
        speedup = Cell("baseline" if is_baseline else numbers.MISSING)
        if ratio is not None:
            speedup = Cell(*numbers.speedup_with_bounds(ratio))
        cached = _list_cached(variant.outcomes)
        cells = []
        for name in shown:
            value = next(iter(variant.read(name).known), None)
            text = "cached" if value is None and name in cached else write(METRICS[name], value)
            is_doubted = name == COLUMNS[0] and variant.planned.name in at_odds
            cells.append(Cell(f"{text}{MARK}", tone=Tone.WARN) if is_doubted else Cell(text))
        return [Cell(_show(variant.planned.name)), speedup, *cells]


def _list_cached(outcomes: Mapping[str, Outcome]) -> list[str]:
    """Metrics of the stages that have no time, since this process had done them before."""
    outcome = outcomes.get("compilation")
    details = None if outcome is None else outcome.details
    return [f"{stage}_s" for stage in details.cached] if isinstance(details, CompilationDetails) else []


def _show(text: str) -> str:
    """A text with the name of the mode `as_given` as a person reads it."""
    return text.replace(AS_GIVEN, SHOWN)


def _list_remarks(variant: Variant, process: ProcessRecord | None) -> list[str]:
    """What a reader must know of a variant; nothing of numbers that the table does not show."""
    words = [word for item in variant.outcomes.items() for word in _describe(*item, process)]
    words += _describe_trace(variant)
    if objection := find_objection(variant.outcomes):
        words.append(objection)
    return [word for word in dict.fromkeys(words) if not word.startswith(NOT_COUNTED)]


def _describe_trace(variant: Variant) -> Iterator[str]:
    """Say what bounds a step, and which operations take most of the device's time."""
    summary = find_trace(variant)
    if summary is None:
        return
    yield describe_bound_of(variant)
    for operation in summary.operations[:MOST_OPERATIONS]:
        where = f", {operation.source}" if operation.source else ""
        what = f"{operation.name} ({operation.opcode or operation.category}{where})"
        yield f"{numbers.percent(operation.share)} of the device's time: {what}"


def _describe(probe: str, outcome: Outcome, process: ProcessRecord | None) -> Iterator[str]:
    """What a reader must know of a probe's outcome."""
    if outcome.status is Status.UNSUPPORTED and probe == "numerics":
        yield f"not measured: {outcome.reason}"
    elif outcome.status not in (Status.OK, Status.UNSUPPORTED):
        yield f"{outcome.status.value}: {outcome.reason}"
    if isinstance(outcome.details, TimingDetails):
        yield from _describe_timing(outcome.details, process)
    else:
        yield from describe_details(outcome.details)
    yield from outcome.notes


def _describe_timing(details: TimingDetails, process: ProcessRecord | None) -> Iterator[str]:
    """Say what disturbed the only process that there is."""
    if details.contended:
        is_slow = process is not None and is_slowed(process.device_states)
        what = "the device was throttled or its clock low" if is_slow else "other work took much processor time"
        yield f"contended: {what} while this was timed: absolute times are unreliable; speedups are paired"
    if details.unsteady:
        yield "no steady state within the warm-up: the first blocks may be slower than later ones"


INCHES = 6.0, 0.5
"""Width of a figure, and height of a row."""

LOG_FROM = 10.0
"""Quotient of the longest and the shortest time from which the axis is logarithmic."""


def draw_times(timed: Sequence[tuple[str, VariantSamples, str]], axes: Axes | None) -> Axes:
    """Return axes with a row for each variant: a mark at its time, and a faint dot for each of its blocks.

    Args:
      timed: Name, samples and note of each variant.
      axes: Where to draw; None for a new figure.
    Raises:
      ImportError: matplotlib is not installed; the message says what to install.
    """
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise ImportError(describe_missing(error) or str(error)) from error
    if axes is None:
        _, axes = pyplot.subplots(figsize=(INCHES[0], 1 + INCHES[1] * len(timed)), layout="constrained")
    blocks = [[find_block_time(block.samples_s) for block in samples.blocks] for _, samples, _ in timed]
    times = [statistics.median(own) for own in blocks]
    size, unit = choose_unit(min(times))
    for row, (own, time, (_, _, note)) in enumerate(zip(blocks, times, timed, strict=True)):
        axes.plot([value / size for value in own], [row] * len(own), "|", color="0.7")
        axes.plot(time / size, row, "o", color="C0")
        axes.annotate(f"{time / size:.3g} {unit}{note}", (time / size, row), (0, 6), textcoords="offset points")
    axes.set_yticks(range(len(timed)), [name for name, _, _ in timed])
    axes.set_ylim(len(timed) - 0.5, -0.7)
    axes.set_xlabel(f"time of a call [{unit}]")
    if max(times) > LOG_FROM * min(times):
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    return axes


CONFIDENCE = 0.95

FEWEST_PASSES = 6
"""Fewest passes whose ratios have an interval: of 5, even the smallest and the largest hold the median with 94 %."""


@dataclass(frozen=True)
class Ratio:
    """A speedup within one process, dimensionless; above 1 is faster.

    Args:
      low, high: Bounds of the 95 % confidence interval of the median.
      passes: How many pairs it is made of.
    """

    low: float
    estimate: float
    high: float
    passes: int

    @property
    def half_width(self) -> float:
        """Half the interval, relative to the estimate."""
        return (self.high - self.low) / 2 / self.estimate

    def __str__(self) -> str:
        return " ".join(numbers.speedup_with_bounds(self))


def list_ratios(process: ProcessRecord, baseline: str, variant: str) -> list[float]:
    """Return how many times faster a variant is than the baseline in each pass that they share, in rising order."""
    blocks = {
        item.variant: {block.pass_number: find_block_time(block.samples_s) for block in item.blocks}
        for item in process.variants
    }
    if baseline not in blocks or variant not in blocks:
        return []
    pairs = [
        (blocks[baseline][number], time_s) for number, time_s in blocks[variant].items() if number in blocks[baseline]
    ]
    return sorted(before / after for before, after in pairs if before > 0 and after > 0)


def compare_passes(process: ProcessRecord, baseline: str, variant: str) -> Ratio | None:
    """Return how many times faster a variant is than the baseline; None where they share fewer than FEWEST_PASSES.

    The estimate is the median over passes of the paired ratio, its interval that of the sign test: it supposes no
    distribution. It covers what varies within this process only.

    Source: Conover, Practical Nonparametric Statistics, 3rd edition, 1999, section 3.2.
    """
    ratios = list_ratios(process, baseline, variant)
    rank = find_rank(len(ratios))
    if rank is None:
        return None
    return Ratio(ratios[rank], statistics.median(ratios), ratios[-1 - rank], len(ratios))


def find_rank(count: int) -> int | None:
    """Return the largest rank, from 0, whose value and its mirror hold the median with 95 % confidence.

    None where even the smallest and the largest of so many values do not.
    """
    outside, largest = 0.0, None
    for rank in range(count // 2):
        outside += 2 * math.comb(count, rank) / 2**count
        if 1 - outside < CONFIDENCE:
            break
        largest = rank
    return largest
