"""Method: what is timed and what is not, the rules, what the intervals of a run rest on, and the words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Part, Row, Section, Table
from jaxmeter.harness.metrics.aa_test import describe_self_test
from jaxmeter.harness.metrics.across import is_contended
from jaxmeter.harness.metrics.moderation import FEWEST_POOLED, MIDDLE, PoolKind
from jaxmeter.harness.metrics.pooling import POOLED, SHORTEST_GAP_S, find_process_gap
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import (
    BETWEEN_RUNS,
    FEWEST_PROCESSES,
    LARGEST_WAIT,
    LOG_UNLIKE,
    MINIMUM_EFFECT,
    RATIOS_BETWEEN_RUNS,
)
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import SCHEMA_VERSION, Outcome, TimingDetails
from jaxmeter.harness.record.wording import counted

UNLIKE = numbers.speedup(math.exp(LOG_UNLIKE))

RULES = (
    "Timed: one call until its result is ready, compiled and warmed up, with inputs made beforehand.",
    "Not timed: making inputs, their transfer to the device, compilation, the first calls.",
    "A timing process is a fresh process, and the replicate: n counts processes, never samples.",
    "Intervals are t intervals over processes on the logarithm, widened for each interim check of whether to continue.",
    (
        "Normalised time: the median over a process's blocks of time divided by the calibration loop next to each, "
        "times the median calibration loop."
    ),
    "The median calibration loop is the run's own, or that of the first run on the machine with the same loop.",
    (
        f"Where the calibration loop varied, the error of a normalised time includes {numbers.percent(BETWEEN_RUNS)} "
        f"for differences between runs."
    ),
    f"The error of a speedup ≥ {UNLIKE} then includes {numbers.percent(RATIOS_BETWEEN_RUNS)}, of smaller ones less.",
    f"A peer is timed in its own process: a speedup over a peer includes {numbers.percent(BETWEEN_RUNS)}.",
    "Stages of compilation and cache states are means over cold processes, each compiling one variant.",
    "Variants are interleaved within a process. A speedup is the mean over processes of median paired ratios.",
    "The interval of a speedup can be narrower than those of its two times, which drift together.",
    f"A speedup is coloured where its interval for verdicts excludes 1 and exceeds {numbers.percent(MINIMUM_EFFECT)}.",
    f"Samples whose threads waited for a core for > {numbers.percent(LARGEST_WAIT)} of the time are left out.",
    "A variant with too few undisturbed processes is contended: do not rely on its number.",
    "A rate is the declared cost divided by the time. The declared cost is the least work of the workload.",
    "Throughput is the declared items of a call, such as tokens, divided by its time.",
    "A dash is a missing value; notes and the section Not measured give the reason.",
)

MODERATED = (
    "Where enough cases were timed, intervals of times are moderated: the variance of a variant is shrunk towards that "
    "of the run's other variants (limma's moderated t). Intervals of speedups include one more process with the usual "
    "deviation of the run, where that widens them: few processes may contain no outlier."
)

PROBES = tuple(dict.fromkeys(metric.probe for metric in METRICS.values() if metric.probe is not None))
GLOSSARY = (
    ("suite", "a file of workloads on one subject"),
    ("workload", "inputs, params, a reference and one or more implementations that must give the same answer"),
    ("implementation", "a function; a peer is one in another library"),
    (
        "mode",
        (
            "eager: one operation at a time; jit, aot: one program; as given: as the user transformed it; "
            "mixed: Python around programs; native: a peer"
        ),
    ),
    ("variant", "implementation and mode; speedups refer to the case's baseline variant"),
    ("case", "a workload with one value of each param"),
    ("probe", f"one kind of measurement of a variant: {', '.join(PROBES)}"),
    ("process", "a fresh process of the operating system that measures variants of one case"),
    (
        "execution time",
        (
            "wall-clock time on the host, from the call of a warmed-up function until its result is ready. "
            "Shown is the geometric mean of the medians of the processes"
        ),
    ),
    (
        "speedup",
        (
            "the baseline variant's time over this variant's; above 1× is faster. "
            "Shown is the geometric mean of the median paired ratios of the processes"
        ),
    ),
    ("interval", "95 % confidence interval over processes, unless another level is named"),
    ("minimum effect", "the smallest difference of two times that counts; default: 3 %"),
    (
        "smallest detectable difference",
        (
            "half the width of the 99 % interval of a speedup or change, and at least the minimum effect. "
            "A true difference of this size is confirmed in about half of the runs, a smaller one less often"
        ),
    ),
    (
        "confirmed",
        (
            "both programs were measured interleaved, the 99 % interval of the ratio of their times excludes 1, "
            "and the difference exceeds the minimum effect"
        ),
    ),
    (
        "suspected",
        (
            "a difference beyond the limits of confirmed, but between the times of two runs, or measured "
            "interleaved under conditions that cannot confirm it. The reason is given"
        ),
    ),
    ("round", "one more timing process of each case that needs one; the first round also compiles and checks"),
    (
        "normalised time",
        (
            "execution time over the time of the adjacent calibration loop, times the run's median calibration "
            "time. If runs of one machine are compared, it is the median of the earliest run. On a CPU only"
        ),
    ),
    ("self-test", "an A/A test: it measures equal programs and counts the differences that it falsely reports"),
    ("run", "one call of the harness; its backend says where it ran"),
    ("lost", "planned, but without a record, or timed by too few processes before the run stopped"),
    (
        "wrong",
        (
            "an output differs from the reference by more than tolerance and conditioning allow, or two equal "
            "calls differ. There is no speedup, and no time except in a notebook"
        ),
    ),
    (
        "contended",
        (
            "other programs, the hypervisor, a CPU quota or a throttled device disturbed too many processes. "
            "Do not rely on this time; `jaxmeter doctor` lists causes and remedies"
        ),
    ),
    (
        "inconsistent",
        (
            "the ratio of two times lies outside the 95 % interval of their speedup. Rely on the speedup, "
            "not on these times"
        ),
    ),
)


def make_method_section(runs: Sequence[Run]) -> Section:
    """Return the section: only schema versions and what intervals rest on differ between reports."""
    versions = sorted({run.manifest.schema_version for run in runs})
    recorded = ", ".join(map(str, versions))
    answer = (
        "Each time is a mean over processes, each a fresh process, with its t interval. Records of "
        f"schema version {recorded}, read by a jaxmeter that knows up to {SCHEMA_VERSION}."
    )
    rules = (*RULES, *([MODERATED] if any(run.pool.spreads for run in runs) else []))
    return Section(
        "method",
        "Method",
        "How was it measured?",
        answer,
        (
            Part("Rules", notes=rules),
            *(Part(f"What the intervals rest on · {run.label}", notes=describe_foundations(run)) for run in runs),
            Part(tables=(_metrics(), _glossary())),
        ),
        packed=True,
    )


def _metrics() -> Table:
    columns = (Column("Metric"), Column("Unit"), Column("Better"), Column("Definition"))
    rows = tuple(
        Row((Cell(metric.name), Cell(metric.unit.value), Cell(metric.direction.value), Cell(metric.definition)))
        for metric in METRICS.values()
    )
    return Table("What each name means exactly.", columns, (Group(rows),), fold="Metrics")


def _glossary() -> Table:
    rows = tuple(Row((Cell(word), Cell(meaning))) for word, meaning in GLOSSARY)
    return Table("One word for one thing.", (Column("Word"), Column("Meaning")), (Group(rows),), fold="Glossary")


def describe_foundations(run: Run) -> tuple[str, ...]:
    """Return what the intervals of a run rest on: levels, scatter, calibration loop, contention, self-test."""
    spreads = (*describe_spreads(run), *describe_usual_ratios(run))
    rest = (describe_levels(run), *spreads, *describe_gap(run), describe_calibration(run))
    return (*rest, describe_contention(run), *describe_self_test(run.manifest.self_test))


def describe_levels(run: Run) -> str:
    """Return what is shown, and what decides."""
    shown, decisive = numbers.percent(run.level), numbers.percent(run.verdict_level)
    least = numbers.percent(MINIMUM_EFFECT)
    return f"Intervals that are shown are of {shown}; verdicts take one of {decisive} and a difference beyond {least}."


def describe_spreads(run: Run) -> tuple[str, ...]:
    """Return what the intervals of times borrow from the run, by metric and kind of variant."""
    return tuple(
        _describe_spread(run, metric, kind) for metric in POOLED for kind in PoolKind if _is_pooled(run, metric)
    )


def _is_pooled(run: Run, metric: str) -> bool:
    return metric == POOLED[0] or run.pool.reference is not None


def _describe_spread(run: Run, metric: str, kind: PoolKind) -> str:
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
    """Return what the intervals of ratios borrow from the run, by kind of variant."""
    return tuple(
        f"Speedup, {kind.value}: t intervals of its processes and one more, {numbers.percent(math.sqrt(variance))} "
        "off, as is usual in this run, where that makes it wider."
        for kind, variance in run.pool.usual_ratios.items()
    )


def describe_gap(run: Run) -> tuple[str, ...]:
    """Return what intervals cannot tell where a case's processes followed each other closely."""
    gap_s = numbers.usable(find_process_gap(run.record))
    if gap_s is None or gap_s >= SHORTEST_GAP_S:
        return ()
    began = f"A case's processes began {numbers.time(gap_s)} apart"
    return (f"{began}: intervals describe the time in these minutes, not on another day.",)


def describe_calibration(run: Run) -> str:
    """Return how fast the machine was, and whether its speed was constant."""
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
    """Return what became of processes that other work contended."""
    cases = [
        [variant.outcomes["timing"] for variant in case.variants if "timing" in variant.outcomes] for case in run.cases
    ]
    timings = [outcome for case in cases for outcome in case if isinstance(outcome.details, TimingDetails)]
    marked = sum(map(is_contended, timings))
    spared = sum(_details(timing).contended > 0 for timing in timings) - marked
    # A process is of several variants, and each of them has it.
    replaced = sum(max((_details(timing).replaced for timing in case), default=0) for case in cases)
    who = f"{marked} of {counted(len(timings), 'timed variant')}"
    parts = [
        f"Contended processes: {who} have too few others and are marked, and all their processes count",
        f"in {spared} the clean processes alone count" if spared else "",
        f"fresh processes replaced {counted(replaced, 'process', 'processes')}" if replaced else "",
    ]
    return f"{'; '.join(filter(None, parts))}."


def _details(timing: Outcome) -> TimingDetails:
    return timing.details if isinstance(timing.details, TimingDetails) else TimingDetails(processes=0)
