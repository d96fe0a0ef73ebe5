"""The one place where meaning is made: from loaded runs to a page of ready text and points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT

from ..history.clocks import find_clock_faults
from ..history.known import KnownChangePoint
from ..load import Loaded
from ..text import shorten, visible, visible_record
from .answers import choose_standing, make_answers
from .cases import gather_cases
from .change_points import list_steps
from .changes import list_changed
from .comparisons import compare_machines
from .files import describe_folder, name_folder
from .first_screen import list_attention, list_facts, list_warnings, make_finding, make_subtitle, make_summary
from .machines import choose_newest, gather_history, group_by_machine
from .matrix import make_matrix
from .overall_answers import make_overall_answers
from .overview import make_overview
from .page_model import Page
from .runs import label_runs
from .sections.environment import make_environment_section
from .sections.method import make_method_section
from .sections.problems import make_problems_section
from .sections.published import make_published_section
from .sections.releases import choose_reports, gather_steps, make_releases_view
from .sections.reports import make_reports_section
from .suites import make_suites

LONGEST_TITLE = 55
"""What a browser's tab and a list of bookmarks have room for."""

MOST_NAMED = 3
"""Run folders in a command that is shown."""


def build(
    loaded: Loaded,
    confirmation: Run | None = None,
    minimum_effect: float = MINIMUM_EFFECT,
    known: Sequence[KnownChangePoint] = (),
) -> Page:
    """The page of at least one run.

    Args:
      confirmation: A run that timed what was suspected, and nothing else; only its findings are told.
      minimum_effect: The smallest change of a time that is told, as a share.
      known: Change points over many runs that are no news.
    """
    runs = label_runs(loaded.runs)
    cases = gather_cases(runs)
    machines = group_by_machine(runs)
    told = choose_newest(machines, cases)
    standing = choose_standing(told)
    faults = find_clock_faults(one.record for one in loaded.runs)
    warnings = list_warnings([visible(text) for text in (*loaded.warnings, *faults)], machines, told)
    leading = [run for run in runs if any(case.run is run for case in told)]
    confirmed = None if confirmation is None else replace(confirmation, record=visible_record(confirmation.record))
    comparisons = compare_machines(machines, confirmed, minimum_effect, known)
    finding = make_finding(machines, told, comparisons)
    matrix, note = make_matrix(machines, standing, told, comparisons)
    history = gather_history(machines, cases)
    answers = make_answers(standing, comparisons)
    comparisons = replace(comparisons, steps=gather_steps(comparisons.pairs))
    releases = make_releases_view(comparisons.pairs, history)
    judged = choose_reports(comparisons.pairs, comparisons.reports)
    suites = make_suites(history, told, answers, comparisons)
    views = [case for suite in suites for case in suite.cases]
    alone = views[0].figures if len(views) == 1 else ()
    return Page(
        releases=releases,
        overview=make_overview(machines, standing, told, comparisons, judged, alone, warnings),
        title=f"{shorten(finding, LONGEST_TITLE)} – jaxmeter",
        subtitle=make_subtitle(runs),
        finding=finding,
        summary=make_summary(machines, told, len(warnings)),
        answers=tuple(sorted((*answers.values(), *make_overall_answers(told)), key=lambda one: one.rank)),
        attention=list_attention(told),
        warnings=warnings,
        matrix=matrix,
        matrix_note=note,
        facts=list_facts(told),
        suites=suites,
        changed=tuple(item for _, changes in comparisons.of_machines for item in list_changed(changes)),
        change_points=list_steps(comparisons.change_points),
        export=f"jaxmeter export {' '.join(name_folder(describe_folder(run)) for run in runs[-MOST_NAMED:])}",
        sections=(
            *((claims,) if (claims := make_published_section(told)) is not None else ()),
            *((reports,) if (reports := make_reports_section(judged)) is not None else ()),
            make_problems_section(told),
            make_environment_section(runs),
            make_method_section(leading or runs),
        ),
    )


__all__ = ["Page", "build"]
