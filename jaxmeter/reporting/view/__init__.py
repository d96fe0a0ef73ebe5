"""The one place where meaning is made: from loaded runs to a page of ready text and points."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT
from jaxmeter.harness.record.wording import shorten

from ..history import KnownChangePoint
from ..load import Loaded
from .answers import make_answers, make_overall_answers
from .changes import list_changed, make_reports_section
from .comparisons import list_steps
from .evidence import gather_evidence
from .overview import make_finding, make_overview, make_subtitle, make_summary
from .page_model import Page
from .published import make_published_section
from .runs import describe_folder, name_folder
from .sections.environment import make_environment_section
from .sections.method import make_method_section
from .sections.releases import make_releases_view
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
    evidence = gather_evidence(loaded, confirmation, minimum_effect, known)
    newest, comparisons = evidence.newest, evidence.comparisons
    warnings = list_warnings(evidence.faults, evidence.machines, newest)
    finding = make_finding(evidence)
    matrix, note = make_matrix(evidence)
    answers = make_answers(evidence.questions, comparisons)
    suites = make_suites(evidence, answers)
    views = [case for suite in suites for case in suite.cases]
    sections = (
        make_published_section(newest),
        make_reports_section(evidence.reports),
        make_problems_section(newest),
        make_environment_section(evidence.runs),
        make_method_section(evidence.leading),
    )
    return Page(
        releases=make_releases_view(comparisons.pairs, evidence.history),
        overview=make_overview(evidence, views[0].figures if len(views) == 1 else (), warnings),
        title=f"{shorten(finding, LONGEST_TITLE)} – jaxmeter",
        subtitle=make_subtitle(evidence.runs),
        finding=finding,
        summary=make_summary(evidence, len(warnings)),
        answers=tuple(sorted((*answers.values(), *make_overall_answers(newest)), key=lambda answer: answer.rank)),
        attention=list_attention(newest),
        warnings=warnings,
        matrix=matrix,
        matrix_note=note,
        suites=suites,
        changed=tuple(item for _, changes in comparisons.of_machines for item in list_changed(changes)),
        change_points=list_steps(comparisons.change_points),
        export=f"jaxmeter export {' '.join(name_folder(describe_folder(run)) for run in evidence.runs[-MOST_NAMED:])}",
        sections=tuple(section for section in sections if section is not None),
    )


__all__ = ["Page", "build"]
