"""A case on every machine that ran it: how fast, where time and memory go, how it was before, and what was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxmeter.harness.metrics.reading import Case

from ..text import shorten
from .case_figures import make_case_figures, write_case_heading
from .cells import drop_empty_columns
from .changes import write_flag
from .comparisons import Comparisons
from .files import list_files
from .keys import fragment_of
from .names import LONGEST_NAME
from .page_model import CaseView, Part, Section, Table
from .reasons import LONGEST_REASON
from .results import make_result
from .sections.caching import make_caching_section
from .sections.changed import make_changed_section
from .sections.compilation import make_compilation_section
from .sections.history import make_history_section
from .sections.memory import make_memory_section
from .sections.problems import make_problems_section
from .sections.speed import make_speed_section
from .sections.traces import make_traces_section
from .sweeps import Sweep

NOTES = "Notes"
"""The heading of a column of words, for which a table of numbers has no room."""

NOT_DRAWN = "A page with so many cases leaves out the figures, programs and buffers of each case."


def make_case_view(
    cases: Sequence[Case],
    earlier: Sequence[Sequence[Case]],
    sweeps: Sequence[Sweep],
    comparisons: Comparisons,
    *,
    is_drawn: bool = True,
) -> CaseView:
    """The view of one case.

    Args:
      cases: The case on each machine that ran it, as the newest run there has it; at least one.
      earlier: By machine, the case in all runs, the newest first.
      sweeps: Those of its suite.
      is_drawn: Whether it has figures and folded tables; a very large page has those of suites alone.
    """
    planned = cases[0].planned
    sections = (
        *(make_changed_section(comparisons.of(case), comparisons.earlier_of(case)) for case in cases),
        make_speed_section([case.run for case in cases], cases),
        make_traces_section(cases),
        make_compilation_section(cases),
        make_memory_section(cases),
        make_caching_section(cases),
        make_history_section(
            earlier, tuple(change_point for case in cases for change_point in comparisons.change_points_of(case))
        ),
        make_problems_section(cases),
    )
    return CaseView(
        id=fragment_of(cases[0]),
        name=shorten(planned.name, LONGEST_NAME),
        heading=write_case_heading(cases),
        figures=make_case_figures(cases, sweeps, earlier, comparisons.steps_of(cases[0])) if is_drawn else (),
        about=" ".join(filter(None, (shorten(planned.description, LONGEST_REASON), "" if is_drawn else NOT_DRAWN))),
        results=tuple(
            replace(make_result(variant), change=_write_change(comparisons, case, variant.planned.name))
            for case in cases
            for variant in case.shown
        ),
        sections=tuple(_tidy(section, is_drawn=is_drawn) for section in sections if section),
        claims=sum(len(case.planned.published) for case in cases),
        files=list_files(cases),
    )


def _write_change(comparisons: Comparisons, case: Case, variant: str) -> str:
    worst = comparisons.worst_of(case, variant)
    return "" if worst is None or not worst.variant else write_flag(worst)


def _tidy(section: Section, *, is_drawn: bool) -> Section:
    """Return the section without columns that are empty in this case, and with notes below the numbers."""
    return replace(section, parts=tuple(_tidy_part(part, is_drawn=is_drawn) for part in section.parts))


def _tidy_part(part: Part, *, is_drawn: bool) -> Part:
    tables: list[Table] = []
    notes: list[str] = []
    for table in (one for one in part.tables if is_drawn or not one.fold):
        narrow, own = _take_notes(drop_empty_columns(table))
        tables.append(narrow)
        notes += own
    return replace(part, tables=tuple(tables), notes=(*notes, *part.notes))


def _take_notes(table: Table) -> tuple[Table, tuple[str, ...]]:
    """The table without its last column, if that holds notes; and these, each once with the variants that it is of."""
    if table.columns[-1].title != NOTES:
        return table, ()
    alike: dict[str, list[str]] = {}
    several = len(table.groups) > 1
    for group in table.groups:
        for row in group.rows:
            if text := row.cells[-1].text:
                name = row.cells[0].text
                alike.setdefault(text, []).append(f"{name} · {group.title}" if several else name)
    groups = (
        replace(group, rows=tuple(replace(row, cells=row.cells[:-1]) for row in group.rows)) for group in table.groups
    )
    notes = tuple(f"{', '.join(names)}: {text}" for text, names in alike.items())
    return replace(table, columns=table.columns[:-1], groups=tuple(groups)), notes
