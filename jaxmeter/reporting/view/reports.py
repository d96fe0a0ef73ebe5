"""Reports that a release of jax changed a program's time, and what two runs say of each, in words and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Part, Row, Section, Table, Tone
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record.wording import counted, shorten

from ..compare.verdicts import TIME, Here, JudgedReport
from .names import LONGEST_NAME

ID = "reports"
QUESTION = "Which reported changes of a release show here?"

TONES = {Here.REPRODUCED: Tone.GOOD, Here.OPPOSITE: Tone.WARN, Here.NOT_HERE: Tone.MUTED, Here.UNDECIDED: Tone.MUTED}

CAPTION = (
    "Reports between the releases of both runs. Factors are times as long with the later run's release. Reproduced: "
    "our interval lies within a factor of 1.5 of theirs. Same direction: it lies on the same side of 1."
)

_COLUMNS = (
    Column("Case"),
    Column("Report", "releases"),
    Column("Here"),
    Column("Reported", numeric=True),
    Column("Measured", numeric=True),
    Column("Releases"),
    Column("Why"),
)


def describe_reports(reports: Sequence[JudgedReport]) -> str:
    """Return `Of 12 reports: 5 reproduced, 3 same direction, 4 not on this machine`; empty without any."""
    counts = Counter(judged.here for judged in reports)
    text = ", ".join(f"{counts[here]} {here.value}" for here in Here if counts[here])
    return f"Of {counted(len(reports), 'report')}: {text}" if reports else ""


def write_report(judged: JudgedReport) -> str:
    """Return `jax issue 40150, 0.4.31 → 0.4.33: scalar_leaves[…] reported 60×, measured 22× [21, 23] in lock-step`."""
    report = judged.report
    what = "" if report.metric == TIME else f" {METRICS[report.metric].title}"
    measured = " ".join(part for part in (*_measured(judged), judged.condition) if part)
    text = f"{report.source}, {report.before} → {report.after}: {shorten(judged.case, LONGEST_NAME)}{what}"
    parts = (f"{text} reported {numbers.speedup(judged.theirs)}, measured {measured}", judged.reason)
    return "; ".join(filter(None, parts))


def make_report_table(reports: Sequence[JudgedReport]) -> Table:
    """Return a row for each, in the order given."""
    return Table(CAPTION, _COLUMNS, (Group(tuple(map(_row, reports))),))


def _row(judged: JudgedReport) -> Row:
    report = judged.report
    what = "" if report.metric == TIME else METRICS[report.metric].title
    number, bounds = _measured(judged)
    releases = " → ".join(filter(None, judged.releases))
    cells = (
        Cell(shorten(judged.case, LONGEST_NAME), what),
        Cell(shorten(report.source, LONGEST_NAME), f"{report.before} → {report.after}"),
        Cell(judged.here.value, tone=TONES.get(judged.here, Tone.PLAIN)),
        Cell(numbers.speedup(judged.theirs)),
        Cell(number, bounds),
        Cell(releases),
        Cell("; ".join(filter(None, (judged.condition, judged.reason, report.differs)))),
    )
    return Row(cells)


def _measured(judged: JudgedReport) -> tuple[str, str]:
    """Return the ratio and its bounds."""
    if judged.ours is None:
        return numbers.MISSING, ""
    text, bounds = numbers.speedup_with_bounds(judged.ours)
    return text, "" if bounds == numbers.MISSING else bounds


def make_reports_section(reports: Sequence[JudgedReport]) -> Section | None:
    """Return the section: a row for every report; None without any."""
    if not reports:
        return None
    parts = (Part(tables=(make_report_table(reports),)),)
    return Section(ID, "Reports of releases", QUESTION, f"{describe_reports(reports)}.", parts, packed=True)
