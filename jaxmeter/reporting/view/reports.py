"""Reports that a release of jax changed a program's time, and what two runs say of each, in words and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jaxmeter.harness.metrics.table import METRICS

from .. import numbers
from ..compare.verdicts import TIME, Here, JudgedReport
from ..text import counted, shorten
from .names import LONGEST_NAME
from .page_model import Cell, Column, Group, Row, Table
from .tone import Tone

TONES = {Here.REPRODUCED: Tone.GOOD, Here.OPPOSITE: Tone.WARN, Here.NOT_HERE: Tone.MUTED, Here.UNDECIDED: Tone.MUTED}

CAPTION = (
    "Reports between the releases of both runs. Factors are times as long with the later run's release. Reproduced: "
    "our interval lies within a factor of 1.5 of theirs. Same direction: it lies on the same side of 1."
)

_COLUMNS = (
    Column("Here"),
    Column("Report", "releases"),
    Column("Case"),
    Column("Reported", numeric=True),
    Column("Measured", numeric=True),
    Column("Why"),
)


def describe_reports(found: Sequence[JudgedReport]) -> str:
    """`Of 12 reports: 5 reproduced, 3 same direction, 4 not on this machine`; empty without any."""
    counts = Counter(one.here for one in found)
    told = ", ".join(f"{counts[one]} {one.value}" for one in Here if counts[one])
    return f"Of {counted(len(found), 'report')}: {told}" if found else ""


def write_report(one: JudgedReport) -> str:
    """`jax issue 40150, 0.4.31 → 0.4.33: scalar_leaves[…] reported 60×, measured 22× [21, 23] in lock-step`."""
    report = one.report
    what = "" if report.metric == TIME else f" {METRICS[report.metric].title}"
    measured = " ".join(part for part in (*_measured(one), one.condition) if part)
    told = f"{report.source}, {report.before} → {report.after}: {shorten(one.case, LONGEST_NAME)}{what}"
    parts = (f"{told} reported {numbers.speedup(one.theirs)}, measured {measured}", one.reason)
    return "; ".join(filter(None, parts))


def make_report_table(found: Sequence[JudgedReport]) -> Table:
    """A row for each, in the order given."""
    return Table(CAPTION, _COLUMNS, (Group(tuple(map(_row, found))),))


def _row(one: JudgedReport) -> Row:
    report = one.report
    what = "" if report.metric == TIME else METRICS[report.metric].title
    number, bounds = _measured(one)
    releases = " → ".join(filter(None, one.releases))
    cells = (
        Cell(one.here.value, tone=TONES.get(one.here, Tone.PLAIN)),
        Cell(shorten(report.source, LONGEST_NAME), f"{report.before} → {report.after}"),
        Cell(shorten(one.case, LONGEST_NAME), what),
        Cell(numbers.speedup(one.theirs)),
        Cell(number, " ".join(filter(None, (bounds, releases)))),
        Cell("; ".join(filter(None, (one.condition, one.reason, report.differs)))),
    )
    return Row(cells)


def _measured(one: JudgedReport) -> tuple[str, str]:
    """The ratio and its bounds."""
    if one.ours is None:
        return numbers.MISSING, ""
    text, bounds = numbers.speedup_with_bounds(one.ours)
    return text, "" if bounds == numbers.MISSING else bounds
