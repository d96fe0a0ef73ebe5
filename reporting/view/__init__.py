"""The one place where meaning is made: from loaded runs to a page of ready text and points."""

from __future__ import annotations

from ..load import Loaded
from ..text import visible, visible_record
from .answers import choose_standing, make_answers
from .cases import gather_cases
from .first_screen import list_attention, list_warnings, make_finding, make_subtitle, make_summary
from .matrix import make_matrix
from .page_model import Page
from .places import choose_newest, group_places
from .runs import label_runs
from .sections.caching import make_caching_section
from .sections.compilation import make_compilation_section
from .sections.environment import make_environment_section
from .sections.memory import make_memory_section
from .sections.method import make_method_section
from .sections.problems import make_problems_section
from .sections.published import make_published_section
from .sections.speed import make_speed_section
from .sections.sweeps import make_sweeps_section


def build(loaded: Loaded) -> Page:
    """The page of at least one run."""
    runs = label_runs([visible_record(one.run) for one in loaded.runs])
    cases = gather_cases(runs)
    places = group_places(runs)
    told = choose_newest(places, cases)
    standing = choose_standing(told)
    warnings = list_warnings([visible(text) for text in loaded.warnings], places, cases)
    finding = make_finding(places, told)
    matrix, note = make_matrix(places, standing, told)
    return Page(
        title=f"{finding} – jaxmeter report",
        subtitle=make_subtitle(runs),
        finding=finding,
        summary=make_summary(places, told, len(warnings)),
        answers=make_answers(list(standing.values())),
        attention=list_attention(told),
        warnings=warnings,
        matrix=matrix,
        matrix_note=note,
        sections=(
            make_speed_section(runs, cases),
            make_compilation_section(cases),
            make_caching_section(cases),
            make_sweeps_section(cases),
            make_memory_section(cases),
            *((claims,) if (claims := make_published_section(cases)) is not None else ()),
            make_problems_section(cases),
            make_environment_section(runs),
            make_method_section(runs),
        ),
    )


__all__ = ["Page", "build"]
