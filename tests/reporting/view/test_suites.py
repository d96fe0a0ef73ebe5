import msgspec
import pytest

from jaxmeter.harness.record import Status
from jaxmeter.reporting.view import suites as limits
from jaxmeter.reporting.view.cards import MOST_GROWTH
from jaxmeter.reporting.view.case_views import NOT_DRAWN
from jaxmeter.reporting.view.page_model import Curves, Points, Stacks
from jaxmeter.reporting.view.runs import make_fragment
from tests import samples
from tests.reporting.views import card_of, case_view, curves_of, page_of


def rows_of(suite):
    return [row.cells[0].text for row in suite.table.rows]


def many(number, suite="selu"):
    planned = [samples.planned_case(suite, params={"size": n}) for n in range(number)]
    return [(case, samples.fast_case(case)) for case in planned]


def test_a_suite_draws_speed_growth_and_first_calls_and_tells_how_it_grows():
    (suite,) = page_of(samples.sweep_run()).suites

    kinds = {card.id: type(card.figure) for card in suite.figures}
    assert (kinds["speed"], kinds["first"]) == (Points, Stacks)
    assert set(curves_of(card_of(suite.figures, "compile_total_s-cumulative_sum").figure)) == {"scan", "loop"}
    (growth,) = suite.parts
    assert growth.tables
    assert growth.notes


def test_a_suite_that_was_not_timed_draws_what_else_grows():
    def change(outcomes, name, params):
        return {probe: one for probe, one in outcomes.items() if probe != "timing"}

    (suite,) = page_of(samples.change_outcomes(samples.sweep_run(), change)).suites

    assert [card.id for card in suite.figures] == ["compile_total_s-cumulative_sum", "first"]


def test_a_suite_of_many_sweeps_draws_a_few():
    sizes = [(width, n) for width in range(MOST_GROWTH + 1) for n in (10, 100, 1000)]
    planned = [samples.planned_case(params={"width": width, "n": n}) for width, n in sizes]

    (suite,) = page_of(samples.run(*((case, samples.fast_case(case)) for case in planned))).suites

    assert sum(isinstance(card.figure, Curves) for card in suite.figures) == MOST_GROWTH
    assert len(suite.parts) > MOST_GROWTH


def test_each_place_has_its_rows_in_the_case_and_the_newest_run_leads():
    old, new = samples.run(run_id="old"), samples.run(run_id="new", started="2026-02-01T00:00:00Z")

    (suite,) = page_of(old, new, samples.gpu_run()).suites

    assert set(rows_of(suite)) >= {"selu:jit · ● cpu · new", "selu:jit · ■ gpu"}
    assert {result.run for case in suite.cases for result in case.results} == {"new", samples.gpu_run().manifest.run_id}


def test_a_suite_s_table_is_bounded_counts_what_it_leaves_out_and_keeps_the_case_that_answers(monkeypatch):
    monkeypatch.setattr(limits, "MOST_ROWS", 8)
    pairs = many(8)
    answer = samples.Answer("What is jit worth?", "selu:jit", against="selu:eager")
    pairs[-1] = (msgspec.structs.replace(pairs[-1][0], answer=answer), pairs[-1][1])

    (suite,) = page_of(samples.run(*pairs)).suites

    assert (len(suite.table.rows), suite.left_out, len(suite.cases)) == (8, 8, 8)
    assert suite.answer.target in [group.id for group in suite.table.groups]


def test_suites_share_the_rows_of_a_page_and_small_ones_lose_none(monkeypatch):
    monkeypatch.setattr(limits, "MOST_ROWS_IN_ALL", 60)
    pairs = [pair for name in "abcd" for pair in many(10, name)] + many(3, "small")

    page = page_of(samples.run(*pairs))

    sizes = {suite.name: len(suite.table.rows) for suite in page.suites}
    assert sizes["small"] == 6
    assert sum(sizes.values()) <= 60
    others = [size for name, size in sizes.items() if name != "small"]
    assert max(others) - min(others) <= 2  # a case is not cut
    assert sum(others) >= 50


def test_earlier_runs_of_a_case_are_a_series_and_no_comparison():
    runs = [samples.run(run_id=f"run-{day}", started=f"2026-02-0{day}T00:00:00Z") for day in (1, 2, 3)]

    view = case_view(page_of(*runs), "selu[dtype=float32,n=10000]")

    (history,) = [section for section in view.sections if section.id == "history"]
    (table,) = history.parts[0].tables
    assert history.answer == "3 runs of it."
    assert [group.title for group in table.groups] == ["selu:eager · ● cpu · run-3", "selu:jit · ● cpu · run-3"]
    assert [row.cells[0].text for row in table.groups[1].rows] == ["run-3", "run-2", "run-1"]
    (curve,) = card_of(view.figures, "history").figure.panels[0].curves
    assert [point.mark.variant for point in curve.points] == ["selu:jit"] * 3
    assert card_of(view.figures, "history").figure.panels[0].x.names == ("02-01", "02-02", "02-03")


def test_runs_of_two_machines_are_no_series():
    runs = [samples.run(run_id=name, machine=name) for name in ("one", "two")]

    view = case_view(page_of(*runs), "selu[dtype=float32,n=10000]")

    assert "history" not in [section.id for section in view.sections]
    assert "history" not in [card.id for card in view.figures]


def test_a_case_of_a_sweep_marks_its_size_in_the_curves():
    (suite,) = page_of(samples.sweep_run()).suites

    marked = {
        case.name: [panel.here for panel in card_of(case.figures, "growth-n").figure.panels] for case in suite.cases
    }
    assert marked == {f"cumulative_sum[n={n}]": [n] for n in (16, 64, 256, 1024)}


def test_a_fragment_is_what_a_reader_would_type_and_unlike_for_unlike_names():
    names = [("a b",), ("a_b",), ("a\tb",), ("a/b", "c"), ("a", "b/c"), ("x" * 300,), ("x" * 299,)]

    fragments = [make_fragment("case", *one) for one in names]

    assert make_fragment("case", "matmul", "matmul[n=2048]") == "case=matmul/matmul[n=2048]"
    assert len(set(fragments)) == len(names)
    assert not any(character.isspace() for one in fragments for character in one)


def test_notes_of_a_case_stand_below_its_numbers_once_with_the_variants_that_they_are_of():
    failed = samples.Outcome(status=Status.FAILED, reason="no memory")
    page = page_of(samples.one_case({"f:eager": samples.timing(1e-3), "f:jit": failed, "g:jit": failed}))

    (part,) = page.suites[0].cases[0].sections[0].parts

    assert "Notes" not in [column.title for column in part.tables[0].columns]
    assert "f:jit, g:jit: timing failed: no memory" in part.notes


@pytest.mark.parametrize(("cases", "is_drawn"), [(3, True), (4, False)])
def test_a_page_of_very_many_cases_draws_its_suites_only(monkeypatch, cases, is_drawn):
    monkeypatch.setattr(limits, "MOST_DRAWN", 3)

    (suite,) = page_of(samples.run(*many(cases))).suites

    assert suite.figures
    assert [bool(case.figures) for case in suite.cases] == [is_drawn] * cases
    assert all((NOT_DRAWN in case.about) is not is_drawn for case in suite.cases)
