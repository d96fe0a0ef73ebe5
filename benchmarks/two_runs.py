"""Do two runs of one machine agree as far as their intervals say?

    python -m benchmarks.two_runs RUN_A RUN_B

How wide the intervals of either run are; how often an interval of one holds the other's value; and how often the two
would be called different, though nothing has changed. A value has an error of its own, so an honest interval of 99 %
holds the value of an equal run a little less often: of independent normal processes, 5 of each, in 97 %.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.here import describe_here
from benchmarks.verdicts import write_rate
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.reading import Run, Variant
from jaxmeter.harness.metrics.statistics import CONFIDENCE, MINIMUM_EFFECT, Interval, differs
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import RunFolder, RunRecord, Settings, TimingDetails
from jaxmeter.reporting.compare.ratios import compare_unpaired
from jaxmeter.reporting.load import load
from jaxmeter.reporting.view.runs import gather_cases, label_runs

NORMALISED = "normalised_s"

Variants = Mapping[tuple[str, str], Variant]


@dataclass(frozen=True)
class Kind:
    """Numbers that are looked at together.

    Args:
      has: Which variants have such a number.
    """

    title: str
    metric: str
    has: Callable[[Variant], bool]


KINDS = (
    Kind("JAX ratios", "speedup", lambda variant: not variant.is_peer),
    Kind("peer ratios", "speedup", lambda variant: variant.is_peer),
    Kind("times", "execution_s", lambda variant: True),
    Kind("normalised times", NORMALISED, lambda variant: True),
)


class NothingToCompareError(Exception):
    """Why there is nothing to say of a kind, in one sentence."""


@dataclass(frozen=True)
class Pair:
    """One number in two runs.

    Args:
      to_first: What the second run's values are multiplied by, so that both are of one reference speed.
    """

    name: str
    first: Reading
    second: Reading
    to_first: float = 1.0

    @property
    def ratio(self) -> Interval:
        """The second run's value over the first's."""
        values = [value * self.to_first for value in self.second.known]
        return compare_unpaired(values, self.first.known, shared=self.first.shared + self.second.shared)

    @property
    def holds(self) -> tuple[bool, ...]:
        """Whether each run's interval of verdicts holds the other's value; of those that have bounds."""
        values = (self.second.estimate, self.first.estimate)
        factors = (self.to_first, 1 / self.to_first)
        intervals = map(find_verdict_interval, (self.first, self.second))
        return tuple(
            interval.low <= value * factor <= interval.high
            for interval, value, factor in zip(intervals, values, factors, strict=True)
            if interval is not None and interval.low is not None and interval.high is not None and value is not None
        )


def main() -> None:
    """Prints width, coverage and false verdicts, kind by kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs=2, type=Path, metavar="RUN")
    given = parser.parse_args()
    first, second = map(read_variants, given.runs)
    print(f"read with {describe_here()}")
    for variants in (first, second):
        print(describe_run(next(iter(variants.values()))))
    print(
        f"verdicts: Welch's {100 * CONFIDENCE:.0f} % interval excludes 1, minimum effect {100 * MINIMUM_EFFECT:.0f} %"
    )
    for kind in KINDS:
        try:
            print("\n".join(describe_kind(kind, find_pairs(kind, first, second))))
        except NothingToCompareError as error:
            print(f"{kind.title}: {error}")


def read_variants(path: Path) -> Variants:
    """Every planned variant of the run in a folder.

    Raises:
      SystemExit: There is no run to read.
    """
    loaded = load([path])
    if not loaded.runs:
        raise SystemExit("\n".join(loaded.warnings))
    return index_variants(loaded.runs[0].record)


def index_variants(run: RunRecord) -> Variants:
    """Every planned variant of a run, by its case's id and its own name."""
    cases = gather_cases(label_runs([Run(run, RunFolder(Path(run.manifest.run_id)))]))
    return {(case.planned.id, variant.planned.name): variant for case in cases for variant in case.shown}


def describe_run(variant: Variant) -> str:
    """Where and how the run of a variant was made."""
    manifest, here = variant.case.run.manifest, variant.environment
    shown, decisive = (100 * level for level in (find_shown_confidence(variant.settings), variant.settings.confidence))
    return (
        f"run {manifest.run_id}: {here.allowed_cores} cores of {here.processor}, {here.system}, load "
        f"{here.load_average:.2f}; Python {here.python}, jax {here.packages['jax']}; {manifest.started}; "
        f"intervals shown {shown:.0f} %, of verdicts {decisive:.0f} %"
    )


def find_shown_confidence(settings: Settings) -> float:
    """Of the intervals that a page shows; those of the verdicts, where a run has no others."""
    return settings.confidence if settings.shown_confidence is None else settings.shown_confidence


def find_verdict_interval(reading: Reading) -> Interval | None:
    """The interval that verdicts go by; the only one, where a reading has no other."""
    interval: Interval | None = getattr(reading, "verdict_interval", reading.interval)
    return interval


def find_pairs(kind: Kind, first: Variants, second: Variants) -> list[Pair]:
    """The numbers of a kind that both runs have.

    Raises:
      NothingToCompareError: There are none, or they are not of one reference speed.
    """
    if kind.metric not in METRICS:
        raise NothingToCompareError(f"this version has no metric {kind.metric}")
    wanted = [key for key, variant in first.items() if kind.has(variant) and key in second]
    read = [(key, first[key].read(kind.metric), second[key].read(kind.metric)) for key in wanted]
    both = [pair for pair in read if all(reading.estimate is not None for reading in pair[1:])]
    if not both:
        raise NothingToCompareError(f"no variant has {kind.metric} in both runs")
    to_first = 1.0
    if kind.metric == NORMALISED:
        keys = [key for key, _, _ in both]
        runs = [[variants[key] for key in keys] for variants in (first, second)]
        if len(calibrations := {name_calibration(variant) for variants in runs for variant in variants}) > 1:
            raise NothingToCompareError(
                f"they are of different calibration loops, {', '.join(sorted(map(str, calibrations)))}"
            )
        to_first = find_reference_s(runs[0][0]) / find_reference_s(runs[1][0])
    return [Pair(name_variant(first[key]), reading_a, reading_b, to_first) for key, reading_a, reading_b in both]


def name_variant(variant: Variant) -> str:
    """As a command line would select it."""
    return f"{variant.planned_case.name} {variant.planned.name}"


def name_calibration(variant: Variant) -> str | None:
    """The identity of what its times are divided by."""
    details = variant.details(TimingDetails)
    return None if details is None else details.calibration


def find_reference_s(variant: Variant) -> float:
    """The time of the calibration loop that its run's times are brought to."""
    reference = variant.pool.reference
    assert reference is not None, "a normalised time has one"
    return reference.calibration_s


def describe_kind(kind: Kind, pairs: Sequence[Pair]) -> list[str]:
    """What two runs say of one kind, a line each."""
    lines = [f"{kind.title}: {len(pairs)} variants"]
    for name, readings in (("A", [pair.first for pair in pairs]), ("B", [pair.second for pair in pairs])):
        widths = [reading.interval.half_width for reading in readings if reading.interval is not None]
        lines.append(f"  half-width in {name}: {describe_widths([width for width in widths if width is not None])}")
    held = [is_held for pair in pairs for is_held in pair.holds]
    lines.append(f"  one run's interval holds the other's value: {write_rate(sum(held), len(held))}")
    bounded = [pair for pair in pairs if pair.ratio.low is not None]
    false = [pair for pair in bounded if differs(pair.ratio)]
    calm = [pair for pair in bounded if not is_contended(pair)]
    calm_false = [pair for pair in false if not is_contended(pair)]
    lines.append(f'  "differs" between the runs: {write_rate(len(false), len(bounded))}')
    lines.append(f"    of those contended in neither: {write_rate(len(calm_false), len(calm))}")
    lines += [f"    {pair.name}: {pair.ratio.estimate:.3f}{', contended' * is_contended(pair)}" for pair in false]
    off = [abs(math.log(pair.ratio.estimate)) for pair in pairs]
    lines.append(
        f"  the runs' values differ by: median {100 * statistics.median(off):.1f} %, largest {100 * max(off):.1f} %"
    )
    return lines


def is_contended(pair: Pair) -> bool:
    """Whether a page would warn of the number in one of the runs."""
    return is_doubted(pair.first) or is_doubted(pair.second)


def is_doubted(reading: Reading) -> bool:
    """Whether a page would warn of the number: other work disturbed it, or met its two sides unlike."""
    return reading.contended or bool(getattr(reading, "doubt", ""))


def describe_widths(widths: Sequence[float]) -> str:
    """10, 50 and 90 % over variants."""
    if len(widths) < 2:
        return f"{len(widths)} variants have bounds, too few to say"
    tenths = statistics.quantiles(widths, n=10, method="inclusive")
    shown = " / ".join(f"{100 * width:.1f}" for width in (tenths[0], tenths[4], tenths[8]))
    return f"{shown} % (10 / 50 / 90 % of {len(widths)} variants)"


if __name__ == "__main__":
    main()
