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
    "Intervals are t intervals over processes on the logarithm, widened for every look that decided whether to go on.",
    (
        "Normalised time: each block's time over the calibration loop beside it, a process's median, times the median "
        "calibration loop."
    ),
    "That median is the run's own, or that of the first run on the same machine with the same calibration loop.",
    (
        f"Where the calibration loop varied, the error of such a time has {numbers.percent(BETWEEN_RUNS)} by which two "
        f"runs differ."
    ),
    f"That of a speedup has {numbers.percent(RATIOS_BETWEEN_RUNS)} there from {UNLIKE} on, less below, none at 1×.",
    f"Beside a peer, which is timed in a process of its own, a speedup has {numbers.percent(BETWEEN_RUNS)}.",
    "Stages of compilation and cache states are means over cold processes, each compiling one variant.",
    "Variants alternate within a process; its speedup is the median of the paired ratios, then a mean.",
    "So a speedup can be sharper than the two times beside it, which drift together.",
    f"A speedup is coloured where its interval for verdicts excludes 1, and beyond {numbers.percent(MINIMUM_EFFECT)}.",
    f"Samples whose threads waited for a core for more than {numbers.percent(LARGEST_WAIT)} of the time are set aside.",
    "A variant is contended without enough quiet processes: its number is shown, but not trusted.",
    "Rates divide the declared cost by the time: what the workload must do at least, not what the program did.",
    "Throughput divides the declared items of a call, such as tokens, by its time, and has that time's interval.",
    "A dash is a missing value; the notes, or the section on what has no number, say why.",
)

MODERATED = (
    "Where enough cases were timed, intervals of times are moderated: a variant's variance is drawn towards that of "
    "the run's other variants (limma's t). Those of speedups count one process more, that deviates as is usual in the "
    "run, "
    "where that makes them wider: few processes may have met none of those that are far off."
)

PROBES = tuple(dict.fromkeys(metric.probe for metric in METRICS.values() if metric.probe is not None))
GLOSSARY = (
    ("suite", "a file of workloads on one subject"),
    ("workload", "inputs, params, a reference and one or more implementations that must give the same answer"),
    ("implementation", "a function; a peer is one in another library"),
    (
        "mode",
        "how it is executed: eager: an operation at a time; jit, aot: a program; mixed: Python around programs; native",
    ),
    ("variant", "implementation and mode; speedups refer to the case's baseline variant"),
    ("case", "a workload with one value of each param"),
    ("probe", f"one way of looking at a variant: {', '.join(PROBES)}"),
    ("process", "one fresh process that measures a case"),
    ("speedup", "the baseline variant's time over this variant's, paired within each process: above 1× is faster"),
    ("interval", "where the number would lie in nearly all runs like this one, as far as is known"),
    (
        "reference speed",
        "of the machine as in the middle of the run: times are divided by a calibration loop's, timed beside them",
    ),
    ("self-test", "the same program measured twice: how often this machine's numbers differ although nothing did"),
    ("run", "one call of the harness; its backend says where it ran"),
    ("lost", "planned, but without a record, or timed too seldom before the run stopped"),
    (
        "contended",
        "noisy in too many processes: by other work, by a quota or the hypervisor, or as a slowed device",
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
