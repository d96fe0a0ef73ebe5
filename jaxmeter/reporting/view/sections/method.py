"""Method: what is timed and what is not, the rules, and the words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import (
    BETWEEN_RUNS,
    LARGEST_WAIT,
    LOG_UNLIKE,
    MINIMUM_EFFECT,
    RATIOS_BETWEEN_RUNS,
)
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import SCHEMA_VERSION

from ... import numbers
from ..foundations import describe_foundations
from ..page_model import Cell, Column, Group, Part, Row, Section, Table

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
    """The section: the same for every report, but for the schema versions and what each run's intervals rest on."""
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
