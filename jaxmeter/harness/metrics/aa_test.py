"""The self-test's results: the programs are equal, so every difference is an error. As numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from jaxmeter.document.numbers import SPACE
from jaxmeter.harness.metrics.across import subtract_means
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.reading import Run, Variant, compare_at_one_speed
from jaxmeter.harness.metrics.statistics import (
    BOUNDS_CONFIDENCE,
    CONFIDENCE,
    FEWEST_PROCESSES,
    MINIMUM_EFFECT,
    Interval,
    bound_rate,
    differs,
    exponentiate,
    hold_another,
)
from jaxmeter.harness.record.runs import RunRecord
from jaxmeter.harness.record.self_test import FOUND, LADDER, SelfTest, Tally
from jaxmeter.harness.record.wording import counted


@dataclass(frozen=True)
class EqualPair:
    """Two equal programs.

    Args:
      ratio: The ratio of the two; without bounds if there are too few processes.
      held_shown, held_decisive: For each checked interval, whether it contains the true value.
    """

    ratio: Interval
    held_shown: tuple[bool, ...]
    held_decisive: tuple[bool, ...]


def make_self_test(machine: str, runs: Sequence[RunRecord]) -> SelfTest:
    """Return the self-test's results from runs that each have every program twice.

    Args:
      runs: Finished runs of one plan, oldest first.
    Raises:
      ValueError: No run.
    """
    if not runs:
        raise ValueError("a self-test needs at least one run")
    manifest, ended = runs[-1].manifest, runs[-1].ended or ""
    settings = manifest.settings
    return SelfTest(
        machine=machine,
        at=ended,
        tool_version=manifest.tool_version,
        packages={name: manifest.environment.packages.get(name, "") for name in ("jax", "jaxlib")},
        runs=len(runs),
        cases=len(manifest.cases),
        processes=sum(record.processes for run in runs for record in run.cases),
        shown_confidence=settings.confidence if settings.shown_confidence is None else settings.shown_confidence,
        confidence=settings.confidence,
        minimum_effect=MINIMUM_EFFECT,
        speedups=count([pair for run in runs for pair in compare_aa_controls(run)]),
        times=_count_times(runs),
    )


def compare_aa_controls(run: RunRecord) -> list[EqualPair]:
    """Return every A/A control's speedup, whose true value is 1, as a page shows it."""
    readings = [variant.read("speedup") for variant in _list_variants(Run(run)) if variant.planned.same_as is not None]
    speedups = [reading.interval for reading in readings if reading.interval is not None]
    return [EqualPair(speedup, _ask([speedup], [1.0]), _ask([speedup.decisive], [1.0])) for speedup in speedups]


def compare_runs(first: RunRecord, second: RunRecord) -> list[EqualPair] | None:
    """Compare every program's time in two runs, normalised to the first run's calibration loop.

    The time of its A/A control, which is interleaved with it, would add nothing.

    Returns:
      None if the runs have no calibration loop in common.
    """
    runs = compare_at_one_speed(Run(first), Run(second))
    if any(run.pool.reference is None for run in runs):
        return None
    before, after = map(_read_times, runs)
    return [_compare_times(before[case], after[case]) for case in before if case in after]


def _count_times(runs: Sequence[RunRecord]) -> Tally | None:
    """Compare each run with the one before it; return None if they have no calibration loop in common."""
    compared = [compare_runs(first, second) for first, second in pairwise(runs)]
    known = [pairs for pairs in compared if pairs is not None]
    return count([pair for pairs in known for pair in pairs]) if len(known) == len(compared) else None


def _compare_times(first: Reading, second: Reading) -> EqualPair:
    """Compare one program's times in two runs: by their ratio, with Welch's interval, and by the first run's interval.

    The second run's time has an error too, so a correct interval contains it less often than it contains the true time.
    Whether the second run's interval contains the first's time is no second trial: it depends on the same two times.
    """
    logs = [list(map(math.log, reading.known)) for reading in (first, second)]
    ratio = exponentiate(subtract_means(*logs, confidence=CONFIDENCE, shared=first.shared + second.shared))
    if first.interval is None or second.estimate is None:
        return EqualPair(ratio, (), ())
    wanted = [second.estimate]
    return EqualPair(ratio, _ask([first.interval], wanted), _ask([first.interval.decisive], wanted))


def _read_times(run: Run) -> dict[str, Reading]:
    """Return the normalised time of each case's baseline variant, which has the A/A control, by the case's id."""
    readings = {item.planned_case.id: item.read("normalised_s") for item in _list_variants(run) if item.is_baseline}
    return {case: reading for case, reading in readings.items() if reading.interval is not None}


def _list_variants(run: Run) -> list[Variant]:
    return [variant for case in run.cases if not case.is_lost for variant in case.variants]


def _ask(intervals: Sequence[Interval], wanted: Sequence[float]) -> tuple[bool, ...]:
    """Of each interval that has bounds, whether it holds the value that it should."""
    return tuple(
        interval.low <= value <= interval.high
        for interval, value in zip(intervals, wanted, strict=True)
        if interval.low is not None and interval.high is not None
    )


def count(comparisons: Sequence[EqualPair]) -> Tally:
    """What comparisons of equal programs say together; those without an interval say nothing."""
    bounded = [pair for pair in comparisons if pair.ratio.decisive.low is not None]
    ratios = [pair.ratio for pair in bounded]
    return Tally(
        compared=len(bounded),
        differ=sum(map(differs, ratios)),
        intervals=sum(len(pair.held_shown) for pair in bounded),
        held_shown=sum(sum(pair.held_shown) for pair in bounded),
        held_decisive=sum(sum(pair.held_decisive) for pair in bounded),
        smallest_difference=find_smallest(ratios),
    )


def find_smallest(ratios: Sequence[Interval]) -> float | None:
    """The smallest difference of LADDER that is found in enough ratios of equal programs, once they are shifted by it.

    Returns:
      As a share; None where there is none, or no ratio.
    """
    return next((share for share in LADDER if ratios and _count_found(ratios, share) >= FOUND * len(ratios)), None)


def _count_found(ratios: Sequence[Interval], share: float) -> int:
    """In how many a program that is so much faster would have been found to be so."""
    shifted = [scale(ratio, 1 + share) for ratio in ratios]
    return sum(differs(ratio) and ratio.estimate > 1 for ratio in shifted)


def scale(interval: Interval, factor: float) -> Interval:
    """The interval of a ratio that is so many times larger in every process."""
    low, high = (None if bound is None else bound * factor for bound in (interval.low, interval.high))
    verdict = None if interval.verdict is None else scale(interval.verdict, factor)
    return Interval(low, interval.estimate * factor, high, interval.count, verdict)


NONE = "The false-positive rate of this machine is unknown; jaxmeter self-test measures it"
DAMAGED = "The self-test of this machine is damaged: run jaxmeter self-test"

MANY_DEGREES = 1e6
"""Of a variance that is as good as known."""


def describe_in_short(self_test: SelfTest | None) -> str:
    """Return one sentence for a first screen: how far a machine's numbers can be trusted."""
    if self_test is None or not self_test.is_sound:
        return f"{DAMAGED if self_test else NONE}."
    level = write_share(self_test.shown_confidence)
    between = "" if self_test.times is None else f" Between runs: {_shorten(self_test.times, level, 'the other time')}."
    return (
        f"On this machine ({self_test.machine}) the self-test of {self_test.at[:10]} found of equal programs: "
        f"{_shorten(self_test.speedups, level, 'the truth')}.{between}"
    )


def _shorten(tally: Tally, level: str, truth: str) -> str:
    """Return errors, coverage and the smallest difference, as counts: the totals show how precise they are."""
    return (
        f"{tally.differ} of {tally.compared} different, {level} intervals hold {truth} in {tally.held_shown} of "
        f"{tally.intervals}, {_write_smallest(tally)}"
    )


def describe_self_test(self_test: SelfTest | None) -> tuple[str, ...]:
    """Return the results of the self-test, in one or two sentences each."""
    if self_test is None or not self_test.is_sound:
        return (f"{DAMAGED if self_test else NONE}.",)
    versions = ", ".join(f"{name} {version}" for name, version in sorted(self_test.packages.items()))
    cases, runs = counted(self_test.cases, "case"), counted(self_test.runs, "run")
    counts = counted(self_test.processes, "timing process", "timing processes")
    made = f"{self_test.machine}, {self_test.at[:10]}, by jaxmeter {self_test.tool_version} with {versions}"
    return (
        f"Self-test of {made}: one program twice in each of {cases}, {runs}, {counts}.",
        *_describe_speedups(self_test.speedups, self_test),
        *_describe_times(self_test.times, self_test),
    )


def _describe_speedups(speedups: Tally, self_test: SelfTest) -> Iterator[str]:
    yield from _describe_errors("Equal programs interleaved in one run", speedups, self_test)
    yield f"Their {_describe_held('the true ratio, 1,', speedups, self_test)}."
    yield _describe_smallest(speedups)


def _describe_times(times: Tally | None, self_test: SelfTest) -> Iterator[str]:
    if times is None:
        yield "Times of two runs were not compared: they have no calibration loop in common."
        return
    yield from _describe_errors("One program's normalised time in two runs", times, self_test)
    shown = self_test.shown_confidence
    honest = [100 * hold_another(shown, degrees) for degrees in (MANY_DEGREES, FEWEST_PROCESSES - 1)]
    held = _describe_held("the other's time", times, self_test)
    yield f"One run's {held}."
    correct = f"{honest[0]:.0f} to {honest[1]:.0f}{SPACE}%"
    yield f"Correct intervals of {write_share(shown)} do so in {correct}, since both times have an error."
    yield _describe_smallest(times)


def _describe_errors(what: str, tally: Tally, self_test: SelfTest) -> Iterator[str]:
    """Yield how many equal programs were called different, and a warning if the rate is above the allowed one."""
    by = f"by {write_share(self_test.confidence)} intervals, beyond {write_share(self_test.minimum_effect)}"
    yield f"{what}: {_write_rate(tally.differ, tally.compared)} are falsely called different, {by}."
    allowed = 1 - self_test.confidence
    if tally.compared and bound_rate(tally.differ, tally.compared)[0] > allowed:
        yield f"That is beyond the {write_share(allowed)} that verdicts allow for: doubt what differs by little."


def _describe_held(what: str, tally: Tally, self_test: SelfTest) -> str:
    """Return how often the intervals of both confidence levels contain the true value."""
    shown, decisive = write_share(self_test.shown_confidence), write_share(self_test.confidence)
    return (
        f"{shown} intervals hold {what} in {_write_rate(tally.held_shown, tally.intervals)}, "
        f"those of {decisive} in {_write_rate(tally.held_decisive, tally.intervals)}"
    )


def _describe_smallest(tally: Tally) -> str:
    words = _write_smallest(tally)
    return f"{words[0].upper()}{words[1:]}."


def _write_smallest(tally: Tally) -> str:
    smallest, certainty = tally.smallest_difference, f"is found in {write_share(FOUND)} of cases"
    if smallest is None:
        return f"no difference up to {write_share(LADDER[-1])} {certainty}"
    return f"a difference of {write_share(smallest)} {certainty}"


def _write_rate(count: int, of: int) -> str:
    """Return `1 of 48 (95 % bounds 0.1 to 11.1 %)`; without bounds if there is no trial."""
    if not of:
        return f"{count} of {of}"
    low, high = bound_rate(count, of)
    return f"{count} of {of} ({write_share(BOUNDS_CONFIDENCE)} bounds {100 * low:.1f} to {100 * high:.1f}{SPACE}%)"


def write_share(share: float) -> str:
    """Return a share as `95 %` or `0.5 %`: with at most one decimal."""
    return f"{100 * share:.1f}".removesuffix(".0") + f"{SPACE}%"
