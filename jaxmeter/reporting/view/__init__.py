"""The one place where meaning is made: from loaded runs to a page of ready text and points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT
from jaxmeter.harness.record.wording import shorten, visible

from ..history import KnownChangePoint, find_clock_faults
from ..load import Loaded
from ..text import visible_record
from .answers import gather_questions, make_answers, make_overall_answers
from .changes import list_changed, make_reports_section
from .comparisons import compare_machines, list_steps
from .overview import make_finding, make_overview, make_subtitle, make_summary
from .page_model import Page
from .published import make_published_section
from .runs import (
    choose_newest,
    describe_folder,
    gather_cases,
    gather_history,
    group_by_machine,
    label_runs,
    name_folder,
)
from .sections.environment import make_environment_section
from .sections.method import make_method_section
from .sections.releases import choose_reports, gather_steps, make_releases_view
from .suites import make_matrix, make_suites
from .troubles import list_attention, list_warnings, make_problems_section

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
    """Return the page of at least one run.

    Args:
      confirmation: A run that timed what was suspected, and nothing else; the page has its findings only.
      minimum_effect: The smallest change of a time that is reported, as a share.
      known: Change points over many runs that are no news.
    """
    runs = label_runs(loaded.runs)
    cases = gather_cases(runs)
    machines = group_by_machine(runs)
    newest = choose_newest(machines, cases)
    questions = gather_questions(machines, newest)
    faults = find_clock_faults(run.record for run in loaded.runs)
    warnings = list_warnings([visible(text) for text in (*loaded.warnings, *faults)], machines, newest)
    leading = [run for run in runs if any(case.run is run for case in newest)]
    confirmed = None if confirmation is None else replace(confirmation, record=visible_record(confirmation.record))
    comparisons = compare_machines(machines, confirmed, minimum_effect, known)
    finding = make_finding(machines, newest, comparisons)
    matrix, note = make_matrix(machines, questions, newest, comparisons)
    history = gather_history(machines, cases)
    answers = make_answers(questions, comparisons)
    comparisons = replace(comparisons, steps=gather_steps(comparisons.pairs))
    reports = choose_reports(comparisons.pairs, comparisons.reports)
    suites = make_suites(history, newest, answers, comparisons)
    views = [case for suite in suites for case in suite.cases]
    alone = views[0].figures if len(views) == 1 else ()
    sections = (
        make_published_section(newest),
        make_reports_section(reports),
        make_problems_section(newest),
        make_environment_section(runs),
        make_method_section(leading or runs),
    )
    return Page(
        releases=make_releases_view(comparisons.pairs, history),
        overview=make_overview(machines, questions, newest, comparisons, reports, alone, warnings),
        title=f"{shorten(finding, LONGEST_TITLE)} – jaxmeter",
        subtitle=make_subtitle(runs),
        finding=finding,
        summary=make_summary(machines, newest, len(warnings)),
        answers=tuple(sorted((*answers.values(), *make_overall_answers(newest)), key=lambda answer: answer.rank)),
        attention=list_attention(newest),
        warnings=warnings,
        matrix=matrix,
        matrix_note=note,
        suites=suites,
        changed=tuple(item for _, changes in comparisons.of_machines for item in list_changed(changes)),
        change_points=list_steps(comparisons.change_points),
        export=f"jaxmeter export {' '.join(name_folder(describe_folder(run)) for run in runs[-MOST_NAMED:])}",
        sections=tuple(section for section in sections if section is not None),
    )


__all__ = ["Page", "build"]
