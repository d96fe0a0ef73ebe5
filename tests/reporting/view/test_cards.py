"""Cards of the first screen: which stand there, and what reports of releases say."""

from __future__ import annotations

from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record.cases import Reported
from jaxmeter.reporting.compare.findings import Here, JudgedReport
from jaxmeter.reporting.view.cards import FEWEST_ASKED, MOST_CARDS, make_reports_card, split_cards
from jaxmeter.reporting.view.figure_model import Hue, Points
from jaxmeter.reporting.view.overview_model import Card, Phrase
from jaxmeter.reporting.view.tone import Tone


def make_cards(asked: int, others: int = 0) -> list[Card]:
    said = (Phrase("An answer."),)
    return [
        *(Card(f"asked-{number}", "Which?", said) for number in range(asked)),
        *(Card(f"other-{number}", "Suite", said, is_asked=False) for number in range(others)),
    ]


def make_report(here: Here, ours: Interval | None) -> JudgedReport:
    report = Reported(source="jax issue 1", before="0.4.31", after="0.4.33", factor=20.0)
    return JudgedReport(report, "array_walk[n=20000]", "array_walk:jit", 20.0, ours, here, releases=("0.4.31", "0.4.33"))


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
            make_report(Here.UNTOLD, None),
        ]
    )

    assert card is not None and isinstance(card.figure, Points)
    assert [row.marks[-1].hue for row in card.figure.rows] == [Hue.SLOWER, Hue.FASTER, Hue.INK]
    assert card.figure.rows[0].label == "array walk, 0.4.33"
    assert [mark.is_reference for mark in card.figure.rows[0].marks] == [True, False]
    assert card.phrases[0].text == "Of 4 reports: 1 reproduced, 1 opposite direction, 1 not on this machine, 1 cannot be told."


def test_without_a_measured_report_there_is_no_card() -> None:
    assert make_reports_card([make_report(Here.UNTOLD, None)]) is None
    assert make_reports_card([]) is None
