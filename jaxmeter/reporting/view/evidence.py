"""The evidence of a page: what its runs measured and what changed between them, before any of it is put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxmeter.harness.metrics.reading import Case, Run
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT
from jaxmeter.harness.record.wording import visible

from ..compare.verdicts import JudgedReport
from ..history import KnownChangePoint, find_clock_faults
from ..load import Loaded
from ..text import visible_record
from .answers import SuiteQuestion, gather_questions
from .comparisons import Comparisons, compare_machines
from .runs import History, MachineRuns, choose_newest, gather_cases, gather_history, group_by_machine, label_runs
from .sections.releases import choose_reports, gather_steps


@dataclass(frozen=True)
class Evidence:
    """What a page is about.

    Args:
      runs: Each once for each of its platforms, labelled.
      machines: The platforms of the machines; that with the newest run comes first.
      newest: On each machine, each case once: as the newest of its runs has it.
      questions: Of each suite, in the order of the suites.
      history: By the fragment of a case, for each machine the case in all runs.
      comparisons: What changed on each machine.
      reports: Reports of releases, each once, with what was measured here.
      faults: What is wrong with the files, a sentence each.
    """

    runs: tuple[Run, ...]
    machines: tuple[MachineRuns, ...]
    newest: tuple[Case, ...]
    questions: tuple[SuiteQuestion, ...]
    history: History
    comparisons: Comparisons
    reports: tuple[JudgedReport, ...]
    faults: tuple[str, ...]

    @property
    def leading(self) -> list[Run]:
        """Runs that have the newest of a case; all where there is none."""
        return [run for run in self.runs if any(case.run is run for case in self.newest)] or list(self.runs)


def gather_evidence(
    loaded: Loaded,
    confirmation: Run | None = None,
    minimum_effect: float = MINIMUM_EFFECT,
    known: Sequence[KnownChangePoint] = (),
) -> Evidence:
    """Return what runs measured and what changed between them, every recorded text visible.

    Args:
      confirmation: A run that timed what was suspected, and nothing else; the page has its findings only.
      minimum_effect: The smallest change of a time that is reported, as a share.
      known: Change points over many runs that are no news.
    """
    runs = label_runs(loaded.runs)
    cases = gather_cases(runs)
    machines = group_by_machine(runs)
    newest = choose_newest(machines, cases)
    confirmed = None if confirmation is None else replace(confirmation, record=visible_record(confirmation.record))
    comparisons = compare_machines(machines, confirmed, minimum_effect, known)
    faults = find_clock_faults(run.record for run in loaded.runs)
    return Evidence(
        runs,
        machines,
        newest,
        gather_questions(machines, newest),
        gather_history(machines, cases),
        replace(comparisons, steps=gather_steps(comparisons.pairs)),
        choose_reports(comparisons.pairs, comparisons.reports),
        tuple(visible(text) for text in (*loaded.warnings, *faults)),
    )
