"""What a case's card says of its changes from run to run."""

from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.reporting.compare.verdicts import TIME, Change, Verdict
from jaxmeter.reporting.view.case_views import MOST_STEPS, _describe_steps


def make_step(release: str, ratio: float, variant: str = "f:jit") -> tuple[str, Change]:
    verdict = Verdict.SLOWER if ratio > 1 else Verdict.FASTER
    effect = Interval(0.9 * ratio, ratio, 1.1 * ratio, 5)
    change = Change(
        suite="suite", case="f", platform="cpu", variant=variant, metric=TIME, verdict=verdict, effect=effect
    )
    return release, change


def test_changes_are_said_in_their_order_with_intervals() -> None:
    (phrase,) = _describe_steps([make_step("0.7.1", 20.0), make_step("0.7.2", 0.05)])

    assert phrase.text == "0.7.1: 20× [18, 22] as long; 0.7.2: −95\u202f% [−96, −94]."


def test_of_many_changes_the_largest_are_said_and_the_others_counted() -> None:
    (phrase,) = _describe_steps([make_step(f"0.{number}", 2.0 + number) for number in range(MOST_STEPS + 2)])

    assert "0.0:" not in phrase.text
    assert "0.1:" not in phrase.text
    assert phrase.text.endswith("and 2 smaller changes.")


def test_variants_are_named_where_several_changed() -> None:
    (phrase,) = _describe_steps([make_step("1", 4.0), make_step("2", 4.0, "f:eager")])

    assert "1 f:jit: " in phrase.text
    assert "2 f:eager: " in phrase.text


def test_without_a_change_nothing_is_said() -> None:
    assert list(_describe_steps([])) == []
