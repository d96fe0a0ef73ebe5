"""What the intervals of a run rest on, a sentence each: levels, scatter, calibration loop, contention, self-test."""

from __future__ import annotations

import math

from jaxmeter.harness.metrics.aa_text import describe_self_test
from jaxmeter.harness.metrics.across import is_contended
from jaxmeter.harness.metrics.moderation import FEWEST_POOLED
from jaxmeter.harness.metrics.pool import MIDDLE, Kind
from jaxmeter.harness.metrics.pooling import POOLED, SHORTEST_GAP_S, find_process_gap
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, MINIMUM_EFFECT
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Outcome, TimingDetails

from .. import numbers
from ..text import counted


def describe_foundations(run: Run) -> tuple[str, ...]:
    """All of them."""
    spreads = (*describe_spreads(run), *describe_usual_ratios(run))
    rest = (describe_levels(run), *spreads, *describe_gap(run), describe_calibration(run))
    return (*rest, describe_contention(run), *describe_self_test(run.manifest.self_test))


def describe_levels(run: Run) -> str:
    """What is shown, and what decides."""
    shown, decisive = numbers.percent(run.level), numbers.percent(run.verdict_level)
    least = numbers.percent(MINIMUM_EFFECT)
    return f"Intervals that are shown are of {shown}; verdicts take one of {decisive} and a difference beyond {least}."


def describe_spreads(run: Run) -> tuple[str, ...]:
    """What the intervals of times borrow from the run, by metric and kind of variant."""
    return tuple(_describe_spread(run, metric, kind) for metric in POOLED for kind in Kind if _is_told(run, metric))


def _is_told(run: Run, metric: str) -> bool:
    return metric == POOLED[0] or run.pool.reference is not None


def _describe_spread(run: Run, metric: str, kind: Kind) -> str:
    title = METRICS[metric].title
    what = f"{title[:1].upper()}{title[1:]}, {kind.value}"
    spread = run.pool.spreads.get((metric, kind))
    if spread is None:
        few = f"fewer than {FEWEST_POOLED} cases have one with {FEWEST_PROCESSES} processes that scatter"
        return f"{what}: ordinary t intervals, since {few}."
    d0 = numbers.number(round(spread.prior.degrees, 1)) if spread.prior.degrees < numbers.LARGEST else "∞"
    s0 = numbers.percent(spread.deviation)
    who = f"{counted(len(spread.places), 'variant')} of {counted(spread.cases, 'case')}"
    assumed = "cases count as independent, a case's variants, which share processes, do not"
    return f"{what}: moderated t intervals, s0 = {s0}, d0 = {d0}, from {who}; {assumed}; one more case moves them."


def describe_usual_ratios(run: Run) -> tuple[str, ...]:
    """What the intervals of ratios borrow from the run, by kind of variant."""
    return tuple(
        f"Speedup, {kind.value}: t intervals of its processes and one more, {numbers.percent(math.sqrt(variance))} "
        "off, as is usual in this run, where that makes it wider."
        for kind, variance in run.pool.usual_ratios.items()
    )


def describe_gap(run: Run) -> tuple[str, ...]:
    """What intervals cannot tell where a case's processes followed each other closely."""
    gap_s = numbers.usable(find_process_gap(run.record))
    if gap_s is None or gap_s >= SHORTEST_GAP_S:
        return ()
    began = f"A case's processes began {numbers.time(gap_s)} apart"
    return (f"{began}: intervals describe the time in these minutes, not on another day.",)


def describe_calibration(run: Run) -> str:
    """How fast the machine was, and whether it had one speed."""
    reference = run.pool.reference
    if reference is None:
        return f"No normalised time: {run.pool.no_reference}."
    least, most = numbers.time(reference.processes_s[0]), numbers.time(reference.processes_s[-1])
    count = counted(len(reference.processes_s), "process", "processes")
    within = f"{numbers.percent(MIDDLE)} of them lie within {numbers.percent(MINIMUM_EFFECT)}"
    speed = (
        f"it was constant, since {within}: normalised times say no more than the times themselves"
        if reference.is_constant
        else "the machine's speed varied, so compare normalised times"
    )
    if reference.slow_share > 0:
        speed = f"the core was slow next to {numbers.percent(reference.slow_share)} of the blocks; {speed}"
    if reference.baseline:
        speed += (
            f"; its times are brought to the speed of {reference.baseline}, {numbers.time(reference.calibration_s)}"
        )
    if (other := run.other_calibration) is not None and other.speed.reference is not None:
        speed += f"; run {other.name} has another, {other.speed.reference.identity}: do not compare times with it"
    middle = numbers.time(reference.median_s)
    return f"Calibration loop {reference.identity}: {middle} in the middle, {least} to {most} over {count}; {speed}."


def describe_contention(run: Run) -> str:
    """What became of processes that other work contended."""
    cases = [[one.outcomes["timing"] for one in case.variants if "timing" in one.outcomes] for case in run.cases]
    timings = [outcome for case in cases for outcome in case if isinstance(outcome.details, TimingDetails)]
    marked = sum(map(is_contended, timings))
    spared = sum(_details(one).contended > 0 for one in timings) - marked
    # A process is of several variants, and each of them tells of it.
    replaced = sum(max((_details(one).replaced for one in case), default=0) for case in cases)
    who = f"{marked} of {counted(len(timings), 'timed variant')}"
    parts = [
        f"Contended processes: {who} have too few others and are marked, and all their processes count",
        f"in {spared} the clean processes alone count" if spared else "",
        f"fresh processes replaced {counted(replaced, 'process', 'processes')}" if replaced else "",
    ]
    return f"{'; '.join(filter(None, parts))}."


def _details(timing: Outcome) -> TimingDetails:
    return timing.details if isinstance(timing.details, TimingDetails) else TimingDetails(processes=0)
