"""Suites: the matrix of suites and devices, what answers each question, figures, and the results of the cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Row, Table, Tone
from jaxmeter.harness.metrics.derived import compare_paired, doubt_ratio
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.plausibility import is_same_program
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.statistics import Interval, differs
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_reading
from jaxmeter.harness.record import INCOMPLETE, Answer, Status
from jaxmeter.harness.record.wording import counted, shorten

from .answers import LONGEST_SUITE, SuiteQuestion, find_cost_of, find_headline
from .cards import make_suite_figures
from .case_views import make_case_view
from .cells import find_doubts, find_speedup_tone
from .changes import write_flag
from .comparisons import Comparisons
from .evidence import Evidence
from .figures.points import TIME
from .growth import find_sweeps, make_sweep_part
from .page_model import DEVICE_SIGNS, AnswerLine, CaseView, SuiteView, VariantResult
from .runs import MachineRuns, find_hue, fragment_of, make_fragment, name_device

MOST_SUITES = 24
MOST_MACHINES = 6
"""More is no overview; every case stands in the tables below."""

LONGEST_LABEL = 60
LONGEST_LIST = 200
SPEEDUP = "speedup"

MATRIX_CAPTION = (
    "One case of each suite, the same on every device unless a cell names another one. After a time: how fast it is "
    "compared with the case's baseline variant, or with the variant named. Green is faster, orange slower, amber not "
    "to be relied on, red failed."
)
NOT_RANKED = "Times of different backends are not ranked: precision and hardware differ."


def make_matrix(evidence: Evidence) -> tuple[Table | None, str]:
    """Return the table, and what it leaves out."""
    machines, questions, newest = evidence.machines, evidence.questions, evidence.newest
    if not questions:
        return None, "No suite to show: no case was planned."
    shown = machines[:MOST_MACHINES]
    suites = questions[:MOST_SUITES]
    chosen = [[_choose(question, machine, newest) for machine in shown] for question in suites]
    rows = [
        _make_matrix_row(question, cases, evidence.comparisons) for question, cases in zip(suites, chosen, strict=True)
    ]
    lacking = [
        [question.suite for question, cases in zip(suites, chosen, strict=True) if cases[place] is None]
        for place in range(len(shown))
    ]
    columns = (
        Column("Suite", "its case"),
        *_list_columns([machine.newest for machine in shown]),
    )
    left_out = [
        f"{counted(len(machines) - len(shown), 'device')}" if len(machines) > len(shown) else "",
        f"{counted(len(questions) - len(suites), 'suite')}" if len(questions) > len(suites) else "",
    ]
    rest = " and ".join(filter(None, left_out))
    notes = [
        f"+ {rest} more, in the tables below." if rest else "",
        *(_list_not_run(machine, names) for machine, names in zip(shown, lacking, strict=True)),
        NOT_RANKED if len(shown) > 1 else "",
    ]
    return Table(MATRIX_CAPTION, columns, (Group(tuple(rows)),)), " ".join(filter(None, notes))


def _choose(question: SuiteQuestion, machine: MachineRuns, newest: Sequence[Case]) -> Case | None:
    """Return the case of a machine's cell; None where it ran none of the workload.

    It is the case of the answer card, or else the one with the largest cost.
    """
    answering = next((case for case in question.cases if machine.has(case.run)), None)
    workload = _name_workload(question.standing)
    alike = (case for case in newest if machine.has(case.run) and _name_workload(case) == workload)
    return answering or max(alike, key=find_cost_of, default=None)


def _name_workload(case: Case) -> tuple[str, str]:
    return case.planned.suite, case.planned.workload


def _make_matrix_row(question: SuiteQuestion, cases: Sequence[Case | None], comparisons: Comparisons) -> Row:
    standing = question.standing
    name = shorten(standing.planned.name, LONGEST_LABEL)
    first = Cell(shorten(question.suite, LONGEST_LABEL), name, target=make_fragment("suite", question.suite))
    cells = (
        Cell("not run", tone=Tone.MUTED)
        if case is None
        else _mark_change(_name_other(_make_cell(case, standing), case, standing), case, comparisons)
        for case in cases
    )
    return Row((first, *cells))


def _name_other(cell: Cell, case: Case, standing: Case) -> Cell:
    """Return the cell, with the name of its case where another case stands for the suite."""
    if fragment_of(case) == fragment_of(standing):
        return cell
    return replace(cell, detail=" · ".join(filter(None, (shorten(case.planned.name, LONGEST_LABEL), cell.detail))))


def _mark_change(cell: Cell, case: Case, comparisons: Comparisons) -> Cell:
    """Return the cell, with the worst change of its case."""
    worst = comparisons.worst_of(case)
    if worst is None:
        return cell
    who = "" if worst.variant == "" else f"{shorten(worst.variant, LONGEST_LABEL)} "
    return replace(cell, detail=f"{cell.detail} · ! {who}{write_flag(worst)}")


def _list_columns(runs: Sequence[Run]) -> Iterator[Column]:
    """Yield a column for each device, by its name; where names are equal, by what labels of runs differ in."""
    names = [shorten(name_device(run), LONGEST_LABEL) for run in runs]
    for run, name in zip(runs, names, strict=True):
        named = f"{DEVICE_SIGNS.get(find_hue(run), '')} {name}".lstrip()
        yield Column(named if names.count(name) == 1 else run.label, run.name if run.name not in run.label else "")


def _list_not_run(machine: MachineRuns, suites: Sequence[str]) -> str:
    """Return `■ gpu did not run cnn, mlp.`; empty where it ran all."""
    return f"{machine.newest.label} did not run {shorten(', '.join(suites), LONGEST_LIST)}." if suites else ""


def _make_cell(case: Case, standing: Case) -> Cell:
    answer = standing.planned.answer
    best = find_headline(case, answer)
    if best is not None and answer is not None and answer.metric != TIME and answer.metric in METRICS:
        other = _make_other_cell(best, answer.metric)
        if other is not None:
            return other
    time = None if best is None else best.read(TIME)
    if best is None or time is None or time.interval is None:
        fits = not any(variant.is_too_large for variant in case.shown)
        tone = Tone.MUTED if fits else Tone.WARN
        tone = Tone.BAD if any(variant.status in INCOMPLETE for variant in case.shown) else tone
        return Cell(_why_none(case), tone=tone, target=fragment_of(case))
    speedup = best.read(SPEEDUP)
    doubts = dict.fromkeys((*find_doubts(best, time), *find_doubts(best, speedup)))
    bad = [variant for variant in case.shown if variant.status in INCOMPLETE]
    compared = None if answer is None or answer.against == case.planned.baseline else _set_against(best, answer)
    flags = [
        shorten(best.planned.name, LONGEST_LABEL),
        "" if compared is None or answer is None else f"compared with {shorten(answer.against or '', LONGEST_LABEL)}",
        f"! {', '.join(doubts)}" if doubts else "",
        f"! {counted(len(bad), 'variant')} not measured" if bad else "",
    ]
    tone = Tone.WARN if bad or doubts else find_speedup_tone(compared or speedup.interval)
    text = "baseline" if best.is_baseline else _write_speedup(best, speedup)
    if compared is not None:
        text = " ".join(part for part in numbers.speedup_with_bounds(compared) if part != numbers.MISSING)
    return Cell(f"{write_reading(time)[0]} · {text}", " · ".join(filter(None, flags)), tone, target=fragment_of(case))


def _set_against(variant: Variant, answer: Answer) -> Interval | None:
    """Return how fast a variant is compared with the other variant of its answer; None without a number."""
    other = None if answer.against is None else variant.case.find(answer.against)
    if other is None or other is variant or doubt_ratio(variant, other):
        return None
    return compare_paired(variant, other)


def _make_other_cell(best: Variant, metric: str) -> Cell | None:
    """`220 ms first call` of the variant that answers by another metric than time; None where it has none."""
    if METRICS[metric].exponent_of is not None or (reading := best.read(metric)).interval is None:
        return None
    doubts = find_doubts(best, reading)
    flags = (shorten(best.planned.name, LONGEST_LABEL), f"! {', '.join(doubts)}" if doubts else "")
    text = f"{write_reading(reading)[0]} {reading.metric.title}"
    tone = Tone.WARN if doubts else Tone.PLAIN
    return Cell(text, " · ".join(filter(None, flags)), tone, target=fragment_of(best.case))


def _write_speedup(best: Variant, speedup: Reading) -> str:
    """`8.7× [8.5, 8.9]`, `1.02× [0.98, 1.06] undecided`."""
    word = ""
    if speedup.interval is not None and not differs(speedup.interval):
        baseline = best.find(best.planned_case.baseline)
        word = "same program" if baseline is not None and is_same_program(best, baseline) else "undecided"
    parts = (*write_reading(speedup), word)
    return " ".join(part for part in parts if part not in ("", numbers.MISSING)) or numbers.MISSING


def _why_none(case: Case) -> str:
    worst = max((variant.status for variant in case.shown), key=list(Status).index, default=None)
    return worst.value if worst not in (None, Status.OK) else "no time recorded"


MOST_ROWS, MOST_ROWS_IN_ALL = 200, 400
"""Of one suite's table, and of all of them together: a page must be quick to open without a script, too."""

MOST_DRAWN = 1_000
"""Cases of a page that has figures and folded tables of each: they take some 4 kB a case."""

COLUMNS = (
    Column("Variant"),
    Column("Speedup", numeric=True),
    Column("Time", numeric=True),
    Column("First result", numeric=True),
    Column("Memory", numeric=True),
)
HOW_TO_READ = (
    "Speedup: over the case's baseline variant, above 1× is faster. Time: of one call. First result: cold, tracing and "
    "compiling included. Memory: the compiler's plan, or measured peak memory. [a, b]: confidence interval. "
    "Green is faster, orange slower, grey not distinguished, amber (!) not to be relied on."
)
"""About the tables of all suites."""


def make_suites(evidence: Evidence, answers: Mapping[str, AnswerLine]) -> tuple[SuiteView, ...]:
    """Return the views of all suites, by name.

    Args:
      answers: By suite.
    """
    by_suite: dict[str, list[Case]] = {}
    for case in evidence.newest:
        by_suite.setdefault(case.planned.suite, []).append(case)
    rows = _share_rows({suite: sum(len(case.shown) for case in own) for suite, own in by_suite.items()})
    return tuple(
        _make_suite(suite, by_suite[suite], evidence, answers[suite], rows[suite]) for suite in sorted(by_suite)
    )


def _make_suite(suite: str, cases: Sequence[Case], evidence: Evidence, answer: AnswerLine, rows: int) -> SuiteView:
    is_drawn = len(evidence.newest) <= MOST_DRAWN
    by_case: dict[str, list[Case]] = {}
    for case in cases:
        by_case.setdefault(fragment_of(case), []).append(case)
    sweeps = tuple(find_sweeps(cases))
    views = [
        make_case_view(own, evidence.history[fragment], sweeps, evidence.comparisons, is_drawn=is_drawn)
        for fragment, own in by_case.items()
    ]
    standing = by_case.get(answer.target, [])
    name = shorten(suite, LONGEST_SUITE)
    table, left_out = _make_table(f"Results of {name}", views, answer.target, rows)
    return SuiteView(
        id=make_fragment("suite", suite),
        name=name,
        answer=answer,
        table=table,
        left_out=left_out,
        figures=make_suite_figures(standing, cases, sweeps),
        parts=tuple(map(make_sweep_part, sweeps)),
        cases=tuple(views),
    )


def _make_table(caption: str, views: Sequence[CaseView], first: str, rows: int) -> tuple[Table, int]:
    """Return the results of as many cases as fit, always with the case that answers, and how many are left out."""
    ordered = sorted(views, key=lambda view: view.id != first)
    kept: set[str] = set()
    left = rows
    for view in ordered:
        if len(view.results) <= left or not kept:
            kept.add(view.id)
            left -= len(view.results)
    groups = tuple(_make_group(view) for view in views if view.id in kept)
    total = sum(len(view.results) for view in views)
    return Table(caption, COLUMNS, groups), total - sum(len(group.rows) for group in groups)


def _make_group(view: CaseView) -> Group:
    several = len({result.where for result in view.results}) > 1
    return Group(tuple(_make_row(result, several=several) for result in view.results), view.name, id=view.id)


def _make_row(result: VariantResult, *, several: bool) -> Row:
    name = f"{result.variant} · {result.where}" if several else result.variant
    name = f"{name} · ! {result.change}" if result.change else name
    values = result.speedup, result.time, result.first, result.memory
    return Row((Cell(name, tone=result.tone), *(Cell(value.text, tone=value.tone) for value in values)))


def _share_rows(wanted: Mapping[str, int]) -> dict[str, int]:
    """Return how many rows each suite may have: as many as it wants, or an equal share of the rest."""
    left, shares = MOST_ROWS_IN_ALL, {}
    for index, (suite, number) in enumerate(sorted(wanted.items(), key=lambda pair: pair[1])):
        shares[suite] = min(number, MOST_ROWS, left // (len(wanted) - index))
        left -= shares[suite]
    return shares
