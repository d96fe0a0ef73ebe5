"""A case at every place that ran it: how fast, where time and memory go, how it was before, and what was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..text import shorten
from .cases import Case
from .cells import drop_empty_columns
from .files import list_files
from .names import LONGEST_NAME
from .page_model import CaseView, Part, Section
from .reasons import LONGEST_REASON
from .results import make_result
from .sections.caching import make_caching_section
from .sections.compilation import make_compilation_section
from .sections.history import make_history_section
from .sections.memory import make_memory_section
from .sections.problems import make_problems_section
from .sections.speed import make_speed_section
from .sections.sweeps import mark_size
from .sweeps import Sweep


def make_case_view(
    cases: Sequence[Case], earlier: Sequence[Sequence[Case]], sweeps: Sequence[tuple[Sweep, Part]]
) -> CaseView:
    """The view of one case.

    Args:
      cases: The case at each place that ran it, as the newest run there has it; at least one.
      earlier: By place, the case in all runs, the newest first.
      sweeps: Those of its suite that have a figure, each with it.
    """
    planned = cases[0].planned
    growth = tuple(
        mark_size(part, size)
        for sweep, part in sweeps
        for size, one in sweep.cases
        if any(one is case for case in cases)
    )
    sections = (
        make_speed_section([case.run for case in cases], cases),
        make_compilation_section(cases),
        make_memory_section(cases),
        make_caching_section(cases),
        make_history_section(earlier),
        make_problems_section(cases),
    )
    return CaseView(
        id=cases[0].fragment,
        name=shorten(planned.name, LONGEST_NAME),
        about=shorten(planned.description, LONGEST_REASON),
        results=tuple(make_result(variant) for case in cases for variant in case.variants),
        sections=tuple(map(_tidy, filter(None, sections))),
        growth=growth,
        claims=sum(len(case.planned.published) for case in cases),
        files=list_files(cases),
    )


def _tidy(section: Section) -> Section:
    """The section without the columns in which this case has nothing."""
    parts = (replace(part, tables=tuple(map(drop_empty_columns, part.tables))) for part in section.parts)
    return replace(section, parts=tuple(parts))
