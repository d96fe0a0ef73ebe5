"""Suites: what answers each one's question, its figures, and the results of its cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxmeter.document.model import Cell, Column, Group, Row, Table
from jaxmeter.harness.metrics.reading import Case
from jaxmeter.harness.record.wording import shorten

from .answers import LONGEST_SUITE
from .cards import make_suite_figures
from .case_views import make_case_view
from .comparisons import Comparisons
from .growth import find_sweeps, make_sweep_part
from .names import fragment_of, make_fragment
from .page_model import AnswerLine, CaseView, SuiteView, VariantResult
from .runs import History

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


def make_suites(
    history: History,
    newest: Sequence[Case],
    answers: Mapping[str, AnswerLine],
    comparisons: Comparisons,
) -> tuple[SuiteView, ...]:
    """Return the views of all suites, by name.

    Args:
      newest: On each machine, each case once.
      answers: By suite.
    """
    by_suite: dict[str, list[Case]] = {}
    for case in newest:
        by_suite.setdefault(case.planned.suite, []).append(case)
    rows = _share_rows({suite: sum(len(case.shown) for case in own) for suite, own in by_suite.items()})
    is_drawn = len(newest) <= MOST_DRAWN
    return tuple(
        _make_suite(suite, by_suite[suite], history, answers[suite], rows[suite], comparisons, is_drawn=is_drawn)
        for suite in sorted(by_suite)
    )


def _make_suite(
    suite: str,
    cases: Sequence[Case],
    history: History,
    answer: AnswerLine,
    rows: int,
    comparisons: Comparisons,
    *,
    is_drawn: bool,
) -> SuiteView:
    by_case: dict[str, list[Case]] = {}
    for case in cases:
        by_case.setdefault(fragment_of(case), []).append(case)
    sweeps = tuple(find_sweeps(cases))
    views = [
        make_case_view(own, history[fragment], sweeps, comparisons, is_drawn=is_drawn)
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
