"""Cards of the first screen: which stand there, and what reports of releases say."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
import pytest

from jaxmeter.document.model import Tone
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record import Answer, CaseRecord, CompilationDetails, Cost, Outcome, PlannedCase, Status, Trap
from jaxmeter.harness.record.cases import Reported
from jaxmeter.reporting.compare.verdicts import Here, JudgedReport
from jaxmeter.reporting.view.cards import FEWEST_ASKED, MOST_CARDS, make_reports_card, split_cards
from jaxmeter.reporting.view.figure_model import Hue, Points
from jaxmeter.reporting.view.page_model import Card, Phrase
from tests import samples
from tests.reporting.views import card_of, page_of


def make_cards(asked: int, others: int = 0) -> list[Card]:
    said = (Phrase("An answer."),)
    return [
        *(Card(f"asked-{number}", "Which?", said) for number in range(asked)),
        *(Card(f"other-{number}", "Suite", said, is_asked=False) for number in range(others)),
    ]


def make_report(here: Here, ours: Interval | None) -> JudgedReport:
    report = Reported(source="jax issue 1", before="0.4.31", after="0.4.33", factor=20.0)
    return JudgedReport(
        report, "array_walk[n=20000]", "array_walk:jit", 20.0, ours, here, releases=("0.4.31", "0.4.33")
    )


def test_the_first_screen_shows_declared_questions_only() -> None:
    shown, more = split_cards(make_cards(FEWEST_ASKED, 3))

    assert [card.id for card in shown] == [f"asked-{number}" for number in range(FEWEST_ASKED)]
    assert [card.id for card in more] == ["other-0", "other-1", "other-2"]


def test_where_few_questions_are_declared_other_suites_stand_on_the_first_screen_too() -> None:
    shown, more = split_cards(make_cards(FEWEST_ASKED - 1, 9))

    assert len(shown) == MOST_CARDS
    assert len(more) == FEWEST_ASKED - 1 + 9 - MOST_CARDS


def test_a_declared_question_without_an_answer_does_not_count() -> None:
    unanswered = Card("a", "Which?", (Phrase("No answer: skipped.", tone=Tone.MUTED),))
    shown, _ = split_cards([*make_cards(FEWEST_ASKED - 1, 1), unanswered])

    assert "other-0" in [card.id for card in shown]


def test_reports_are_drawn_as_measured_and_counted_by_verdict() -> None:
    card = make_reports_card(
        [
            make_report(Here.REPRODUCED, Interval(18.0, 20.0, 22.0, 5)),
            make_report(Here.OPPOSITE, Interval(0.4, 0.5, 0.6, 5)),
            make_report(Here.NOT_HERE, Interval(0.98, 1.01, 1.05, 5)),
            make_report(Here.UNDECIDED, None),
        ]
    )

    assert card is not None
    assert isinstance(card.figure, Points)
    assert [row.marks[-1].hue for row in card.figure.rows] == [Hue.SLOWER, Hue.FASTER, Hue.INK]
    assert card.figure.rows[0].label == "array walk, 0.4.33"
    assert [mark.is_reference for mark in card.figure.rows[0].marks] == [True, False]
    counts = "Of 4 reports: 1 reproduced, 1 opposite direction, 1 not on this machine, 1 undecided."
    assert card.phrases[0].text.startswith(counts)
    assert "Without a colour" in card.phrases[0].text


def test_where_every_report_has_a_colour_none_is_explained() -> None:
    card = make_reports_card([make_report(Here.REPRODUCED, Interval(18.0, 20.0, 22.0, 5))])

    assert card is not None
    assert "Without a colour" not in card.phrases[0].text


def run_of(times: Mapping[str, Outcome], *, suite: str = "selu", **changes: object) -> tuple[PlannedCase, CaseRecord]:
    """A case by its suite, timed by eager code and by jit."""
    planned = samples.planned_case(suite, variants=tuple(times), **changes)
    return planned, samples.record(planned, {name: {"timing": outcome} for name, outcome in times.items()})


def time_both(ratio: float, **changes: object) -> dict[str, Outcome]:
    jit = samples.timing(1e-3 / ratio, baseline_s=1e-3, **changes)
    return {"f:eager": samples.timing(1e-3), "f:jit": jit}


TRAP = Trap(kind="dead_work", evidence="98 % of the traced FLOPs do not reach the result")


def trap_jit(pair: tuple[PlannedCase, CaseRecord]) -> tuple[PlannedCase, CaseRecord]:
    """The same case, of which jit has a trap."""
    planned, record = pair
    outcomes = {one.name: dict(one.outcomes) for one in record.variants}
    outcomes["f:jit"]["compilation"] = Outcome(status=Status.OK, details=CompilationDetails(traps=(TRAP,)))
    return planned, samples.record(planned, outcomes)


def test_what_jit_is_worth_is_told_from_the_smallest_to_the_largest_of_all_suites() -> None:
    card = page_of(samples.run(run_of(time_both(2), suite="a"), run_of(time_both(50), suite="b"))).overview.jit

    assert [row.label for row in card.figure.rows] == ["a", "b"]
    assert re.findall(r"[\d.]+×", card.phrases[0].text) == ["2.0×", "50×"]
    assert card.target == "case=b/b[dtype=float32,n=10000]"


def test_a_speedup_counts_though_its_times_are_contended_since_both_met_the_same_interference() -> None:
    busy = {"f:eager": samples.timing(1e-3, contended=3), "f:jit": samples.timing(5e-4, baseline_s=1e-3, contended=3)}
    card = page_of(samples.run(run_of(busy, suite="a"), run_of(time_both(50), suite="b"))).overview.jit

    (phrase,) = card.phrases
    assert [mark.estimate.is_doubtful for mark in card.figure.rows[0].marks] == [True, True]
    assert phrase.text.startswith("jit is 2.0×")
    assert phrase.doubt == ""


def test_a_speedup_with_a_trap_is_drawn_hollow_and_left_out_of_what_jit_is_worth() -> None:
    trapped = trap_jit(run_of(time_both(50), suite="b"))
    card = page_of(samples.run(run_of(time_both(2), suite="a"), trapped)).overview.jit

    hollow = {row.label: row.marks[-1].estimate.is_doubtful for row in card.figure.rows}
    assert hollow == {"a": False, "b": True}
    assert "50×" not in card.phrases[0].text
    assert "1 speedup" in card.phrases[0].doubt


def test_variants_with_a_trap_are_counted() -> None:
    trust = page_of(samples.run(trap_jit(run_of(time_both(50))))).overview.trust

    assert [(fact.values[0].text, fact.target) for fact in trust if "trap" in fact.name] == [("1", "attention")]


def test_where_every_speedup_has_a_trap_none_is_told() -> None:
    (phrase,) = page_of(samples.run(trap_jit(run_of(time_both(50))))).overview.jit.phrases

    assert phrase.tone is Tone.WARN
    assert "50" not in phrase.text


def test_an_answer_says_why_not_to_rely_on_it_and_names_variants_as_they_are() -> None:
    doubted = page_of(samples.run(run_of(time_both(4, doubtful_ratios=True)))).overview.cards[0].phrases[0]
    trapped = page_of(samples.run(trap_jit(run_of(time_both(4))))).overview.cards[0].phrases[0]

    assert doubted.text.startswith("f:jit is 4.0×")
    assert doubted.doubt.startswith("Do not rely on it: ")
    assert trapped.doubt.startswith("f:jit has a trap: ")
    assert (doubted.tone, trapped.tone) == (Tone.WARN, Tone.WARN)


@pytest.mark.parametrize("metric", ["taste", "compile_exponent"])
def test_an_answer_by_a_metric_that_variants_do_not_have_has_a_card_without_a_figure(metric: str) -> None:
    answer = Answer("How does it taste?", "f:jit", metric=metric)

    (card,) = page_of(samples.run(run_of(time_both(4), answer=answer))).overview.cards[:1]

    assert (card.question, card.figure, card.is_answered) == ("How does it taste?", None, False)


@pytest.mark.parametrize("figure", ["ledger", "stages"])
def test_where_the_figure_that_a_suite_declares_has_nothing_to_show_points_do(figure: str) -> None:
    answer = Answer("How fast?", "f:jit", metric="execution_s", figure=figure)

    card = page_of(samples.run(run_of(time_both(4), answer=answer))).overview.cards[0]

    assert [row.label for row in card.figure.rows] == ["f, eager", "f, jit"]


def test_first_calls_without_stages_are_points() -> None:
    planned = samples.planned_case(
        variants=("f:mixed", "g:mixed"), answer=Answer("?", "f:mixed", metric="first_call_s")
    )
    calls = {one.name: {"compilation": samples.compilation(0.1, processes=3)} for one in planned.variants}

    card = page_of(samples.run((planned, samples.record(planned, calls)))).overview.cards[0]

    assert isinstance(card.figure, Points)


def test_every_answer_is_a_card_of_its_device() -> None:
    here, there = (samples.run(run_of(time_both(4)), run_id=backend, backend=backend) for backend in ("cpu", "gpu"))

    card = card_of(page_of(here, there).overview.cards, "selu")

    assert {phrase.hue for phrase in card.phrases} == {Hue.CPU, Hue.GPU}
    assert {mark.hue for row in card.figure.rows for mark in row.marks} == {Hue.CPU, Hue.GPU}


def test_a_device_without_the_case_answers_by_its_own_which_the_sentence_names() -> None:
    answer = Answer("How fast?", "f:jit", "f:eager")
    here, there = (
        samples.run(
            run_of(time_both(4), params={"n": n}, answer=answer), run_id=backend, backend=backend, machine=backend
        )
        for backend, n in (("cpu", 100), ("gpu", 9_000))
    )

    overview = page_of(here, there).overview

    # The suite's question is that of the card about jit: one row a device.
    assert {row.label for row in overview.jit.figure.rows} == {"selu, n 100", "selu, n 9\u202f000"}


def test_a_device_that_answers_by_another_case_has_its_params_in_the_sentence() -> None:
    answer = Answer("How fast?", "g:jit", "f:jit")
    times = {"f:jit": samples.timing(1e-3), "g:jit": samples.timing(5e-4, baseline_s=1e-3)}
    here, there = (
        samples.run(run_of(times, params={"n": n}, answer=answer), run_id=backend, backend=backend, machine=backend)
        for backend, n in (("cpu", 100), ("gpu", 9_000))
    )

    card = card_of(page_of(here, there).overview.cards, "selu")

    texts = {phrase.hue: phrase.text.replace("\u202f", " ") for phrase in card.phrases}
    assert texts[Hue.CPU].endswith("; n 100.")
    assert texts[Hue.GPU].endswith("; n 9 000.")
    assert {row.label.replace("\u202f", " ") for row in card.figure.rows} >= {"f, n 100", "g, n 9 000"}


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_first_screen_names_the_level_of_its_intervals(level: float) -> None:
    run = samples.run(run_of(time_both(4)), settings=samples.settings(shown_confidence=level))

    assert f"{100 * level:g}\u202f% confidence interval" in page_of(run).overview.note


def test_without_a_measured_report_there_is_no_card() -> None:
    assert make_reports_card([make_report(Here.UNDECIDED, None)]) is None
    assert make_reports_card([]) is None


def test_answers_that_cannot_be_relied_on_come_after_those_that_can() -> None:
    def ask(suite: str, rank: float, **changes: object) -> tuple[PlannedCase, CaseRecord]:
        times = {"f:jit": samples.timing(1e-3, **changes), "g:jit": samples.timing(5e-4, baseline_s=1e-3, **changes)}
        return run_of(times, suite=suite, answer=Answer("Which?", "g:jit", "f:jit", rank=rank))

    pairs = ask("a", 1, doubtful_ratios=True), ask("b", 2), ask("c", 3)

    cards = page_of(samples.run(*pairs)).overview.cards

    assert [card.id for card in cards] == ["b", "c", "a"]


@pytest.mark.parametrize(("metric", "total"), [("compile_total_s", 600), ("first_result_s", 1000)])
def test_a_figure_of_stages_has_the_run_unless_the_answer_is_about_compiling(metric: str, total: float) -> None:
    planned = samples.planned_case(variants=("f:jit", "g:jit"), answer=Answer("?", "f:jit", "g:jit", metric=metric))
    stages = samples.compilation(0.1, 0.2, 0.3, 0.4, processes=3)
    record = samples.record(planned, {one.name: {"compilation": stages} for one in planned.variants})

    card = page_of(samples.run((planned, record))).overview.cards[0]

    for row in card.figure.rows:
        assert row.total.replace("\u202f", " ") == ("1.00 s" if total == 1000 else "600 ms")
        assert sum(part.amount for part in row.parts) == pytest.approx(total / 1000, rel=1e-3)


def ask_of_stages(metric: str, figure: str = "") -> Card:
    """Return the card of two variants that were compiled by stages of 0.1, 0.2, 0.3 and 0.4 s."""
    answer = Answer("?", "f:jit", "g:jit", metric=metric, figure=figure)
    planned = samples.planned_case(variants=("f:jit", "g:jit"), answer=answer)
    stages = samples.compilation(0.1, 0.2, 0.3, 0.4, processes=3)
    record = samples.record(planned, {one.name: {"compilation": stages} for one in planned.variants})
    return page_of(samples.run((planned, record))).overview.cards[0]


@pytest.mark.parametrize(
    ("metric", "title"), [("first_call_s", "first call"), ("compile_s", "compile"), ("trace_s", "trace")]
)
def test_of_an_answer_by_one_stage_the_figure_shows_that_stage_as_the_sentence_does(metric: str, title: str) -> None:
    card = ask_of_stages(metric)

    assert card.figure.axis.title == title
    assert all(f"{row.label}:jit {row.note}" in card.phrases[0].text for row in card.figure.rows)


def test_a_sentence_names_its_metric_where_the_figure_that_a_suite_declares_shows_another_quantity() -> None:
    assert ask_of_stages("first_result_s").phrases[0].text.startswith("f:jit ")
    assert ask_of_stages("first_call_s", "stages").phrases[0].text.startswith("First call: f:jit ")


@pytest.mark.parametrize("is_asked_of_both", [True, False])
def test_the_card_and_the_table_of_devices_answer_by_one_case(is_asked_of_both: bool) -> None:
    answer = Answer("How fast?", "g:jit", "f:jit")
    pairs = []
    for n, ratio in ((100, 4), (1000, 2)):
        late = {"f:jit": samples.timing(1e-3), "g:jit": samples.timing(1e-3 / ratio, baseline_s=1e-3)}
        for name, timing in late.items():
            values = {**timing.values, "return_s": timing.values["execution_s"]}
            late[name] = msgspec.structs.replace(timing, values=values)
        asked = answer if is_asked_of_both or n == 100 else None
        pairs.append(run_of(late, params={"n": n}, answer=asked, cost=Cost(flops=n), suite="pair"))

    page = page_of(samples.run(*pairs))

    card, (cell,) = card_of(page.overview.cards, "pair"), page.matrix.groups[0].rows[0].cells[1:]
    number = "2.0×" if is_asked_of_both else "4.0×"
    assert number in card.phrases[0].text
    assert number in cell.text


def plan_memory(n: int, temp: int) -> tuple[PlannedCase, CaseRecord]:
    planned = samples.planned_case(params={"n": n}, variants=("f:jit",))
    return planned, samples.record(planned, {"f:jit": {"memory": samples.memory(0, 0, temp)}})


def test_the_card_about_memory_has_the_largest_plan_of_each_workload_of_a_device_and_names_its_case() -> None:
    environment = samples.environment(device_memory_bytes=10_000)
    settings = samples.settings(probes=("memory",))
    runs = (
        samples.run(plan_memory(n, temp), run_id=str(n), environment=environment, settings=settings)
        for n, temp in ((100, 1_000), (200, 9_000))
    )

    card = card_of(page_of(*runs).overview.cards, "memory")

    assert [row.label for row in card.figure.rows] == ["selu, n 200"]
