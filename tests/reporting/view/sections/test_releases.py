"""What each of a series of runs changed, as the page shows it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from jaxmeter.document.model import Tone
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record import Reported
from jaxmeter.reporting.compare.conditions import Conditions
from jaxmeter.reporting.compare.verdicts import TIME, Change, Changes, Here, JudgedReport, Verdict
from jaxmeter.reporting.view.comparisons import MeasuredPair
from jaxmeter.reporting.view.page_model import ReleasesView
from jaxmeter.reporting.view.runs import label_runs
from jaxmeter.reporting.view.sections.releases import choose_reports, make_releases_view
from tests import samples
from tests.reporting.views import kept

SLOWER, FASTER, SAME = Verdict.SLOWER, Verdict.FASTER, Verdict.SAME


def make_run(name: str, jax: str, started: str, **changes: str) -> Run:
    environment = samples.environment(packages={"jax": jax, "jaxlib": jax, "numpy": "2.0.0"}, **changes)
    record = samples.run(run_id=name, started=f"{started}Z", environment=environment)
    (run,) = label_runs(kept(record))
    return run


def make_change(case: str, verdict: Verdict, ratio: float) -> Change:
    effect = Interval(0.9 * ratio, ratio, 1.1 * ratio, 5)
    return Change(
        suite="suite", case=case, platform="cpu", variant="f:jit", metric=TIME, verdict=verdict, effect=effect
    )


def pair(before: Run, after: Run, ratios: Mapping[str, tuple[Verdict, float]]) -> MeasuredPair:
    found = tuple(make_change(case, verdict, ratio) for case, (verdict, ratio) in ratios.items())
    return MeasuredPair(before, after, Changes(before.name, after.name, Conditions(), 0.03, found))


def show(*pairs: MeasuredPair) -> ReleasesView:
    view = make_releases_view(pairs, {})
    assert view is not None
    return view


def read_rows(view: ReleasesView) -> dict[str, list[str]]:
    return {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in view.table.rows}


@pytest.fixture
def releases() -> list[Run]:
    return [
        make_run(jax, jax, f"2026-01-0{number}T03:00:00") for number, jax in enumerate(("0.9.2", "0.10.0", "0.10.1"), 1)
    ]


def test_releases_are_columns_in_the_order_of_their_versions(releases: list[Run]) -> None:
    one, two, three = releases

    view = show(pair(two, three, {"f": (FASTER, 0.5)}), pair(one, two, {"f": (SLOWER, 2.0)}))

    assert view.question == "What did each release change?"
    assert [column.title for column in view.table.columns] == ["Case", "0.10.0", "0.10.1"]
    assert read_rows(view) == {"f": ["2.0×", "−50\u202f%"]}


def test_the_total_says_what_a_comparison_found_where_neighbours_are_blank(releases: list[Run]) -> None:
    one, two, three = releases

    view = show(
        pair(one, two, {"f": (SLOWER, 2.0), "g": (SLOWER, 3.0)}),
        pair(two, three, {"f": (SAME, 1.0)}),
        pair(one, three, {"f": (SAME, 1.9)}),
    )

    assert [(column.title, column.detail) for column in view.table.columns[3:]] == [("0.10.1", "since 0.9.2")]
    assert read_rows(view) == {"g": ["3.0×", "n/c", "n/c"], "f": ["2.0×", "", "(+90\u202f%)"]}


def test_the_release_with_most_changes_is_named_and_totals_do_not_count(releases: list[Run]) -> None:
    one, two, three = releases

    view = show(
        pair(one, two, {"f": (SLOWER, 2.0), "g": (SAME, 1.0)}),
        pair(two, three, {"f": (FASTER, 0.5), "g": (SLOWER, 1.5)}),
        pair(one, three, {"f": (SLOWER, 9.0), "g": (SLOWER, 9.0)}),
    )

    assert view.answer == "3 confirmed changes in 4 comparisons. Most changes: 0.10.1, 1 slower, 1 faster."


def test_nightly_runs_of_one_release_are_columns_by_their_days() -> None:
    base, *nights = (make_run(f"run-{day}", "0.10.2", f"2026-01-0{day}T03:00:00") for day in (1, 2, 3))

    view = show(*(pair(base, night, {"f": (SLOWER, 1.5)}) for night in nights))

    assert view.question == "What did each run change?"
    assert [(column.title, column.detail) for column in view.table.columns[1:]] == [
        ("2026-01-02", ""),
        ("2026-01-03", ""),
    ]
    assert view.table.caption.endswith("compared with 2026-01-01.")
    assert view.answer.startswith("2 confirmed changes in 2 comparisons.")


@pytest.mark.parametrize(
    ("starts", "names"),
    [
        (("01:30:00", "02:30:00", "03:30:00"), ["02:30", "03:30"]),
        (("01:30:00", "01:30:20", "01:30:40"), ["01:30:20", "01:30:40"]),
    ],
)
def test_runs_of_one_day_are_named_by_the_minute_or_the_second(starts: tuple[str, ...], names: list[str]) -> None:
    base, *others = (make_run(f"run-{start}", "0.10.2", f"2026-01-01T{start}") for start in starts)

    view = show(*(pair(base, other, {"f": (SLOWER, 1.5)}) for other in others))

    assert [column.title for column in view.table.columns[1:]] == names


def test_one_comparison_is_no_series(releases: list[Run]) -> None:
    assert make_releases_view([pair(releases[0], releases[1], {"f": (SLOWER, 2.0)})], {}) is None


def test_a_total_that_its_steps_contradict_is_a_warning_that_says_what_they_multiply_to(releases: list[Run]) -> None:
    one, two, three = releases

    view = show(
        pair(one, two, {"f": (SLOWER, 2.0), "g": (SLOWER, 2.0)}),
        pair(two, three, {"f": (SAME, 1.0), "g": (SAME, 1.0)}),
        pair(one, three, {"f": (SAME, 1.0), "g": (SLOWER, 1.9)}),
    )

    totals = {row.cells[0].text: row.cells[-1] for row in view.table.rows}
    assert (totals["f"].text, totals["f"].tone) == ("! (0.0\u202f%)", Tone.WARN)
    assert "its steps multiply to 2.0× [1.7, 2.3]" in totals["f"].hint
    assert totals["g"].tone is Tone.BAD


def test_a_total_over_other_releases_than_the_steps_is_not_held_against_them(releases: list[Run]) -> None:
    one, two, three = releases
    last = make_run("0.10.2", "0.10.2", "2026-01-04T03:00:00")

    view = show(
        pair(one, two, {"f": (SLOWER, 2.0)}), pair(two, three, {"f": (SAME, 1.0)}), pair(one, last, {"f": (SAME, 1.0)})
    )

    assert "!" not in view.table.rows[0].cells[-1].text


@pytest.fixture
def two_pythons() -> list[MeasuredPair]:
    """Three steps, of which the last was measured later and elsewhere, and the total of both beginnings."""
    old, new = {"python": "3.11.7", "device_name": "A"}, {"python": "3.12.1", "device_name": "B"}
    one, two, three, *_ = (
        make_run(jax, jax, f"2026-01-0{day}T03:00:00", **old)
        for day, jax in enumerate(("0.9.2", "0.10.0", "0.10.1"), 1)
    )
    again, first, four = (
        make_run(f"{jax}-again", jax, f"2026-02-0{day}T03:00:00", **new)
        for day, jax in enumerate(("0.10.1", "0.9.2", "0.11.0"), 1)
    )
    return [
        pair(one, two, {"f": (SLOWER, 2.0)}),
        pair(two, three, {"f": (SAME, 1.0)}),
        pair(one, three, {"f": (SAME, 1.0)}),
        pair(again, four, {"f": (SLOWER, 2.0)}),
        pair(first, four, {"f": (SAME, 1.0)}),
    ]


def test_runs_of_several_pythons_and_machines_are_one_series_that_names_both(two_pythons: list[MeasuredPair]) -> None:
    view = show(*two_pythons)

    cores = f"{samples.environment().allowed_cores} cores"
    assert [column.title for column in view.table.columns[1:]] == ["0.10.0", "0.10.1", "0.11.0", "0.10.1", "0.11.0"]
    assert [[cell.text for cell in row.cells] for row in view.conditions.rows] == [
        ["0.10.0", "0.9.2", "3.11.7", f"A, {cores}", "2026-01-02"],
        ["0.10.1", "0.10.0", "3.11.7", f"A, {cores}", "2026-01-03"],
        ["0.11.0", "0.10.1", "3.12.1", f"B, {cores}", "2026-02-03"],
        ["0.10.1", "0.9.2", "3.11.7", f"A, {cores}", "2026-01-03"],
        ["0.11.0", "0.9.2", "3.12.1", f"B, {cores}", "2026-02-03"],
    ]
    assert view.answer.endswith(f" 0.10.0 to 0.10.1: Python 3.11.7, A, {cores}. 0.11.0: Python 3.12.1, B, {cores}.")


def test_a_total_is_held_against_the_steps_that_were_measured_as_it_was(two_pythons: list[MeasuredPair]) -> None:
    *_, of_old, of_both = show(*two_pythons).table.rows[0].cells

    assert (of_old.text, of_old.tone) == ("! (0.0\u202f%)", Tone.WARN)
    assert (of_both.text, of_both.tone) == ("(0.0\u202f%)", Tone.MUTED)


def test_one_machine_and_one_python_are_named_behind_the_table_alone(releases: list[Run]) -> None:
    one, two, three = releases

    view = show(pair(one, two, {"f": (SLOWER, 2.0)}), pair(two, three, {"f": (SAME, 1.0)}))

    assert "Python" not in view.answer
    assert len(view.conditions.rows) == 2


def test_both_pythons_of_a_pair_are_named_where_they_differ() -> None:
    before = make_run("0.9.2", "0.9.2", "2026-01-01T03:00:00", python="3.11.7")
    after = make_run("0.12.0", "0.12.0", "2026-01-02T03:00:00", python="3.12.1")

    assert pair(before, after, {}).python == "3.11.7 → 3.12.1"


def test_a_report_is_judged_by_the_pair_next_to_it_also_where_only_a_longer_span_has_a_number(
    releases: list[Run],
) -> None:
    report = Reported(source="jax issue 1", before="0.9.0", after="0.10.0", factor=2.0)

    def judge(ours: Interval | None, *names: str) -> JudgedReport:
        return JudgedReport(report, "case[n=1]", "case:jit", 2.0, ours, Here.UNDECIDED, releases=(names[0], names[1]))

    first, *_, last = releases
    versions = [run.environment.packages["jax"] for run in releases]
    next_to_it, span = judge(None, *versions[:2]), judge(Interval(0.3, 0.4, 0.5, 3, None), versions[0], versions[-1])
    steps = [pair(before, after, {}) for before, after in itertools.pairwise(releases)]

    (chosen,) = choose_reports([*steps, pair(first, last, {})], (span, next_to_it))

    assert len(versions) > 2
    assert chosen is next_to_it
